"""Locks of a process that may be forked while any of its threads holds them.

Of a forked process only the thread lives on that forked it: nobody gives back what others held. So
an ``OpenLock`` is open again there, and forking waits for ``COMPILING``: the compilers behind it
have locks of their own.
"""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType

__all__ = ["COMPILING", "OpenLock"]


class OpenLock:
    """A reentrant lock; in a forked process it is open unless the thread that forked holds it.

    What it protects is whole at any time: a thread may be gone in the middle of its work.

    >>> lock = OpenLock()
    >>> with lock, lock:
    ...     pass
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _OPEN.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def reopen(self) -> None:
        """Forget a thread that holds the lock, unless it is the calling one."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_OPEN: weakref.WeakSet[OpenLock] = weakref.WeakSet()

COMPILING = threading.RLock()
"""Held while LLVM or Numba is at work: one thread at a time."""


def _reopen() -> None:
    COMPILING.release()
    for lock in _OPEN:
        lock.reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=COMPILING.acquire, after_in_parent=COMPILING.release, after_in_child=_reopen
    )
