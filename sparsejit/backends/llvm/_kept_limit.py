"""How much memory may be kept for the next who asks: a share of what the process may have.

In: ``SPARSEJIT_KEPT_MEMORY``, in megabytes, or else what the system and control groups say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from sparsejit.backends.llvm._control_groups import ControlGroups

__all__ = ["kept_limit"]

_SHARE = 8
"""Of the memory there is, one part in so many may be kept."""


def kept_limit(groups: ControlGroups | None = None) -> int:
    """Return how many bytes may be kept: what is asked for, else an eighth of what there may be."""
    asked = os.environ.get("SPARSEJIT_KEPT_MEMORY", "")
    if asked.isdecimal():
        return int(asked) << 20
    return min(_memory_limits(groups or ControlGroups()), default=0) // _SHARE


def _memory_limits(groups: ControlGroups) -> Iterator[int]:
    """The memory of the machine, and the limits of control groups."""
    try:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return  # a system that does not say
    for words in groups.words("memory", "memory.max", "memory.limit_in_bytes"):
        yield from (int(word) for word in words if word.isdecimal())
