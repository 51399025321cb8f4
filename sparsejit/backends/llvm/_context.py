"""What all printers of one kernel share: facts about the whole function, and options."""

from __future__ import annotations

from collections.abc import Mapping

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._options import CodeOptions
from sparsejit.backends.llvm._runs import Run
from sparsejit.backends.llvm._tiles import Tile
from sparsejit.ir.loops import Stmt

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    """Facts about a function by the names of its arrays, variables and loops.

    ``growable`` are the arrays that grow or shrink, ``roots`` name the array whose memory a view
    shows, ``setup`` is what introduces an array or a variable. ``tiles`` are the nests whose rows
    stay in registers, by the name of their outer loop's variable, ``runs`` loops whose rows stay
    there as long as coordinates are equal.
    """

    growable: frozenset[str]
    roots: Mapping[str, str]
    setup: Mapping[str, Stmt]
    tiles: Mapping[str, Tile]
    runs: Mapping[str, Run]
    options: CodeOptions
