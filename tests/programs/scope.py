"""What is known of the names of a program at its end: the ground that statements are drawn on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Scope", "Shape"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The shapes and dtypes of names; which may be sparse; and of which the pattern is known.

    A Python number has no dtype: "".
    """

    shapes: dict[str, Shape]
    dtypes: dict[str, str]
    sparse: frozenset[str]
    patterns: frozenset[str]
