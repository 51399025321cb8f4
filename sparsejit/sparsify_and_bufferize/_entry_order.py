"""The order in which a loop nest meets entries, beside the order in which a result stores them.

In: a loop order and the levels of a result. Out: by how many levels, from the outermost, entries
have to be sorted; a stable sort by these leaves the others in order. CSR to CSC is a sort by
columns alone, since rows are met in order; CSR to COO is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sparsejit.affine import Add, AffineExpr, Constant, Dim, FloorDiv, Mod, Mul, as_linear
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder
from sparsejit.sparsify_and_bufferize._level_space import LevelSpace, Loop

__all__ = ["Atom", "Form", "levels_to_sort", "nest_order", "prefix_to_sort"]

Atom = tuple[int, str]
"""A loop as a whole (``""``), or its quotient and remainder by a block size (``"q"``, ``"r"``)."""

Form = Mapping[Atom, Fraction]
"""A linear form of atoms; a sequence of them is a lexicographic order."""


def levels_to_sort(
    space: LevelSpace, order: LoopOrder, *, backward: bool = False, repeated: bool = False
) -> int:
    """Return by how many levels of the result the entries that ``order`` meets must be sorted.

    Dense levels that come last hold blocks, and inside one there is no order, unless an element may
    come ``repeated`` and all that comes for it has to meet. ``backward``: the other levels are in
    decreasing order then.
    """
    every = space.output.levels
    stored = [number for number, level in enumerate(every) if not level.type.is_full]
    count = len(every) if repeated else max(stored, default=-1) + 1
    levels = [level.expr for level in every[:count]]
    met = nest_order(space, order)
    blocks = _block_sizes(levels)
    wanted = [_parts(expr, space.loops, blocks or {}) for expr in levels]
    if met is None or blocks is None or None in wanted:
        return len(levels)
    split = [part for form in met for part in _refined(form, blocks)]
    return prefix_to_sort(split, [forms for forms in wanted if forms is not None], backward)


def nest_order(space: LevelSpace, order: LoopOrder) -> list[Form] | None:
    """Return the order in which entries are met, None where an operand is stored in no order."""
    levels = (level for access in space.inputs for level in access.levels)
    if any(level.type.nonordered for level in levels):
        return None
    return [{(loop, ""): Fraction(1)} for loop in order.loops]


def prefix_to_sort(
    met: Sequence[Form], levels: Sequence[Sequence[Form]], backward: bool = False
) -> int:
    """Return the least number of ``levels`` to sort by, stably, so that all are in order then."""
    for count in range(len(levels)):
        known: list[tuple[Atom, Form]] = []
        for form in (form for level in levels[:count] for form in level):
            _learn(form, known)
        rest = [form for level in levels[count:] for form in level]
        if _is_led_by(met, rest, known, backward):
            return count
    return len(levels)


def _is_led_by(
    met: Sequence[Form],
    wanted: Sequence[Form],
    known: list[tuple[Atom, Form]],
    backward: bool,
) -> bool:
    """Whether entries that agree in what is ``known`` are met in the ``wanted`` order."""
    remaining = list(met)
    for form in wanted:
        target = _reduced(form, known)
        if not target:
            continue
        while remaining and not _reduced(remaining[0], known):
            remaining.pop(0)
        if not remaining:
            return False
        found = _reduced(remaining.pop(0), known)
        if found.keys() != target.keys():
            return False
        ratios = {target[atom] / found[atom] for atom in target}
        if len(ratios) != 1 or (min(ratios) < 0) != backward:
            return False
        _learn(target, known)
    return True


def _learn(form: Form, known: list[tuple[Atom, Form]]) -> None:
    """Add a form to those that are known, each with an atom that it is solved for."""
    left = _reduced(form, known)
    if left:
        pivot = min(left)
        known.append((pivot, {atom: factor / left[pivot] for atom, factor in left.items()}))


def _reduced(form: Form, known: Sequence[tuple[Atom, Form]]) -> dict[Atom, Fraction]:
    """Return what of ``form`` is not determined by what is known."""
    left = dict(form)
    for pivot, other in known:
        factor = left.get(pivot)
        if factor:
            for atom, value in other.items():
                left[atom] = left.get(atom, Fraction(0)) - factor * value
            left = {atom: value for atom, value in left.items() if value}
    return left


# ---------------------------------------------------------------- levels as forms


def _block_sizes(levels: Sequence[AffineExpr]) -> dict[int, int] | None:
    """Return the size by which the levels divide each loop; None where there are two for one."""
    sizes: dict[int, int] = {}
    for expr in levels:
        match expr:
            case FloorDiv(Dim(loop), size) | Mod(Dim(loop), size):
                if sizes.setdefault(loop, size) != size:
                    return None
            case _:
                pass
    return sizes


def _parts(expr: AffineExpr, loops: Sequence[Loop], blocks: Mapping[int, int]) -> list[Form] | None:
    """Return ``expr`` as an order of atoms, None where it is no such order."""
    match expr:
        case FloorDiv(Dim(loop), _):
            return [{(loop, "q"): Fraction(1)}]
        case Mod(Dim(loop), _):
            return [{(loop, "r"): Fraction(1)}]
        case Add(Mul(Constant(), Dim(outer)), Dim(inner)) if _is_split(loops, outer, inner):
            return [{(outer, ""): Fraction(1)}, {(inner, ""): Fraction(1)}]
        case _:
            linear = as_linear(expr)
            if linear is None:
                return None
            form = {(loop, ""): Fraction(factor) for loop, factor in linear[0].items()}
            return _refined(form, blocks)


def _is_split(loops: Sequence[Loop], outer: int, inner: int) -> bool:
    block = loops[inner].block
    return block is not None and block.outer == outer


def _refined(form: Form, blocks: Mapping[int, int]) -> list[Form]:
    """Return the form over quotients and remainders where loops are divided."""
    if len(form) == 1:
        ((loop, _),) = form
        if loop in blocks and form[loop, ""] > 0:
            return [{(loop, "q"): Fraction(1)}, {(loop, "r"): Fraction(1)}]
    made: dict[Atom, Fraction] = {}
    for (loop, part), factor in form.items():
        if loop in blocks:
            made[loop, "q"] = factor * blocks[loop]
            made[loop, "r"] = factor
        else:
            made[loop, part] = factor
    return [made]
