"""What every backend offers: text from a loop function, and a kernel from that text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from sparsejit.backends.straight import Asked
from sparsejit.ir.loops import LoopFunc, Result
from sparsejit.ir.scalar import UserFunction

__all__ = [
    "MISS",
    "Backend",
    "DirectCall",
    "DirectKernel",
    "Kernel",
    "KernelSource",
    "OnDevice",
    "RecalledKernel",
    "Recalling",
]

MISS: Final = -1
"""The status of a direct call whose arguments are not like those it was made for."""


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


class DirectCall(Protocol):
    """A kernel for arguments like those of one call, with nothing left to be looked up.

    ``call(*arguments, *made, *words)`` takes the arguments behind the extents. It compares dtype,
    flags, extents and strides of each array with what was seen, and returns a status: 0, ``MISS``
    where something differs (then nothing was touched), or what ``failure`` explains. Where it
    ``makes_arrays`` these stand in the place of 0. ``made`` are extents and dtypes of the arrays to
    be made for results; where ``room`` is not 0, an array of so many 64-bit integers comes last.
    ``pack[k]`` is None, or what argument k has to go through.
    """

    @property
    def call(self) -> Callable[..., Any]: ...

    @property
    def makes_arrays(self) -> bool: ...

    @property
    def extents(self) -> tuple[Any, ...]: ...

    @property
    def made(self) -> tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]: ...

    @property
    def room(self) -> int: ...

    @property
    def pack(self) -> tuple[Callable[[Any], Any] | None, ...]: ...

    @property
    def can_fail(self) -> bool: ...

    @property
    def failure(self) -> Callable[[int], Exception]: ...

    def straight(self, asked: Asked) -> Callable[..., Any] | None:
        """Return a call of the user's operands, None where Python has to do some of it."""
        ...

    def arranged(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the arrays of the results, as ``Kernel`` does, of what such a call returned."""
        ...

    def wrapped(
        self, answer: Any, words: Any, arguments: Sequence[Any], made: Sequence[Any]
    ) -> Sequence[Any]:
        """Return the arrays of the results, as ``Kernel`` does; ``call`` gave ``answer``."""
        ...


@runtime_checkable
class DirectKernel(Protocol):
    """A kernel that can be called directly."""

    def direct(self, arguments: Sequence[object], num_extents: int) -> DirectCall | None:
        """Return the direct call for arguments like these, of which extents come first.

        None where this Python does not have it.
        """
        ...


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


class OnDevice(ABC):
    """What kernels derive from that run on a device: they say themselves what they changed."""

    @abstractmethod
    def compile(self) -> None:
        """Open the device and load the kernels now."""

    @abstractmethod
    def run(
        self, arguments: Sequence[object], describe: Callable[[], Mapping[str, str]]
    ) -> tuple[object, ...]:
        """Do what a call of the kernel does; ``describe`` says what users call each array."""


class RecalledKernel(Kernel, Protocol):
    """A kernel whose function nobody has lowered in this process; ``results`` are those of it."""

    @property
    def results(self) -> tuple[Result, ...]: ...


@runtime_checkable
class Recalling(Protocol):
    """A backend that knows kernels again by what their functions are lowered from.

    A key holds all of that but the versions of this package and of what it compiles with.
    """

    def recall(self, key: str, func: Callable[[], LoopFunc]) -> RecalledKernel | None:
        """Return the kernel that was remembered under ``key``, in another process too.

        ``func`` lowers its function, should that be needed: the code may be gone, or be for arrays
        of other strides.
        """
        ...

    def remember(self, key: str, kernel: Kernel) -> None:
        """Let ``recall`` find a kernel that this backend has loaded."""
        ...
