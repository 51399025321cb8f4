"""Statements about whole arrays as loops: ``Sort``, ``Scan`` and ``Assemble``.

In: a ``LoopFunc``. Out: the same function with loads, stores and loops instead, so that the printer
of LLVM IR knows small statements only. Sorting is a stable radix sort (digits of 11 bits);
assembling stands in ``_expand_assembly``. What may fail sets a status, and goes on in a way that
touches no memory it should not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparsejit.backends.llvm._expand_assembly import assembly
from sparsejit.ir.device_statements import LibraryCall
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopFunc,
    Memref,
    Scan,
    ScanOp,
    Sort,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["Expanded", "expand"]

_DIGIT = 11


@dataclass(frozen=True, slots=True)
class Expanded:
    """A function of small statements; ``status`` is the variable that says what went wrong.

    It is 0 where nothing did, and None where nothing can.
    """

    func: LoopFunc
    status: Var | None


def expand(func: LoopFunc) -> Expanded:
    """Return ``func`` without ``Sort``, ``Scan`` and ``Assemble``."""
    names = Names.of(func)
    status = None
    if any(isinstance(stmt, Assemble) for stmt in all_statements(func.body)):
        status = names.var("status")
    body = _block(func.body, names, status)
    if status is not None:
        body = (Let(status, int_(0), mutable=True), *body)
    return Expanded(replace(func, body=body), status)


def _block(body: Sequence[Stmt], names: Names, status: Var | None) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() | While():
                made.append(replace(stmt, body=_block(stmt.body, names, status)))
            case If():
                then = _block(stmt.then, names, status)
                made.append(replace(stmt, then=then, orelse=_block(stmt.orelse, names, status)))
            case LibraryCall():
                otherwise = _block(stmt.otherwise, names, status)
                made.append(replace(stmt, otherwise=otherwise))
            case Sort():
                made += _sort(stmt, names)
            case Scan():
                made.append(_scan(stmt, names))
            case Assemble():
                assert status is not None
                made += assembly(stmt, names, status)
            case _:
                made.append(stmt)
    return tuple(made)


def _scan(stmt: Scan, names: Names) -> Stmt:
    memref, dtype = stmt.memref, stmt.memref.dtype
    i = names.var("i")
    before = Load(memref, (binary(BinaryOp.SUB, i, int_(1)),))
    here = Load(memref, (i,))
    op = BinaryOp.ADD if stmt.op is ScanOp.SUM else BinaryOp.MAX
    step = Store(memref, (i,), Binary(op, before, here, dtype))
    return For(i, int_(1), DimOf(memref, 0), (step,))


def _sort(stmt: Sort, names: Names) -> list[Stmt]:
    """Sort the order by each coordinate, the least significant first, digit by digit."""
    q = names.var("q")
    other, starts = names.array("sort_other"), names.array("sort_starts")
    made: list[Stmt] = [
        Alloc(stmt.order, (stmt.count,)),
        Alloc(other, (stmt.count,)),
        Alloc(starts, (int_((1 << _DIGIT) + 1),)),
        For(q, int_(0), stmt.count, (Store(stmt.order, (q,), q),)),
    ]
    for crd, extent in reversed(list(zip(stmt.coordinates, stmt.extents, strict=True))):
        shift = names.var("shift")
        top = binary(BinaryOp.SHR, binary(BinaryOp.SUB, extent, int_(1)), shift)
        made.append(Let(shift, int_(0), mutable=True))
        body = _count_sort(stmt, crd, shift, other, starts, names)
        advance = Assign(shift, plus(shift, int_(_DIGIT)))
        made.append(While(compare(BinaryOp.GT, top, int_(0)), (*body, advance)))
    return [*made, Dealloc(other), Dealloc(starts)]


def _count_sort(
    stmt: Sort, crd: Memref, shift: Var, other: Memref, starts: Memref, names: Names
) -> tuple[Stmt, ...]:
    b, q, q2, q3 = (names.var(base) for base in ("b", "q", "q", "q"))
    digit, digit2, entry = names.var("digit"), names.var("digit"), names.var("entry")

    def digit_of(where: Expr) -> Expr:
        moved = binary(BinaryOp.SHR, Load(crd, (where,)), shift)
        return binary(BinaryOp.AND, moved, int_((1 << _DIGIT) - 1))

    count = (
        Let(digit, digit_of(Load(stmt.order, (q,)))),
        Store(starts, (plus(digit, int_(1)),), int_(1), BinaryOp.ADD),
    )
    place = (
        Let(entry, Load(stmt.order, (q2,))),
        Let(digit2, digit_of(entry)),
        Store(other, (Load(starts, (digit2,)),), entry),
        Store(starts, (digit2,), int_(1), BinaryOp.ADD),
    )
    clear = names.var("b")
    sums = Store(starts, (plus(b, int_(1)),), Load(starts, (b,)), BinaryOp.ADD)
    return (
        For(clear, int_(0), int_((1 << _DIGIT) + 1), (Store(starts, (clear,), int_(0)),)),
        For(q, int_(0), stmt.count, count),
        For(b, int_(0), int_(1 << _DIGIT), (sums,)),
        For(q2, int_(0), stmt.count, place),
        For(q3, int_(0), stmt.count, (Store(stmt.order, (q3,), Load(other, (q3,))),)),
    )
