"""Plans: the ways to lower one ``Generic``, the cheapest first.

A plan says over which loops, in which order, whether operands that do not fit the order are
searched or converted, and whether the result goes through a workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from sparsejit._dataclasses import dataclass
from sparsejit.affine import dims_of
from sparsejit.ir import loops
from sparsejit.ir.scalar import Select, args_of
from sparsejit.ir.tensor import Generic, Value
from sparsejit.sparsify_and_bufferize._buffers import Buffer, DenseBuffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder, loop_orders
from sparsejit.sparsify_and_bufferize._level_space import Access, LevelSpace, level_spaces_of
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["Plan", "Task", "plans_of"]

_MAX_CANDIDATES = 24


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to lower an operation: its loops, and how operands and result are treated.

    ``scatter``: the result goes through a workspace; ``convert``: the operands that do not fit the
    order are converted rather than searched. ``sampler`` is an input that stores what the result
    may store, of which elements are looked up inside of a reduction.
    """

    space: LevelSpace
    order: LoopOrder
    scatter: bool
    convert: bool
    sampler: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What ``sparsify`` is asked for, handed on to the ways of doing it.

    ``visits_grids`` allows plans that visit every coordinate of two dimensions (``GridError``).
    Some of the entries of an operand in ``shared`` may stay in its slots (``SparseBuffer.met``).
    """

    op: Generic
    inputs: tuple[Buffer, ...]
    destination: DenseBuffer | SparseBuffer
    symbols: Mapping[int, loops.Expr]
    options: StageOptions
    updates: bool
    converts: bool
    visits_grids: bool = False
    shared: frozenset[Value] = frozenset()


def plans_of(task: Task) -> Iterator[Plan]:
    """Yield plans, the cheapest first.

    In order and searched, a pass over the operands does; a workspace sorts the contributions, a
    conversion sorts the entries of an operand before.
    """
    spaces = level_spaces_of(task.op)
    guarded = isinstance(task.op.body, Select)  # where_stored around a sum: entries without terms
    sparse = isinstance(task.destination, SparseBuffer) and not task.updates
    scattering = (False, True) if sparse and not task.op.init.type.format.is_all_full else (False,)
    if sparse and task.options.storage == "inline":
        for space in spaces:
            yield from _sampled(task, space)
    for convert in (False, True) if task.converts else (False,):
        for scatter in scattering:
            for space in spaces:
                for order in islice(
                    loop_orders(space, scattered=scatter, whole=guarded), _MAX_CANDIDATES
                ):
                    if order.located or not convert:
                        yield Plan(space, order, scatter, convert)


def _sampled(task: Task, space: LevelSpace) -> Iterator[Plan]:
    """Yield plans of sums that another operand samples: ``S * (A @ B)``, row by row.

    Every operand is in order so, and a row of ``S`` is walked once, not for each row of ``B``.
    """
    order = next(loop_orders(space), None)
    if order is None or order.located or len(task.op.inputs) not in args_of(task.op.body):
        return
    reductions = {n for n, loop in enumerate(space.loops) if not loop.is_parallel}
    last = max((order.loops.index(n) for n in _loops_of(space.output)), default=0)
    if not reductions.intersection(order.loops[:last]):
        return
    for number, access in enumerate(space.inputs):
        if access.may_be_absent and access.levels == space.output.levels:
            yield Plan(space, order, scatter=False, convert=False, sampler=number)


def _loops_of(access: Access) -> frozenset[int]:
    return frozenset[int]().union(*(dims_of(level.expr) for level in access.levels))
