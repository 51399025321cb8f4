"""Bad input and odd programs: the right number or a clear error, never a crash, never a change."""

from __future__ import annotations

import copy
import functools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import SparseJitError, TensorTypeError, TraceError, UnsupportedError

DENSE = np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0]])
A = sp.csr_array(DENSE)
X = np.arange(1.0, 4.0)


def jit(fn: Any, **options: Any) -> Any:
    return sparse_jit(fn, target="interpreter", **options)


def made(text: str, **names: Any) -> Any:
    """Return the function ``f`` of a text that no file holds, as in a notebook."""
    space: dict[str, Any] = {"np": np, "sj": sj, "sp": sp, **names}
    exec(text, space)
    return space["f"]


NAMES = [
    ("range", "empty"),
    ("int64", "float64"),
    ("i", "b0"),
    ("A", "A_pos1"),
    ("A", "A_values"),
    ("d0", "d1"),
    ("d0", "d_0"),
    ("x0", "t0"),
    ("np", "numba"),
    ("print", "len"),
    ("min", "max"),
    ("é", "名前"),
    ("self", "_"),
    ("x", "x_"),
    ("_0", "_1"),
    ("bool", "sort"),
]


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_names_that_generated_code_uses(names: tuple[str, str]) -> None:
    a, x = names
    fn = made(f"def f({a}, {x}):\n    {x} += 1\n    return {a} @ {x} + {a}.T @ {x}")
    x_given = X.copy()
    np.testing.assert_allclose(jit(fn)(A, x_given), DENSE @ (X + 1) + DENSE.T @ (X + 1))
    np.testing.assert_array_equal(x_given, X + 1)


DTYPES = [
    bool,
    np.int8,
    np.uint16,
    np.int64,
    np.uint64,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.complex64,
    np.complex128,
]
UNIFORM: list[Callable[[Any, Any], Any]] = [
    lambda A, x: A @ x,
    lambda A, x: A + x,
    lambda A, x: A.sum(axis=0),
    lambda A, x: x == A,
    lambda A, x: A.T * 1,
    lambda A, x: np.where(x, x, 0),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_dtype(dtype: Any) -> None:
    dense, x = DENSE.astype(dtype), X.astype(dtype)
    for fn in UNIFORM:
        got, wanted = jit(fn)(sj.asarray(dense, format=sj.CSR), x), fn(dense, x)
        got = got.to_numpy() if isinstance(got, sj.SparseTensor) else got
        got = np.asarray(got)
        # The product of two bfloat16 matrices is float32 in ml_dtypes alone.
        assert got.dtype == wanted.dtype or dtype is ml_dtypes.bfloat16
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_dtype_in_place(dtype: Any) -> None:
    def fn(A: Any, x: Any) -> None:
        x += x
        x += A.sum(axis=0, dtype=x.dtype) + x

    def statement(A: Any, x: Any) -> None:
        i, j = sj.indices("i j")
        x[i] += A[j, i] + x[i]

    dense, x = DENSE.astype(dtype), X.astype(dtype)
    wanted = x.copy()
    fn(dense, wanted)
    jit(fn)(sj.asarray(dense, format=sj.CSR), x)
    np.testing.assert_array_equal(x, wanted)
    x = X.astype(dtype)
    jit(statement)(sj.asarray(dense, format=sj.CSR), x)
    np.testing.assert_array_equal(
        x, X.astype(dtype) + (dense.sum(axis=0, dtype=dtype) + X.astype(dtype))
    )


def test_sizes_of_programs() -> None:
    terms = " + ".join(f"x * {k}.0" for k in range(200))
    fn = made(f"def f(x):\n    return {terms}")
    np.testing.assert_allclose(jit(fn)(X), fn(X))
    terms = " + ".join(f"A[i, j] * x[j] * {k}.0" for k in range(40))
    fn = made(
        "def f(A, x):\n    i, j = sj.indices('i j')\n    y = sj.output()\n"
        f"    y[i] = {terms}\n    return y"
    )
    np.testing.assert_allclose(jit(fn)(A, X), DENSE @ X * sum(range(40)))


def test_many_operands_and_dimensions() -> None:
    given = [np.arange(4.0).reshape(2, 2) + k for k in range(12)]
    subscripts = ",".join(chr(97 + k) + chr(98 + k) for k in range(12)) + "->am"
    got = jit(lambda *a: sj.einsum(subscripts, *a))(*given)
    np.testing.assert_allclose(got, functools.reduce(np.matmul, given))
    T = np.arange(1024.0).reshape((2,) * 10)
    got = jit(lambda T: T.sum(axis=(0, 3, 5)).T * 2)(sj.asarray(T, format=sj.COO(10)))
    np.testing.assert_allclose(got.to_numpy(), T.sum(axis=(0, 3, 5)).T * 2)


# ---------------------------------------------------------------- what is a function


class Model:
    """Holds its weights, as users' models do."""

    def __init__(self) -> None:
        self.W = A

    def apply(self, x: Any) -> Any:
        return self.W @ x

    compiled = jit(apply)

    @classmethod
    def of(cls, A: Any, x: Any) -> Any:
        return A @ x


def with_default(A: Any, x: Any = X, *, s: float = 1.0) -> Any:
    return A @ x * s


def with_stars(*args: Any, **kwargs: Any) -> Any:
    return args[0] @ args[1] * kwargs["s"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: jit(made("f = lambda A, x: A @ x"))(A, X),
        lambda: jit(functools.partial(lambda s, A, x: s * (A @ x), 1))(A, X),
        lambda: jit(functools.partial(Model.of, A))(X),
        lambda: jit(with_default)(A),
        lambda: jit(with_stars)(A, X, s=1),
        lambda: jit(Model.of)(A, X),
        lambda: Model().compiled(X),
        lambda: jit(np.dot)(A, X),
        lambda: jit(lambda A, x: jit(jit(Model.of))(A, x))(A, X),
        lambda: jit(lambda A, x: sum((A[:, k] * x[k] for k in range(3)), 0))(A, X),
    ],
)
def test_what_is_decorated(call: Callable[[], Any]) -> None:
    np.testing.assert_allclose(call(), DENSE @ X)


def test_arrays_that_no_name_reaches() -> None:
    with pytest.raises(UnsupportedError, match="pass it as an argument"):
        jit(functools.partial(Model.apply, Model()))(X)


def generator(x: Any) -> Any:
    yield x


async def coroutine(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    "fn", [generator, coroutine, lambda x: map(abs, [x]), lambda x: {x}, lambda x: {x: 1}]
)
def test_results_that_would_keep_traced_arrays(fn: Any) -> None:
    with pytest.raises(TraceError, match="returns"):
        jit(fn)(X)


# ---------------------------------------------------------------- what a traced array is not

LINES = [
    "return bool(x)",
    "return list(x)",
    "a, b, c = x",
    "return float(x)",
    "return int(x[0])",
    "return np.asarray(x)",
    "return np.array([x, x])",
    "return 1 in x",
    "return x.tolist()",
    "return np.sort(x)",
    "return x[x > 1]",
    "return x[np.array([0, 1])]",
    "return x['a']",
    "return x[5]",
    "return x[1, 2]",
    "return x @ 3",
    "return x + None",
    "return x + object()",
    "return x.sum(axis=3)",
    "return sj.einsum('i->ii', x)",
    "return sj.sum(x, over='i')",
    "return sj.output(dtype='foo')",
    "return x[sj.indices('i')[0]].sum()",
    "return list(x[sj.indices('i')[0]])",
    "return x.astype('S3')",
    "del x[0]",
    "return pickle.dumps(x)",
    "return np.add(x, 1, dtype=int)",
    "i, = sj.indices('i')\n    y = sj.output()\n    y[i] = x[x[i]]",
    "i, j = sj.indices('i j')\n    y = sj.output()\n    y[i] = sj.sum(x[i] * j, over=j)",
    "x[7] = 1",
]


@pytest.mark.parametrize("line", LINES)
def test_what_cannot_be_traced(line: str) -> None:
    x = X.copy()
    with pytest.raises((TraceError, TensorTypeError, UnsupportedError)) as caught:
        jit(made(f"def f(x):\n    x += 1\n    {line}", pickle=pickle))(x)
    assert caught.value.location is not None
    assert caught.value.location.line >= 3
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: [f"{x} {x!r}", hash(x), x * 1][-1],
        lambda x: copy.copy(x),
        lambda x: copy.deepcopy(x) + 0,
        lambda x: x[: len(x)] * 1,
    ],
)
def test_what_can(fn: Any) -> None:
    np.testing.assert_array_equal(jit(fn)(X), X)


@pytest.mark.parametrize(
    "use",
    [
        lambda kept: kept + 1,
        lambda kept: kept.sum(),
        lambda kept: kept[0],
        lambda kept: kept.shape,
        lambda kept: len(kept),
        lambda kept: list(kept),
        lambda kept: np.asarray(kept),
        lambda kept: np.exp(kept),
        lambda kept: kept.T,
        lambda kept: kept == 1,
        lambda kept: jit(lambda a: a + kept)(X),
        lambda kept: jit(lambda a: a)(kept),
    ],
)
def test_what_leaks_says_so(use: Any) -> None:
    kept: list[Any] = []
    jit(lambda x: kept.extend([x, x * 2]))(X)
    for one in kept:
        with pytest.raises(SparseJitError):
            use(one)
        assert "traced array" in repr(one)


def test_exceptions_of_the_user_come_through() -> None:
    def fails(x: Any) -> None:
        x += 1
        raise KeyError("mine")

    x = X.copy()
    with pytest.raises(KeyError, match="mine") as caught:
        jit(fails)(x)
    assert caught.traceback[-1].name == "fails"
    np.testing.assert_array_equal(x, X)


def test_threads_trace_at_once() -> None:
    shared, results = jit(lambda A, x: (A * 2) @ x), []

    def work(n: int) -> None:
        own = jit(lambda A, x: A @ x * n)
        results.append(np.allclose(own(A, X), DENSE @ X * n))
        results.append(np.allclose(shared(A, X), DENSE @ X * 2))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
