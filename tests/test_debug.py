"""`SPARSEJIT_DUMP`: which names it knows, and what is written where."""

import logging

import pytest

from sparsejit.debug import TEXT_LEVELS, dump_observer, dumped_levels, logger, parse_dump


@pytest.mark.parametrize(
    ("value", "levels"),
    [
        ("", set()),
        (" , ,", set()),
        ("tensor", {"tensor"}),
        ("tensor, loops,plan", {"tensor", "loops", "plan"}),
        ("mlir,mlir", {"mlir"}),
        (",".join(TEXT_LEVELS), set(TEXT_LEVELS)),
    ],
)
def test_names_are_split_at_commas(value: str, levels: set[str]) -> None:
    assert parse_dump(value) == levels


def test_unknown_names_are_refused_with_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_DUMP", "loops,loop,Tensor")
    with pytest.raises(ValueError) as error:
        dumped_levels()
    assert str(error.value) == (
        "SPARSEJIT_DUMP names 'Tensor', 'loop'; "
        "the choices are tensor, decisions, copies, loops, source, plan, mlir"
    )


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARSEJIT_DUMP", raising=False)
    assert dumped_levels() == frozenset()
    monkeypatch.setenv("SPARSEJIT_DUMP", "plan")
    assert dumped_levels() == {"plan"}


def test_only_the_asked_texts_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    observe = dump_observer(frozenset({"tensor"}))
    observe("tensor", "func @f\n")
    observe("tensor:canonicalize", "func @g")
    observe("tensors", "no")
    observe("loops", "no")
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == (
        "// ---- sparsejit tensor ----\nfunc @f\n"
        "// ---- sparsejit tensor:canonicalize ----\nfunc @g\n"
    )


def test_the_logger_is_silent_until_somebody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert logger.name == "sparsejit"
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)
    logger.debug("nobody listens")
    assert capsys.readouterr().err == ""
