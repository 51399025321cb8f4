"""Extents near and beyond what 64 bits and memory hold: right where the result is small, else an
error that says what was too large and where.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import OutOfMemoryError, TensorValueError

N, M, K = 2**40, 2**62, 2**60
VALUES = np.array([1.0, 2.0, 4.0])

OPERANDS: dict[str, Any] = {
    "A": sj.from_coo(([0, 5, N - 1], [3, N - 1, 7]), VALUES, (N, N), format=sj.COO(2)),
    "B": sj.from_coo(([3, N - 1, 0], [0, 1, 2]), VALUES, (N, N), format=sj.DCSR),
    "W": sj.from_coo(([0, 5, M - 1], [0, 1, 2]), VALUES, (M, 3), format=sj.COO(2)),
    "T": sj.from_coo(([0, 5, M - 1], [0, M - 1, 2], [1, 1, 1]), VALUES, (M,) * 3, format=sj.CSF(3)),
    "v": sj.from_coo(([0, 9, K - 1],), VALUES, (K,), format=sj.SparseVector),
    "X": np.arange(6.0).reshape(3, 2),
}


def _run(text: str, **options: Any) -> Any:
    code = compile(text, "<case>", "eval")
    names = [name for name in OPERANDS if name in code.co_names]
    fn = eval(f"lambda {', '.join(names)}: {text}", {"np": np, "sj": sj})
    return sparse_jit(fn, target="interpreter", **options)(*(OPERANDS[name] for name in names))


NUMBERS: dict[str, Any] = {
    **{"A.sum()": 7, "A.max()": 4, "A.min()": 0, "A.any()": True, "A.all()": False, "A.prod()": 0},
    **{"A.mean()": 7 / N**2, "(A + 1).prod()": 30, "np.linalg.norm(A)": 21**0.5, "A.nnz": 3},
    **{"np.count_nonzero(A)": 3, "A[0, 3]": 1, "A[-1, 7]": 4, "np.trace(A)": 0, "v @ v": 21},
    **{"v[5:20].sum()": 2, "v.argmax()": K - 1, "v.sum()": 7, "T.sum()": 7, "T.max()": 4},
    **{"T.min()": 0, "W.sum(axis=0)": [1, 2, 4], "W.max(axis=0)": [1, 2, 4]},
    **{"W.min(axis=0)": [0, 0, 0], "W.argmax(axis=0)": [0, 5, M - 1]},
    **{"A.var()": 21 / N**2, "sj.einsum('ij,ij->', A, A)": 21},
}


@pytest.mark.parametrize("text", NUMBERS)
def test_small_results(text: str) -> None:
    np.testing.assert_allclose(_run(text), NUMBERS[text], rtol=1e-12)


SPARSE: dict[str, tuple[int, float]] = {
    **{"A * 2": (3, 14), "A + B": (6, 14), "A * A": (3, 21), "A @ B": (2, 5), "A.T * 1": (3, 7)},
    **{"A[5]": (1, 2), "A[:, 7]": (1, 4), "A[1:100]": (1, 2), "A[::-1]": (3, 7), "A[None]": (3, 7)},
    **{"v[5:]": (2, 6), "v.reshape(2**30, 2**30)": (3, 7), "W.reshape(2**61, 6)": (3, 7)},
    **{"np.concatenate([v, v])": (6, 14), "np.stack([v, v])": (6, 14), "np.pad(v, 5)": (3, 7)},
    **{"np.tile(v, 2)": (6, 14), "np.repeat(v, 2)": (6, 14), "np.roll(v, 1)": (3, 7)},
    **{"np.triu(A)": (2, 3), "T.sum(axis=2)": (3, 7), "T * T": (3, 21), "np.outer(v, v)": (9, 49)},
    **{"np.exp(A)": (3, float(np.exp(VALUES).sum())), "A.asformat(sj.DCSC)": (3, 7)},
    **{"W.T @ W": (3, 21), "sj.fori_loop(0, 3, lambda k, C: C * 2, A)": (3, 56)},
}


@pytest.mark.parametrize("text", SPARSE)
def test_sparse_results(text: str) -> None:
    got = _run(text)
    stored = got if isinstance(got, sj.SparseTensor) else sj.asarray(got)
    assert stored.nse == SPARSE[text][0]
    assert stored.values.sum() == pytest.approx(SPARSE[text][1])


@pytest.mark.parametrize("text", ["A.sum(axis=1)", "A.max(axis=1)", "A @ A[5]", "A.T @ A", "W @ X"])
def test_a_sparse_result_that_was_asked_for(text: str) -> None:
    rank = 1 if text in ("A.sum(axis=1)", "A.max(axis=1)", "A @ A[5]") else 2
    got = _run(text, output=sj.SparseVector if rank == 1 else sj.DCSR)
    assert got.nse <= 6


TOO_LARGE = [
    *("A.reshape(-1)", "W.ravel()", "T.reshape(-1)", "np.concatenate([W, W])", "np.pad(v, 2**62)"),
    *("np.kron(A, A)", "np.diag(v)", "np.tile(v, 16)", "np.repeat(v, 16)", "A.argmax()"),
]


@pytest.mark.parametrize("text", TOO_LARGE)
def test_beyond_64_bits(text: str) -> None:
    with pytest.raises(TensorValueError, match=r"is beyond 2\*\*63 - 1") as caught:
        _run(text)
    assert caught.value.location is not None
    assert caught.value.location.file == "<string>"


def test_a_later_call_beyond_64_bits() -> None:
    def twice(v: Any) -> Any:
        return np.concatenate([v, v])

    fn = sparse_jit(twice, target="interpreter")
    small, large = (
        sj.from_coo(([0, 2**33],), [1.0, 2.0], (extent,), format=sj.SparseVector)
        for extent in (2**34, 2**62)
    )
    assert fn(small).shape == (2**35,)
    with pytest.raises(TensorValueError, match="an extent of 9223372036854775808 is beyond"):
        fn(large)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    ("text", "size"),
    [
        (
            "A.sum(axis=0)",
            r"a dense array of shape \(1099511627776,\) and type float64 takes 8 TiB",
        ),
        ("A.toarray()", r"takes 8 YiB"),
        ("W @ X", r"takes 64 EiB"),
        ("A.tocsr()", r"an array in the format .* takes 8 TiB"),
    ],
)
def test_more_than_memory(text: str, size: str, target: str) -> None:
    names = [name for name in OPERANDS if name in compile(text, "", "eval").co_names]
    fn = sparse_jit(eval(f"lambda {', '.join(names)}: {text}"), target=target)
    with pytest.raises(OutOfMemoryError, match=size) as caught:
        fn(*(OPERANDS[name] for name in names))
    assert isinstance(caught.value, MemoryError)
    assert "output=" in caught.value.hint
