"""``plan_launch``: from a function of kernels and library calls to the steps that run it.

In: the function, a transfer strategy, where the caller's arrays lie, and the codes. Out: a
``LaunchPlan``. Pure: no device is asked. The order of the steps is that of the upstream change:
take all arrays; pin them; allocate and copy, each with a token; await; compute; free in order; copy
out what was written, free it, wait; unpin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import KernelCode, LibraryCode, LibraryCodes, LibraryRefusal
from sparsejit.ir.device_statements import Launch, LibraryCall
from sparsejit.ir.loop_walk import all_statements, memrefs_defined, result_memrefs
from sparsejit.ir.loops import Alloc, DimOf, For, Let, LoopFunc, Memref, Resize, Stmt, Var
from sparsejit.runtime.placing import How, place_argument, place_result, place_upload
from sparsejit.runtime.plan import LaunchPlan, Placed, Strategy
from sparsejit.runtime.plan_body import BodySteps
from sparsejit.runtime.transfer_steps import (
    Allocate,
    Await,
    CopyIn,
    CopyOut,
    Free,
    Home,
    Layout,
    Map,
    NewResult,
    Pack,
    Placement,
    Register,
    Release,
    Reserve,
    Source,
    Stage,
    Take,
    TakeScalar,
    Unpack,
    Unregister,
    Unstage,
    Wait,
)
from sparsejit.runtime.uses import Uses, uses_of
from sparsejit.runtime.work_steps import CopyDevice, Return, Step

__all__ = ["no_library", "plan_launch", "plan_upload"]


def plan_launch(
    func: LoopFunc,
    strategy: Strategy,
    placements: Mapping[str, Placement],
    kernels: Mapping[str, KernelCode],
    libraries: LibraryCodes,
    results: Home = Home.HOST,
) -> LaunchPlan:
    """Return the plan of ``func`` for arrays that lie as ``placements`` say, by memref.

    An array without an entry lies on the host in C order. ``results`` says where fresh results
    are wanted.

    >>> from sparsejit.ir.types import DType
    >>> x = Memref("x", DType.FLOAT64, 1)
    >>> plan = plan_launch(LoopFunc("f", (x,), (), ()), Strategy.REGULAR_DMA, {}, {}, no_library)
    >>> [type(step).__name__ for step in plan.steps]
    ['Take', 'Return']
    """
    codes, refusals = _library_codes(func, libraries)
    uses = uses_of(func, kernels, codes)
    planner = _Planner(func, strategy, placements, kernels, codes, results, uses)
    steps = planner.steps()
    calls = {uses.library_names[number]: code for number, code in codes.items()}
    used = {stmt.kernel for stmt in all_statements(func.body) if isinstance(stmt, Launch)}
    return LaunchPlan(
        func.name,
        strategy,
        steps,
        tuple(planner.placed.values()),
        frozenset(planner.assigned),
        refusals,
        {name: code for name, code in kernels.items() if name in used},
        calls,
    )


def no_library(call: LibraryCall) -> LibraryRefusal:
    """Refuse every call: what runs where there is no library."""
    return LibraryRefusal("there is no library")


def _library_codes(
    func: LoopFunc, libraries: LibraryCodes
) -> tuple[dict[int, LibraryCode], tuple[str, ...]]:
    codes: dict[int, LibraryCode] = {}
    refusals: list[str] = []
    for stmt in all_statements(func.body):
        if isinstance(stmt, LibraryCall):
            answer = libraries(stmt)
            if isinstance(answer, LibraryRefusal):
                refusals.append(f"{stmt.op.value}: {answer.reason}")
            else:
                codes[id(stmt)] = answer
    return codes, tuple(refusals)


@dataclass(frozen=True, slots=True)
class _Argument:
    memref: Memref
    placement: Placement
    how: How
    is_written: bool

    @property
    def source(self) -> Source:
        """Which memory of the host is copied."""
        if self.how is How.STAGED:
            return Source.STAGED
        return Source.PACKED if self.is_packed else Source.ARRAY

    @property
    def is_packed(self) -> bool:
        return self.how is How.COPIED and self.placement.layout is Layout.STRIDED

    @property
    def is_copied(self) -> bool:
        return self.how in (How.COPIED, How.STAGED, How.REGISTERED)

    @property
    def layout(self) -> Layout:
        """The order of its device array."""
        is_fortran = self.placement.layout is Layout.FORTRAN
        return Layout.FORTRAN if is_fortran else Layout.C


class _Planner:
    def __init__(
        self,
        func: LoopFunc,
        strategy: Strategy,
        placements: Mapping[str, Placement],
        kernels: Mapping[str, KernelCode],
        codes: Mapping[int, LibraryCode],
        home: Home,
        uses: Uses,
    ) -> None:
        self.func, self.home, self.uses = func, home, uses
        self.placed: dict[str, Placed] = {}
        self.arguments: list[_Argument] = []
        self.fresh = _fresh_names(func)
        for memref in (param for param in func.params if isinstance(param, Memref)):
            placement = placements.get(memref.name, Placement())
            how, self.placed[memref.name] = place_argument(memref, placement, strategy, uses)
            written = bool(uses.writes(memref.name))
            self.arguments.append(_Argument(memref, placement, how, written))
        self.results = self._results(strategy)
        self.body = BodySteps(kernels, codes, uses.library_names, self.fresh)

    @property
    def assigned(self) -> Iterator[str]:
        return (argument.memref.name for argument in self.arguments if argument.is_written)

    def _results(self, strategy: Strategy) -> dict[str, tuple[Memref, How]]:
        """Return, by the names of the results, the arrays that go out and how.

        What is part of another array, or an argument, goes out as a copy.
        """
        made = {stmt.memref.name for stmt in self.func.body if isinstance(stmt, Alloc)}
        resized = (s for s in all_statements(self.func.body) if isinstance(s, Resize))
        made -= {stmt.memref.name for stmt in resized}
        params = {param.name for param in self.func.params}
        found: dict[str, tuple[Memref, How]] = {}
        for memref in result_memrefs(self.func):
            name = memref.name
            if name in found:
                continue
            if name in params or self.uses.root(name) != name:
                memref = Memref(self.fresh(f"{name}_packed"), memref.dtype, memref.rank)
            how, placed = place_result(memref, name in made, strategy, self.home, self.uses)
            found[name], self.placed[memref.name] = (memref, how), placed
        return found

    # ------------------------------------------------------------ the whole plan

    def steps(self) -> tuple[Step, ...]:
        return (
            *self._take(),
            *self._pin(),
            *self._copy_in(),
            *self._work(),
            *self._pack_results(),
            *self._copy_out(),
            *self._unpin(),
            Return(tuple(self.results[m.name][0] for m in result_memrefs(self.func)), self.home),
        )

    def _take(self) -> Iterator[Step]:
        arguments = iter(self.arguments)
        for param in self.func.params:
            if isinstance(param, Var):
                yield TakeScalar(param)
            else:
                yield Take(param, next(arguments).placement)

    def _pin(self) -> Iterator[Step]:
        for argument in self.arguments:
            if argument.is_packed:
                yield Pack(argument.memref)
            if argument.how is How.STAGED:
                yield Stage(argument.memref)
            if argument.how in (How.REGISTERED, How.MAPPED):
                yield Register(argument.memref)
            if argument.how is How.MAPPED:
                yield Map(argument.memref)

    def _copy_in(self) -> Iterator[Step]:
        for number, argument in enumerate(self._copied()):
            memref, allocated, copied = argument.memref, f"t{2 * number}", f"t{2 * number + 1}"
            extents = tuple(DimOf(memref, axis) for axis in range(memref.rank))
            yield Allocate(memref, extents, allocated, argument.layout)
            yield CopyIn(memref, argument.source, allocated, copied)

    def _copied(self) -> list[_Argument]:
        return [argument for argument in self.arguments if argument.is_copied]

    def _work(self) -> Iterator[Step]:
        """The statements, each behind the transfers that it needs; inputs end with their uses."""
        tokens = {a.memref.name: f"t{2 * n + 1}" for n, a in enumerate(self._copied())}
        mapped = {m.name for m, how in self.results.values() if how is How.MAPPED}
        for place, stmt in enumerate(self.func.body):
            used = self.uses.used_in(place)
            wanted = tuple(tokens.pop(name) for name in tuple(tokens) if name in used)
            if wanted:
                yield Await(wanted)
            if isinstance(stmt, Alloc) and stmt.memref.name in mapped:
                yield NewResult(stmt.memref, stmt.extents)
                yield Register(stmt.memref)
                yield Map(stmt.memref)
            else:
                yield from self.body.steps(stmt)
            for argument in self._copied():
                name = argument.memref.name
                if not argument.is_written and self.uses.last(name) == place:
                    yield Free(argument.memref)

    # ------------------------------------------------------------ what comes back

    def _pack_results(self) -> Iterator[Step]:
        """Copy results that are parts of other arrays into arrays of their own."""
        originals = {memref.name: memref for memref in result_memrefs(self.func)}
        for name, (memref, _) in self.results.items():
            if memref.name != name:
                original = originals[name]
                extents = tuple(DimOf(original, axis) for axis in range(original.rank))
                yield Allocate(memref, extents)
                yield CopyDevice(memref, original)
        roots = {self.uses.root(name) for name, (memref, _) in self.results.items()}
        own = {memref.name for memref, _ in self.results.values()}
        for stmt in self.func.body:
            for memref in memrefs_defined(stmt):
                if memref.name in roots - own:
                    yield Free(memref)

    def _copy_out(self) -> Iterator[Step]:
        written = [a for a in self._copied() if a.is_written]
        fresh = [pair for pair in self.results.values() if self.home is Home.HOST]
        for memref, how in fresh:
            if how is not How.MAPPED:
                yield NewResult(memref)
                if how is How.STAGED:
                    yield Reserve(memref)
        for argument in written:
            yield CopyOut(argument.memref, argument.source)
            yield Free(argument.memref)
        for memref, how in fresh:
            if how is not How.MAPPED:
                yield CopyOut(memref, Source.STAGED if how is How.STAGED else Source.ARRAY)
                yield Free(memref)
        if fresh or self._must_wait():
            yield Wait()

    def _must_wait(self) -> bool:
        """Whether the host's memory is still in use, or holds what comes back."""
        on_host = (a for a in self.arguments if a.how is not How.RESIDENT)
        pinned = (How.REGISTERED, How.MAPPED)
        return any(a.is_written or a.how in pinned for a in on_host)

    def _unpin(self) -> Iterator[Step]:
        for argument in self.arguments:
            if argument.how is How.STAGED:
                if argument.is_written:
                    yield Unstage(argument.memref)
                yield Release(argument.memref)
            if argument.is_packed and argument.is_written:
                yield Unpack(argument.memref)
            if argument.how in (How.REGISTERED, How.MAPPED):
                yield Unregister(argument.memref)
        for memref, how in self.results.values():
            if how is How.STAGED:
                yield Unstage(memref)
                yield Release(memref)
            if how is How.MAPPED:
                yield Unregister(memref)


def plan_upload(memref: Memref, strategy: Strategy, placement: Placement) -> LaunchPlan:
    """Return the plan that copies one array to the device and returns it there.

    >>> from sparsejit.ir.types import DType
    >>> x = Memref("x", DType.FLOAT64, 1)
    >>> plan = plan_upload(x, Strategy.PINNED_DMA, Placement())
    >>> [type(step).__name__ for step in plan.steps]
    ['Take', 'Stage', 'Allocate', 'CopyIn', 'Await', 'Wait', 'Release', 'Return']
    """
    how = place_upload(placement, strategy)
    argument = _Argument(memref, placement, how, is_written=False)
    extents = tuple(DimOf(memref, axis) for axis in range(memref.rank))
    steps: list[Step] = [Take(memref, placement)]
    end: list[Step] = []
    if argument.is_packed:
        steps.append(Pack(memref))
    if how is How.STAGED:
        steps.append(Stage(memref))
        end.append(Release(memref))
    if how is How.REGISTERED:
        steps.append(Register(memref))
        end.append(Unregister(memref))
    steps += [
        Allocate(memref, extents, "t0", argument.layout),
        CopyIn(memref, argument.source, "t0", "t1"),
        Await(("t1",)),
        Wait(),
        *end,
        Return((memref,), Home.DEVICE),
    ]
    return LaunchPlan(memref.name, strategy, tuple(steps))


def _fresh_names(func: LoopFunc) -> Callable[[str], str]:
    """Return a function that gives names which ``func`` does not have."""
    taken = {param.name for param in func.params}
    for stmt in all_statements(func.body):
        taken.update(_introduced(stmt))

    def fresh(base: str) -> str:
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        return name

    return fresh


def _introduced(stmt: Stmt) -> Sequence[str]:
    if isinstance(stmt, Let | For):
        return (stmt.var.name,)
    return tuple(memref.name for memref in memrefs_defined(stmt))
