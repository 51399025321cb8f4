"""The formats that have a name. A name is only a spelling: equal maps are one format."""

from __future__ import annotations

from sparsejit.affine import Dim, substitute
from sparsejit.formats._format import Format
from sparsejit.formats._levels import Level, LevelKind, LevelType

__all__ = [
    "BSR",
    "COO",
    "CSC",
    "CSF",
    "CSR",
    "DCSC",
    "DCSR",
    "DIA",
    "ELL",
    "NV24",
    "Batched",
    "Dense",
    "SparseVector",
]


def _plain(ndim: int, order: tuple[int, ...], types: tuple[LevelType, ...]) -> Format:
    levels = tuple(Level(Dim(d), level) for d, level in zip(order, types, strict=True))
    return Format.of(ndim, levels)


_DENSE = LevelType(LevelKind.DENSE)
_COMPRESSED = LevelType(LevelKind.COMPRESSED)

CSR = _plain(2, (0, 1), (_DENSE, _COMPRESSED))
CSC = _plain(2, (1, 0), (_DENSE, _COMPRESSED))
DCSR = _plain(2, (0, 1), (_COMPRESSED, _COMPRESSED))
DCSC = _plain(2, (1, 0), (_COMPRESSED, _COMPRESSED))
SparseVector = _plain(1, (0,), (_COMPRESSED,))
DIA = Format("(i, j) -> (j - i : compressed, j : range)")
NV24 = Format("(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])")


def _rank(n: object, name: str, least: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < least:
        raise ValueError(f"{name} needs an integer of at least {least}, not {n!r}")
    return n


def Dense(n: int) -> Format:
    """Return the format of a plain dense tensor of rank ``n``.

    >>> Dense(2).is_dense
    True
    """
    rank = _rank(n, "Dense(n)", 0)
    return _plain(rank, tuple(range(rank)), (_DENSE,) * rank)


def COO(n: int) -> Format:
    """Return coordinate format of rank ``n`` in SciPy's layout: one array per dimension.

    >>> print(COO(2))
    (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa))
    """
    rank = _rank(n, "COO(n)", 1)
    first = LevelType(LevelKind.COMPRESSED, nonunique=rank > 1)
    middle = LevelType(LevelKind.SINGLETON, nonunique=True, soa=True)
    last = LevelType(LevelKind.SINGLETON, soa=True)
    types = (first, *(middle,) * (rank - 2), last)[:rank]
    return _plain(rank, tuple(range(rank)), types)


def CSF(n: int) -> Format:
    """Return compressed sparse fiber format: all ``n`` levels compressed.

    >>> CSF(2) == DCSR
    True
    """
    rank = _rank(n, "CSF(n)", 1)
    return _plain(rank, tuple(range(rank)), (_COMPRESSED,) * rank)


def BSR(r: int, c: int) -> Format:
    """Return block compressed rows with dense blocks of ``r`` by ``c``.

    >>> BSR(2, 2).num_levels
    4
    """
    rows, columns = _rank(r, "BSR(r, c)", 1), _rank(c, "BSR(r, c)", 1)
    return Format(
        f"(i, j) -> (i floordiv {rows} : dense, j floordiv {columns} : compressed, "
        f"i mod {rows} : dense, j mod {columns} : dense)"
    )


def ELL(k: int) -> Format:
    """Return ELL: ``k`` slots a row; unused slots have coordinate -1 and are no entries.

    >>> print(ELL(3))
    (d0, d1) -> (d0 : dense, d1 : padded[3])
    """
    return Format(f"(i, j) -> (i : dense, j : padded[{_rank(k, 'ELL(k)', 1)}])")


def Batched(fmt: Format, n: int = 1) -> Format:
    """Return ``fmt`` with ``n`` batch dimensions in front, each batch with positions of its own.

    >>> print(Batched(CSR))
    (d0, d1, d2) -> (d0 : batch, d1 : dense, d2 : compressed)
    """
    count = _rank(n, "Batched(fmt, n)", 1)
    shift = {d: Dim(d + count) for d in range(fmt.ndim)}
    batch = tuple(Level(Dim(d), LevelType(LevelKind.BATCH)) for d in range(count))
    moved = tuple(Level(substitute(lvl.expr, shift), lvl.type) for lvl in fmt.levels)
    return Format.of(fmt.ndim + count, batch + moved, fmt.pos_width, fmt.crd_width)
