"""What every backend offers: text from a loop function, and a kernel from that text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from sparsejit.ir.loops import LoopFunc

__all__ = ["Backend", "Kernel", "KernelSource"]


class KernelSource:
    """Generated text: ``entry`` is the name of the function in it that runs ``func``.

    ``text`` may be given as a function that writes it, which is called when it is first read.
    """

    __slots__ = ("_text", "entry", "func")

    def __init__(self, entry: str, text: str | Callable[[], str], func: LoopFunc) -> None:
        self.entry: Final = entry
        self.func: Final = func
        self._text = text

    @property
    def text(self) -> str:
        """The text."""
        if not isinstance(self._text, str):
            self._text = self._text()
        return self._text


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
