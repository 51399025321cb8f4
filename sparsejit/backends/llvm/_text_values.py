"""What LLVM IR text is made of: values, blocks, phis, and functions to call, with their spellings.

Types are their spelling (``"i64"``, ``"double"``, ``"<4 x double>"``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = [
    "Block",
    "Callee",
    "Phi",
    "Value",
    "integer",
    "lanes_of",
    "scalar_of",
    "undefined",
    "vector_of",
]


class Value:
    """A value: its type and its name, or its text when it is a constant."""

    __slots__ = ("text", "type")

    def __init__(self, kind: str, text: str) -> None:
        self.type: Final = kind
        self.text: Final = text

    def __str__(self) -> str:
        return f"{self.type} {self.text}"

    @property
    def known(self) -> int | None:
        """The number, where this is an integer constant."""
        text = self.text
        if text[0] == "%" or self.type[0] != "i":
            return None
        if text in ("true", "false"):
            return int(text == "true")
        return int(text) if text.lstrip("-").isdigit() else None


def integer(value: int, kind: str = "i64") -> Value:
    """Return an integer constant; it wraps to the width of its type.

    >>> print(integer(-1), integer(300, "i8"), integer(1, "i1"))
    i64 -1 i8 44 i1 true
    """
    if kind == "i1":
        return Value(kind, "true" if value else "false")
    width = int(kind[1:])
    value &= (1 << width) - 1
    return Value(kind, str(value - (1 << width) if value >> (width - 1) else value))


def undefined(kind: str) -> Value:
    """Return a value of which nothing is known."""
    return Value(kind, "poison")


def vector_of(kind: str, lanes: int) -> str:
    """Return the type of ``lanes`` elements of a type; of one, the type itself."""
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def lanes_of(kind: str) -> int:
    """Return how many elements a type has.

    >>> lanes_of("<4 x double>"), lanes_of("ptr")
    (4, 1)
    """
    return int(kind[1 : kind.index(" ")]) if kind[0] == "<" else 1


def scalar_of(kind: str) -> str:
    """Return the type of an element of a vector; of anything else, the type itself."""
    return kind[kind.index("x ") + 2 : -1] if kind[0] == "<" else kind


class Callee:
    """A function to call: declared or defined elsewhere in the module."""

    __slots__ = ("name", "operands", "result")

    def __init__(self, name: str, result: str, operands: Sequence[str]) -> None:
        self.name: Final = name
        self.result: Final = result
        self.operands: Final = tuple(operands)


class Phi:
    """A value that depends on the block from which control came."""

    __slots__ = ("_incoming", "value")

    def __init__(self, value: Value) -> None:
        self.value: Final = value
        self._incoming: list[str] = []

    def add(self, value: Value, block: Block) -> None:
        """Let the value be ``value`` when control comes from ``block``."""
        assert value.type == self.value.type, (value.type, self.value.type)
        self._incoming.append(f"[ {value.text}, %{block.name} ]")

    def __str__(self) -> str:
        return f"{self.value.text} = phi {self.value.type} {', '.join(self._incoming)}"


class Block:
    """A basic block: a name and its lines."""

    __slots__ = ("is_ended", "lines", "name")

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.lines: list[str | Phi] = []
        self.is_ended = False
