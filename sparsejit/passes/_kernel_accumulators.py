"""Elements that a kernel updates in every pass of a sequential loop stay in a register meanwhile.

In: the statements of a kernel. Out: the same, in which

    for p { let k = ...; parallel for j { y[i, j] += e } }

is ``parallel for j { acc = y[i, j]; for p { let k = ...; acc = acc + e }; y[i, j] = acc }``, for
any number of loops like the one over p. Each element gets the same sums in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparsejit.ir.loop_uses import read, rooted, variables
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.loops import Assign, Binary, For, If, Let, Load, Memref, Stmt, Store, While

__all__ = ["with_accumulators"]


def with_accumulators(
    body: tuple[Stmt, ...], atomics: Sequence[Memref], of: Mapping[str, str], names: Names
) -> tuple[Stmt, ...]:
    """Return the statements of a kernel with such elements in registers.

    ``of`` says which array a view is part of; updates of ``atomics`` stay single steps.

    >>> with_accumulators((), (), {}, Names(set()))
    ()
    """
    racing = {memref.name for memref in atomics}
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For():
                inner = None if stmt.parallel else _innermost(stmt)
                if inner is not None and _fits(stmt, *inner, racing, of):
                    made.append(_interchanged(stmt, *inner, names))
                else:
                    inside = with_accumulators(stmt.body, atomics, of, names)
                    made.append(replace(stmt, body=inside))
            case While():
                made.append(replace(stmt, body=with_accumulators(stmt.body, atomics, of, names)))
            case If():
                then = with_accumulators(stmt.then, atomics, of, names)
                orelse = with_accumulators(stmt.orelse, atomics, of, names)
                made.append(replace(stmt, then=then, orelse=orelse))
            case _:
                made.append(stmt)
    return tuple(made)


def _innermost(loop: For) -> tuple[For, Store] | None:
    """The parallel loop of one update inside of sequential loops that have nothing else."""
    *lets, last = loop.body or (None,)
    if not all(isinstance(stmt, Let) and not stmt.mutable for stmt in lets):
        return None
    match last:
        case For(parallel=True, reductions=(), body=(Store() as store,)):
            return (last, store) if store.reduce is not None else None
        case For(parallel=False):
            return _innermost(last)
        case _:
            return None


def _fits(loop: For, shared: For, store: Store, racing: set[str], of: Mapping[str, str]) -> bool:
    """Whether neither the elements nor the passes of the parallel loop depend on the outer ones."""
    own = _outer_variables(loop)
    parts = (*store.indices, shared.lower, shared.upper)
    if store.memref.name in racing or any(variables(part).keys() & own for part in parts):
        return False
    return not rooted(read((loop,)), of) & rooted([store.memref.name], of)


def _outer_variables(loop: For) -> set[str]:
    found = {loop.var.name}
    for stmt in loop.body:
        match stmt:
            case Let(var):
                found.add(var.name)
            case For(parallel=False):
                found |= _outer_variables(stmt)
            case _:
                pass
    return found


def _interchanged(loop: For, shared: For, store: Store, names: Names) -> For:
    assert store.reduce is not None
    dtype = store.memref.dtype
    acc = names.var("acc", dtype)
    update = Assign(acc, Binary(store.reduce, acc, store.value, dtype))
    element = Load(store.memref, store.indices)
    last = replace(store, value=acc, reduce=None)
    return replace(shared, body=(Let(acc, element, mutable=True), _with_update(loop, update), last))


def _with_update(loop: For, update: Assign) -> For:
    *lets, last = loop.body
    assert isinstance(last, For)
    inner: Stmt = update if last.parallel else _with_update(last, update)
    return replace(loop, body=(*lets, inner))
