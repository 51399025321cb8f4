"""Sums over inner loops in vector registers, and functions of vectors: right on every processor.

The processor is given by the tests: what it would be good at decides on the code, which runs
anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsejit.backends.llvm import LlvmBackend
from sparsejit.backends.llvm._options import Host
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Cast,
    Expr,
    For,
    Let,
    Lit,
    Load,
    LoopFunc,
    Select,
    Stmt,
    Store,
    Unary,
    View,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from tests.backends.loop_writing import (
    F32,
    F64,
    add,
    binary,
    function,
    index,
    load,
    memref,
    mul,
    number,
    var,
)

HOSTS = {"plain": Host(), "wide": Host(512), "gathering": Host(512, gathers=True)}
i, k, n, m = (var(name) for name in "iknm")
p = var("p")
RNG = np.random.default_rng(4)


def results(func: LoopFunc, host: Host, *arguments: Any, reassociate: bool = True) -> Any:
    backend = LlvmBackend(reassociate, host=host)
    made = backend.load(backend.emit(func), cache=False)(list(arguments))
    return tuple(np.asarray(array) for array in made)


def text(func: LoopFunc, host: Host, *without: str, reassociate: bool = True) -> str:
    return LlvmBackend(reassociate, frozenset(without), host).llvm_ir(func)


def summed(
    dtype: DType, op: BinaryOp, term: Expr, *more: Stmt, start: Any = 0, made: Sequence[Stmt] = ()
) -> LoopFunc:
    """``r[0] = start op term(p) op ...`` for ``p`` in ``0 .. n``."""
    acc, result = var("acc", dtype), memref("r", dtype)
    step = Assign(acc, Binary(op, acc, term, dtype))
    body = (
        Alloc(result, (index(1),)),
        *made,
        Let(acc, Lit(Const(start, dtype)), mutable=True),
        For(p, index(0), n, (*more, step)),
        Store(result, (index(0),), acc),
    )
    x, y, crd = memref("x", dtype), memref("y", dtype), memref("crd", DType.INT32)
    return function("summed", [n, crd, x, y], body, result)


def gathered(dtype: DType, op: BinaryOp = BinaryOp.ADD, start: int = 0) -> LoopFunc:
    at = Let(k, Cast(Load(memref("crd", DType.INT32), (p,)), INDEX))
    return summed(
        dtype,
        op,
        mul(Load(memref("x", dtype), (p,)), Load(memref("y", dtype), (k,))),
        at,
        start=start,
    )


def operands(count: int, dtype: DType, low: int = -9) -> tuple[Any, ...]:
    values = RNG.integers(max(low, 0) if dtype.is_unsigned_integer else low, 10, (2, count + 1))
    x, y = values.astype(dtype.value)
    return count, RNG.integers(0, count + 1, count).astype(np.int32), x[:count], y


COUNTS = st.one_of(st.integers(0, 40), st.sampled_from([63, 64, 65, 127, 130, 200]))
DTYPES = (F64, F32, DType.INT64, DType.INT32, DType.INT16, DType.UINT8)


@pytest.mark.parametrize("host", HOSTS)
@settings(max_examples=12)
@given(count=COUNTS, dtype=st.sampled_from(DTYPES))
def test_sums_of_any_length(host: str, count: int, dtype: DType) -> None:
    _, crd, x, y = operands(count, dtype)
    (found,) = results(gathered(dtype), HOSTS[host], count, crd, x, y)
    with np.errstate(over="ignore"):
        assert found[0] == np.sum(x * y[crd], dtype=x.dtype)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [F64, DType.INT32])
@pytest.mark.parametrize(
    ("op", "start", "reduce"),
    [
        (BinaryOp.MIN, 5, np.minimum),
        (BinaryOp.MAX, -5, np.maximum),
        (BinaryOp.MUL, 1, np.multiply),
    ],
)
def test_other_operations_than_sums(
    host: str, dtype: DType, op: BinaryOp, start: int, reduce: Any
) -> None:
    for count in (0, 3, 8, 21, 70):
        _, crd, x, y = operands(count, dtype, -1 if op is BinaryOp.MUL else -9)
        (found,) = results(gathered(dtype, op, start), HOSTS[host], count, crd, x, y)
        wanted = reduce(reduce.reduce(x * y[crd], initial=start), x.dtype.type(start))
        assert found[0] == wanted


@pytest.mark.parametrize("host", HOSTS)
def test_nan_and_infinity_keep_their_meaning(host: str) -> None:
    for place in (0, 5, 20, 66):
        x = np.ones(67)
        for bad in (np.nan, np.inf, -np.inf):
            x[place] = bad
            crd, y = np.arange(67, dtype=np.int32), np.ones(68)
            (total,) = results(gathered(F64), HOSTS[host], 67, crd, x, y)
            np.testing.assert_equal(total[0], bad)
            (largest,) = results(gathered(F64, BinaryOp.MAX), HOSTS[host], 67, crd, x, y)
            np.testing.assert_equal(largest[0], np.max(np.append(x, 0)))


def test_an_empty_sum_keeps_the_sign_of_what_it_starts_with() -> None:
    func = summed(F64, BinaryOp.ADD, load(memref("x"), p), start=-0.0)
    for host in HOSTS.values():
        for x in (np.empty(0), np.full(9, -0.0)):
            crd = np.zeros(x.size, np.int32)
            (found,) = results(func, host, x.size, crd, x, np.zeros(1))
            assert np.signbit(found[0])


def test_the_text_has_vectors_where_the_processor_is_good_at_them() -> None:
    func = gathered(F64)
    assert "<8 x double>" in text(func, HOSTS["gathering"])
    assert "llvm.masked.gather.v8f64" in text(func, HOSTS["gathering"])
    for host in ("plain", "wide"):
        assert "x double>" not in text(func, HOSTS[host])
    assert "llvm.masked.gather.v8f32" in text(gathered(F32), HOSTS["gathering"])
    rows = summed(F64, BinaryOp.ADD, mul(load(memref("x"), p), load(memref("y"), p)))
    assert "<4 x double>" in text(rows, HOSTS["plain"])
    assert "<8 x double>" in text(rows, HOSTS["wide"])
    assert "x double>" not in text(rows, HOSTS["wide"], "sums")


def test_without_reassociation_sums_of_floats_stay_in_order() -> None:
    for dtype, op, is_vector in (
        (F64, BinaryOp.ADD, False),
        (F64, BinaryOp.MAX, True),
        (DType.INT64, BinaryOp.ADD, True),
    ):
        code = text(gathered(dtype, op), HOSTS["gathering"], reassociate=False)
        assert ("llvm.masked.gather" in code) is is_vector
    values = np.array([1e16, 1.0, -1e16] * 11)
    crd, y = np.arange(33, dtype=np.int32), np.ones(34)
    (found,) = results(gathered(F64), HOSTS["gathering"], 33, crd, values, y, reassociate=False)
    wanted = 0.0
    for value in values:
        wanted += value
    assert found[0] == wanted


def test_rows_are_filled_on_the_way() -> None:
    """``w[p - 1] = exp(x[p] - y[0])``, added up in the same pass, as softmax does it."""
    w = memref("w")
    before = Alloc(w, (n,), Const(0.0, F64))
    at = (binary(BinaryOp.SUB, add(p, index(1)), index(1)),)
    shifted = binary(BinaryOp.SUB, load(memref("x"), p), load(memref("y"), index(0)))
    fill = Store(w, at, Unary(UnaryOp.EXP, shifted, F64))
    func = summed(F64, BinaryOp.ADD, Load(w, at), fill, made=(before,))
    func = LoopFunc(
        func.name, func.params, func.body, (*func.results, *function("f", [], [], w).results)
    )
    for count in (0, 1, 7, 8, 37, 64, 100):
        x, y = RNG.normal(size=count), RNG.normal(size=1)
        for host in HOSTS.values():
            total, row = results(func, host, count, np.zeros(count, np.int32), x, y)
            np.testing.assert_allclose(row, np.exp(x - y[0]), rtol=3e-16)
            np.testing.assert_allclose(total[0], np.exp(x - y[0]).sum(), rtol=1e-14)
    assert "<8 x double>" in text(func, HOSTS["wide"])


def test_what_another_pass_stores_is_not_read_too_early() -> None:
    """``w[p + 1] = w[p] + x[p]`` is a chain, also through a view."""
    w, v = memref("w"), memref("v")
    made = (
        Alloc(w, (add(n, index(1)),), Const(0.0, F64)),
        View(v, w, (index(1),), (n,), (1,)),
    )
    for target, place in ((w, add(p, index(1))), (v, p)):
        chain = Store(target, (place,), add(load(w, p), load(memref("x"), p)))
        func = summed(F64, BinaryOp.ADD, load(memref("x"), p), chain, made=made)
        func = LoopFunc(
            func.name, func.params, func.body, (*func.results, *function("f", [], [], w).results)
        )
        x = RNG.integers(0, 9, 50).astype(float)
        total, row = results(func, HOSTS["gathering"], 50, np.zeros(50, np.int32), x, np.zeros(1))
        assert total[0] == x.sum()
        np.testing.assert_array_equal(row[1:], np.cumsum(x))


def test_a_side_that_is_not_chosen_is_not_loaded() -> None:
    """``y[-1]``, far outside, is guarded by a condition."""
    far = mul(binary(BinaryOp.SUB, p, n), index(1 << 40))
    inside = binary(BinaryOp.LT, p, index(0))
    guarded = Select(inside, load(memref("y"), far), load(memref("x"), p))
    func = summed(F64, BinaryOp.ADD, guarded)
    x = RNG.integers(0, 9, 30).astype(float)
    for host in HOSTS.values():
        (found,) = results(func, host, 30, np.zeros(30, np.int32), x, np.zeros(1))
        assert found[0] == x.sum()


def test_a_sum_that_another_sum_reads_has_no_vectors() -> None:
    """Running totals: each pass needs the one before."""
    total, square = var("total", F64), var("square", F64)
    r = memref("r")
    steps = (
        Assign(total, add(total, load(memref("x"), p))),
        Assign(square, add(square, mul(total, total))),
    )
    body = (
        Alloc(r, (index(1),)),
        Let(total, number(0.0), mutable=True),
        Let(square, number(0.0), mutable=True),
        For(p, index(0), n, steps),
        Store(r, (index(0),), square),
    )
    func = function("f", [n, memref("x")], body, r)
    x = RNG.integers(0, 9, 30).astype(float)
    (found,) = results(func, HOSTS["wide"], 30, x)
    assert found[0] == (np.cumsum(x) ** 2).sum()


# ---------------------------------------------------------------- the exponential function


def exponentials(dtype: DType) -> LoopFunc:
    x, y = memref("x", dtype), memref("y", dtype)
    value = Unary(UnaryOp.EXP, load(x, i), dtype)
    return function(
        "exps", [n, x], (Alloc(y, (n,)), For(i, index(0), n, (Store(y, (i,), value),))), y
    )


@pytest.mark.parametrize("dtype", [F64, F32])
def test_the_exponential_function_is_within_one_unit_in_the_last_place(dtype: DType) -> None:
    limits = (-745.1, 709.7) if dtype is F64 else (-103.9, 88.7)
    ranges = [limits, (-1.0, 1.0), (-30.0, 30.0), (limits[0], 0.8 * limits[0])]
    x = np.concatenate([RNG.uniform(*each, 5000) for each in ranges]).astype(dtype.value)
    (found,) = results(exponentials(dtype), Host(), x.size, x)
    exact = np.exp(x.astype(np.longdouble))
    error = np.abs(found.astype(np.longdouble) - exact) / np.spacing(found).astype(np.longdouble)
    assert error.max() < 1.1


@pytest.mark.parametrize("dtype", [F64, F32])
def test_the_exponential_function_at_its_limits(dtype: DType) -> None:
    largest, least = (709.0, -745.0) if dtype is F64 else (88.0, -103.0)
    pairs = [(np.inf, np.inf), (-np.inf, 0), (0.0, 1), (-0.0, 1), (largest + 1, np.inf)]
    pairs += [(least - 2, 0), (3e38, np.inf), (-3e38, 0), (np.nan, np.nan)]
    x, wanted = np.array(pairs).T.astype(dtype.value)
    (found,) = results(exponentials(dtype), Host(), x.size, x)
    np.testing.assert_array_equal(found, wanted)
    near = np.array([largest, least], dtype.value)
    (found,) = results(exponentials(dtype), Host(), 2, near)
    assert np.isfinite(found[0])
    assert found[1] > 0
