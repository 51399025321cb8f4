"""Schedules of kernels: what the shape of a loop nest offers, and which schedule to take.

In: a parallel loop. Out: its ``KernelShape``, plain facts; and from these, and from what is known
of the operands, a ``Schedule``. The choice is a policy: ``outline_kernels`` takes another one as an
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_statements import Schedule
from sparsejit.ir.loop_uses import is_pure, variables
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, map_body
from sparsejit.ir.loops import Assign, Binary, For, If, Let, Load, Stmt, Var, While
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.stored_facts import RowLengths
from sparsejit.ir.types import DType

__all__ = [
    "ChooseSchedule",
    "KernelShape",
    "deciding_array",
    "deciding_rows",
    "is_reduction_loop",
    "reductions_of",
    "schedule_by_rows",
    "schedule_by_structure",
    "shape_of",
    "with_shared_reductions",
]


@dataclass(frozen=True, slots=True)
class KernelShape:
    """What the parallel loop of a kernel has inside.

    ``has_parallel`` says that there is a parallel loop, ``has_reduction`` one that only reduces
    into a variable, ``walks_storage`` one whose bounds are read from storage;
    ``is_balanceable`` that all it does is to reduce the stored entries of a row, in any order.
    ``walks`` names the arrays of positions that bound its inner loops.
    """

    has_parallel: bool
    has_reduction: bool
    walks_storage: bool
    is_balanceable: bool = False
    walks: tuple[str, ...] = ()


ChooseSchedule = Callable[[KernelShape], Schedule]
MaySplit = Callable[[BinaryOp, DType], bool]


def schedule_by_structure(shape: KernelShape) -> Schedule:
    """Return the schedule that suits a shape: the lanes of a warp share inner loops.

    >>> schedule_by_structure(KernelShape(False, False, False))
    Schedule.THREAD
    >>> schedule_by_structure(KernelShape(False, True, True))
    Schedule.WARP
    """
    return Schedule.WARP if shape.has_parallel or shape.has_reduction else Schedule.THREAD


def schedule_by_rows(rows: Mapping[str, RowLengths]) -> ChooseSchedule:
    """Return the choice where it is known how long the rows by some arrays of positions are.

    Short rows take a thread each; a row far longer than the others would keep its warp when all
    others are done, so such rows are dealt out by entries.

    >>> shape = KernelShape(False, True, True, is_balanceable=True, walks=("A_pos1",))
    >>> schedule_by_rows({"A_pos1": RowLengths.SHORT})(shape)
    Schedule.THREAD
    >>> schedule_by_rows({"A_pos1": RowLengths.UNEVEN})(shape)
    Schedule.BALANCED
    """

    def choose(shape: KernelShape) -> Schedule:
        match deciding_rows(shape, rows):
            case RowLengths.UNEVEN if shape.is_balanceable:
                return Schedule.BALANCED
            case RowLengths.SHORT:
                return Schedule.THREAD
            case _:
                return schedule_by_structure(shape)

    return choose


def deciding_rows(shape: KernelShape, rows: Mapping[str, RowLengths]) -> RowLengths | None:
    """Return the lengths that the schedule depends on, None where the shape alone decides."""
    array = deciding_array(shape)
    return None if array is None else rows.get(array)


def deciding_array(shape: KernelShape) -> str | None:
    """Return the array of positions that the schedule depends on, None where it is the shape alone.

    That is so where columns are parallel, and where an iteration walks more than one row.
    """
    return shape.walks[0] if len(shape.walks) == 1 and not shape.has_parallel else None


def shape_of(loop: For, *, is_balanceable: bool = False) -> KernelShape:
    """Return what ``loop`` has inside.

    Where storage is walked together, lanes would all walk it; reductions beside that do not count.
    """
    together = any(isinstance(stmt, While) for stmt in all_statements(loop.body))
    inner = [stmt for stmt in all_statements(loop.body) if isinstance(stmt, For)]
    loads = (
        part.memref.name
        for other in inner
        for bound in (other.lower, other.upper)
        for part in all_expressions(bound)
        if isinstance(part, Load)
    )
    return KernelShape(
        any(other.parallel and not other.reductions for other in inner),
        not together and any(is_reduction_loop(other) for other in inner),
        any(not (is_pure(other.lower) and is_pure(other.upper)) for other in inner),
        is_balanceable,
        tuple(dict.fromkeys(loads)),
    )


def is_reduction_loop(loop: For) -> bool:
    """Whether all that a loop does is to reduce into variables from outside of it.

    Lanes may then share its iterations and combine what they have.
    """
    return bool(reductions_of(loop))


def reductions_of(loop: For) -> dict[str, Binary]:
    """Return the variables that ``loop`` reduces, each with an update; nothing if it does more."""
    local = {stmt.var.name for stmt in all_statements(loop.body) if isinstance(stmt, Let | For)}
    found: dict[str, Binary] = {}
    if not _only_reduces(loop.body, local, found):
        return {}
    for stmt in all_statements(loop.body):
        reads = _reads_besides_updates(stmt, found)
        if reads & found.keys():
            return {}
    return found


def _only_reduces(  # noqa: C901 - one case for each kind
    body: Sequence[Stmt], local: set[str], found: dict[str, Binary]
) -> bool:
    for stmt in body:
        match stmt:
            case Let():
                pass
            case Assign(var, _) if var.name in local:
                pass
            case Assign(Var() as var, Binary(op, lhs, _, _) as update) if lhs == var:
                if not (op.info.associative and op.info.commutative):
                    return False
                if found.setdefault(var.name, update).op is not op:
                    return False
            case If(_, then, orelse):
                if not (_only_reduces(then, local, found) and _only_reduces(orelse, local, found)):
                    return False
            case For():
                if not _only_reduces(stmt.body, local, found):
                    return False
            case _:
                return False
    return True


def _reads_besides_updates(stmt: Stmt, found: dict[str, Binary]) -> set[str]:
    if isinstance(stmt, Assign) and stmt.var.name in found and isinstance(stmt.value, Binary):
        return set(variables(stmt.value.rhs))
    return {name for part in expressions(stmt) for name in variables(part)}


def with_shared_reductions(body: tuple[Stmt, ...], may_split: MaySplit) -> tuple[Stmt, ...]:
    """Return the statements of a kernel with the loops marked whose passes lanes may share.

    ``may_split`` says which reductions may be computed in parts.
    """

    def change(stmt: Stmt) -> Iterable[Stmt]:
        if not isinstance(stmt, For) or stmt.parallel:
            return (stmt,)
        found = reductions_of(stmt)
        marked = tuple((update.lhs, update.op) for update in found.values())
        fits = [isinstance(var, Var) and may_split(op, var.dtype) for var, op in marked]
        if not found or not all(fits):
            return (stmt,)
        pairs = tuple((var, op) for var, op in marked if isinstance(var, Var))
        return (replace(stmt, parallel=True, reductions=pairs),)

    return map_body(body, change_stmt=change)
