"""SciPy's sparse classes, in and out, without copying buffers.

In: csr, csc, coo (any rank), bsr and dia arrays or matrices; lil and dok are converted. Out: the
adapters that describe them, and SciPy arrays over the buffers of a ``SparseTensor``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsejit.affine import Mod
from sparsejit.errors import TensorTypeError
from sparsejit.formats import BSR, COO, CSC, CSR, DIA, Format, SparseVector
from sparsejit.tensors._canonical import canonical_format, settle, with_dense_tail
from sparsejit.tensors._checks import check_structure
from sparsejit.tensors._dtypes import BFLOAT16
from sparsejit.tensors._operand import Kind
from sparsejit.tensors._records import Adapter, Settled
from sparsejit.tensors._storage import Array, Structure, join_buffers
from sparsejit.tensors._values import ValuePlan

__all__ = [
    "SCIPY_ADAPTERS",
    "block_shape",
    "build_scipy",
    "class_that_holds",
    "kind_of",
    "scipy_array",
    "scipy_builder",
    "settle_columns",
]


def kind_of(obj: Any) -> Kind:
    """Return whether ``obj`` is one of SciPy's arrays or matrices."""
    return "scipy-array" if isinstance(obj, sp.sparray) else "scipy-matrix"


def _sorted_flags(obj: Any) -> tuple[Any, ...]:
    state = obj.__dict__  # the properties would compute the flags, in time linear in the entries
    return (
        obj.shape,
        state.get("_has_sorted_indices"),
        state.get("_has_canonical_format"),
    )


def _contiguous(array: Any) -> Any:
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array


def _nodes_of(indptr: Any) -> int:
    """Return how many indices are in use; SciPy allows arrays that are longer."""
    if isinstance(indptr, np.ndarray) and indptr.ndim == 1 and indptr.size:
        last = indptr[-1]
        if indptr.dtype.kind in "iu" and last >= 0:
            return int(last)
    return 0


def _in_use(array: Any, count: int) -> Any:
    if isinstance(array, np.ndarray) and array.ndim == 1 and len(array) > count:
        return array[:count]
    return array


def _settle_compressed(obj: Any, is_trusted: bool) -> Settled:
    """Settle csr, csc and one-dimensional csr."""
    nodes = _nodes_of(obj.indptr)
    indptr, indices = _contiguous(obj.indptr), _contiguous(_in_use(obj.indices, nodes))
    if len(obj.shape) == 1:
        structure = Structure(SparseVector, obj.shape, (indptr,), (indices,))
    else:
        fmt = CSR if obj.format == "csr" else CSC
        structure = Structure(fmt, obj.shape, (None, indptr), (None, indices))
    settled = settle(structure, is_trusted=is_trusted)
    return Settled(*settled, nodes, may_have_slack=True, each=())


def _settle_blocks(obj: Any, is_trusted: bool) -> Settled:
    nodes = _nodes_of(obj.indptr)
    if obj.data.ndim != 3:
        raise ValueError(f"values has shape {obj.data.shape}, not that of blocks")
    _, rows, columns = obj.data.shape
    indptr, indices = _contiguous(obj.indptr), _contiguous(_in_use(obj.indices, nodes))
    structure = Structure(
        BSR(rows, columns), obj.shape, (None, indptr, None, None), (None, indices, None, None)
    )
    count = nodes * rows * columns
    settled = settle(structure, is_trusted=is_trusted)
    return Settled(*settled, count, may_have_slack=True, each=(rows, columns))


def _settle_coordinates(obj: Any, is_trusted: bool) -> Settled:
    coords = tuple(map(_contiguous, obj.coords))
    return settle_columns(coords, obj.shape, is_trusted)


def settle_columns(coords: tuple[Any, ...], shape: tuple[int, ...], is_trusted: bool) -> Settled:
    """Settle one coordinate array per sparse dimension, of entries in any order.

    Dimensions beyond those of ``coords`` are dense.
    """
    dense_shape = shape[len(coords) :]
    fmt = with_dense_tail(COO(len(coords)), len(dense_shape))
    count = len(coords[0])
    rest = (None,) * (fmt.num_levels - len(coords))
    positions = (np.array([0, count], _position_dtype(coords[0], count)),)
    no_more = (None,) * (fmt.num_levels - 1)
    structure = Structure(fmt, shape, (*positions, *no_more), (*coords, *rest))
    settled = settle(structure, is_trusted=is_trusted)
    return Settled(*settled, count * prod(dense_shape), each=tuple(dense_shape))


def _position_dtype(coordinates: Any, count: int) -> np.dtype[Any]:
    """Return the type of the coordinates, as positions have it too, unless that is too small."""
    narrow = getattr(coordinates, "dtype", None) == np.int32 and count <= np.iinfo(np.int32).max
    return np.dtype(np.int32 if narrow else np.int64)


def _settle_diagonals(obj: Any, is_trusted: bool) -> Settled:
    """Settle dia: SciPy allows any order, rows of any length, and diagonals outside the shape."""
    offsets, (rows, columns) = np.asarray(obj.offsets), obj.shape
    if offsets.dtype.kind not in "iu" or offsets.ndim != 1:
        raise ValueError(f"offsets has dtype {offsets.dtype}, shape {offsets.shape}: not offsets")
    if obj.data.ndim != 2:
        raise ValueError(f"values has shape {obj.data.shape}, not that of diagonals")
    width = obj.data.shape[1]
    inside = np.flatnonzero((offsets > -rows) & (offsets < columns))
    inside = inside[np.argsort(offsets[inside], kind="stable")]
    as_it_lies = np.array_equal(inside, np.arange(len(offsets)))
    chosen = np.ascontiguousarray(offsets) if as_it_lies else offsets[inside]
    positions = np.array([0, len(chosen)], chosen.dtype)
    structure = Structure(DIA, obj.shape, (positions, None), (chosen, None))
    if not is_trusted:
        check_structure(structure)
    count = len(offsets) * width
    if width == columns and as_it_lies:
        return Settled(structure, ValuePlan(), count)
    common = np.arange(min(width, columns))
    source = (inside[:, None] * width + common).reshape(-1)
    target = (np.arange(len(inside))[:, None] * columns + common).reshape(-1)
    plan = ValuePlan(source, None, target, len(inside) * columns)
    return Settled(structure, plan, count)


def _zero(obj: Any) -> int:
    return 0


def _data(obj: Any) -> Any:
    return obj.data


def _adapter(
    index_arrays: Callable[[Any], tuple[Any, ...]],
    flags: Callable[[Any], tuple[Any, ...]],
    settle_it: Callable[[Any, bool], Settled],
    attributes: tuple[str, ...],
) -> Adapter:
    return Adapter(kind_of, index_arrays, _data, flags, settle_it, _zero, attributes)


_SORTED = ("_shape", "_has_sorted_indices", "_has_canonical_format")
_COMPRESSED = _adapter(
    lambda a: (a.indptr, a.indices),
    _sorted_flags,
    _settle_compressed,
    ("indptr", "indices", "data", *_SORTED),
)

SCIPY_ADAPTERS: Mapping[str, Adapter] = {
    "csr": _COMPRESSED,
    "csc": _COMPRESSED,
    "bsr": _adapter(
        lambda a: (a.indptr, a.indices),
        lambda a: (*_sorted_flags(a), a.data.shape[1:]),
        _settle_blocks,
        ("indptr", "indices", "data", *_SORTED),
    ),
    "coo": _adapter(
        lambda a: a.coords,
        lambda a: (a.shape, a.has_canonical_format),
        _settle_coordinates,
        ("coords", "data", "_shape", "has_canonical_format"),
    ),
    "dia": _adapter(
        lambda a: (a.offsets,),
        lambda a: (a.shape, a.data.shape),
        _settle_diagonals,
        ("offsets", "data", "_shape"),
    ),
}

_HELD_FORMATS = {CSR: "csr", CSC: "csc", DIA: "dia"}
_NOT_HELD_TYPES = (np.dtype(np.float16), BFLOAT16)
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def class_that_holds(structure: Structure, dtype: np.dtype[Any], fill: Any) -> tuple[str, str]:
    """Return SciPy's name of the class that can share the storage, or "" and the reason why none.

    >>> from sparsejit.formats import DCSR
    >>> class_that_holds(Structure(DCSR, (2, 2), (), ()), np.dtype(float), 0.0)
    ('', 'SciPy has no class for this format')
    """
    name, block = _class_of(structure.format)
    if not name:
        return "", "SciPy has no class for this format"
    if any(extent % size for extent, size in zip(structure.shape, block, strict=False)):
        return "", f"SciPy's blocks of {block} must divide the shape {structure.shape}"
    if fill != 0:
        return "", f"SciPy's sparse arrays have fill value 0, not {fill}"
    if dtype in _NOT_HELD_TYPES:
        return "", f"SciPy's sparse arrays do not hold {dtype}"
    arrays = (*structure.positions, *structure.coordinates)
    if any(array is not None and array.dtype not in _INDEX_TYPES for array in arrays):
        return "", "SciPy's sparse arrays have 32 or 64 bit signed indices"
    return name, ""


@lru_cache(maxsize=1024)
def _class_of(fmt: Format) -> tuple[str, tuple[int, ...]]:
    """Return SciPy's name for the format, "" if none, and the shape of the blocks it has."""
    fmt = canonical_format(fmt.with_widths(0, 0))
    if fmt in _HELD_FORMATS:
        return _HELD_FORMATS[fmt], ()
    if fmt.ndim and fmt == COO(fmt.ndim):
        return "coo", ()
    block = block_shape(fmt)
    return ("bsr", block) if block else ("", ())


def block_shape(fmt: Format) -> tuple[int, int] | None:
    """Return ``(r, c)`` when the format is ``BSR(r, c)``, else None.

    >>> block_shape(BSR(2, 3)), block_shape(CSR)
    ((2, 3), None)
    """
    if fmt.ndim != 2 or fmt.num_levels != 4:
        return None
    rows, columns = (
        level.expr.divisor if isinstance(level.expr, Mod) else 1 for level in fmt.levels[2:]
    )
    return (rows, columns) if fmt == BSR(rows, columns) else None


def scipy_array(structure: Structure, values: Array, fill: Any) -> Any:
    """Return a SciPy sparse array over the buffers.

    Raises ``TensorTypeError`` when no SciPy class can hold format, dtype or fill value.
    """
    name, reason = class_that_holds(structure, values.dtype, fill)
    if not name:
        what = f"({structure.format}) cannot become a SciPy array: {reason}"
        raise TensorTypeError(what, hint="convert it first, as in .convert(sj.CSR).to_scipy()")
    return build_scipy(name, structure, values)


# The constructors scan the indices, copy 64-bit ones and take 100 microseconds. What they leave in
# an object's dictionary beside the arrays is taken from an empty one.
_CLASSES: Mapping[str, Any] = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "bsr": sp.bsr_array,
    "dia": sp.dia_array,
}


@lru_cache(maxsize=16)
def _attributes(name: str, is_canonical: bool) -> Mapping[str, Any]:
    """Return what an object of a class has beside shape and arrays."""
    out: Any = _CLASSES[name]((1, 1))
    if name != "dia":
        if is_canonical:
            out.has_canonical_format = True
        elif name == "coo":
            out.has_canonical_format = False
        else:  # only looked at when somebody asks
            for flag in ("_has_sorted_indices", "_has_canonical_format"):
                out.__dict__.pop(flag, None)
    return MappingProxyType(dict(out.__dict__))


def scipy_builder(
    name: str, format: Format, shape: tuple[int, ...]
) -> Callable[[Sequence[Array]], Any]:
    """Return what makes a SciPy array of class ``name`` over buffers that it is known to hold.

    The buffers are in canonical order.
    """
    kind = _CLASSES[name]
    rest = dict(_attributes(name, format == canonical_format(format)))
    rest["_shape"] = shape

    def parts(buffers: Sequence[Array]) -> dict[str, Any]:
        match name:
            case "coo":
                return {"coords": tuple(buffers[1:-1]), "data": buffers[-1]}
            case "dia":
                _, offsets, values = buffers
                return {"offsets": offsets, "data": values.reshape(len(offsets), shape[1])}
            case "bsr":
                indptr, indices, values = buffers
                values = values.reshape(-1, *_class_of(format)[1])
                return {"indptr": indptr, "indices": indices, "data": values}
            case _:
                indptr, indices, values = buffers
                return {"indptr": indptr, "indices": indices, "data": values}

    def build(buffers: Sequence[Array]) -> Any:
        out = kind.__new__(kind)
        out.__dict__ = rest | parts(buffers)
        return out

    return build


def build_scipy(name: str, structure: Structure, values: Array) -> Any:
    """Return the SciPy array of class ``name`` over buffers that it is known to hold."""
    buffers = join_buffers(structure, values)
    return scipy_builder(name, structure.format, structure.shape)(buffers)
