"""The arguments of ``sparse_jit`` and the environment, checked.

In: what the user wrote. Out: a frozen ``JitOptions``. Every wrong value is a ``ValueError`` that
names the choices, raised when the function is decorated (for the environment: when it is read).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeVar

from sparsejit._dataclasses import dataclass
from sparsejit.formats import Format
from sparsejit.tensors import Check

__all__ = [
    "PARALLELIZATIONS",
    "TARGETS",
    "JitOptions",
    "Transfer",
    "check_options",
    "wanted_target",
]

_Name = TypeVar("_Name", bound=str)

TARGETS = ("auto", "cpu", "cuda", "interpreter")
PARALLELIZATIONS = (
    "none",
    "dense-outer-loop",
    "any-storage-outer-loop",
    "dense-any-loop",
    "any-storage-any-loop",
)
_LIBRARY = ("auto", "never", "only")
_CHECK: tuple[Check, ...] = ("once", "always", "never")


class Transfer(Enum):
    """How host operands reach the device."""

    REGULAR_DMA = "regular-dma"
    PINNED_DMA = "pinned-dma"
    ZERO_COPY = "zero-copy"


@dataclass(frozen=True, slots=True)
class JitOptions:
    """The checked arguments of ``sparse_jit``; their meaning stands there."""

    transfer: Transfer
    target: str
    library: str
    parallelization: str
    output: Format | dict[int, Format] | None
    static_argnames: tuple[str, ...]
    deterministic: bool
    reassociate: bool
    check: Check
    cache: bool


def check_options(
    *,
    transfer: object,
    target: object,
    library: object,
    parallelization: object,
    output: object,
    static_argnames: object,
    deterministic: object,
    reassociate: object,
    check: object,
    cache: object,
) -> JitOptions:
    """Return the options as data; ``ValueError`` for the first wrong one."""
    return JitOptions(
        transfer=_transfer(transfer),
        target=_choice("target", target, TARGETS),
        library=_choice("library", library, _LIBRARY),
        parallelization=_choice("parallelization", parallelization, PARALLELIZATIONS),
        output=_output(output),
        static_argnames=_names(static_argnames),
        deterministic=_flag("deterministic", deterministic),
        reassociate=_flag("reassociate", reassociate),
        check=_choice("check", check, _CHECK),
        cache=_flag("cache", cache),
    )


def wanted_target(options: JitOptions) -> str:
    """Return the target to use: the decorator's, or where that is "auto" ``SPARSEJIT_TARGET``.

    ``ValueError`` when the environment names no target.
    """
    if options.target != "auto":
        return options.target
    asked = os.environ.get("SPARSEJIT_TARGET")
    return _choice("SPARSEJIT_TARGET", asked, TARGETS) if asked else "auto"


def _listed(choices: Iterable[object]) -> str:
    return ", ".join(map(repr, choices))


def _choice(name: str, value: object, choices: tuple[_Name, ...]) -> _Name:
    if isinstance(value, str):
        for choice in choices:
            if value == choice:
                return choice
    raise ValueError(f"{name} must be one of {_listed(choices)}, not {value!r}")


def _transfer(value: object) -> Transfer:
    if isinstance(value, Transfer):
        return value
    return Transfer(_choice("transfer", value, tuple(member.value for member in Transfer)))


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"{name} must be True or False, not {value!r}")


def _names(value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if isinstance(names, Iterable):
        found = tuple(names)
        if all(isinstance(name, str) and name.isidentifier() for name in found):
            return tuple(dict.fromkeys(found))
    raise ValueError(
        f"static_argnames must be the name of an argument or a sequence of names, not {value!r}"
    )


def _output(value: object) -> Format | dict[int, Format] | None:
    match value:
        case None | Format():
            return value
        case Mapping() if all(
            isinstance(place, int)
            and not isinstance(place, bool)
            and place >= 0
            and isinstance(fmt, Format)
            for place, fmt in value.items()
        ):
            return dict(value)
        case _:
            raise ValueError(
                "output must be a sparsejit.Format, a dict from result position (0, 1, ...) to "
                f"Format, or None, not {value!r}"
            )
