"""Loops that gather sorted entries, in parallel: neighbors alike become one entry, by a scan.

In: the statements of a host. Out: the same, in which the loop ::

    var kept = 0
    for q in 0 .. count {
      if select(0 < kept, keys[kept - 1] == key(q), False) { values[kept - 1] += value(q) }
      else { keys[kept] = key(q); values[kept] = value(q); kept = kept + 1 }
    }

has become one that says where a run of equal keys begins, a scan that numbers the runs, and one in
which the first entry of each run walks along it: the sums are those of the loop, in its order. A
loop that keeps every entry stores entry ``q`` at ``q``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_statements import LibraryCall
from sparsejit.ir.loop_uses import assigned, loaded, variables
from sparsejit.ir.loop_walk import expr_dtype
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Scan,
    ScanOp,
    Select,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy, renamed
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["gather_in_parallel"]

_FALSE = Lit(Const(False, DType.BOOL))


def gather_in_parallel(body: Sequence[Stmt], names: Names) -> tuple[Stmt, ...]:
    """Return the statements with such loops replaced.

    >>> gather_in_parallel((), Names())
    ()
    """
    made: list[Stmt] = []
    zeros: set[Var] = set()
    for stmt in body:
        gathering = _gathering(stmt) if isinstance(stmt, For) else None
        match stmt:
            case For() if gathering is not None and gathering.update is None:
                made += _kept(gathering, names)
            case For() if gathering is not None and gathering.kept in zeros:
                made += _numbered(gathering, names)
            case LibraryCall():
                otherwise = gather_in_parallel(stmt.otherwise, names)
                made.append(replace(stmt, otherwise=otherwise))
            case _:
                made.append(stmt)
        zeros -= set(assigned((stmt,)).values())
        if isinstance(stmt, Let) and stmt.value == int_(0):
            zeros.add(stmt.var)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Gathering:
    """``lets`` are constants of a pass; ``stores`` keep its entry as number ``kept``.

    ``update`` is what is done instead where the ``keys`` are those of the entry before.
    """

    loop: For
    kept: Var
    lets: tuple[Let, ...]
    stores: tuple[Store, ...]
    update: Store | None = None
    keys: tuple[Expr, ...] = ()


def _gathering(loop: For) -> _Gathering | None:
    lets = tuple(stmt for stmt in loop.body if isinstance(stmt, Let) and not stmt.mutable)
    rest = loop.body[len(lets) :]
    if loop.parallel or loop.lower != int_(0) or loop.body[: len(lets)] != lets:
        return None
    match rest:
        case (If(Select(begun, same, otherwise), (Store() as update,), keep),) if (
            otherwise == _FALSE
        ):
            found = _kept_entry(loop, lets, keep)
            if found is None or begun != compare(BinaryOp.LT, int_(0), found.kept):
                return None
            last = binary(BinaryOp.SUB, found.kept, int_(1))
            keys = _keys(same, found.stores, last)
            if keys is None or update.indices != (last,) or update.reduce is None:
                return None
            found = replace(found, update=update, keys=keys)
        case _:
            found = _kept_entry(loop, lets, rest)
    return found if found is not None and _is_simple(found) else None


def _kept_entry(loop: For, lets: tuple[Let, ...], keep: Sequence[Stmt]) -> _Gathering | None:
    """Stores into elements ``kept`` of arrays, and then ``kept = kept + 1``."""
    match keep:
        case (*stores, Assign(kept, value)) if stores and value == plus(kept, int_(1)):
            found = [s for s in stores if isinstance(s, Store) and s.indices == (kept,)]
            plain = len(found) == len(stores) and all(s.reduce is None for s in found)
            return _Gathering(loop, kept, lets, tuple(found)) if plain else None
        case _:
            return None


def _keys(same: Expr, stores: Sequence[Store], last: Expr) -> tuple[Expr, ...] | None:
    """What is stored, of the arrays whose last element is compared with it."""
    match same:
        case Binary(BinaryOp.AND, lhs, rhs):
            left, right = _keys(lhs, stores, last), _keys(rhs, stores, last)
            return None if left is None or right is None else (*left, *right)
        case Binary(BinaryOp.EQ, Load(memref, indices), value) if indices == (last,):
            kept = any(store.memref == memref and store.value == value for store in stores)
            return (value,) if kept else None
        case _:
            return None


def _is_simple(found: _Gathering) -> bool:
    """Whether what is stored depends on the pass alone, and each array gets one entry."""
    targets = {store.memref.name for store in found.stores}
    values = [let.value for let in found.lets] + [store.value for store in found.stores]
    if found.update is not None:
        values.append(found.update.value)
        if found.update.memref.name not in targets:
            return False
    reads = {name for value in values for name in (*loaded(value), *variables(value))}
    return len(targets) == len(found.stores) and not reads & (targets | {found.kept.name})


# ---------------------------------------------------------------- what stands for the loop


def _kept(found: _Gathering, names: Names) -> list[Stmt]:
    """Every entry is kept: a pass stores at the number of passes before it."""
    loop, start = found.loop, names.var(f"{found.kept.name}_start")
    place = plus(start, loop.var)
    stores = tuple(replace(store, indices=(place,)) for store in found.stores)
    passes = binary(BinaryOp.MAX, loop.upper, int_(0))
    return [
        Let(start, found.kept),
        replace(loop, body=(*found.lets, *stores), parallel=True),
        Assign(found.kept, plus(start, passes)),
    ]


def _numbered(found: _Gathering, names: Names) -> list[Stmt]:
    """``numbers[q]`` is how many runs begin in front of entry ``q``."""
    numbers, count = names.array("runs"), names.var("count")
    (loop,) = fresh_copy((found.loop,), names)
    assert isinstance(loop, For)
    again = _gathering(loop)
    assert again is not None
    return [
        Let(count, binary(BinaryOp.MAX, found.loop.upper, int_(0))),
        Alloc(numbers, (plus(count, int_(1)),), Const(0, INDEX)),
        _marking(found, numbers, count, names),
        Scan(numbers, ScanOp.SUM),
        Assign(found.kept, Load(numbers, (count,))),
        _gathered(again, numbers, count, names),
        Dealloc(numbers),
    ]


def _marking(found: _Gathering, numbers: Memref, count: Var, names: Names) -> Stmt:
    """Mark the entries whose keys are not those of the entry in front of them."""
    q = found.loop.var
    mine: list[Stmt] = []
    equal: list[Expr] = []
    for key in found.keys:
        here = names.var("key", expr_dtype(key))
        mine.append(Let(here, key))
        equal.append(compare(BinaryOp.EQ, here, key))
    same = reduce(partial(compare, BinaryOp.AND), equal)
    first = Store(numbers, (plus(q, int_(1)),), int_(1))
    # in the pass of the entry in front, the next but one number is that of this entry
    new = Store(numbers, (plus(q, int_(2)),), Select(same, int_(0), int_(1)))
    front = _pass(found, binary(BinaryOp.SUB, q, int_(1)), (new,), names)
    choose = If(compare(BinaryOp.GT, q, int_(0)), (*mine, *front), (first,))
    return _loop(found, count, (choose,))


def _gathered(found: _Gathering, numbers: Memref, count: Var, names: Names) -> Stmt:
    """The first entry of each run keeps what it has, and walks along the run."""
    q, update = found.loop.var, found.update
    assert update is not None
    assert update.reduce is not None
    dtype = update.memref.dtype
    run, following = names.var("run"), names.var("following")
    total = names.var("total", dtype)
    (start,) = (store.value for store in found.stores if store.memref == update.memref)
    kept = [replace(s, indices=(run,)) for s in found.stores if s.memref != update.memref]
    number, number_after = (Load(numbers, (at,)) for at in (q, plus(q, int_(1))))
    goes_on = compare(
        BinaryOp.EQ, Load(numbers, (plus(following, int_(1)),)), Load(numbers, (following,))
    )
    added = Assign(total, Binary(update.reduce, total, update.value, dtype))
    walk = (
        *_pass(found, following, (added,), names),
        Assign(following, plus(following, int_(1))),
    )
    more = Select(compare(BinaryOp.LT, following, count), goes_on, _FALSE)
    begins: tuple[Stmt, ...] = (
        Let(run, number),
        *kept,
        Let(total, start, mutable=True),
        Let(following, plus(q, int_(1)), mutable=True),
        While(more, walk),
        Store(update.memref, (run,), total),
    )
    return _loop(found, count, (If(compare(BinaryOp.NE, number_after, number), begins),))


def _loop(found: _Gathering, count: Var, body: tuple[Stmt, ...]) -> For:
    return For(found.loop.var, int_(0), count, (*found.lets, *body), parallel=True)


def _pass(found: _Gathering, place: Expr, body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """The constants of another pass, and statements in which they and its number stand."""
    q = found.loop.var
    own = names.var(q.name)
    return Let(own, place), *fresh_copy(renamed((*found.lets, *body), {q.name: own}), names)
