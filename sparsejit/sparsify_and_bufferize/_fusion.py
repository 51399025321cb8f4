"""Fused statements: generics under common loops, inner values as workspaces of an iteration.

In: the loops of a function, and which operation each outermost loop computes. Out: the same with
the nests of a group under one loop, and the groups. A group is formed behind copy insertion, of
nests as they are: no use-def chain is touched, no element is computed elsewhere or in another
order. Nests join where they are parallel over one range and each iteration only uses what the same
iteration has made (attention: the maximum, the exponentials, the sum and the product of a row).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_statements import LibraryOp
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_fusion import Fusion
from sparsejit.ir.loop_uses import roots
from sparsejit.ir.loops import Alloc, Dealloc, For, If, LoopFunc, Stmt, While
from sparsejit.ir.shared_copies import share_copies
from sparsejit.ir.tensor import Generic
from sparsejit.sparsify_and_bufferize._inner_fusion import Effects, fuse_inside, split_between
from sparsejit.sparsify_and_bufferize._iteration_workspaces import (
    Surroundings,
    Workspaces,
    with_known_extents,
)
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["Fused", "Nest", "fuse_generics", "fused_text", "nests_of"]

_FARTHEST = 64
"""How many statements a nest may move up to join another one."""

_OF_HOSTS = frozenset({LibraryOp.GEMM.value})
"""The library kernels that the CPU has, too."""

_LARGEST = 32
"""How many nests a group has at most: larger loops run short of registers, and compile for long."""


_Known = dict[int, tuple[Stmt, Effects]]
"""The effects of statements by their identity, and the statements, which keeps these apart."""


@dataclass(frozen=True, slots=True)
class Nest:
    """What an outermost loop computes: the operation of this result; ``reads`` unless it only
    fills it with a constant.
    """

    generic: str
    reads: bool


@dataclass(frozen=True, slots=True)
class Fused:
    """Generics under common loops: the variable of the outermost one, then those inside of it that
    several share. ``numbers`` and ``rows`` are the arrays that live in one iteration, as a number
    or as the part of a row.
    """

    shared_loops: tuple[str, ...]
    generics: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


def fused_text(fused: Fused) -> str:
    """Return a group as one sentence.

    >>> fused_text(Fused(("i", "p"), ("4", "7"), ("b5",), ("s4_vals",)))
    'one nest over i with %4, %7; shared inside: p; of one iteration: b5 (number), s4_vals (row)'
    """
    text = (
        f"one nest over {fused.shared_loops[0]} with {', '.join(f'%{g}' for g in fused.generics)}"
    )
    if len(fused.shared_loops) > 1:
        text += f"; shared inside: {', '.join(fused.shared_loops[1:])}"
    kept = [f"{name} (number)" for name in fused.numbers]
    kept += [f"{name} (row)" for name in fused.rows]
    return f"{text}; of one iteration: {', '.join(kept)}" if kept else text


def nests_of(op: Generic, statements: Sequence[Stmt]) -> dict[str, Nest]:
    """Return what the outermost loops of an operation compute, by their variables."""
    nest = Nest(op.result.name, bool(op.inputs))
    return {stmt.var.name: nest for stmt in statements if isinstance(stmt, For)}


def fuse_generics(
    func: LoopFunc,
    nests: Mapping[str, Nest],
    options: StageOptions,
    observe: Callable[[str, str], None] | None,
) -> LoopFunc:
    """Return ``func`` with generics under common loops, and the facts that tell of it.

    A device has its own ways to share rows: with kernels that only a device has nothing is fused.
    """
    if not options.fuse_generics or options.library_kernels - _OF_HOSTS:
        return func
    made, groups = _fused(func, nests)
    if groups and observe is not None:
        observe("copies:fused", "\n".join(map(fused_text, groups)))
    reading = {nest.generic for nest in nests.values() if nest.reads}
    told = [
        Fact(
            FactKind.FUSION,
            next(name for name in group.generics if name in reading),
            fused_text(group),
        )
        for group in groups
    ]
    return replace(made, facts=(*made.facts, *told))


def _fused(func: LoopFunc, nests: Mapping[str, Nest]) -> tuple[LoopFunc, tuple[Fused, ...]]:
    """Return ``func`` with nests fused, and the groups; ``nests`` by the variables of their loops.

    Without a group of two operations that read something, the function stays as it is.
    """
    shared = with_known_extents(share_copies(func))
    part_of = roots(shared)
    alone: frozenset[str] = frozenset()
    known: _Known = {}
    while True:
        joining = _Joining(nests, part_of, alone, known)
        body = joining.block(shared.body)
        single = joining.without_partner()
        if not single:
            break
        alone |= single
    if not joining.groups:
        return func, ()
    made = replace(shared, body=body)
    work = _WithWorkspaces(Surroundings.of(made), frozenset(joining.groups))
    made = replace(made, body=work.block(made.body))
    found: list[Fused] = []
    for outer, members in joining.groups.items():
        kept, inner = work.found[outer]
        names = dict.fromkeys(nests[member].generic for member in members)
        found.append(Fused((outer, *inner), tuple(names), kept.numbers, kept.rows))
    return made, tuple(found)


class _WithWorkspaces:
    """Gives the loops of groups what lives in one iteration, and joins loops inside of them."""

    def __init__(self, around: Surroundings, groups: frozenset[str]) -> None:
        self.found: dict[str, tuple[Workspaces, tuple[str, ...]]] = {}
        self._around = around
        self._groups = groups

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return a block with these loops, and without the arrays that are no longer needed."""
        made: list[Stmt] = []
        gone: set[str] = set()
        for stmt in body:
            match stmt:
                case For(var) if var.name in self._groups:
                    kept = self._loop(stmt)
                    gone.update(kept.numbers, kept.rows)
                    made.append(kept.loop)
                case For() | While():
                    made.append(replace(stmt, body=self.block(stmt.body)))
                case If():
                    then, orelse = self.block(stmt.then), self.block(stmt.orelse)
                    made.append(replace(stmt, then=then, orelse=orelse))
                case _:
                    made.append(stmt)
        return tuple(
            stmt
            for stmt in made
            if not (isinstance(stmt, Alloc | Dealloc) and stmt.memref.name in gone)
        )

    def _loop(self, loop: For) -> Workspaces:
        kept = Workspaces.of(loop, self._around).with_rows()
        inside, joined = fuse_inside(kept.loop, self._around.roots)
        kept = replace(kept, loop=inside).with_entries()
        self.found[loop.var.name] = kept, joined
        return kept


class _Joining:
    """Joins the loops of blocks; those in ``alone`` stay as they are."""

    def __init__(
        self,
        nests: Mapping[str, Nest],
        roots: Mapping[str, str],
        alone: frozenset[str],
        known: _Known,
    ) -> None:
        self.groups: dict[str, list[str]] = {}
        self._nests = nests
        self._roots = roots
        self._fusion = Fusion(roots)
        self._alone = alone
        self._known = known

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return a block with its loops joined, and those of the blocks of other statements."""
        made: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For(var) if var.name in self._nests:
                    if var.name in self._alone or not self._join(made, stmt):
                        made.append(stmt)
                case For() | While():
                    made.append(replace(stmt, body=self.block(stmt.body)))
                case If():
                    then, orelse = self.block(stmt.then), self.block(stmt.orelse)
                    made.append(replace(stmt, then=then, orelse=orelse))
                case _:
                    made.append(stmt)
        return tuple(made)

    def _join(self, made: list[Stmt], loop: For) -> bool:
        """Put a loop into the last nest before it that it may join, past what does not matter."""
        bounds = loop.lower, loop.upper
        for place in range(len(made) - 1, max(len(made) - _FARTHEST, 0) - 1, -1):
            first = made[place]
            if not isinstance(first, For) or (first.lower, first.upper) != bounds:
                continue
            name = first.var.name
            if name not in self._nests or name in self._alone:
                continue
            if len(self.groups.get(name, ())) >= _LARGEST:
                return False
            joined: list[Stmt] = [first]
            split = self._split(made[place + 1 :], first, loop)
            if split is None or self._fusion.append(joined, loop) is None:
                return False
            before, after = split
            made[place:] = [*before, *joined, *after]
            self._known[id(joined[0])] = joined[0], self._effects(first) | self._effects(loop)
            self.groups.setdefault(name, [name]).append(loop.var.name)
            return True
        return False

    def _split(
        self, between: Sequence[Stmt], first: For, loop: For
    ) -> tuple[list[Stmt], list[Stmt]] | None:
        return split_between(between, self._effects(first), self._effects(loop), self._effects)

    def _effects(self, stmt: Stmt) -> Effects:
        """Return what a statement reads and writes, found once."""
        known = self._known.get(id(stmt))
        if known is None:
            known = self._known[id(stmt)] = stmt, Effects.of((stmt,), self._roots)
        return known[1]

    def without_partner(self) -> frozenset[str]:
        """Return the loops of groups in which fewer than two operations read something."""
        found: set[str] = set()
        for members in self.groups.values():
            reading = {self._nests[name].generic for name in members if self._nests[name].reads}
            if len(reading) < 2:
                found.update(members)
        return frozenset(found)
