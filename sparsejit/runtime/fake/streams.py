"""The fake device's streams: work is queued, runs late, and two pieces that meet must be ordered.

Each piece of work has a vector clock: for each stream, how much of its work is known to be done
before. Two pieces that touch the same bytes, one of them writing, are ordered by their clocks or
are a hazard, whether or not this run shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from random import Random

from sparsejit._dataclasses import dataclass
from sparsejit.runtime.device import Fault, FaultError
from sparsejit.runtime.fake.memory import MisuseError, Region

__all__ = ["Streams", "Work"]

Clock = dict[int, int]


@dataclass(slots=True, eq=False)
class Work:
    """A piece of work: piece ``number`` (from 1) of a stream, behind all that ``clock`` knows."""

    name: str
    stream: int
    number: int
    clock: Clock
    reads: Sequence[Region]
    writes: Sequence[Region]
    run: Callable[[], None] | None

    def is_behind(self, other: Work) -> bool:
        """Return whether ``other`` is done before this starts."""
        return self.clock.get(other.stream, 0) >= other.number

    def conflicts(self, other: Work) -> Region | None:
        """Return bytes that both touch and one of them writes."""
        for mine, theirs in (
            (self.writes, (*other.writes, *other.reads)),
            (self.reads, other.writes),
        ):
            for one in mine:
                if any(one.meets(two) for two in theirs):
                    return one
        return None


@dataclass(slots=True)
class _Event:
    clock: Clock | None = None


@dataclass(slots=True)
class Streams:
    """Queues by stream, events, and what the host knows to be done."""

    random: Random
    queues: dict[int, list[Work]] = field(default_factory=dict)
    events: dict[int, _Event] = field(default_factory=dict)
    failed: FaultError | None = None
    _counts: Clock = field(default_factory=dict)
    _clocks: dict[int, Clock] = field(default_factory=dict)
    _host: Clock = field(default_factory=dict)
    _done: Clock = field(default_factory=dict)
    _recent: list[Work] = field(default_factory=list)
    _next_event: int = 1

    def enqueue(
        self,
        name: str,
        stream: int,
        reads: Sequence[Region],
        writes: Sequence[Region],
        run: Callable[[], None] | None,
    ) -> Work:
        """Queue a piece of work; ``MisuseError`` where it races with what is queued."""
        if stream not in self.queues:
            raise MisuseError(f"{name} on {stream}, which is no stream")
        number = self._counts.get(stream, 0) + 1
        self._counts[stream] = number
        clock = _later(self._clocks.get(stream, {}), self._host)
        work = Work(name, stream, number, clock, reads, writes, run)
        self._recent = [old for old in self._recent if self._host.get(old.stream, 0) < old.number]
        for old in self._recent:
            if not work.is_behind(old) and work.conflicts(old) is not None:
                raise MisuseError(f"{name} and {old.name} touch the same bytes and are not ordered")
        self._clocks[stream] = {**clock, stream: number}
        self._recent.append(work)
        self.queues[stream].append(work)
        return work

    def host_touches(self, region: Region, name: str, is_write: bool) -> None:
        """Check what the host does with its own memory while work is queued."""
        for old in self._recent:
            if self._host.get(old.stream, 0) >= old.number:
                continue
            touched = (*old.writes, *old.reads) if is_write else old.writes
            if any(region.meets(other) for other in touched):
                raise MisuseError(f"{name} while {old.name} is in flight")

    def is_busy(self, region: Region) -> bool:
        """Return whether work that is not done touches these bytes."""
        waiting = (work for queue in self.queues.values() for work in queue)
        return any(region.meets(other) for w in waiting for other in (*w.reads, *w.writes))

    # ------------------------------------------------------------ events

    def create_event(self) -> int:
        """Return a new event."""
        event = self._next_event
        self._next_event += 1
        self.events[event] = _Event()
        return event

    def event(self, event: int) -> _Event:
        """Return an event that exists."""
        if event not in self.events:
            raise MisuseError(f"event {event} does not exist (any more)")
        return self.events[event]

    def record(self, event: int, stream: int) -> None:
        """Let an event stand for what is on a stream."""
        self.event(event).clock = _later(self._clocks.get(stream, {}), self._host)

    def wait(self, stream: int, event: int) -> None:
        """Let later work on a stream be behind an event."""
        clock = self.event(event).clock
        if clock is not None:
            self._clocks[stream] = _later(self._clocks.get(stream, {}), clock)

    def is_done(self, event: int) -> bool:
        """Return whether an event is done; now and then work gets done meanwhile."""
        clock = self.event(event).clock or {}
        if self.random.random() < 0.5:
            self._run_until(clock)
        return all(self._done.get(stream, 0) >= number for stream, number in clock.items())

    def wait_event(self, event: int) -> None:
        """Wait on the host for an event."""
        self._join(self.event(event).clock or {})

    def synchronize(self, stream: int) -> None:
        """Wait on the host for a stream; work of others may get done too."""
        if stream not in self.queues:
            raise MisuseError(f"synchronize of {stream}, which is no stream")
        for other in self.random.sample(sorted(self.queues), len(self.queues)):
            if other != stream and self.queues[other]:
                queued = self.queues[other]
                some = queued[self.random.randrange(len(queued))]
                self._run_until({other: some.number - 1})
        self._join(self._clocks.get(stream, {}))

    def _join(self, clock: Clock) -> None:
        self._run_until(clock)
        self._host = _later(self._host, clock)
        if self.failed is not None:
            failed, self.failed = self.failed, None
            raise failed

    # ------------------------------------------------------------ running

    def _run_until(self, clock: Clock) -> None:
        for stream, number in sorted(clock.items()):
            while self._done.get(stream, 0) < number:
                self._run_one(stream)

    def _run_one(self, stream: int) -> None:
        work = self.queues[stream][0]
        self._run_until({other: n for other, n in work.clock.items() if other != stream})
        if self.queues[stream] and self.queues[stream][0] is work:
            self.queues[stream].pop(0)
            self._done[stream] = work.number
            if self.failed is None and work.run is not None:
                try:
                    work.run()
                except FaultError as error:
                    self.failed = error

    def fail(self, name: str) -> None:
        """Let the device fail at this piece of work."""
        raise FaultError(Fault.LAUNCH, name, "injected, and told late")


def _later(one: Clock, other: Clock) -> Clock:
    return {stream: max(one.get(stream, 0), other.get(stream, 0)) for stream in one | other}
