"""A tensor function while it is built: parameters, symbols, names of values, and open blocks.

``TensorBuilder`` adds the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsejit.affine import AffineExpr, Constant, Dim
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import zero_of
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Op, Value
from sparsejit.ir.types import DType, TensorType

__all__ = ["FIRST_INDUCTION", "FunctionState"]

FIRST_INDUCTION = 1 << 20
"""Induction variables are numbered from here while extents may still be added."""


class FunctionState:
    """What is known of a function so far; block 0 is the function's own, the last one is open."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._params: list[Value] = []
        self._assigned: list[Value] = []
        self._extents: list[str] = []
        self._inductions: list[str] = []
        self._names = 0
        self._blocks: list[list[Op]] = [[]]

    # ------------------------------------------------------------ symbols and values

    def extent(self, name: str | None = None) -> Dim:
        """Return the extent symbol ``name``, a new one where there is none; None takes ``d<n>``."""
        wanted = name if name is not None else f"d{len(self._extents)}"
        if wanted not in self._extents:
            self._extents.append(wanted)
        return Dim(self._extents.index(wanted))

    def symbol_names(self) -> dict[int, str]:
        """Return the names of the symbols so far, by the numbers they have while building."""
        names = dict(enumerate(self._extents))
        names.update(enumerate(self._inductions, FIRST_INDUCTION))
        return names

    def _shape(self, shape: Sequence[AffineExpr | str | int]) -> tuple[AffineExpr, ...]:
        made: list[AffineExpr] = []
        for extent in shape:
            match extent:
                case str():
                    made.append(self.extent(extent))
                case int():
                    made.append(Constant(extent))
                case _:
                    made.append(extent)
        return tuple(made)

    def tensor_type(
        self,
        shape: Sequence[AffineExpr | str | int],
        dtype: DType,
        format: Format | None = None,
        fill: Const | None = None,
    ) -> TensorType:
        """Return a type; a string in ``shape`` is the extent symbol of that name, an int itself.

        ``format`` None is dense, ``fill`` None is zero.
        """
        layout = Dense(len(shape)) if format is None else format
        return TensorType(self._shape(shape), dtype, layout, fill or zero_of(dtype))

    def value(self, kind: TensorType) -> Value:
        """Return a new value of a type, with the next free name."""
        taken = {param.name for param in self._params}
        while str(self._names) in taken:
            self._names += 1
        self._names += 1
        return Value(str(self._names - 1), kind)

    def param(
        self,
        name: str,
        shape: Sequence[AffineExpr | str | int],
        dtype: DType,
        format: Format | None = None,
        fill: Const | None = None,
        *,
        assigned: bool = False,
    ) -> Value:
        """Add a parameter; ``assigned`` says that the function may write it.

        ``shape``, ``format`` and ``fill`` are those of ``tensor_type``.
        """
        made = Value(name, self.tensor_type(shape, dtype, format, fill))
        self._params.append(made)
        if assigned:
            self._assigned.append(made)
        return made

    def assign(self, param: Value) -> None:
        """Declare that the function may write a parameter."""
        if param not in self._assigned:
            self._assigned.append(param)

    # ------------------------------------------------------------ blocks

    def append(self, op: Op) -> None:
        """Append an operation whose results come from ``value``."""
        self._blocks[-1].append(op)

    def _block(
        self, make: Callable[[], Sequence[Value]]
    ) -> tuple[tuple[Op, ...], tuple[Value, ...]]:
        """Return the operations that ``make`` appends, as a block, and the values it returns."""
        self._blocks.append([])
        try:
            taken = tuple(make())
        finally:
            ops = tuple(self._blocks.pop())
        return ops, taken
