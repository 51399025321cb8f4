"""Loop passes: which of the loops that may run in parallel are to do so.

In: a loop function whose ``For.parallel`` states facts. Out: the same function in which loops that
the chosen strategy (MLIR's five) leaves out are sequential, or in which no reduction is split.
(``split_reductions`` finds the reductions that may be.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparsejit.ir.loop_walk import all_expressions, expressions, map_body
from sparsejit.ir.loops import Assign, Expr, For, If, Let, Load, LoopFunc, Search, Stmt, Var, While

__all__ = ["keep_parallel", "order_reductions"]


def keep_parallel(func: LoopFunc, strategy: str) -> LoopFunc:
    """Return ``func`` with the loops that ``strategy`` does not choose made sequential.

    ``strategy`` is one of MLIR's: ``"none"``, ``"dense-outer-loop"``,
    ``"any-storage-outer-loop"``, ``"dense-any-loop"``, ``"any-storage-any-loop"``. A loop is dense
    when its bounds are extents, not read from storage.

    >>> from sparsejit.ir.loops import Lit
    >>> from sparsejit.ir.scalar import Const
    >>> from sparsejit.ir.types import INDEX
    >>> n, i = Var("n", INDEX), Var("i", INDEX)
    >>> loop = For(i, Lit(Const(0, INDEX)), n, (), parallel=True)
    >>> keep_parallel(LoopFunc("f", (n,), (loop,), ()), "none").body[0].parallel
    False
    """
    if strategy == "any-storage-any-loop":
        return func
    return replace(func, body=_restricted(func.body, strategy, frozenset(), False))


def order_reductions(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with loops that reduce made sequential, so that the order is always one.

    >>> order_reductions(LoopFunc("f", (), (), ())).body
    ()
    """

    def ordered(stmt: Stmt) -> Iterable[Stmt]:
        if isinstance(stmt, For) and stmt.parallel and stmt.reductions:
            return (_sequential(stmt),)
        return (stmt,)

    return replace(func, body=map_body(func.body, change_stmt=ordered))


def _sequential(loop: For) -> For:
    return replace(loop, parallel=False, reductions=(), private=())


def _restricted(
    body: tuple[Stmt, ...], strategy: str, loaded: frozenset[str], is_inner: bool
) -> tuple[Stmt, ...]:
    """Rebuild a block; ``loaded`` are the variables that depend on what storage holds."""
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(var, value) | Assign(var, value):
                if _is_loaded(value, loaded):
                    loaded |= {var.name}
                made.append(stmt)
            case For():
                is_dense = not any(_is_loaded(bound, loaded) for bound in expressions(stmt))
                wanted = _chooses(strategy, is_dense, is_inner)
                inner = _restricted(stmt.body, strategy, loaded, True)
                stmt = replace(stmt, body=inner)
                made.append(stmt if stmt.parallel and wanted else _sequential(stmt))
            case While():
                made.append(replace(stmt, body=_restricted(stmt.body, strategy, loaded, True)))
            case If():
                then = _restricted(stmt.then, strategy, loaded, is_inner)
                orelse = _restricted(stmt.orelse, strategy, loaded, is_inner)
                made.append(replace(stmt, then=then, orelse=orelse))
            case _:
                made.append(stmt)
    return tuple(made)


def _is_loaded(value: Expr, loaded: frozenset[str]) -> bool:
    return any(
        isinstance(part, Load | Search) or (isinstance(part, Var) and part.name in loaded)
        for part in all_expressions(value)
    )


def _chooses(strategy: str, is_dense: bool, is_inner: bool) -> bool:
    match strategy:
        case "none":
            return False
        case "dense-outer-loop":
            return is_dense and not is_inner
        case "any-storage-outer-loop":
            return not is_inner
        case "dense-any-loop":
            return is_dense
        case _:
            return True
