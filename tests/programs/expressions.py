"""Random expressions over the names of a program, of a wanted shape where that is possible."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.programs.language import (
    Apply,
    Expr,
    IndexExpr,
    IndexUpdate,
    Item,
    Key,
    Load,
    Num,
    Over,
    Var,
)

__all__ = ["ExpressionDrawing", "Scope"]

Shape = tuple[int, ...]

UNARY = (
    "-{0}", "np.abs({0})", "np.sign({0})", "np.minimum(np.maximum({0}, -8), 8)", "({0} // 2)",
    "np.maximum({0}, 0)", "np.where({0} > 1, {0}, 0)", "(2 * {0})",
)  # fmt: skip
BINARY = (
    "({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} * {1})", "np.maximum({0}, {1})",
    "np.minimum({0}, {1})", "np.where({0} > {1}, {0}, {1})",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """The shapes of names; which may be sparse; which are sparse arguments, with a pattern."""

    shapes: dict[str, Shape]
    sparse: frozenset[str]
    patterns: frozenset[str]


class ExpressionDrawing:
    """Draws expressions over one scope."""

    def __init__(self, scope: Scope, rng: random.Random) -> None:
        self.scope = scope
        self.rng = rng
        self.extents = sorted({e for shape in scope.shapes.values() for e in shape}) or [1]

    def shape(self) -> Shape:
        """Return the shape of some name, or of a product of two."""
        shapes = [shape for shape in self.scope.shapes.values() if shape]
        return self.rng.choice(shapes) if shapes else ()

    def narrower(self, shape: Shape) -> Shape:
        """Return a shape that broadcasts to this one, mostly itself."""
        return shape[1:] if shape and self.rng.random() < 0.15 else shape

    def key(self, shape: Shape) -> tuple[Key, Shape]:
        """Return a subscript of an array of this shape, and the shape of what it selects."""
        parts: list[object] = []
        kept: list[int] = []
        for extent in shape:
            part, left = self._key_part(extent)
            parts.append(part)
            kept += left
        while len(parts) > 1 and parts[-1] == (None, None, None) and self.rng.random() < 0.7:
            parts.pop()
        return tuple(parts), tuple(kept)

    def _key_part(self, extent: int) -> tuple[object, list[int]]:
        kind = self.rng.random()
        if kind < 0.35:
            return (None, None, None), [extent]
        if kind < 0.55 and extent:
            return self.rng.randrange(-extent, extent), []
        if kind < 0.65:
            return (None, None, -1), [extent]
        if kind < 0.75:
            return (None, None, 2), [(extent + 1) // 2]
        if kind < 0.9 and extent:
            return (1, None, None), [extent - 1]
        return (None, -1, None), [max(extent - 1, 0)]

    def transposed(self, expr: Expr) -> Expr:
        """Return the transpose."""
        return Apply("{0}.T", (expr,))

    # ------------------------------------------------------------ array expressions

    def expression(self, shape: Shape, depth: int) -> Expr:
        """Return an expression, of this shape unless nothing has it."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.15:
            return self._leaf(shape)
        if kind < 0.3:
            return Apply(self.rng.choice(UNARY), (self.expression(shape, depth - 1),))
        if kind < 0.6:
            other = shape if self.rng.random() < 0.7 else self.narrower(shape)
            parts = (self.expression(shape, depth - 1), self.expression(other, depth - 1))
            return Apply(self.rng.choice(BINARY), parts)
        return self._structured(shape, depth - 1)

    def _structured(self, shape: Shape, depth: int) -> Expr:
        """Return a product, a reduction, a transpose or something at a pattern."""
        extent = self.rng.choice(self.extents)
        kind = self.rng.random()
        patterns = [name for name in sorted(self.scope.patterns) if self._shape(name) == shape]
        if patterns and kind < 0.45:
            parts = (Var(self.rng.choice(patterns)), self.expression(shape, depth))
            return Apply(self.rng.choice(["sj.where_stored({0}, {1})", "({0} * {1})"]), parts)
        if len(shape) == 2:
            return self._matrix(shape, extent, depth)
        if len(shape) == 1:
            return self._vector(shape, extent, depth)
        if not shape:
            inner = self.expression(self.shape(), depth)
            return Apply(self.rng.choice(["{0}.sum()", "np.sum({0})"]), (inner,))
        return Apply("({0} * {1})", (self.expression(shape, depth), self._leaf(shape[1:])))

    def _matrix(self, shape: Shape, extent: int, depth: int) -> Expr:
        rows, columns = shape
        match self.rng.randrange(5):
            case 0 | 1:
                template = self.rng.choice(["({0} @ {1})", "sj.einsum('ij,jk->ik', {0}, {1})"])
                parts = (
                    self.expression((rows, extent), depth),
                    self.expression((extent, columns), depth),
                )
                return Apply(template, parts)
            case 2:
                return self.transposed(self.expression((columns, rows), depth))
            case 3:
                parts = (self.expression((rows,), depth), self.expression((columns,), depth))
                return Apply("({0}[:, None] * {1})", parts)
            case _:
                inner = self.expression((rows, columns, extent), depth)
                return Apply("{0}.sum(axis=2)", (inner,))

    def _vector(self, shape: Shape, extent: int, depth: int) -> Expr:
        (rows,) = shape
        match self.rng.randrange(5):
            case 0 | 1:
                template = self.rng.choice(["({0} @ {1})", "sj.einsum('ij,j->i', {0}, {1})"])
                parts = (self.expression((rows, extent), depth), self.expression((extent,), depth))
                return Apply(template, parts)
            case 2:
                return Apply("{0}.sum(axis=0)", (self.expression((extent, rows), depth),))
            case 3:
                return Apply("{0}.sum(axis=1)", (self.expression((rows, extent), depth),))
            case _:
                return Apply("np.diagonal({0})", (self.expression((rows, rows), depth),))

    def _shape(self, name: str) -> Shape:
        return self.scope.shapes[name]

    def _leaf(self, shape: Shape) -> Expr:
        names = [name for name in sorted(self.scope.shapes) if self._shape(name) == shape]
        if names and self.rng.random() < 0.75:
            return Var(self.rng.choice(names))
        turned = [n for n in sorted(self.scope.shapes) if self._shape(n) == shape[::-1]]
        if len(shape) == 2 and turned and self.rng.random() < 0.5:
            return self.transposed(Var(self.rng.choice(turned)))
        for _ in range(6):
            name = self.rng.choice(sorted(self.scope.shapes))
            if len(self._shape(name)) >= max(len(shape), 1):
                key, kept = self.key(self._shape(name))
                if kept == shape:
                    return Item(Var(name), key)
        if names:
            return Var(self.rng.choice(names))
        return Num(self.rng.choice([1, 2, -1, 2.0]))

    # ------------------------------------------------------------ index statements

    def index_statement(self, name: str, is_fresh: bool) -> IndexUpdate:
        """Return a statement of index notation that assigns to ``name``."""
        if is_fresh:
            at = tuple((index, 0) for index in self.rng.sample("ijk", self.rng.randint(0, 2)))
        else:
            at = self._access(self._shape(name), repeat=False)
        op = "=" if is_fresh else self.rng.choice(["=", "=", "+=", "-="])
        terms = [(self.rng.choice("++-") if n else "+", self._term()) for n in range(2)]
        count = 1 if self.rng.random() < 0.6 else 2
        return IndexUpdate(name, at, op, tuple(terms[:count]), is_fresh)

    def _access(self, shape: Shape, repeat: bool) -> tuple[tuple[str, int], ...]:
        indices = [self.rng.choice("ijk") for _ in shape] if repeat else self.rng.sample("ijk", 3)
        at = []
        for index, extent in zip(indices, shape, strict=False):
            if extent and self.rng.random() < 0.08:
                at.append(("", self.rng.randrange(extent)))
            elif extent > 1 and self.rng.random() < 0.1:
                at.append((index, 1))
            else:
                at.append((index, 0))
        return tuple(at)

    def _load(self) -> Load:
        name = self.rng.choice(sorted(self.scope.shapes))
        return Load(name, self._access(self._shape(name), self.rng.random() < 0.15))

    def _term(self) -> IndexExpr:
        kind = self.rng.random()
        one = self._load()
        if kind < 0.2:
            return one
        if kind < 0.3:
            return Over(self.rng.choice(["np.abs({0})", "np.maximum({0}, 0)", "(2 * {0})"]), (one,))
        if kind < 0.7:
            return Over("{0} * {1}", (one, self._load()))
        if kind < 0.8:
            return Over("{0} * {1} * {2}", (one, self._load(), self._load()))
        inner = Over("{0} * {1}", (self._load(), self._load()))
        return Over("{0} * {1}", (one, Over("{0}", (inner,), self.rng.choice("jk"))))
