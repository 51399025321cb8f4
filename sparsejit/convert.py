"""Conversion between formats by compiled kernels, and when a kernel is worth compiling.

In: a ``SparseTensor`` and a format. Out: the same tensor in that format. A conversion is a tensor
function of one ``Convert``, lowered like any other; its kernels are kept by formats and dtype.
Where its loops would sort entries, and those over other formats would not, it goes by these.
``sparsejit`` installs ``converted`` as what ``SparseTensor.convert`` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, dims_of
from sparsejit.backends import BACKENDS, Kernel
from sparsejit.errors import UnsupportedError
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.fold import constant, numpy_dtype
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import LoopFunc, Sort
from sparsejit.ir.types import DType
from sparsejit.pipeline import default_pipeline
from sparsejit.tensors import (
    Operand,
    SparseTensor,
    canonical_format,
    concrete,
    convert_in_numpy,
    describe,
    drops_fill,
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
    if not _may_have_kernel(host.format, format):
        return convert_in_numpy(host, format)
    operand = _operand(host)
    pair = _pair(operand, format)
    if pair not in _known:
        seen = _seen.get(pair, 0) + host.values.size
        if seen <= WORTH_COMPILING:
            _seen[pair] = seen
            return convert_in_numpy(host, format)
        if not has_kernel(host.format, format):
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
    """Whether a conversion is lowered to loops.

    Not where batch levels keep it from that: batches of a target have arrays of one length, which
    is known after all entries were counted, and of a source, loops cannot tell where the used slots
    of padded rows end. Nor where a source or target keeps the coordinates of several levels in one
    array and has levels below these. Nor where the stage refuses, as it does for some formats with
    diagonals in an order of their own.

    >>> from sparsejit.formats import CSR, Batched, Dense
    >>> has_kernel(Dense(3), Batched(CSR)), has_kernel(Batched(CSR), Dense(3))
    (False, True)
    """
    return _may_have_kernel(source, target) and _is_lowered(source, target)


def _may_have_kernel(source: Format, target: Format) -> bool:
    into, out_of = ({lvl.type.kind for lvl in fmt.levels} for fmt in (target, source))
    stuck = {LevelKind.BATCH, LevelKind.PADDED} <= out_of
    inside = _has_struct_inside(source) or _has_struct_inside(target)
    return source.ndim > 0 and LevelKind.BATCH not in into and not (stuck or inside)


def _has_struct_inside(fmt: Format) -> bool:
    ends = [(lvl.type, after.type.kind) for lvl, after in pairwise(fmt.levels)]
    singleton = LevelKind.SINGLETON
    return any(one.kind is singleton and not one.soa and other is not singleton
               for one, other in ends)  # fmt: skip


@lru_cache(maxsize=1024)
def _is_lowered(source: Format, target: Format) -> bool:
    formats = (canonical_format(fmt) for fmt in (source, target))
    wide = [fmt if fmt.is_all_full else fmt.with_widths(64, 64) for fmt in formats]
    try:
        _loops(_Pair(wide[0], wide[1], "float64", bytes(8)))
    except UnsupportedError:
        return False
    return True


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
    arrays: Sequence[Any] = _buffers(operand)
    route = _route(pair, operand.shape, operand.values.size)
    _known.add(pair)
    try:
        for step in route:
            arrays = _kernel(step)([*operand.shape, *arrays])
    except ValueError:
        # A level has too few slots: NumPy's way says for which entry.
        return convert_in_numpy(host, target)
    structure, values = split_buffers(pair.target, operand.shape, arrays)
    return trusted_tensor(*fitted(structure, values.reshape(-1), target), host.fill_value)


def _buffers(operand: Operand) -> tuple[Any, ...]:
    if operand.is_dense:
        return (operand.values.reshape(operand.shape),)
    return operand.buffers


def _route(pair: _Pair, shape: Sequence[int], slots: int) -> tuple[_Pair, ...]:
    """Return the steps of a conversion: several where these sort nothing and no extent forbids it.

    Each format on the way has one dense level, which must not be much longer than the entries.
    """
    between = _between(pair) or ()
    dense = [dim for fmt in between for dim in dims_of(fmt.levels[0].expr)]
    if any(shape[dim] > 4 * slots + 1024 for dim in dense):
        return (pair,)
    formats = (pair.source, *between, pair.target)
    return tuple(replace(pair, source=one, target=other) for one, other in pairwise(formats))


@lru_cache(maxsize=1024)
def _between(pair: _Pair, depth: int = 2) -> tuple[Format, ...] | None:
    """Return at most ``depth`` formats to go by so that no step sorts, None where there are none.

    There are none on the way of a conversion that sorts nothing anyway.
    """
    if not _sorts(pair):
        return ()
    drops = drops_fill(pair.source, pair.target)
    for fmt in _dense_first(pair.target) if depth else ():
        first, rest = replace(pair, target=fmt), replace(pair, source=fmt)
        if fmt == pair.source or drops_fill(pair.source, fmt) != drops or _sorts(first):
            continue
        others = _between(rest, depth - 1)
        if others is not None:
            return (fmt, *others)
    return None


def _dense_first(target: Format) -> Iterator[Format]:
    """Yield formats of one dense level and the other dimensions compressed, in one run.

    The first has the order of ``target``, the second begins with its second dimension: blocks are
    put together from that one.
    """
    exprs = [dims_of(level.expr) for level in target.levels]
    if target.ndim < 2 or any(len(dims) != 1 for dims in exprs):
        return
    order = list(dict.fromkeys(dim for dims in exprs for dim in dims))
    run = target.ndim > 2
    kinds = [LevelType(LevelKind.DENSE), LevelType(LevelKind.COMPRESSED, nonunique=run)]
    for number in range(2, target.ndim):
        last = number == target.ndim - 1
        kinds.append(LevelType(LevelKind.SINGLETON, nonunique=not last, soa=True))
    for dims in (order, [order[1], order[0], *order[2:]]):
        levels = tuple(Level(Dim(dim), kind) for dim, kind in zip(dims, kinds, strict=True))
        yield Format.of(target.ndim, levels, target.pos_width, target.crd_width)


def _sorts(pair: _Pair) -> bool:
    return any(isinstance(stmt, Sort) for stmt in all_statements(_loops(pair).body))


_known: set[_Pair] = set()  # pairs whose kernels were compiled: a view of the cache of ``_kernel``


@lru_cache(maxsize=1024)
def _kernel(pair: _Pair) -> Kernel:
    backend = BACKENDS["llvm"]
    return backend.load(backend.emit(_loops(pair)))


@lru_cache(maxsize=1024)
def _loops(pair: _Pair) -> LoopFunc:
    return loops_of(pair.source, pair.target, pair.dtype, pair.fill)


def loops_of(source: Format, target: Format, dtype: str, fill: bytes) -> LoopFunc:
    """Return the loops of a conversion between formats with concrete index widths.

    ``fill`` are the bytes of the fill value, which thus is compared bit by bit.
    """
    kind = DType(dtype)
    builder = TensorBuilder("convert")
    extents = tuple(f"n{dim}" for dim in range(source.ndim))
    scalar = np.frombuffer(fill, numpy_dtype(kind))[0]
    tensor = builder.param("A", extents, kind, source, constant(scalar, kind))
    return default_pipeline().run(builder.finish(builder.convert(tensor, target)))
