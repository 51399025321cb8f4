"""Products of dense matrices by BLAS, where the matrices suit it and are large enough.

Generated code asks at run time whether the strides are those of a matrix with a
leading dimension, and takes its own loops otherwise. BLAS stores columns: a product with a result
by rows is the transposed product, ``C.T = B.T @ A.T``.
"""

from __future__ import annotations

from collections.abc import Callable

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._arrays import Array, element_size
from sparsejit.backends.llvm._text import Builder, Callee, Value, integer
from sparsejit.backends.llvm._types import real
from sparsejit.ir.device_statements import DenseMatrix
from sparsejit.ir.types import DType

__all__ = ["BLAS_SYMBOLS", "Product"]

_FUNCTIONS = {DType.FLOAT32: "sgemm", DType.FLOAT64: "dgemm"}
_PREFIX = "sparsejit_blas_"
BLAS_SYMBOLS = {_PREFIX + name: name for name in _FUNCTIONS.values()}
"""The symbols by which generated code calls BLAS, with the functions' own names."""

_LEAST_WORK = 32.0**3
"""Multiplications below which the loops are faster than a call of BLAS."""

_LARGEST = 2**31 - 1
"""The integers of SciPy's BLAS have 32 bits."""


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix in generated code: its address, extents, and strides in bytes."""

    data: Value
    rows: Value
    columns: Value
    down: Value
    across: Value

    @staticmethod
    def of(b: Builder, operand: DenseMatrix, array: Array) -> _Matrix:
        axes = (1, 0) if operand.is_transposed else (0, 1)
        extents = [array.extent(b, axis) for axis in axes]
        strides = [array.stride(b, axis) for axis in axes]
        return _Matrix(array.data(b), extents[0], extents[1], strides[0], strides[1])


@dataclass(frozen=True, slots=True)
class _Order:
    """How a matrix lies: whether by rows, whether BLAS can have it, its leading dimension."""

    is_by_rows: Value
    is_usable: Value
    leading: Value


class Product:
    """``result += alpha * left @ right`` in generated code."""

    def __init__(self, b: Builder, dtype: DType) -> None:
        self._b = b
        self._name = _FUNCTIONS[dtype]
        self._kind = "double" if dtype is DType.FLOAT64 else "float"

    def write(
        self,
        matrices: tuple[tuple[DenseMatrix, Array], ...],
        alpha: Value,
        otherwise: Callable[[], None],
    ) -> None:
        """Write the product of the first two matrices onto the third."""
        b = self._b
        left, right, result = (_Matrix.of(b, operand, array) for operand, array in matrices)
        size = element_size(matrices[0][1].memref)
        orders = [self._order(matrix, size) for matrix in (left, right, result)]
        extents = (result.rows, result.columns, left.columns)
        usable = self._is_large(extents)
        for order in orders:
            usable = b.op("and", usable, order.is_usable)
        call, loops, end = b.new_block("blas"), b.new_block("loops"), b.new_block("product")
        b.branch_if(usable, call, loops)
        b.place(call)
        self._call((left, right, result), orders, extents, alpha)
        b.branch(end)
        b.place(loops)
        otherwise()
        b.branch(end)
        b.place(end)

    def _order(self, matrix: _Matrix, size: int) -> _Order:
        b = self._b
        element, mask = integer(size), integer(size - 1)

        def fits(step: Value, leading: Value, count: Value) -> Value:
            covers = b.compare("sge", leading, b.mul(count, element))
            return b.op("and", b.compare("eq", step, element), covers)

        by_rows = fits(matrix.across, matrix.down, matrix.columns)
        by_columns = fits(matrix.down, matrix.across, matrix.rows)
        distance = b.select(by_rows, matrix.down, matrix.across)
        address = b.cast("ptrtoint", matrix.data, "i64")
        places = b.op("or", address, distance)
        aligned = b.compare("eq", b.op("and", places, mask), integer(0))
        leading = b.op("sdiv", distance, element)
        small = b.compare("sle", leading, integer(_LARGEST))
        usable = b.op("and", b.op("or", by_rows, by_columns), b.op("and", aligned, small))
        return _Order(by_rows, usable, leading)

    def _is_large(self, extents: tuple[Value, ...]) -> Value:
        b = self._b
        work = real(1.0, "double")
        fits = integer(1, "i1")
        for extent in extents:
            work = b.op("fmul", work, b.cast("sitofp", extent, "double"))
            fits = b.op("and", fits, b.compare("sle", extent, integer(_LARGEST)))
        return b.op("and", fits, b.compare("oge", work, real(_LEAST_WORK, "double")))

    def _call(
        self,
        matrices: tuple[_Matrix, _Matrix, _Matrix],
        orders: list[_Order],
        extents: tuple[Value, ...],
        alpha: Value,
    ) -> None:
        """Call with the factors in order for a result by columns, exchanged for one by rows."""
        b = self._b
        rows, columns, inner = extents
        by_rows = orders[2].is_by_rows
        sizes = (b.select(by_rows, columns, rows), b.select(by_rows, rows, columns), inner)
        numbers = [self._in_slot(b.cast("trunc", size, "i32"), "i32", 4) for size in sizes]
        factors = []
        for straight, turned in ((0, 1), (1, 0)):
            data = b.select(by_rows, matrices[turned].data, matrices[straight].data)
            leading = b.select(by_rows, orders[turned].leading, orders[straight].leading)
            lies = b.select(by_rows, orders[turned].is_by_rows, orders[straight].is_by_rows)
            same = b.compare("eq", lies, by_rows)
            letter = b.select(same, integer(ord("N"), "i8"), integer(ord("T"), "i8"))
            factors.append((letter, data, leading))
        align = 8 if self._kind == "double" else 4
        scale = self._in_slot(alpha, self._kind, align)
        one = self._in_slot(real(1.0, self._kind), self._kind, align)
        letters = [self._in_slot(letter, "i8", 1) for letter, _, _ in factors]
        first, second = (
            (data, self._in_slot(b.cast("trunc", leading, "i32"), "i32", 4))
            for _, data, leading in factors
        )
        end = self._in_slot(b.cast("trunc", orders[2].leading, "i32"), "i32", 4)
        operands = [*letters, *numbers, scale, *first, *second, one, matrices[2].data, end]
        b.call(self._callee(), operands)

    def _in_slot(self, value: Value, kind: str, align: int) -> Value:
        slot = self._b.slot(kind)
        self._b.store(value, slot, align)
        return slot

    def _callee(self) -> Callee:
        return self._b.module.declare(_PREFIX + self._name, "void", ["ptr"] * 13)
