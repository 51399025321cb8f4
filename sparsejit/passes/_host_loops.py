"""Which loops the host runs around kernels, and which are kernels.

In: a loop or a branch. Out: whether it does what no thread can, and whether it is worth a launch in
each pass.
"""

from __future__ import annotations

from sparsejit.ir.device_statements import Launch, LibraryCall, ReadBack, Require
from sparsejit.ir.loop_uses import is_pure, variables
from sparsejit.ir.loop_walk import all_statements, blocks
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Copy,
    Dealloc,
    For,
    If,
    Let,
    Push,
    Resize,
    Scan,
    Sort,
    Var,
    View,
    While,
)

__all__ = ["needs_host", "runs_by_itself", "stays_on_host"]

_LIBRARY = Sort | LibraryCall | Launch | ReadBack | Require | Assemble
_ARRAYS = Alloc | Dealloc | Copy | View | Scan | Resize


def needs_host(loop: For) -> bool:
    """Whether a parallel loop does what no thread can: to allocate what is not known before."""
    inner = {stmt.var.name for stmt in all_statements((loop,)) if isinstance(stmt, Let | For)}
    for stmt in all_statements(loop.body):
        if isinstance(stmt, _LIBRARY | Push | Resize):
            return True
        if isinstance(stmt, Alloc):
            sizes = [*stmt.extents]
            if not all(is_pure(n) and not variables(n).keys() & inner for n in sizes):
                return True
    return False


def runs_by_itself(loop: For) -> bool:
    """Whether groups of threads can have their own of all that a parallel loop passes on.

    That is variables and vectors as room, and variables as sums.
    """
    shares = all(isinstance(item, Var) or item.rank == 1 for item in loop.private)
    return shares and all(isinstance(item, Var) for item, _ in loop.reductions)


def stays_on_host(stmt: For | While | If) -> bool:
    """Whether the host runs a loop or branch: around allocations, and around loops over extents.

    Around a loop over storage, or with numbers to read from memory each time, it would wait for the
    device at each entry.
    """
    inside = [inner for block in blocks(stmt) for inner in block]
    if any(isinstance(inner, _LIBRARY | _ARRAYS) for inner in all_statements(inside)):
        return True
    if isinstance(stmt, For) and not (is_pure(stmt.lower) and is_pure(stmt.upper)):
        return False
    scalars = [inner for inner in inside if isinstance(inner, Let | Assign)]
    if not all(is_pure(inner.value) for inner in scalars):
        return False
    loops = [inner for inner in inside if isinstance(inner, For | While | If)]
    own = {inner.var.name for inner in scalars}
    return bool(loops) and all(_is_wide(inner, own) for inner in loops)


def _is_wide(stmt: For | While | If, own: set[str]) -> bool:
    """Whether a statement is a kernel over extents, or a loop of the host around such."""
    match stmt:
        case For(_, lower, upper, _, True):
            bounds = variables(lower) | variables(upper)
            return is_pure(lower) and is_pure(upper) and not bounds.keys() & own
        case _:
            return stays_on_host(stmt)
