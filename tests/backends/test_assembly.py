"""``Assemble`` for every kind of format: the storage holds the entries and nothing else.

The check reads the storage back by the meaning of its levels, independently of how it was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsejit.backends import BACKENDS
from sparsejit.backends.python_source import emit_python
from sparsejit.errors import UnsupportedError
from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSR,
    DIA,
    ELL,
    NV24,
    Batched,
    Dense,
    Format,
    LevelKind,
    LevelType,
    SparseVector,
)
from sparsejit.ir.types import DType
from tests.backends.loop_writing import memref, run
from tests.backends.test_python_source import assemble, targets_of

Entries = dict[tuple[int, ...], float]
Slots = dict[tuple[int, ...], int]

FORMATS = [
    SparseVector,
    Dense(2),
    CSR,
    CSC,
    DCSR,
    COO(1),
    COO(2),
    COO(4),
    CSF(3),
    BSR(2, 3),
    ELL(3),
    NV24,
    DIA,
    Batched(CSR),
    Format("(i, j) -> (i : compressed(nonunique), j : singleton)"),
    Format("(i, j, k) -> (i : dense, j : compressed(nonunique), k : singleton)"),
    Format("(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique), k : singleton)"),
    Format("(i, j) -> (i : dense, j : loose_compressed)"),
    Format("(i, j, k) -> (i : loose_compressed, j : dense, k : loose_compressed)"),
    Format("(i, j) -> (i : compressed, j floordiv 4 : compressed, j mod 4 : structured[1, 4])"),
    Format("(i, j) -> (i : compressed, j : padded[2])"),
    Format("(i, j, k) -> (i : compressed(nonunique), j : singleton(soa), k : dense)"),
    Format("(i, j, k) -> (i : compressed(nonunique), j : singleton(soa), k : padded[2])"),
    Format("(i, j, k) -> (i : dense, j : padded[2], k : compressed)"),
    Format("(i, j, k) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4], "
           "k : compressed)"),
    Format("(i, j) -> (i : dense, j floordiv 2 : loose_compressed, j mod 2 : dense)"),
]  # fmt: skip


def _children(
    level: LevelType, slot: int, size: int, positions: Any, column: Any
) -> list[tuple[int, int]]:
    """The coordinates below a slot of the level above, and their slots."""
    match level.kind:
        case LevelKind.DENSE | LevelKind.BATCH | LevelKind.RANGE:
            return [(crd, slot * size + crd) for crd in range(size)]
        case LevelKind.COMPRESSED:
            own = range(positions[slot], positions[slot + 1])
        case LevelKind.LOOSE_COMPRESSED:
            own = range(*positions[slot])
        case LevelKind.SINGLETON:
            own = range(slot, slot + 1)
        case LevelKind.STRUCTURED | LevelKind.PADDED:
            own = range(slot * level.size[0], (slot + 1) * level.size[0])
    return [(int(column[place]), place) for place in own if column[place] >= 0]


def read_back(fmt: Format, sizes: tuple[int, ...], buffers: list[Any]) -> Slots:
    """Each level coordinate that owns a slot, and the slot."""
    queue = list(buffers[:-1])
    slots: list[tuple[tuple[int, ...], int]] = [((), 0)]
    columns: list[Any] = []
    for number, level in enumerate(fmt.levels):
        positions = queue.pop(0) if level.type.has_positions else None
        if level.type.has_coordinates and not columns:
            in_struct = fmt.is_aos and fmt.coo_start == number
            columns = list(queue.pop(0).T) if in_struct else [queue.pop(0)]
        column = columns.pop(0) if level.type.has_coordinates else None
        slots = [
            ((*crd, child), own)
            for crd, slot in slots
            for child, own in _children(level.type, slot, sizes[number], positions, column)
        ]
    assert not queue
    found = dict(slots)
    assert len(found) == len(slots), "a coordinate has two slots"
    assert list(found) == sorted(found), "the coordinates are not in order"
    return found


def check(backend: str, fmt: Format, sizes: tuple[int, ...], entries: Entries) -> None:
    crds = np.array(sorted(entries), np.int64).reshape(len(entries), len(sizes))
    values = np.array([entries[tuple(crd)] for crd in crds.tolist()], np.float64)
    func = assemble(fmt, targets_of(fmt))
    columns = [np.ascontiguousarray(column) for column in crds.T]
    padded = [np.append(column, 99) for column in columns]  # arrays may be longer than count
    buffers = list(run(backend, func, *sizes, len(entries), *padded, np.append(values, np.nan)))
    found = read_back(fmt, sizes, buffers)
    owned = {found[crd] for crd in entries}
    for crd, value in entries.items():
        assert buffers[-1][found[crd]] == value
    for slot, value in enumerate(buffers[-1]):
        assert slot in owned or value == -1.0
    if not any(level.type.is_full or level.type.size for level in fmt.levels):
        assert len(found) == len(entries)


def limits(fmt: Format, entries: Entries) -> Entries:
    """The entries without those that structured and padded levels have no room for."""
    kept: Entries = {}
    used: dict[tuple[int, ...], set[int]] = {}
    for crd, value in sorted(entries.items()):
        full = False
        for number, level in enumerate(fmt.levels):
            if level.type.size:
                taken = used.get(crd[:number], set())
                full |= crd[number] not in taken and len(taken) >= level.type.size[0]
        if full:
            continue
        for number, level in enumerate(fmt.levels):
            if level.type.size:
                used.setdefault(crd[:number], set()).add(crd[number])
        kept[crd] = value
    return kept


@st.composite
def problems(draw: st.DrawFn) -> tuple[Format, tuple[int, ...], Entries]:
    fmt = draw(st.sampled_from(FORMATS))
    shape = tuple(draw(st.integers(0, 7)) for _ in range(fmt.ndim))
    sizes = fmt.level_sizes(shape)
    crd = st.tuples(*(st.integers(0, size - 1) if size else st.nothing() for size in sizes))
    number = st.integers(0, 9).map(float)
    entries = draw(st.dictionaries(crd, number, max_size=12)) if all(sizes) else {}
    return fmt, sizes, limits(fmt, entries)


@given(problems())
def test_storage_holds_the_entries(problem: tuple[Format, tuple[int, ...], Entries]) -> None:
    check("interpreter", *problem)


@pytest.mark.parametrize("fmt", [CSR, COO(2), BSR(2, 2), NV24, FORMATS[14], FORMATS[17]], ids=str)
def test_storage_by_numba(fmt: Format) -> None:
    sizes = fmt.level_sizes((5, 8))
    rng = np.random.default_rng(3)
    crds = {tuple(int(rng.integers(0, size)) for size in sizes) for _ in range(15)}
    entries = {crd: float(number) for number, crd in enumerate(sorted(crds))}
    check("numba", fmt, sizes, limits(fmt, entries))
    check("numba", fmt, sizes, {})


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_storage_by_llvm(fmt: Format) -> None:
    sizes = fmt.level_sizes((5, 8, 3, 4)[: fmt.ndim])
    rng = np.random.default_rng(5)
    crds = {tuple(int(rng.integers(0, size)) for size in sizes) for _ in range(25)}
    entries = {crd: float(number) for number, crd in enumerate(sorted(crds))}
    check("llvm", fmt, sizes, limits(fmt, entries))
    check("llvm", fmt, sizes, {})


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize(
    ("fmt", "sizes", "message"),
    [
        (ELL(1), (2, 4), "a row of a padded level has more entries than slots"),
        (
            Format("(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[1, 4])"),
            (2, 1, 4),
            "a block of a structured level has more entries than slots",
        ),
    ],
    ids=["padded", "structured"],
)
def test_more_entries_than_slots_are_refused(
    backend: str, fmt: Format, sizes: tuple[int, ...], message: str
) -> None:
    lead = (0,) * (len(sizes) - 1)
    with pytest.raises(ValueError, match=message):
        check(backend, fmt, sizes, {(*lead, 1): 1.0, (*lead, 2): 2.0})


def test_targets_that_do_not_fit_the_format_are_refused() -> None:
    wrong = (memref("A_pos1", DType.INT32, 2), *targets_of(CSR)[1:])
    with pytest.raises(UnsupportedError, match=r"has arrays of ranks \[1, 1, 1\], not \[2, 1, 1\]"):
        emit_python(assemble(CSR, wrong))
