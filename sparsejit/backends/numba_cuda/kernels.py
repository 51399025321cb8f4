"""From the kernels of an outlined function to code: text, parameters, cubins, replay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, assert_never

from sparsejit.backends import support
from sparsejit.backends._names import IMPORTED_FROM_NUMPY, fresh_name, python_names
from sparsejit.backends.numba_cuda import device
from sparsejit.backends.numba_cuda._compile import compiled_cubin
from sparsejit.backends.numba_cuda._expressions import KernelExpressions
from sparsejit.backends.numba_cuda._lanes import OwnNames
from sparsejit.backends.numba_cuda._lowered import Lowered, lowered
from sparsejit.backends.numba_cuda._memory import Memory, memory_of, unfilled_rooms
from sparsejit.backends.numba_cuda._replay import replayed
from sparsejit.backends.numba_cuda._source import KernelWriter
from sparsejit.backends.python_source import import_lines, signature_line
from sparsejit.ir.device_code import ExtentParam, KernelCode, PointerParam, ScalarParam, StrideParam
from sparsejit.ir.device_statements import Launch, Schedule
from sparsejit.ir.loop_uses import arrays_written, is_pure, read, variables
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
    free_memrefs,
)
from sparsejit.ir.loop_writing import Names, binary, int_, times
from sparsejit.ir.loops import DimOf, Expr, For, Load, LoopFunc, Memref, Store, Var, View
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import introduced
from sparsejit.ir.types import INDEX

__all__ = ["kernel_codes", "kernel_words"]

_BLOCK = 256
_WARP = 32
_MANY = 1 << 16
"""How many iterations a loop may have of which only the device knows the number."""

_OWN = ("thread", "threads", "lane", "group", "groups")


def kernel_codes(func: LoopFunc) -> dict[str, KernelCode]:
    """Return the code of each kernel of an outlined function, by the name of its ``Launch``.

    >>> from sparsejit.ir.loop_writing import int_
    >>> from sparsejit.ir.loops import Lit, Memref
    >>> from sparsejit.ir.scalar import Const
    >>> from sparsejit.ir.types import INDEX, DType
    >>> n, i, y = Var("n", INDEX), Var("i", INDEX), Memref("y", DType.FLOAT32, 1)
    >>> loop = For(i, int_(0), n, (Store(y, (i,), Lit(Const(0.0, DType.FLOAT32))),), parallel=True)
    >>> func = LoopFunc("f", (n, y), (Launch("k0", Schedule.THREAD, (loop,)),), ())
    >>> print(kernel_codes(func)["k0"].text)
    from numba import cuda
    from numpy import float32, int64
    <BLANKLINE>
    <BLANKLINE>
    def k0(n, y):
        thread = int64(cuda.grid(1))
        threads = int64(cuda.gridsize(1))
        i = thread
        while i < n:
            y[i] = float32(0.0)
            i += threads
    <BLANKLINE>
    """
    views = frozenset(
        stmt.memref.name for stmt in all_statements(func.body) if isinstance(stmt, View)
    )
    launches = [stmt for stmt in all_statements(func.body) if isinstance(stmt, Launch)]
    unfilled = unfilled_rooms(func)
    return {launch.kernel: _kernel_code(func, launch, views, unfilled) for launch in launches}


def _kernel_code(
    func: LoopFunc, launch: Launch, views: frozenset[str], unfilled: frozenset[str]
) -> KernelCode:
    names = Names.of(func)
    memory = memory_of(launch, views, unfilled, names)
    kernel = lowered(launch, memory, names)
    text, entry, parameters = _text(launch, kernel, memory)
    group = _WARP if launch.schedule is Schedule.WARP else 1
    block = _WARP if launch.schedule is Schedule.ONE_THREAD else _BLOCK
    words = tuple(word for _, word in memory.words)
    written = arrays_written(launch.body).keys()
    updated = {
        stmt.memref.name
        for stmt in all_statements(launch.body)
        if isinstance(stmt, Store) and stmt.reduce is not None
    }
    rooms = {original.name for original, _ in memory.private}
    outside = {memref.name for memref in free_memrefs(launch.body)} - rooms
    loads = read(launch.body).keys() & outside

    def replay(arguments: Sequence[Any], blocks: int, seed: int) -> None:
        replayed(text, entry, parameters, arguments, blocks * block, seed)

    return KernelCode(
        entry=entry,
        params=tuple(param for param, _ in memory.words),
        text=text,
        block=block,
        threads=_threads(launch, group),
        reads=frozenset(loads | memory.copied),
        writes=frozenset(written & outside),
        updates=frozenset((updated | (written & loads)) & outside),
        cubin=partial(compiled_cubin, text, entry, words),
        replay=replay,
        workspaces=tuple((alloc.memref, alloc.extents, group) for alloc in memory.workspaces),
    )


def kernel_words(code: KernelCode) -> tuple[Memref | Var, ...]:
    """Return what the words of a kernel's parameters are: memrefs are pointers, variables numbers.

    >>> func = LoopFunc("f", (), (Launch("k", Schedule.ONE_THREAD, ()),), ())
    >>> kernel_words(kernel_codes(func)["k"])
    ()
    """
    words: list[Memref | Var] = []
    for param in code.params:
        match param:
            case PointerParam(memref):
                words.append(memref)
            case ScalarParam(var, part):
                words.append(Var(var.name, var.dtype.real) if part else var)
            case ExtentParam(memref, axis) | StrideParam(memref, axis):
                words.append(Var(f"{memref.name}_{axis}", INDEX))
            case _:
                assert_never(param)
    return tuple(words)


# ---------------------------------------------------------------- text

_RESERVED = frozenset({"cuda", *device.__all__})


def _text(launch: Launch, kernel: Lowered, memory: Memory) -> tuple[str, str, tuple[str, ...]]:
    """The text of a kernel, the name of its function, the names of its parameters."""
    names = _names(launch, kernel, memory)
    own: list[str] = []
    for base in _OWN:
        own.append(fresh_name(base, [*names.values(), *own, *_RESERVED]))
    names |= {f"%{name}": name for name in own}  # no names of the IR
    entry = fresh_name(launch.kernel, [*names.values(), *_RESERVED])
    writer = KernelWriter(kernel, names, KernelExpressions(names, memory), OwnNames(*own))
    for var in _complex_scalars(memory):
        parts = ", ".join(
            names[word.name]
            for param, word in memory.words
            if isinstance(param, ScalarParam) and param.var == var
        )
        writer.line(f"{names[var.name]} = {var.dtype.value}(complex({parts}))")
    writer.write()
    parameters = tuple(names[word.name] for _, word in memory.words)
    body = "\n".join((signature_line(entry, parameters), *writer.lines)) + "\n"
    modules = (
        ("numba", frozenset({"cuda"})),
        ("numpy", IMPORTED_FROM_NUMPY),
        ("sparsejit.backends.numba_cuda.device", frozenset(device.__all__)),
        ("sparsejit.backends.support", frozenset(support.__all__) - set(device.__all__)),
    )
    return f"{import_lines(body, modules)}\n\n{body}", entry, parameters


def _names(launch: Launch, kernel: Lowered, memory: Memory) -> dict[str, str]:
    """The Python name of everything in a kernel."""
    known = [word.name for _, word in memory.words]
    known += [var.name for var in _complex_scalars(memory)]
    known += [item.name for item in introduced(launch.body)]
    known += [total.var.name for total in kernel.totals]
    known += [start.name for start in memory.starts.values()]
    known += [own.name for _, own in memory.private]
    names = python_names(known)
    for name, spelled in names.items():
        if spelled in _RESERVED:
            names[name] = fresh_name(f"{spelled}_", [*names.values(), *_RESERVED])
    return names


def _complex_scalars(memory: Memory) -> list[Var]:
    params = (param for param, _ in memory.words)
    found = [param.var for param in params if isinstance(param, ScalarParam) and param.part]
    return list(dict.fromkeys(found))


# ---------------------------------------------------------------- threads


def _threads(launch: Launch, group: int) -> Expr:
    """How many threads have work: exactly, where the host knows the bounds of the loop."""
    if launch.schedule is Schedule.ONE_THREAD:
        return int_(1)
    loop = launch.body[-1]
    assert isinstance(loop, For)
    own = {item.name for item in introduced(launch.body)}
    bounds = (loop.lower, loop.upper)
    count: Expr
    if all(is_pure(bound) and not variables(bound).keys() & own for bound in bounds):
        starts_at_zero = loop.lower == int_(0)
        count = loop.upper if starts_at_zero else binary(BinaryOp.SUB, loop.upper, loop.lower)
    else:
        count = _walked(loop) or int_(_MANY)
    return count if group == 1 else times(count, int_(group))


def _walked(loop: For) -> Expr | None:
    """The extent of an array from outside that the loop walks along, which bounds its passes."""
    inside = {item.name for item in introduced(loop.body)}
    for stmt in all_statements(loop.body):
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                match part:
                    case Load(memref, (index, *_)) if index == loop.var:
                        if memref.name not in inside:
                            return DimOf(memref, 0)
                    case _:
                        pass
    return None
