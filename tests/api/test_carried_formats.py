"""Sparse tensors that loops carry and branches return, in every format, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import TensorTypeError
from sparsejit.runtime.fake import FakeRuntime
from sparsejit.runtime.opening import use_runtime

D = np.array([[0, 2, 0, 1.0], [3, 0, 0, 0], [0, 0, 4, 0], [1, 0, 0, 5]])
AOS = sj.Format("(i, j) -> (i : compressed(nonunique), j : singleton)")
LOOSE = sj.Format("(i, j) -> (i : dense, j : loose_compressed)")

FORMATS = {
    **{"csr": sj.CSR, "csc": sj.CSC, "coo": sj.COO(2), "dcsr": sj.DCSR, "bsr": sj.BSR(2, 2)},
    **{"dia": sj.DIA, "ell": sj.ELL(4), "nv24": sj.NV24, "aos": AOS, "loose": LOOSE},
}
GROWING = ("csr", "csc", "coo", "dcsr", "bsr", "dia", "aos", "loose")


def scaled(A: Any) -> Any:
    return sj.fori_loop(0, 3, lambda k, C: C * 2, A)


def until(A: Any) -> Any:
    return sj.while_loop(lambda C: C.sum() < 100, lambda C: C * 2, A)


def branches(A: Any) -> Any:
    return sj.cond(A.sum() > 3, lambda: A * 2, lambda: A)


def grown(A: Any) -> Any:
    return sj.fori_loop(0, 3, lambda k, C: C + A, A)


def powers(A: Any) -> Any:
    return sj.fori_loop(0, 2, lambda k, C: C @ A, A)


def pairs(A: Any) -> Any:
    return sj.fori_loop(0, 3, lambda k, c: (c[1], c[0] + c[1]), (A, A * 2))[1]


def nested(A: Any) -> Any:
    def inner(k: Any, C: Any) -> Any:
        return sj.fori_loop(0, k + 1, lambda q, B: B + C, C)

    return sj.fori_loop(0, 2, inner, A)


EXPECTED: dict[Any, Any] = {
    scaled: D * 8,
    until: D * 8,
    branches: D * 2,
    grown: 4 * D,
    powers: D @ D @ D,
    pairs: 8 * D,
    nested: 6 * D,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("fn", EXPECTED, ids=lambda f: f.__name__)
def test_a_carried_tensor_keeps_its_format(fn: Any, form: str) -> None:
    if fn not in (scaled, until, branches) and form not in GROWING:
        pytest.skip("the pattern of such a format grows in no sum")
    wanted = sj.asarray(D, format=FORMATS[form])
    got = sparse_jit(fn, target="interpreter")(wanted)
    np.testing.assert_allclose(got.to_numpy(), EXPECTED[fn])
    assert got.format.with_widths(0, 0) == FORMATS[form]


@pytest.mark.parametrize("form", FORMATS)
def test_on_a_device(form: str) -> None:
    """The arrays of what is carried are replaced on the device, whatever their sizes are."""
    for number, fn in enumerate(EXPECTED):
        if fn not in (scaled, until, branches) and form not in GROWING:
            continue
        wanted = sj.asarray(D, format=FORMATS[form])
        runtime = FakeRuntime(number)
        with use_runtime(runtime) as device:
            for library in ("auto", "never"):
                got = sparse_jit(fn, target="cuda", library=library)(wanted)
                np.testing.assert_allclose(got.to_numpy(), EXPECTED[fn])
                assert got.format.with_widths(0, 0) == FORMATS[form]
            device.transfers.pool.close()
        assert runtime.leaks() == []


@pytest.mark.parametrize("form", ["aos", "loose"])
def test_compiled(form: str) -> None:
    got = sparse_jit(pairs, target="cpu")(sj.asarray(D, format=FORMATS[form]))
    np.testing.assert_allclose(got.to_numpy(), EXPECTED[pairs])


def test_a_body_converts_to_the_format_it_was_given() -> None:
    def fn(A: Any) -> Any:
        return sj.fori_loop(0, 3, lambda k, C: (C + A).asformat(sj.ELL(4)), A)

    got = sparse_jit(fn, target="interpreter")(sj.asarray(D, format=sj.ELL(4)))
    np.testing.assert_allclose(got.to_numpy(), 4 * D)

    def without(A: Any) -> Any:
        return sj.fori_loop(0, 3, lambda k, C: C + A, A)

    with pytest.raises(TensorTypeError, match=r"with \.asformat\(format\)"):
        sparse_jit(without, target="interpreter")(sj.asarray(D, format=sj.ELL(4)))


def test_batches() -> None:
    A = sj.asarray(np.stack([D, 2 * D]), format=sj.Batched(sj.CSR))
    made = sparse_jit(scaled, target="interpreter")(A)
    np.testing.assert_array_equal(made.to_numpy(), np.stack([D * 8, 2 * D * 8]))
