"""The value types of tensors at NumPy's border, and fill values of these types.

In: what a user hands over as dtype or fill value. Out: a NumPy dtype of the supported list, or a
NumPy scalar of it. bfloat16 is ml_dtypes' extension type.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from sparsejit.errors import TensorTypeError

__all__ = ["BFLOAT16", "VALUE_TYPES", "checked_value_dtype", "fill_scalar", "is_fill", "zero_of"]

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)

VALUE_TYPES: tuple[np.dtype[Any], ...] = (
    *map(np.dtype, ("bool", "int8", "int16", "int32", "int64")),
    *map(np.dtype, ("uint8", "uint16", "uint32", "uint64", "float16")),
    BFLOAT16,
    *map(np.dtype, ("float32", "float64", "complex64", "complex128")),
)
_SUPPORTED = frozenset(VALUE_TYPES)
_ZEROS = {dtype: dtype.type(0) for dtype in VALUE_TYPES}


def checked_value_dtype(dtype: np.dtype[Any], what: str = "values") -> np.dtype[Any]:
    """Return ``dtype`` when values can have it; ``TensorTypeError`` otherwise.

    >>> checked_value_dtype(np.dtype("float32")).name
    'float32'
    """
    if dtype in _SUPPORTED:  # which holds native byte orders only
        return dtype
    if not dtype.isnative and dtype.newbyteorder("=") in _SUPPORTED:
        hint = "convert it with .astype(array.dtype.newbyteorder('='))"
        raise TensorTypeError(f"{what} has dtype {dtype}, of foreign byte order", hint=hint)
    names = ", ".join(supported.name for supported in VALUE_TYPES)
    raise TensorTypeError(f"{what} has dtype {dtype}, which is not supported", hint=f"use {names}")


def zero_of(dtype: np.dtype[Any]) -> Any:
    """Return the zero of a supported dtype.

    >>> zero_of(np.dtype("uint8"))
    np.uint8(0)
    """
    return _ZEROS[dtype]


def fill_scalar(fill_value: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``fill_value`` as a NumPy scalar of ``dtype``, bits kept where the type is the same.

    Raises ``TensorTypeError`` for what is no number, ``ValueError`` for one that ``dtype`` cannot
    hold (a fraction in an integer type, an overflow); rounding of floats is allowed.

    >>> fill_scalar(1, np.dtype("float32"))
    np.float32(1.0)
    """
    if type(fill_value) is int and fill_value == 0:
        return _ZEROS[dtype]
    given = np.asarray(fill_value)
    if isinstance(fill_value, int) and given.dtype == np.object_:
        raise ValueError(f"fill_value {fill_value!r} does not fit dtype {dtype}")
    if given.ndim or (given.dtype not in _SUPPORTED and given.dtype.kind not in "biufc"):
        raise TensorTypeError(f"fill_value must be a number, not {fill_value!r}")
    if given.dtype == dtype:
        return given[()]
    with np.errstate(all="ignore"):
        is_complex = given.dtype.kind == "c"
        if is_complex and dtype.kind != "c":
            raise ValueError(f"fill_value {fill_value!r} does not fit dtype {dtype}")
        cast = given.astype(dtype)
        if dtype.kind in "biu":
            fits = bool(np.isfinite(given)) and _same_integer(given, cast)
        else:
            wide = given.astype(np.complex128)
            fits = bool(np.isfinite(cast.astype(np.complex128)) or not np.isfinite(wide))
    if not fits:
        raise ValueError(f"fill_value {fill_value!r} does not fit dtype {dtype}")
    return cast[()]


def _same_integer(given: np.ndarray[Any, Any], cast: np.ndarray[Any, Any]) -> bool:
    exact = given.item() if given.dtype.kind in "biu" else float(given)
    return bool(exact == cast.item())


def is_fill(values: np.ndarray[Any, Any], fill: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the mask of values equal to ``fill``, nan being equal to nan.

    >>> is_fill(np.array([0.0, np.nan, -0.0]), np.float64(0)).tolist()
    [True, False, True]
    """
    if values.dtype.kind == "c":
        return is_fill(values.real, np.real(fill)) & is_fill(values.imag, np.imag(fill))
    if values.dtype.kind not in "biu" and fill != fill:
        return np.asarray(values != values)
    return np.asarray(values == fill)
