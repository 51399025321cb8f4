"""NumPy's functions of elements in index notation, beside NumPy on whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.errors import TraceError, UnsupportedError

FUNCTIONS = """
np.where(a > 0, a, 0) | np.where(a > b, a, b * 2) | np.where(b > 0, 1, a) | np.minimum(a, b)
np.clip(a, 0, 1) | np.clip(a, b - 1, b) | np.clip(a, None, 1.5) | a.clip(0, 1) | np.isclose(a, b)
np.isclose(a, b, atol=1.0) | np.isclose(a, b, equal_nan=True) | np.real(a) | a.real | a.conj()
np.round(a) | np.round(a, 1) | np.around(a, 1) | np.nan_to_num(a) | np.nan_to_num(a, nan=7)
np.angle(a) | np.sinc(a) | np.fix(a) | np.heaviside(a, 0.5) | np.modf(a)[0] + np.modf(b)[1]
np.divmod(a, 2)[1] | np.float_power(a, 2) | np.logaddexp2(a, b) | np.isneginf(a) | np.isposinf(a)
np.select([a > 0, b > 0], [a, b], 5) | np.select([a > 1], [b]) | a.astype(np.float32)
np.astype(a > 0, np.int64) | np.add(a, b, dtype=np.float32) | np.copy(a) | a.copy()
np.imag(a + 1j * b)
np.where(np.isclose(a, b), np.round(a), np.clip(np.sinc(a), 0, b)) | np.where(a + b > 1, a, a - b)
np.isreal(a * 1j) | np.where(a, 1, 2.5)
"""
TEXTS = [text.strip() for line in FUNCTIONS.strip().splitlines() for text in line.split("|")]
SPECIAL = [0.0, -0.0, 1.25, -2.5, 0.5, 3.0, np.inf, -np.inf, np.nan, 0.15, 0.0, 0.0]
A = np.array(SPECIAL).reshape(3, 4)
B = np.array([0, 0, 1.25, 2.5, -1, 0, 4, 0.5, np.nan, 0, 7, 0]).reshape(3, 4)


def _checked(text: str, x: Any, y: Any, order: str) -> None:
    code = compile(text, "formula", "eval")

    @sj.sparse_jit(target="interpreter", cache=False)
    def program(x: Any, y: Any) -> Any:
        i, j = sj.indices("i j")
        made = sj.output()
        made[i, j] = eval(code, {"np": np, "a": x[i, j], "b": y[(i, j) if order == "ij" else j]})
        return made

    with np.errstate(all="ignore"):
        expected = eval(
            code,
            {
                "np": np,
                "a": A if isinstance(x, np.ndarray) else A + 0.0,
                "b": B if order == "ij" else B[1],
            },
        )
    result = program(x, y)
    found = result if isinstance(result, np.ndarray) else sj.asarray(result).to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("text", TEXTS)
def test_dense(text: str) -> None:
    _checked(text, A, B, "ij")
    _checked(text, A, B[1], "j")


@pytest.mark.parametrize("text", TEXTS)
def test_sparse(text: str) -> None:
    _checked(text, sp.csr_array(A), B, "ij")
    _checked(text, sp.csc_array(A), sp.csr_array(B), "ij")


def test_sums_inside_are_summed_as_they_say() -> None:
    @sj.sparse_jit(target="interpreter")
    def program(A: Any, x: Any) -> Any:
        i, j = sj.indices("i j")
        y = sj.output()
        y[i] = np.clip(sj.sum(A[i, j] * x[j], over=j), 0, 10) + np.where(A[i, j] > 1, x[j], 0)
        return y

    matrix, x = np.nan_to_num(A, posinf=2, neginf=1), np.arange(4.0)
    found = program(sp.csr_array(matrix), x)
    expected = np.clip(matrix @ x, 0, 10) + np.where(matrix > 1, x, 0).sum(axis=1)
    np.testing.assert_allclose(found, expected)


def test_updates() -> None:
    def program(x: Any) -> Any:
        (i,) = sj.indices("i")
        x[i] += np.where(x[i] > 1, -x[i], 1)
        x[i] = np.where(i > 1, np.round(x[i]), x[i])

    x = np.array([0.5, 2.0, 0.25, 7.0])
    sj.sparse_jit(program, target="interpreter")(x)
    np.testing.assert_array_equal(x, [1.5, 0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("np.sum(x[i])", r"np\.sum of an indexed expression is not built\n.*test_element"),
        ("np.dot(x[i], x[i])", r"np\.dot of an indexed expression is not built"),
        ("np.stack([x[i], x[i]])", r"np\.stack of an indexed expression is not built"),
        ("np.where(x[i] > 0)", r"np\.where with one argument is not built"),
        ("np.where(x > 0, x[i], 0)", r"a whole array is mixed with an indexed expression"),
        ("np.array([x[i], 1])", r"an indexed expression cannot become a NumPy array"),
        ("x[i].sum()", r"an indexed expression has no attribute 'sum'"),
        ("np.add(x[i], 1, where=x[i] > 0)", r"np\.add with where= of an indexed expression"),
        ("np.add.reduce(x[i])", r"np\.add\.reduce of an indexed expression"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    code = compile(text, __file__, "eval")

    def program(x: Any) -> Any:
        (i,) = sj.indices("i")
        y = sj.output()
        y[i] = eval(code, {"np": np, "x": x, "i": i})
        return y

    with pytest.raises((TraceError, UnsupportedError), match=message):
        sj.sparse_jit(program, target="interpreter")(np.arange(3.0))
