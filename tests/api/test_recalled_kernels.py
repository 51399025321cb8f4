"""Kernels that another process has compiled are called without lowering their functions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api._program import Program
from sparsejit.backends.disk_cache import write_entry
from sparsejit.backends.llvm import _engine

A = sp.csr_array(np.array([[0.0, 2, 0], [1, 0, 3], [0, 0, 4]]))
x = np.array([1.0, 2, 3])
Y = np.arange(6.0).reshape(3, 2)


def two_results(A: Any, Y: Any) -> Any:
    return A @ Y, A + A


def updated(A: Any, y: Any) -> Any:
    y += A @ np.ones(3)
    return y


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "spmv": (lambda A, x: A @ x, lambda: (A, x)),
    "add": (lambda A: A + A, lambda: (A,)),
    "spgemm": (lambda A, B: A @ B, lambda: (A, A)),
    "number": (lambda A, x: (A @ x).sum() * 2.5, lambda: (A, x)),
    "two results": (two_results, lambda: (A, Y)),
    "in place": (updated, lambda: (A, x.copy())),
}


def dense(result: Any) -> Any:
    whole: Any = result
    if isinstance(result, tuple):
        return np.concatenate([dense(part).ravel() for part in result])
    return np.asarray(whole.toarray() if sp.issparse(result) else whole)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that were lowered, by name."""
    found: list[str] = []
    real = Program.lower

    def noted(self: Program, *args: Any, **kwargs: Any) -> Any:
        found.append(self.func.name)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Program, "lower", noted)
    return found


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_the_second_process_lowers_nothing(name: str, cache: Path, lowered: list[str]) -> None:
    fn, arguments = FUNCTIONS[name]
    first, again = sj.sparse_jit(fn, target="cpu"), sj.sparse_jit(fn, target="cpu")
    expected = dense(first(*arguments()))
    assert len(lowered) == 1
    np.testing.assert_array_equal(dense(again(*arguments())), expected)
    np.testing.assert_array_equal(dense(again(*arguments())), expected)
    np.testing.assert_array_equal(dense(again(*arguments())), expected)
    assert len(lowered) == 1, "the kernel was called without its loops"


def test_what_is_asked_afterwards_is_the_same(cache: Path, lowered: list[str]) -> None:
    def fn(A: Any, x: Any) -> Any:
        return sj.softmax(A, axis=1) @ x

    first, again = sj.sparse_jit(fn, target="cpu"), sj.sparse_jit(fn, target="cpu")
    first(A, x)
    again(A, x)
    assert len(lowered) == 1

    def facts(f: Any) -> list[str]:
        return [line for line in f.explain().splitlines() if " ms" not in line]

    assert facts(again) == facts(first)
    for level in ("tensor", "decisions", "copies", "loops", "source", "mlir"):
        try:
            expected = first.lower(A, x).text(level)
        except sj.errors.UnsupportedError:
            continue
        assert again.lower(A, x).text(level) == expected


def test_other_strides_are_compiled_when_they_come(cache: Path, lowered: list[str]) -> None:
    def fn(X: Any) -> Any:
        return X * 2.0

    wide = np.arange(24.0).reshape(4, 6)
    sj.sparse_jit(fn, target="cpu")(wide[:, ::2])
    again = sj.sparse_jit(fn, target="cpu")
    for given in (wide[:, ::2], wide[::2, 1::3], wide[:, ::-1]):
        np.testing.assert_array_equal(again(given), given * 2)


@pytest.mark.parametrize(
    "change",
    [
        {"reassociate": False},
        {"deterministic": True},
        {"parallelization": "none"},
        {"parallelization": "dense-outer-loop"},
        {"library": "never"},
    ],
)
def test_what_changes_the_loops_changes_the_key(
    change: dict[str, Any], cache: Path, lowered: list[str]
) -> None:
    fn, arguments = FUNCTIONS["spmv"]
    sj.sparse_jit(fn, target="cpu")(*arguments())
    sj.sparse_jit(fn, target="cpu", **change)(*arguments())
    assert len(lowered) == 2
    sj.sparse_jit(fn, target="cpu", **change)(*arguments())
    assert len(lowered) == 2


def test_another_version_lowers_anew(
    cache: Path, lowered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fn, arguments = FUNCTIONS["spmv"]
    sj.sparse_jit(fn, target="cpu")(*arguments())
    known = _engine.environment()
    monkeypatch.setattr(_engine, "environment", lambda: (*known[:-1], "another"))
    sj.sparse_jit(fn, target="cpu")(*arguments())
    assert len(lowered) == 2


def test_nothing_is_recalled_without_the_cache(cache: Path, lowered: list[str]) -> None:
    fn, arguments = FUNCTIONS["spmv"]
    sj.sparse_jit(fn, target="cpu")(*arguments())
    sj.sparse_jit(fn, target="cpu", cache=False)(*arguments())
    assert len(lowered) == 2


def one_place() -> Callable[..., Any]:
    def fn(A: Any, x: Any) -> Any:
        return A @ x + 1

    return fn


def another_place() -> Callable[..., Any]:
    def fn(A: Any, x: Any) -> Any:
        return A @ x + 1

    return fn


def test_the_place_in_the_source_does_not_matter(cache: Path, lowered: list[str]) -> None:
    sj.sparse_jit(one_place(), target="cpu")(A, x)
    sj.sparse_jit(another_place(), target="cpu")(A, x)
    assert lowered == ["fn"]


def test_without_the_code_the_function_is_lowered(cache: Path, lowered: list[str]) -> None:
    fn, arguments = FUNCTIONS["add"]
    expected = dense(sj.sparse_jit(fn, target="cpu")(*arguments()))
    for entry in cache.glob("llvm/*/*.bin"):
        entry.unlink()
    found = sj.sparse_jit(fn, target="cpu")(*arguments())
    np.testing.assert_array_equal(dense(found), expected)
    assert len(lowered) == 2


@pytest.mark.parametrize("damage", ["empty", "changed", "another"])
def test_a_damaged_entry_is_made_anew(
    damage: str, cache: Path, lowered: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    fn, arguments = FUNCTIONS["add"]
    expected = dense(sj.sparse_jit(fn, target="cpu")(*arguments()))
    (entry,) = cache.glob("interface/*/*.bin")
    whole = entry.read_bytes()
    match damage:
        case "empty":
            entry.write_bytes(b"")
        case "changed":
            entry.write_bytes(whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
        case _:
            write_entry("interface", f"{entry.parent.name}{entry.stem}", b"something else")
    with caplog.at_level(logging.WARNING, "sparsejit"):
        found = sj.sparse_jit(fn, target="cpu")(*arguments())
    np.testing.assert_array_equal(dense(found), expected)
    assert "is damaged" in caplog.text or "cannot be used" in caplog.text
    assert len(lowered) == 2
    sj.sparse_jit(fn, target="cpu")(*arguments())
    assert len(lowered) == 2
