"""What every backend offers: text from a loop function, and a kernel from that text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sparsejit.ir.loops import LoopFunc

__all__ = ["Backend", "Kernel", "KernelSource"]


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Generated text: ``entry`` is the name of the function in it that runs ``func``."""

    entry: str
    text: str
    func: LoopFunc


class Kernel(Protocol):
    """A loaded kernel.

    Called with one object for each parameter of the loop function, in order: an ``int`` for an
    extent, a NumPy array for a memref (any strides, exactly its dtype and rank), a scalar for a
    variable. Returns the arrays of the dense and sparse results, flat, in order. Assigned
    parameters are written in place.
    """

    def __call__(self, arguments: Sequence[object]) -> tuple[object, ...]: ...


class Backend(Protocol):
    """A way to run loop functions."""

    @property
    def name(self) -> str:
        """The backend's name in texts."""
        ...

    def emit(self, func: LoopFunc) -> KernelSource:
        """Return the text for ``func``: pure and deterministic."""
        ...

    def load(self, source: KernelSource, *, cache: bool = True) -> Kernel:
        """Return the kernel of ``source``; ``cache`` allows the disk cache."""
        ...
