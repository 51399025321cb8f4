"""NumPy's functions on traced arrays, dense and sparse, against NumPy on the dense equivalents.

Lists of expressions, one a line: ``numpy_right.txt`` has those that mean what NumPy computes,
``numpy_refused.txt`` those that are refused with a reason or an alternative, ``numpy_formats.txt``
what runs in every format, ``scipy_methods.txt`` what SciPy's sparse arrays understand too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import TraceError, UnsupportedError
from sparsejit.reference import Masked

HERE = Path(__file__).parent
RNG = np.random.default_rng(0)
Array = np.ndarray[Any, Any]


def _sparse(*shape: int) -> Array:
    return np.where(RNG.random(shape) < 0.4, RNG.integers(-4, 5, shape), 0).astype(float)


A, B, S, v, T = _sparse(4, 5), _sparse(4, 5), _sparse(4, 4), _sparse(5), _sparse(2, 3, 4)
N = A.copy()
N[0, 0], N[1, 2], N[2, 3] = np.nan, np.inf, -np.inf
OPERANDS: dict[str, Array] = {
    **{"A": A, "B": B, "S": S, "v": v, "T": T, "N": N, "P": np.abs(A)},
    **{"I": A.astype(np.int64), "Bo": B != 0, "Cx": A + 1j * B, "U": np.abs(B).astype(np.uint8)},
    **{"D": RNG.standard_normal((4, 5)), "x": RNG.standard_normal(5)},
}
DENSE = ("D", "x")
BY_RANK = {1: sj.SparseVector, 2: sj.CSR, 3: sj.CSF(3)}


def _lines(name: str) -> list[str]:
    return (HERE / name).read_text().splitlines()


def _function(text: str) -> tuple[Any, list[str]]:
    """Return an expression as a function of the operands that it names, and these names."""
    code = compile(text, "<case>", "eval")
    inner = [name for c in code.co_consts if hasattr(c, "co_names") for name in c.co_names]
    names = [name for name in OPERANDS if name in (*code.co_names, *inner)]
    return eval(f"lambda {', '.join(names)}: {text}", {"np": np}), names


def _given(name: str, is_sparse: bool) -> Any:
    array = OPERANDS[name].copy()
    sparse = is_sparse and name not in DENSE
    return sj.asarray(array, format=BY_RANK[array.ndim]) if sparse else array


def _dense(value: Any) -> Any:
    if isinstance(value, Masked):
        return value.values
    if isinstance(value, tuple | list):
        return type(value)(map(_dense, value))
    if hasattr(value, "toarray"):
        return value.toarray()
    return value.to_numpy() if isinstance(value, sj.SparseTensor) else value


def _compare(got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            _compare(one, other)
        return
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if wanted.dtype.kind in "fcbiu":
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


RIGHT = [(text, True) for text in _lines("numpy_right.txt")]
RIGHT += [(text, False) for text, _ in RIGHT[::6]]  # most have one rule for dense and sparse


@pytest.mark.parametrize(("text", "is_sparse"), RIGHT)
def test_as_numpy(text: str, is_sparse: bool) -> None:
    fn, names = _function(text)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = fn(*(OPERANDS[name].copy() for name in names))
        given = [_given(name, is_sparse) for name in names]
        got = sparse_jit(fn, target="interpreter").lower(*given).reference(*given)
    _compare(_dense(got), wanted)


@pytest.mark.parametrize("text", _lines("numpy_refused.txt"))
def test_what_is_refused_says_why_or_what_else(text: str) -> None:
    fn, names = _function(text)
    with pytest.raises(UnsupportedError) as caught:
        sparse_jit(fn).lower(*(_given(name, True) for name in names)).text("tensor")
    assert caught.value.location is not None
    assert caught.value.hint or caught.value.reasons


# ------------------------------------------------------------ every format

FORMATS: dict[str, Callable[[Array], Any]] = {
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "bsr": lambda a: sp.bsr_array(a, blocksize=(2, 2)),
    "dia": sp.dia_array,
    "dcsr": lambda a: sj.asarray(a, format=sj.DCSR),
    "ell": lambda a: sj.asarray(a, format=sj.ELL(4)),
    "aos": lambda a: sj.asarray(
        a, format=sj.Format("(i, j) -> (i : compressed(nonunique), j : singleton)")
    ),
    "filled": lambda a: sj.asarray(a, format=sj.CSR, fill_value=2.0),
}
EXPRESSIONS = _lines("numpy_formats.txt")


@pytest.mark.parametrize("form", FORMATS)
def test_in_every_format(form: str) -> None:
    for text in EXPRESSIONS:
        fn = eval(f"lambda S: {text}", {"np": np})
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            got = sparse_jit(fn, target="interpreter")(FORMATS[form](S))
            wanted = S if "nnz" in text else fn(S.copy())
        _compare(_dense(got), wanted)


def test_triangles_and_diagonals_store_no_more_than_they_have() -> None:
    matrix = sp.csr_array(np.ones((4, 4)))
    upper = sparse_jit(lambda S: np.triu(S, 1), target="interpreter")(matrix)
    assert (upper.format, upper.nnz) == ("csr", 6)
    diagonal = sparse_jit(lambda x: np.diag(x, 1), target="interpreter")(np.arange(1.0, 6))
    assert diagonal.nnz == 5
    scaled = sparse_jit(lambda x, S: np.diag(x) @ S, target="interpreter")(np.arange(4.0), matrix)
    np.testing.assert_allclose(_dense(scaled), np.arange(4.0)[:, None] * np.ones((4, 4)))


def test_variance_visits_the_entries_only() -> None:
    wide = sp.csr_array(sp.coo_array(([1.0, 3.0], ([0, 2], [5, 2**40])), shape=(4, 2**40 + 1)))
    got = sparse_jit(lambda S: S.T.var(axis=0), target="interpreter")(wide)
    assert got.shape == (4,)
    np.testing.assert_allclose(got, [1 / 2**40, 0, 9 / 2**40, 0], rtol=1e-9)


# ------------------------------------------------------------ SciPy's spellings

METHODS = _lines("scipy_methods.txt")


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array])
def test_as_scipy(make: Any) -> None:
    matrix = make(np.abs(S))
    for text in METHODS:
        fn = eval(f"lambda S: {text}")
        if not hasattr(matrix, text.split("(")[0].split(".")[1]):
            continue
        got, wanted = sparse_jit(fn, target="interpreter")(matrix), fn(matrix)
        np.testing.assert_allclose(_dense(got), _dense(wanted), rtol=1e-12)
        if ".to" in text:
            assert getattr(got, "format", None) == getattr(wanted, "format", None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("S.data * 2", "sj.where_stored"),
        ("S.indptr[0]", "sj.where_stored"),
        ("S.A", r"\.toarray"),
        ("S.H", r"\.T\.conj"),
        ("S.no_such_thing", "no attribute 'no_such_thing'"),
    ],
)
def test_attributes_that_are_missing_say_what_else(text: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        sparse_jit(eval(f"lambda S: {text}"), target="interpreter")(sp.csr_array(S))


@pytest.mark.parametrize(
    "text",
    ["S.tobsr()", "S.nonzero()", "S.resize((2, 2))", "S.asformat('lil')", "S.tocsr() [0, :]"],
)
def test_other_spellings_are_refused_or_right(text: str) -> None:
    fn = sparse_jit(eval(f"lambda S: {text}"), target="interpreter")
    if "[0" in text:
        np.testing.assert_allclose(_dense(fn(sp.csr_array(S))), S[0])
        return
    with pytest.raises((UnsupportedError, ValueError)):
        fn(sp.csr_array(S))


# ------------------------------------------------------------ reductions of what is not stored


def test_a_sparse_reduction_stores_what_entries_go_into() -> None:
    dense = np.zeros((3, 4, 5))
    dense[0, 1, 2], dense[0, 1, 3], dense[2, 0, 0] = 2, -1, 4
    tensor = sj.asarray(dense, format=sj.CSF(3))
    one = sj.asarray(np.where(dense == 0, 1, dense), format=sj.CSF(3), fill_value=1)
    rules: list[tuple[Any, Any, float | None]] = [
        (lambda T: T.max(axis=2), tensor, 0),
        (lambda T: T.sum(axis=2), tensor, 0),
        (lambda T: T.prod(axis=2), tensor, 0),
        (lambda T: T.any(axis=2), tensor, 0),
        (lambda T: T.min(axis=2), one, 1),
        (lambda T: T.prod(axis=2), one, 1),
        (lambda T: T.sum(axis=2), one, None),
    ]
    for fn, given, fill in rules:
        got = sparse_jit(fn, target="interpreter")(given)
        np.testing.assert_allclose(_dense(got), fn(given.to_numpy()))
        if fill is None:
            assert isinstance(got, np.ndarray)
        else:
            assert (got.nse, got.fill_value) == (2, fill)


def test_extents_in_numpy_constructors() -> None:
    def fn(S: Any) -> Any:
        n = S.shape[0]
        return np.arange(n) + S.sum(axis=1), np.eye(n) + S, np.zeros((n, 2)), np.asarray(n)

    got = sparse_jit(fn, target="interpreter")(sp.csr_array(S))
    _compare([_dense(one) for one in got], fn(S))


def test_array_equal_of_other_shapes_is_decided_for_each_shape() -> None:
    fn = sparse_jit(lambda x, y: np.array_equal(x, y), target="interpreter")
    assert not fn(np.ones(3), np.ones(4))
    assert fn(np.ones(3), np.ones(3))
    assert not fn(np.ones(5), np.ones(4))


def test_values_stay_arrays() -> None:
    def fn(x: Any, use: str) -> Any:
        made: dict[str, Any] = {"float": float, "int": int, "bool": bool, "list": list}
        return made.get(use, np.asarray)(x[0])

    for use in ("float", "int", "bool", "list", "np"):
        with pytest.raises(TraceError) as caught:
            sparse_jit(fn, target="interpreter")(np.ones((3, 2)), use)
        assert caught.value.hint
