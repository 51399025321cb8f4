"""Iteration lattices: which combinations of stored operands a loop must visit, and to compute what.

Enters, for one loop, the iterators (operands with a level to iterate there) and a function that
says what the body is when exactly some of them are present; leaves an ``IterationLattice``: points
from the largest set of iterators to the smallest, each with its outcome. A coordinate is handled by
the first point whose iterators all have it. Source: TACO's merge lattices, MLIR's Merger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from sparsejit._dataclasses import dataclass
from sparsejit.errors import UnsupportedError
from sparsejit.ir.simplify import Partial

__all__ = ["MAX_ITERATORS", "IterationLattice", "LatticePoint", "lattice_of", "lattice_text"]

MAX_ITERATORS = 7
"""More operands than this at one loop would make more than a hundred cases."""


@dataclass(frozen=True, slots=True)
class LatticePoint:
    """``iterators`` are the operands present here; ``outcome`` is None where nothing is to do."""

    iterators: frozenset[int]
    outcome: Partial | None


@dataclass(frozen=True, slots=True)
class IterationLattice:
    """Points, largest first; closed under union, so that each loop over a point can be left.

    ``is_full``: something is to do even where no iterator is present, so that the loop must visit
    every coordinate; the last point then has no iterators.
    """

    points: tuple[LatticePoint, ...]

    @property
    def iterators(self) -> frozenset[int]:
        """All iterators of the lattice."""
        return self.points[0].iterators if self.points else frozenset()

    @property
    def is_full(self) -> bool:
        """Whether every coordinate of the loop must be visited."""
        return bool(self.points) and not self.points[-1].iterators

    def below(self, point: LatticePoint) -> tuple[LatticePoint, ...]:
        """Return the points that can occur while the iterators of ``point`` last, largest first."""
        return tuple(other for other in self.points if other.iterators <= point.iterators)


Outcome = Callable[[frozenset[int]], Partial | None]


def lattice_of(iterators: Sequence[int], outcome_of: Outcome) -> IterationLattice:
    """Return the smallest lattice that handles every combination of ``iterators`` rightly.

    ``outcome_of(present)`` is what is left of the body where just those are present (None:
    nothing). ``UnsupportedError`` for more than ``MAX_ITERATORS``.
    """
    if len(iterators) > MAX_ITERATORS:
        raise UnsupportedError(
            f"{len(iterators)} sparse operands meet in one loop",
            hint=f"at most {MAX_ITERATORS} can; split the expression into several statements",
        )
    subsets = [
        frozenset(chosen)
        for size in range(len(iterators), -1, -1)
        for chosen in combinations(sorted(iterators), size)
    ]
    outcomes = {subset: outcome_of(subset) for subset in subsets}
    kept = list(subsets)
    removed = True
    while removed:  # what closure under union holds back may go once smaller points have gone
        removed = False
        for candidate in list(kept):
            rest = [subset for subset in kept if subset != candidate]
            if _handles_all(rest, subsets, outcomes):
                kept, removed = rest, True
    points = tuple(LatticePoint(subset, outcomes[subset]) for subset in kept)
    return IterationLattice(points)


def _handles_all(
    kept: Sequence[frozenset[int]],
    subsets: Sequence[frozenset[int]],
    outcomes: dict[frozenset[int], Partial | None],
) -> bool:
    """Whether dispatch to the first point that fits gives every combination its outcome.

    Combinations that no point fits are passed over: nothing may be to do there. Points must be
    closed under union, or a loop over one would leave an iterator of another behind.
    """
    members = set(kept)
    if any(a | b not in members for a, b in combinations(kept, 2)):
        return False
    for present in subsets:
        chosen = next((point for point in kept if point <= present), None)
        found = outcomes[chosen] if chosen is not None else None
        if found != outcomes[present]:
            return False
    return True


def lattice_text(lattice: IterationLattice, names: Sequence[str]) -> str:
    """Return one line a point, for golden tests and dumps.

    >>> from sparsejit.ir.scalar import Arg
    >>> from sparsejit.ir.simplify import Known
    >>> both = lattice_of([0, 1], lambda present: Known(Arg(0)) if len(present) == 2 else None)
    >>> print(lattice_text(both, ("A", "B")))
    {A, B}
    """
    lines = []
    for point in lattice.points:
        chosen = ", ".join(names[iterator] for iterator in sorted(point.iterators))
        lines.append(f"{{{chosen}}}" + ("" if point.outcome is not None else " nothing"))
    return "\n".join(lines)
