"""Short spellings for loop IR that passes and backends write, and names that are not taken."""

from __future__ import annotations

from collections.abc import Iterable

from sparsejit.ir.device_statements import ReadBack
from sparsejit.ir.loop_walk import all_statements, memrefs_defined
from sparsejit.ir.loops import Binary, Cast, Expr, For, Let, Lit, Load, LoopFunc, Memref, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["Names", "as_dtype", "as_index", "binary", "compare", "int_", "plus", "times"]


class Names:
    """Hands out names of variables and arrays that a function does not have, in order.

    >>> names = Names({"i"})
    >>> names.fresh("i"), names.fresh("i"), names.fork().fresh("i"), names.fresh("i")
    ('i_2', 'i_3', 'i_4', 'i_4')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    @staticmethod
    def of(func: LoopFunc) -> Names:
        """Return the free names of a function."""
        taken = {param.name for param in func.params}
        for stmt in all_statements(func.body):
            taken.update(memref.name for memref in memrefs_defined(stmt))
            if isinstance(stmt, Let | For | ReadBack):
                taken.add(stmt.var.name)
        return Names(taken)

    def fresh(self, base: str) -> str:
        """Return a name that nothing has yet."""
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def fork(self) -> Names:
        """Return an independent copy, for an attempt that may be thrown away."""
        return Names(self._taken)

    def var(self, base: str, dtype: DType = INDEX) -> Var:
        """Return a new variable."""
        return Var(self.fresh(base), dtype)

    def array(self, base: str, dtype: DType = INDEX) -> Memref:
        """Return a new array of rank 1."""
        return Memref(self.fresh(base), dtype, 1)


def int_(value: int) -> Lit:
    """Return an index constant."""
    return Lit(Const(value, INDEX))


def binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    """Return an operation of indices."""
    return Binary(op, lhs, rhs, INDEX)


def plus(lhs: Expr, rhs: Expr) -> Expr:
    """Return a sum of indices."""
    return binary(BinaryOp.ADD, lhs, rhs)


def times(lhs: Expr, rhs: Expr) -> Expr:
    """Return a product of indices."""
    return binary(BinaryOp.MUL, lhs, rhs)


def compare(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    """Return a comparison, or an operation of bools."""
    return Binary(op, lhs, rhs, DType.BOOL)


def as_index(memref: Memref, at: Expr) -> Expr:
    """Return an element of an array of rank 1 as an index."""
    value = Load(memref, (at,))
    return value if memref.dtype is INDEX else Cast(value, INDEX)


def as_dtype(value: Expr, dtype: DType) -> Expr:
    """Return an index as an element of another type."""
    return value if dtype is INDEX else Cast(value, dtype)
