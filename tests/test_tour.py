"""A tour of sparsejit in twelve short programs; each is checked against NumPy.

Read from the top: a kernel, the three notations, formats in and out, what is stored, assignments,
aliases, several results, and what can be seen of a compiled function.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

# The interpreter runs the generated program as plain Python; without `target` it is compiled.
HERE = "interpreter"

A: Any = sp.random_array((6, 5), density=0.4, rng=np.random.default_rng(1), format="csr")
B: Any = sp.random_array((5, 4), density=0.4, rng=np.random.default_rng(2), format="csr")
x = np.arange(5.0)


def test_1_a_matrix_times_a_vector() -> None:
    @sparse_jit
    def spmv(A: Any, x: Any) -> Any:
        return A @ x

    np.testing.assert_allclose(spmv(A, x), A.toarray() @ x)


def test_2_three_notations_are_one_program() -> None:
    @sparse_jit(target=HERE)
    def three(A: Any, x: Any) -> Any:
        i, j = sj.indices("i j")
        y = sj.output()
        y[i] = A[i, j] * x[j]  # summed over j, which the left side lacks
        return A @ x, sj.einsum("ij,j->i", A, x), y

    for result in three(A, x):
        np.testing.assert_allclose(result, A.toarray() @ x)


def test_3_sparse_results_have_the_kind_of_the_operands() -> None:
    result = sparse_jit(lambda A, B: A @ B, target=HERE)(A, B)
    assert isinstance(result, sp.csr_array)
    assert result.has_canonical_format
    np.testing.assert_allclose(result.toarray(), A.toarray() @ B.toarray())


def test_4_any_format_in_and_any_format_out() -> None:
    blocked = sj.asarray(A, format=sj.BSR(2, 3))
    diagonals = sj.asarray(B, format=sj.DIA)
    result = sparse_jit(lambda A, B: A @ B, target=HERE, output=sj.DCSC)(blocked, diagonals)
    assert result.format.with_widths(0, 0) == sj.DCSC
    np.testing.assert_allclose(result.to_numpy(), A.toarray() @ B.toarray())


def test_5_a_format_of_your_own() -> None:
    columns = sj.Format("(i, j) -> (j floordiv 2 : compressed, i : compressed, j mod 2 : dense)")
    mine = sj.asarray(A, format=columns)
    result = sparse_jit(lambda A: (2 * A).sum(axis=0), target=HERE)(mine)
    np.testing.assert_allclose(result, 2 * A.toarray().sum(axis=0))


def test_6_nothing_is_computed_where_nothing_is_stored() -> None:
    U, V = np.random.default_rng(3).random((6, 3)), np.random.default_rng(4).random((3, 5))

    @sparse_jit(target=HERE)
    def sampled(S: Any, U: Any, V: Any) -> Any:
        return sj.where_stored(S, U @ V)

    result = sampled(A, U, V)
    assert result.nnz == A.nnz
    np.testing.assert_allclose(result.toarray(), np.where(A.toarray() != 0, U @ V, 0))
    assert "stored" in sampled.lower(A, U, V).text("tensor")


def test_7_what_is_not_stored_has_a_value() -> None:
    result = sparse_jit(lambda A: np.exp(A), target=HERE)(A)
    assert isinstance(result, sj.SparseTensor)
    assert result.fill_value == 1
    np.testing.assert_allclose(result.to_numpy(), np.exp(A.toarray()))


def test_8_higher_ranks() -> None:
    X = sj.from_coo(([0, 2, 2], [1, 0, 1], [0, 1, 3]), [1.0, 2.0, 3.0], (3, 2, 4), format=sj.CSF(3))
    C, D = np.random.default_rng(5).random((2, 3)), np.random.default_rng(6).random((4, 3))

    @sparse_jit(target=HERE)
    def mttkrp(X: Any, C: Any, D: Any) -> Any:
        return sj.einsum("ijk,jr,kr->ir", X, C, D)

    np.testing.assert_allclose(mttkrp(X, C, D), np.einsum("ijk,jr,kr->ir", X.to_numpy(), C, D))


def test_9_assignments_change_the_arrays_of_the_caller() -> None:
    @sparse_jit(target=HERE)
    def step(y: Any, A: Any, x: Any) -> Any:
        y += A @ x
        y[1:] -= y[:-1]  # all of the right side is read first
        return y + 1  # a new array

    y, plain = np.ones(6), np.ones(6)
    z = step(y, A, x)
    plain += A.toarray() @ x
    plain[1:] -= plain[:-1]
    np.testing.assert_allclose(y, plain)
    np.testing.assert_allclose(z, plain + 1)


def test_10_aliases_are_right_or_refused() -> None:
    @sparse_jit(target=HERE)
    def shift(y: Any, x: Any) -> None:
        y[:] = 2 * x

    memory = np.arange(5.0)
    shift(memory[1:], memory[:-1])  # overlaps: x is copied before the call
    assert memory.tolist() == [0, 0, 2, 4, 6]

    @sparse_jit(target=HERE)
    def both(y: Any, x: Any) -> None:
        y += 1
        x += 1

    with pytest.raises(sj.errors.UnsupportedError, match="overlap"):
        both(memory[1:], memory[:-1])
    assert memory.tolist() == [0, 0, 2, 4, 6]


def test_11_errors_name_the_line() -> None:
    @sparse_jit(target=HERE)
    def branches(A: Any) -> Any:
        if A.sum() > 0:
            return A
        return -A

    with pytest.raises(sj.errors.TraceError, match="test_tour"):
        branches(A)


def test_12_everything_can_be_looked_at() -> None:
    @sparse_jit(target=HERE)
    def residual(A: Any, x: Any, b: Any) -> Any:
        return b - A @ x

    b = np.ones(6)
    residual(A, x, b)
    residual(A, x, b)
    assert residual.cache_info().hits == 1
    assert "residual" in residual.explain()
    lowered = residual.lower(A, x, b)
    for level in ("tensor", "decisions", "copies", "loops", "source", "mlir"):
        assert lowered.text(level)
    np.testing.assert_allclose(lowered.reference(A, x, b).values, b - A.toarray() @ x)
