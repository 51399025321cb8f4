"""Random expressions over the names of a program, of a wanted shape where that is possible."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.programs.forms import BINARY, FORMS, SEMIRINGS, UNARY, Form
from tests.programs.language import Apply, Expr, Item, Key, Num, Var
from tests.programs.scope import Scope, Shape

__all__ = ["ExpressionDrawing"]


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
        """Return a product, a reduction, a rearrangement or something at a pattern."""
        kind = self.rng.random()
        if kind < 0.15:
            return self.einsum(shape)
        words = {0: "number", 1: "vector", 2: "matrix"}
        word = "same" if shape and kind < 0.5 else words.get(len(shape), "same")
        for _ in range(4):
            form = self.rng.choice(FORMS[word])
            made = self.form(form, dict(zip(form.result, shape, strict=False)), shape, depth)
            if made is not None:
                return made
        return Apply("({0} * {1})", (self.expression(shape, depth), self._leaf(shape[1:])))

    def form(
        self, form: Form, letters: dict[str, int], shape: Shape | None, depth: int
    ) -> Expr | None:
        """Return a form with its holes filled, or None where a name is missing."""
        repeats = len(form.result) > len(set(form.result)) and form.result != "*"
        if repeats and shape is not None and len(set(shape)) > 1:
            return None
        parts: list[Expr] = []
        for hole in form.holes:
            word, asks = hole.removesuffix("!"), hole.endswith("!")
            if word == "*":
                shape = shape or self._some_shape(asks)
                part = self._of_shape(shape, asks, depth)
            else:
                part = self._of_word(word, letters, asks, depth)
            if part is None:
                return None
            parts.append(part)
        return Apply(form.template, tuple(parts))

    def _of_shape(self, shape: Shape, has_pattern: bool, depth: int) -> Expr | None:
        if not has_pattern:
            return self.expression(shape, max(depth - 1, 0))
        names = [name for name in sorted(self.scope.patterns) if self._shape(name) == shape]
        return Var(self.rng.choice(names)) if names else None

    def _of_word(
        self, word: str, letters: dict[str, int], has_pattern: bool, depth: int
    ) -> Expr | None:
        """Return something for a hole; extents that are not fixed yet are those of some name."""
        pool = self.scope.patterns if has_pattern else frozenset(self.scope.shapes)
        names = self._fitting(word, letters, pool)
        if names and (has_pattern or self.rng.random() < 0.8):
            name = self.rng.choice(names)
            letters.update(zip(word, self._shape(name), strict=True))
            if has_pattern or self.rng.random() < 0.4:
                return Var(name)
        if has_pattern:
            return None
        for letter in word:
            letters.setdefault(letter, self.rng.choice(self.extents))
        wanted = tuple(letters[letter] for letter in word)
        return self.expression(wanted, max(depth - 1, 0))

    def _some_shape(self, has_pattern: bool) -> Shape:
        if has_pattern and self.scope.patterns:
            return self._shape(self.rng.choice(sorted(self.scope.patterns)))
        return self.shape()

    def _fitting(self, word: str, letters: dict[str, int], pool: frozenset[str]) -> list[str]:
        """Return the names of the pool that have these extents, mostly sparse ones."""

        def fits(name: str) -> bool:
            shape = self._shape(name)
            known = dict(letters)
            return len(shape) == len(word) and all(
                known.setdefault(letter, extent) == extent
                for letter, extent in zip(word, shape, strict=True)
            )

        names = [name for name in sorted(pool) if fits(name)]
        sparse = [name for name in names if name in self.scope.sparse]
        return sparse if sparse and self.rng.random() < 0.6 else names

    def einsum(self, shape: Shape | None) -> Expr:
        """Return an einsum of one to three names, over any semiring."""
        names = [name for name in sorted(self.scope.shapes) if self._shape(name)]
        if not names:
            return Num(1)
        extents: dict[str, int] = {}
        chosen = [self.rng.choice(names) for _ in range(self.rng.choice([1, 2, 2, 2, 3]))]
        terms = [self._letters(self._shape(name), extents) for name in chosen]
        out: list[str] = []
        for extent in shape or ():
            fitting = [c for c, e in sorted(extents.items()) if e == extent and c not in out]
            out += [self.rng.choice(fitting)] if fitting else []
        if shape is None:
            out = self.rng.sample(sorted(extents), min(len(extents), self.rng.randint(0, 3)))
        text = f"{','.join(terms)}->{''.join(out)}"
        holes = ", ".join(f"{{{n}}}" for n in range(len(chosen)))
        ring = self.rng.choice(SEMIRINGS) if self.rng.random() < 0.5 else ""
        given = f", semiring='{ring}'" if ring else ""
        return Apply(f"sj.einsum('{text}', {holes}{given})", tuple(map(Var, chosen)))

    def _letters(self, shape: Shape, extents: dict[str, int]) -> str:
        letters = ""
        for extent in shape:
            same = [c for c, e in sorted(extents.items()) if e == extent]
            is_known = bool(same) and self.rng.random() < 0.75
            letter = self.rng.choice(same) if is_known else "abcdefghijkl"[len(extents)]
            if letter in letters and self.rng.random() < 0.8:
                letter = "abcdefghijkl"[len(extents)]
            extents[letter] = extent
            letters += letter
        return letters

    def free(self, kinds: Sequence[str]) -> Expr | None:
        """Return a form of these kinds, of whatever shape."""
        form = self.rng.choice([form for kind in kinds for form in FORMS[kind]])
        return self.form(form, {}, None, 1)

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
        return Num(self.rng.choice([1, 2, 3, 2.0]))
