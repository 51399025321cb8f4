"""Assignment to parts of sparse tensors, and through boolean masks, in every format.

Each statement runs on each kind of object; what it leaves in the caller's object is what NumPy
makes of the dense equivalent, and the pattern is the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import SubscriptError, TensorTypeError, TensorValueError, UnsupportedError

RNG = np.random.default_rng(11)
Array = np.ndarray[Any, Any]


def _sparse(*shape: int) -> Array:
    return np.where(RNG.random(shape) < 0.6, RNG.integers(1, 9, shape), 0).astype(float)


S, E, x, c = _sparse(4, 6), RNG.standard_normal((4, 6)), RNG.standard_normal(6), np.arange(1.0, 5)
S[1] = 0
AOS = sj.Format("(i, j) -> (i : compressed(nonunique), j : singleton)")

FORMATS: dict[str, Callable[[Array], Any]] = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "bsr": lambda a: sp.bsr_array(a, blocksize=(2, 2)),
    "dia": sp.dia_array,
    "dcsr": lambda a: sj.asarray(a, format=sj.DCSR),
    "ell": lambda a: sj.asarray(a, format=sj.ELL(6)),
    "aos": lambda a: sj.asarray(a, format=AOS),
    "dense": lambda a: a.copy(),
}


def _dense(value: Any) -> Any:
    if hasattr(value, "toarray"):
        return value.toarray()
    return value.to_numpy() if isinstance(value, sj.SparseTensor) else value


def _jit(fn: Any) -> Any:
    return sparse_jit(fn, target="interpreter")


def rows_to_zero(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:] = 0


def rows_scaled(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:] *= 2


def one_row(S: Any, E: Any, x: Any, c: Any) -> None:
    S[0, :] *= x


def last_row(S: Any, E: Any, x: Any, c: Any) -> None:
    S[-1] /= 2


def one_column(S: Any, E: Any, x: Any, c: Any) -> None:
    S[:, 2] *= c


def columns(S: Any, E: Any, x: Any, c: Any) -> None:
    S[:, 1:4] -= S[:, 1:4] / 4


def every_second(S: Any, E: Any, x: Any, c: Any) -> None:
    S[::2, 1::2] *= -1


def backward(S: Any, E: Any, x: Any, c: Any) -> None:
    S[::-1] **= 2


def block(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:3, 2:] = 0


def transposed_row(S: Any, E: Any, x: Any, c: Any) -> None:
    S.T[1] *= c


def transposed_block(S: Any, E: Any, x: Any, c: Any) -> None:
    S.T[1:3, 2:] *= 3


def one_element(S: Any, E: Any, x: Any, c: Any) -> None:
    S[0, 1] *= 2


def an_element_to_zero(S: Any, E: Any, x: Any, c: Any) -> None:
    S[0, 0] = 0.0


def other_rows(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:] *= S[:-1]


def rows_by_dense_rows(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:3] *= E[1:3]


def rows_by_other_dense_rows(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:3] *= E[2:4] + E[:2]


def rows_by_a_product(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:3] *= (E @ x)[1:3, None]


def clipped(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:3, :] = np.minimum(S[1:3, :], 3)


def ends(S: Any, E: Any, x: Any, c: Any) -> None:
    S[-2:] = 0


def new_axis(S: Any, E: Any, x: Any, c: Any) -> None:
    S[None] *= 2


def twice(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:] *= 2
    S[:, :3] *= 3
    S *= S.sum()


def mask_to_zero(S: Any, E: Any, x: Any, c: Any) -> None:
    S[S > 4] = 0


def mask_scaled(S: Any, E: Any, x: Any, c: Any) -> None:
    S[S > 4] *= 2


def dense_mask(S: Any, E: Any, x: Any, c: Any) -> None:
    S[E > 0] -= S[0, 0] * 0


def mask_of_a_part(S: Any, E: Any, x: Any, c: Any) -> None:
    S[1:][S[1:] > 4] = 0


def filled(S: Any, E: Any, x: Any, c: Any) -> None:
    S.fill(0)


def diagonal(S: Any, E: Any, x: Any, c: Any) -> None:
    np.fill_diagonal(S, 0)


def copied(S: Any, E: Any, x: Any, c: Any) -> None:
    np.copyto(S, 0, where=E > 0)


def given_out(S: Any, E: Any, x: Any, c: Any) -> None:
    np.multiply(S, E, out=S)


STATEMENTS = [
    *(rows_to_zero, rows_scaled, one_row, last_row, one_column, columns, every_second, backward),
    *(block, transposed_row, transposed_block, one_element, an_element_to_zero, other_rows),
    *(rows_by_dense_rows, rows_by_other_dense_rows, rows_by_a_product, clipped, ends, new_axis),
    *(twice, mask_to_zero, mask_scaled, dense_mask, mask_of_a_part, filled, diagonal, copied),
    given_out,
]


IN_ALL_FORMATS = [one_row, columns, every_second, transposed_block, other_rows, mask_scaled]
PAIRS = [(statement, form) for statement in STATEMENTS for form in ("csr", "dense")]
PAIRS += [(statement, form) for statement in IN_ALL_FORMATS for form in FORMATS if form != "csr"]


@pytest.mark.parametrize(
    ("statement", "form"), list(dict.fromkeys(PAIRS)), ids=lambda v: getattr(v, "__name__", v)
)
def test_a_part_as_numpy(statement: Any, form: str) -> None:
    if statement is mask_of_a_part and form != "dense":
        pytest.skip("a slice of a sparse operand is a copy")
    if statement is dense_mask and form != "dense":
        pytest.skip("a difference stores what the mask alone says")
    wanted, got = S.copy(), FORMATS[form](S)
    statement(wanted, E, x, c)
    stored = got.nnz if form != "dense" else 0
    _jit(statement)(got, E, x, c)
    np.testing.assert_allclose(_dense(got), wanted, rtol=1e-12, atol=1e-12)
    if form != "dense":
        assert got.nnz == stored


def test_index_notation_with_a_static_row() -> None:
    def fn(S: Any, x: Any) -> None:
        (j,) = sj.indices("j")
        S[0, j] *= x[j]
        S[2, j] = S[2, j] * 2

    got = sp.csr_array(S)
    _jit(fn)(got, x)
    wanted = S.copy()
    wanted[0] *= x
    wanted[2] *= 2
    np.testing.assert_allclose(got.toarray(), wanted)


def test_a_part_by_the_rows_between() -> None:
    def fn(S: Any) -> None:
        S[::2] *= S[1::2]

    even = np.vstack([S, S])[: S.shape[0] // 2 * 2]
    got, wanted = sp.csr_array(even), even.copy()
    _jit(fn)(got)
    fn(wanted)
    np.testing.assert_allclose(got.toarray(), wanted)


def test_a_part_at_its_own_entries() -> None:
    def fn(S: Any, x: Any) -> None:
        S[2, :] = sj.where_stored(S[2, :], x)

    got = sp.csr_array(S)
    _jit(fn)(got, x)
    wanted = S.copy()
    wanted[2] = np.where(S[2] != 0, x, 0)
    np.testing.assert_allclose(got.toarray(), wanted)


@pytest.mark.parametrize("form", [sj.SparseVector, sj.COO(1)])
def test_parts_of_vectors(form: sj.Format) -> None:
    def fn(v: Any) -> None:
        v[1:4] *= 2
        v[::2] = 0

    got = sj.asarray(S[0], format=form)
    _jit(fn)(got)
    wanted = S[0].copy()
    fn(wanted)
    np.testing.assert_allclose(got.to_numpy(), wanted)


def test_parts_of_tensors_and_fills() -> None:
    def fn(T: Any) -> None:
        T[1, :, 2:] *= 2
        T[:, 0] **= 2

    dense = _sparse(2, 3, 4)
    got, wanted = sj.asarray(dense, format=sj.CSF(3)), dense.copy()
    fn(wanted)
    _jit(fn)(got)
    np.testing.assert_allclose(got.to_numpy(), wanted)

    def ones(v: Any) -> None:
        v[1:] = 1

    filled = np.array([1.0, 5.0, 1.0, 7.0])
    tensor = sj.asarray(filled, format=sj.SparseVector, fill_value=1)
    _jit(ones)(tensor)
    assert tensor.to_numpy().tolist() == [1, 1, 1, 1]


def test_a_part_of_an_intermediate() -> None:
    def fn(S: Any) -> Any:
        T = S * 2
        T[1:] *= 3
        T[T > 20] = 0
        return T

    wanted = fn(S.copy())
    for form in FORMATS.values():
        np.testing.assert_allclose(_dense(_jit(fn)(form(S))), wanted)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 5),
    bounds=st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.sampled_from([-2, -1, 1, 2, 3])),
    seed=st.integers(0, 99),
)
def test_any_slice(rows: int, bounds: tuple[int, int, int], seed: int) -> None:
    part = slice(*bounds)

    def fn(S: Any) -> None:
        S[part] *= 2

    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, (rows, 3)).astype(float)
    got, wanted = sp.csr_array(dense), dense.copy()
    fn(wanted)
    _jit(fn)(got)
    np.testing.assert_array_equal(got.toarray(), wanted)


# ------------------------------------------------------------ what is refused


def new_entries(S: Any, E: Any) -> None:
    S[1:] = 7


def new_entries_of_another_row(S: Any, E: Any) -> None:
    S[0] = S[1]


def an_element(S: Any, E: Any) -> None:
    S[1, 1] = 5.0


def an_array_at_a_mask(S: Any, E: Any) -> None:
    S[S > 1] = E[0]


def elements_at_a_mask(S: Any, E: Any) -> Any:
    return S[S > 1].sum()


def elements_in_arithmetic(S: Any, E: Any) -> Any:
    return E[0, 0] + S[S > 1]


def a_wrong_mask(S: Any, E: Any) -> None:
    S[S[1:] > 0] = 0


def a_wrong_type(S: Any, E: Any) -> None:
    S[S > 0] *= 1j


def a_wrong_shape(S: Any, E: Any) -> None:
    S[1:] *= E[:2]


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (new_entries, UnsupportedError, "'S' would store new entries"),
        (new_entries_of_another_row, UnsupportedError, "'S' would store new entries"),
        (an_element, UnsupportedError, "'S' would store new entries"),
        (an_array_at_a_mask, UnsupportedError, "assigned through a boolean mask"),
        (elements_at_a_mask, UnsupportedError, "at a boolean mask are not built"),
        (elements_in_arithmetic, UnsupportedError, "at a boolean mask are not built"),
        (a_wrong_mask, SubscriptError, r"boolean index of shape \(3, 6\)"),
        (a_wrong_type, TensorTypeError, "Cannot cast ufunc 'multiply' output"),
        (a_wrong_shape, TensorValueError, "could not broadcast"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_refused(fn: Any, error: Any, message: str) -> None:
    matrix = sp.csr_array(S)
    with pytest.raises(error, match=message) as caught:
        _jit(fn)(matrix, E)
    assert caught.value.location.function == fn.__name__
    np.testing.assert_array_equal(matrix.toarray(), S)
