"""Library calls on the fake device: the library's rules, sizes nobody can guess, and a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from random import Random
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import (
    DeviceArray,
    LibraryArguments,
    LibraryCode,
    LibraryPhase,
    LibraryRefusal,
)
from sparsejit.runtime.fake.memory import Block, Memory, MisuseError, Region, poison
from sparsejit.runtime.fake.streams import Streams

__all__ = ["LibraryCalls"]


@dataclass(slots=True, eq=False)
class _Call:
    code: LibraryCode
    arguments: LibraryArguments
    stream: int
    done: int = 0
    sizes: dict[int, list[int]] = field(default_factory=dict)
    held: list[tuple[int, int]] = field(default_factory=list)
    results: Mapping[str, Any] = field(default_factory=dict)


class LibraryCalls:
    """The calls that are described and not destroyed."""

    def __init__(
        self,
        memory: Memory,
        streams: Streams,
        random: Random,
        refuses: frozenset[str],
        enqueue: Callable[..., None],
    ) -> None:
        self._memory, self._streams, self._random = memory, streams, random
        self._enqueue = enqueue
        self._refuses = refuses
        self._calls: dict[int, _Call] = {}
        self._next = 1

    def leaks(self) -> list[str]:
        """Return the calls that nobody destroyed."""
        return [f"descriptors of {call.code.call.op.value}" for call in self._calls.values()]

    def describe(
        self, code: LibraryCode, arguments: LibraryArguments, stream: int
    ) -> int | LibraryRefusal:
        """Return a new call, or which of the library's rules the operands break."""
        wanted = set(code.reads | code.writes)
        wanted -= {target.name for target in code.call.targets}
        if set(arguments.arrays) != wanted:
            raise MisuseError(f"{code.library} gets {sorted(arguments.arrays)}")
        for array in arguments.arrays.values():
            self._memory.region(array)
        broken = list(code.check(arguments))
        if broken:
            return LibraryRefusal(broken[0])
        self._calls[self._next] = _Call(code, arguments, stream)
        self._next += 1
        return self._next - 1

    def sizes(self, number: int, phase: LibraryPhase) -> Sequence[int] | LibraryRefusal:
        """Return sizes for a phase: odd ones for workspaces, those of the result for targets."""
        call = self._known(number)
        place = self._place(call, phase)
        if place == 0 and call.code.call.op.name in self._refuses:
            return LibraryRefusal("the fake library refuses it")
        found = [self._random.randrange(1, 200) for _ in phase.workspaces]
        if phase.targets:
            self._streams.synchronize(call.stream)
            call.results = self._replay(call)
            found += [np.asarray(call.results[target.name]).size for target in phase.targets]
        call.sizes[place] = found
        return found

    def run(
        self,
        number: int,
        phase: LibraryPhase,
        workspaces: Sequence[int],
        targets: Mapping[str, DeviceArray],
    ) -> None:
        """Queue a phase; the last one leaves the results."""
        call = self._known(number)
        place = self._place(call, phase)
        wanted = call.sizes.get(place, [])
        if len(wanted) != len(phase.workspaces) + len(phase.targets):
            raise MisuseError(f"{phase.name} runs before its sizes are asked")
        scratch = self._scratch(call, phase, workspaces, wanted)
        call.done = place + 1
        is_last = call.done == len(call.code.phases)
        reads: list[Region] = []
        writes = [block.region(block.start, block.stop) for block in scratch]
        for name, array in call.arguments.arrays.items():
            reads += self._memory.region(array)
            if is_last and name in call.code.writes:
                writes += self._written(name, array, phase)
        sizes = wanted[len(workspaces) :]
        for target, size in zip(phase.targets, sizes, strict=True):
            array = targets[target.name]
            if array.shape != (size,) or array.dtype is not target.dtype:
                raise MisuseError(f"{target.name} is {array}, not {size} elements")
            writes += self._memory.region(array)
        name = f"{call.code.call.op.value} {phase.name}"
        work = self._work(call, scratch, targets, is_last)
        self._enqueue(name, call.stream, reads, writes, work)

    def _scratch(
        self, call: _Call, phase: LibraryPhase, workspaces: Sequence[int], wanted: Sequence[int]
    ) -> list[Block]:
        """Return the workspaces; what was given to earlier phases is used until the end."""
        if len(workspaces) != len(phase.workspaces):
            raise MisuseError(f"{phase.name} gets {len(workspaces)} workspaces")
        held = [*call.held, *zip(workspaces, wanted, strict=False)]
        if any(pointer % 16 for pointer, _ in held):
            raise MisuseError(f"a workspace of {phase.name} is not aligned")
        found = [self._memory.find(pointer, size) for pointer, size in held]
        call.held = held
        return found

    def _written(self, name: str, array: DeviceArray, phase: LibraryPhase) -> Sequence[Region]:
        region = self._memory.region(array)
        if any(part.space == "host" for part in region):
            raise MisuseError(f"{phase.name} writes {name} in mapped memory of the host")
        return region

    def _work(
        self,
        call: _Call,
        scratch: Sequence[Block],
        targets: Mapping[str, DeviceArray],
        is_last: bool,
    ) -> Callable[[], None]:
        arrays = {name: self._memory.view(a) for name, a in call.arguments.arrays.items()}
        outputs = {name: self._memory.view(array) for name, array in targets.items()}
        if is_last:
            written = call.code.writes & arrays.keys()
            outputs.update((name, arrays[name]) for name in written)

        def work() -> None:
            for block in scratch:
                poison(block.data)
            if outputs and not call.results:
                call.results = call.code.replay(arrays, call.arguments)
            for name, view in outputs.items():
                found = np.asarray(call.results[name], view.dtype)
                view[...] = found.reshape(view.shape)

        return work

    def _replay(self, call: _Call) -> Mapping[str, Any]:
        arrays = {
            name: self._memory.view(array).copy() for name, array in call.arguments.arrays.items()
        }
        return call.code.replay(arrays, call.arguments)

    def destroy(self, number: int) -> None:
        """End a call."""
        self._known(number)
        del self._calls[number]

    def _known(self, number: int) -> _Call:
        if number not in self._calls:
            raise MisuseError(f"library call {number} is not described (any more)")
        return self._calls[number]

    @staticmethod
    def _place(call: _Call, phase: LibraryPhase) -> int:
        place = call.code.phases.index(phase)
        if place != call.done:
            raise MisuseError(f"{phase.name} out of turn")
        return place
