"""Whether what an operation reads may be read later instead.

In: a function. Out: ``Moves``, which answers for values and the operations between. Rewrites ask it
before they compute something where it is used rather than where it was written.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparsejit.ir.tensor import (
    AllocTensor,
    Empty,
    ExtractSlice,
    For,
    Generic,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    Reshape,
    TensorFunc,
    Value,
    While,
)
from sparsejit.ir.walk import all_ops, blocks_of, definitions, results_of

__all__ = ["Moves"]


class Moves:
    """Whether what an operation reads may be read later instead.

    Not past a write into the same memory, or into a parameter: that would cost a copy, or change
    what a call says about arguments that overlap.
    """

    def __init__(self, func: TensorFunc) -> None:
        self._made = definitions(func)
        self._materialized: set[str] = set()
        self._written: dict[int, tuple[Op, frozenset[str] | None]] = {}
        for op in all_ops(func.ops):
            if isinstance(op, Materialize):
                self._materialized.update(name for name in self._places(op.source))

    def _places(self, value: Value) -> Iterator[str]:
        """Yield the names of the values in whose memory ``value`` may lie, itself first."""
        seen: set[str] = set()
        open_values = [value]
        while open_values:
            current = open_values.pop()
            if current.name in seen:
                continue
            seen.add(current.name)
            yield current.name
            op = self._made.get(current.name)
            match op:
                case Generic(init=dest) | Insert(dest=dest) | InsertSlice(dest=dest):
                    open_values.append(dest)
                case Materialize(source=source, dest=dest):
                    open_values += [source, dest]
                case ExtractSlice(source=source) | Reshape(source=source):
                    open_values.append(source)
                case For(inits=inits) | While(inits=inits):
                    open_values += [*inits, *(v for b in blocks_of(op) for v in b.taken)]
                case _:
                    pass

    def _is_fresh(self, name: str) -> bool:
        op = self._made.get(name)
        return op is not None and not isinstance(op, Materialize)

    def may_move(self, values: tuple[Value, ...], past: tuple[Op, ...]) -> bool:
        """Return whether ``values`` may be read after the operations ``past`` instead of before."""
        read = {name for value in values for name in self._places(value)}
        for op in past:
            written = self._writes(op)
            if written is None or not written.isdisjoint(read):
                return False
        return True

    def _writes(self, op: Op) -> frozenset[str] | None:
        """Return in what memory an operation writes; None where nothing may move past it.

        Found once for each operation, which is kept, so is its identity.
        """
        known = self._written.get(id(op))
        if known is None:
            parts = [self._writes_itself(inner) for inner in all_ops((op,))]
            found = [part for part in parts if part is not None]
            whole = frozenset[str]().union(*found) if len(found) == len(parts) else None
            known = self._written[id(op)] = op, whole
        return known[1]

    def _writes_itself(self, op: Op) -> frozenset[str] | None:
        match op:
            case Empty() | AllocTensor():
                return frozenset()
            case Materialize():
                return None
            case _:
                pass
        places = frozenset(name for value in results_of(op) for name in self._places(value))
        known = all(self._is_fresh(name) for name in places)
        return places if known and not places & self._materialized else None
