"""Conversion between formats by compiled kernels, and when a kernel is worth compiling.

In: a ``SparseTensor`` and a format. Out: the same tensor in that format. A conversion is a tensor
function of one ``Convert``, lowered like any other; its kernels are kept by formats and dtype.
``sparsejit`` installs ``converted`` as what ``SparseTensor.convert`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from sparsejit.backends import Kernel, LlvmBackend
from sparsejit.formats import Format, LevelKind
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.fold import constant
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.types import DType
from sparsejit.pipeline import default_pipeline
from sparsejit.tensors import (
    Operand,
    SparseTensor,
    canonical_format,
    concrete,
    convert_in_numpy,
    describe,
    fitted,
    host_tensor,
    split_buffers,
    trusted_tensor,
)

__all__ = ["WORTH_COMPILING", "converted", "converted_by_kernel", "has_kernel", "loops_of"]

WORTH_COMPILING = 200_000
"""Slots: what one pair of formats converts in NumPy before a kernel is compiled for it."""

_LARGEST = int(np.iinfo(np.int32).max)
_seen: dict[_Pair, int] = {}  # slots converted in NumPy so far; a cache of how often a pair comes


@dataclass(frozen=True, slots=True)
class _Pair:
    """What a kernel depends on: formats with concrete index widths, dtype, bits of the fill."""

    source: Format
    target: Format
    dtype: str
    fill: bytes


def converted(tensor: SparseTensor, format: Format) -> SparseTensor:
    """Return ``tensor`` in another format of the same rank.

    A kernel does it where one can (``has_kernel``) and pays: it is compiled once the slots that
    were converted between these two formats, this tensor's included, are more than
    ``WORTH_COMPILING``; from then on it converts tensors of every size. Before that, and for
    formats without a kernel, NumPy does it, through coordinates. Both store the same entries.
    Raises ``ValueError`` where the format cannot hold the entries.

    >>> from sparsejit.formats import CSC, CSR
    >>> from sparsejit.tensors import asarray
    >>> converted(asarray(np.eye(3), CSR), CSC).nse
    3
    """
    host = host_tensor(tensor)
    if not has_kernel(host.format, format):
        return convert_in_numpy(host, format)
    operand = _operand(host)
    pair = _pair(operand, format)
    if pair not in _known:
        seen = _seen.get(pair, 0) + host.values.size
        if seen <= WORTH_COMPILING:
            _seen[pair] = seen
            return convert_in_numpy(host, format)
    return _run(operand, pair, host, format)


def converted_by_kernel(tensor: SparseTensor, format: Format) -> SparseTensor:
    """Return ``tensor`` in another format, by a kernel whatever its size.

    Formats must be such that ``has_kernel``. Raises ``ValueError`` as ``converted`` does.
    """
    host = host_tensor(tensor)
    operand = _operand(host)
    return _run(operand, _pair(operand, format), host, format)


def has_kernel(source: Format, target: Format) -> bool:
    """Whether a conversion is lowered to loops: where batch levels do not keep it from that.

    Batches of a target have arrays of one length, which is known after all entries were counted;
    of a source, loops cannot tell where the used slots of padded rows end.

    >>> from sparsejit.formats import CSR, Batched, Dense
    >>> has_kernel(Dense(3), Batched(CSR)), has_kernel(Batched(CSR), Dense(3))
    (False, True)
    """
    into, out_of = ({lvl.type.kind for lvl in fmt.levels} for fmt in (target, source))
    stuck = {LevelKind.BATCH, LevelKind.PADDED} <= out_of
    return source.ndim > 0 and LevelKind.BATCH not in into and not stuck


def _operand(host: SparseTensor) -> Operand:
    return concrete(describe(host))


def _pair(operand: Operand, target: Format) -> _Pair:
    width = _width(operand, target)
    wanted = canonical_format(target)
    if not wanted.is_all_full:
        wanted = wanted.with_widths(width, width)
    fill = np.asarray(operand.fill_value, operand.dtype)
    return _Pair(operand.format, wanted, operand.dtype.name, fill.tobytes())


def _width(operand: Operand, target: Format) -> int:
    """Return an index width that is surely enough; ``fitted`` chooses the final one."""
    sizes = target.level_sizes(operand.shape)
    last = max((n for n, lvl in enumerate(target.levels) if not lvl.type.is_full), default=-1)
    slots = prod(lvl.type.size[0] for lvl in target.levels if lvl.type.size)
    bound = operand.values.size * slots * prod(sizes[last + 1 :])
    return 32 if max(bound, *operand.shape, *sizes) <= _LARGEST else 64


def _run(operand: Operand, pair: _Pair, host: SparseTensor, target: Format) -> SparseTensor:
    kernel = _kernel(pair)
    _known.add(pair)
    try:
        made = kernel([*operand.shape, *_buffers(operand)])
    except ValueError:
        # A level has too few slots: NumPy's way says for which entry.
        return convert_in_numpy(host, target)
    arrays: Sequence[Any] = made
    structure, values = split_buffers(pair.target, operand.shape, arrays)
    return trusted_tensor(*fitted(structure, values.reshape(-1), target), host.fill_value)


def _buffers(operand: Operand) -> tuple[Any, ...]:
    if operand.is_dense:
        return (operand.values.reshape(operand.shape),)
    return operand.buffers


_known: set[_Pair] = set()  # pairs whose kernel was compiled: a view of the cache of ``_kernel``


@lru_cache(maxsize=1024)
def _kernel(pair: _Pair) -> Kernel:
    backend = LlvmBackend()
    return backend.load(backend.emit(loops_of(pair.source, pair.target, pair.dtype, pair.fill)))


def loops_of(source: Format, target: Format, dtype: str, fill: bytes) -> LoopFunc:
    """Return the loops that convert between formats with concrete index widths."""
    kind = DType(dtype)
    builder = TensorBuilder("convert")
    extents = tuple(f"n{dim}" for dim in range(source.ndim))
    scalar = np.frombuffer(fill, np.dtype(dtype))[0]
    tensor = builder.param("A", extents, kind, source, constant(scalar, kind))
    return default_pipeline().run(builder.finish(builder.convert(tensor, target)))
