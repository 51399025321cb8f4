"""Device code: what a backend makes of a kernel, as data that a device runtime runs.

Backends and the runtime do not know each other; this is all that passes between them. ``cubin`` is
for a device, ``replay`` runs the same kernel on NumPy arrays, thread by thread, for the fake one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sparsejit.ir.loops import Expr, Memref, Var

__all__ = ["ExtentParam", "KernelCode", "KernelParam", "PointerParam", "ScalarParam", "StrideParam"]


@dataclass(frozen=True, slots=True)
class PointerParam:
    """The address of element 0 of a memref in device memory: a 64-bit word."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class ExtentParam:
    """The extent of a memref along an axis: an int64."""

    memref: Memref
    axis: int


@dataclass(frozen=True, slots=True)
class StrideParam:
    """How many elements apart neighbors of a memref along an axis lie: an int64."""

    memref: Memref
    axis: int


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """The value of a scalar variable of the host, in its dtype.

    A complex number takes two parameters: ``part`` says which part of it this one is.
    """

    var: Var
    part: Literal["", "real", "imag"] = ""


KernelParam = PointerParam | ExtentParam | StrideParam | ScalarParam

Replay = Callable[[Sequence[Any], int, int], None]


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel ready for a device.

    ``entry`` is its name in the image that ``cubin(arch)`` gives for an architecture such as
    ``"sm_90"``. It runs with ``block`` threads a block, and is right for any number of blocks;
    ``threads`` says how many threads have work, in terms of the host's variables and of extents.
    ``workspaces`` are memrefs of device memory that the runtime provides while the kernel runs,
    each with its extents for one group of threads and the number of threads in a group; a kernel
    that has some gets ``(groups, *extents)``. ``reads`` and ``writes`` name the memrefs that are
    loaded from and stored to; ``updates`` those of ``writes`` that are changed by atomics or read
    before they are written.

    ``replay(arguments, blocks, seed)`` runs the kernel on the host for that many blocks, in an
    order of threads that ``seed`` picks: an argument for each of ``params``, a NumPy array (of any
    rank, over the very memory) for a pointer, an ``int`` or NumPy scalar for the others.
    """

    entry: str
    params: tuple[KernelParam, ...]
    text: str
    block: int
    threads: Expr
    reads: frozenset[str]
    writes: frozenset[str]
    updates: frozenset[str]
    cubin: Callable[[str], bytes]
    replay: Replay
    workspaces: tuple[tuple[Memref, tuple[Expr, ...], int], ...] = ()


KernelCodes = Mapping[str, KernelCode]
"""Kernels by the name that their ``Launch`` has."""
