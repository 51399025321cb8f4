"""Who owns the arrays of a loop function: each allocation is freed or returned, once, on each path.

What enters is a function; what leaves are sentences about broken ownership. The walk follows the
program and keeps two sets: arrays that this function must still free or return, and arrays that are
gone. The two branches of an ``If`` must leave the same; a block frees what it allocates, since its
names end with it, and a loop frees nothing from outside, since it may run any number of times. A
library call leaves its targets behind. Where an array changes its length it may move, so views of
it end there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_statements import Launch, LibraryCall
from sparsejit.ir.loop_walk import all_statements, memrefs, result_memrefs
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Dealloc,
    For,
    If,
    LoopFunc,
    Push,
    Resize,
    SelectMemref,
    Sort,
    Stmt,
    View,
    While,
)

__all__ = ["broken_ownership"]


@dataclass(slots=True)
class _Arrays:
    """``owned`` must be freed or returned, ``freed`` is gone; a view is of its ``base``.

    ``stale`` are views of arrays that have moved since.
    """

    owned: dict[str, None] = field(default_factory=dict)
    freed: set[str] = field(default_factory=set)
    base: dict[str, str] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)

    def copy(self) -> _Arrays:
        return _Arrays(dict(self.owned), set(self.freed), dict(self.base), set(self.stale))

    def root(self, name: str) -> str:
        while name in self.base:
            name = self.base[name]
        return name

    def move(self, body: Sequence[Stmt]) -> None:
        """End the views of arrays that change their lengths in ``body``."""
        moved = {s.memref.name for s in all_statements(body) if isinstance(s, Push | Resize)}
        self.stale.update(view for view in self.base if self.root(view) in moved)


def broken_ownership(func: LoopFunc) -> Iterator[str]:
    """Yield what is wrong with the allocations of ``func`` and their ends."""
    arrays = _Arrays()
    yield from _block(func.body, arrays)
    returned = {arrays.root(memref.name) for memref in result_memrefs(func)}
    for name in sorted(returned & arrays.freed):
        yield f"{name} is returned after it was freed"
    for name in arrays.owned:
        if name not in returned:
            yield f"{name} is neither freed nor returned"


def _block(body: Sequence[Stmt], arrays: _Arrays) -> Iterator[str]:  # noqa: C901 - a case a kind
    for stmt in body:
        for memref in memrefs(stmt):
            if arrays.root(memref.name) in arrays.freed and not isinstance(stmt, Dealloc):
                yield f"{memref.name} is used after it was freed"
            if memref.name in arrays.stale:
                yield f"{memref.name} is used after its array changed its length"
        match stmt:
            case Alloc(memref) | Sort(memref):
                arrays.owned[memref.name] = None
            case Assemble():
                arrays.owned.update(dict.fromkeys(target.name for target in stmt.targets))
            case View(memref, source) | SelectMemref(memref, _, source):
                arrays.base[memref.name] = source.name
            case Dealloc(memref):
                yield from _free(memref.name, arrays)
            case For() | While() | Launch():
                yield from _loop(stmt.body, arrays)
            case LibraryCall():
                yield from _library_call(stmt, arrays)
            case If():
                yield from _branches(stmt, arrays)
            case Push() | Resize():
                arrays.move((stmt,))
            case _:
                pass


def _free(name: str, arrays: _Arrays) -> Iterator[str]:
    if name in arrays.owned:
        del arrays.owned[name]
        arrays.freed.add(name)
    elif name in arrays.freed:
        yield f"{name} is freed twice"
    else:
        yield f"{name} is freed and not owned"


def _local(inside: _Arrays, outside: _Arrays) -> Iterator[str]:
    """Yield the arrays that a block leaves behind."""
    for name in inside.owned:
        if name not in outside.owned:
            yield f"{name} is not freed at the end of its block"


def _loop(body: Sequence[Stmt], arrays: _Arrays) -> Iterator[str]:
    arrays.move(body)
    inside = arrays.copy()
    yield from _block(body, inside)
    yield from _local(inside, arrays)
    for name in arrays.owned:
        if name not in inside.owned:
            yield f"{name} is freed in a loop that did not allocate it"


def _library_call(stmt: LibraryCall, arrays: _Arrays) -> Iterator[str]:
    """Only the targets of a library call outlive its block."""
    before = set(arrays.owned)
    yield from _block(stmt.otherwise, arrays)
    kept = before | {target.name for target in stmt.targets}
    for name in list(arrays.owned):
        if name not in kept:
            yield f"{name} is not freed at the end of its block"


def _branches(stmt: If, arrays: _Arrays) -> Iterator[str]:
    then, orelse = arrays.copy(), arrays.copy()
    for block, state in ((stmt.then, then), (stmt.orelse, orelse)):
        yield from _block(block, state)
        yield from _local(state, arrays)
    arrays.stale |= then.stale | orelse.stale
    for name in list(arrays.owned):
        if (name in then.owned) != (name in orelse.owned):
            yield f"{name} is freed in one branch only"
        if name in then.freed | orelse.freed:
            arrays.owned.pop(name, None)
            arrays.freed.add(name)
