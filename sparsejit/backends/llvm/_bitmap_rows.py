"""Lowering: what a row of many terms meets is noted as bits of words, and comes in order.

In: rows collected in a dense workspace: ``if stamps[j] == stamp { sums[j] += x } else { stamps[j] =
stamp; sums[j] = x; push met[number] = j; number = number + 1 }``, then ``sort met`` and a loop over
it. Out: this for rows of few terms, and for all others bit ``j`` of a bitmap instead of the stamp:
bits of a word are in order by themselves, and the words come in order from a bitmap of the words
(``summary``), which is walked through as a whole. So it pays where a row has many terms for the
columns there are; how many is counted before, from the lengths of the loops that bring them. The
bitmap has a 64th of the columns' size, so it stays in the nearest cache. Where a row is a sum, its
coordinates come first and the terms are added behind (see ``_added_later``). What is added to what,
in which order, is as before. Source: Gustavson's accumulator; the bitmaps are those of
SuiteSparse's and Kokkos' accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparsejit.backends.llvm._added_later import AddedLater, added_later
from sparsejit.backends.llvm._term_counts import terms_of
from sparsejit.backends.llvm._workspace_rows import WorkspaceRows, workspaces_of
from sparsejit.ir.loop_uses import used
from sparsejit.ir.loop_walk import all_statements, map_body, memrefs
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
    SortPrefix,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["note_rows_in_bitmaps"]

_WORD = DType.UINT64
_FEW = 16
"""So many terms are sorted as fast as they are noted, however few columns there are."""
_ZERO = Const(0, _WORD)


def note_rows_in_bitmaps(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with bitmaps for rows of many terms."""
    names = Names.of(func)
    body = func.body
    for rows in workspaces_of(func):
        body = _Bitmap(rows, names).of(body)
    return replace(func, body=body)


class _Bitmap:
    """One workspace with a bitmap beside the stamps."""

    def __init__(self, rows: WorkspaceRows, names: Names) -> None:
        self._rows = rows
        self._names = names
        base = rows.met.name
        self._bits = names.array(f"{base}_bits", _WORD)
        self._summary = names.array(f"{base}_summary", _WORD)
        self._length = names.var(f"{base}_length")

    def of(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the body of the function, as it was where no row can be read from bits."""
        changed = self._block(map_body(body, change_stmt=self._with_inner_blocks))
        if changed == body:
            return body
        return map_body(changed, change_stmt=self._with_room)

    def _with_inner_blocks(self, stmt: Stmt) -> Iterable[Stmt]:
        match stmt:
            case For() | While():
                return (replace(stmt, body=self._block(stmt.body)),)
            case If():
                return (
                    replace(stmt, then=self._block(stmt.then), orelse=self._block(stmt.orelse)),
                )
            case _:
                return (stmt,)

    def _block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Give a row, which starts with ``number = 0`` and is read at the end, a second way."""
        number = self._rows.number
        starts = [k for k, stmt in enumerate(block) if stmt == Assign(number, int_(0))]
        ends = [k for k, stmt in enumerate(block) if self._is_sort(stmt)]
        if not (len(starts) == len(ends) == 1 and starts[0] < ends[0] < len(block) - 1):
            return block
        before, noting = block[: starts[0] + 1], block[starts[0] + 1 : ends[0]]
        sort, sweep, after = block[ends[0]], block[ends[0] + 1], block[ends[0] + 2 :]
        noted, swept = map_body(noting, change_stmt=self._noted), self._swept(sweep)
        if swept is None or any(map(self._uses_old, (*noted, *swept, *after))):
            return block
        terms = self._names.var("terms")
        counted = terms_of(noting, self._rows.is_note, terms, self._names)
        if counted is None:
            return block
        pays = compare(
            BinaryOp.GT,
            binary(BinaryOp.SHL, terms, int_(1)),
            plus(self._length, int_(2 * _FEW)),
        )
        by_bits = fresh_copy(self._by_bits(noting, sweep), self._names)
        choice = If(pays, by_bits, (*noting, sort, sweep))
        return (*before, *counted, choice, *after)

    def _by_bits(self, noting: tuple[Stmt, ...], sweep: Stmt) -> tuple[Stmt, ...]:
        """Return the way of the bits; coordinates come first where sums can be added behind."""
        later = added_later(noting, sweep, self._rows, self._names)
        if later is None:
            later = AddedLater(noting, (), sweep, ())
        swept = self._swept(later.sweep)
        assert swept is not None, "what is done with a coordinate does not matter"
        noted = map_body(later.noting, change_stmt=self._noted)
        return (*noted, *later.before, *swept, *later.behind)

    def _is_sort(self, stmt: Stmt) -> bool:
        return isinstance(stmt, SortPrefix) and stmt.memref == self._rows.met

    def _uses_old(self, stmt: Stmt) -> bool:
        old, inner = self._rows, tuple(all_statements((stmt,)))
        arrays = {memref.name for one in inner for memref in memrefs(one)}
        changed = {one.var.name for one in inner if isinstance(one, Assign)}
        gone = {old.stamps.name, old.met.name, old.number.name}
        return bool(gone & (arrays | changed | used(inner).keys()))

    def _with_room(self, stmt: Stmt) -> Iterable[Stmt]:
        """Make and free the bitmaps with the stamps, for each thread where these are."""
        match stmt:
            case Alloc(memref, (extent,)) if memref == self._rows.stamps:
                count = self._names.var(f"{self._bits.name}_length")
                return (
                    stmt,
                    Let(count, _words_of(extent)),
                    Let(self._length, _words_of(count)),
                    Alloc(self._bits, (count,), _ZERO),
                    Alloc(self._summary, (self._length,), _ZERO),
                )
            case Dealloc(memref) if memref == self._rows.stamps:
                return (stmt, Dealloc(self._bits), Dealloc(self._summary))
            case For() if self._rows.stamps in stmt.private and self._has_bits(stmt):
                return (replace(stmt, private=(*stmt.private, self._bits, self._summary)),)
            case _:
                return (stmt,)

    def _has_bits(self, loop: For) -> bool:
        return any(self._bits in memrefs(stmt) for stmt in all_statements(loop.body))

    # ------------------------------------------------------------ the way of the bits

    def _noted(self, stmt: Stmt) -> Iterable[Stmt]:
        """Note ``j``, and do what is to be done where it is new, or is not."""
        if not self._rows.is_note(stmt):
            return (stmt,)
        assert isinstance(stmt, If)
        assert isinstance(stmt.condition, Binary)
        assert isinstance(stmt.condition.lhs, Load)
        (j,) = stmt.condition.lhs.indices
        word, before = self._names.var("word"), self._names.var("before", _WORD)
        bit = self._names.var("bit", _WORD)
        is_new = compare(BinaryOp.EQ, _of_words(BinaryOp.AND, before, bit), Lit(_ZERO))
        meet = tuple(inner for inner in stmt.orelse if not self._rows.is_bookkeeping(inner))
        return (
            Let(word, _upper(j)),
            Let(bit, _bit_of(j)),
            Let(before, Load(self._bits, (word,))),
            Store(self._bits, (word,), _of_words(BinaryOp.OR, before, bit)),
            Store(self._summary, (_upper(word),), _bit_of(word), BinaryOp.OR),
            *((If(is_new, meet, stmt.then),) if meet or stmt.then else ()),
        )

    def _swept(self, sweep: Stmt) -> tuple[Stmt, ...] | None:
        """Visit the bits in order and forget them; None for another loop than over all of them."""
        match sweep:
            case For(q, lower, upper, (Let(c, Load(memref, (place,))), *rest)) if (
                lower,
                upper,
                memref,
                place,
            ) == (int_(0), self._rows.number, self._rows.met, q) and q.name not in used(rest):
                pass
            case _:
                return None
        var = self._names.var
        s, word = var("s"), var("word")
        words, bits = var("words", _WORD), var("bits", _WORD)
        of_word = (
            *_lowest(self._names, s, words, word),
            _without_lowest(words),
            Let(bits, Load(self._bits, (word,)), mutable=True),
            Store(self._bits, (word,), Lit(_ZERO)),
            _while_any(bits, (*_lowest(self._names, word, bits, c), _without_lowest(bits), *rest)),
        )
        of_summary = (
            Let(words, Load(self._summary, (s,)), mutable=True),
            Store(self._summary, (s,), Lit(_ZERO)),
            _while_any(words, of_word),
        )
        return (For(s, int_(0), self._length, of_summary),)


def _while_any(bits: Var, body: tuple[Stmt, ...]) -> Stmt:
    return While(compare(BinaryOp.NE, bits, Lit(_ZERO)), body)


def _words_of(extent: Expr) -> Expr:
    """How many words have a bit for each of so many."""
    return _upper(plus(extent, int_(63)))


def _upper(index: Expr) -> Expr:
    return binary(BinaryOp.SHR, index, int_(6))


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
