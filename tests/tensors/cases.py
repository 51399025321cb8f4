"""What the tests of tensors share: formats, shapes, arrays, and a slow reader of storage.

The reader walks levels by Python recursion, as the storage is described in the documentation. It
shares no code with the package, and so is a second opinion on positions and coordinates.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sparsejit.affine import evaluate
from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSC,
    DCSR,
    DIA,
    ELL,
    Batched,
    Dense,
    Format,
    LevelKind,
    SparseVector,
)
from sparsejit.tensors import VALUE_TYPES, SparseTensor

__all__ = ["MATRIX_FORMATS", "SHAPES", "TENSOR_FORMATS", "Array", "arrays", "read_storage"]

Array = np.ndarray[Any, np.dtype[Any]]

AOS = Format("(i, j) -> (i : compressed(nonunique), j : singleton)")

MATRIX_FORMATS = [
    Dense(2),
    CSR,
    CSC,
    COO(2),
    AOS,
    DCSR,
    DCSC,
    BSR(2, 3),
    BSR(1, 1),
    BSR(1, 2),
    DIA,
    ELL(9),
    CSR.with_widths(8, 16),
    DIA.with_widths(64, 8),
    ELL(9).with_widths(0, 16),
    Format("(i, j) -> (j : dense, i : dense)"),
    Format("(i, j) -> (i : batch, j : compressed)"),
    Format("(i, j) -> (i : batch, j : dense)"),
    Format("(i, j) -> (i : dense, j : loose_compressed)"),
    Format("(i, j) -> (j : loose_compressed(nonunique), i : singleton(soa))"),
    Format("(i, j) -> (i : compressed, j : dense)"),
    Format("(i, j) -> (i floordiv 2 : dense, j floordiv 2 : padded[5], i mod 2 : dense, "
           "j mod 2 : dense)"),
    Format("(i, j) -> (i mod 2 : dense, i floordiv 2 : compressed, j : compressed)"),
    Format("(i, j) -> (j - i : compressed, i : range)"),
    Format("(i, j) -> (i - j : loose_compressed, i : dense)"),
    Format("(i, j) -> (j - i : compressed, j : compressed)"),
    Format("(i, j) -> (i : compressed(nonunique, nonordered), j : singleton(nonordered, soa))"),
    Format("(i, j) -> (i : dense, j : compressed(nonunique, nonordered))"),
]  # fmt: skip

TENSOR_FORMATS = [
    Dense(3),
    COO(3),
    CSF(3),
    Batched(CSR),
    Batched(COO(2)),
    Batched(AOS),
    Batched(DCSR),
    Batched(BSR(2, 2)),
    Batched(DIA),
    Batched(ELL(9)),
    Batched(SparseVector, 2),
    Format("(i, j, k) -> (k : compressed, i : dense, j : compressed)"),
    Format("(i, j, k) -> (i : compressed(nonunique), j : singleton(soa), k : dense)"),
    Format("(i, j, k) -> (i : dense, j : compressed(nonunique), k : singleton)"),
    Format("(i, j, k) -> (i : loose_compressed, j : loose_compressed, k : compressed)"),
    Format("(b, i, j) -> (b : batch, i : loose_compressed, j : loose_compressed)"),
    Format("(i, j, k) -> (i : dense, j : padded[9], k : compressed)"),
]

SHAPES: dict[int, list[tuple[int, ...]]] = {
    2: [(3, 4), (0, 4), (4, 0), (0, 0), (1, 1), (1, 7), (5, 7), (7, 5)],
    3: [(2, 3, 4), (0, 3, 4), (3, 0, 4), (2, 3, 0), (1, 1, 1), (3, 5, 7)],
}


@st.composite
def arrays(draw: st.DrawFn, ndim: int, dtype: np.dtype[Any] | None = None) -> Array:
    """A mostly zero array of small extents, 0 and 1 among them, of any value type."""
    shape = draw(st.tuples(*[st.sampled_from((0, 1, 2, 3, 4, 5, 7))] * ndim))
    chosen = draw(st.sampled_from(VALUE_TYPES)) if dtype is None else dtype
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from((0.0, 0.2, 0.5, 1.0)))
    values = rng.integers(1, 100, shape) * (rng.random(shape) < density)
    if chosen.kind == "c":
        return (values * (1 + 2j)).astype(chosen)
    return values.astype(chosen)


def read_storage(tensor: SparseTensor) -> list[tuple[tuple[int, ...], Any]]:
    """Return (coordinates, value) of every stored entry inside the shape, in storage order."""
    fmt, shape = tensor.format, tensor.shape
    found = []
    for levels, slot in _walk(tensor, 0, (), 0, 0):
        coords = tuple(evaluate(expr, levels) for expr in fmt.lvl_to_dim.results)
        if all(0 <= c < extent for c, extent in zip(coords, shape, strict=True)):
            found.append((coords, tensor.values.reshape(-1)[slot]))
    return found


def _walk(
    tensor: SparseTensor, level: int, coords: tuple[int, ...], node: int, batch: int
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the level coordinates and the slot below ``node``, counted over all batches."""
    fmt = tensor.format
    if level == fmt.num_levels:
        yield coords, node
        return
    for coordinate, child, inner_batch in _children(tensor, level, node, batch):
        yield from _walk(tensor, level + 1, (*coords, coordinate), child, inner_batch)


def _children(
    tensor: SparseTensor, level: int, node: int, batch: int
) -> Iterator[tuple[int, int, int]]:
    """Yield coordinate, node number and batch of each child of ``node``."""
    fmt = tensor.format
    sizes = fmt.level_sizes(tensor.shape)
    num_batch = sum(lvl.type.kind is LevelKind.BATCH for lvl in fmt.levels)
    match fmt.levels[level].type.kind:
        case LevelKind.BATCH:
            for c in range(sizes[level]):
                yield c, node * sizes[level] + c, batch * sizes[level] + c
        case LevelKind.DENSE | LevelKind.RANGE:
            for c in range(sizes[level]):
                yield c, node * sizes[level] + c, batch
        case LevelKind.COMPRESSED | LevelKind.LOOSE_COMPRESSED:
            yield from _segment(tensor, level, node, batch, sizes[:num_batch])
        case LevelKind.SINGLETON:
            yield _singleton(tensor, level, node), node, batch
        case LevelKind.STRUCTURED | LevelKind.PADDED:
            crd = tensor.coordinates[level]
            assert crd is not None
            slots = fmt.levels[level].type.size[0]
            for place in range(node * slots, (node + 1) * slots):
                if (c := int(crd.reshape(-1)[place])) >= 0:
                    yield c, place, batch


def _segment(
    tensor: SparseTensor, level: int, node: int, batch: int, batch_shape: tuple[int, ...]
) -> Iterator[tuple[int, int, int]]:
    pos, crd = tensor.positions[level], tensor.coordinates[level]
    assert pos is not None
    assert crd is not None
    loose = tensor.format.levels[level].type.kind is LevelKind.LOOSE_COMPRESSED
    index = np.unravel_index(batch, batch_shape) if batch_shape else ()
    local = node - batch * (pos[index].shape[0] - (0 if loose else 1))
    low, high = pos[index][local] if loose else pos[index][local : local + 2]
    stored = crd[index]
    for place in range(low, high):
        c = stored[place, 0] if stored.ndim == 2 else stored[place]
        yield int(c), batch * len(stored) + place, batch


def _singleton(tensor: SparseTensor, level: int, node: int) -> int:
    own = tensor.coordinates[level]
    if own is not None:
        return int(own.reshape(-1)[node])
    start = level
    while tensor.format.levels[start].type.kind is LevelKind.SINGLETON:
        start -= 1
    together = tensor.coordinates[start]
    assert together is not None
    return int(together.reshape(-1, together.shape[-1])[node, level - start])
