"""Our One-Shot decisions against those of the real `mlir-opt`: named and random programs.

Compared are the verdict on each tensor operand, the equivalent arguments, the read-only values and
the conflicts. Where we deliberately do otherwise, the list below has a minimal program; on random
programs the rules that lead there are switched off, and nothing else may differ.
"""

import random
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from sparsejit.affine import Constant, Dim
from sparsejit.formats import CSR
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.mlir import print_mlir
from sparsejit.ir.tensor import For, Reshape, TensorFunc, Value, While
from sparsejit.ir.walk import all_ops
from sparsejit.sparsify_and_bufferize import StageOptions
from tests.support.buffer_program_parts import FLOAT, double, increment, vector
from tests.support.buffer_programs import PROGRAMS, REFUSED_PROGRAMS
from tests.support.mlir_comparison import REFUSED, differences, our_lines, upstream_lines
from tests.support.mlir_oracle import Reply, analyze, lowers, parses
from tests.support.tensor_programs import draw_program

pytestmark = pytest.mark.mlir

STAGE = "sparsejit.sparsify_and_bufferize"

NOT_LOWERED_BY_UPSTREAM = {
    "arranged_and_changed": "failed to legalize",
    "branch_in_a_loop": "cannot avoid RaW conflict",
    "loop_in_a_loop": "cannot avoid RaW conflict",
    "loop_over_slices": "cannot avoid RaW conflict",
    "loop_reads_the_next_row": "cannot avoid RaW conflict",
    "loop_swaps": "is not equivalent to the corresponding iter bbArg",
    "loop_yields_a_new_buffer": "is not equivalent to the corresponding iter bbArg",
    "loop_yields_the_outside": "is not equivalent to the corresponding iter bbArg",
    "matrix_times_destination_unchecked": "a tensor is left",
    "sparse_argument_assigned": "failed to legalize",
    "while_swaps": "is not equivalent to the corresponding iter bbArg",
    "while_updates": "cannot avoid RaW conflict",
    "while_yields_a_new_buffer": "is not equivalent to the corresponding iter bbArg",
}
"""The named programs that upstream's atomic stage refuses or leaves, and what it says."""


def _seeded(seed: int) -> TensorFunc:
    return draw_program(random.Random(seed).randrange)


@pytest.fixture(scope="module")
def lowered() -> dict[str, Reply]:
    texts = [print_mlir(make()) for make in PROGRAMS.values()]
    return dict(zip(PROGRAMS, lowers(texts), strict=True))


def test_named_programs_parse() -> None:
    replies = parses([print_mlir(make()) for make in PROGRAMS.values()])
    assert [reply.error for reply in replies if reply.output is None] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_named_programs_lower_unless_upstream_refuses(name: str, lowered: dict[str, Reply]) -> None:
    if name in NOT_LOWERED_BY_UPSTREAM:
        assert lowered[name].output is None
        assert NOT_LOWERED_BY_UPSTREAM[name] in lowered[name].error
    else:
        assert lowered[name].error == ""


def test_named_programs_are_decided_alike() -> None:
    funcs = [make() for make in (PROGRAMS | REFUSED_PROGRAMS).values()]
    assert differences(funcs, as_upstream=True) == []


@pytest.mark.parametrize(
    "options",
    [
        StageOptions(),
        StageOptions(function_boundaries=False),
        StageOptions(allow_return_allocs=False),
    ],
    ids=["all", "without function boundaries", "without return allocs"],
)
def test_random_programs_are_decided_alike(options: StageOptions) -> None:
    assert differences([_seeded(seed) for seed in range(300)], options, as_upstream=True) == []


@settings(max_examples=15)
@given(st.data())
def test_drawn_programs_are_decided_alike(data: st.DataObject) -> None:
    funcs = [draw_program(lambda n: data.draw(st.integers(0, n - 1))) for _ in range(4)]
    assert differences(funcs, as_upstream=True) == []


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("_raw_conflicts._can_use_order", lambda *_: True),
        ("_raw_conflicts._is_elementwise", lambda *_: False),
        ("_raw_conflicts._are_matching_subsets", lambda *_: False),
        ("_raw_conflicts._same_slice", lambda *_: True),
        ("_raw_conflicts._is_redefined", lambda *_: False),
        ("_raw_conflicts._never_both_run", lambda *_: False),
        ("_raw_conflicts._is_written_inside", lambda *_: False),
        ("_op_effects._may_not_run", lambda _: False),
    ],
)
def test_the_comparison_sees_seeded_faults(
    place: str, fault: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{STAGE}.{place}", fault)
    assert differences([_seeded(seed) for seed in range(300)], as_upstream=True)


# ------------------------------------------------------------ deliberate differences


def _loop_materialized(b: TensorBuilder) -> tuple[Value, ...]:
    """A loop that updates an argument, stored back into it: upstream finds no legal copy."""
    t, element = vector(b, "t", assigned=True), b.param("element", (), FLOAT)

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        return (b.insert(element, carried[0], [i]),)

    return (b.materialize(b.for_loop(Constant(0), Constant(4), [t], body)[0], t),)


def _loop_with_new_buffer(b: TensorBuilder) -> tuple[Value, ...]:
    """A loop that yields another buffer: upstream returns that one, we copy it back."""
    x, t = vector(b, "x"), vector(b, "t", assigned=True)
    return b.for_loop(Constant(0), Constant(2), [t], lambda i, carried: (x,))


def _old_slice_kept(b: TensorBuilder) -> tuple[Value, ...]:
    """A slice of the old value is wanted after the new one is stored: we copy the slice."""
    x, t = vector(b, "x"), vector(b, "t", assigned=True)
    part = b.extract_slice(t, [0], [2])
    return b.materialize(x, t), increment(b, part)


def _reshaped(b: TensorBuilder) -> tuple[Value, ...]:
    """A reshape is changed while its source is kept: upstream copies the source, ours is new."""
    x = b.param("x", (4,), FLOAT)
    return (increment(b, b.reshape(x, (2, 2))),)


def _sparse_carried(b: TensorBuilder) -> tuple[Value, ...]:
    """A loop changes a sparse tensor: ours is copied before it, whatever else reads it."""
    S = b.param("S", ("m", "m"), FLOAT, CSR)

    def body(i: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        return (double(b, carried[0], b.empty(S.type)),)

    return b.for_loop(Constant(0), Constant(2), [S], body)


DELIBERATE_DIFFERENCES: dict[str, tuple[Callable[[TensorBuilder], tuple[Value, ...]], str]] = {
    "a loop's result lives in the buffer that the loop was given": (
        _loop_with_new_buffer,
        "equivalent 1",
    ),
    "so a loop whose result is stored where it started works in place": (
        _loop_materialized,
        "scf.for true",
    ),
    "memory may be strided, so a reshape is a new tensor": (
        _reshaped,
        "tensor.reshape true true",
    ),
    "a sparse tensor that a loop changes grows in a buffer of its own": (
        _sparse_carried,
        "scf.for true",
    ),
    "a program that a copy can save is not refused": (
        _old_slice_kept,
        "tensor.extract_slice false",
    ),
}


@pytest.mark.parametrize("reason", DELIBERATE_DIFFERENCES)
def test_deliberate_differences(reason: str) -> None:
    make, ours = DELIBERATE_DIFFERENCES[reason]
    builder = TensorBuilder("difference")
    func = builder.finish(*make(builder))
    theirs = upstream_lines(analyze([print_mlir(func)])[0])
    assert ours in our_lines(func)
    assert ours not in theirs
    assert our_lines(func, as_upstream=True) == theirs


def test_there_are_few_deliberate_differences() -> None:
    assert len(DELIBERATE_DIFFERENCES) <= 10


def test_without_loops_our_rules_only_accept_more() -> None:
    """On random programs without loops and reshapes, ours differ only where upstream refuses."""
    for func in map(_seeded, range(300)):
        theirs = our_lines(func, as_upstream=True)
        if any(isinstance(op, For | While | Reshape) for op in all_ops(func.ops)):
            continue
        assert our_lines(func) == theirs or theirs == [REFUSED]
