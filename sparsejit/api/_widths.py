"""Index widths of results: 32 bits where all is sure to fit, else 64.

In: a tensor function; at a call, the extents and how many values each operand stores. Out: the
widths. Extents say what coordinates take, what is stored says what positions take. The stored count
of a result is not known before it is computed, so an upper bound decides: the entries of each
sparse operand, times the extents of the loops that the operand does not index; of factors the least
of these, of terms the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Literal

import numpy as np

from sparsejit.affine import dims_determined_by, evaluate
from sparsejit.formats import Format
from sparsejit.ir.contraction import Tree, chains_of, leaves_of
from sparsejit.ir.contraction_order import ContractionOrder
from sparsejit.ir.simplify import Known, reduction_form, simplify_absence
from sparsejit.ir.tensor import (
    Concat,
    Convert,
    Empty,
    ExtractSlice,
    For,
    Generic,
    If,
    InsertSlice,
    Op,
    Pad,
    Reshape,
    TensorFunc,
    While,
)
from sparsejit.ir.types import IndexWidths, TensorType
from sparsejit.ir.walk import all_ops, operands_of, results_of

__all__ = ["index_widths", "leaves_width_open", "orders_widths"]

_LARGEST = int(np.iinfo(np.int32).max)


def leaves_width_open(func: TensorFunc) -> bool:
    """Whether some result of an operation is sparse in a format that names no index width."""
    return any(_is_open(value.type.format) for op in all_ops(func.ops) for value in results_of(op))


def _is_open(fmt: Format) -> bool:
    return not fmt.is_all_full and not (fmt.pos_width and fmt.crd_width)


def index_widths(func: TensorFunc, numbers: Sequence[int], stored: Sequence[int]) -> IndexWidths:
    """Return the widths for a call: ``numbers`` are the extents, ``stored`` counts the stored
    values of each parameter.

    >>> from sparsejit.formats import CSR
    >>> from sparsejit.ir.build import TensorBuilder
    >>> from sparsejit.ir.types import DType
    >>> builder = TensorBuilder("f")
    >>> A = builder.param("A", ("m", "n"), DType.FLOAT64, CSR)
    >>> func = builder.finish(builder.convert(A, CSR))
    >>> index_widths(func, (5, 2**31), (9,))
    IndexWidths(positions=32, coordinates=64)
    """
    counts = {param.name: count for param, count in zip(func.params, stored, strict=True)}
    symbols = dict(enumerate(numbers))
    most = longest = 0
    for op in func.ops:
        if isinstance(op, For | While | If):
            # How a carried tensor grows is not known; extents inside may count with the loop.
            if any(_is_open(v.type.format) for inner in all_ops((op,)) for v in results_of(inner)):
                return IndexWidths()
            counts.update(_handed_on(op, counts, symbols))
            continue
        kind = op.result.type
        if kind.is_dense:
            continue
        shape = tuple(evaluate(extent, symbols) for extent in kind.shape)
        sizes = kind.format.level_sizes(shape)
        bound = min(prod(sizes), _entries(op, counts, symbols, prod(shape)) * _block(kind, sizes))
        counts[op.result.name] = bound
        if _is_open(kind.format):
            most, longest = max(most, bound), max(longest, *shape, *sizes)
    return _widths(most, longest)


def _widths(most: int, longest: int) -> IndexWidths:
    """Return the widths where so many entries are stored at most, and no extent is longer."""
    return IndexWidths(_width(most), _width(longest))


def _width(largest: int) -> Literal[32, 64]:
    return 64 if largest > _LARGEST else 32


def _handed_on(
    op: For | While | If, counts: Mapping[str, int], symbols: Mapping[int, int]
) -> Iterator[tuple[str, int]]:
    """Yield the bounds of sparse results: those of the tensors that they may be."""
    sources = (op.then_yields, op.else_yields) if isinstance(op, If) else (op.inits, op.yields)
    for result, *values in zip(op.results, *sources, strict=True):
        if not result.type.is_dense:
            whole = prod(evaluate(extent, symbols) for extent in result.type.shape)
            yield result.name, max(counts.get(value.name, whole) for value in values)


def _block(kind: TensorType, sizes: Sequence[int]) -> int:
    """Return how many slots one entry may bring along: those of the full levels below."""
    levels = kind.format.levels
    last = max((n for n, level in enumerate(levels) if not level.type.is_full), default=-1)
    padded = prod(level.type.size[0] for level in levels if level.type.size)
    return padded * prod(sizes[last + 1 :])


def _entries(op: Op, counts: Mapping[str, int], symbols: Mapping[int, int], whole: int) -> int:
    """Return an upper bound of the entries of a sparse result, ``whole`` where none is known."""
    match op:
        case Convert() | ExtractSlice() | Reshape() | Pad() | InsertSlice() | Concat():
            return sum(whole if v.type.is_dense else counts[v.name] for v in operands_of(op))
        case Generic():
            return _generic_entries(op, counts, symbols, whole)
        case Empty():
            return 0
        case _:
            return whole


def _generic_entries(
    op: Generic, counts: Mapping[str, int], symbols: Mapping[int, int], whole: int
) -> int:
    operands = (*op.inputs, op.init)
    sparse = [k for k, value in enumerate(operands) if not value.type.is_dense]
    dtypes = [value.type.dtype for value in operands]
    absent = {k: operands[k].type.fill for k in sparse}
    if isinstance(simplify_absence(op.body, dtypes, absent), Known):
        return whole  # something is stored where no operand stores anything
    bounds: dict[int, int] = {}
    for k in sparse:
        told = dims_determined_by(op.indexing_maps[k].results)
        free = [evaluate(e, symbols) for loop, e in enumerate(op.extents) if loop not in told]
        bounds[k] = counts[operands[k].name] * prod(free)
    out = len(op.inputs)
    reduction = reduction_form(op.body, out, dtypes)
    term = op.body if reduction is None else reduction[1]
    # A factor is needed for every entry: without it there is none, whatever the others store.
    factors = [
        k
        for k in bounds
        if k != out and not isinstance(simplify_absence(term, dtypes, {k: absent[k]}), Known)
    ]
    if factors:
        return min(bounds[k] for k in factors) + bounds.get(out, 0)
    return sum(bounds.values())


def orders_widths(
    func: TensorFunc,
    orders: Sequence[ContractionOrder],
    numbers: Sequence[int],
    stored: Sequence[int],
) -> IndexWidths:
    """Return the widths for what products form on the way when computed in these orders.

    An entry of a partial product is an entry of one of its factors and a value of each further
    index, so there are at most so many.
    """
    counts = {
        param.name: count
        for param, count in zip(func.params, stored, strict=True)
        if not param.type.is_dense
    }
    chains = {chain.root.result.name: chain for chain in chains_of(func)}
    symbols = dict(enumerate(numbers))
    most = longest = 0
    for order in orders:
        chain = chains[order.result]
        extents = [evaluate(extent, symbols) for extent in chain.extents]
        for part in _partial_products(order.tree):
            leaves = [chain.leaves[number] for number in leaves_of(part)]
            indices = {index for leaf in leaves for index in leaf.index}
            bounds = [prod(extents[index] for index in indices)]
            for leaf in leaves:
                if leaf.value.name in counts:
                    others = indices.difference(leaf.index)
                    bounds.append(
                        counts[leaf.value.name] * prod(extents[index] for index in others)
                    )
            most, longest = max(most, min(bounds)), max(longest, *extents)
    return _widths(most, longest)


def _partial_products(tree: Tree, is_root: bool = True) -> Iterator[Tree]:
    if isinstance(tree, int):
        return
    if not is_root:
        yield tree
    for part in tree:
        yield from _partial_products(part, False)
