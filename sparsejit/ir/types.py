"""Element types, tensor types and memref types: the vocabulary of both IRs.

NumPy dtypes become ``DType`` at the border (``tensors``, ``trace``) and again in the backends; the
IR itself holds no NumPy object.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr
from sparsejit.formats import Format

if TYPE_CHECKING:
    from sparsejit.ir.scalar import Const

__all__ = ["INDEX", "DType", "IndexWidths", "IteratorType", "TensorType"]


class DType(Enum):
    """The element types. ``value`` is NumPy's name (``bfloat16`` is that of ``ml_dtypes``)."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    @property
    def short(self) -> str:
        """The short name of the texts: ``f64``, ``i32``, ``u8``, ``c128``, ``bool``, ``bf16``.

        >>> DType.COMPLEX64.short
        'c64'
        """
        name = self.value
        for long, brief in (("complex", "c"), ("bfloat", "bf"), ("float", "f"), ("uint", "u")):
            if name.startswith(long):
                return brief + name.removeprefix(long)
        return name.replace("int", "i")

    @property
    def is_complex(self) -> bool:
        """complex64 or complex128."""
        return self in (DType.COMPLEX64, DType.COMPLEX128)

    @property
    def is_float(self) -> bool:
        """A real floating type, the 16-bit ones included."""
        return self in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)

    @property
    def is_integer(self) -> bool:
        """A signed or unsigned integer; bool is neither."""
        return self.is_signed_integer or self.is_unsigned_integer

    @property
    def is_signed_integer(self) -> bool:
        """int8 to int64."""
        return self in (DType.INT8, DType.INT16, DType.INT32, DType.INT64)

    @property
    def is_unsigned_integer(self) -> bool:
        """uint8 to uint64."""
        return self in (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64)

    @property
    def bits(self) -> int:
        """The size of an element in bits (8 for bool)."""
        digits = "".join(letter for letter in self.value if letter.isdigit())
        return int(digits) if digits else 8

    @property
    def compute(self) -> DType:
        """The type that arithmetic runs in: 16-bit floats are storage types and widen.

        >>> DType.FLOAT16.compute
        DType.FLOAT32
        """
        return DType.FLOAT32 if self in (DType.FLOAT16, DType.BFLOAT16) else self

    @property
    def real(self) -> DType:
        """The type of the real part: float32 of complex64, float64 of complex128, else itself."""
        match self:
            case DType.COMPLEX64:
                return DType.FLOAT32
            case DType.COMPLEX128:
                return DType.FLOAT64
            case _:
                return self

    @property
    def as_bits(self) -> DType:
        """The unsigned integer of as many bits; of complex numbers, which have two, itself.

        >>> DType.FLOAT32.as_bits
        DType.UINT32
        """
        return self if self.is_complex else DType(f"uint{self.bits}")

    @property
    def as_float(self) -> DType:
        """The float of 32 or 64 bits that has as many; where there is none, itself."""
        match self.bits:
            case 32:
                return DType.FLOAT32
            case 64 if not self.is_complex:
                return DType.FLOAT64
            case _:
                return self


INDEX = DType.INT64
"""The type of loop variables, positions in registers and extents."""


class IteratorType(Enum):
    """Whether a loop of a ``Generic`` writes distinct elements or reduces."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"

    def __repr__(self) -> str:
        return f"IteratorType.{self.name}"


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor value.

    ``shape`` holds one affine expression a dimension, over the symbols of the function (extents,
    then induction variables); ``format`` is ``Dense(rank)`` for a plain dense tensor; ``fill`` is
    the value of what is not stored (a ``Const`` of ``dtype``).
    """

    shape: tuple[AffineExpr, ...]
    dtype: DType
    format: Format
    fill: Const

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_dense(self) -> bool:
        """Whether this is a plain dense tensor, stored as one strided array."""
        return self.format.is_dense


@dataclass(frozen=True, slots=True)
class IndexWidths:
    """The bits of positions and of coordinates, where a format names none.

    Coordinates are bounded by extents, positions by what is stored, of which less is known.

    >>> str(IndexWidths(32, 32)), str(IndexWidths(64, 32))
    ('32 bits', '64 bits for positions and 32 for coordinates')
    """

    positions: Literal[32, 64] = 64
    coordinates: Literal[32, 64] = 64

    def __str__(self) -> str:
        if self.positions == self.coordinates:
            return f"{self.positions} bits"
        return f"{self.positions} bits for positions and {self.coordinates} for coordinates"

    def or_wider(self, other: IndexWidths) -> IndexWidths:
        """Return the wider of each."""
        return IndexWidths(
            max(self.positions, other.positions), max(self.coordinates, other.coordinates)
        )

    @property
    def same(self) -> IndexWidths:
        """Both as the wider one: what libraries ask for."""
        return self.or_wider(IndexWidths(self.coordinates, self.positions))
