"""What cannot be traced says what is wrong, where in the user's function, and what to do."""

# ruff: noqa: E702  # each function fails at its line 1

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit.trace as sj
from sparsejit.errors import SparseJitError, TensorTypeError, TraceError, UnsupportedError
from sparsejit.formats import CSR
from tests.trace.harness import Operand, check, traced

A = Operand(np.eye(3, 4), CSR)
D = np.ones((3, 4))
x, y = np.ones(4), np.ones(3)


# Each function fails at its line 1; the messages stand below.


def branch(D: Any) -> Any:
    return D if D.sum() > 0 else -D


def iterate(D: Any) -> Any:
    return [row * 2 for row in D]


def number(D: Any) -> Any:
    return float(D[0, 0])


def as_numpy(D: Any) -> Any:
    return np.sort(np.asarray(D))


def contains(D: Any) -> Any:
    return 1 in D


def mixed(A: Any, x: Any) -> Any:
    return A[sj.indices("i j")] * x


def unbound(x: Any) -> Any:
    sj.output()[sj.indices("i")] = 1.0


def inner_sum(A: Any, x: Any, y: Any) -> Any:
    (i, j), r = sj.indices("i j"), sj.output(); r[i] = (A[i, j] + y[i]) * x[j]  # fmt: skip


def inside_function(A: Any, y: Any) -> Any:
    (i, j), r = sj.indices("i j"), sj.output(); r[i] = np.exp(A[i, j] - y[i])  # fmt: skip


def few_indices(A: Any) -> Any:
    return A[sj.indices("i")]


def extents_differ(D: Any, y: Any) -> Any:
    (i, j), r = sj.indices("i j"), sj.output(); r[i] = D[i, j] * y[j]  # fmt: skip


def undetermined(x: Any) -> Any:
    (i, j), r = sj.indices("i j"), sj.output(); r[i] = x[i + j]  # fmt: skip


def leaves(x: Any) -> Any:
    (i,), r = sj.indices("i"), sj.output(); r[i] = x[i - 1]  # fmt: skip


def diagonal_left(x: Any) -> Any:
    (i,), r = sj.indices("i"), sj.output(); r[i, i] = x[i]  # fmt: skip


def gather(x: Any, y: Any) -> Any:
    return (lambda i: x[y[i]])(sj.indices("i")[0])


def slice_and_index(D: Any) -> Any:
    return D[sj.indices("i")[0], :]


def over_absent(A: Any) -> Any:
    return sj.sum(A[sj.indices("i j")], over=sj.indices("k"))


def over_missing(A: Any) -> Any:
    return sj.sum(A[sj.indices("i j")])


def over_array(A: Any) -> Any:
    return sj.sum(A, over=sj.indices("i"))


def names_twice() -> Any:
    return sj.indices("i i")


def unassigned() -> Any:
    return sj.output() + 1


def inner_extents(D: Any, y: Any) -> Any:
    return D @ y


def broadcasting(D: Any, y: Any) -> Any:
    return D + y


def into_shape(y: Any, x: Any) -> Any:
    y[:] = x


def out_of_bounds(x: Any) -> Any:
    return x[4]


def many_indices(x: Any) -> Any:
    return x[0, 0]


def bad_axis(D: Any) -> Any:
    return D.sum(axis=2)


def bool_minus(D: Any) -> Any:
    return -(D > 0)


def not_built_function(D: Any) -> Any:
    return np.percentile(D, 50)


def not_built_method(D: Any) -> Any:
    return D.sort()


def mask(D: Any) -> Any:
    return D[D > 0]


def string(D: Any) -> Any:
    return D + "one"


def pattern(A: Any, x: Any) -> Any:
    (i, j), r = sj.indices("i j"), sj.output(); r[i, j] = sj.where_stored(-A[i, j], 1)  # fmt: skip


def fill(A: Any) -> Any:
    return sj.where_stored(A.astype(int), A.astype(int), fill_value=0.5)


def whole_update(D: Any) -> Any:
    D += D[sj.indices("i j")]


CASES: dict[Callable[..., Any], tuple[tuple[Any, ...], type[SparseJitError], str, str]] = {
    branch: (
        (D,),
        TraceError,
        "the truth value of a traced array is not known while tracing",
        "use sj.where to choose between values; branch on static arguments only",
    ),
    iterate: (
        (D,),
        TraceError,
        "a traced array cannot be iterated over",
        "use array operations or indices",
    ),
    number: (
        (D,),
        TraceError,
        "the value of a traced array is not known while tracing",
        "keep it an array, of rank 0 too; make it a number outside of the traced function",
    ),
    as_numpy: (
        (D,),
        TraceError,
        "a traced array cannot become a NumPy array",
        "leave out np.asarray and np.array: traced arrays take part in NumPy's functions as they "
        "are; np.copy copies",
    ),
    contains: (
        (D,),
        TraceError,
        "whether a traced array contains a value is not known while tracing",
        "use operations that sparsejit traces",
    ),
    mixed: (
        (A, x),
        TraceError,
        "a whole array is mixed with an indexed expression",
        "index it too, as in A[i, j]",
    ),
    unbound: (
        (x,),
        TraceError,
        "nothing bounds the index i",
        "use i as an index of an operand, or give sj.output(shape=)",
    ),
    inner_sum: (
        (A, x, y),
        TraceError,
        "the parts of a sum inside a product or function are summed over {j} and {}",
        "say which sum is meant with sj.sum(..., over=)",
    ),
    inside_function: (
        (A, y),
        TraceError,
        "the parts of a sum inside a product or function are summed over {j} and {}",
        "say which sum is meant with sj.sum(..., over=)",
    ),
    few_indices: (
        (A,),
        TensorTypeError,
        "1 indices for an array of rank 2",
        "give one index for each dimension",
    ),
    extents_differ: (
        (D, y),
        TensorTypeError,
        "index j runs over extents that differ: 4 and 3",
        "",
    ),
    undetermined: (
        (x,),
        TraceError,
        "the extents of i and j are not determined",
        "use all but one of them as the only index of a dimension somewhere",
    ),
    leaves: ((x,), TensorTypeError, "the index i - 1 leaves its operand", ""),
    diagonal_left: ((x,), UnsupportedError, "this left side is not built", ""),
    gather: (
        (x, y),
        UnsupportedError,
        "a value as an index is not built",
        "an index is an index variable, an affine combination, or an integer",
    ),
    slice_and_index: (
        (D,),
        UnsupportedError,
        "slice(None, None, None) as an index is not built",
        "an index is an index variable, an affine combination, or an integer",
    ),
    over_absent: (
        (A,),
        TraceError,
        "sum over an index that the expression does not have: k",
        "",
    ),
    over_missing: (
        (A,),
        TraceError,
        "sum of an indexed expression needs the indices to reduce",
        "write sj.sum(expr, over=j)",
    ),
    over_array: (
        (A,),
        TraceError,
        "sum over indices needs an indexed expression, not a whole array",
        "index it, as in A[i, j], or use axis=",
    ),
    names_twice: (
        (),
        TraceError,
        "indices('i i') does not name indices, each once",
        'write i, j = sj.indices("i j")',
    ),
    unassigned: (
        (),
        TraceError,
        "an output is used before it is assigned",
        "assign to it first, as in M[i, j] = ...",
    ),
    inner_extents: (
        (D, y),
        TensorTypeError,
        "matmul: the inner extents of shapes (3, 4) and (3,) differ",
        "the last axis of the left operand meets the last but one of the right one",
    ),
    broadcasting: (
        (D, y),
        TensorTypeError,
        "operands could not be broadcast together with shapes (3, 4) (3,)",
        "shapes meet at their last axes: new ones are put in with x[:, None]",
    ),
    into_shape: (
        (y, x),
        TensorTypeError,
        "could not broadcast input from shape (4,) into shape (3,)",
        "",
    ),
    out_of_bounds: (
        (x,),
        TensorTypeError,
        "index 4 is out of bounds for axis 0 with size 4",
        "",
    ),
    many_indices: (
        (x,),
        TensorTypeError,
        "too many indices for array: array is 1-dimensional, but 2 were indexed",
        "",
    ),
    bad_axis: (
        (D,),
        TensorTypeError,
        "axis 2 is out of bounds for array of dimension 2",
        "axes are -2 to 1",
    ),
    bool_minus: (
        (D,),
        TensorTypeError,
        "negative of bool: The numpy boolean negative, the `-` operator, is not supported, use "
        "the `~` operator or the logical_not function instead.",
        "",
    ),
    not_built_function: (
        (D,),
        UnsupportedError,
        "np.percentile is not built",
        "call it on the result, outside of the traced function",
    ),
    not_built_method: (
        (D,),
        UnsupportedError,
        "sort of a traced array is not built",
        "call it on the result, outside of the traced function",
    ),
    mask: (
        (D,),
        UnsupportedError,
        "the elements of an array at a boolean mask are not built",
        "use np.where or sj.select, which keep the shape",
    ),
    string: (
        (D,),
        TraceError,
        "str is not an operand",
        "operands are arrays, sparse arrays and scalars",
    ),
    pattern: (
        (A, x),
        UnsupportedError,
        "where_stored needs a tensor, not an expression, as its pattern",
        "assign the expression to a name of its own first",
    ),
    fill: ((A,), TensorTypeError, "fill_value 0.5 is no value of int64", ""),
    whole_update: (
        (D,),
        TraceError,
        "a whole array is updated with an indexed expression",
        "index the left side too, as in y[i] += ...",
    ),
}


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_message(fn: Callable[..., Any]) -> None:
    operands, kind, what, hint = CASES[fn]
    with pytest.raises(kind) as caught:
        traced(fn, *operands)
    error = caught.value
    code = fn.__code__
    assert (error.what, error.hint) == (what, hint)
    assert error.location is not None
    assert (error.location.file, error.location.line) == (code.co_filename, code.co_firstlineno + 1)
    assert error.location.function in (fn.__name__, "<lambda>", "<listcomp>")
    assert str(error).splitlines()[1] == f"  at {error.location}"


def test_results_must_be_arrays() -> None:
    def indexed(A: Any) -> Any:
        return A[sj.indices("i j")]

    def output(A: Any) -> Any:
        return sj.output()

    with pytest.raises(TraceError, match="indexed returns an indexed expression"):
        traced(indexed, A)
    with pytest.raises(TraceError, match="output returns an output that it never assigned"):
        traced(output, A)


OUTSIDE: dict[str, Callable[[], Any]] = {
    "einsum": lambda: sj.einsum("i->i", x),
    "indices": lambda: sj.indices("i"),
    "output": lambda: sj.output(),
    "sum": lambda: sj.sum(x),
    "min": lambda: sj.min(x),
    "max": lambda: sj.max(x),
    "prod": lambda: sj.prod(x),
    "any": lambda: sj.any(x),
    "all": lambda: sj.all(x),
    "mean": lambda: sj.mean(x),
    "where": lambda: sj.where(x, x, x),
    "minimum": lambda: sj.minimum(x, x),
    "maximum": lambda: sj.maximum(x, x),
    "where_stored": lambda: sj.where_stored(x, x),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_of_a_function(name: str) -> None:
    with pytest.raises(TraceError) as caught:
        OUTSIDE[name]()
    assert caught.value.what == f"{name} was called outside of a traced function"
    assert caught.value.hint == "use it inside a @sparse_jit function"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_loops_unroll_64_times() -> None:
    def step(x: Any) -> Any:
        return x * 2 + x

    def loop(x: Any, times: int = 64) -> Any:
        for _ in range(times):
            x = step(x) - 1
        return step(step(x))

    def assigning(x: Any) -> Any:
        for _ in range(65):
            x[1:] += 1

    check(lambda x: loop(x * 0), x)
    with pytest.raises(TraceError, match="a Python loop was unrolled more than 64 times"):
        traced(lambda x: loop(x, 65), x)
    with pytest.raises(TraceError, match="unrolled more than 64 times") as caught:
        traced(assigning, x)
    assert caught.value.location is not None
    assert caught.value.location.line == assigning.__code__.co_firstlineno + 2


def test_powers_whose_type_depends_on_a_sign() -> None:
    integers = np.arange(4)
    check(lambda a, n: a * n**-1 + n**2, x, 4)
    with pytest.raises(UnsupportedError, match="the power of two Python integers is not built"):
        traced(lambda a, n, m: a * n**m, x, 4, 2)
    with pytest.raises(TensorTypeError, match="Integers to negative integer powers"):
        traced(lambda a: a**-1, integers)


def test_an_array_kept_from_an_earlier_trace() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return x

    def use(x: Any) -> Any:
        return x + kept[0]

    traced(keep, x)
    with pytest.raises(TraceError, match="a traced array was kept from an earlier trace"):
        traced(use, x)
    with pytest.raises(TraceError, match="kept from an earlier trace"):
        kept[0] + 1


def test_traces_of_threads_do_not_meet() -> None:
    inside = threading.Barrier(2)
    seen: list[bool] = []

    def fn(x: Any) -> Any:
        inside.wait(10)
        seen.append(sj.is_tracing())
        return x + 1

    threads = [threading.Thread(target=traced, args=(fn, x)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True, True]
    assert not sj.is_tracing()
    assert sj.current_trace() is None


def test_an_error_ends_the_trace() -> None:
    with pytest.raises(TraceError):
        traced(branch, D)
    assert not sj.is_tracing()


def test_captured_arrays_are_parameters() -> None:
    weights = np.arange(4.0)
    matrix = sp.csr_array(np.eye(4, 3))

    def fn(x: Any) -> Any:
        M = matrix.T
        return M @ (x * weights) + (M @ x) * np.float32(2) + [1.0, 2, 3]

    result = traced(fn, x)
    assert [value.name for value in result.func.params] == [
        "x",
        "captured0",
        "captured1",
        "captured2",
    ]
    assert result.captured[0] is weights
    assert result.func.params[2].type.format.is_dense is False

    def left(x: Any) -> Any:
        return (matrix * 2 + matrix.T.T) @ x[:3] + weights @ x

    assert traced(left, x).captured
