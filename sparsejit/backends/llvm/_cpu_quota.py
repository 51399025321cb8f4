"""The CPU time that the control groups of the process leave to it, as a number of cores.

In: what Linux says of control groups. Out: how many cores can be busy all the time; None where
nothing limits it. A container with a share of a large machine has such a limit: more threads than
that would wait for each other while none of them may run.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparsejit.backends.llvm._control_groups import ControlGroups

__all__ = ["cpu_quota"]


def cpu_quota(groups: ControlGroups | None = None) -> int | None:
    """Return the least limit of the process's control groups, rounded up to whole cores."""
    groups = groups or ControlGroups()
    told = groups.words("cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    return min((limit for words in told for limit in _cores(words)), default=None)


def _cores(words: list[str]) -> Iterator[int]:
    """The cores of ``quota period``; the quota is ``max`` or -1 where there is none."""
    match words:
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            yield max(-(-int(quota) // int(period)), 1)
        case _:
            pass
