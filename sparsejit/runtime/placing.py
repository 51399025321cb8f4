"""How kernels reach each array of a caller, and why.

In: the uses of a function's arrays and where they lie. Out: a ``Placed`` for each: resident,
copied, staged, registered, or mapped. ``zero-copy`` is as zero as is right: inputs that are read
once, in order, stay in host memory; what is gathered, written by a library or by atomics does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from sparsejit.ir.loops import Memref
from sparsejit.runtime.plan import Placed, Strategy
from sparsejit.runtime.transfer_steps import Home, Layout, Placement
from sparsejit.runtime.uses import Use, Uses

__all__ = ["How", "place_argument", "place_result", "place_upload"]


class How(Enum):
    """The ways that kernels reach an array; ``STAGED`` and ``REGISTERED`` are pinned DMA."""

    UNUSED = "not moved"
    RESIDENT = "resident"
    COPIED = "copied"
    STAGED = "copied through pinned staging"
    REGISTERED = "copied from registered pages"
    MAPPED = "mapped"

    def __repr__(self) -> str:
        return f"How.{self.name}"


def place_argument(
    memref: Memref, placement: Placement, strategy: Strategy, uses: Uses
) -> tuple[How, Placed]:
    """Return how kernels reach an array of the caller."""
    how, reason = _argument(memref.name, placement, strategy, uses)
    return how, Placed(memref, how.value, reason)


def _argument(name: str, placement: Placement, strategy: Strategy, uses: Uses) -> tuple[How, str]:
    if placement.home is Home.DEVICE:
        return How.RESIDENT, "it lies on the device"
    if not uses.of.get(name):
        return How.UNUSED, "no kernel needs its elements"
    match strategy:
        case Strategy.REGULAR_DMA:
            return How.COPIED, "regular-dma"
        case Strategy.PINNED_DMA:
            return _pinned(placement), "pinned-dma"
        case Strategy.ZERO_COPY:
            reason = _why_not_mapped(name, placement, uses)
            if not reason:
                written = "each element is stored once" if uses.writes(name) else ""
                return How.MAPPED, written or "it is read once, in order"
            return _pinned(placement), reason


def place_upload(placement: Placement, strategy: Strategy) -> How:
    """Return how an array that stays on the device gets there."""
    return How.COPIED if strategy is Strategy.REGULAR_DMA else _pinned(placement)


def _pinned(placement: Placement) -> How:
    can = not placement.not_registrable and placement.layout is not Layout.STRIDED
    is_large = placement.is_large and can
    return How.REGISTERED if is_large else How.STAGED


def _why_not_mapped(name: str, placement: Placement, uses: Uses) -> str:
    """Return why an array cannot stay in host memory, empty where it can."""
    if placement.layout is Layout.STRIDED:
        return "it is not contiguous"
    if placement.not_registrable:
        return placement.not_registrable
    return _why_not_used_mapped(uses.reads(name), uses.writes(name))


def _why_not_used_mapped(reads: Sequence[Use], writes: Sequence[Use]) -> str:
    for use in writes:
        reason = _why_not_stored_mapped(use)
        if reason:
            return reason
    if reads and writes:
        return f"{writes[0].user} writes what {reads[0].user} reads"
    if len(writes) > 1:
        return "several kernels write it"
    for use in reads:
        if use.gathered:
            return use.gathered
        if use.is_repeated:
            return "it is read in each pass of a loop"
    users = dict.fromkeys(use.user for use in reads)
    if len(users) > 1:
        return f"{' and '.join(users)} read it"
    return ""


def _why_not_stored_mapped(use: Use) -> str:
    if use.is_library:
        return f"{use.user} writes it, a library"
    if use.is_update:
        return f"{use.user} updates it"
    return "it is written in each pass of a loop" if use.is_repeated else ""


def place_result(
    memref: Memref, is_plain: bool, strategy: Strategy, home: Home, uses: Uses
) -> tuple[How, Placed]:
    """Return how kernels reach a fresh result; ``is_plain``: it is allocated once, at the top."""
    how, reason = _result(memref, is_plain, strategy, home, uses)
    return how, Placed(memref, how.value, reason)


def _result(
    memref: Memref, is_plain: bool, strategy: Strategy, home: Home, uses: Uses
) -> tuple[How, str]:
    if home is Home.DEVICE:
        return How.RESIDENT, "it stays on the device"
    match strategy:
        case Strategy.REGULAR_DMA:
            return How.COPIED, "regular-dma"
        case Strategy.PINNED_DMA:
            return How.STAGED, "pinned-dma"
        case Strategy.ZERO_COPY:
            reason = _why_result_not_mapped(memref.name, is_plain, uses)
            return (How.STAGED, reason) if reason else (How.MAPPED, "each element is stored once")


def _why_result_not_mapped(name: str, is_plain: bool, uses: Uses) -> str:
    if not is_plain:
        return "its size is known late"
    if name in uses.filled:
        return "it is filled first"
    if not uses.writes(name):
        return "no kernel stores it"
    return _why_not_mapped(name, Placement(), uses)
