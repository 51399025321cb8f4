"""Concatenation, stacking, reshapes, padding and slices in every format, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import TensorTypeError, TraceError, UnsupportedError
from sparsejit.reference import Masked

RNG = np.random.default_rng(7)


def _matrix(m: int, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.where(RNG.random((m, n)) < 0.5, RNG.integers(1, 9, (m, n)), 0).astype(float)


D, E, F = _matrix(5, 6), _matrix(5, 6), _matrix(3, 6)
x, y = RNG.standard_normal(6), RNG.standard_normal(6).astype(np.float32)
T = np.where(RNG.random((2, 3, 4)) < 0.5, 1.5, 0)

FORMATS: dict[str, Any] = {
    "dense": lambda a: a,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "bsr": sp.bsr_array,
    "dia": sp.dia_array,
    "dcsr": lambda a: sj.asarray(a, format=sj.DCSR),
    "ell": lambda a: sj.asarray(a, format=sj.ELL(6)),
}


def _dense(value: Any) -> Any:
    if isinstance(value, Masked):
        return value.values
    if hasattr(value, "toarray"):
        return value.toarray()
    return value.to_numpy() if isinstance(value, sj.SparseTensor) else np.asarray(value)


def _check(fn: Callable[..., Any], *operands: Any, dense: tuple[Any, ...]) -> Any:
    """Compare a function on operands with itself on dense arrays; return the compiled result."""
    compiled = sparse_jit(target="interpreter")(fn)
    wanted = fn(*dense)
    got = compiled(*operands)
    for value in (got, compiled.lower(*operands).reference(*operands)):
        assert _dense(value).dtype == wanted.dtype
        np.testing.assert_allclose(_dense(value), wanted, rtol=1e-12)
        assert _dense(value).shape == wanted.shape
    return got


# ------------------------------------------------------------ every format

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rows": lambda A, B: np.concatenate([A, B]),
    "columns": lambda A, B: np.concatenate((A, B), axis=1),
    "flat": lambda A, B: np.concatenate([A, B], axis=None),
    "stack": lambda A, B: np.stack([A, B]),
    "stack last": lambda A, B: np.stack([A, B, A], axis=-1),
    "vstack": lambda A, B: np.vstack([A, B]),
    "hstack": lambda A, B: np.hstack([A, B]),
    "computed": lambda A, B: np.concatenate([2 * A, B[1:], A * B]),
    "ravel": lambda A, B: A.ravel(),
    "flatten": lambda A, B: A.flatten(),
    "reshape": lambda A, B: A.reshape(6, 5),
    "reshape rest": lambda A, B: np.reshape(A, (-1, 3)),
    "reshape wide": lambda A, B: A.reshape((2, 3, -1)),
    "reshape symbolic": lambda A, B: A.reshape(A.shape[1], A.shape[0]),
    "reshape columns": lambda A, B: A.reshape((3, 10), order="F"),
    "reshape ones": lambda A, B: A.reshape(1, A.shape[0], 1, -1),
    "pad": lambda A, B: np.pad(A, 1),
    "pad ends": lambda A, B: np.pad(A, (1, 2)),
    "pad each": lambda A, B: np.pad(A, ((0, 1), (2, 0)), mode="constant", constant_values=0),
    "slices": lambda A, B: A[1:5, ::2],
    "backwards": lambda A, B: A[::-1, ::-2],
    "column": lambda A, B: A[:, 3],
    "row": lambda A, B: A[2],
    "last rows": lambda A, B: A[-3:],
    "part of a part": lambda A, B: A[1:][::2, 2:][:, 1:3],
    "nothing": lambda A, B: A[3:3],
    "product of parts": lambda A, B: A[1:4, 2:] @ B[:4, :2],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", FORMATS)
def test_every_format(form: str, name: str) -> None:
    A, B = FORMATS[form](D), FORMATS[form](E)
    got = _check(FUNCTIONS[name], A, B, dense=(D, E))
    sparse_in, sparse_out = form != "dense", not isinstance(got, np.ndarray)
    if name not in ("product of parts",):
        assert sparse_in == sparse_out


def test_formats_of_results() -> None:
    csr, csc, coo, bsr = (
        make(D) for make in (sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array)
    )

    def joined(*parts: Any) -> str:
        made = sparse_jit(target="interpreter")(lambda parts: np.concatenate(parts))(parts)
        return getattr(made, "format", type(made).__name__)

    assert joined(csr, csr) == "csr"
    assert joined(csc, csc) == "csc"
    assert joined(coo, coo) == "coo"
    assert joined(csr, csc) == joined(coo, bsr) == "csr"
    assert joined(csr, D) == joined(D, csr) == "ndarray"


def test_a_requested_format() -> None:
    A = sp.csr_array(D)
    fn = sparse_jit(target="interpreter", output=sj.CSC)(lambda A: np.concatenate([A, A], axis=1))
    assert fn(A).format == "csc"
    fn = sparse_jit(target="interpreter", output=sj.DCSR)(lambda A: A.reshape(6, 5))
    assert fn(A).format == sj.DCSR
    fn = sparse_jit(target="interpreter", output=sj.Dense(2))(
        lambda A: np.pad(A, 1, constant_values=7)
    )
    np.testing.assert_array_equal(fn(A), np.pad(D, 1, constant_values=7))
    fn = sparse_jit(target="interpreter", output=sj.CSR)(lambda D: np.concatenate([D, D]))
    assert fn(D).nnz == 2 * np.count_nonzero(D)


def test_mixed_operands_and_dtypes() -> None:
    A, B = sp.csr_array(D), sp.coo_array(F.astype(np.float32))
    _check(lambda A, B, E: np.concatenate([A, B, E]), A, B, E, dense=(D, F.astype(np.float32), E))
    _check(lambda x, y: np.concatenate([x, y]), x, y, dense=(x, y))
    _check(lambda x, y: np.stack([y, y > 0]), x, y, dense=(x, y))
    _check(lambda x: np.concatenate([x, np.arange(3)]), y, dense=(y,))
    _check(lambda x, y: np.concatenate([x, y], dtype=np.complex64), x, y, dense=(x, y))
    _check(lambda x: np.pad(x, (2, 1), constant_values=-1), y, dense=(y,))
    _check(lambda x: np.vstack([x, x]), x, dense=(x,))
    _check(lambda x: np.hstack([x, x * 2]), x, dense=(x,))
    _check(lambda T: T.reshape(-1, 4) @ np.ones(4), T, dense=(T,))
    tensor = sj.asarray(T, format=sj.CSF(3))
    _check(lambda T: T.reshape(6, 4), tensor, dense=(T,))
    _check(lambda T: np.concatenate([T, T], axis=1), tensor, dense=(T,))
    _check(lambda T: np.pad(T, ((1, 0), (0, 2), (1, 1))), tensor, dense=(T,))
    _check(lambda T: T[:, 1], tensor, dense=(T,))
    _check(lambda T: T[1, ::2, 1:3], tensor, dense=(T,))


def test_stored_zeros_stay() -> None:
    A = sp.csr_array((np.array([0.0, 2.0, 0.0]), np.array([1, 0, 3]), np.array([0, 1, 3])))
    stored = {
        "concatenate": (lambda A: np.concatenate([A, A]), 6),
        "reshape": (lambda A: A.reshape(4, 2), 3),
        "pad": (lambda A: np.pad(A, 1), 3),
        "slice": (lambda A: A[:, 1:], 2),
        "stack": (lambda A: np.stack([A, A]), 6),
    }
    for fn, count in stored.values():
        assert sparse_jit(target="interpreter")(fn)(A).nnz == count


def test_fill_values_stay() -> None:
    A = sj.asarray(D, format=sj.CSR, fill_value=1)
    whole = A.to_numpy()
    for fn in (
        lambda A: np.concatenate([A, A], axis=1),
        lambda A: A.reshape(6, 5),
        lambda A: np.pad(A, 1, constant_values=1),
        lambda A: A[1:, ::2],
        lambda A: A[:, 2],
    ):
        made = _check(fn, A, dense=(whole,))
        assert made.fill_value == 1
    _check(lambda A, D: np.concatenate([A, D]), A, D, dense=(whole, D))


def test_what_is_put_together_differs() -> None:
    A, B = sj.asarray(D, format=sj.CSR, fill_value=1), sj.asarray(E, format=sj.CSR)
    jit = sparse_jit(target="interpreter")
    with pytest.raises(UnsupportedError, match=r"fill values 1\.0 and 0\.0"):
        jit(lambda A, B: np.concatenate([A, B]))(A, B)
    dense = sparse_jit(target="interpreter", output=sj.Dense(2))
    made = dense(lambda A, B: np.concatenate([A, B]))(A, B)
    np.testing.assert_array_equal(made, np.concatenate([A.to_numpy(), E]))
    with pytest.raises(UnsupportedError, match=r"padding a sparse array with 2\.0"):
        jit(lambda B: np.pad(B, 1, constant_values=2))(B)


def test_slices_are_copies_of_sparse_and_views_of_dense_arrays() -> None:
    def f(A: Any) -> Any:
        part = A[1:3]
        return part + 0 * part, part

    made = sparse_jit(target="interpreter")(f)(sp.csr_array(D))
    np.testing.assert_array_equal(made[1].toarray(), D[1:3])


# ------------------------------------------------------------ reshapes of dense arrays are views


def _assigned(fn: Callable[..., Any], *arrays: Any) -> None:
    mine, theirs = ([array.copy() for array in arrays] for _ in range(2))
    got, wanted = sparse_jit(target="interpreter")(fn)(*mine), fn(*theirs)
    for one, other in zip((got, *mine), (wanted, *theirs), strict=True):
        np.testing.assert_allclose(one, other)


def test_assigning_through_a_reshape() -> None:
    def flat(D: Any) -> Any:
        flat = D.reshape(-1)
        flat[3] = 50
        flat[10:20] += 1
        return D.sum(axis=0)

    def seen_later(D: Any) -> Any:
        flat = D.ravel()
        before = flat * 1
        D[0] = 9
        return flat + before

    def of_a_slice(D: Any) -> Any:
        part = D[1:3].reshape(3, 4)
        part[:, 0] = 7
        return part * 2

    def of_a_computed(D: Any) -> Any:
        made = D * 2
        rows = made.reshape(6, 5)
        rows[0] = 1
        made[4, 4] = -1
        return rows

    def copied(D: Any) -> Any:
        flat = D.flatten()
        flat[0] = 99
        return flat

    def whole(D: Any) -> Any:
        flat = D.reshape(30)
        flat *= 2
        return D + 1

    def ones(D: Any) -> Any:
        column = D.reshape(5, 1, 6)
        column[2, 0, :] = 4
        return column

    for fn in (flat, seen_later, of_a_slice, of_a_computed, copied, whole, ones):
        _assigned(fn, D)


def test_reshapes_in_loops() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            square = c.reshape(2, 3)
            square[i] = square[i] * 2
            return square.reshape(-1) + 1

        return sj.fori_loop(0, 2, body, x)

    c = x
    for i in range(2):
        square = c.reshape(2, 3).copy()
        square[i] *= 2
        c = square.reshape(-1) + 1
    np.testing.assert_allclose(sparse_jit(target="interpreter")(f)(x), c)


def test_rows_of_a_sparse_matrix_in_a_loop() -> None:
    def f(A: Any, s: Any) -> Any:
        return sj.fori_loop(0, A.shape[0], lambda i, s: s * 0.5 + A[i] * (i + 1), s)

    s = x
    for i in range(5):
        s = s * 0.5 + D[i] * (i + 1)
    np.testing.assert_allclose(sparse_jit(target="interpreter")(f)(sp.csr_array(D), x), s)


# ------------------------------------------------------------ shapes


def test_one_trace_for_many_shapes() -> None:
    fn = sparse_jit(target="interpreter")(lambda x: x.reshape(-1, 2).sum(axis=0))
    for n in (4, 6, 10):
        array = np.arange(float(n))
        np.testing.assert_array_equal(fn(array), array.reshape(-1, 2).sum(axis=0))
    assert fn.cache_info().traces == 1
    with pytest.raises(
        TensorTypeError, match=r"cannot reshape array of size 5 into shape \(-1,2\)"
    ):
        fn(np.arange(5.0))


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (lambda D, x: D.reshape(7, 4), r"cannot reshape array of size 30 into shape \(7,4\)"),
        (lambda D, x: D.reshape(-1, -1), "can only specify one unknown dimension"),
        (lambda D, x: D.reshape(-2, 3), "negative dimensions are not allowed"),
        (lambda D, x: D.reshape("a"), "a shape has integers and extents"),
        (lambda D, x: np.concatenate([D, x]), r"must match: \(5, 6\) and \(6,\)"),
        (lambda D, x: np.concatenate([D, D.T]), r"must match: \(5, 6\) and \(6, 5\)"),
        (lambda D, x: np.concatenate([D, D], axis=2), "axis 2 is out of bounds"),
        (lambda D, x: np.concatenate([x.sum(), x]), "zero-dimensional arrays cannot be"),
        (lambda D, x: np.stack([D, x]), r"must have the same shape: \(5, 6\) and \(6,\)"),
        (lambda D, x: np.pad(D, -1), "pad_width is not negative"),
        (lambda D, x: np.pad(D, ((1, 1),) * 3), "does not fit an array of rank 2"),
    ],
)
def test_shapes_that_do_not_fit(fn: Callable[..., Any], what: str) -> None:
    with pytest.raises(TensorTypeError, match=what) as caught:
        sparse_jit(target="interpreter")(fn)(D, x)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (lambda D, x: np.pad(D, 1, mode="edge"), "pad with mode 'edge' is not built"),
        (lambda D, x: np.pad(D, 1, constant_values=x[0]), "that is not one number known"),
        (lambda D, x: D.reshape(6, 5, order="A"), "reshape with order='A' is not built"),
        (lambda D, x: np.concatenate([D, D], out=D), "with out= or casting= is not built"),
    ],
)
def test_what_is_not_built(fn: Callable[..., Any], what: str) -> None:
    with pytest.raises((UnsupportedError, TraceError), match=what):
        sparse_jit(target="interpreter")(fn)(D, x)


@pytest.mark.parametrize("name", ["columns", "reshape", "pad each", "slices"])
def test_compiled(name: str) -> None:
    A, B = sp.csr_array(D), sp.csr_array(E)
    got = sparse_jit(target="cpu")(FUNCTIONS[name])(A, B)
    np.testing.assert_array_equal(got.toarray(), FUNCTIONS[name](D, E))
