"""Level iterators: what can be asked of a level, whatever its type.

A ``Cursor`` says how far an operand's levels are resolved; ``bounds`` gives the positions of the
next level's children, ``coordinate`` what one of them stores, ``locate`` the child with a given
coordinate. Nobody outside this file asks what kind a level is; a new kind is one more ``case``.
Source: TACO's level functions (coordinate value iteration, position iteration, locate).
"""

from __future__ import annotations

from typing import assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.affine import as_linear
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
    ``position .. end - 1``; otherwise ``end`` is None. ``batch`` has the coordinates of the batch
    levels: each batch has arrays of its own, the leading dimensions of the memrefs.
    """

    level: int
    position: loops.Expr
    end: loops.Expr | None = None
    batch: tuple[loops.Expr, ...] = ()

    def at(self, *indices: loops.Expr) -> tuple[loops.Expr, ...]:
        """Return the indices of an element of one of the batch's arrays."""
        return (*self.batch, *indices)


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
    def may_start_below_zero(self) -> bool:
        """Whether the level stores differences of coordinates, as that of diagonals does."""
        linear = as_linear(self.buffer.format.levels[self.number].expr)
        return linear is not None and any(factor < 0 for factor in linear[0].values())

    @property
    def is_ordered(self) -> bool:
        """Whether coordinates come in increasing order, so that the level can co-iterate."""
        return not self.type.nonordered

    @property
    def is_searchable(self) -> bool:
        """Whether a coordinate is found among its siblings without looking at all of them."""
        return self.is_ordered and not self.type.nonunique

    def bounds(self, cursor: Cursor) -> tuple[loops.Expr, loops.Expr]:
        """Return the first position of the children of ``cursor`` and the one after the last."""
        kind = self.type.kind
        parent = cursor.position
        match kind:
            case LevelKind.COMPRESSED:
                self._single(cursor)
                after = ix.add(parent, ix.index(1))
                return self._position(cursor.at(parent)), self._position(cursor.at(after))
            case LevelKind.LOOSE_COMPRESSED:
                self._single(cursor)
                pair = (cursor.at(parent, ix.index(column)) for column in (0, 1))
                lower, upper = (self._position(at) for at in pair)
                return lower, upper
            case LevelKind.SINGLETON:
                return parent, cursor.end or ix.add(parent, ix.index(1))
            case LevelKind.STRUCTURED:
                self._single(cursor)
                slots = ix.index(self.type.size[0])
                first = ix.multiply(parent, slots)
                return first, ix.add(first, slots)
            case LevelKind.PADDED:
                self._single(cursor)
                slots = ix.index(self.type.size[0])
                first = ix.multiply(parent, slots)
                return first, self._used(cursor, first, ix.add(first, slots))
            case LevelKind.DENSE | LevelKind.BATCH | LevelKind.RANGE:
                raise AssertionError("a full level is located, never iterated")
            case _:
                assert_never(kind)

    def first_slot(self, parent: loops.Expr) -> loops.Expr | None:
        """Return the first slot of the children of ``parent`` and of all parents after it.

        ``parent`` may be the one after the last. None where there are gaps between the children of
        one and the next, or each batch has slots of its own.
        """
        match self.type.kind:
            case LevelKind.COMPRESSED:
                return self._position((parent,))
            case LevelKind.SINGLETON:
                return parent
            case LevelKind.DENSE | LevelKind.RANGE:
                return ix.multiply(parent, self.size)
            case LevelKind.STRUCTURED | LevelKind.PADDED:
                return ix.multiply(parent, ix.index(self.type.size[0]))
            case LevelKind.LOOSE_COMPRESSED | LevelKind.BATCH:
                return None
            case _:
                assert_never(self.type.kind)

    def _used(self, cursor: Cursor, first: loops.Expr, last: loops.Expr) -> loops.Expr:
        """The end of the used slots of a padded level: unused ones, with -1, come last."""
        memref, _ = coordinates_of(self.buffer, self.number)
        if cursor.batch:
            raise self._unsupported("iterate over a batch of")
        free = loops.Search(memref, first, last, ix.index(-1), ordered=False)
        return loops.Select(ix.less(free, ix.index(0)), last, free)

    def coordinate(self, position: loops.Expr, cursor: Cursor) -> loops.Expr:
        """Return the coordinate stored at ``position``, a child of ``cursor``."""
        memref, column = coordinates_of(self.buffer, self.number)
        at = cursor.at(position) if column is None else cursor.at(position, ix.index(column))
        return ix.as_index(loops.Load(memref, at))

    def locate_full(self, cursor: Cursor, coordinate: loops.Expr) -> Cursor:
        """Return the cursor at ``coordinate`` of a level where every coordinate has a slot."""
        self._single(cursor)
        if self.type.kind is LevelKind.BATCH:
            return Cursor(self.number + 1, cursor.position, None, (*cursor.batch, coordinate))
        slot = ix.add(ix.multiply(cursor.position, self.size), coordinate)
        return self.child(cursor, slot)

    def locate(
        self, cursor: Cursor, coordinate: loops.Expr, *, is_inside: bool = False
    ) -> loops.Expr:
        """Return the position of ``coordinate`` among the children of ``cursor``, or -1.

        ``is_inside``: the coordinate is one of the level's extent.
        """
        if self.type.nonunique:
            raise UnsupportedError(
                f"{self.name} would have to be searched, but level {self.number} of its format "
                "stores a coordinate more than once",
                hint="convert it to a format with unique levels, for example CSR",
            )
        if cursor.batch:
            raise self._unsupported("search a batch of")
        lower, upper = self.bounds(cursor)
        memref, column = coordinates_of(self.buffer, self.number)
        extent = self.size if is_inside else None
        return loops.Search(memref, lower, upper, coordinate, self.is_ordered, column, extent)

    def child(self, cursor: Cursor, position: loops.Expr, end: loops.Expr | None = None) -> Cursor:
        """Return the cursor after this level was resolved at ``position`` (``.. end - 1``)."""
        return Cursor(self.number + 1, position, end, cursor.batch)

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
            f"cannot {what} {self.type} levels (level {self.number} of {self.name})",
            hint="convert the operand to a format without batch levels, for example CSF",
        )
