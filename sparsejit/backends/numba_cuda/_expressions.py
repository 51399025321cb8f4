"""Loop expressions in a kernel: elements behind pointers, and NumPy's words for numbers.

A bool lies in memory as a byte, a 16-bit float as its bits. A result of float32 is narrowed where a
function of the device gives it as float64.
"""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.backends._expressions import ExpressionWriter
from sparsejit.backends._layout import Atom, Call, Index, Infix, Node
from sparsejit.backends.numba_cuda._memory import Memory
from sparsejit.ir.loop_walk import expr_dtype
from sparsejit.ir.loop_writing import int_
from sparsejit.ir.loops import Binary, DimOf, Expr, Memref, Search, Unary
from sparsejit.ir.ops import UnaryOp
from sparsejit.ir.types import DType

__all__ = ["KernelExpressions"]

_OF_COMPLEX = {
    UnaryOp.ABS: "complex_absolute",
    UnaryOp.CONJ: "complex_conjugate",
    UnaryOp.ISNAN: "complex_isnan",
    UnaryOp.ISINF: "complex_isinf",
    UnaryOp.ISFINITE: "complex_isfinite",
}


@dataclass(frozen=True, slots=True)
class KernelExpressions(ExpressionWriter):
    """Writes expressions of a kernel with this ``memory``."""

    memory: Memory

    def expression(self, expr: Expr) -> Node:
        """Return ``expr`` as a Python expression; a weak one may be a plain Python number."""
        match expr:
            case Unary(op, operand, dtype) if op in _OF_COMPLEX and expr_dtype(operand).is_complex:
                node: Node = Call(_OF_COMPLEX[op], (self.typed(operand),))
                return Call(dtype.value, (node,)) if dtype.bits in (32, 64) else node
            case _:
                node = ExpressionWriter.expression(self, expr)
        match expr, node:
            case ((Unary() | Binary()), Call(function, _)) if expr.dtype is DType.FLOAT32:
                return node if function == "float32" else Call("float32", (node,))
            case _:
                return node

    def element(self, memref: Memref, indices: tuple[Expr, ...]) -> Node:
        """Return ``memref[indices]`` as a value."""
        place = self.place(memref, indices)
        return Infix("!=", place, Atom("0")) if memref.dtype is DType.BOOL else place

    def place(self, memref: Memref, indices: tuple[Expr, ...]) -> Index:
        """Return ``pointer[offset]``."""
        pointer, offset = self.address(memref, indices)
        return Index(pointer, (offset,))

    def address(self, memref: Memref, indices: tuple[Expr, ...]) -> tuple[str, Node]:
        """Return the pointer and the offset of an element."""
        place = self.memory.places[memref.name]
        return self.names[place.pointer.name], self.expression(place.offset(indices))

    def extent(self, memref: Memref, axis: int) -> Node:
        """Return an extent, which is a parameter or known from one."""
        extent = self.memory.places[memref.name].extents[axis]
        assert not isinstance(extent, DimOf), f"the extent of {memref.name} is a parameter"
        return self.expression(extent)

    def search(self, expr: Search) -> Node:
        """Return a call of a search behind a pointer."""
        place = self.memory.places[expr.coordinates.name]
        column = () if expr.column is None else (int_(expr.column),)
        start = place.offset((int_(0), *column))
        stride = place.strides[0]
        pointer = Atom(self.names[place.pointer.name])
        bounds = tuple(map(self.typed, (expr.lower, expr.upper, expr.key)))
        order = "" if expr.ordered else "_unordered"
        if start == int_(0) and stride == int_(1):
            return Call(f"search{order}", (pointer, *bounds))
        where = (self.typed(start), self.typed(stride))
        return Call(f"search_column{order}", (pointer, *where, *bounds))
