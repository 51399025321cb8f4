"""What the named programs about buffers are made of: the tables and small operations."""

from collections.abc import Callable

from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import DType

__all__ = [
    "FLOAT",
    "ONE",
    "PROGRAMS",
    "REFUSED_PROGRAMS",
    "ZERO",
    "double",
    "increment",
    "plus",
    "program",
    "refused",
    "times",
    "vector",
]

FLOAT = DType.FLOAT64
ZERO, ONE = Const(0.0, FLOAT), Const(1.0, FLOAT)

PROGRAMS: dict[str, Callable[[], TensorFunc]] = {}
"""Programs that can be saved by copies, by name."""

REFUSED_PROGRAMS: dict[str, Callable[[], TensorFunc]] = {}
"""Programs that no copy can save."""


def program(make: Callable[[TensorBuilder], tuple[Value, ...]]) -> Callable[[], TensorFunc]:
    """Add a program to the table, under the name of its function."""
    name = make.__name__

    def build() -> TensorFunc:
        builder = TensorBuilder(name)
        return builder.finish(*make(builder))

    PROGRAMS[name] = build
    return build


def refused(make: Callable[[TensorBuilder], tuple[Value, ...]]) -> None:
    """Add a program to the table of those that are refused."""
    build = program(make)
    REFUSED_PROGRAMS[make.__name__] = build
    del PROGRAMS[make.__name__]


def plus(lhs: ScalarExpr, rhs: ScalarExpr) -> ScalarExpr:
    return Binary(BinaryOp.ADD, lhs, rhs)


def times(lhs: ScalarExpr, rhs: ScalarExpr) -> ScalarExpr:
    return Binary(BinaryOp.MUL, lhs, rhs)


def vector(builder: TensorBuilder, name: str, *, assigned: bool = False) -> Value:
    return builder.param(name, ("m",), FLOAT, assigned=assigned)


def double(builder: TensorBuilder, x: Value, out: Value) -> Value:
    """`out[i] = x[i] + x[i]`, in any rank."""
    loops = range(out.type.rank)
    return builder.generic([(x, loops)], (out, loops), plus(Arg(0), Arg(0)))


def increment(builder: TensorBuilder, out: Value) -> Value:
    """`out[i] = out[i] + 1`."""
    loops = range(out.type.rank)
    return builder.generic([], (out, loops), plus(Arg(0), ONE))
