"""The pool of threads in the process: loaded once, known to generated code by its symbols.

In: nothing. Out: a process in which ``sparsejit_count`` and ``sparsejit_run`` mean something to the
code that the engine loads (see ``_pool_text``), and ``sparsejit_take`` and others, which hand out
memory (see ``_memory_text``). The pool stays until the process ends: its workers
sleep in its code. In a forked process it starts anew.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import field
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._cpu_quota import cpu_quota
from sparsejit.backends.llvm._kept_limit import kept_limit

__all__ = [
    "COUNT",
    "GIVE",
    "GROW",
    "LEAST_WORK",
    "POOL_NAMES",
    "POOL_SYMBOLS",
    "RUN",
    "TAKE",
    "TAKE_LINES",
    "Pool",
    "has_threads",
    "thread_limit",
]

COUNT, RUN = "sparsejit_count", "sparsejit_run"
TAKE, TAKE_LINES = "sparsejit_take", "sparsejit_take_lines"
GROW, GIVE = "sparsejit_grow", "sparsejit_give"
POOL_SYMBOLS = {
    COUNT: "count",
    RUN: "run",
    TAKE: "take_memory",
    TAKE_LINES: "take_lines",
    GROW: "grow_memory",
    GIVE: "give_memory",
}
"""What generated code may call, and the functions of the pool behind that."""
POOL_NAMES = (
    *POOL_SYMBOLS.values(),
    *("forget", "limit", "least", "started", "kept", "kept_limit", "drop_kept"),
    *("array_malloc", "array_calloc", "array_realloc", "array_free"),
)
"""What of the pool is used by its name."""
LEAST_WORK = 60_000
"""From how much work on (in about nanoseconds of one thread) a loop runs on several threads."""


def has_threads() -> bool:
    """Whether the pool knows this system: Linux only."""
    return sys.platform == "linux"


def thread_limit() -> int:
    """Return the most threads to use: ``SPARSEJIT_NUM_THREADS``, or as many as may be busy."""
    from sparsejit.backends.llvm._pool_text import MOST_THREADS

    asked = os.environ.get("SPARSEJIT_NUM_THREADS", "")
    wanted = int(asked) if asked.isdecimal() and int(asked) else cpu_quota()
    return min(wanted or MOST_THREADS, MOST_THREADS)


@dataclass(frozen=True, slots=True)
class Pool:
    """The loaded pool; ``owners`` keep its code."""

    addresses: dict[str, int]
    owners: tuple[Any, ...] = field(repr=False)

    def __post_init__(self) -> None:
        self.set_limits(thread_limit(), LEAST_WORK)
        self.keep_at_most(kept_limit())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def set_limits(self, threads: int, least_work: int) -> None:
        """Set the most threads to use, and the work from which on several are used."""
        ctypes.c_int64.from_address(self.addresses["limit"]).value = threads
        ctypes.c_int64.from_address(self.addresses["least"]).value = least_work

    @property
    def limits(self) -> tuple[int, int]:
        """The most threads to use, and the work from which on several are used."""
        names = ("limit", "least")
        threads, work = (ctypes.c_int64.from_address(self.addresses[name]).value for name in names)
        return threads, work

    @property
    def symbols(self) -> dict[str, int]:
        """What generated code calls, by its symbol there."""
        return {symbol: self.addresses[name] for symbol, name in POOL_SYMBOLS.items()}

    @property
    def started(self) -> int:
        """How many workers there are."""
        return int(ctypes.c_int64.from_address(self.addresses["started"]).value)

    def keep_at_most(self, size: int) -> None:
        """Set how many bytes of memory may be kept; nothing is kept above that from now on."""
        ctypes.c_int64.from_address(self.addresses["kept_limit"]).value = size
        ctypes.CFUNCTYPE(None)(self.addresses["drop_kept"])()

    @property
    def kept(self) -> int:
        """How many bytes of memory are kept."""
        return int(ctypes.c_int64.from_address(self.addresses["kept"]).value)

    def _forget(self) -> None:
        ctypes.CFUNCTYPE(None)(self.addresses["forget"])()
