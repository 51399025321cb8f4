"""The facts that One-Shot analysis asks for, as data: operations, their operands, their values.

``_op_effects`` fills them in for a ``TensorFunc``; the analysis and copy insertion read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sparsejit.ir import tensor

__all__ = ["FUNCTION", "Alias", "BlockOf", "Flow", "FlowOp", "Operand", "Site", "Use"]

FUNCTION = -1


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """Operand ``operand`` of the flow operation ``op`` (its place in ``Flow.ops``)."""

    op: int
    operand: int


@dataclass(frozen=True, slots=True)
class Alias:
    """A value that lives in the operand's buffer if the operand is used in place.

    ``part``: only in a part of it, so never equivalent. ``carried``: equivalent if these two
    values are (a loop's argument and what its body yields for it). ``maybe``: in one of several
    operands' buffers (what the branches yield), so equivalent if all of those are one buffer.
    """

    value: str
    part: bool = False
    carried: tuple[str, str] | None = None
    maybe: bool = False


class BlockOf(NamedTuple):
    """Block ``block`` of the flow operation ``op`` (its place in ``Flow.ops``)."""

    op: int
    block: int


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor operand: does the operation read its elements, write them, hand on its buffer?

    ``reads_through``: it is read as well if this value is (a loop reads an initial value when its
    body reads the argument). ``must``: it has to be used in place, or the program is refused.
    """

    value: tensor.Value
    role: str
    reads: bool = False
    reads_through: str | None = None
    writes: bool = False
    must: bool = False
    alias: Alias | None = None


@dataclass(frozen=True, slots=True)
class FlowOp:
    """One operation as upstream sees it.

    ``op`` is the number of our operation and ``label`` its name in texts; ``path`` the blocks
    around it, outermost first; ``args`` the arguments of each of its own blocks; ``undefined``:
    the result has no contents yet. ``repetitive``: its blocks may run again and again;
    ``exclusive``: only one of them runs.
    ``identity``: for each operand, whether an elementwise loop reads it at its own place.
    ``carrier`` is the place among the operands of one that only carries loop extents upstream.
    """

    op: int
    upstream: str
    label: str
    operands: tuple[Operand, ...] = ()
    results: tuple[tensor.Value, ...] = ()
    args: tuple[tuple[tensor.Value, ...], ...] = ()
    path: tuple[BlockOf, ...] = ()
    undefined: bool = False
    repetitive: bool = False
    exclusive: bool = False
    identity: tuple[bool, ...] = ()
    carrier: int | None = None
    source: tensor.Op | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """Where a value comes from: ``kind`` is "result" or "argument"; ``block`` is the path to it."""

    value: tensor.Value
    op: int
    kind: str
    number: int
    block: tuple[BlockOf, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """All operations, the site of each value, its uses, and which values must not be written.

    ``aliased`` has, for a result, the operands in whose buffer it may live; ``idle_counters`` are
    the induction symbols of loops that never run.
    """

    ops: tuple[FlowOp, ...]
    sites: dict[str, Site]
    uses: dict[str, tuple[Use, ...]]
    aliased: dict[str, tuple[tuple[Use, Alias], ...]]
    read_only: frozenset[str]
    idle_counters: frozenset[int]
    func: tensor.TensorFunc

    def operand(self, use: Use) -> Operand:
        """Return the facts of a use."""
        return self.ops[use.op].operands[use.operand]

    def all_uses(self) -> Iterator[Use]:
        """Return every use, in program order."""
        for number, op in enumerate(self.ops):
            for operand in range(len(op.operands)):
                yield Use(number, operand)

    def aliasing_operands(self, value: str) -> tuple[tuple[Use, Alias], ...]:
        """Return the operands in whose buffer ``value`` may live, with the relation."""
        return self.aliased.get(value, ())
