"""Loop pass: all work on arrays becomes kernels; what is left is what a host does.

In: a loop function. Out: the same function (``host_form`` gives it back) whose arrays may lie in
device memory. Parallel loops are kernels, and so are sequential ones whose reductions may race;
other work on elements runs in one thread or one warp. The host keeps control flow, allocations,
changes of size, copies, scans and sorts, and reads back the numbers that it needs. Arrays that grow
are measured first; ``Assemble`` and the gathering of sorted entries become scans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit.errors import UnsupportedError
from sparsejit.ir.device_statements import Launch, LibraryCall
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_uses import roots
from sparsejit.ir.loop_walk import all_statements, map_body, memrefs, result_memrefs
from sparsejit.ir.loop_writing import Names, int_
from sparsejit.ir.loops import Alloc, Assemble, For, LoopFunc, Memref, Sort, Stmt, Store, View
from sparsejit.ir.stored_facts import RowLengths
from sparsejit.ir.user_functions import called_by_loops
from sparsejit.passes._device_assembly import assembled
from sparsejit.passes._equal_runs import gather_in_parallel
from sparsejit.passes._exact_allocations import allocate_exactly
from sparsejit.passes._kernel_schedules import (
    ChooseSchedule,
    KernelShape,
    deciding_array,
    deciding_rows,
    schedule_by_rows,
)
from sparsejit.passes._outlining import Outliner

__all__ = ["outline_kernels"]


def outline_kernels(
    func: LoopFunc,
    *,
    ordered: bool = False,
    rows: Sequence[RowLengths | None] = (),
    choose: ChooseSchedule | None = None,
) -> LoopFunc:
    """Return ``func`` with all work on arrays in ``Launch``.

    ``ordered`` keeps the order of every sum (``deterministic=True``, ``reassociate=False``): no
    reduction of floats is split or raced. ``rows`` says of each array among the parameters how long
    the rows by its positions are, if that is known; schedules depend on it, as facts say.
    ``choose`` picks the schedule of a kernel by its shape instead. Raises ``UnsupportedError`` for
    what no device can do, with the reason.

    >>> from sparsejit.ir.loop_printing import print_loops
    >>> from sparsejit.ir.scalar import Const
    >>> from sparsejit.ir.types import INDEX, DType
    >>> from sparsejit.ir.loop_writing import int_
    >>> from sparsejit.ir.loops import For, Lit, Memref, Store, Var
    >>> n, i, y = Var("n", INDEX), Var("i", INDEX), Memref("y", DType.FLOAT32, 1)
    >>> store = Store(y, (i,), Lit(Const(0.0, DType.FLOAT32)))
    >>> loop = For(i, int_(0), n, (store,), parallel=True)
    >>> print(print_loops(outline_kernels(LoopFunc("f", (n, y), (loop,), ()))).strip())
    func @f(n: index, y: memref<f32>) {
      launch k0, a thread an iteration, {
        parallel for i in 0 .. n {
          y[i] = 0.0
        }
      }
      return
    }
    """
    for function in called_by_loops(func.body):
        raise UnsupportedError(
            f"'{function.text}' is compiled by Numba for the CPU, and no kernel can call it",
            hint="write it with operations that can be read (see the tutorial), or target='cpu'",
        )
    func = _without_unused_views(allocate_exactly(_assembled(func)))
    names = Names.of(func)
    func = replace(func, body=gather_in_parallel(func.body, names))
    arrays = [param.name for param in func.params if isinstance(param, Memref)]
    known = {
        name: lengths for name, lengths in zip(arrays, rows, strict=False) if lengths is not None
    }
    outliner = Outliner(names, roots(func), ordered, choose or schedule_by_rows(known))
    body = tuple(outliner.block(func.body))
    facts = (*func.facts, *_facts(body, outliner.shapes, known))
    deciding = set(map(deciding_array, outliner.shapes.values()))
    names_of_rows = tuple(name for name in arrays if name in deciding)
    return replace(func, body=body, facts=facts, deciding=names_of_rows)


def _facts(
    body: Sequence[Stmt], shapes: Mapping[str, KernelShape], known: Mapping[str, RowLengths]
) -> Iterator[Fact]:
    """Yield a fact for each kernel whose schedule depends on the lengths of rows."""
    fallback = {
        stmt.kernel
        for call in all_statements(body)
        if isinstance(call, LibraryCall)
        for stmt in all_statements(call.otherwise)
        if isinstance(stmt, Launch)
    }
    for stmt in all_statements(body):
        if not isinstance(stmt, Launch) or stmt.kernel in fallback or stmt.kernel not in shapes:
            continue
        shape = shapes[stmt.kernel]
        lengths = deciding_rows(shape, known)
        if lengths is not None:
            text = f"{stmt.schedule.value}: rows by {shape.walks[0]} are {lengths.value}"
            yield Fact(FactKind.SCHEDULE, stmt.kernel, text)


def _assembled(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with ``Assemble`` as statements; what is sorted by nothing is in order."""
    names = Names.of(func)

    def change(stmt: Stmt) -> Iterable[Stmt]:
        match stmt:
            case Assemble():
                return assembled(stmt, names)
            case Sort(order, (), _, count):
                e = names.var("e")
                each = For(e, int_(0), count, (Store(order, (e,), e),), parallel=True)
                return Alloc(order, (count,)), each
            case _:
                return (stmt,)

    return replace(func, body=map_body(func.body, change_stmt=change))


def _without_unused_views(func: LoopFunc) -> LoopFunc:
    """Leave out views that nothing uses: what they view may not be on the device at all."""
    used = {memref.name for stmt in all_statements(func.body) for memref in memrefs(stmt)}
    used |= {memref.name for memref in result_memrefs(func)}

    def change(stmt: Stmt) -> Iterable[Stmt]:
        return () if isinstance(stmt, View) and stmt.memref.name not in used else (stmt,)

    body = map_body(func.body, change_stmt=change)
    return func if body == func.body else _without_unused_views(replace(func, body=body))
