"""Facts: what a stage decided and why, as data that ``explain`` prints."""

from __future__ import annotations

from enum import Enum

from sparsejit._dataclasses import dataclass

__all__ = ["Fact", "FactKind"]


class FactKind(Enum):
    """What a fact is about."""

    LOOP = "loop"
    """Which loop of an operation a loop of the function is: a name for texts, not a decision."""
    LOOP_ORDER = "loop order"
    ITERATION = "iteration"
    STORAGE = "storage"
    COPY = "copy"
    CONVERSION = "conversion"
    LIBRARY = "library"
    """Why no library computes an operation."""
    LIBRARY_CALL = "library call"
    REWRITE = "rewrite"
    SHAPE = "shape"
    FUSION = "fusion"
    USER_FUNCTION = "user function"
    CODE = "code"
    THREADS = "threads"
    SCHEDULE = "schedule"

    def __repr__(self) -> str:
        return f"FactKind.{self.name}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence about ``subject`` (the name of a value or operation)."""

    kind: FactKind
    subject: str
    text: str
