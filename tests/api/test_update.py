"""``sj.update``: elements combined in place by the operations of reductions, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import TensorValueError, TraceError

RNG = np.random.default_rng(3)
A = np.where(RNG.random((4, 4)) < 0.6, RNG.integers(-4, 5, (4, 4)), 0).astype(float)
x = RNG.integers(-3, 4, 4).astype(float)

UFUNCS: dict[str, Any] = {
    **{"min": np.minimum, "max": np.maximum, "add": np.add, "sum": np.add},
    **{"mul": np.multiply, "prod": np.multiply, "or": np.logical_or, "and": np.logical_and},
}


@pytest.mark.parametrize("make", [np.array, sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("op", UFUNCS)
def test_as_numpy(op: str, make: Callable[..., Any]) -> None:
    def rows(y: Any, A: Any) -> None:
        i, j = sj.indices("i j")
        sj.update(y[i], op, A[i, j])

    got, ufunc = x.copy(), UFUNCS[op]
    sparse_jit(rows, target="interpreter")(got, make(A))
    np.testing.assert_allclose(got, ufunc(x, ufunc.reduce(A, axis=1)))


def test_other_targets() -> None:
    def fn(y: Any, A: Any, x: Any) -> Any:
        i, j = sj.indices("i j")
        sj.update(y[0], "max", A[i, j])
        sj.update(y[1:], "min", x[1:])
        sj.update(y[j], "min", x[i] + A[i, j])
        z = x * 2
        sj.update(z, "max", 1.0)
        return z

    got, wanted = x.copy() + 1, x.copy() + 1
    z = sparse_jit(fn, target="interpreter")(got, sp.csr_array(A), x)
    wanted[0] = max(wanted[0], A.max())
    wanted[1:] = np.minimum(wanted[1:], x[1:])
    wanted = np.minimum(wanted, (x[:, None] + A).min(axis=0))
    np.testing.assert_allclose(got, wanted)
    np.testing.assert_allclose(z, np.maximum(x * 2, 1))


def test_what_is_refused() -> None:
    def wrong(y: Any) -> None:
        sj.update(y[0], "least", 1.0)

    def fresh(y: Any) -> Any:
        (i,) = sj.indices("i")
        M = sj.output()
        sj.update(M[i], "min", y[i])
        return M

    def no_element(y: Any) -> None:
        sj.update(3, "min", y)

    for fn, kind in ((wrong, TensorValueError), (fresh, TraceError), (no_element, TraceError)):
        with pytest.raises(kind) as caught:
            sparse_jit(fn, target="interpreter")(x.copy())
        assert caught.value.location is not None
        assert caught.value.location.function == fn.__name__
