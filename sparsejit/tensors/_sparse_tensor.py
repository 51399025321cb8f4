"""``SparseTensor``: one tensor of any format, as the buffers of its levels.

In: positions, coordinates and values, checked unless they are our own. Out: the same buffers,
shared, and conversions to NumPy, SciPy, CuPy and other formats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sparsejit.errors import TensorTypeError
from sparsejit.formats import Format
from sparsejit.tensors._checks import check_shape, check_structure, check_values
from sparsejit.tensors._convert import converted
from sparsejit.tensors._coordinates import count_entries
from sparsejit.tensors._dense import dense_array
from sparsejit.tensors._dtypes import fill_scalar
from sparsejit.tensors._storage import Array, OptionalArrays, Structure
from sparsejit.tensors._text import tensor_text

if TYPE_CHECKING:
    from sparsejit.tensors._operand import Operand
    from sparsejit.tensors._ready import Ready
    from sparsejit.tensors._records import Settled

__all__ = [
    "SparseTensor",
    "convert_in_numpy",
    "host_tensor",
    "install_convert",
    "is_device_array",
    "on_host",
    "trusted_tensor",
]

Convert = Callable[["SparseTensor", Format], "SparseTensor"]


def is_device_array(array: object) -> bool:
    """Whether ``array`` is a CuPy array (CuPy is not imported to find out), or says it is alike."""
    kind = type(array)
    return kind.__module__.split(".")[0] == "cupy" or getattr(kind, "lies_on_device", False)


class SparseTensor:
    """A tensor in any format: the buffers of its levels, its values and its fill value.

    ``positions[l]`` and ``coordinates[l]`` are integer arrays, or None where level ``l`` stores
    none: dense, batch and range levels store none; compressed positions have one element more
    than there are parents and start at 0; loose_compressed positions are (parents, 2);
    ``structured[n, m]`` and ``padded[k]`` store ``n`` or ``k`` coordinates a parent, -1 marking an
    unused padded slot, behind the used ones; a COO that is no ``soa`` keeps an (nse, rank) array
    at its first level; ``j - i`` levels store the offset. Below ``batch`` levels every array has
    the batch extents in front. ``values`` holds one value a slot, the slots of dense levels
    included. ``fill_value`` is the value of all that is not stored.

    Buffers are shared, not copied, and must be contiguous. Raises ``ValueError`` for damaged
    storage, naming level, array and first bad index; ``TensorTypeError`` for value types that
    are not supported.

    >>> from sparsejit.formats import CSR
    >>> a = SparseTensor(CSR, (2, 3), (None, np.array([0, 1, 2])), (None, np.array([2, 0])),
    ...                  np.array([5.0, 7.0]))
    >>> a.to_numpy().tolist(), a.nse
    ([[0.0, 0.0, 5.0], [7.0, 0.0, 0.0]], 2)
    """

    __slots__ = (
        "__weakref__",
        "_fill_value",
        "_nse",
        "_structure",
        "_values",
        "operand",
        "ready",
        "seen",
        "settled",
    )

    _structure: Structure
    _values: Array
    _fill_value: Any
    _nse: int | None
    settled: Settled | None  # what `describe` remembers: the structure in canonical order,
    operand: Operand | None  # and the operand itself where it shares the buffers
    ready: Ready | None  # and what calls take of that
    seen: tuple[tuple[Any, ...], ...]  # the buffers' dtypes, extents and strides then

    def __init__(
        self,
        format: Format,
        shape: Sequence[int],
        positions: Sequence[Any],
        coordinates: Sequence[Any],
        values: Any,
        fill_value: Any = 0,
    ) -> None:
        if not isinstance(format, Format):
            raise ValueError(f"format must be a Format, not {format!r}")
        extents = check_shape(format, shape)
        structure = Structure(
            format,
            extents,
            _arrays(positions, "positions"),
            _arrays(coordinates, "coordinates"),
        )
        slots = check_structure(on_host(structure))
        value_array = _array(values, "values")
        check_values(structure, value_array, slots)
        self._set(structure, value_array.reshape(-1), fill_scalar(fill_value, value_array.dtype))

    def _set(self, structure: Structure, values: Array, fill: Any) -> None:
        self._structure = structure
        self._values = values
        self._fill_value = fill
        self._nse = None
        self.settled = None
        self.operand = None
        self.ready = None
        self.seen = ()

    def look(self) -> None:
        """Remember what could be changed of the buffers in their place."""
        self.seen = self._looks()

    def is_as_seen(self) -> bool:
        """Whether dtypes, extents and strides of the buffers are as when they were looked at."""
        return not self.seen or self.seen == self._looks()

    def _looks(self) -> tuple[tuple[Any, ...], ...]:
        structure = self._structure
        arrays = (*structure.positions, *structure.coordinates, self._values)
        return tuple([(a.dtype, a.shape, a.strides) for a in arrays if a is not None])

    def __reduce__(self) -> tuple[object, ...]:
        return trusted_tensor, (self._structure, self._values, self._fill_value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        # Without this NumPy would make a 0-d object array of the tensor, and compute nonsense.
        raise TensorTypeError(
            "a SparseTensor does not become a NumPy array by itself",
            hint="call .to_numpy(), or use it inside a function decorated with sparse_jit",
        )

    @property
    def structure(self) -> Structure:
        """Format, shape, positions and coordinates together."""
        return self._structure

    @property
    def format(self) -> Format:
        """The format."""
        return self._structure.format

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the dimensions."""
        return self._structure.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._structure.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self._values.dtype

    @property
    def fill_value(self) -> Any:
        """The value of everything that is not stored, a NumPy scalar of ``dtype``."""
        return self._fill_value

    @property
    def positions(self) -> OptionalArrays:
        """The positions of each level, None where a level stores none."""
        return self._structure.positions

    @property
    def coordinates(self) -> OptionalArrays:
        """The coordinates of each level, None where a level stores none."""
        return self._structure.coordinates

    @property
    def values(self) -> Array:
        """The values of all slots, a flat array."""
        return self._values

    @property
    def nse(self) -> int:
        """The number of stored entries: slots inside the shape, stored zeros included."""
        if self._nse is None:
            self._nse = count_entries(on_host(self._structure), len(self._values))
        return self._nse

    @property
    def nnz(self) -> int:
        """The same as ``nse``, under SciPy's name."""
        return self.nse

    def to_numpy(self) -> Array:
        """Return the dense array; for a format that is dense itself, a view of the values."""
        host = host_tensor(self)
        return dense_array(host.structure, host.values, host.fill_value)

    def to_scipy(self) -> Any:
        """Return a SciPy sparse array that shares the buffers.

        Raises ``TensorTypeError`` when no SciPy class can hold the format, dtype or fill value.
        """
        from sparsejit.tensors._scipy import scipy_array

        host = host_tensor(self)
        return scipy_array(host.structure, host.values, host.fill_value)

    def to_cupy(self) -> Any:
        """Return a CuPy array or cupyx sparse matrix on the device.

        Raises ``DeviceError`` when CuPy, the driver or a device is missing, ``TensorTypeError``
        when no cupyx class can hold the tensor.
        """
        from sparsejit.tensors._device import cupyx_matrix

        return cupyx_matrix(self)

    def convert(self, format: Format) -> SparseTensor:
        """Return the same tensor in another format, or itself when it has that format already.

        Stored entries stay stored, except that zeros which only fill a dense level are dropped
        where the new level is sparse. Raises ``ValueError`` when the format cannot hold the
        entries (more than ``n`` in a structured block, more than ``k`` in a padded row).
        """
        if format == self.format:
            return self
        if not isinstance(format, Format):
            raise ValueError(f"format must be a Format, not {format!r}")
        if format.ndim != self.ndim:
            raise ValueError(f"({format}) has {format.ndim} dimensions, the tensor {self.ndim}")
        return _convert(self, format)

    def __repr__(self) -> str:
        host = host_tensor(self)
        return tensor_text(host.structure, host.values, host.fill_value, self.nse)


def trusted_tensor(structure: Structure, values: Array, fill_value: Any = 0) -> SparseTensor:
    """Return a tensor of buffers that sparsejit itself has made; nothing is checked."""
    made = SparseTensor.__new__(SparseTensor)
    made._set(structure, values, fill_scalar(fill_value, values.dtype))
    return made


def convert_in_numpy(tensor: SparseTensor, format: Format) -> SparseTensor:
    """Return ``tensor`` in another format, through coordinates in NumPy.

    It is what ``convert`` does until ``install_convert``. Raises ``ValueError`` where the format
    cannot hold the entries.
    """
    host = host_tensor(tensor)
    fill = host.fill_value
    return trusted_tensor(*converted(host.structure, host.values, fill, format), fill)


_convert: Convert = convert_in_numpy


def install_convert(function: Convert) -> None:
    """Make ``function(tensor, format)`` do the work of ``SparseTensor.convert`` from now on."""
    global _convert
    _convert = function


def _arrays(arrays: object, name: str) -> OptionalArrays:
    if not isinstance(arrays, tuple | list):
        raise ValueError(f"{name} must be a tuple with one element a level, not {arrays!r}")
    return tuple(
        None if array is None else _array(array, f"{name}[{level}]")
        for level, array in enumerate(arrays)
    )


def _array(array: object, name: str) -> Array:
    if is_device_array(array):
        return cast(Array, array)
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise ValueError(f"{name} must be a NumPy array, not {type(array).__name__}")
    return np.asarray(array)


def on_host(structure: Structure) -> Structure:
    """Return the structure with its buffers in NumPy arrays (copied from a device if need be)."""
    arrays = (*structure.positions, *structure.coordinates)
    if not any(is_device_array(array) for array in arrays):
        return structure
    return Structure(
        structure.format,
        structure.shape,
        tuple(_to_host(array) for array in structure.positions),
        tuple(_to_host(array) for array in structure.coordinates),
    )


def _to_host(array: Any) -> Any:
    return array.get() if is_device_array(array) else array


def host_tensor(tensor: SparseTensor) -> SparseTensor:
    """Return the tensor with all buffers in NumPy arrays; itself when they are."""
    structure = on_host(tensor.structure)
    values = _to_host(tensor.values)
    if structure is tensor.structure and values is tensor.values:
        return tensor
    return trusted_tensor(structure, values, tensor.fill_value)
