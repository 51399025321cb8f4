"""``Operand``: the uniform description of one argument of a call."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.errors import UnsupportedError
from sparsejit.formats import Format
from sparsejit.tensors._values import ValuePlan

__all__ = ["SHARED", "Kind", "Operand"]

Kind = Literal[
    "numpy",
    "numpy-scalar",
    "python-scalar",
    "sparse-tensor",
    "scipy-array",
    "scipy-matrix",
    "pydata",
    "torch",
    "cupy",
    "cupyx",
    "dlpack",
]

SHARED = ValuePlan()


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """What a call needs to know about one argument.

    ``format``, ``shape``, ``dtype`` and ``fill_value`` are the tensor's; the format promises order
    and uniqueness, also where the caller's object has neither. ``buffers`` are its arrays in
    canonical order: level by level positions, then coordinates, and last the flat values; for a
    dense array it is the array alone, of any strides. ``kind`` names the caller's kind of object,
    ``on_device`` says where the buffers lie. ``source`` is the caller's array of values, None
    when the object had to be converted, and ``plan`` says how ``buffers[-1]`` was read from it.

    >>> from sparsejit.tensors import describe
    >>> operand = describe(np.ones((2, 3), np.float32))
    >>> operand.kind, operand.dtype.name, operand.shape, operand.is_dense
    ('numpy', 'float32', (2, 3), True)
    """

    format: Format
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any
    buffers: tuple[Any, ...]
    kind: Kind
    on_device: bool = False
    source: Any = None
    plan: ValuePlan = SHARED

    @property
    def is_dense(self) -> bool:
        """Whether the one buffer is an array of the tensor's shape, of any strides."""
        return self.format.is_dense

    @property
    def values(self) -> Any:
        """The values: flat, or the array itself for a dense operand."""
        return self.buffers[-1]

    @property
    def is_shared(self) -> bool:
        """Whether writing into ``values`` writes into the caller's object."""
        return self.source is not None and self.plan.is_shared and _share(self.values, self.source)

    @property
    def writable(self) -> bool:
        """Whether ``write_values`` can reach the caller's object."""
        if self.source is None or self.plan.first is not None:
            return False
        return self.on_device or bool(self.source.flags.writeable)

    def write_values(self, values: Any) -> None:
        """Write ``values``, ordered as ``self.values``, into the caller's object.

        Raises ``UnsupportedError`` when it has duplicate entries or had to be converted,
        ``ValueError`` when its array is read-only.
        """
        if self.source is None:
            raise UnsupportedError(
                f"cannot assign to a {self.kind} argument of this kind",
                hint="pass a NumPy array or a csr, csc, coo, bsr or dia array",
            )
        if self.plan.first is None and not self.writable:
            raise ValueError("cannot assign to an argument whose array is read-only")
        if self.is_shared:
            if values is not self.values:
                self.values[...] = values
            return
        flat = self.source.reshape(-1)
        self.plan.write(flat, values)
        if not _share(flat, self.source):
            self.source[...] = flat.reshape(self.source.shape)


def _share(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return bool(one.data.ptr == other.data.ptr)
    return np.may_share_memory(one, other)
