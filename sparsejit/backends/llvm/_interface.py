"""How a kernel is called: what of its function is known without the statements.

In: a function as it is compiled. Out: an ``Interface``. A process that finds the code of a kernel
on disk finds this beside it, and neither lowers nor prints anything.
"""

from __future__ import annotations

import pickle

from sparsejit._dataclasses import dataclass
from sparsejit.backends.disk_cache import read_entry, write_entry
from sparsejit.debug import logger
from sparsejit.ir.loop_uses import roots
from sparsejit.ir.loop_walk import all_expressions, all_statements, result_memrefs
from sparsejit.ir.loops import (
    Alloc,
    Call,
    DimOf,
    Expr,
    Load,
    LoopFunc,
    Memref,
    Push,
    Resize,
    Result,
    Search,
    Var,
)

__all__ = [
    "OBJECT_HEAD",
    "Interface",
    "growable",
    "owned_roots",
    "preallocated",
    "read_interface",
    "write_interface",
]

OBJECT_HEAD = object.__basicsize__
"""Where the fields of a NumPy array begin, behind what all objects have: data, rank, extents."""

_KIND = "interface"


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameters and the results of a kernel.

    ``made`` are the allocations of results that the caller makes. ``shown`` are the arrays of the
    results, each with the allocation or parameter whose memory it shows, ``owned`` those that the
    kernel allocates for them. ``described`` is a key of all that the code depends on.
    """

    params: tuple[Memref | Var, ...]
    results: tuple[Result, ...]
    made: tuple[Alloc, ...]
    shown: tuple[tuple[Memref, str], ...]
    owned: tuple[str, ...]
    can_fail: bool
    described: str

    @staticmethod
    def of(func: LoopFunc, described: str, *, has_status: bool) -> Interface:
        """Return the interface of a function; ``has_status`` where it says what failed."""
        made = preallocated(func)
        names = {stmt.memref.name for stmt in made}
        allocates = any(
            isinstance(stmt, Alloc) and stmt.memref.name not in names
            for stmt in all_statements(func.body)
        )
        return Interface(
            func.params,
            func.results,
            made,
            tuple(_result_roots(func)),
            owned_roots(func),
            allocates or has_status,
            described,
        )

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the arrays that the caller makes, by name."""
        return {stmt.memref.name: number for number, stmt in enumerate(self.made)}


def write_interface(key: str, interface: Interface) -> None:
    """Keep the interface of a kernel under a key of all that its function is made from."""
    write_entry(_KIND, key, _mark(key) + pickle.dumps(interface))


def read_interface(key: str) -> Interface | None:
    """Return what was kept under ``key``, None where there is nothing that can be used."""
    stored = read_entry(_KIND, key)
    if stored is None:
        return None
    mark = _mark(key)
    if stored.startswith(mark):
        found = pickle.loads(stored[len(mark) :])
        if isinstance(found, Interface):
            return found
    logger.warning("a cached interface cannot be used and is made again: %s", key)
    return None


def _mark(key: str) -> bytes:
    """An entry says whose it is: it is not read as anything else."""
    return f"interface {key}\n".encode()


def preallocated(func: LoopFunc) -> tuple[Alloc, ...]:
    """Return the allocations of results that the caller can make: extents known beforehand."""
    params = {param.name for param in func.params}
    wanted = {memref.name for memref in result_memrefs(func)} - growable(func)

    def is_known(expr: Expr) -> bool:
        parts = list(all_expressions(expr))
        names = [part.name for part in parts if isinstance(part, Var)]
        names += [part.memref.name for part in parts if isinstance(part, DimOf)]
        computed = any(isinstance(part, Load | Search | Call) for part in parts)
        return not computed and params.issuperset(names)

    return tuple(
        stmt
        for stmt in func.body
        if isinstance(stmt, Alloc)
        and stmt.memref.name in wanted
        and all(is_known(extent) for extent in stmt.extents)
    )


def _result_roots(func: LoopFunc) -> list[tuple[Memref, str]]:
    """Return the result arrays, each with the allocation or parameter whose memory it shows."""
    whole = roots(func)
    return [(memref, whole.get(memref.name, memref.name)) for memref in result_memrefs(func)]


def owned_roots(func: LoopFunc) -> tuple[str, ...]:
    """Return the allocations that the function makes and hands over in results."""
    other = {param.name for param in func.params}
    other |= {stmt.memref.name for stmt in preallocated(func)}
    return tuple(dict.fromkeys(root for _, root in _result_roots(func) if root not in other))


def growable(func: LoopFunc) -> frozenset[str]:
    """Return the arrays whose length changes, by name."""
    return frozenset(
        stmt.memref.name for stmt in all_statements(func.body) if isinstance(stmt, Push | Resize)
    )
