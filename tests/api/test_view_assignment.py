"""Assignments through what NumPy makes of an array: a view, a copy, or something read-only.

Each row of the table makes something of ``x``; assigning through it must leave ``x`` as NumPy
leaves it, or raise. Nothing is lost silently, and nothing is written that NumPy would not write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.errors import TensorValueError, UnsupportedError

VIEWS = """
x.T | x.mT | np.transpose(x) | np.swapaxes(x, 0, 1) | np.moveaxis(x, 0, 1) | np.rollaxis(x, 1)
x.reshape(4, 3) | x.ravel() | np.ravel(x) | x[1:].reshape(8) | x[1].reshape(2, 2) | x[1:].ravel()
np.flip(x) | np.flipud(x) | np.fliplr(x) | x[::-1] | np.rot90(x) | np.rot90(x, 2) | np.rot90(x, 4)
np.expand_dims(x, 0) | x[None] | np.squeeze(x[None]) | np.squeeze(x) | x.squeeze()
np.atleast_1d(x) | np.atleast_2d(x) | np.atleast_3d(x) | np.split(x, 3)[1] | np.hsplit(x, 2)[1]
np.vsplit(x, 3)[1] | np.array_split(x, 2)[1] | np.split(x, 1)[0] | np.split(x, [1, 2], axis=1)[1]
x.real | np.real(x) | x.real.T | x.T.real | x.real[1:] | x[1:].real | x.real.reshape(-1)
x.astype(x.dtype, copy=False) | np.nan_to_num(x, copy=False) | x.view(x.dtype) | x[...] | x[()]
x[1] | x[1:2] | x[:, 1:3].T | np.diff(x, 0) | np.broadcast_arrays(x, x)[0]
"""
VIEWS_OF_COMPLEX = """
x.imag | np.imag(x) | x.imag[:, 1] | x[0].imag | x.T.imag | x.reshape(4, 3).imag | x.imag.ravel()
"""
COPIES = """
x.flatten() | x.T.flatten() | x.copy() | np.copy(x) | np.triu(x) | np.tril(x) | x.astype(x.dtype)
x.T.ravel() | x.ravel(order="F") | x[:, :2].ravel() | x[::2].ravel() | x.real.T.ravel()
np.conj(x) | +x | abs(x) | np.take(x, [0, 1], axis=0) | x.take(1, axis=0) | x[[0, 1]]
np.roll(x, 0) | np.roll(x, 1) | np.repeat(x, 1, axis=0) | np.repeat(x, 2) | np.tile(x, 1)
np.pad(x, 0) | np.concatenate([x]) | np.stack([x]) | np.vstack([x]) | np.hstack([x])
np.clip(x.real, -99, 99) | np.where(x == x, x, 0) | np.nan_to_num(x) | x.round() | x.cumsum(0)
"""
READ_ONLY = """
np.diagonal(x) | x.diagonal() | np.diag(x) | x[:, :3].diagonal(1) | np.linalg.diagonal(x)
np.broadcast_to(x, (2, 3, 4)) | np.broadcast_to(x, x.shape) | np.broadcast_to(x, (3, 4)).T
np.broadcast_to(x, (1, 3, 4))[0]
"""
LAYOUT = """
x.T.reshape(3, 4) | x.reshape(4, 3, order="F") | x[:, ::2].reshape(6) | x[:, :2].reshape(6)
x[::-1].reshape(12) | np.einsum("ij->ji", x) | np.einsum("ij", x) | np.einsum("ii->i", x[:, :3])
"""
VIEWS_OF_COMPUTED = ("np.rot90(x)", "x.real.T", "x[:, 1:3].T", 'x.reshape(4, 3, order="F")')
Function = Callable[[Any], Any]


def _set(made: Any) -> None:
    made[...] = 7


def _add(made: Any) -> None:
    made += 5


def _set_first(made: Any) -> None:
    made[(0,) * made.ndim] = 9


UPDATES = [_set, _add, _set_first]


def _rows(table: str) -> list[str]:
    return [text.strip() for line in table.strip().splitlines() for text in line.split("|")]


def _made(text: str) -> Function:
    function: Function = eval(f"lambda x: {text}", {"np": np})
    return function


def _array(dtype: Any) -> Any:
    x = np.arange(12.0).reshape(3, 4)
    return x.astype(dtype) + (2j * x[::-1] if dtype is complex else 0)


def _is_as_numpy(text: str, update: Callable[[Any], None], x: Any, target: str) -> bool:
    """Whether the argument and what is read behind the assignment are NumPy's."""
    made = _made(text)

    def program(x: Any) -> Any:
        seen = x[1:]
        part = made(x)
        update(part)
        return seen + 1, part + 1

    expected, found = x.copy(), x.copy()
    values = program(expected)
    results = sj.sparse_jit(program, target=target, cache=False)(found)
    same = [np.array_equal(found, expected)]
    same += [np.array_equal(*pair) for pair in zip(results, values, strict=True)]
    assert np.array_equal(expected, x) is (text in _rows(COPIES)), "the table is wrong"
    return all(same)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("text", _rows(VIEWS) + _rows(COPIES))
def test_dense(text: str, update: Callable[[Any], None]) -> None:
    for dtype in (float, complex):
        assert _is_as_numpy(text, update, _array(dtype), "interpreter"), dtype


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("text", [text for text in _rows(VIEWS_OF_COMPLEX) if "ravel" not in text])
def test_imaginary_parts(text: str, update: Callable[[Any], None]) -> None:
    assert _is_as_numpy(text, update, _array(complex), "interpreter")


@pytest.mark.parametrize("method", ["conj", "conjugate"])
def test_real_numbers_are_their_own_conjugates(method: str) -> None:
    assert _is_as_numpy(f"x.{method}()", _add, _array(float), "interpreter")


def _tried(text: str, update: Callable[[Any], None], x: Any) -> None:
    def program(x: Any) -> Any:
        update(_made(text)(x))

    before = x.copy()
    try:
        sj.sparse_jit(program, target="interpreter", cache=False)(x)
    finally:
        assert np.array_equal(x, before)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("text", _rows(READ_ONLY))
def test_read_only(text: str, update: Callable[[Any], None]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        update(_made(text)(_array(float)))
    with pytest.raises(TensorValueError, match=r"destination is read-only\n.*in update|in _"):
        _tried(text, update, _array(float))


def test_imaginary_part_of_real_numbers() -> None:
    with pytest.raises(TensorValueError, match="destination is read-only"):
        _tried("x.imag", _set, _array(float))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("text", _rows(LAYOUT))
def test_layout_decides_in_numpy(text: str, update: Callable[[Any], None]) -> None:
    with pytest.raises(UnsupportedError, match=r"assignment to .* is not built"):
        _tried(text, update, _array(float))


@pytest.mark.parametrize("text", _rows(LAYOUT) + _rows(READ_ONLY))
def test_what_is_refused_can_be_read(text: str) -> None:
    x = _array(complex)
    found = sj.sparse_jit(lambda x: _made(text)(x) * 2, target="interpreter", cache=False)(x)
    np.testing.assert_array_equal(found, _made(text)(x) * 2)


@pytest.mark.parametrize("text", _rows(VIEWS) + _rows(COPIES) + _rows(LAYOUT))
def test_sparse(text: str) -> None:
    """What is made of a sparse operand has the right values; the operand is as before or NumPy's.

    Slices are copies, by the design; a transpose is a view. A view of a computed one is refused.
    """
    made = _made(text)

    def program(x: Any) -> Any:
        part = made(x)
        part *= 2
        return part

    dense = np.where(np.arange(12).reshape(3, 4) % 3, _array(complex), 0)
    A, after = sp.csr_array(dense), dense.copy()
    compiled = sj.sparse_jit(program, target="interpreter", cache=False)
    if text in VIEWS_OF_COMPUTED:
        with pytest.raises(UnsupportedError, match="updating a sparse intermediate is not built"):
            compiled(A)
        return
    result, expected = compiled(A), program(after)
    if not isinstance(result, np.ndarray):
        result = sj.asarray(result).to_numpy()
    np.testing.assert_array_equal(result, np.asarray(expected))
    assert any(np.array_equal(A.toarray(), x) for x in (dense, after))


# ---------------------------------------------------------------- parts of complex numbers

SPECIAL = [
    complex(a, b) for a in (1.5, -0.0, np.inf, np.nan) for b in (-2.0, -0.0, -np.inf, np.nan)
]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_every_bit_of_the_other_part_is_kept(dtype: Any, target: str) -> None:
    def store(x: Any, y: Any, r: Any) -> None:
        x.real = r
        y.imag = r

    x = np.array(SPECIAL, dtype)
    r = np.resize([-0.0, np.inf, np.nan, 3.0, 0.0, -np.inf], x.shape).astype(x.real.dtype)
    expected, found = (x.copy(), x.copy()), (x.copy(), x.copy())
    store(*expected, r)
    sj.sparse_jit(store, target=target, cache=False)(*found, r)
    for one, other in zip(expected, found, strict=True):
        one, other = (both.view(both.real.dtype) for both in (one, other))
        np.testing.assert_array_equal(one, other)
        numbers = ~np.isnan(one)
        np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_parts_are_seen_as_they_are_now(target: str) -> None:
    def program(x: Any, y: Any) -> Any:
        x.real += 1
        x.imag *= 2
        x.real[0] -= 3
        x[1:].imag[:, 0] = 9
        part = x.T.real
        x[0, 0] = 50 + 1j
        part[:, 1] += part[:, 0]
        y.real = x.imag
        z = x * 2
        z.imag = 0
        np.add(z.real, 1, out=z.imag)
        return part + 0, x.conj(), z

    x = np.arange(6.0).reshape(2, 3) + 2j
    arguments, others = (x.copy(), x + 1), (x.copy(), x + 1)
    expected = program(*arguments)
    found = sj.sparse_jit(program, target=target, cache=False)(*others)
    for one, other in zip((*expected, *arguments), (*found, *others), strict=True):
        np.testing.assert_array_equal(one, other)


def test_parts_in_index_notation_and_loops() -> None:
    @sj.sparse_jit(target="interpreter")
    def program(x: Any, w: Any) -> Any:
        i, j = sj.indices("i j")
        part = x.real
        part[i, j] = w[j] * 2
        x.imag[i, j] += w[j]

        def body(k: Any, z: Any) -> Any:
            z.real += 1
            return z

        return sj.fori_loop(0, 3, body, x + 0)

    x, w = _array(complex), np.arange(4.0)
    expected = 2 * w + 1j * (x.imag + w)
    found = program(x, w)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(found, expected + 3)


def test_sparse_parts_are_not_assigned() -> None:
    def program(A: Any) -> Any:
        A.real = 3

    with pytest.raises(UnsupportedError, match="part of the numbers of a sparse array") as raised:
        sj.sparse_jit(program)(sp.csr_array(_array(complex)))
    assert f"{__file__}:" in str(raised.value)


def test_rounding_keeps_infinite_parts() -> None:
    x = np.array([complex(1.26, np.inf), complex(-np.inf, 2.34)])
    found = sj.sparse_jit(lambda x: np.round(x, 1), target="interpreter")(x)
    np.testing.assert_array_equal(found, np.round(x, 1))


# ---------------------------------------------------------------- integers with the other sign


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_integers_are_viewed_with_the_other_sign(bits: int, target: str) -> None:
    signed, unsigned = np.dtype(f"int{bits}"), np.dtype(f"uint{bits}")

    def program(x: Any, y: Any) -> Any:
        seen = x.view(unsigned)
        seen[0] = seen[1]
        seen += 3
        x[2] = -5
        y.view(signed)[:2] = -1
        return seen + 0, seen.view(signed) * 1, x[::2].view(unsigned) // 2, y.view(signed) + 0

    x = np.array([1, -1, 5, np.iinfo(signed).min, -7], signed)
    expected, found = (x.copy(), x.view(unsigned).copy()), (x.copy(), x.view(unsigned).copy())
    values = program(*expected)
    results = sj.sparse_jit(program, target=target, cache=False)(*found)
    for one, other in zip((*values, *expected), (*results, *found), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_sparse_integers_with_the_other_sign_are_a_copy() -> None:
    A = sp.csr_array(np.array([[0, -1], [5, 0]]))
    found = sj.sparse_jit(lambda A: A.view(np.uint64), target="interpreter")(A)
    np.testing.assert_array_equal(found.toarray(), A.toarray().view(np.uint64))


@pytest.mark.parametrize("kind", ["i", "u"])
@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_the_bits_of_floats(kind: str, size: int, target: str) -> None:
    real, whole = np.dtype(f"f{size}"), np.dtype(f"{kind}{size}")
    exponent = 23 if size == 4 else 52

    def program(x: Any, n: Any, M: Any) -> Any:
        bits = x.view(whole)
        bits[0] = 1  # the least subnormal number
        bits[1:3] ^= bits[1:3] & 1
        x[3] = -x[3]
        n.view(real)[0] = 0.5
        M.view(whole)[1:, ::2] += 1 << exponent  # twice as large
        M.T.view(whole)[0] ^= 1
        return bits + 0, x.view(whole) >> exponent, n.view(real) * 2, bits.view(real) * 1, n[0] + 0

    def operands() -> tuple[Any, ...]:
        x = np.array([0.1, -0.0, np.inf, np.nan, 1.5, -np.inf, np.finfo(real).max], real)
        n = np.array([3, 0, np.iinfo(whole).max // 2, 12345], whole)
        return x, n, np.arange(1.0, 13, dtype=real).reshape(3, 4)

    expected, found = operands(), operands()
    values = program(*expected)
    results = sj.sparse_jit(program, target=target, cache=False)(*found)
    for one, other in zip((*values, *expected), (*results, *found), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert expected[0][0] == np.nextafter(real.type(0), real.type(1))


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_the_inverse_square_root_of_a_game(target: str) -> None:
    def inverse_root(x: Any) -> Any:
        y = (0x5F3759DF - (x.view(np.int32) >> 1)).view(np.float32)
        return y * (np.float32(1.5) - np.float32(0.5) * x * y * y)

    x = np.geomspace(1e-3, 1e3, 50, dtype=np.float32)
    found = sj.sparse_jit(inverse_root, target=target)(x)
    np.testing.assert_allclose(found, inverse_root(x), rtol=1e-6)
    np.testing.assert_allclose(found, 1 / np.sqrt(x), rtol=2e-3)


def test_bits_of_what_is_no_array_of_the_callers() -> None:
    A = sp.csr_array(np.array([[0, -1.5], [5, 0]]))
    f = sj.sparse_jit(lambda A: A.view(np.uint64), target="interpreter")
    np.testing.assert_array_equal(f(A).toarray(), A.toarray().view(np.uint64))
    assert f(A).nnz == 2
    g = sj.sparse_jit(lambda x: (x.sum().view(np.int64), (x + 1).view(np.uint64), x.T.view("i8")))
    x = np.arange(6.0).reshape(2, 3)
    for one, other in zip(g(x), g.py_func(x), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "dtypes", ["f2 i2", "i2 f2", "i4 f8", "c8 i8", "f8 f4", "? u1", "c16 f8", "f4 c8"]
)
def test_other_bits_are_not_read(dtypes: str) -> None:
    own, wanted = map(np.dtype, dtypes.split())
    what = rf"view of {own.name} as {wanted.name} is not built\n.*test_view"
    with pytest.raises(UnsupportedError, match=what):
        sj.sparse_jit(lambda x: x.view(wanted))(np.ones(2, own))
