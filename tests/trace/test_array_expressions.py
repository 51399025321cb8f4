"""Array expressions mean what NumPy computes: the same function runs on arrays and on tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sparsejit.formats import COO, CSC, CSF, CSR, SparseVector
from tests.trace.harness import Operand, check

RNG = np.random.default_rng(7)


def sparse(shape: tuple[int, ...], density: float = 0.5) -> Any:
    values = RNG.integers(-4, 5, shape).astype(float)
    return np.where(RNG.random(shape) < density, values, 0.0)


A = Operand(sparse((3, 4)), CSR)
B = Operand(sparse((3, 4)), CSC)
C = Operand(sparse((4, 3)), COO(2))
D = RNG.standard_normal((3, 4))
E = RNG.standard_normal((4, 5))
T = Operand(sparse((2, 3, 4)), CSF(3))
U = RNG.standard_normal((2, 3, 4))
x = RNG.standard_normal(4)
y = RNG.standard_normal(3)
v = Operand(sparse((4,)), SparseVector)
one_row = RNG.standard_normal((1, 4))
Z = RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add": (lambda a, b: a + b, (A, D)),
    "subtract": (lambda a, b: a - b, (A, B)),
    "multiply": (lambda a, b: a * b, (A, B)),
    "divide": (lambda a, b: a / b, (A, D)),
    "scale": (lambda a, s: 2 * a * s, (A, 1.5)),
    "shift": (lambda a: a + 1, (A,)),
    "reflected": (lambda a: (1 - a, 2 / (a + 9), 2**a, 7 // (a + 9), 7 % (a + 9)), (A,)),
    "power": (lambda a: a**2 + a**3, (A,)),
    "floor": (lambda a, b: (a // b, a % b), (A, D)),
    "divmod": (lambda a, b: divmod(a, b), (A, D)),
    "negative": (lambda a: (-a, +a, abs(a)), (A,)),
    "compare": (lambda a, b: (a < b, a <= b, a > b, a >= b, a == b, a != b), (A, D)),
    "logic": (lambda a, b: (a > 0) & (b > 0) | ~(a < b) ^ (b == 0), (A, D)),
    "exp": (lambda a: np.exp(a) * np.sin(a), (A,)),
    "maximum": (lambda a, b: np.maximum(a * 2 + b, 0), (A, D)),
    "row": (lambda a, b: a * b, (A, x)),
    "column": (lambda a, b: a * b[:, None], (A, y)),
    "one_row": (lambda a, b: a + b, (A, one_row)),
    "batch": (lambda a, b: a * b, (T, D)),
    "sparse_vector": (lambda a, b: a * b, (A, v)),
    "transposed": (lambda a, b: a.T * b, (A, C)),
    "matvec": (lambda a, b: a @ b, (A, x)),
    "vecmat": (lambda a, b: b @ a, (A, y)),
    "matmat": (lambda a, b: a @ b, (A, E)),
    "product": (lambda a, b: a @ b, (A, C)),
    "batched": (lambda a, b: a @ b, (T, E)),
    "batched_both": (lambda a, b: a @ b, (T, RNG.standard_normal((2, 4, 2)))),
    "batched_vector": (lambda a, b: a @ b, (T, x)),
    "inner": (lambda a, b: a @ b, (x, v)),
    "transposes": (lambda a, b: a.T @ b.T, (E, D)),
    "chain": (lambda a, b, c: np.maximum(a @ (b @ c), 0), (A, E, RNG.standard_normal((5, 2)))),
    "gram": (lambda a: a.T @ a, (A,)),
    "sampled": (lambda s, a, b: s * (a @ b), (A, RNG.standard_normal((3, 2)), RNG.random((2, 4)))),
    "sum": (lambda a: (a.sum(), a.sum(axis=0), a.sum(axis=-1), a.sum(axis=(0, 1))), (A,)),
    "keepdims": (lambda a: a / np.abs(a).sum(axis=1, keepdims=True), (D,)),
    "softmax": (lambda a: np.exp(a) / np.exp(a).sum(axis=1)[:, None], (D,)),
    "mean": (lambda a: (a.mean(), a.mean(axis=0), a.mean(axis=1, keepdims=True)), (A,)),
    "extremes": (lambda a: (a.min(axis=0), a.max(axis=1), a.max()), (A,)),
    "prod": (lambda a: a.prod(axis=1), (A,)),
    "any_all": (lambda a: (a.any(axis=0), a.all(axis=1), (a > 2).any()), (A,)),
    "sum_of_squares": (lambda a: (a * a).sum() ** 0.5, (A,)),
    "sum_3d": (lambda a: (a.sum(axis=1), a.sum(axis=(0, 2))), (T,)),
    "np_sum": (lambda a: (np.sum(a, axis=0), np.mean(a), np.max(a, axis=1)), (A,)),
    "reduce": (lambda a: (np.add.reduce(a), np.maximum.reduce(a, axis=1)), (A,)),
    "dot": (lambda a, b: (np.dot(a, b), a.dot(b)), (A, x)),
    "tensordot": (lambda a, b: np.tensordot(a, b, axes=1), (T, E)),
    "tensordot_pairs": (lambda a, b: np.tensordot(a, b, axes=((0, 2), (0, 2))), (T, U)),
    "outer": (lambda a, b: (np.outer(a, b), np.multiply.outer(a, b)), (x, y)),
    "np_inner": (lambda a, b: np.inner(a, b), (D, x)),
    "vdot": (lambda a, b: np.vdot(a, b), (Z[0], Z[1])),
    "trace": (lambda a: (np.trace(a), a.trace(offset=1)), (A,)),
    "diagonal": (lambda a: (np.diagonal(a), a.diagonal(1), np.diagonal(a, -1)), (A,)),
    "transpose": (lambda a: (a.T, a.transpose(2, 0, 1), np.swapaxes(a, 0, 2)), (T,)),
    "moveaxis": (lambda a: np.moveaxis(a, 0, -1), (T,)),
    "expand": (lambda a: (np.expand_dims(a, 1), a[None, :, None]), (A,)),
    "squeeze": (lambda a: (np.squeeze(a), a[:, :, None].squeeze(axis=2)), (one_row,)),
    "broadcast_to": (lambda a: np.broadcast_to(a, (3, 4)), (x,)),
    "where": (lambda a, b: np.where(a > 0, a, b), (A, D)),
    "clip": (lambda a: (np.clip(a, -1, 1), a.clip(min=0)), (A,)),
    "complex": (lambda z: (z.real, z.imag, np.conj(z), np.abs(z), z * z.conj()), (Z,)),
    "astype": (lambda a: (a.astype(np.float32), a.astype("int64"), a.astype(bool)), (A,)),
    "slices": (lambda a: (a[1:], a[:2, 1:3], a[::2, ::-1], a[-2:], a[5:], a[1:1]), (D,)),
    "slices_backward": (lambda a: (a[::-1], a[2::-2], a[-1:0:-1], a[:-3:-1]), (x,)),
    "sparse_slices": (lambda a: (a[1:], a[:2, 1:3], a[:, ::2]), (A,)),
    "elements": (lambda a: (a[0], a[-1], a[1, 2], a[..., 0], a[:, -1]), (D,)),
    "sparse_elements": (lambda a: (a[0], a[-1] * 2, a[1, 2], a[:, 1]), (A,)),
    "slice_of_transpose": (lambda a: a.T[1:, 0], (D,)),
    "slice_of_lazy": (lambda a, b: (a * 2 + b)[1:, :2], (A, D)),
    "stencil": (lambda a: a[2:] - 2 * a[1:-1] + a[:-2], (x,)),
    "scalars": (lambda a, s, t: a * (s / 2 + 1) - t, (A, 3, np.float32(2))),
    "like": (lambda a: (np.zeros_like(a) + a, np.ones_like(a), np.full_like(a, 3)), (A,)),
    "logical": (
        lambda a, b: (np.logical_and(a, b), np.logical_or(a, b), np.logical_not(a)),
        (A, D),
    ),
    "square": (lambda a: (np.square(a), np.reciprocal(a + 9), np.positive(a), np.sign(a)), (A,)),
    "angles": (lambda a: (np.deg2rad(a), np.degrees(a), np.hypot(a, 2), np.arctan2(a, 3)), (A,)),
    "heaviside": (lambda a: np.heaviside(a, 0.5), (A,)),
    "rounding": (lambda a: (np.floor(a), np.ceil(a), np.trunc(a), np.rint(a), a.round()), (D,)),
    "shape": (lambda a: a.sum(axis=1) / a.shape[1], (A,)),
    "extent_arithmetic": (lambda a: a * (a.shape[0] * 2.5) + 1 / a.shape[1], (A,)),
    "ndim": (lambda a: (a.ndim, np.shape(a)[0] + 0 * a.shape[1]), (A,)),
    "same_twice": (lambda a: (a, a), (A,)),
    "nested": (lambda a, b: [a + b, (a - b,)], (A, D)),
    "matmul_power": (lambda a, b: np.matmul(a, b) ** 2, (A, x)),
    "multiply_method": (lambda a, b: a.T.T * b, (A, D)),
    "einsum": (lambda a, b: np.einsum("ij,j->i", a, b), (A, x)),
    "large": (lambda a: _nested(a), (x,)),
}


def _nested(a: Any) -> Any:
    for _ in range(12):
        a = a * a - a
    return a * 0


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    fn, operands = CASES[name]
    check(fn, *operands, rtol=1e-9)
