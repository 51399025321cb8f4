"""The launch plan: the ordered steps that move operands to a device, compute there, and come back.

A memref of the loop function names two things in a plan: the caller's array on the host (``host
x``) and the array that kernels see (``x``). Sizes are expressions over the host's variables and
over extents, so that one plan serves all shapes of a cache key. Steps that start transfers have
tokens; ``Await`` orders computing behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import KernelCode, LibraryCode
from sparsejit.ir.loops import Memref
from sparsejit.runtime.work_steps import Branch, Library, Loop, Repeat, Step

__all__ = ["LaunchPlan", "Placed", "Strategy", "all_steps"]


class Strategy(Enum):
    """How host operands reach the device."""

    REGULAR_DMA = "regular-dma"
    PINNED_DMA = "pinned-dma"
    ZERO_COPY = "zero-copy"

    def __repr__(self) -> str:
        return f"Strategy.{self.name}"


@dataclass(frozen=True, slots=True)
class Placed:
    """How kernels reach an array, and why: for texts and ``explain``."""

    memref: Memref
    how: str
    reason: str


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A function as the steps that a device runtime executes.

    ``placed`` says of every array of the caller, and of every result, how kernels reach it.
    ``assigned`` are the memrefs of the caller's arrays that the plan writes. ``refusals`` say which
    library calls run as generated code, and why; a plan that ``needs_library`` fails instead.
    """

    name: str
    strategy: Strategy
    steps: tuple[Step, ...]
    placed: tuple[Placed, ...] = ()
    assigned: frozenset[str] = frozenset()
    refusals: tuple[str, ...] = ()
    kernels: Mapping[str, KernelCode] = field(default_factory=dict)
    calls: Mapping[str, LibraryCode] = field(default_factory=dict)
    needs_library: bool = False


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield every step in order, a block before the steps in it."""
    for step in steps:
        yield step
        match step:
            case Loop() | Repeat():
                yield from all_steps(step.body)
            case Branch():
                yield from all_steps(step.then)
                yield from all_steps(step.orelse)
            case Library():
                yield from all_steps(step.steps)
                yield from all_steps(step.otherwise)
            case _:
                pass
