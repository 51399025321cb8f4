"""One-Shot analysis and copy insertion: golden texts of named programs, switches, and the meaning.

The golden files hold the program, the decisions and the program after copy insertion. Whether the
copies are right is checked by running random programs in place and by value.
"""

import random
from functools import partial

import hypothesis.strategies as st
import pytest
from hypothesis import given
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.errors import UnsupportedError
from sparsejit.ir.printing import print_tensor
from sparsejit.ir.tensor import TensorFunc
from sparsejit.sparsify_and_bufferize import StageOptions
from tests.support.buffer_programs import PROGRAMS, REFUSED_PROGRAMS
from tests.support.stage_internals import copies_for_test, decisions_for_test, executed_for_test
from tests.support.tensor_programs import draw_program

STAGE = "sparsejit.sparsify_and_bufferize"
EXTENTS = (5, 4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_decisions_and_copies(name: str, file_regression: FileRegressionFixture) -> None:
    func = PROGRAMS[name]()
    texts = (print_tensor(func), decisions_for_test(func) + "\n", copies_for_test(func) + "\n")
    file_regression.check("\n".join(texts))


@pytest.mark.parametrize("name", PROGRAMS)
def test_copies_keep_the_meaning(name: str) -> None:
    assert executed_for_test(PROGRAMS[name](), (5, 4, 3)) == ""


def test_old_value_that_no_copy_saves_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        decisions_for_test(REFUSED_PROGRAMS["old_value_returned"]())
    assert str(caught.value) == (
        "the old value of an assigned argument is needed after its new value was written\n"
        "  copy the argument before assigning to it\n"
        "  because RaW conflict: read by return#1, conflicting write by %0 dest, "
        "definition param %y"
    )


# ------------------------------------------------------------ switches


def test_function_boundaries_off_makes_parameters_read_only() -> None:
    text = copies_for_test(
        PROGRAMS["insert_and_return_new"](), StageOptions(function_boundaries=False)
    )
    assert "alloc_tensor copy(%t)" in text


def test_without_return_allocs_a_loop_must_yield_its_argument() -> None:
    options = StageOptions(allow_return_allocs=False)
    with pytest.raises(UnsupportedError, match=r"loop %4 yields a new buffer for %0 \(value 0\)"):
        decisions_for_test(PROGRAMS["loop_yields_a_new_buffer"](), options)
    assert "in-place" in decisions_for_test(PROGRAMS["loop_carries_a_tensor"](), options)


def test_without_deallocs_only_escapes_are_marked() -> None:
    text = copies_for_test(
        PROGRAMS["copies_that_stay_and_go"](), StageOptions(create_deallocs=False)
    )
    ends = [line for line in text.splitlines() if line.startswith("  buffer")]
    assert ends == [
        "  buffer %4: escapes, freed by the caller",
        "  buffer %5: not freed",
        "  buffer %2: escapes, freed by the caller",
    ]


@pytest.mark.parametrize(
    "name", ["sparse_allocations", "undefined_contents", "loop_that_surely_runs"]
)
def test_a_memory_space_that_cannot_be_inferred_is_an_error(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"^could not infer memory space"):
        copies_for_test(PROGRAMS[name](), StageOptions(memory_space=None))


def test_a_copy_has_the_memory_space_of_its_source() -> None:
    options = StageOptions(memory_space=None)
    assert "alloc_tensor copy(%t)" in copies_for_test(PROGRAMS["argument_not_assigned"](), options)


# ------------------------------------------------------------ random programs


def _seeded(seed: int) -> TensorFunc:
    return draw_program(random.Random(seed).randrange)


def _wrong(func: TensorFunc) -> str:
    try:
        return executed_for_test(func, EXTENTS)
    except UnsupportedError:
        return ""


@given(st.data())
def test_drawn_programs_keep_their_meaning(data: st.DataObject) -> None:
    func = draw_program(lambda n: data.draw(st.integers(0, n - 1)))
    assert _wrong(func) == "", print_tensor(func)


@pytest.mark.parametrize("part", range(4))
def test_seeded_programs_keep_their_meaning(part: int) -> None:
    for seed in range(part * 250, part * 250 + 250):
        func = _seeded(seed)
        assert _wrong(func) == "", print_tensor(func)


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("_raw_conflicts._can_use_order", lambda *_: True),
        ("_raw_conflicts._is_elementwise", lambda flow, read, write: read.op == write.op),
        ("_raw_conflicts._is_redefined", lambda *_: True),
        ("_raw_conflicts._never_both_run", lambda *_: True),
        ("_raw_conflicts._same_slice", lambda *_: True),
        ("_one_shot_analysis._can_omit_copy", lambda *_: True),
        ("_one_shot_analysis._reached_read_only", lambda *_, **__: ()),
        ("_op_effects._may_not_run", lambda _: False),
    ],
)
def test_the_check_by_running_sees_seeded_faults(
    place: str, fault: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{STAGE}.{place}", fault)
    assert any(_wrong(func) for func in map(_seeded, range(1500)))


@pytest.mark.parametrize("name", ["loop_swaps", "while_swaps"])
def test_the_order_of_a_swap_is_checked_by_running(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the copies before an overwritten loop argument, a swap goes wrong."""
    monkeypatch.setattr(f"{STAGE}._copy_insertion._Inserter._aliases_of", partial(_nothing))
    assert "instead of" in executed_for_test(PROGRAMS[name](), EXTENTS)


def _nothing(_name: str) -> set[str]:
    return set()
