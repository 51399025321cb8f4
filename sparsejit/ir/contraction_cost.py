"""What an order of a product costs, by extents and stored counts.

In: a chain, and ``Estimates`` of the extents and of what the parameters store. Out: ``Costs`` of
its orders: the number of products that an order visits and the entries of the intermediates that
it forms, as if entries were spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations
from math import exp, prod

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, dims_of, evaluate, substitute
from sparsejit.formats import CSR, Dense, Format, Level, LevelKind, LevelType
from sparsejit.ir.contraction import Chain, Tree, leaves_of
from sparsejit.ir.tensor import Convert, Generic, TensorFunc, Value
from sparsejit.ir.walk import definitions

__all__ = [
    "Costs",
    "Counts",
    "Estimates",
    "intermediate_format",
    "kept_indices",
    "subtrees",
]

_ENTRY = 8.0
"""What forming a sparse entry of an intermediate costs, in products: it is sorted and stored."""

_TYPICAL_EXTENT = 1 << 12
_TYPICAL_STORED = 1 << 15


@dataclass(frozen=True, slots=True)
class Estimates:
    """What is known of a call: the value of each extent symbol, what each parameter stores.

    >>> Estimates((1000, 7), (3000,)).bucketed
    Estimates(extents=(1024, 8), stored=(4096,))
    """

    extents: tuple[int, ...]
    stored: tuple[int, ...]

    @staticmethod
    def typical(func: TensorFunc) -> Estimates:
        """Return what is assumed where nothing is known: large extents, eight entries a row."""
        return Estimates(
            (_TYPICAL_EXTENT,) * func.num_extents, (_TYPICAL_STORED,) * len(func.params)
        )

    @property
    def bucketed(self) -> Estimates:
        """The same, each number rounded to a power of two, so that few answers are possible."""
        return Estimates(tuple(map(_bucket, self.extents)), tuple(map(_bucket, self.stored)))


def _bucket(number: int) -> int:
    """Return the power of two that is nearest by ratio; 0 and 1 stay.

    >>> [_bucket(n) for n in (0, 1, 2, 3, 5, 6, 1000)]
    [0, 1, 2, 4, 4, 8, 1024]
    """
    if number < 2:
        return number
    low = 1 << (number.bit_length() - 1)
    return low if number * number < 2 * low * low else 2 * low


def intermediate_format(
    parts: Sequence[tuple[tuple[int, ...], Format]], kept: tuple[int, ...]
) -> Format:
    """Return the format of what an operation forms that is not the last of its chain.

    ``parts`` are the indices and format of each operand, ``kept`` the indices of the result. What
    no sparse operand covers is dense, and so is a matrix that sparse operands cover in part;
    matrices of one format keep it.
    """
    sparse = [(index, fmt) for index, fmt in parts if not fmt.is_all_full]
    covered = {i for index, _ in sparse for i in index}
    if len(kept) < 2 or not set(kept) & covered:
        return Dense(len(kept))
    if len(kept) == 2:
        if not set(kept) <= covered:
            return Dense(2)
        formats = [_oriented(index, fmt, kept) for index, fmt in sparse]
        same = all(fmt == formats[0] for fmt in formats)
        return formats[0] if same and formats[0] is not None else CSR
    types = [LevelKind.COMPRESSED if i in covered else LevelKind.DENSE for i in kept]
    order = sorted(range(len(kept)), key=lambda d: types[d] is LevelKind.DENSE)
    return Format.of(len(kept), tuple(Level(Dim(d), LevelType(types[d])) for d in order))


def _oriented(index: tuple[int, ...], fmt: Format, kept: tuple[int, ...]) -> Format | None:
    """Return a factor's plain matrix format as seen from the result; None if it has none."""
    plain = {LevelKind.DENSE, LevelKind.COMPRESSED, LevelKind.SINGLETON}
    if fmt.ndim != 2 or any(
        level.type.kind not in plain or not isinstance(level.expr, Dim) for level in fmt.levels
    ):
        return None
    swapped = index[0] == kept[1] or index[1] == kept[0]
    moved = {0: Dim(1), 1: Dim(0)} if swapped else {0: Dim(0), 1: Dim(1)}
    levels = tuple(Level(substitute(level.expr, moved), level.type) for level in fmt.levels)
    return Format.of(2, levels)


# ---------------------------------------------------------------- counts


class Counts:
    """How many entries values store, as far as that can be guessed."""

    def __init__(self, func: TensorFunc, numbers: Estimates) -> None:
        symbols = dict(enumerate(numbers.extents))
        symbols.update(dict.fromkeys(range(func.num_extents, len(func.symbols)), 1))
        self.symbols: Mapping[int, int] = symbols
        self._made = definitions(func)
        self._known = {
            param.name: float(count)
            for param, count in zip(func.params, numbers.stored, strict=True)
        }

    def note(self, value: Value, count: float) -> None:
        """Remember the count of a value."""
        self._known[value.name] = count

    def of(self, value: Value) -> float:
        """Return the entries that ``value`` stores, at most its elements."""
        whole = float(prod(evaluate(extent, self.symbols) for extent in value.type.shape))
        if value.type.format.is_all_full:
            return whole
        known = self._known.get(value.name)
        if known is None:
            known = self._guessed(value)
            self._known[value.name] = known
        return min(whole, known)

    def _guessed(self, value: Value) -> float:
        match self._made.get(value.name):
            case Convert(source=source):
                return self.of(source)
            case Generic(inputs=inputs):
                sparse = [v for v in inputs if not v.type.format.is_all_full]
                return sum(self.of(v) for v in sparse) if sparse else float(_TYPICAL_STORED)
            case _:
                return float(_TYPICAL_STORED)


# ---------------------------------------------------------------- costs


class Costs:
    """The costs of the orders of one chain; ``is_open`` where another order keeps the pattern."""

    def __init__(self, chain: Chain, counts: Counts) -> None:
        self.chain = chain
        self._sizes = [float(max(1, evaluate(e, counts.symbols))) for e in chain.extents]
        self._stored = [counts.of(leaf.value) for leaf in chain.leaves]
        self.whole = frozenset(range(len(chain.leaves)))
        self._sampler = chain.sampler
        self._sampled = counts.of(chain.sampler.value) if chain.sampler is not None else 0.0
        # What the search asks for again and again.
        self.kept = cache(self._kept)
        self.entries = cache(self._entries)
        self._format = cache(self._format_of)
        self._is_dense = chain.root.init.type.format.is_all_full
        exact = self._is_dense or all(map(_keeps_pattern, chain.inner))
        self.is_open = exact

    def of_tree(self, tree: Tree) -> float:
        """Return the cost of an order."""
        if isinstance(tree, int):
            return 0.0
        parts = [frozenset(leaves_of(part)) for part in tree]
        return self.step(parts) + sum(map(self.of_tree, tree))

    def _entries(self, leaves: frozenset[int]) -> float:
        """Return how many entries the product of some leaves stores, summed where it can be."""
        if len(leaves) == 1:
            (leaf,) = leaves
            return self._stored[leaf]
        space = prod(self._sizes[i] for i in self.kept(leaves))
        if self._format(leaves).is_all_full:
            return space
        return _distinct(space, self._visits([frozenset({leaf}) for leaf in leaves]))

    def _kept(self, leaves: frozenset[int]) -> tuple[int, ...]:
        """Return the indices that the product of some leaves still has, in order of appearance."""
        return kept_indices(self.chain, leaves)

    def _format_of(self, leaves: frozenset[int]) -> Format:
        chain = self.chain
        if len(leaves) == 1:
            (leaf,) = leaves
            return chain.leaves[leaf].value.type.format
        if leaves == self.whole:
            return chain.root.init.type.format
        parts = [(chain.leaves[k].index, chain.leaves[k].value.type.format) for k in sorted(leaves)]
        return intermediate_format(parts, self.kept(leaves))

    def step(self, parts: Sequence[frozenset[int]]) -> float:
        """Return the cost of multiplying these parts in one operation."""
        result = frozenset[int]().union(*parts)
        sparse = [part for part in parts if not self._format(part).is_all_full]
        visited = self._visits(parts) if len(parts) == 2 else self._nested_visits(parts)
        cost = visited + sum(map(self.entries, sparse))
        kept = self.kept(result)
        space = prod(self._sizes[i] for i in kept)
        if self._format(result).is_all_full:
            return cost if self._samples(result) else cost + space / _ENTRY
        made = _distinct(space, self._visits(parts))
        return cost + _ENTRY * made + 2 * (self._sizes[kept[0]] if kept else 1.0)

    def _samples(self, result: frozenset[int]) -> bool:
        return result == self.whole and self._sampler is not None

    def _nested_visits(self, parts: Sequence[frozenset[int]]) -> float:
        """Return how many products are computed when operands are entered one inside the other.

        In the best order that their storage allows: an operand is entered where the indices of its
        outer levels are known. Without such an order one is converted first.
        """
        found: float | None = None
        for order in permutations(parts):
            known: set[int] = set()
            total = 0.0
            for number, part in enumerate(order):
                index = self._levels(part)
                new = [i not in known for i in index]
                if True in new and False in new[new.index(True) :]:
                    break
                known.update(index)
                total += self._visits(order[: number + 1])
            else:
                found = total if found is None else min(found, total)
        if found is None:
            return 2 * sum(self._visits(parts[: number + 1]) for number in range(len(parts)))
        return found

    def _levels(self, part: frozenset[int]) -> tuple[int, ...]:
        """Return the indices of an operand in the order of its levels, none for a dense one."""
        fmt, kept = self._format(part), self.kept(part)
        if len(part) == 1:
            (leaf,) = part
            kept = self.chain.leaves[leaf].index
        if fmt.is_all_full:
            return ()
        dims = dict.fromkeys(d for level in fmt.levels for d in sorted(dims_of(level.expr)))
        return tuple(kept[d] for d in dims)

    def _visits(self, parts: Sequence[frozenset[int]]) -> float:
        """Return how many products are computed, with entries spread evenly."""
        factors = [(self.kept(part), self.entries(part)) for part in parts]
        if self._samples(frozenset[int]().union(*parts)) and self._sampler is not None:
            factors.append((self._sampler.index, self._sampled))
        indices = {i for index, _ in factors for i in index}
        total = prod(self._sizes[i] for i in indices)
        for index, stored in factors:
            total *= min(1.0, stored / prod(self._sizes[i] for i in index))
        return total

    def is_exact(self, leaves: frozenset[int]) -> bool:
        """Whether the product of some leaves stores no more than what the leaves make."""
        if leaves == self.whole or self._is_dense:
            return True  # a dense result does not tell
        full = all(self.chain.leaves[k].value.type.format.is_all_full for k in leaves)
        return full or not self._format(leaves).is_all_full


def _keeps_pattern(op: Generic) -> bool:
    """Whether an operation stores no more than what its operands make."""
    full = all(value.type.format.is_all_full for value in op.inputs)
    return full or not op.init.type.format.is_all_full


def subtrees(tree: Tree) -> Iterator[tuple[Tree, ...]]:
    """Yield the operations of an order, each as its parts, the last one first."""
    if not isinstance(tree, int):
        yield tree
        for part in tree:
            yield from subtrees(part)


def kept_indices(chain: Chain, leaves: frozenset[int]) -> tuple[int, ...]:
    """Return the indices of a product of leaves that are still needed: outside, or in the result.

    In the order of the leaves, so that ``A @ B`` is formed row by row.
    """
    outside = set(chain.output)
    for number, leaf in enumerate(chain.leaves):
        if number not in leaves:
            outside.update(leaf.index)
    found = dict.fromkeys(i for number in sorted(leaves) for i in chain.leaves[number].index)
    return tuple(i for i in found if i in outside)


def _distinct(space: float, visits: float) -> float:
    """Return how many different places ``visits`` random ones in ``space`` are."""
    if space <= 0:
        return 0.0
    return space * (1.0 - exp(-visits / space)) if visits > space / 64 else visits
