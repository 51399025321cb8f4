"""What the control groups of the process say, of both versions: words of their files.

In: where groups are mounted, and the file that names those of the process. Out: for a controller,
the words in one file of each group that the process is in, and of the groups around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sparsejit._dataclasses import dataclass

__all__ = ["ControlGroups"]


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """``mounted`` is where control groups are, ``own`` the file that names those of the process."""

    mounted: Path = Path("/sys/fs/cgroup")
    own: Path = Path("/proc/self/cgroup")

    def words(self, controller: str, new: str, *old: str) -> Iterator[list[str]]:
        """Yield the words of the file ``new`` of each group, or of the files ``old``, together.

        Groups of version 2 have the first, those of version 1 the others.
        """
        for line in self._lines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                for folder in _upwards(self.mounted, path):
                    yield _words(folder / new)
            elif controller in controllers.split(","):
                for name in (controllers, controller):
                    for folder in _upwards(self.mounted / name, path):
                        yield [word for file in old for word in _words(folder / file)]

    def _lines(self) -> list[str]:
        try:
            return self.own.read_text(encoding="utf-8").splitlines()
        except OSError:
            return []


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
