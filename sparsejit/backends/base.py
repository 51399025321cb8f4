"""What every backend offers: text from a loop function, and a kernel from that text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.scalar import UserFunction

__all__ = ["Backend", "Kernel", "KernelSource"]


class KernelSource:
    """Generated text: ``entry`` is the name of the function in it that runs ``func``.

    ``text`` may be given as a function that writes it, which is called when it is first read.
    ``functions`` are the functions of the user that the text calls, by the names they have in it.
    """

    __slots__ = ("_text", "entry", "func", "functions")

    def __init__(
        self,
        entry: str,
        text: str | Callable[[], str],
        func: LoopFunc,
        functions: Mapping[str, UserFunction] | None = None,
    ) -> None:
        self.entry: Final = entry
        self.func: Final = func
        self.functions: Final[Mapping[str, UserFunction]] = functions or {}
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
