"""Launches on the fake device: arguments checked against the kernel's parameters, then a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_never

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import (
    DeviceArray,
    ExtentParam,
    KernelCode,
    KernelParam,
    PointerParam,
    ScalarParam,
    StrideParam,
)
from sparsejit.ir.fold import numpy_dtype
from sparsejit.runtime.fake.memory import Memory, MisuseError, Region

__all__ = ["Launched", "check_launch"]

MOST_THREADS = 1024
MOST_BLOCKS = 2**31 - 1


def check_launch(code: KernelCode, blocks: int, arguments: Sequence[Any]) -> None:
    """Raise ``MisuseError`` where a launch does not fit the kernel or the device."""
    if not 1 <= code.block <= MOST_THREADS:
        raise MisuseError(f"{code.entry} has {code.block} threads a block")
    if not 1 <= blocks <= MOST_BLOCKS:
        raise MisuseError(f"{code.entry} on {blocks} blocks")
    if len(arguments) != len(code.params):
        raise MisuseError(f"{code.entry} takes {len(code.params)} arguments, not {len(arguments)}")
    arrays = {
        param.memref.name: argument
        for param, argument in zip(code.params, arguments, strict=True)
        if isinstance(param, PointerParam)
    }
    for param, argument in zip(code.params, arguments, strict=True):
        problem = _problem(param, argument, arrays)
        if problem:
            raise MisuseError(f"{code.entry}: {problem}")
    for memref, _, group in code.workspaces:
        groups = blocks * code.block // group
        given = arrays[memref.name]
        if not isinstance(given, DeviceArray) or given.shape[0] < groups:
            raise MisuseError(f"{code.entry}: {memref.name} has not {groups} parts, one a group")


def _problem(  # noqa: C901 - one case for each kind
    param: KernelParam, argument: Any, arrays: dict[str, Any]
) -> str:
    match param:
        case PointerParam(memref):
            if not isinstance(argument, DeviceArray):
                return f"{memref.name} is {type(argument).__name__}, no array of the device"
            if argument.dtype is not memref.dtype:
                return f"{memref.name} holds {argument.dtype.value}"
        case ExtentParam(memref, axis):
            if type(argument) is not int:
                return f"an extent of {memref.name} is {argument!r}"
            if memref.name in arrays and argument != arrays[memref.name].shape[axis]:
                return f"an extent of {memref.name} is {argument}, not its own"
        case StrideParam(memref, axis):
            if type(argument) is not int:
                return f"a stride of {memref.name} is {argument!r}"
            if memref.name in arrays and argument != arrays[memref.name].strides[axis]:
                return f"a stride of {memref.name} is {argument}, not its own"
        case ScalarParam(var, part):
            dtype = var.dtype.real if part else var.dtype
            if not isinstance(argument, np.generic) or argument.dtype != numpy_dtype(dtype):
                return f"{var.name} is {argument!r}, not a {dtype.value}"
        case _:
            assert_never(param)
    return ""


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch: a kernel, how many blocks, its arguments, and a seed for the threads' order."""

    code: KernelCode
    blocks: int
    arguments: tuple[Any, ...]
    seed: int

    def _arrays(self) -> list[tuple[str, DeviceArray]]:
        return [
            (param.memref.name, argument)
            for param, argument in zip(self.code.params, self.arguments, strict=True)
            if isinstance(param, PointerParam)
        ]

    def regions(self, memory: Memory) -> tuple[list[Region], list[Region]]:
        """Return the bytes that are read and those that are written."""
        scratch = {memref.name for memref, _, _ in self.code.workspaces}
        reads: list[Region] = []
        writes: list[Region] = []
        for name, array in self._arrays():
            found = memory.region(array)
            if name in scratch or name in self.code.writes:
                writes.extend(found)
                if name in self.code.updates:
                    self._refuse_mapped(name, found)
            if name in scratch or name in self.code.reads or name in self.code.updates:
                reads.extend(found)
        return reads, writes

    def _refuse_mapped(self, name: str, regions: Sequence[Region]) -> None:
        if any(region.space == "host" for region in regions):
            raise MisuseError(f"{self.code.entry} updates {name} in mapped memory of the host")

    def prepared(self, memory: Memory) -> Callable[[], None]:
        """Return the work: the replay on the memory as it is then.

        What a kernel only reads stays as it is, unless it writes a part of it as another array.
        """
        views: list[Any] = []
        kept: list[tuple[str, Any]] = []
        written: list[Any] = []
        scratch = {memref.name for memref, _, _ in self.code.workspaces}
        for param, argument in zip(self.code.params, self.arguments, strict=True):
            if isinstance(param, PointerParam):
                view = memory.view(argument)
                views.append(view)
                if param.memref.name in self.code.writes | scratch:
                    written.append(view)
                else:
                    kept.append((param.memref.name, view))
            else:
                views.append(argument)

        def run() -> None:
            before = [
                (name, view, view.tobytes())
                for name, view in kept
                if not any(np.may_share_memory(view, other) for other in written)
            ]
            with np.errstate(all="ignore"):
                self.code.replay(views, self.blocks, self.seed)
            for name, view, data in before:
                if view.tobytes() != data:
                    raise MisuseError(f"{self.code.entry} writes {name}, which it only reads")

        return run
