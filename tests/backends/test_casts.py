"""Every conversion between two dtypes, on each backend.

NumPy's ``astype`` is the reference but for one thing it leaves undefined: a float that its integer
type cannot hold becomes 0 (nan) or the nearest value it can.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from sparsejit.backends import BACKENDS, support
from sparsejit.backends.numba_cpu import jitted_support
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loops import Cast, DimOf, For, Load, LoopFunc, Memref, Store
from sparsejit.ir.types import INDEX, DType
from tests.backends.loop_writing import function, index, memref, run, var


def _values(dtype: DType) -> NDArray[Any]:
    kind = numpy_dtype(dtype)
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(kind)
        some = [0, 1, 2, 77, 100, info.min, info.max, info.max // 2, info.max - 1]
        wide = [255, 256, 65519, 65520, 2**24 + 1, 2**31, 2**53 + 1, 257 * 2**30 + 1]
        return np.array([v for v in (*some, *wide) if info.min <= v <= info.max], kind)
    reals = [0.0, -0.0, 0.4, -0.6, 1.5, 2.5, -2.5, 127.9, -128.9, 255.5, 300.0, -1.0, 1e5, -1e5]
    reals += [65519.9, 65520.0, 6e-8, 2.98e-8, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 3e9, -3e9]
    reals += [1e19, -1e19, 9.3e18, 2e19, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            return np.array([complex(x, y) for x in reals for y in (0.0, 7.0)], kind)
        return np.array(reals).astype(kind)


def _reference(values: NDArray[Any], target: DType) -> NDArray[Any]:
    kind = numpy_dtype(target)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the imaginary part is dropped, as in NumPy
        if values.dtype.kind == "c" and target is not DType.BOOL and not target.is_complex:
            values = values.real
        if not (values.dtype.kind in "fV" and target.is_integer):
            return values.astype(kind)
        info = np.iinfo(kind)
        whole = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
        return np.array([min(max(int(v), info.min), info.max) for v in whole], kind)


def _all_casts(source: DType) -> LoopFunc:
    a, i = memref("a", source), var("i", INDEX)
    outs = [Memref(f"to_{target.short}", target, 1) for target in DType]
    stores = tuple(Store(out, (i,), Cast(Load(a, (i,)), out.dtype)) for out in outs)
    loop = For(i, index(0), DimOf(a, 0), stores)
    return function(f"casts_of_{source.short}", [a, *outs], [loop])


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("source", list(DType), ids=lambda dtype: dtype.short)
def test_casts_follow_one_table(backend: str, source: DType) -> None:
    values = _values(source)
    outs = [np.ones(values.size, numpy_dtype(target)) for target in DType]
    run(backend, _all_casts(source), values, *outs)
    for target, actual in zip(DType, outs, strict=True):
        expected = _reference(values, target)
        assert actual.dtype == expected.dtype
        bits = np.dtype(f"u{actual.dtype.itemsize}") if actual.dtype.kind != "c" else actual.dtype
        same = (actual.view(bits) == expected.view(bits)) | (
            (actual != actual) & (expected != expected)
        )
        wrong = np.flatnonzero(~same)
        assert not wrong.size, (target, values[wrong], actual[wrong], expected[wrong])


HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@functools.cache
def _loop(name: str, compiled: bool) -> Any:
    """One support function over a whole array."""
    if not compiled:
        one = getattr(support, name)
        return lambda values: np.array([one(value) for value in values])
    import numba

    one = jitted_support(True)[name]

    @numba.njit
    def over(values: Any, out: Any) -> Any:
        for i in range(values.size):
            out[i] = one(values[i])
        return out

    kind = np.float32 if name.endswith("_f32") else np.uint16
    return lambda values: over(values, np.empty(values.size, kind))


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "numba"])
@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_all_bit_patterns_widen_exactly(half: str, compiled: bool) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    actual = _loop(f"{half}_to_f32", compiled)(bits)
    expected = bits.view(HALVES[half]).astype(np.float32)
    numbers = ~np.isnan(expected)
    assert np.array_equal(actual.view(np.uint32)[numbers], expected.view(np.uint32)[numbers])
    assert np.isnan(actual[~numbers]).all()


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "numba"])
@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_all_bit_patterns_and_their_midpoints_narrow_to_nearest_even(
    half: str, compiled: bool
) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    wide = bits.view(HALVES[half]).astype(np.float32)
    wide = wide[np.isfinite(wide)]
    with np.errstate(all="ignore"):
        middle = (wide[1:].astype(np.float64) + wide[:-1]).astype(np.float32) / 2
        near = [wide, middle, np.nextafter(middle, np.inf, dtype=np.float32)]
        near += [np.nextafter(middle, -np.inf, dtype=np.float32)]
        values = np.concatenate([*near, np.array([np.inf, -np.inf, np.nan], np.float32)])
        actual = _loop(f"f32_to_{half}", compiled)(values)
        expected = values.astype(HALVES[half])
    numbers = ~np.isnan(values)
    assert np.array_equal(actual[numbers], expected.view(np.uint16)[numbers])
    assert np.isnan(actual[~numbers].view(HALVES[half]).astype(np.float32)).all()


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "numba"])
def test_float64_rounds_once_to_float16(compiled: bool) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves = halves[np.isfinite(halves)][::7]
    middle = (halves[1:] + halves[:-1]) / 2
    values = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])
    actual = _loop("f64_to_f16", compiled)(values)
    assert np.array_equal(actual, values.astype(np.float16).view(np.uint16))
