"""Which expressions of an inner loop have a vector form: the values of neighboring passes.

In: an expression, and the variables that differ from pass to pass. Out: the bits of the widest
element among the vectors that it takes, or None where there is no such form. Elements are loaded
as vectors where those of neighboring passes lie side by side; where positions are vectors too
(``x[crd[p]]``), each lane loads from a place of its own, if the host is good at that.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._reals import VECTOR_BINARY, VECTOR_UNARY
from sparsejit.ir.loop_walk import all_expressions, expr_dtype
from sparsejit.ir.loops import (
    Binary,
    Call,
    Cast,
    Expr,
    Load,
    Select,
    Store,
    Unary,
    Var,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import INDEX, DType

__all__ = ["Passes", "depends", "has_vectors", "is_row", "is_step"]

_INTEGER_OPS = frozenset(
    (
        BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR,
        BinaryOp.MIN, BinaryOp.MAX, BinaryOp.FMIN, BinaryOp.FMAX, BinaryOp.LT, BinaryOp.LE,
        BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE,
    )
)  # fmt: skip
_GATHERED_BITS = (32, 64)
"""The sizes of elements that hardware gathers."""


def depends(expr: Expr, names: Container[str]) -> bool:
    """Whether an expression uses one of these variables."""
    return any(isinstance(part, Var) and part.name in names for part in all_expressions(expr))


def _loads(expr: Expr, names: Container[str]) -> bool:
    return any(isinstance(part, Load) and depends(part, names) for part in all_expressions(expr))


def has_vectors(op: BinaryOp | UnaryOp, dtype: DType) -> bool:
    """Whether there is an operation of vectors of a dtype."""
    if not _has_elements(dtype):
        return False
    if dtype.is_float:
        return op in VECTOR_UNARY or op in VECTOR_BINARY
    if isinstance(op, UnaryOp):
        return True
    return op in _INTEGER_OPS


def _has_elements(dtype: DType) -> bool:
    return not dtype.is_complex and dtype is dtype.compute


def is_row(access: Load | Store, var: str, names: Container[str]) -> bool:
    """Whether neighboring passes load or store neighbors along the last axis."""
    if not access.indices:
        return False
    *outer, last = access.indices
    return is_step(last, var, names) and not any(depends(index, names) for index in outer)


def is_step(index: Expr, var: str, names: Container[str]) -> bool:
    """Return whether an index is the variable, or as far from it in each pass."""
    match index:
        case Var(name):
            return name == var
        case Binary(BinaryOp.ADD, lhs, rhs, _):
            return any(
                is_step(one, var, names) and not depends(other, names)
                for one, other in ((lhs, rhs), (rhs, lhs))
            )
        case Binary(BinaryOp.SUB, lhs, rhs, _):
            return is_step(lhs, var, names) and not depends(rhs, names)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Passes:
    """Neighboring passes of the loop over ``var``.

    ``units`` are the arrays whose elements lie side by side along the last axis, ``gathers`` says
    whether lanes may load from any place.
    """

    var: str
    units: frozenset[str]
    gathers: bool = False

    def bits(  # noqa: C901 - one case for each kind
        self, expr: Expr, names: Mapping[str, int]
    ) -> int | None:
        """Return the bits of the widest vector in an expression, 0 where it has none.

        ``names`` are the variables that differ between passes, that of the loop among them, with
        the bits of what they are made of.
        """
        if any(isinstance(inner, Call) for inner in all_expressions(expr)):
            return None  # called where it stands, once a pass
        if not depends(expr, names):
            return 0
        dtype = expr_dtype(expr)
        if not _has_elements(dtype):
            return None
        parts: tuple[Expr, ...]
        match expr:
            case Var(name, _):
                return names[name]
            case Load():
                return self._load(expr, names)
            case Unary(op, operand, _):
                if not has_vectors(op, expr_dtype(operand)):
                    return None
                parts = (operand,)
            case Binary(op, lhs, rhs, _):
                if not has_vectors(op, expr_dtype(lhs)):
                    return None
                parts = (lhs, rhs)
            case Cast(operand, _):
                parts = (operand,)
            case Select(condition, then, orelse):
                # Only the chosen side may be loaded; both would be.
                if any(_loads(side, names) for side in (then, orelse)):
                    return None
                parts = (condition, then, orelse)
            case _:
                return None
        found = [self.bits(part, names) for part in parts]
        if None in found:
            return None
        inside = max(bits or 0 for bits in found)
        # Loaded coordinates are widened on the way to an address, which takes no vectors.
        return inside if isinstance(expr, Cast) and dtype is INDEX else max(dtype.bits, inside)

    def is_stored(self, store: Store, names: Container[str]) -> bool:
        """Whether neighboring passes store neighbors, of a dtype that vectors have."""
        memref = store.memref
        is_side_by_side = memref.name in self.units and is_row(store, self.var, names)
        return is_side_by_side and _has_elements(memref.dtype)

    def _load(self, load: Load, names: Mapping[str, int]) -> int | None:
        own = load.memref.dtype.bits
        if is_row(load, self.var, names):
            return own if load.memref.name in self.units else None
        if not self.gathers or own not in _GATHERED_BITS or load.memref.dtype is DType.BOOL:
            return None
        found = [self.bits(index, names) for index in load.indices]
        return None if None in found else max(own, *(bits or 0 for bits in found))
