"""Level iterators: what can be asked of a level, whatever its type.

A ``Cursor`` says how far an operand's levels are resolved; ``bounds`` gives the positions of the
next level's children, ``coordinate`` what one of them stores, ``locate`` the child with a given
coordinate. Nobody outside this file asks what kind a level is; a new kind is one more ``case``.
Source: TACO's level functions (coordinate value iteration, position iteration, locate).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind, LevelType
from sparsejit.ir import loops
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import SparseBuffer, coordinates_of

__all__ = ["Cursor", "LevelIterator"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """``level`` is the next level to resolve; ``position`` that of the last resolved one.

    Where a nonunique level was resolved its entries of one coordinate are the positions
    ``position .. end - 1``; otherwise ``end`` is None.
    """

    level: int
    position: loops.Expr
    end: loops.Expr | None = None


@dataclass(frozen=True, slots=True)
class LevelIterator:
    """Level ``number`` of an operand stored in ``buffer``; ``size`` is the level's extent."""

    name: str
    buffer: SparseBuffer
    number: int
    type: LevelType
    size: loops.Expr

    @property
    def position_name(self) -> str:
        """The base of the names of variables that hold positions of this level."""
        return f"p{self.number}_{self.name}"

    @property
    def is_iterable(self) -> bool:
        """Whether the level stores coordinates to walk over, rather than having all of them."""
        return self.type.has_coordinates

    @property
    def is_ordered(self) -> bool:
        """Whether coordinates come in increasing order, so that the level can co-iterate."""
        return not self.type.nonordered

    def bounds(self, cursor: Cursor) -> tuple[loops.Expr, loops.Expr]:
        """Return the first position of the children of ``cursor`` and the one after the last."""
        kind = self.type.kind
        parent = cursor.position
        match kind:
            case LevelKind.COMPRESSED:
                self._single(cursor)
                return self._position((parent,)), self._position((ix.add(parent, ix.index(1)),))
            case LevelKind.LOOSE_COMPRESSED:
                self._single(cursor)
                return self._position((parent, ix.index(0))), self._position((parent, ix.index(1)))
            case LevelKind.SINGLETON:
                return parent, cursor.end or ix.add(parent, ix.index(1))
            case LevelKind.STRUCTURED:
                self._single(cursor)
                slots = ix.index(self.type.size[0])
                first = ix.multiply(parent, slots)
                return first, ix.add(first, slots)
            case LevelKind.DENSE | LevelKind.BATCH | LevelKind.RANGE | LevelKind.PADDED:
                raise self._unsupported("iterate")
            case _:
                assert_never(kind)

    def coordinate(self, position: loops.Expr) -> loops.Expr:
        """Return the coordinate stored at ``position``."""
        memref, column = coordinates_of(self.buffer, self.number)
        at = (position,) if column is None else (position, ix.index(column))
        return ix.as_index(loops.Load(memref, at))

    def locate_full(self, cursor: Cursor, coordinate: loops.Expr) -> loops.Expr:
        """Return the position of ``coordinate`` in a level where every coordinate has one."""
        self._single(cursor)
        if self.type.kind is not LevelKind.DENSE:
            raise self._unsupported("locate")
        return ix.add(ix.multiply(cursor.position, self.size), coordinate)

    def locate(self, cursor: Cursor, coordinate: loops.Expr) -> loops.Expr:
        """Return the position of ``coordinate`` among the children of ``cursor``, or -1."""
        if self.type.nonunique:
            raise UnsupportedError(
                f"{self.name} would have to be searched, but level {self.number} of its format "
                "stores a coordinate more than once",
                hint="convert it to a format with unique levels, for example CSR",
            )
        lower, upper = self.bounds(cursor)
        memref, column = coordinates_of(self.buffer, self.number)
        return loops.Search(memref, lower, upper, coordinate, self.is_ordered, column)

    def child(self, position: loops.Expr, end: loops.Expr | None = None) -> Cursor:
        """Return the cursor after this level was resolved at ``position`` (``.. end - 1``)."""
        return Cursor(self.number + 1, position, end)

    def _position(self, at: tuple[loops.Expr, ...]) -> loops.Expr:
        memref = self.buffer.positions[self.number]
        assert memref is not None
        return ix.as_index(loops.Load(memref, at))

    def _single(self, cursor: Cursor) -> None:
        if cursor.end is not None:
            raise UnsupportedError(
                f"level {self.number} of {self.name} ({self.type}) under a nonunique level",
                hint="only singleton levels may follow a nonunique one",
            )

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"cannot {what} level {self.number} of {self.name}: kernels over {self.type} levels "
            "are not generated yet",
            hint="convert the operand, for example to CSR",
        )
