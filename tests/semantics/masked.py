"""Tensors as dense values and masks: what the tests of semantics compute with, in NumPy alone.

A ``Masked`` says which elements are stored, their values and the fill value. ``operand`` makes the
sparsejit or NumPy object, ``stored_of`` reads what a result stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import sparsejit as sj

Array = np.ndarray[Any, Any]

FORMATS: dict[str, Any] = {
    "dense": None,
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "dcsr": sj.DCSR,
}


@dataclass(frozen=True)
class Masked:
    """A matrix or vector: ``values`` at ``stored``, ``fill`` elsewhere."""

    values: Array
    stored: Array
    format: Any
    fill: Any = 0

    @property
    def dense(self) -> Array:
        """All elements."""
        fill = np.asarray(self.fill).astype(self.values.dtype)
        return np.where(self.stored, self.values, fill).astype(self.values.dtype)

    @property
    def operand(self) -> Any:
        """The object that is handed to a decorated function."""
        if self.format is None:
            return self.dense
        coords = np.nonzero(self.stored)
        made = sj.from_coo(coords, self.values[coords], self.values.shape, format=self.format)
        return sj.asarray(made, fill_value=self.values.dtype.type(self.fill))


def stored_of(result: Any) -> Array:
    """Return which elements a result stores."""
    if isinstance(result, np.ndarray | np.generic):
        return np.ones(np.shape(result), bool)
    tensor = sj.asarray(result)
    coo = tensor.convert(sj.COO(tensor.ndim)) if tensor.ndim > 1 else tensor
    mask = np.zeros(tensor.shape, bool)
    if tensor.ndim == 1:
        if tensor.coordinates[0] is None:
            return np.ones(tensor.shape, bool)
        mask[np.asarray(tensor.coordinates[0])] = True
        return mask
    mask[tuple(np.asarray(c) for c in coo.coordinates)] = True
    return mask


def dense_of(result: Any) -> Array:
    """Return all elements of a result."""
    if isinstance(result, np.ndarray | np.generic):
        return np.asarray(result)
    return np.asarray(sj.asarray(result).to_numpy())


def run(fn: Callable[..., Any], *operands: Masked, **options: Any) -> Any:
    """Return what ``fn``, decorated, gives on the interpreter."""
    with np.errstate(all="ignore"):
        return sj.sparse_jit(fn, target="interpreter", **options)(*(o.operand for o in operands))


def same(got: Any, wanted: Array, rtol: float = 1e-6) -> None:
    """Assert that a result has these elements, nan being nan, and this dtype."""
    found = dense_of(got)
    assert found.dtype == wanted.dtype, f"{found.dtype}, expected {wanted.dtype}"
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=rtol)


def elements(dtype: Any) -> st.SearchStrategy[Any]:
    """Return small numbers of a dtype, so that sums are exact."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind == "u":
        return st.integers(0, 5)
    if kind == "c":
        return st.builds(complex, st.integers(-3, 3), st.integers(-3, 3))
    return st.integers(-4, 4)


@st.composite
def masked(
    draw: Any,
    shape: Sequence[int],
    dtypes: Sequence[Any] = (np.float64,),
    formats: Sequence[str] = tuple(FORMATS),
    fills: Sequence[Any] = (0,),
) -> Masked:
    """Draw a tensor of a shape."""
    dtype = np.dtype(draw(st.sampled_from(list(dtypes))))
    count = int(np.prod(shape))
    values = draw(st.lists(elements(dtype), min_size=count, max_size=count))
    stored = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    name = draw(st.sampled_from(list(formats)))
    fmt = FORMATS[name] if len(shape) == 2 or name == "dense" else sj.SparseVector
    fill = draw(st.sampled_from(list(fills)))
    mask = np.array(stored, bool).reshape(shape)
    if fmt is None:
        mask = np.ones_like(mask)
    return Masked(np.array(values, dtype).reshape(shape), mask, fmt, fill)


shapes = st.integers(0, 4)
