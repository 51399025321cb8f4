"""Codes of kernels and library calls made by the interpreter, for tests of launch plans.

A kernel's replay runs its loops once, whatever the threads; a library call's replay runs the loops
that stand for it. So plans and the fake device are tested without any generator of device code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import sparsejit as sj
from sparsejit.backends.interpreter import InterpreterBackend
from sparsejit.ir.device_code import (
    ExtentParam,
    KernelCode,
    KernelParam,
    LibraryArguments,
    LibraryCode,
    LibraryPhase,
    PointerParam,
    ScalarParam,
    StrideParam,
)
from sparsejit.ir.device_statements import Launch, LibraryCall, LibraryOp, Schedule, SparseMatrix
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
    free_memrefs,
    free_vars,
    library_memrefs,
    map_body,
    memrefs_written,
)
from sparsejit.ir.loops import (
    Binary,
    DenseResult,
    For,
    Let,
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
from sparsejit.pipeline import StageOptions, default_pipeline
from sparsejit.runtime.transfer_steps import Layout

__all__ = ["hand_kernels", "hand_library", "launched", "loops_of", "no_layout"]

BLOCK = 32
ALL_KERNELS = frozenset(op.value for op in LibraryOp)


def no_layout() -> Layout:
    """Return the layout of most operands."""
    return Layout.C


def loops_of(function: Any, *args: Any, library: bool = False, **kwargs: Any) -> LoopFunc:
    """Return the loops of a function for these operands, with library calls where asked."""
    lowered = sj.sparse_jit(function, target="interpreter", **kwargs).lower(*args)
    options = StageOptions(
        library_kernels=ALL_KERNELS if library else frozenset(), index_width=32
    )
    return default_pipeline(stage_options=options).lower(lowered._program.func)


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
                    otherwise = tuple(block(stmt.otherwise))
                    yield map_library(stmt, otherwise)
                case _:
                    yield stmt

    return LoopFunc(func.name, func.params, tuple(block(func.body)), func.results, func.facts)


def map_library(stmt: LibraryCall, otherwise: tuple[Stmt, ...]) -> LibraryCall:
    """Return the call with other loops."""
    return LibraryCall(
        stmt.op, stmt.inputs, stmt.output, stmt.alpha, stmt.beta, otherwise, stmt.targets
    )


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


# ---------------------------------------------------------------- library calls


def hand_library(call: LibraryCall) -> LibraryCode:
    """Return the code of a library call."""
    written = {memref.name for memref in call_written(call)}
    read = {memref.name for operand in call.inputs for memref in library_memrefs(operand)}
    output = {memref.name for memref in library_memrefs(call.output)}
    targets = {target.name for target in call.targets}
    sparse = [operand for operand in call.inputs if isinstance(operand, SparseMatrix)]
    streamed = {m.name for operand in sparse for m in operand.buffers} if len(sparse) == 1 else ()
    if call.op is LibraryOp.SDDMM and isinstance(call.output, SparseMatrix):
        streamed = {memref.name for memref in call.output.buffers[:-1]}
    phases = (LibraryPhase("compute", _unused, _unused, ("work",), ()),)
    if call.targets:
        phases += (LibraryPhase("copy", _unused, _unused, (), call.targets),)
    return LibraryCode(
        call,
        "cusparse",
        phases,
        _unused,
        _unused,
        frozenset((read | output) - targets),
        frozenset(written),
        frozenset(streamed),
        lambda arguments: [],
        lambda arrays, arguments: replayed(call, arrays, arguments),
    )


def call_written(call: LibraryCall) -> tuple[Memref, ...]:
    """Return the arrays that a call writes: the values of a sparse output, or all of it."""
    written = library_memrefs(call.output)
    if call.targets or not isinstance(call.output, SparseMatrix):
        return written
    return written[-1:]


def _unused(*args: Any) -> Any:
    raise AssertionError("the fake device calls no library")


def replayed(
    call: LibraryCall, arrays: Mapping[str, Any], arguments: LibraryArguments
) -> dict[str, Any]:
    """Return what a call leaves, by its loops."""
    otherwise = map_body(call.otherwise, change_stmt=_without_kernels)
    memrefs, variables = free_memrefs(otherwise), free_vars(otherwise)
    known = _known_vars(call, arguments)
    outputs = call_written(call)
    copies = {memref.name: np.array(arrays[memref.name]) for memref in memrefs}
    returned = [m for m in outputs if m.name not in copies]
    kernel = interpreted("call", (*memrefs, *variables), otherwise, returned)
    results = kernel(
        [*(copies[m.name] for m in memrefs), *(known[var.name] for var in variables)]
    )
    found = dict(zip((m.name for m in returned), results, strict=True))
    return {memref.name: found.get(memref.name, copies.get(memref.name)) for memref in outputs}


def _known_vars(call: LibraryCall, arguments: LibraryArguments) -> dict[str, Any]:
    found: dict[str, Any] = {}
    operands = (*call.inputs, call.output)
    for operand, values in zip(operands, arguments.extents, strict=True):
        if isinstance(operand, SparseMatrix):
            for expr, value in zip(operand.extents, values, strict=True):
                if isinstance(expr, Var):
                    found[expr.name] = value
        else:
            shape = arguments.arrays[operand.memref.name].shape
            found.update({f"dim({operand.memref.name}, {a})": n for a, n in enumerate(shape)})
    for expr, value in ((call.alpha, arguments.alpha), (call.beta, arguments.beta)):
        if isinstance(expr, Var):
            found[expr.name] = value
    return found


def _without_kernels(stmt: Stmt) -> Sequence[Stmt]:
    return stmt.body if isinstance(stmt, Launch) else (stmt,)


