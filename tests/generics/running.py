"""Run a drawn operation through the stage and the interpreter, and compare with the reference.

In: a ``Drawn``. Out: an ``Outcome``; a difference is an ``AssertionError``.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, cast

import numpy as np

from sparsejit.affine import evaluate
from sparsejit.backends import BACKENDS
from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir.loops import DenseResult, SparseResult
from sparsejit.ir.tensor import Generic
from sparsejit.ir.types import IteratorType
from sparsejit.reference import Masked, dense_masked, evaluate_reference
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from sparsejit.tensors import SparseTensor, from_dense, split_buffers
from tests.generics.drawing import Drawn

__all__ = ["Outcome", "run_drawn"]

Array = np.ndarray[Any, np.dtype[Any]]


class Outcome(Enum):
    """``FULL``: more entries than a structured or padded result has slots, refused as it must."""

    RIGHT = "right"
    UNSUPPORTED = "unsupported"
    FULL = "full"


def _mask(tensor: SparseTensor) -> Array:
    ones = SparseTensor(
        tensor.format, tensor.shape, tensor.positions, tensor.coordinates,
        np.ones_like(tensor.values), 0.0,
    )  # fmt: skip
    stored: Array = ones.to_numpy() != 0
    return stored


def _operands(drawn: Drawn) -> tuple[list[Any], list[Masked]]:
    """Return the flat arguments of the kernel, and those of the reference."""
    flat: list[Any] = list(drawn.symbols)
    masked: list[Masked] = []
    for param, array in zip(drawn.func.params, drawn.arrays, strict=True):
        fmt = param.type.format
        if fmt.is_dense:
            flat.append(array if array.ndim else float(array))
            masked.append(dense_masked(array))
            continue
        tensor = from_dense(array, fmt.with_widths(64, 64))
        for positions, coordinates in zip(tensor.positions, tensor.coordinates, strict=True):
            flat += [buffer for buffer in (positions, coordinates) if buffer is not None]
        flat.append(tensor.values)
        masked.append(Masked(array, _mask(tensor)))
    return flat, masked


def run_drawn(drawn: Drawn, backend: str = "interpreter") -> Outcome:
    """Lower, run and compare values, storage and stored mask."""
    flat, masked = _operands(drawn)
    wanted = evaluate_reference(drawn.func, masked, drawn.symbols)[0]
    storage = cast(Literal["inline", "runtime"], drawn.storage)
    try:
        loops = sparsify_and_bufferize(drawn.func, StageOptions(storage=storage))
    except UnsupportedError:
        return Outcome.UNSUPPORTED
    executor = BACKENDS[backend]
    try:
        buffers: list[Any] = list(executor.load(executor.emit(loops))(flat))
    except ValueError as error:
        if "more entries than slots" in str(error):
            return Outcome.FULL
        raise
    (result,) = loops.results
    if isinstance(result, DenseResult):
        np.testing.assert_allclose(np.asarray(buffers[0]), wanted.values, rtol=1e-12, atol=1e-12)
    else:
        assert isinstance(result, SparseResult)
        _check_sparse(result, buffers, drawn, wanted)
    return Outcome.RIGHT


def _check_sparse(
    result: SparseResult, buffers: Sequence[Any], drawn: Drawn, wanted: Masked
) -> None:
    shape = tuple(evaluate(extent, drawn.symbols) for extent in result.shape)
    structure, values = split_buffers(result.format, shape, buffers)
    tensor = SparseTensor(
        result.format, shape, structure.positions, structure.coordinates, values,
        result.fill.value,
    )  # fmt: skip
    np.testing.assert_allclose(tensor.to_numpy(), wanted.values, rtol=1e-12, atol=1e-12)
    if _reduces_nothing(drawn):
        return
    if any(level.type.kind is LevelKind.STRUCTURED for level in result.format.levels):
        assert not (wanted.stored & ~_mask(tensor)).any()  # unused slots are entries too
    else:
        np.testing.assert_array_equal(_mask(tensor), wanted.stored)


def _reduces_nothing(drawn: Drawn) -> bool:
    """Whether a reduction loop is empty: then what is stored is not defined by its entries."""
    op = drawn.func.ops[-1]
    return isinstance(op, Generic) and any(
        kind is IteratorType.REDUCTION and evaluate(extent, drawn.symbols) == 0
        for kind, extent in zip(op.iterator_types, op.extents, strict=True)
    )
