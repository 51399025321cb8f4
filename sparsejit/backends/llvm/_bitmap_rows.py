"""Lowering: what a row meets is noted as bits of words, and comes in order without a sort.

In: rows collected in a dense workspace: ``if stamps[j] == stamp { sums[j] += x } else { stamps[j] =
stamp; sums[j] = x; push met[number] = j; number = number + 1 }``, then ``sort met`` and a loop over
it. Out: bit ``j`` of a bitmap instead of the stamp, and a list of the words touched instead of one
of the coordinates. The list is shorter, and known without a branch; few words are sorted, many come
in order from a bitmap of the words (``summary``). Bits of a word are in order by themselves. The
bitmap has a 64th of the stamps' size, so it stays in the nearest cache. What is added to what, in
which order, is as before. Source: Gustavson's accumulator; the bitmaps are those of SuiteSparse's
and Kokkos' accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_uses import variables
from sparsejit.ir.loop_walk import all_statements, expressions, map_body, memrefs
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Cast,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Push,
    SortPrefix,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["note_rows_in_bitmaps"]

_WORD = DType.UINT64
_FEW = 12
"""As many words are sorted by insertion rather than by a bitmap of their own."""
_ZERO = Const(0, _WORD)


def note_rows_in_bitmaps(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with bitmaps in the workspaces of rows."""
    names = Names.of(func)
    body = func.body
    for rows in list(_rows(func)):
        changed = map_body(body, change_stmt=_Bitmap(rows, names).change)
        body = body if _mentions(changed, rows) else changed
    return replace(func, body=body)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A workspace as it was: ``stamps[j] == stamp`` where ``met[.. number]`` has ``j``."""

    stamps: Memref
    stamp: Var
    met: Memref
    number: Var


def _rows(func: LoopFunc) -> Iterator[_Rows]:
    """Find the workspaces that are sorted."""
    statements = list(all_statements(func.body))
    for stmt in statements:
        match stmt:
            case SortPrefix(met, Var() as number):
                found = {_rows_of(other, met, number) for other in statements} - {None}
                if len(found) == 1:
                    yield from (rows for rows in found if rows is not None)
            case _:
                pass


def _rows_of(stmt: Stmt, met: Memref, number: Var) -> _Rows | None:
    match stmt:
        case If(Binary(BinaryOp.EQ, Load(stamps), Var() as stamp)) if any(
            isinstance(inner, Push) and inner.memref == met for inner in stmt.orelse
        ):
            return _Rows(stamps, stamp, met, number)
        case _:
            return None


def _mentions(body: Sequence[Stmt], rows: _Rows) -> bool:
    """Whether something of the old workspace is left, which was used in another way."""
    gone = {rows.stamps.name, rows.met.name, rows.stamp.name}
    for stmt in all_statements(body):
        if gone & {memref.name for memref in memrefs(stmt)}:
            return True
        if isinstance(stmt, Let | Assign) and stmt.var.name in gone:
            return True
        if any(gone & variables(outer).keys() for outer in expressions(stmt)):
            return True
    return False


class _Bitmap:
    """One workspace with a bitmap, statement by statement."""

    def __init__(self, rows: _Rows, names: Names) -> None:
        self._old = rows
        self._names = names
        base = rows.met.name
        self._bits = names.array(f"{base}_bits", _WORD)
        self._words = names.array(f"{base}_words")
        self._summary = names.array(f"{base}_summary", _WORD)
        self._touched = names.var(f"{rows.number.name}_words")
        self._count = names.var(f"{base}_size")

    def change(self, stmt: Stmt) -> Iterable[Stmt]:  # noqa: C901 - one case for each kind
        """Return what stands in the place of a statement."""
        old = self._old
        match stmt:
            case Alloc(memref, (extent,)) if memref == old.stamps:
                return self._made(extent)
            case Alloc(memref) if memref == old.met:
                return ()
            case Dealloc(memref) if memref == old.stamps:
                return (Dealloc(self._bits), Dealloc(self._words), Dealloc(self._summary))
            case Dealloc(memref) if memref == old.met:
                return ()
            case Let(var) if var == old.stamp:
                return (Let(self._touched, int_(0), mutable=True),)
            case Assign(var) if var == old.stamp:
                return self._cleared()
            case If(Binary(BinaryOp.EQ, Load(memref, (Var() as j,)), var)) if (
                memref == old.stamps and var == old.stamp
            ):
                return self._noted(stmt, j)
            case SortPrefix(memref) if memref == old.met:
                return self._sorted()
            case For(q, _, _, (Let(c, Load(memref, (place,))), *rest)) if (
                memref == old.met and place == q
            ):
                return self._swept(stmt, c, tuple(rest))
            case For() if stmt.private:
                return (replace(stmt, private=tuple(self._private(stmt))),)
            case _:
                return (stmt,)

    def _private(self, loop: For) -> Iterator[Var | Memref]:
        old = self._old
        sorts = any(w == old.met for w in loop.private)
        for what in loop.private:
            if what == old.stamps:
                yield from (self._bits, self._words)
                yield from (self._summary,) * sorts
            elif what == old.stamp:
                yield self._touched
            elif what != old.met:
                yield what

    def _made(self, extent: Expr) -> Iterable[Stmt]:
        count = self._count
        return (
            Let(count, _words_of(extent)),
            Alloc(self._bits, (count,), _ZERO),
            Alloc(self._words, (plus(count, int_(1)),)),  # one more than there are may be written
            Alloc(self._summary, (_words_of(count),), _ZERO),
        )

    def _cleared(self) -> Iterable[Stmt]:
        """Forget the row before."""
        t = self._names.var("t")
        clear = Store(self._bits, (Load(self._words, (t,)),), Lit(_ZERO))
        return For(t, int_(0), self._touched, (clear,)), Assign(self._touched, int_(0))

    def _noted(self, stmt: If, j: Var) -> Iterable[Stmt]:
        """Note ``j``, and what is to be done where it is new, or is not."""
        word, before = self._names.var("word"), self._names.var("before", _WORD)
        bit = self._names.var("bit", _WORD)
        is_new = compare(BinaryOp.EQ, _of_words(BinaryOp.AND, before, bit), Lit(_ZERO))
        is_first = compare(BinaryOp.EQ, before, Lit(_ZERO))
        counted = plus(self._old.number, Cast(is_new, INDEX))
        yield from (
            Let(word, binary(BinaryOp.SHR, j, int_(6))),
            Let(bit, _bit_of(j)),
            Let(before, Load(self._bits, (word,))),
            Store(self._words, (self._touched,), word),
            Assign(self._touched, plus(self._touched, Cast(is_first, INDEX))),
            Store(self._bits, (word,), _of_words(BinaryOp.OR, before, bit)),
            Assign(self._old.number, counted),
        )
        meet = tuple(inner for inner in stmt.orelse if not self._is_bookkeeping(inner))
        if meet or stmt.then:
            yield If(is_new, meet, stmt.then)

    def _is_bookkeeping(self, stmt: Stmt) -> bool:
        match stmt:
            case Store(memref) | Push(memref):
                return memref in (self._old.stamps, self._old.met)
            case Assign(var):
                return var == self._old.number
            case _:
                return False

    def _sorted(self) -> Iterable[Stmt]:
        """Bring the words touched in order."""
        few = compare(BinaryOp.LE, self._touched, int_(_FEW))
        length = _words_of(self._count)
        long = compare(BinaryOp.GT, length, binary(BinaryOp.SHL, self._touched, int_(3)))
        by_sort = (SortPrefix(self._words, self._touched),)
        yield If(compare(BinaryOp.OR, few, long), by_sort, tuple(self._by_summary(length)))

    def _by_summary(self, length: Expr) -> Iterator[Stmt]:
        var, summary = self._names.var, self._summary
        t, word, s, place = var("t"), var("word"), var("s"), var("place")
        bits, upper = var("bits", _WORD), binary(BinaryOp.SHR, word, int_(6))
        yield For(
            t,
            int_(0),
            self._touched,
            (
                Let(word, Load(self._words, (t,))),
                Store(summary, (upper,), _bit_of(word), BinaryOp.OR),
            ),
        )
        yield Let(place, int_(0), mutable=True)
        lowest = var("lowest")
        take = (
            *_lowest(self._names, s, bits, lowest),
            Store(self._words, (place,), lowest),
            Assign(place, plus(place, int_(1))),
            _without_lowest(bits),
        )
        yield For(
            s,
            int_(0),
            length,
            (
                Let(bits, Load(summary, (s,)), mutable=True),
                Store(summary, (s,), Lit(_ZERO)),
                While(compare(BinaryOp.NE, bits, Lit(_ZERO)), take),
            ),
        )

    def _swept(self, loop: For, coordinate: Var, rest: tuple[Stmt, ...]) -> Iterable[Stmt]:
        """Visit the bits of the words, as many as were met."""
        var = self._names.var
        t, word, bits = var("t"), var("word"), var("bits", _WORD)
        on = (
            Assign(word, Load(self._words, (t,))),
            Assign(bits, Load(self._bits, (word,))),
            Assign(t, plus(t, int_(1))),
        )
        body = (
            If(compare(BinaryOp.EQ, bits, Lit(_ZERO)), on),
            *_lowest(self._names, word, bits, coordinate),
            _without_lowest(bits),
            *rest,
        )
        return (
            Let(t, int_(0), mutable=True),
            Let(word, int_(0), mutable=True),
            Let(bits, Lit(_ZERO), mutable=True),
            replace(loop, body=body),
        )


def _words_of(extent: Expr) -> Expr:
    """How many words have a bit for each of so many."""
    return binary(BinaryOp.SHR, plus(extent, int_(63)), int_(6))


def _of_words(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(op, lhs, rhs, _WORD)


def _number(value: int) -> Lit:
    return Lit(Const(value, _WORD))


def _bit_of(index: Expr) -> Expr:
    place = Cast(binary(BinaryOp.AND, index, int_(63)), _WORD)
    return _of_words(BinaryOp.SHL, _number(1), place)


def _without_lowest(bits: Var) -> Stmt:
    less = _of_words(BinaryOp.SUB, bits, _number(1))
    return Assign(bits, _of_words(BinaryOp.AND, bits, less))


def _lowest(names: Names, word: Expr, bits: Var, found: Var) -> tuple[Stmt, ...]:
    """Let ``found`` be the place of the lowest bit of a word: so many bits are below it.

    They are counted in parallel, in a form that LLVM knows to be one instruction.
    """
    below, pairs, fours, total = (
        names.var(base, _WORD) for base in ("below", "pairs", "fours", "total")
    )
    opposite = _of_words(BinaryOp.SUB, _number(0), bits)
    alone = _of_words(BinaryOp.AND, bits, opposite)
    half = _of_words(BinaryOp.AND, _shifted(below, 1), _number(0x5555555555555555))
    low, high = (
        _of_words(BinaryOp.AND, part, _number(0x3333333333333333))
        for part in (pairs, _shifted(pairs, 2))
    )
    eights = _of_words(BinaryOp.ADD, fours, _shifted(fours, 4))
    eights = _of_words(BinaryOp.AND, eights, _number(0x0F0F0F0F0F0F0F0F))
    all_of = _of_words(BinaryOp.MUL, eights, _number(0x0101010101010101))
    place = plus(binary(BinaryOp.SHL, word, int_(6)), Cast(total, INDEX))
    return (
        Let(below, _of_words(BinaryOp.SUB, alone, _number(1))),
        Let(pairs, _of_words(BinaryOp.SUB, below, half)),
        Let(fours, _of_words(BinaryOp.ADD, low, high)),
        Let(total, _shifted(all_of, 56)),
        Let(found, place),
    )


def _shifted(value: Expr, by: int) -> Expr:
    return _of_words(BinaryOp.SHR, value, _number(by))
