"""Random statements of index notation: affine places, coordinates, reductions and patterns."""

from __future__ import annotations

import random

from tests.programs.language import At, Coord, IndexExpr, IndexUpdate, Load, Over, Place
from tests.programs.scope import Scope, Shape

__all__ = ["REDUCTIONS", "index_statement"]

REDUCTIONS = ("sum", "sum", "min", "max", "prod", "any", "all", "argmin", "argmax")


def index_statement(name: str, is_fresh: bool, scope: Scope, rng: random.Random) -> IndexUpdate:
    """Return a statement of index notation that assigns to ``name``."""
    drawing = _IndexDrawing(scope, rng)
    if is_fresh:
        at: At = tuple(Place(index) for index in rng.sample("ijk", rng.randint(0, 3)))
        op = "="
    else:
        at = drawing.at(scope.shapes[name])
        op = rng.choice(["=", "=", "+=", "-="])
    if name in scope.patterns and name in scope.sparse:
        at = tuple(Place(index) for index in "ijk"[: len(at)])
        drawing.extents = dict(zip("ijk", scope.shapes[name], strict=False))
        inner = Over("sj.where_stored({0}, {1})", (Load(name, at), drawing.term()))
        return IndexUpdate(name, at, op, (("+", inner),))
    drawing.left = {index for place in at for index in place.indices}
    terms = [(rng.choice("++-") if n else "+", drawing.term()) for n in range(2)]
    count = 1 if rng.random() < 0.6 else 2
    return IndexUpdate(name, at, op, tuple(terms[:count]), is_fresh)


class _IndexDrawing:
    """Draws the terms of one statement; ``extents`` are those that its indices have so far."""

    def __init__(self, scope: Scope, rng: random.Random) -> None:
        self.scope = scope
        self.rng = rng
        self.extents: dict[str, int] = {}
        self.left: set[str] = set()

    def at(self, shape: Shape, repeat: bool = False) -> At:
        """Return a place for each dimension of a shape, mostly with indices that fit."""
        places: list[Place] = []
        for extent in shape:
            taken = {index for place in places for index in place.indices}
            places.append(self._place(extent, set() if repeat else taken))
        return tuple(places)

    def _place(self, extent: int, taken: set[str]) -> Place:
        rng = self.rng
        fitting = [i for i in "ijk" if self.extents.get(i, extent) == extent and i not in taken]
        index = rng.choice(fitting or [i for i in "ijk" if i not in taken] or ["i"])
        kind = rng.random()
        if extent and kind < 0.08:
            return Place("", rng.randrange(extent))
        if extent > 1 and kind < 0.16:
            return Place(index, 1)
        if extent > 1 and kind < 0.2:
            return Place(index, rng.randrange(2), 2)
        if extent > 1 and kind < 0.23:
            other = rng.choice([other for other in "ijk" if other != index])
            return Place(index, rng.randrange(2), rng.choice([1, 1, 2]), other)
        self.extents.setdefault(index, extent)
        return Place(index)

    def _load(self) -> Load:
        names = [n for n in sorted(self.scope.shapes) if len(self.scope.shapes[n]) < 4]
        name = self.rng.choice(names or sorted(self.scope.shapes))
        return Load(name, self.at(self.scope.shapes[name], self.rng.random() < 0.15))

    def _convolution(self) -> IndexExpr:
        """Return a convolution in one or two dimensions, with or without strides and dilation."""
        rng, shapes = self.rng, self.scope.shapes
        arrays = [name for name, shape in sorted(shapes.items()) if shape and len(shape) < 4]
        if not arrays:
            return self._load()
        data, kernel = rng.choice(arrays), rng.choice(arrays)
        stride, dilation = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2)])
        moved = Place("i", 0, stride, "j") if dilation == 1 else Place("j", 0, dilation, "i")
        rest = tuple(Place("k", rng.randrange(2)) for _ in shapes[data][1:2])
        layout = (*rest, moved) if rng.random() < 0.3 else (moved, *rest)
        weights = (Place("j"), Place("k"), Place("k"))[: len(shapes[kernel])]
        return Over("{0} * {1}", (Load(data, layout), Load(kernel, weights)))

    def term(self) -> IndexExpr:
        """Return one term."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.1:
            return self._convolution()
        one = self._load()
        if kind < 0.18:
            return one
        if kind < 0.28:
            template = rng.choice(["np.abs({0})", "np.maximum({0}, 0)", "(2 * {0})", "({0} > 1)"])
            return Over(template, (one,))
        if kind < 0.38:
            # Sums are terms of their own, so a coordinate is added as a term.
            coordinate = Coord(rng.choice("ijk"))
            template = rng.choice(["{0} * {1}", "sj.where({1} > 0, {0}, 0)", ""])
            return Over(template, (one, coordinate)) if template else coordinate
        if kind < 0.52:
            return Over("{0} * {1}", (one, self._load()))
        if kind < 0.56:
            return Over("{0} * {1} * {2}", (one, self._load(), self._load()))
        if kind < 0.63 and self.scope.patterns:
            mask = rng.choice(sorted(self.scope.patterns))
            at = self.at(self.scope.shapes[mask])
            return Over("sj.where_stored({0}, {1})", (Load(mask, at), self._load()))
        inner: IndexExpr = one if kind < 0.8 else Over("{0} * {1}", (self._load(), one))
        indices = sorted({place.index for place in one.at if place.is_plain} - self.left)
        reduced = Over("{0}", (inner,), rng.choice(indices or ["j"]), rng.choice(REDUCTIONS))
        if kind < 0.93:
            return reduced
        return Over("{0} * {1}", (self._load(), reduced))
