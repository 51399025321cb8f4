"""The CPU time that the control groups of the process leave to it, as a number of cores.

In: what Linux says of control groups, of both versions. Out: how many cores can be busy all the
time; None where nothing limits it. A container with a share of a large machine has such a limit:
more threads than that would wait for each other while none of them may run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["cpu_quota"]


def cpu_quota(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Return the least limit of the process's control groups, rounded up to whole cores.

    ``groups`` is where control groups are mounted, ``own`` the file that names those of the
    process.
    """
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    limits = [limit for line in lines for limit in _limits(line, groups)]
    return min(limits, default=None)


def _limits(line: str, groups: Path) -> Iterator[int]:
    """The limits in a line ``number:controllers:path``."""
    _, controllers, path = line.split(":", 2)
    if not controllers:
        for folder in _upwards(groups, path):
            yield from _cores(_words(folder / "cpu.max"))
    elif "cpu" in controllers.split(","):
        for mounted in (controllers, "cpu"):
            for folder in _upwards(groups / mounted, path):
                quota = _words(folder / "cpu.cfs_quota_us")
                yield from _cores([*quota, *_words(folder / "cpu.cfs_period_us")])


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """The folder of a group and those of the groups that it is in; some may not be visible."""
    folder = root / path.lstrip("/")
    yield folder
    while folder != root and root in folder.parents:
        folder = folder.parent
        yield folder


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").split()
    except OSError:
        return []


def _cores(words: list[str]) -> Iterator[int]:
    """The cores of ``quota period``; the quota is ``max`` or -1 where there is none."""
    match words:
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            yield max(-(-int(quota) // int(period)), 1)
        case _:
            pass
