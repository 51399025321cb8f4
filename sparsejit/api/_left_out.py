"""What is left out of compiled code on request, to measure what it gives: ``SPARSEJIT_WITHOUT``.

In: the environment. Out: names of the backend's lowerings, or ``NESTS``, which stands for the
common loops of several statements. Read where a function is decorated and where it is compiled.
"""

from __future__ import annotations

import os

from sparsejit.backends.llvm import LOWERINGS

__all__ = ["NESTS", "left_out"]

NESTS = "nests"


def left_out() -> frozenset[str]:
    """Return what ``SPARSEJIT_WITHOUT`` names; ``ValueError`` for what there is not.

    >>> left_out()
    frozenset()
    """
    asked = os.environ.get("SPARSEJIT_WITHOUT", "")
    names = frozenset(name for part in asked.split(",") if (name := part.strip()))
    known = (*LOWERINGS, NESTS)
    for name in sorted(names.difference(known)):
        choices = ", ".join(map(repr, known))
        raise ValueError(f"SPARSEJIT_WITHOUT must name some of {choices}, not {name!r}")
    return names
