"""Steps of a launch plan that move data: the caller's arrays, memory of the device, copies."""

from __future__ import annotations

from enum import Enum

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loops import Expr, Memref, Var

__all__ = [
    "Allocate",
    "Await",
    "CopyIn",
    "CopyOut",
    "Free",
    "Home",
    "Layout",
    "Map",
    "NewResult",
    "Pack",
    "Placement",
    "Register",
    "Release",
    "Reserve",
    "Source",
    "Stage",
    "Take",
    "TakeScalar",
    "TransferStep",
    "Unpack",
    "Unregister",
    "Unstage",
    "Wait",
]


class Home(Enum):
    """Where a caller's array lies."""

    HOST = "host"
    DEVICE = "device"

    def __repr__(self) -> str:
        return f"Home.{self.name}"


class Layout(Enum):
    """In which order an array is contiguous, if it is."""

    C = "C"
    FORTRAN = "Fortran"
    STRIDED = "strided"

    def __repr__(self) -> str:
        return f"Layout.{self.name}"


@dataclass(frozen=True, slots=True)
class Placement:
    """What a plan depends on about a caller's array.

    ``is_large``: registering its pages costs less than copying them through pinned staging;
    ``not_registrable`` says why they cannot be registered, empty where they can.
    """

    home: Home = Home.HOST
    layout: Layout = Layout.C
    is_large: bool = False
    not_registrable: str = ""


# ---------------------------------------------------------------- the caller's arrays


@dataclass(frozen=True, slots=True)
class Take:
    """Take an array of the caller and check that it is what the plan was made for."""

    memref: Memref
    placement: Placement


@dataclass(frozen=True, slots=True)
class TakeScalar:
    """Take an extent or a number of the caller."""

    var: Var


@dataclass(frozen=True, slots=True)
class Pack:
    """Make a contiguous copy of a strided array on the host."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Unpack:
    """Write the contiguous copy back into the strided array."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Register:
    """Pin and map the pages of a host array, once for each root allocation."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Unregister:
    """Undo ``Register``."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Stage:
    """Copy a host array, contiguous, into pinned memory of the pool."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Reserve:
    """Take pinned memory of the pool for what comes back."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Unstage:
    """Copy what came back from pinned memory into the host array."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Release:
    """Give pinned memory back to the pool, which reuses it after the transfers."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class NewResult:
    """Make the host array of a result: of ``extents``, or of its device array's shape."""

    memref: Memref
    extents: tuple[Expr, ...] | None = None


# ---------------------------------------------------------------- memory of the device


class Source(Enum):
    """Which memory of the host a transfer reads or writes."""

    ARRAY = "host"
    PACKED = "packed"
    STAGED = "staged"

    def __repr__(self) -> str:
        return f"Source.{self.name}"


@dataclass(frozen=True, slots=True)
class Map:
    """Let kernels reach a registered host array, by its device address."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Allocate:
    """Allocate a device array; ``layout`` is C or Fortran."""

    memref: Memref
    extents: tuple[Expr, ...]
    token: str = ""
    layout: Layout = Layout.C


@dataclass(frozen=True, slots=True)
class CopyIn:
    """Copy a host array to its device array, asynchronously."""

    memref: Memref
    source: Source
    after: str
    token: str


@dataclass(frozen=True, slots=True)
class Await:
    """Let what follows on the device wait for these transfers."""

    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyOut:
    """Copy a device array to the host, asynchronously."""

    memref: Memref
    target: Source


@dataclass(frozen=True, slots=True)
class Free:
    """Free a device array once what was started has been done."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait on the host for everything that was started."""


TransferStep = (
    Take
    | TakeScalar
    | Pack
    | Unpack
    | Register
    | Unregister
    | Stage
    | Reserve
    | Unstage
    | Release
    | NewResult
    | Map
    | Allocate
    | CopyIn
    | Await
    | CopyOut
    | Free
    | Wait
)
