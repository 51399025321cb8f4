"""Sequential loops that only reduce, as parallel loops whose reductions race.

In: loops that the atomic stage left sequential, since several iterations update one element. Out:
the same loops as parallel ones, and the arrays whose updates must be atomic. Allowed where sums may
be reassociated, and for integers always: their sums do not depend on the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.fold import identity_const
from sparsejit.ir.loop_uses import assigned, read, rooted, used, variables
from sparsejit.ir.loop_walk import (
    all_statements,
    expressions,
    memrefs,
    memrefs_defined,
)
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.loops import (
    Assign,
    Binary,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import introduced, renamed
from sparsejit.ir.types import DType

__all__ = ["Raced", "can_race", "raced", "scalar_reductions"]

_SUMS = (BinaryOp.ADD, BinaryOp.SUB)
_EXACT = (BinaryOp.MIN, BinaryOp.MAX, BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR)


def can_race(op: BinaryOp, dtype: DType, *, ordered: bool) -> bool:
    """Whether a device has an atomic update for ``op`` that may run in any order.

    >>> can_race(BinaryOp.ADD, DType.FLOAT64, ordered=False)
    True
    >>> can_race(BinaryOp.ADD, DType.FLOAT64, ordered=True)
    False
    """
    if dtype is DType.BOOL:
        return op in (*_EXACT[:4], BinaryOp.ADD, BinaryOp.MUL)
    if dtype.is_integer:
        return dtype.bits >= 32 and op in (*_SUMS, *_EXACT)
    return not ordered and op in _SUMS and dtype is dtype.compute


@dataclass(frozen=True, slots=True)
class Raced:
    """A parallel loop, and the arrays that its iterations update together."""

    loop: For
    arrays: tuple[Memref, ...]


def raced(loop: For, of: Mapping[str, str], *, ordered: bool) -> Raced | None:
    """Return a sequential loop as a parallel one, None where its iterations depend on each other.

    They do not where all they change are elements by reductions that may race, which nothing in
    the loop reads, and variables of their own. ``of`` says which array a view is part of.
    """
    body = _by_updates(loop.body, of)
    inner = {item.name for item in introduced(body)}
    updates: dict[str, Memref] = {}
    ops: dict[str, BinaryOp] = {}
    for stmt in all_statements(body):
        match stmt:
            case Store(memref, _, _, op) if op is not None:
                if ops.setdefault(memref.name, op) is not op:
                    return None
                if not can_race(op, memref.dtype, ordered=ordered):
                    return None
                updates[memref.name] = memref
            case Assign(var):
                if var.name not in inner:
                    return None
            case Let() | For() | While() | If():
                pass
            case _:
                return None
    elements = rooted(read((*body, replace(loop, body=()))), of)
    if not updates or elements & rooted(updates, of):
        return None
    made = replace(loop, body=body, parallel=True, reductions=(), private=())
    return Raced(made, tuple(updates.values()))


# ---------------------------------------------------------------- accumulators


def scalar_reductions(
    body: Sequence[Stmt], of: Mapping[str, str], names: Names
) -> tuple[Stmt, ...]:
    """Return a block in which loops update an element, where they took it through a variable.

    ``acc = y[()]``, a loop that adds to ``acc``, ``y[()] = acc`` become a loop that adds to
    ``y[()]``, with a variable of each iteration's own.
    """
    made = list(body)
    place = 0
    while place + 2 < len(made):
        updated = _one_loop(made[place : place + 3], made[place + 3 :], of, names)
        if updated is not None:
            made[place : place + 3] = [updated]
        place += 1
    return tuple(made)


def _one_loop(
    three: Sequence[Stmt], behind: Sequence[Stmt], of: Mapping[str, str], names: Names
) -> For | None:
    match three:
        case (Let(acc, Load(memref, indices), True), For() as loop, Store(target, at, value, None)):
            if target != memref or at != indices or value != acc or acc.name in used(behind):
                return None
            op = _reduction_of(acc, loop.body)
            own = Var(names.fresh(acc.name), acc.dtype)
            start = None if op is None else identity_const(op, acc.dtype)
            if start is None or rooted([memref.name], of) & _arrays((loop,), of):
                return None
            if (loop.parallel and not loop.reductions) or loop.private:
                return None
            body = renamed(loop.body, {acc.name: own})
            each = (Let(own, Lit(start), mutable=True), *body, Store(memref, indices, own, op))
            return replace(loop, body=each, parallel=False, reductions=())
        case _:
            return None


def _by_updates(body: tuple[Stmt, ...], of: Mapping[str, str]) -> tuple[Stmt, ...]:
    """Accumulators that start from an element and end in it start from the identity instead."""
    inside: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() | While():
                inside.append(replace(stmt, body=_by_updates(stmt.body, of)))
            case If():
                then, orelse = _by_updates(stmt.then, of), _by_updates(stmt.orelse, of)
                inside.append(replace(stmt, then=then, orelse=orelse))
            case _:
                inside.append(stmt)
    for place, stmt in enumerate(inside):
        match stmt:
            case Let(acc, Load(memref, indices), True):
                _update_at_end(inside, place, Load(memref, indices), acc, of)
            case _:
                pass
    return tuple(inside)


def _update_at_end(
    block: list[Stmt], place: int, element: Load, acc: Var, of: Mapping[str, str]
) -> None:
    """Change the accumulator that starts at ``place``, if all it does is to reduce."""
    memref, indices = element.memref, element.indices
    for end in range(place + 1, len(block)):
        stmt = block[end]
        if not isinstance(stmt, Store) or stmt.memref != memref:
            continue
        between, behind = block[place + 1 : end], block[end + 1 :]
        if stmt.value != acc or stmt.indices != indices or stmt.reduce is not None:
            return
        if acc.name in used(behind) or rooted([memref.name], of) & _arrays(between, of):
            return
        if any(variables(index).keys() & assigned(between).keys() for index in indices):
            return
        op = _reduction_of(acc, between)
        start = None if op is None else identity_const(op, acc.dtype)
        if start is not None:
            block[place] = Let(acc, Lit(start), mutable=True)
            block[end] = replace(stmt, reduce=op)
        return


def _arrays(body: Sequence[Stmt], of: Mapping[str, str]) -> set[str]:
    found = {memref.name for stmt in all_statements(body) for memref in memrefs(stmt)}
    found |= {m.name for stmt in all_statements(body) for m in memrefs_defined(stmt)}
    return rooted(found, of)


def _reduction_of(acc: Var, body: Sequence[Stmt]) -> BinaryOp | None:
    """The one operation by which ``body`` changes ``acc``, which it does not read otherwise."""
    ops: set[BinaryOp] = set()
    for stmt in all_statements(body):
        match stmt:
            case Assign(var, Binary(op, lhs, rhs, _)) if var == acc and lhs == acc:
                if acc.name in variables(rhs):
                    return None
                ops.add(op)
            case _:
                if any(acc.name in variables(part) for part in expressions(stmt)):
                    return None
                if isinstance(stmt, Assign) and stmt.var == acc:
                    return None
    if len(ops) != 1:
        return None
    (op,) = ops
    return op if op.info.associative and op.info.commutative else None
