"""Faults that the fake device is told to have."""

from __future__ import annotations

from dataclasses import field

from sparsejit._dataclasses import dataclass
from sparsejit.runtime.device import Fault, FaultError

__all__ = ["Injection"]

_KINDS = {
    "allocate": Fault.OUT_OF_MEMORY,
    "pinned": Fault.OUT_OF_MEMORY,
    "register": Fault.ALREADY_REGISTERED,
    "unregister": Fault.NOT_REGISTERED,
    "launch": Fault.LAUNCH,
    "run_phase": Fault.LAUNCH,
}


@dataclass(slots=True)
class Injection:
    """Let call number ``at`` fail, counted from 0; ``calls`` are the names of those so far.

    With ``is_late``, work fails when it runs, and the device says so when it is waited for.
    """

    at: int = -1
    is_late: bool = False
    calls: list[str] = field(default_factory=list)
    is_over: bool = False

    def enter(self, name: str) -> None:
        """Count a call, which fails before it does anything where it is the one."""
        if self.count(name):
            raise self.fault(name)

    def count(self, name: str) -> bool:
        """Count a call and return whether it is the one; nothing is counted once it is over."""
        if self.is_over:
            return False
        self.calls.append(name)
        return len(self.calls) - 1 == self.at

    @staticmethod
    def fault(name: str) -> FaultError:
        """Return the fault of a call."""
        return FaultError(_KINDS.get(name, Fault.OTHER), name, "injected")
