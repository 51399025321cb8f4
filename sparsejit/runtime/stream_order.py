"""Order between the two streams of a plan: as few events as the tokens of its steps need."""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.runtime.device import DeviceRuntime

__all__ = ["Position", "StreamOrder"]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the work of a stream: behind its first ``count`` pieces."""

    stream: int
    count: int


class StreamOrder:
    """Counts the work of streams, and lets one wait for a position of another.

    An event covers all work before it, so positions that a stream has waited for already cost
    nothing. Allocating is no work: only what used the memory before must be waited for.
    """

    def __init__(self, runtime: DeviceRuntime, used_before: int) -> None:
        self._runtime = runtime
        self._work: dict[int, int] = {used_before: 1}
        self._seen: dict[tuple[int, int], int] = {}

    def started(self, stream: int) -> Position:
        """Count a piece of work and return the position behind it."""
        self._work[stream] = self._work.get(stream, 0) + 1
        return self.position(stream)

    def position(self, stream: int) -> Position:
        """Return the position behind all work so far."""
        return Position(stream, self._work.get(stream, 0))

    def wait(self, stream: int, position: Position) -> None:
        """Let later work on ``stream`` start behind ``position``."""
        pair = (stream, position.stream)
        if position.stream == stream or self._seen.get(pair, 0) >= position.count:
            return
        event = self._runtime.create_event()
        try:
            self._runtime.record_event(event, position.stream)
            self._runtime.stream_wait(stream, event)
            self._seen[pair] = self._work.get(position.stream, 0)
        finally:
            self._runtime.destroy_event(event)
