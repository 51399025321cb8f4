"""Walks that cost more than what is stored: which operands are searched instead, what is refused.

In: the loops around, and the lattice of the next one. Out: the operands to search there, or a
``GridError`` that makes other plans come first. So cost stays linear in stored entries where some
plan has that.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, dims_of
from sparsejit.errors import UnsupportedError
from sparsejit.sparsify_and_bufferize._iteration_lattice import IterationLattice
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._level_space import Access

__all__ = ["GridError", "Walks"]


class GridError(UnsupportedError):
    """A plan that would visit all coordinates of two dimensions for a sparse result.

    It is right, and as slow as if nothing were sparse: other plans come first.
    """


@dataclass(frozen=True, slots=True)
class Walks:
    """The loops ``around``, each with the operands that it walks over: none, if over everything.

    ``visits_grids`` allows what would be a ``GridError``.
    """

    kernel: Kernel
    visits_grids: bool
    around: tuple[tuple[int, frozenset[int]], ...] = ()

    def inside(self, loop: int, lattice: IterationLattice) -> Walks:
        """Return the walks inside of a loop."""
        walked = frozenset[int]() if lattice.is_full else lattice.iterators
        return replace(self, around=(*self.around, (loop, walked)))

    def searched(self, lattice: IterationLattice, state: State) -> frozenset[int]:
        """Return operands to be searched rather than walked from their beginning each time around.

        Others, which are walked from where the loops around are, say at which coordinates, whether
        or not something is to do where a searched one is absent.
        """
        begin = frozenset(k for k in lattice.iterators if state.cursors[k].level == 0)
        follow = lattice.iterators - begin
        points = [point.iterators for point in lattice.points]
        if not self.around or not begin or not all(present & follow for present in points):
            return frozenset()
        for operand in sorted(begin):
            level = self.kernel.iterator(operand, 0)
            if level.is_searchable:
                continue
            if self.visits_grids:
                return frozenset()
            raise GridError(
                f"{level.name} would be walked from its beginning for each coordinate of another",
                hint=f"convert {level.name} to a format with unique levels, for example CSR",
            )
        return begin

    def refuse(self, loop: int, lattice: IterationLattice, state: State) -> None:
        """Raise ``UnsupportedError`` where the next loop would visit much that nobody stores."""
        self._refuse_every_diagonal(loop, lattice, state)
        if not self.visits_grids:
            self._refuse_restart(lattice, state)
            self._refuse_pairs(loop, lattice, state)
            self._refuse_grid(loop, lattice, state)

    def _refuse_every_diagonal(self, loop: int, lattice: IterationLattice, state: State) -> None:
        """Refuse to visit all diagonals, and all along each, for an operand stored otherwise."""
        kernel = self.kernel
        offsets = {part.diagonal.offset for part in kernel.space.loops if part.diagonal is not None}
        if loop not in offsets or (lattice.iterators and not lattice.is_full):
            return
        for operand in state.cursors:
            if kernel.outcome(state.without(frozenset({operand}))) is None:
                name = kernel.op.inputs[operand].name
                raise UnsupportedError(
                    f"{name} would be searched at every place of every diagonal",
                    hint=f"convert {name} to DIA before",
                )
        nowhere = state.without(frozenset(state.cursors))
        if not self.visits_grids and kernel.outcome(nowhere) is None:
            raise GridError("every place of every diagonal would be visited")

    def _refuse_restart(self, lattice: IterationLattice, state: State) -> None:
        """Refuse to walk an operand from its beginning where the loops around know some of it."""
        around = {loop for loop, _ in self.around}
        for operand in sorted(lattice.iterators):
            access = self.kernel.space.inputs[operand]
            known = around & set[int]().union(*(dims_of(level.expr) for level in access.levels))
            if known and state.cursors[operand].level == 0:
                name = self.kernel.op.inputs[operand].name
                raise GridError(
                    f"{name} would be walked from its beginning for each coordinate around",
                    hint=f"convert {name} to a format in the order of the other operands",
                )

    def _refuse_pairs(self, loop: int, lattice: IterationLattice, state: State) -> None:
        """Refuse to search an operand at all pairs of what is walked here and around.

        It stores the few pairs that matter, and could say which they are in another order. It is no
        loss where an operand is walked here from where the loops around are.
        """
        kernel = self.kernel
        around = {outer for outer, _ in self.around if kernel.space.loops[outer].block is None}
        open_ = {k: at for k, at in state.cursors.items() if not kernel.is_resolved(k, at)}
        follows = any(
            cursor.level > 0 and kernel.level_expr(operand, cursor.level) == Dim(loop)
            for operand, cursor in open_.items()
            if operand in lattice.iterators
            or not kernel.iterator(operand, cursor.level).is_iterable
        )
        if not around or follows or kernel.space.loops[loop].block is not None:
            return
        for operand in sorted(open_.keys() - lattice.iterators):
            access = kernel.space.inputs[operand]
            dims = set[int]().union(*(dims_of(level.expr) for level in access.levels))
            if not access.may_be_absent or loop not in dims or not around & dims:
                continue
            if kernel.outcome(state.without(frozenset({operand}))) is None:
                name = kernel.op.inputs[operand].name
                raise GridError(
                    f"{name} would be searched at every pair of coordinates of two others",
                    hint=f"convert {name} to a format in the order of the other operands",
                )

    def _refuse_grid(self, loop: int, lattice: IterationLattice, state: State) -> None:
        """Refuse to visit every pair of coordinates of two dimensions for a sparse result.

        So it is where an operand is walked from its beginning for each coordinate around, or all
        coordinates are. It is no loss where an operand has a slot for each pair.
        """
        space = self.kernel.space
        levels = space.output.levels
        written = set[int]().union(*(dims_of(level.expr) for level in levels))
        full = set[int]().union(*(dims_of(level.expr) for level in levels if level.type.is_full))
        is_sparse = any(access.may_be_absent for access in space.inputs)
        begins = all(state.cursors[operand].level == 0 for operand in lattice.iterators)
        if not (is_sparse and loop in written and (lattice.is_full or begins)):
            return
        for outer, walked in self.around:
            in_blocks = any(space.loops[k].block is not None for k in (outer, loop))
            if in_blocks or outer not in written or {outer, loop} <= full:
                continue
            if any(_enumerates(access, outer, loop) for access in space.inputs):
                continue
            if not any(_has_slots(space.inputs[operand], loop) for operand in walked):
                raise GridError("every coordinate of two dimensions would be visited")


def _has_slots(access: Access, loop: int) -> bool:
    """Whether an operand has a slot for every coordinate of a loop, wherever it stores anything."""
    return any(level.type.is_full and level.expr == Dim(loop) for level in access.levels)


def _enumerates(access: Access, *pair: int) -> bool:
    """Whether an operand has a level without gaps over each of these loops."""
    full = [level.expr for level in access.levels if level.type.is_full]
    return access.is_sparse and all(Dim(loop) in full for loop in pair)
