"""The format and the fill value of results that name none, and of those that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsejit.trace as sj
from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSR,
    DIA,
    ELL,
    NV24,
    Dense,
    Format,
    SparseVector,
)
from tests.trace.harness import Operand, check, stored, traced

RNG = np.random.default_rng(2)


def sparse(shape: tuple[int, ...]) -> Any:
    return np.where(RNG.random(shape) < 0.4, RNG.integers(1, 5, shape).astype(float), 0.0)


def op(fmt: Format | None, *shape: int, fill: float = 0) -> Operand:
    values = sparse(shape)
    values[values == 0] = fill
    return Operand(values, fmt, fill)


M, N = (4, 4), (4, 4)
csr, csc, coo, bsr = (op(fmt, 4, 4) for fmt in (CSR, CSC, COO(2), BSR(2, 2)))
BLOCK_COLUMNS = Format("(i, j) -> (j floordiv 2 : dense, i floordiv 2 : compressed, "
                       "i mod 2 : dense, j mod 2 : dense)")  # fmt: skip
blocks = op(Format("(i, j) -> (i floordiv 2 : compressed, j floordiv 2 : compressed, "
                   "i mod 2 : dense, j mod 2 : dense)"), 4, 4)  # fmt: skip
dia, ell, nv24, dcsr = (op(fmt, 4, 4) for fmt in (DIA, ELL(4), NV24, DCSR))
dense = RNG.standard_normal((4, 4))
vector = RNG.standard_normal(4)
sv = op(SparseVector, 4)
csf = op(CSF(3), 4, 4, 4)
coo3 = op(COO(3), 4, 4, 4)
CSF_DENSE = Format("(i, j, k) -> (i : compressed, j : compressed, k : dense)")

CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...], Format]] = [
    ("map", lambda a: np.sqrt(a) * 2, (csr,), CSR),
    ("map coo", lambda a: -a, (coo,), COO(2)),
    ("map bsr", lambda a: a * 3, (bsr,), BSR(2, 2)),
    ("map dia", lambda a: a * 3, (dia,), DIA),
    ("map ell", lambda a: a * 3, (ell,), ELL(4)),
    ("map nv24", lambda a: a * 3, (nv24,), NV24),
    ("transposed", lambda a: a.T * 2, (csr,), CSC),
    ("sparse times dense", lambda a, b: a * b, (csr, dense), CSR),
    ("dense times sparse", lambda a, b: a * b, (dense, csc), CSC),
    ("row scaling", lambda a, b: a * b[:, None], (csr, vector), CSR),
    ("sparse over dense", lambda a, b: a / b, (csr, dense), CSR),
    ("run-time scale", lambda a, s: a * s, (csr, 2.0), CSR),
    ("sparse plus dense", lambda a, b: a + b, (csr, dense), Dense(2)),
    ("sparse plus run-time scalar", lambda a, s: a + s, (csr, 2.0), Dense(2)),
    ("sparse plus constant", lambda a: a + 1, (csr,), CSR),
    ("csr + csr", lambda a, b: a + b, (csr, csr), CSR),
    ("csc * csc", lambda a, b: a * b, (csc, csc), CSC),
    ("coo + coo", lambda a, b: a + b, (coo, coo), COO(2)),
    ("dcsr + dcsr", lambda a, b: a + b, (dcsr, dcsr), DCSR),
    ("bsr + bsr", lambda a, b: a + b, (bsr, bsr), BSR(2, 2)),
    ("csr + csc", lambda a, b: a + b, (csr, csc), CSR),
    ("csr * coo", lambda a, b: a * b, (csr, coo), CSR),
    ("coo * csc", lambda a, b: a * b, (coo, csc), CSC),
    ("coo + coo.T", lambda a, b: a + b.T, (coo, coo), COO(2)),
    ("ell + ell", lambda a, b: a + b, (ell, ell), CSR),
    ("csr @ csr", lambda a, b: a @ b, (csr, csr), CSR),
    ("csc @ csc", lambda a, b: a @ b, (csc, csc), CSC),
    ("csr @ csc", lambda a, b: a @ b, (csr, csc), CSR),
    ("coo @ coo", lambda a, b: a @ b, (coo, coo), COO(2)),
    ("coo @ coo.T", lambda a, b: a @ b.T, (coo, coo), COO(2)),
    ("blocks of either order", lambda a, b: a + b, (blocks, op(BLOCK_COLUMNS, 4, 4)), DCSR),
    ("csr.T @ csr", lambda a, b: a.T @ b, (csr, csr), CSR),
    ("csc.T @ csr", lambda a, b: a.T @ b, (csc, csr), CSR),
    ("dcsr @ dcsr", lambda a, b: a @ b, (dcsr, dcsr), DCSR),
    ("dcsr @ csr", lambda a, b: a @ b, (dcsr, csr), DCSR),
    ("bsr @ bsr", lambda a, b: a @ b, (bsr, bsr), BSR(2, 2)),
    ("bsr blocks fit", lambda a, b: a @ b, (bsr, op(BSR(2, 4), 4, 4)), BSR(2, 4)),
    ("bsr blocks differ", lambda a, b: a @ b, (bsr, op(BSR(4, 2), 4, 4)), CSR),
    ("csr @ bsr", lambda a, b: a @ b, (csr, bsr), CSR),
    ("triple product", lambda p, a: p.T @ a @ p, (csr, csr), CSR),
    ("csr @ dense", lambda a, b: a @ b, (csr, dense), Dense(2)),
    ("coo @ dense", lambda a, b: a @ b, (coo, dense), Dense(2)),
    ("dcsr @ dense", lambda a, b: a @ b, (dcsr, dense), Dense(2)),
    ("dense @ csr", lambda a, b: a @ b, (dense, csr), Dense(2)),
    ("nv24 @ dense", lambda a, b: a @ b, (nv24, dense), Dense(2)),
    ("spmv", lambda a, x: a @ x, (csr, vector), Dense(1)),
    ("sparse vector", lambda a, x: a @ x, (csr, sv), Dense(1)),
    ("sum", lambda a: a.sum(axis=1), (csr,), Dense(1)),
    ("total", lambda a: a.sum(), (csr,), Dense(0)),
    ("outer", lambda a, b: np.outer(a, b), (sv, sv), DCSR),
    ("outer dense", lambda a, b: np.outer(a, b), (vector, sv), CSR),
    ("absent of dense", lambda a: sj.unary(a, absent=lambda: 1.0), (vector,), SparseVector),
    ("vector map", lambda a: a * 2, (sv,), SparseVector),
    ("vector broadcast", lambda a, b: a * b, (sv, dense), CSR),
    ("ttm", lambda a, b: a @ b, (csf, dense), CSF_DENSE),
    ("ttv", lambda a, b: a @ b, (csf, vector), DCSR),
    ("sum of one axis", lambda a: a.sum(axis=2), (coo3,), DCSR),
    ("max of one axis", lambda a: a.max(axis=2), (csf,), DCSR),
    ("3-d map", lambda a: a * 2, (coo3,), COO(3)),
    ("sampled", lambda s, a, b: sj.where_stored(s, a @ b), (coo, dense, dense), COO(2)),
    ("where_stored of sparse", lambda s, a: sj.where_stored(s, a), (csc, csr), CSC),
    ("compare", lambda a: a > 0.5, (csr,), CSR),
    ("row of csr", lambda a: a[1], (csr,), SparseVector),
    ("slice of csr", lambda a: a[1:, 1::2] * 1, (csr,), CSR),
    ("slice of coo", lambda a: a[::2], (coo,), COO(2)),
    ("slice of bsr", lambda a: a[1:], (bsr,), CSR),
    ("backward", lambda a: a[::-1], (csr,), CSR),
    ("diagonal", lambda a: np.diagonal(a) * 1, (csr,), Dense(1)),
]


@pytest.mark.parametrize(
    ("fn", "operands", "format"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_inferred(fn: Callable[..., Any], operands: tuple[Any, ...], format: Format) -> None:
    assert traced(fn, *operands).func.results[0].type.format == format


FILLS: list[tuple[str, Callable[..., Any], float]] = [
    ("exp", np.exp, 1.0),
    ("cos", lambda a: np.cos(a) + 1, 2.0),
    ("shift", lambda a: a * 2 + 3, 3.0),
    ("compare", lambda a: a < 1, True),
    ("negative keeps zero", lambda a: -a, 0.0),
    ("log1p", np.log1p, 0.0),
    ("relu", lambda a: np.maximum(a, 0), 0.0),
]


@pytest.mark.parametrize(("fn", "fill"), [case[1:] for case in FILLS], ids=[c[0] for c in FILLS])
def test_fill_values(fn: Callable[..., Any], fill: float) -> None:
    kind = traced(lambda a: fn(a), csr).func.results[0].type
    assert kind.format == CSR
    assert repr(kind.fill.value) == repr(fill)
    check(lambda a: fn(a), csr)


def test_fill_of_an_operand_counts() -> None:
    ones = op(CSR, 4, 4, fill=1)
    check(lambda a: (a * 2, a.sum(axis=0), a.prod(axis=1), a @ a, a.max(), np.log(a)), ones)
    func = traced(lambda a: (a * 2, a @ a, np.log(a)), ones).func
    kinds = [value.type for value in func.results]
    assert [kind.format for kind in kinds] == [CSR, Dense(2), CSR]
    assert kinds[0].fill.value == 2.0
    assert kinds[2].fill.value == 0.0


def test_where_stored_has_the_structure_of_its_pattern() -> None:
    pattern = csr.dense != 0
    np.testing.assert_array_equal(
        stored(lambda s, a, b: sj.where_stored(s, a @ b), csr, dense, dense), pattern
    )
    np.testing.assert_array_equal(stored(lambda s, a: s * a, csr, dense), pattern)
    check(
        lambda s, a: sj.where_stored(s, a, fill_value=5),
        csr,
        dense,
        expected=lambda s, a: np.where(s != 0, a, 5.0),
    )


def test_where_stored_of_an_expression_uses_its_entries() -> None:
    check(
        lambda s, a: sj.where_stored(s * 2, a),
        csr,
        dense,
        expected=lambda s, a: np.where(s != 0, a, 0.0),
    )


@pytest.mark.parametrize("format", [CSR, CSC, COO(2), Dense(2), DCSR])
def test_requested(format: Format) -> None:
    for fn, operands in (
        (lambda a, b: a @ b, (csr, csc)),
        (lambda a, b: a * b, (csr, dense)),
        (lambda a, b: a + b, (csr, dense)),
        (lambda a: a.T, (csr,)),
    ):
        assert traced(fn, *operands, output=format).func.results[0].type.format == format
        check(fn, *operands, output=format)


def test_requested_by_position() -> None:
    def fn(a: Any, x: Any) -> Any:
        return a @ x, a * 2, a

    results = traced(fn, csr, vector, output={1: CSC, 2: COO(2)}).func.results
    assert [value.type.format for value in results] == [Dense(1), CSC, COO(2)]
    check(fn, csr, vector, output={1: CSC, 2: COO(2)})


def test_requested_for_a_minimum_is_converted() -> None:
    def fn(a: Any) -> Any:
        return a.max(axis=2)

    values = -np.abs(csf.dense)
    check(fn, Operand(values, CSF(3)), output=CSR)
    assert traced(fn, Operand(values, CSF(3)), output=CSR).func.results[0].type.format == CSR


def test_output_names_a_format() -> None:
    def fn(a: Any, b: Any) -> Any:
        i, j, k = sj.indices("i j k")
        r = sj.output(format=CSC, dtype=np.float32)
        r[i, j] = a[i, k] * b[k, j]
        return r

    kind = traced(fn, csr, csr).func.results[0].type
    assert kind.format == CSC
    assert kind.dtype.value == "float32"


def test_index_widths_are_left_open() -> None:
    wide = Operand(csr.array, CSR.with_widths(64, 64))
    assert traced(lambda a: a * 2, wide).func.results[0].type.format.pos_width == 0


def test_wrong_requests() -> None:
    with pytest.raises(TensorTypeError, match="has rank 2, the result rank 1"):
        traced(lambda a, x: a @ x, csr, vector, output=CSR)

    def assigned(y: Any) -> Any:
        y += 1
        return y

    with pytest.raises(UnsupportedError, match="the result is the caller's array 'y'"):
        traced(assigned, vector, output=SparseVector)
