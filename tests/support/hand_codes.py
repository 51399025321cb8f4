"""Codes of kernels made by the interpreter, for tests of launch plans.

A kernel's replay runs its loops once, whatever the threads. So plans and the fake device are tested
without any generator of device code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sparsejit.backends.interpreter import InterpreterBackend
from sparsejit.ir.device_code import (
    ExtentParam,
    KernelCode,
    KernelParam,
    PointerParam,
    ScalarParam,
    StrideParam,
)
from sparsejit.ir.device_statements import Launch, LibraryCall, Schedule
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
    free_memrefs,
    free_vars,
    memrefs_written,
)
from sparsejit.ir.loops import (
    Binary,
    DenseResult,
    For,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Search,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX

__all__ = ["hand_kernels", "launched"]

BLOCK = 32


def launched(func: LoopFunc) -> LoopFunc:
    """Return the function with each outermost loop as a kernel: enough for dense results."""
    number = iter(range(1000))

    def block(body: Sequence[Stmt]) -> Iterator[Stmt]:
        for stmt in body:
            match stmt:
                case For():
                    schedule = Schedule.ONE_THREAD
                    if stmt.parallel and not stmt.reductions:
                        schedule = Schedule.THREAD
                    yield Launch(f"k{next(number)}", schedule, (stmt,))
                case Store():
                    yield Launch(f"k{next(number)}", Schedule.ONE_THREAD, (stmt,))
                case LibraryCall():
                    # A sparse result is no matter of outlining loops alone.
                    otherwise = () if stmt.targets else tuple(block(stmt.otherwise))
                    yield replace(stmt, otherwise=otherwise)
                case _:
                    yield stmt

    return LoopFunc(func.name, func.params, tuple(block(func.body)), func.results, func.facts)


# ---------------------------------------------------------------- kernels


def hand_kernels(func: LoopFunc) -> dict[str, KernelCode]:
    """Return the codes of the kernels of a function."""
    found = (stmt for stmt in all_statements(func.body) if isinstance(stmt, Launch))
    return {launch.kernel: kernel_code(launch) for launch in found}


def kernel_code(launch: Launch) -> KernelCode:
    """Return the code of one kernel."""
    memrefs = free_memrefs(launch.body)
    params: list[KernelParam] = []
    for memref in memrefs:
        params.append(PointerParam(memref))
        for axis in range(memref.rank):
            params += [ExtentParam(memref, axis), StrideParam(memref, axis)]
    variables = free_vars(launch.body)
    params += [ScalarParam(var) for var in variables]
    kernel = interpreted(launch.kernel, (*memrefs, *variables), launch.body, ())

    def replay(arguments: Sequence[Any], blocks: int, seed: int) -> None:
        pairs = zip(params, arguments, strict=True)
        kernel([a for p, a in pairs if isinstance(p, PointerParam | ScalarParam)])

    reads, writes, updates = accesses(launch.body)
    return KernelCode(
        launch.kernel,
        tuple(params),
        f"kernel {launch.kernel}",
        BLOCK,
        threads_of(launch),
        reads,
        writes,
        updates,
        lambda arch: b"",
        replay,
    )


def threads_of(launch: Launch) -> Any:
    """Return how many threads have work."""
    last = launch.body[-1]
    if launch.schedule is Schedule.ONE_THREAD or not isinstance(last, For):
        return Lit(Const(1, INDEX))
    inside = [e for bound in (last.lower, last.upper) for e in all_expressions(bound)]
    if any(isinstance(expr, Load) for expr in inside):
        return Lit(Const(2 * BLOCK, INDEX))
    return Binary(BinaryOp.SUB, last.upper, last.lower, INDEX)


def accesses(body: Sequence[Stmt]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the arrays that loops read, write, and update."""
    free = {memref.name for memref in free_memrefs(body)}
    reads: set[str] = set()
    writes: set[str] = set()
    updates: set[str] = set()
    for stmt in all_statements(body):
        writes |= {memref.name for memref in memrefs_written(stmt)}
        if isinstance(stmt, Store) and stmt.reduce is not None:
            updates.add(stmt.memref.name)
        for outer in expressions(stmt):
            for expr in all_expressions(outer):
                match expr:
                    case Load(memref) | Search(memref):
                        reads.add(memref.name)
                    case _:
                        pass
    updates |= reads & writes
    return frozenset(reads & free), frozenset(writes & free), frozenset(updates & free)


def interpreted(
    name: str, params: Sequence[Memref | Var], body: Sequence[Stmt], results: Sequence[Memref]
) -> Any:
    """Return statements as a function of what they need."""
    func = LoopFunc(name, tuple(params), tuple(body), tuple(map(DenseResult, results)))
    backend = InterpreterBackend()
    return backend.load(backend.emit(func))
