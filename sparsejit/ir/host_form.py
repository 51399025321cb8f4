"""The host form of a loop function: the same program without kernels and library calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from sparsejit.ir.device_statements import Launch, LibraryCall, LibraryOp, ReadBack
from sparsejit.ir.loop_walk import all_statements, map_body
from sparsejit.ir.loops import Let, Load, LoopFunc, Stmt

__all__ = ["host_form"]


def host_form(func: LoopFunc, keep: frozenset[LibraryOp] = frozenset()) -> LoopFunc:
    """Return ``func`` with kernels as the loops they run and library calls as their ``otherwise``.

    Calls of ``keep``, which a library of the host computes, stay.

    >>> from sparsejit.ir.device_statements import Schedule
    >>> from sparsejit.ir.loops import Lit, Var
    >>> from sparsejit.ir.scalar import Const
    >>> from sparsejit.ir.types import INDEX
    >>> let = Let(Var("n", INDEX), Lit(Const(3, INDEX)))
    >>> launch = Launch("k0", Schedule.ONE_THREAD, (let,))
    >>> host_form(LoopFunc("f", (), (launch,), ())).body == (let,)
    True
    """
    device = Launch | LibraryCall | ReadBack
    if not any(isinstance(stmt, device) for stmt in all_statements(func.body)):
        return func
    return replace(func, body=map_body(func.body, change_stmt=partial(_host_statements, keep)))


def _host_statements(keep: frozenset[LibraryOp], stmt: Stmt) -> Iterable[Stmt]:
    match stmt:
        case Launch():
            return stmt.body
        case LibraryCall() if stmt.op not in keep:
            return stmt.otherwise
        case ReadBack(var, memref, indices):
            return (Let(var, Load(memref, indices)),)
        case _:
            return (stmt,)
