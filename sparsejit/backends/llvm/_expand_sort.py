"""``Sort`` as loops: a stable radix sort, with as few digits as coordinates and count ask for.

Coordinates are sorted from the least significant to the most, each by its digits. A digit has so
many bits that a table of its values is about as long as there are entries, and no longer than stays
in the cache; only the bits that the largest coordinate has are sorted by, so huge extents cost
nothing. The first pass reads entries as they come, and needs no order before.
"""

from __future__ import annotations

from collections.abc import Callable

from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Dealloc,
    Expr,
    For,
    Let,
    Load,
    Memref,
    Sort,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["sort_loops"]

_LEAST, _MOST = 6, 17
"""The bits of a digit."""


def sort_loops(stmt: Sort, names: Names) -> list[Stmt]:
    """Return the statements that define the order."""
    return _Radix(stmt, names).statements()


class _Radix:
    def __init__(self, stmt: Sort, names: Names) -> None:
        self._stmt = stmt
        self._names = names
        self._other = names.array("sort_other")
        self._starts = names.array("sort_starts")
        self._limit = names.var("limit")
        self._digit = names.var("digit_bits")
        self._shift = names.var("shift")
        self._left = names.var("bits")

    def statements(self) -> list[Stmt]:
        stmt = self._stmt
        if not stmt.coordinates:
            q = self._names.var("q")
            each = Store(stmt.order, (q,), q)
            return [Alloc(stmt.order, (stmt.count,)), For(q, int_(0), stmt.count, (each,))]
        made: list[Stmt] = [
            Alloc(stmt.order, (stmt.count,)),
            Alloc(self._other, (stmt.count,)),
            *self._bits_of(stmt.count, self._limit),
            Assign(self._limit, binary(BinaryOp.MAX, self._limit, int_(_LEAST))),
            Assign(self._limit, binary(BinaryOp.MIN, self._limit, int_(_MOST))),
            Alloc(self._starts, (plus(binary(BinaryOp.SHL, int_(1), self._limit), int_(1)),)),
            *(Let(var, int_(0), mutable=True) for var in (self._digit, self._shift, self._left)),
        ]
        for number, crd in enumerate(reversed(stmt.coordinates)):
            made += self._sort_by(crd, is_first=number == 0)
        return [*made, Dealloc(self._other), Dealloc(self._starts)]

    def _bits_of(self, value: Expr, bits: Var) -> list[Stmt]:
        """Define ``bits``: how many ``value`` has."""
        more = compare(BinaryOp.GT, binary(BinaryOp.SHR, value, bits), int_(0))
        count = While(more, (Assign(bits, plus(bits, int_(1))),))
        return [Let(bits, int_(0), mutable=True), count]

    def _sort_by(self, crd: Memref, *, is_first: bool) -> list[Stmt]:
        """Sort by one coordinate, in digits of equal width."""
        q, largest, bits = (self._names.var(base) for base in ("q", "largest", "bits"))
        passes = self._names.var("passes")
        grow = Assign(largest, binary(BinaryOp.MAX, largest, Load(crd, (q,))))
        rounded = plus(bits, plus(self._limit, int_(-1)))
        made: list[Stmt] = [
            Let(largest, int_(0), mutable=True),
            For(q, int_(0), self._stmt.count, (grow,)),
            *self._bits_of(largest, bits),
            Let(passes, binary(BinaryOp.FLOORDIV, rounded, self._limit), mutable=True),
            Assign(passes, binary(BinaryOp.MAX, passes, int_(1))),
            Assign(
                self._digit,
                binary(BinaryOp.FLOORDIV, plus(bits, plus(passes, int_(-1))), passes),
            ),
            Assign(self._shift, int_(0)),
            Assign(self._left, bits),
        ]
        advance = (
            Assign(self._shift, plus(self._shift, self._digit)),
            Assign(self._left, binary(BinaryOp.SUB, self._left, self._digit)),
        )
        if is_first:
            made += [*self._pass(crd, lambda place: place, self._stmt.order), *advance]
        order, back = self._stmt.order, self._names.var("q")
        again = (
            *self._pass(crd, lambda place: Load(order, (place,)), self._other),
            For(back, int_(0), self._stmt.count, (_copied(order, self._other, back),)),
            *advance,
        )
        return [*made, While(compare(BinaryOp.GT, self._left, int_(0)), again)]

    def _pass(
        self, crd: Memref, entry_at: Callable[[Var], Expr], target: Memref
    ) -> tuple[Stmt, ...]:
        """Put the entries in ``target``, in the order of one digit."""
        names, starts, count = self._names, self._starts, self._stmt.count
        clear, q, b, place = (names.var(base) for base in ("b", "q", "b", "q"))
        size = binary(BinaryOp.SHL, int_(1), self._digit)
        buckets, entry, bucket, slot = (names.var(n) for n in ("buckets", "entry", "digit", "slot"))

        def digit_of(place: Expr) -> Expr:
            moved = binary(BinaryOp.SHR, Load(crd, (place,)), self._shift)
            return binary(BinaryOp.AND, moved, plus(buckets, int_(-1)))

        tally = Store(starts, (plus(digit_of(entry_at(q)), int_(1)),), int_(1), BinaryOp.ADD)
        total = Store(starts, (plus(b, int_(1)),), Load(starts, (b,)), BinaryOp.ADD)
        put = (
            Let(entry, entry_at(place)),
            Let(bucket, digit_of(entry)),
            Let(slot, Load(starts, (bucket,))),
            Store(target, (slot,), entry),
            Store(starts, (bucket,), plus(slot, int_(1))),
        )
        return (
            Let(buckets, size),
            For(clear, int_(0), plus(buckets, int_(1)), (Store(starts, (clear,), int_(0)),)),
            For(q, int_(0), count, (tally,)),
            For(b, int_(0), buckets, (total,)),
            For(place, int_(0), count, put),
        )


def _copied(target: Memref, source: Memref, place: Var) -> Stmt:
    return Store(target, (place,), Load(source, (place,)))
