"""Random programs, drawn as data: several statements, updates in place, views, aliases, reductions.

The same instructions are interpreted on NumPy arrays and on tracers; what the traced program gives
and how it leaves the caller's arrays must be what NumPy does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import sparsejit.trace as sj
from sparsejit.formats import COO, CSC, CSR, SparseVector
from sparsejit.trace import _array
from sparsejit.trace._array import content_of
from sparsejit.trace._emit import accumulate
from tests.trace.harness import Operand, check

# A program has vectors of extent n and matrices of extents n, n, by number; new ones are appended.
# The first ones are dense arguments, which may be assigned, then come sparse ones.
Instruction = tuple[Any, ...]
ELEMENTWISE: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "minimum": np.minimum,
    "where": lambda a, b: np.where(a > b, a, b * 2),
    "less": lambda a, b: (a < b) * 1.0,
}
UNARY: dict[str, Any] = {
    "negative": lambda a: -a,
    "absolute": abs,
    "sine": np.sin,
    "shift": lambda a: a + 1,
    "scale": lambda a: a * 0.5,
    "reverse": lambda a: a[::-1],
    "copy": lambda a: a.copy(),
    "square": lambda a: a**2,
}
SLICES = [slice(None), slice(1, None), slice(None, -1), slice(0, 2), slice(None, None, 2)]
picks = st.integers(0, 99)


def instructions() -> st.SearchStrategy[Instruction]:
    elementwise, unary = st.sampled_from(sorted(ELEMENTWISE)), st.sampled_from(sorted(UNARY))
    slices = st.sampled_from(range(len(SLICES)))
    return st.one_of(
        st.tuples(st.just("vector"), elementwise, picks, picks),
        st.tuples(st.just("matrix"), elementwise, picks, picks),
        st.tuples(st.just("map"), unary, picks),
        st.tuples(st.just("matmap"), unary, picks),
        st.tuples(st.just("matvec"), picks, picks),
        st.tuples(st.just("transpose"), picks),
        st.tuples(st.just("reduce"), st.sampled_from(["sum", "max", "mean", "prod"]), picks),
        st.tuples(st.just("row"), picks),
        st.tuples(st.just("diagonal"), picks),
        st.tuples(st.just("outer"), picks, picks),
        st.tuples(st.just("index"), picks, picks),
        st.tuples(st.just("update"), st.sampled_from("+-*"), picks, picks),
        st.tuples(st.just("assign"), slices, picks, picks),
        st.tuples(st.just("assign_row"), picks, picks),
        st.tuples(st.just("update_column"), picks, picks),
        st.tuples(st.just("update_index"), picks, picks, picks),
    )


class Machine:
    """Interprets a program; ``dense`` names what may be assigned."""

    def __init__(self, vectors: list[Any], matrices: list[Any], extent: int) -> None:
        self.vectors, self.matrices, self.extent = vectors, matrices, extent
        self.dense_vectors, self.dense_matrices = [vectors[0], vectors[1]], [matrices[0]]

    def run(self, program: list[Instruction]) -> None:
        for name, *rest in program:
            getattr(self, name)(*rest)

    def v(self, pick: int) -> Any:
        return self.vectors[pick % len(self.vectors)]

    def m(self, pick: int) -> Any:
        return self.matrices[pick % len(self.matrices)]

    def target(self, pick: int) -> Any:
        return self.dense_vectors[pick % len(self.dense_vectors)]

    def vector(self, op: str, a: int, b: int) -> None:
        self.vectors.append(ELEMENTWISE[op](self.v(a), self.v(b)))

    def matrix(self, op: str, a: int, b: int) -> None:
        self.matrices.append(ELEMENTWISE[op](self.m(a), self.m(b)))

    def map(self, op: str, a: int) -> None:
        self.vectors.append(UNARY[op](self.v(a)))

    def matmap(self, op: str, a: int) -> None:
        self.matrices.append(UNARY[op](self.m(a)))

    def matvec(self, a: int, b: int) -> None:
        self.vectors.append(self.m(a) @ self.v(b))

    def transpose(self, a: int) -> None:
        self.matrices.append(self.m(a).T)

    def reduce(self, op: str, a: int) -> None:
        if op in ("max", "mean") and not self.extent:  # NumPy refuses, or warns
            op = "sum"
        self.vectors.append(getattr(self.m(a), op)(axis=a % 2))

    def row(self, a: int) -> None:
        if self.extent:
            self.vectors.append(self.m(a)[a % self.extent])

    def diagonal(self, a: int) -> None:
        self.vectors.append(self.m(a).diagonal())

    def outer(self, a: int, b: int) -> None:
        self.matrices.append(self.v(a)[:, None] * self.v(b))

    def update(self, op: str, a: int, b: int) -> None:
        target, value = self.target(a), self.v(b)
        if op == "+":
            target += value
        elif op == "-":
            target -= value
        else:
            target *= value

    def assign(self, part: int, a: int, b: int) -> None:
        self.target(a)[SLICES[part]] = self.v(b)[SLICES[part]]

    def assign_row(self, a: int, b: int) -> None:
        if self.extent:
            self.dense_matrices[0][a % self.extent] = self.v(b)

    def update_column(self, a: int, b: int) -> None:
        if self.extent:
            self.dense_matrices[0][:, a % self.extent] += self.v(b)

    def results(self) -> tuple[Any, ...]:
        return (*self.vectors[-3:], *self.matrices[-2:], *self.dense_vectors)


class ArrayMachine(Machine):
    """On NumPy arrays."""

    def index(self, a: int, b: int) -> None:
        self.vectors.append(self.m(a) @ self.v(b) - self.v(b) + 1)

    def update_index(self, t: int, a: int, b: int) -> None:
        self.target(t)[:] += self.m(a).T @ self.v(b) - 2 * self.v(b)


class TracedMachine(Machine):
    """On tracers."""

    def index(self, a: int, b: int) -> None:
        i, j = sj.indices("i j")
        r = sj.output()
        r[i] = self.m(a)[i, j] * self.v(b)[j] - self.v(b)[i] + 1
        self.vectors.append(r)

    def update_index(self, t: int, a: int, b: int) -> None:
        i, j = sj.indices("i j")
        self.target(t)[i] += self.m(a)[j, i] * self.v(b)[j] - 2 * self.v(b)[i]


@st.composite
def operands(draw: st.DrawFn) -> list[Operand]:
    extent = draw(st.sampled_from([3, 2, 1, 0]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))

    def sparse(*shape: int) -> Any:
        return np.where(rng.random(shape) < 0.5, rng.integers(-2, 3, shape) / 2, 0.0)

    dense = [Operand(rng.integers(-2, 3, extent) / 2) for _ in range(2)]
    matrices = [Operand(sparse(extent, extent), fmt) for fmt in (CSR, CSC, COO(2))]
    return [
        *dense,
        Operand(rng.integers(-2, 3, (extent, extent)) / 2),
        Operand(sparse(extent), SparseVector),
        draw(st.sampled_from(matrices)),
        draw(st.sampled_from(matrices)),
    ]


def agrees(given_operands: list[Operand], program: list[Instruction]) -> bool:
    """Trace and compare; an ``AssertionError`` says where they differ."""
    extent = given_operands[0].dense.shape[0]

    def run(kind: type[Machine], x: Any, y: Any, D: Any, v: Any, A: Any, B: Any) -> Any:
        machine = kind([x, y, v], [D, A, B], extent)
        machine.run(program)
        return machine.results()

    def fn(x: Any, y: Any, D: Any, v: Any, A: Any, B: Any) -> Any:
        return run(TracedMachine, x, y, D, v, A, B)

    def expected(x: Any, y: Any, D: Any, v: Any, A: Any, B: Any) -> Any:
        return run(ArrayMachine, x, y, D, v, A, B)

    check(fn, *given_operands, expected=expected, rtol=1e-9)
    return True


programs = st.lists(instructions(), min_size=1, max_size=8)


@given(operands(), programs)
@settings(max_examples=150)
def test_random_program(given_operands: list[Operand], program: list[Instruction]) -> None:
    assert agrees(given_operands, program)


def lost_slice(trace: Any, source: Any, dest: Any, view: Any) -> Any:
    return dest


def stale_view(trace: Any, cell: Any) -> Any:
    """Read the content that the cell had when it was first read."""
    return trace.__dict__.setdefault("first", {}).setdefault(id(cell), content_of(trace, cell))


def adding(trace: Any, term: Any, *rest: Any) -> Any:
    return accumulate(trace, replace(term, negated=False), *rest)


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a slice that is assigned is lost": (_array, "_insert", lost_slice),
    "a name shows an old content": (_array, "content_of", stale_view),
    "a difference is a sum": (_array, "accumulate", adding),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_generator_finds_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, broken = FAULTS[fault]
    monkeypatch.setattr(module, name, broken)

    def differs(case: tuple[list[Operand], list[Instruction]]) -> bool:
        try:
            return not agrees(*case)
        except AssertionError:
            return True

    find(
        st.tuples(operands(), programs),
        differs,
        settings=settings(max_examples=400, phases=[Phase.generate]),
    )
