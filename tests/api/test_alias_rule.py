"""When a read argument that overlaps an assigned one may be copied, decided on the tensor IR."""

from collections.abc import Callable

import pytest

from sparsejit.affine import Constant, Dim
from sparsejit.api._aliases import AliasRule
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType

F64 = DType.FLOAT64
ADD = Binary(BinaryOp.ADD, Arg(0), Arg(1))


class Program:
    """A builder with a read parameter ``x`` and an assigned one, ``y``."""

    def __init__(self) -> None:
        self.builder = TensorBuilder("f")
        self.x = self.builder.param("x", ("n",), F64)
        self.y = self.builder.param("y", ("n",), F64, assigned=True)

    def add(self, source: Value, into: Value) -> Value:
        return self.builder.generic([(source, (0,))], (into, (0,)), ADD)

    def copy(self, source: Value) -> Value:
        return self.builder.generic(
            [(source, (0,))], (self.builder.empty(source.type), (0,)), Arg(0)
        )

    def end(self, state: Value, *results: Value) -> AliasRule:
        final = self.builder.materialize(state, self.y)
        return AliasRule.of(self.builder.finish(final, *results))


def read_in_the_assignment(p: Program) -> AliasRule:
    return p.end(p.add(p.x, p.y))


def read_before(p: Program) -> AliasRule:
    return p.end(p.add(p.copy(p.x), p.y))


def read_behind(p: Program) -> AliasRule:
    state = p.add(p.copy(p.y), p.y)
    return p.end(state, p.copy(p.x))


def read_behind_what_becomes_the_argument(p: Program) -> AliasRule:
    made = p.copy(p.y)
    other = p.copy(p.x)
    return p.end(made, other)


def view_read_behind(p: Program) -> AliasRule:
    part = p.builder.extract_slice(p.x, [0], [p.x.type.shape[0]])
    state = p.add(p.y, p.y)
    return p.end(state, p.copy(part))


def reshaped_read_behind(p: Program) -> AliasRule:
    row = p.builder.reshape(p.x, (Constant(1), *p.x.type.shape))
    state = p.add(p.copy(p.y), p.y)
    back = p.builder.reshape(row, p.x.type.shape)
    return p.end(state, p.copy(back))


def view_returned(p: Program) -> AliasRule:
    part = p.builder.extract_slice(p.x, [0], [p.x.type.shape[0]])
    return p.end(p.add(p.y, p.y), part)


def read_and_assigned_in_a_loop(p: Program) -> AliasRule:
    def body(_: Dim, carried: tuple[Value, ...]) -> list[Value]:
        return [p.add(p.x, carried[0])]

    return p.end(*p.builder.for_loop(Constant(0), Dim(0), [p.y], body))


def read_before_a_loop_that_assigns(p: Program) -> AliasRule:
    made = p.copy(p.x)

    def body(_: Dim, carried: tuple[Value, ...]) -> list[Value]:
        return [p.add(made, carried[0])]

    return p.end(*p.builder.for_loop(Constant(0), Dim(0), [p.y], body))


def assigned_in_a_branch_and_read_behind(p: Program) -> AliasRule:
    holds = p.builder.full((), Const(True, DType.BOOL))
    (state,) = p.builder.branch(holds, lambda: [p.add(p.y, p.y)], lambda: [p.y])
    return p.end(state, p.copy(p.x))


def read_in_the_test_of_a_loop(p: Program) -> AliasRule:
    def test(carried: tuple[Value, ...]) -> Value:
        first = p.builder.extract_slice(p.x, [0], [1], dropped=[0])
        less = Binary(BinaryOp.LT, Arg(0), Const(1.0, F64))
        out = p.builder.empty(p.builder.tensor_type((), DType.BOOL))
        return p.builder.generic([(first, ())], (out, ()), less)

    return p.end(*p.builder.while_loop([p.y], test, lambda carried: [p.add(p.y, carried[0])]))


def not_read(p: Program) -> AliasRule:
    return p.end(p.add(p.y, p.y), p.x)


@pytest.mark.parametrize(
    ("program", "is_read", "is_late"),
    [
        (read_in_the_assignment, True, False),
        (read_before, True, False),
        (read_behind, True, True),
        (read_behind_what_becomes_the_argument, True, True),
        (view_read_behind, True, True),
        (reshaped_read_behind, True, True),
        (view_returned, True, True),
        (read_and_assigned_in_a_loop, True, True),
        (read_before_a_loop_that_assigns, True, False),
        (assigned_in_a_branch_and_read_behind, True, True),
        (read_in_the_test_of_a_loop, True, True),
        (not_read, False, False),
    ],
)
def test_the_rule(program: Callable[[Program], AliasRule], is_read: bool, is_late: bool) -> None:
    rule = program(Program())
    assert rule.assigned == (1,)
    assert rule.read == (frozenset({0}) if is_read else frozenset())
    assert rule.late == (frozenset({(0, 1)}) if is_late else frozenset())
