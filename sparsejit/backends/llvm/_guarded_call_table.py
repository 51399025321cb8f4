"""The tables of guarded calls: what stands in front, and where objects have their fields.

``_guarded_call`` writes these tables, and the machine code reads them.
"""

from __future__ import annotations

from enum import IntEnum

from sparsejit.backends.llvm._interface import OBJECT_HEAD

__all__ = [
    "BYTES_HEAD",
    "FLAGS",
    "FUNCTIONS",
    "HANDLER",
    "HEAD",
    "TUPLE_HEAD",
    "Answer",
    "Kind",
    "fields",
]

FLAGS = 0x501
"""The flags of an array that matter: contiguous (C), aligned, writeable; strides tell the rest."""

BYTES_HEAD = bytes.__basicsize__ - 1
"""Where the content of a ``bytes`` object begins."""

TUPLE_HEAD = tuple.__basicsize__
"""Where the items of a tuple begin."""

HANDLER = OBJECT_HEAD + 72
"""Where an array keeps the object that frees and resizes its memory."""

FUNCTIONS = (
    "save", "restore", "box", "new_tuple", "keep", "drop", "find", "key_of", "dict_of", "clear",
    "read", "put", "new_array", "free", "take", "clock",
)  # fmt: skip
"""The functions that guarded calls use, as their table names them."""

HEAD = (
    "arguments", "parts", "parts_at", "words", "template_at", "room", "fresh", "fresh_at",
    "num_made", "conditions", "conditions_at", "pairs", "pairs_at", "tallies", "tallies_at",
    "answer", "function", "array_type", "missed", "looks", "none", "handler",
    "large_handler", "clock_number",
    *FUNCTIONS,
)  # fmt: skip
"""The words in front of a table: of what there is how much, and where it begins; addresses."""


class Kind(IntEnum):
    """What a descriptor is of."""

    SEEN = 0
    MADE = 1
    DOUBLE = 2
    WORD = 3
    RECEIVED = 4
    SPARSE = 5
    BUFFER = 6
    NUMBER = 7
    NEW = 8


class Answer(IntEnum):
    """What a call returns that went well: 0, its one array, or the tuple of all."""

    STATUS = 0
    ARRAY = 1
    TUPLE = 2


def fields(*names: str, as_type: str = "i64") -> str:
    """Return what loads words of the head."""
    return "\n".join(
        f"  %{name}.p = getelementptr i64, ptr %table, i64 {HEAD.index(name)}\n"
        f"  %{name} = load {as_type}, ptr %{name}.p"
        for name in names
    )
