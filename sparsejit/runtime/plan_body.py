"""The steps for the statements of a function: work on the device, told by the host.

In: statements of the loop IR that the outlining pass left: kernels, library calls, whole-array
statements and scalars of the host. Out: steps. Nothing here decides where arrays lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.errors import UnsupportedError, VerificationError
from sparsejit.ir.device_code import KernelCode, LibraryCode
from sparsejit.ir.device_statements import Launch, LibraryCall, ReadBack, Require
from sparsejit.ir.loop_walk import all_expressions, expressions
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Copy,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Push,
    Resize,
    Scan,
    Search,
    Sort,
    SortPrefix,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.runtime.transfer_steps import Allocate, Free
from sparsejit.runtime.work_steps import (
    AskSizes,
    Branch,
    Check,
    Compute,
    CopyDevice,
    Describe,
    Destroy,
    Fill,
    Grid,
    LaunchKernel,
    Library,
    Loop,
    ReadScalar,
    Repeat,
    ResizeArray,
    RunPhase,
    ScanArray,
    SortArray,
    SortEntries,
    Step,
    ViewOf,
)

__all__ = ["BodySteps"]


@dataclass(frozen=True, slots=True)
class BodySteps:
    """Makes the steps of statements.

    ``fresh(base)`` gives names that the function does not have; ``libraries`` are codes and
    ``names`` the names of library calls, by their ``id``.
    """

    kernels: Mapping[str, KernelCode]
    libraries: Mapping[int, LibraryCode]
    names: Mapping[int, str]
    fresh: Callable[[str], str]

    def block(self, body: Sequence[Stmt]) -> tuple[Step, ...]:
        """Return the steps of a block of statements."""
        return tuple(step for stmt in body for step in self.steps(stmt))

    def steps(self, stmt: Stmt) -> Iterator[Step]:
        """Yield the steps of a statement."""
        _refuse_loads(stmt)
        match stmt:
            case Launch(kernel):
                yield from self._launch(kernel)
            case LibraryCall():
                yield from self._library_call(stmt)
            case For(var, lower, upper, body):
                yield Loop(var, lower, upper, self.block(body))
            case While(condition, body):
                yield Repeat(condition, self.block(body))
            case If(condition, then, orelse):
                yield Branch(condition, self.block(then), self.block(orelse))
            case Let(var, value) | Assign(var, value):
                yield Compute(var, value)
            case ReadBack(var, memref, indices):
                yield ReadScalar(var, memref, indices)
            case Require(condition, text):
                yield Check(condition, text)
            case _:
                yield from self._whole_array(stmt)

    def _whole_array(  # noqa: C901 - one case for each kind
        self, stmt: Stmt
    ) -> Iterator[Step]:
        match stmt:
            case Alloc(memref, extents, fill):
                yield Allocate(memref, extents)
                if fill is not None:
                    yield Fill(memref, fill)
            case Dealloc(memref):
                yield Free(memref)
            case Copy(target, source):
                yield CopyDevice(target, source)
            case View(memref, source, offsets, sizes, strides, dropped):
                yield ViewOf(memref, source, offsets, sizes, strides, dropped)
            case Scan(memref, op):
                yield ScanArray(memref, op)
            case Resize(memref, count):
                yield ResizeArray(memref, count)
            case SortPrefix(memref, count):
                yield SortArray(memref, count)
            case Sort(order, coordinates, _, count):
                yield Allocate(order, (count,))
                yield SortEntries(order, coordinates, count)
            case Store() | Push() | Assemble():
                raise UnsupportedError(
                    f"a {type(stmt).__name__} on a device, outside of kernels",
                    hint='use target="cpu"',
                    reasons=("the statement is no part of a kernel and no library's",),
                )
            case _:
                raise VerificationError("statements have steps", f"no step for {stmt!r}")

    # ------------------------------------------------------------ kernels

    def _launch(self, kernel: str) -> Iterator[Step]:
        code = self.kernels[kernel]
        blocks = Var(self.fresh(f"{kernel}_blocks"), INDEX)
        yield Grid(blocks, kernel)
        for memref, extents, group in code.workspaces:
            yield Allocate(memref, (_groups(blocks, code.block, group), *extents))
        workspaces = tuple(memref for memref, _, _ in code.workspaces)
        yield LaunchKernel(kernel, blocks, workspaces)
        yield from map(Free, workspaces)

    # ------------------------------------------------------------ library calls

    def _library_call(self, stmt: LibraryCall) -> Iterator[Step]:
        otherwise = self.block(stmt.otherwise)
        code = self.libraries.get(id(stmt))
        if code is None:
            yield from otherwise
            return
        yield Library(self.names[id(stmt)], self._phases(self.names[id(stmt)], code), otherwise)

    def _phases(self, name: str, code: LibraryCode) -> tuple[Step, ...]:
        steps: list[Step] = [Describe(name)]
        held: list[Memref] = []
        for number, phase in enumerate(code.phases):
            sizes = [
                Var(self.fresh(f"{name}_{what}_size"), INDEX)
                for what in (*phase.workspaces, *(target.name for target in phase.targets))
            ]
            if sizes:
                steps.append(AskSizes(name, number, tuple(sizes)))
            workspaces = [
                Memref(self.fresh(f"{name}_{what}"), DType.UINT8, 1) for what in phase.workspaces
            ]
            made = zip((*workspaces, *phase.targets), sizes, strict=True)
            steps.extend(Allocate(memref, (size,)) for memref, size in made)
            steps.append(RunPhase(name, number, tuple(workspaces)))
            held.extend(workspaces)
        return (*steps, Destroy(name), *map(Free, held))


def _groups(blocks: Var, block: int, group: int) -> Expr:
    """Return how many groups of threads a grid has."""
    if block == group:
        return blocks
    count: Expr = blocks
    if block % group == 0:
        return Binary(BinaryOp.MUL, count, Lit(Const(block // group, INDEX)), INDEX)
    threads = Binary(BinaryOp.MUL, count, Lit(Const(block, INDEX)), INDEX)
    return Binary(BinaryOp.FLOORDIV, threads, Lit(Const(group, INDEX)), INDEX)


def _refuse_loads(stmt: Stmt) -> None:
    """The host reads memory of the device by ``ReadBack`` alone."""
    for outer in expressions(stmt):
        for expr in all_expressions(outer):
            if isinstance(expr, Load | Search):
                raise VerificationError(
                    "the host loads nothing from a device", f"{type(stmt).__name__}: {expr!r}"
                )
