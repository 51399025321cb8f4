"""What a running plan holds and must give back, on every path."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from sparsejit.runtime.device import FaultError

__all__ = ["Resources"]


class Resources:
    """Resources by key, each with the function that gives it back.

    ``end`` gives one back, ``unwind`` all that were added behind a mark, newest first. A resource
    is forgotten before it is given back, so that nothing is given back twice.

    >>> held = Resources()
    >>> held.add("a", lambda: print("a is freed"))
    >>> mark = held.mark()
    >>> held.add("b", lambda: print("b is freed"))
    >>> held.unwind(mark)
    b is freed
    >>> held.end("a")
    a is freed
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def text(self) -> str:
        """What is held, for messages."""
        return ", ".join(map(str, self._held))

    def add(self, key: Hashable, give_back: Callable[[], None]) -> None:
        """Hold a resource until it ends."""
        if key in self._held:
            raise AssertionError(f"{key!r} is held already")
        self._held[key] = give_back

    def end(self, key: Hashable) -> None:
        """Give one resource back now."""
        self._held.pop(key)()

    def detach(self, key: Hashable) -> Callable[[], None]:
        """Hand a resource over: whoever calls this gives it back."""
        return self._held.pop(key)

    def mark(self) -> frozenset[Hashable]:
        """Return what is held now."""
        return frozenset(self._held)

    def unwind(self, mark: frozenset[Hashable] = frozenset()) -> None:
        """Give everything back that was added since, newest first.

        A device that fails meanwhile keeps nothing else from being given back.
        """
        for key in [key for key in reversed(self._held) if key not in mark]:
            try:
                self.end(key)
            except FaultError:
                continue
