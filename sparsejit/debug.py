"""What a user can watch: the texts named by `SPARSEJIT_DUMP`, and the logger `sparsejit`.

In: the value of `SPARSEJIT_DUMP`, a comma-separated list of text levels. Out: an `Observer`, which
the compiler calls with a name and a text at each step. An observer gets text and never an object,
so watching a compilation cannot change it. Example, printed to the standard error stream:

    SPARSEJIT_DUMP=tensor,loops python program.py
"""

import logging
import os
import sys
from collections.abc import Callable

__all__ = ["TEXT_LEVELS", "Observer", "dump_observer", "dumped_levels", "logger", "parse_dump"]

Observer = Callable[[str, str], None]
"""Called with the name of a step, `level` or `level:detail`, and the text of the program there."""

TEXT_LEVELS = ("tensor", "decisions", "copies", "loops", "source", "plan", "mlir")
"""The names that `SPARSEJIT_DUMP` and `Lowered.text` know, in the order of the compilation."""

logger = logging.getLogger("sparsejit")
logger.addHandler(logging.NullHandler())


def parse_dump(value: str) -> frozenset[str]:
    """The text levels named in `value`, a comma-separated list; blanks and empty items are skipped.

    Raises `ValueError`, which names the choices, for any other name.

    >>> sorted(parse_dump("tensor, loops"))
    ['loops', 'tensor']
    """
    levels = frozenset(item.strip() for item in value.split(",")) - {""}
    unknown = sorted(levels.difference(TEXT_LEVELS))
    if unknown:
        raise ValueError(
            f"SPARSEJIT_DUMP names {', '.join(map(repr, unknown))}; "
            f"the choices are {', '.join(TEXT_LEVELS)}"
        )
    return levels


def dumped_levels() -> frozenset[str]:
    """The text levels that the environment asks for now; empty when `SPARSEJIT_DUMP` is not set.

    Raises `ValueError` as `parse_dump` does.
    """
    return parse_dump(os.environ.get("SPARSEJIT_DUMP", ""))


def dump_observer(levels: frozenset[str]) -> Observer:
    """An observer that writes the texts of these levels to the standard error stream.

    A step named `tensor:canonicalize` belongs to the level `tensor`.

    >>> observe = dump_observer(frozenset({"loops"}))
    >>> observe("tensor", "not asked for, so nothing is written")
    """

    def observe(step: str, text: str) -> None:
        if step.partition(":")[0] in levels:
            sys.stderr.write(f"// ---- sparsejit {step} ----\n{text.rstrip()}\n")

    return observe
