"""From the objects a kernel is called with to what generated code takes, and back.

16-bit floats travel as views of their bits; extents and scalars become exactly their dtype. Nothing
is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.errors import TensorTypeError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loop_walk import result_memrefs
from sparsejit.ir.loops import LoopFunc, Memref, Var
from sparsejit.ir.types import DType

__all__ = ["Signature", "signature_of"]

_HALVES = frozenset((DType.FLOAT16, DType.BFLOAT16))


@dataclass(frozen=True, slots=True)
class Signature:
    """How to convert the arguments of a kernel one by one, and the dtypes of its results."""

    converters: tuple[Callable[[Any], Any], ...]
    result_dtypes: tuple[np.dtype[Any], ...]
    has_half_results: bool

    def numpy_arguments(self, arguments: Sequence[object]) -> list[Any]:
        """Return the arguments as arrays without 16-bit floats, and NumPy scalars.

        Raises ``TensorTypeError`` for an array of another dtype or rank than its parameter.
        """
        if len(arguments) != len(self.converters):
            raise TensorTypeError(
                f"the kernel takes {len(self.converters)} arguments, not {len(arguments)}"
            )
        return [
            convert(argument) for convert, argument in zip(self.converters, arguments, strict=True)
        ]

    def results(self, results: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        """Return the result arrays with the dtypes they stand for."""
        if not self.has_half_results:
            return results
        pairs = zip(results, self.result_dtypes, strict=True)
        return tuple(array.view(dtype) for array, dtype in pairs)


def signature_of(func: LoopFunc) -> Signature:
    """Return the signature of a kernel of ``func``."""
    dtypes = [memref.dtype for memref in result_memrefs(func)]
    has_half = any(dtype in _HALVES for dtype in dtypes)
    converters = tuple(map(_converter, func.params))
    return Signature(converters, tuple(map(numpy_dtype, dtypes)), has_half)


def _converter(param: Memref | Var) -> Callable[[Any], Any]:
    is_half = param.dtype in _HALVES
    dtype = numpy_dtype(param.dtype)
    ndarray, bits = np.ndarray, np.uint16
    match param:
        case Var():
            scalar = dtype.type
            return (lambda value: scalar(value).view(bits)) if is_half else scalar
        case Memref(name, _, rank, _):

            def refused(argument: Any) -> TensorTypeError:
                if not isinstance(argument, np.ndarray):
                    kind = type(argument).__name__
                    return TensorTypeError(f"'{name}' must be an array, not of type {kind}")
                return TensorTypeError(
                    f"'{name}' must be an array of {dtype} and rank {rank}, "
                    f"not of {argument.dtype} and rank {argument.ndim}"
                )

            def checked(argument: Any) -> Any:
                if type(argument) is ndarray and argument.dtype is dtype:  # nearly all calls
                    fits = argument.ndim == rank
                else:
                    fits = isinstance(argument, ndarray) and (argument.dtype, argument.ndim) == (
                        dtype,
                        rank,
                    )
                if not fits:
                    raise refused(argument)
                return argument.view(bits) if is_half else argument

            return checked
        case _:
            assert_never(param)
