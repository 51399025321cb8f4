"""Random formulas: the compiled function, the reference evaluator and NumPy agree.

A formula is data: a nested tuple of operations over named operands. From it come the function that
is decorated and the same function over dense NumPy arrays.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.api import CompiledFunction

MATRIX_FORMATS = [
    sj.Dense(2), sj.CSR, sj.CSC, sj.COO(2), sj.DCSR, sj.DCSC, sj.BSR(2, 2), sj.DIA, sj.ELL(4),
]  # fmt: skip
VECTOR_FORMATS = [sj.Dense(1), sj.SparseVector, sj.COO(1)]

UNARY = {
    "neg": lambda e: -e,
    "abs": lambda e: abs(e),
    "sin": lambda e: np.sin(e),
    "plus one": lambda e: e + 1.0,
    "cos": lambda e: np.cos(e),
    "twice": lambda e: 2.0 * e,
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": lambda a, b: np.maximum(a, b),
    "min": lambda a, b: np.minimum(a, b),
}
REDUCE = {
    "sum": lambda e, axis: e.sum(axis=axis),
    "max": lambda e, axis: e.max(axis=axis),
    "min": lambda e, axis: e.min(axis=axis),
}


def matrices(depth: int) -> st.SearchStrategy[Any]:
    """Formulas of matrices over A and B (m x n)."""
    leaf = st.sampled_from([("A",), ("B",)])
    if depth == 0:
        return leaf
    inner = matrices(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), inner),
        st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), inner, inner),
        st.tuples(st.just("scale"), inner, st.just(("x",))),
    )


def formulas() -> st.SearchStrategy[Any]:
    """Formulas of any result: a matrix, a vector or a number."""
    matrix = matrices(2)
    return st.one_of(
        matrix,
        st.tuples(st.just("reduce"), st.sampled_from(sorted(REDUCE)), matrix,
                  st.sampled_from([None, 0, 1])),
        st.tuples(st.just("matvec"), matrix, st.just(("x",))),
        st.tuples(st.just("gram"), matrix, matrix),
    )  # fmt: skip


def compute(formula: Any, operands: Mapping[str, Any]) -> Any:
    """Evaluate a formula; the operands are traced arrays or NumPy arrays."""
    match formula:
        case (str(name),):
            return operands[name]
        case ("unary", op, e):
            return UNARY[op](compute(e, operands))
        case ("binary", op, a, b):
            return BINARY[op](compute(a, operands), compute(b, operands))
        case ("scale", e, x):
            return compute(e, operands) * compute(x, operands)
        case ("reduce", op, e, axis):
            return REDUCE[op](compute(e, operands), axis)
        case ("matvec", e, x):
            return compute(e, operands) @ compute(x, operands)
        case ("gram", a, b):
            return compute(a, operands) @ compute(b, operands).T
        case other:
            raise AssertionError(other)


def compiled(formula: Any, target: str = "interpreter") -> CompiledFunction:
    return sparse_jit(lambda A, B, x: compute(formula, {"A": A, "B": B, "x": x}), target=target)


@st.composite
def operands(draw: st.DrawFn) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Operands in drawn formats, and the dense arrays that they stand for."""
    m, n = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    seed = draw(st.integers(0, 9))
    source = np.random.default_rng(seed)
    dense: dict[str, Any] = {}
    made = []
    for name, shape, formats in (
        ("A", (m, n), MATRIX_FORMATS),
        ("B", (m, n), MATRIX_FORMATS),
        ("x", (n,), VECTOR_FORMATS),
    ):
        values = np.where(source.random(shape) < 0.5, source.integers(-4, 5, shape), 0.0)
        dense[name] = values
        made.append(sj.asarray(values, format=draw(st.sampled_from(formats))))
    return *made, dense


def as_dense(value: Any) -> Any:
    if isinstance(value, sj.SparseTensor):
        return value.to_numpy()
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)


def has_no_identity(formula: Any, dense: Mapping[str, Any]) -> bool:
    """Whether NumPy refuses: the largest of nothing."""
    try:
        compute(formula, dense)
    except ValueError:
        return True
    return False


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(formula=formulas(), given_operands=operands())
def test_call_reference_and_numpy_agree(formula: Any, given_operands: Any) -> None:
    A, B, x, dense = given_operands
    if has_no_identity(formula, dense):
        return
    note(f"formats {[getattr(v, 'format', 'dense') for v in (A, B, x)]}")
    f = compiled(formula)
    try:
        result = f(A, B, x)
    except sj.errors.UnsupportedError as error:
        note(str(error))
        return
    expected = compute(formula, dense)
    np.testing.assert_allclose(as_dense(result), expected, rtol=1e-12, atol=1e-12)
    reference = f.lower(A, B, x).reference(A, B, x)
    np.testing.assert_allclose(reference.values, expected, rtol=1e-12, atol=1e-12)
    if isinstance(result, sj.SparseTensor):
        pattern = sj.SparseTensor(
            result.format, result.shape, result.positions, result.coordinates,
            np.ones_like(result.values, dtype=bool), False,
        ).to_numpy()  # fmt: skip
        np.testing.assert_array_equal(pattern, reference.stored)
