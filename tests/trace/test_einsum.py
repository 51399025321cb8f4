"""einsum: what NumPy takes means the same, and what it refuses is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit.trace as sj
from sparsejit.errors import TensorTypeError, TraceError
from sparsejit.formats import COO, CSR, SparseVector
from sparsejit.trace._subscripts import parse_subscripts
from tests.trace.harness import Operand, check, text

RNG = np.random.default_rng(5)
FORMATS = {1: SparseVector, 2: CSR, 3: COO(3)}


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[Operand]]:
    """Draw a subscript string and operands that fit it: any letters, repeated ones too."""
    extents = {c: draw(st.sampled_from([1, 2, 3]), label=c) for c in "ijkl"}
    terms = draw(
        st.lists(st.text("ijkl", min_size=0, max_size=3), min_size=1, max_size=3), label="terms"
    )
    letters = sorted(set("".join(terms)))
    operands = []
    for term in terms:
        shape = tuple(extents[c] for c in term)
        values = RNG.integers(-3, 4, shape).astype(float)
        is_sparse = bool(shape) and draw(st.booleans(), label="sparse")
        operands.append(Operand(values, FORMATS[len(term)] if is_sparse else None))
    string = ",".join(terms)
    if draw(st.booleans(), label="explicit"):
        string += "->" + "".join(draw(st.permutations(letters)))[: draw(st.integers(0, 3))]
    return string, operands


@given(programs())
@settings(max_examples=60)
def test_any_subscripts(program: tuple[str, list[Operand]]) -> None:
    string, operands = program
    names = ["a", "b", "c"][: len(operands)]
    namespace: dict[str, Any] = {"einsum": sj.einsum}
    exec(f"def fn({', '.join(names)}): return einsum({string!r}, {', '.join(names)})", namespace)
    check(namespace["fn"], *operands, expected=lambda *arrays: np.array(np.einsum(string, *arrays)))


A, B = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 5))
T, U = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 4, 5))


@pytest.mark.parametrize(
    ("string", "operands"),
    [
        (" i j , j k -> i k ", (A, B)),
        ("ij,jk", (A, B)),
        ("...ij,...jk->...ik", (T, U)),
        ("...ij,jk", (T, B)),
        ("...j,...j", (T, T)),
        ("i...,i...->...", (T, T)),
        ("...,...", (T, A)),
        ("i...->...", (T,)),
        ("bca", (T,)),
        ("", (np.array(3.0),)),
        (",ij->ji", (np.array(3.0), A)),
        ("ij,ij->", (A, A)),
        ("ij,j->i", (np.ones((3, 1)), np.arange(4.0))),
        ("ij,kj,lk->il", (A, B.T, RNG.random((2, 5)))),
        ("ii->i", (A[:, :3],)),
        ("iij->j", (RNG.random((2, 2, 3)),)),
        ("...->...", (A,)),
        ("Ij,jK->KI", (A, B)),
    ],
)
def test_subscripts(string: str, operands: tuple[Any, ...]) -> None:
    names = ["a", "b", "c"][: len(operands)]
    namespace: dict[str, Any] = {"einsum": sj.einsum}
    exec(f"def fn({', '.join(names)}): return einsum({string!r}, {', '.join(names)})", namespace)
    check(namespace["fn"], *operands, expected=lambda *arrays: np.array(np.einsum(string, *arrays)))


@pytest.mark.parametrize(
    ("string", "shapes", "message"),
    [
        ("ij,jk->iik", [(2, 2), (2, 2)], "output subscript 'i' multiple times"),
        ("ij,jk->iz", [(2, 2), (2, 2)], "output subscript 'z', which never appeared in an input,"),
        ("ij", [(3,)], "too many subscripts for operand 0, which has rank 1,"),
        ("i", [(3, 2)], "too few subscripts for operand 0, which has rank 2,"),
        ("ij,j->i", [(2, 2)], "2 subscripts for 1 operands"),
        ("i1", [(2, 2)], "invalid subscript '1', subscripts must be letters"),
        ("i.j", [(2, 2)], "a '.' that is no ellipsis '...' for operand 0"),
        ("......i", [(2,)], "a '.' that is no ellipsis '...' for operand 0"),
        ("i...->", [(2, 2)], "an ellipsis of the inputs is missing in the output"),
        ("i->->i", [(2,)], "invalid '->'"),
        ("i-i", [(2,)], "invalid '->'"),
        ("i->.", [(2,)], "a '.' that is no ellipsis '...' for the output"),
    ],
)
def test_bad_strings(string: str, shapes: list[tuple[int, ...]], message: str) -> None:
    arrays = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError):
        np.einsum(string, *arrays)
    with pytest.raises(TensorTypeError) as caught:
        parse_subscripts(string, [len(shape) for shape in shapes])
    assert caught.value.what == f"{message} in einsum({string!r})"


def test_extents_that_differ() -> None:
    def fn(a: Any, b: Any) -> Any:
        return sj.einsum("ij,jk->ik", a, b)

    with pytest.raises(TensorTypeError) as caught:
        text(fn, A, A)
    assert str(caught.value).splitlines() == [
        "extents of index 'j' differ in einsum('ij,jk->ik')",
        f"  at {fn.__code__.co_filename}:{fn.__code__.co_firstlineno + 1} in fn",
        "  ij is (3, 4), jk is (3, 4)",
    ]


def test_diagonal_of_a_matrix_that_is_not_square() -> None:
    def fn(a: Any) -> Any:
        return sj.einsum("ii->i", a)

    with pytest.raises(TensorTypeError, match="collapsing index 'i' don't match"):
        text(fn, A)
    with pytest.raises(TensorTypeError, match="collapsing index 'i' don't match"):
        text(fn, np.ones((3, 1)))


def test_outside_of_a_function() -> None:
    with pytest.raises(TraceError, match="einsum was called outside of a traced function"):
        sj.einsum("ij->ji", A)


def test_no_widening_and_weak_scalars_as_numpy() -> None:
    def fn(a: Any, s: Any) -> Any:
        return sj.einsum("ij,->i", a, s)

    for dtype in ("int8", "bool", "uint16", "float32"):
        array = (A * 3).round().astype(dtype)
        check(fn, array, array[0, 0], expected=lambda a, s: np.einsum("ij,->i", a, s))
    check(fn, A.astype("float32"), 2.0, expected=lambda a, s: np.einsum("ij,->i", a, s))


def test_one_generic_with_all_operands() -> None:
    def fn(x: Any, b: Any, c: Any) -> Any:
        return np.einsum("ijk,jr,kr->ir", x, b, c)

    lines = text(fn, T, RNG.random((3, 6)), RNG.random((4, 6))).splitlines()
    assert sum("reduction" in line for line in lines) == 1
    assert "out + in0 * in1 * in2" in "".join(lines)


def test_transposes_are_maps_and_costly_operands_are_computed_once() -> None:
    def fn(a: Any, b: Any) -> Any:
        return sj.einsum("ij,jk->ik", np.conj(a.T), np.exp(b))

    made = text(fn, A.T, B)
    assert "ins(%a[k, i], %1[k, j])" in made
    assert made.count("exp") == 1
