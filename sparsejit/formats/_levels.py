"""Level types: how one level of a format stores the coordinates of its children.

Source of the terms: MLIR's sparse tensor encoding (``dense`` ... ``structured``); ``range`` and
``padded`` are ours, for diagonals and ELL.
"""

from __future__ import annotations

from enum import Enum

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr

__all__ = ["Level", "LevelKind", "LevelType"]


class LevelKind(Enum):
    """How a level stores the coordinates of its children."""

    DENSE = "dense"
    BATCH = "batch"
    COMPRESSED = "compressed"
    LOOSE_COMPRESSED = "loose_compressed"
    SINGLETON = "singleton"
    STRUCTURED = "structured"
    RANGE = "range"
    PADDED = "padded"

    def __repr__(self) -> str:
        return f"LevelKind.{self.name}"


@dataclass(frozen=True, slots=True)
class LevelType:
    """The kind of a level and its properties.

    ``nonunique``: a coordinate may repeat within a parent; ``nonordered``: coordinates need not
    increase; ``soa``: a singleton's coordinates are an array of their own (COO). ``size`` holds
    ``(n, m)`` of ``structured[n, m]`` and ``(k,)`` of ``padded[k]``.

    >>> print(LevelType(LevelKind.STRUCTURED, size=(2, 4)))
    structured[2, 4]
    """

    kind: LevelKind
    nonunique: bool = False
    nonordered: bool = False
    soa: bool = False
    size: tuple[int, ...] = ()

    def __str__(self) -> str:
        size = f"[{', '.join(map(str, self.size))}]" if self.size else ""
        flags = [name for name in ("nonunique", "nonordered", "soa") if getattr(self, name)]
        return f"{self.kind.value}{size}" + (f"({', '.join(flags)})" if flags else "")

    @property
    def has_positions(self) -> bool:
        """Whether the level stores a positions array."""
        return self.kind in (LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED)

    @property
    def has_coordinates(self) -> bool:
        """Whether the level stores coordinates (of its own, or inside an array of structs)."""
        return self.kind not in (LevelKind.DENSE, LevelKind.BATCH, LevelKind.RANGE)

    @property
    def is_full(self) -> bool:
        """Whether every coordinate of the level owns a slot (dense, batch, range)."""
        return not self.has_coordinates


@dataclass(frozen=True, slots=True)
class Level:
    """One level: which expression over the dimensions it stores, and how."""

    expr: AffineExpr
    type: LevelType
