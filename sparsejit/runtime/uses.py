"""How a loop function uses its arrays on a device: who reads and writes each, and how.

In: a function of kernels and library calls, and their codes. Out: ``Uses``. An array is *streamed*
by a kernel that reads each element once, or again only at once; it is *gathered* where a
coordinate picks the element, or where another loop comes back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import KernelCode, LibraryCode
from sparsejit.ir.device_statements import Launch, LibraryCall, ReadBack
from sparsejit.ir.loop_walk import all_expressions, all_statements, blocks, expressions
from sparsejit.ir.loops import (
    Alloc,
    Copy,
    Expr,
    For,
    Let,
    Load,
    LoopFunc,
    Resize,
    Scan,
    Search,
    Sort,
    SortPrefix,
    Stmt,
    Var,
    View,
    While,
)

__all__ = ["Use", "Uses", "gathered", "uses_of"]


@dataclass(frozen=True, slots=True)
class Use:
    """One use of an array, in top-level statement ``place``.

    ``user`` names the kernel or library call. ``gathered`` says why its elements are not read
    once, in order; of a write, ``is_update`` says that elements are read or changed by atomics.
    ``is_fallback`` marks what runs only where a library refuses, ``is_repeated`` what is in a loop
    of the host.
    """

    place: int
    user: str
    is_write: bool = False
    gathered: str = ""
    is_library: bool = False
    is_update: bool = False
    is_repeated: bool = False
    is_fallback: bool = False


@dataclass(slots=True)
class Uses:
    """The uses of each array by the name of its root: a view is part of what it views."""

    of: dict[str, list[Use]] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    library_names: dict[int, str] = field(default_factory=dict)

    def root(self, name: str) -> str:
        """Return the array that a name is part of."""
        while name in self.roots:
            name = self.roots[name]
        return name

    def reads(self, name: str) -> list[Use]:
        """Return the uses that read an array."""
        return [use for use in self._usual(name) if not use.is_write]

    def writes(self, name: str) -> list[Use]:
        """Return the uses that write an array."""
        return [use for use in self._usual(name) if use.is_write]

    def _usual(self, name: str) -> list[Use]:
        return [use for use in self.of.get(self.root(name), ()) if not use.is_fallback]

    def last(self, name: str) -> int:
        """Return the top-level statement behind which an array is not used, -1 for no use."""
        return max((use.place for use in self.of.get(self.root(name), ())), default=-1)

    def used_in(self, place: int) -> set[str]:
        """Return the roots that a top-level statement uses."""
        return {name for name, uses in self.of.items() if any(u.place == place for u in uses)}


def uses_of(
    func: LoopFunc, kernels: Mapping[str, KernelCode], libraries: Mapping[int, LibraryCode]
) -> Uses:
    """Return the uses of the arrays of ``func``; ``libraries`` has codes by the ``id`` of calls."""
    found = Uses()
    for stmt in all_statements(func.body):
        if isinstance(stmt, View):
            found.roots[stmt.memref.name] = stmt.source.name
        if isinstance(stmt, LibraryCall):
            number = len(found.library_names)
            found.library_names[id(stmt)] = f"{stmt.op.name.lower()}{number}"
    for place, stmt in enumerate(func.body):
        for name, use in _uses(stmt, place, False, kernels, libraries, found):
            found.of.setdefault(found.root(name), []).append(use)
    return found


def _uses(
    stmt: Stmt,
    place: int,
    is_repeated: bool,
    kernels: Mapping[str, KernelCode],
    libraries: Mapping[int, LibraryCode],
    found: Uses,
) -> Iterator[tuple[str, Use]]:
    match stmt:
        case Launch(kernel, _, body):
            yield from _of_kernel(kernels[kernel], gathered(body), place, is_repeated)
            return
        case LibraryCall() if id(stmt) in libraries:
            code, user = libraries[id(stmt)], found.library_names[id(stmt)]
            yield from _of_library(code, user, place, is_repeated)
            for inner in stmt.otherwise:
                for name, use in _uses(inner, place, is_repeated, kernels, libraries, found):
                    yield name, replace(use, is_fallback=True)
            return
        case Alloc(memref, _, fill) if fill is not None:
            found.filled.add(memref.name)
        case _:
            yield from _of_statement(stmt, place, is_repeated)
    inside = is_repeated or isinstance(stmt, For | While)
    for block in blocks(stmt):
        for inner in block:
            yield from _uses(inner, place, inside, kernels, libraries, found)


def _of_kernel(
    code: KernelCode, reasons: Mapping[str, str], place: int, is_repeated: bool
) -> Iterator[tuple[str, Use]]:
    for name in sorted(code.reads):
        reason = f"{code.entry} gathers it, {reasons[name]}" if name in reasons else ""
        yield name, Use(place, code.entry, False, reason, is_repeated=is_repeated)
    for name in sorted(code.writes):
        is_update = name in code.updates
        yield name, Use(place, code.entry, True, is_update=is_update, is_repeated=is_repeated)


def _of_library(
    code: LibraryCode, user: str, place: int, is_repeated: bool
) -> Iterator[tuple[str, Use]]:
    for name in sorted(code.reads):
        reason = "" if name in code.streamed else f"{user} may read it in any order"
        yield name, Use(place, user, False, reason, True, is_repeated=is_repeated)
    for name in sorted(code.writes):
        yield name, Use(place, user, True, "", True, True, is_repeated)


def _of_statement(stmt: Stmt, place: int, is_repeated: bool) -> Iterator[tuple[str, Use]]:
    match stmt:
        case Copy(target, source):
            yield source.name, Use(place, "a copy", is_repeated=is_repeated)
            yield target.name, Use(place, "a copy", True, is_update=True, is_repeated=is_repeated)
        case Scan(memref) | SortPrefix(memref):
            yield memref.name, Use(place, "a scan or sort", True, "", True, True, is_repeated)
        case Resize(memref):
            yield memref.name, Use(place, "a change of size", True, is_repeated=is_repeated)
        case Sort():
            for memref in stmt.coordinates:
                yield memref.name, Use(place, "a sort", False, "entries are sorted by it", True)
        case ReadBack(_, memref):
            yield memref.name, Use(place, "the host", False, "one element is read back")
        case _:
            return


# ---------------------------------------------------------------- streamed or gathered


def gathered(body: Sequence[Stmt]) -> dict[str, str]:
    """Return, for each array that a kernel reads out of order or again and again, why.

    >>> from sparsejit.ir.loops import Lit, Memref, Store
    >>> from sparsejit.ir.scalar import Const
    >>> from sparsejit.ir.types import INDEX, DType
    >>> y, x, c = (Memref(n, INDEX, 1) for n in "yxc")
    >>> i = Var("i", INDEX)
    >>> store = Store(y, (i,), Load(x, (Load(c, (i,)),)))
    >>> gathered((For(i, Lit(Const(0, INDEX)), Var("n", INDEX), (store,), True),))
    {'x': 'c picks the elements'}
    """
    found: dict[str, str] = {}
    _visit(body, (), {}, found)
    return found


def _visit(
    body: Sequence[Stmt],
    loops: tuple[For | While, ...],
    values: dict[str, Expr],
    found: dict[str, str],
) -> None:
    for stmt in body:
        for outer in expressions(stmt):
            for expr in all_expressions(outer):
                _read(expr, loops, values, found)
        if isinstance(stmt, Let) and not stmt.mutable:
            values[stmt.var.name] = stmt.value
        inside = (*loops, stmt) if isinstance(stmt, For | While) else loops
        for block in blocks(stmt):
            _visit(block, inside, values, found)


def _read(
    expr: Expr,
    loops: tuple[For | While, ...],
    values: Mapping[str, Expr],
    found: dict[str, str],
) -> None:
    match expr:
        case Load(memref, indices):
            reason = _why_gathered(indices, loops, values)
            if reason:
                found.setdefault(memref.name, reason)
        case Search(coordinates):
            found.setdefault(coordinates.name, "it is searched")
        case _:
            return


def _why_gathered(
    indices: Sequence[Expr], loops: Sequence[For | While], values: Mapping[str, Expr]
) -> str:
    used, picked = _variables(indices, values)
    if picked:
        return f"{picked} picks the elements"
    # The loops around, innermost first: behind one that walks the array none may stand still.
    walked = False
    for loop in reversed(loops):
        if isinstance(loop, While):
            return "" if walked or used else "it is read in each pass"
        if loop.var.name in used:
            walked = True
            outer, _ = _variables((loop.lower, loop.upper), values)
            used |= outer
        elif walked:
            return f"loop {loop.var.name} comes back to it"
    return ""


def _variables(exprs: Sequence[Expr], values: Mapping[str, Expr]) -> tuple[set[str], str]:
    """Return the variables behind expressions, and an array whose elements enter them."""
    names: set[str] = set()
    picked = ""
    pending = list(exprs)
    while pending:
        for expr in all_expressions(pending.pop()):
            match expr:
                case Var(name) if name not in names:
                    names.add(name)
                    if name in values:
                        pending.append(values[name])
                case Load(memref) | Search(memref):
                    picked = picked or memref.name
                case _:
                    pass
    return names, picked
