"""Lowering: stamps of rows take 16 bits, and rows that are only counted are noted without a branch.

In: rows noted in a dense workspace, ``stamp = stamp + 1; if stamps[j] == stamp {} else { stamps[j]
= stamp; number = number + 1 }``, with stamps as wide as indices. Out: stamps of a quarter of the
size, so that more of them stay in a near cache and fewer have to be cleared for each thread; where
the last one is used up all are cleared, which costs less than a byte a column for many thousands of
rows. Where nothing but the number depends on what is new, a comparison is added to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, map_body
from sparsejit.ir.loop_writing import Names, as_dtype, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Cast,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import renamed
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["narrow_stamps"]

_STAMP = DType.UINT16
_LAST = Lit(Const(2**16 - 1, _STAMP))


def narrow_stamps(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with stamps of 16 bits."""
    names = Names.of(func)
    body = func.body
    for stamps, stamp in list(_stamps(body)):
        body = _narrow(map_body(body, change_stmt=_counted), stamps, stamp, names)
    return replace(func, body=body)


def _stamps(body: tuple[Stmt, ...]) -> Iterator[tuple[Memref, Var]]:
    """Yield arrays of nothing but stamps, and the variable that they are compared with."""
    for stmt in all_statements(body):
        match stmt:
            case Alloc(memref, (_,), Const(0)) if memref.dtype is INDEX:
                found = {
                    other.value
                    for other in all_statements(body)
                    if isinstance(other, Store) and other.memref == memref
                }
                if len(found) == 1:
                    (stamp,) = found
                    if isinstance(stamp, Var) and _is_stamp_alone(body, memref, stamp):
                        yield memref, stamp
            case _:
                pass


def _is_stamp_alone(body: tuple[Stmt, ...], stamps: Memref, stamp: Var) -> bool:
    """Whether stamps are only compared with the current one, which is only counted up."""
    for stmt in all_statements(body):
        match stmt:
            case Let(var, value) if var == stamp:
                if value != int_(0):
                    return False
            case Assign(var, value) if var == stamp:
                if value != plus(stamp, int_(1)):
                    return False
            case Store(memref, (at,), value, op) if memref == stamps:
                if op is not None or not _is_free_of(at, stamps, stamp):
                    return False
            case _ if not all(_is_free_of(outer, stamps, stamp) for outer in expressions(stmt)):
                return False
            case _:
                pass
    return True


def _is_free_of(expr: Expr, stamps: Memref, stamp: Var) -> bool:
    """Whether an expression has stamps in nothing but such a comparison."""
    parts = list(all_expressions(expr))
    uses = sum(_is_use(part, stamps, stamp) for part in parts)
    return uses == 2 * sum(_is_comparison(part, stamps, stamp) for part in parts)


def _is_use(expr: Expr, stamps: Memref, stamp: Var) -> bool:
    match expr:
        case Load(memref) | DimOf(memref):
            return memref == stamps
        case _:
            return expr == stamp


def _is_comparison(expr: Expr, stamps: Memref, stamp: Var) -> bool:
    match expr:
        case Binary(BinaryOp.EQ | BinaryOp.NE, Load(memref), var):
            return memref == stamps and var == stamp
        case _:
            return False


def _counted(stmt: Stmt) -> Iterable[Stmt]:
    """Add a comparison up where there is nothing else to do."""
    match stmt:
        case If(
            Binary(BinaryOp.EQ, Load() as seen, Var() as stamp),
            (),
            (Store(memref, at, value, None) as store, Assign(number, more)),
        ) if (memref, at, value) == (seen.memref, seen.indices, stamp) and more == plus(
            number, int_(1)
        ):
            is_new = compare(BinaryOp.NE, seen, stamp)
            return Assign(number, plus(number, Cast(is_new, INDEX))), store
        case _:
            return (stmt,)


def _narrow(body: tuple[Stmt, ...], stamps: Memref, stamp: Var, names: Names) -> tuple[Stmt, ...]:
    """Return the body with a narrow array and variable in the place of these."""
    array, var = replace(stamps, dtype=_STAMP), replace(stamp, dtype=_STAMP)
    zero = as_dtype(int_(0), _STAMP)

    def change(stmt: Stmt) -> Iterable[Stmt]:
        match stmt:
            case Alloc(memref) if memref == array:
                return (replace(stmt, fill=Const(0, _STAMP)),)
            case Let(changed) if changed == var:
                return (replace(stmt, value=zero),)
            case Assign(changed) if changed == var:
                t = names.var("t")
                clear = For(t, int_(0), DimOf(array, 0), (Store(array, (t,), zero),))
                one = as_dtype(int_(1), _STAMP)
                return (
                    If(compare(BinaryOp.EQ, var, _LAST), (clear, Assign(var, zero))),
                    Assign(var, Binary(BinaryOp.ADD, var, one, _STAMP)),
                )
            case _:
                return (stmt,)

    narrow = renamed(body, {stamps.name: array, stamp.name: var})
    return map_body(narrow, change_stmt=change)
