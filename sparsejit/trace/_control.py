"""``fori_loop``, ``while_loop`` and ``cond``: loops and branches that stay such in the program.

In: Python functions of arrays, called while tracing, and initial values in any nesting of tuples,
lists and dicts. Out: the same nesting of arrays. What a body computes goes to a block of its own;
arrays from outside are read there, but only what is carried changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim
from sparsejit.errors import Location, TensorTypeError
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import For, If, Value, While
from sparsejit.ir.types import INDEX
from sparsejit.ir.walk import all_ops, defined_by, operands_of, yields_of
from sparsejit.trace._array import Array
from sparsejit.trace._blocks import Block
from sparsejit.trace._carried import Slot, agreed, emitted, into, present, slot_of, yielded
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._extents import counts, difference
from sparsejit.trace._functions import copy
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import Pointwise, binary, of_value
from sparsejit.trace._symbolic import as_extent, extent_value, symbolic
from sparsejit.trace._trees import leaves, rebuilt, structure
from sparsejit.trace._ufuncs import as_bool

__all__ = ["cond", "fori_loop", "while_loop"]


@dataclass(frozen=True, slots=True)
class _Traced:
    """A loop's body as traced: its block, the carried values inside and what is yielded for them.

    ``counter`` is the carried value that counts, where the loop has one.
    """

    slots: list[Slot]
    block: Block
    args: tuple[Value, ...]
    yields: tuple[Value, ...]
    counter: Value | None


def _check_functions(what: str, location: Location | None, *given: Any) -> None:
    for one in given:
        if not callable(one) or isinstance(one, Array):
            raise TensorTypeError(
                f"{what} takes functions, not an object of type "
                f"{'array' if isinstance(one, Array) else type(one).__name__}",
                hint="write lambda: ... around what is to be computed",
                location=location,
            )


def _check_structure(init: Any, returned: Any, what: str, location: Location | None) -> None:
    if structure(init) != structure(returned):
        raise TensorTypeError(
            f"{what} {structure(init)}, not {structure(returned)}",
            hint="return the same tuples, lists and dicts",
            location=location,
        )


def _arrays(
    trace: Trace, slots: Sequence[Slot], values: Sequence[Value], location: Location | None
) -> list[Array]:
    """Return the arrays that the user sees for values."""
    pairs = zip(slots, values, strict=True)
    return [slot.array(trace, value, location) for slot, value in pairs]


def _traced_body(
    trace: Trace,
    init: Any,
    slots: list[Slot],
    body: Callable[[Any], Any],
    counter: Dim | None,
    location: Location | None,
) -> _Traced:
    """Trace a body until the types of what it carries stay the same.

    They do at once, unless an initial value is a Python scalar, which takes the type that the body
    makes of it.
    """
    while True:
        with trace.nested(repeats=True) as block:
            args = tuple(trace.value(slot.kind) for slot in slots)
            count = None
            if counter is not None:
                count = block.counts[counter] = trace.value(Slot((), INDEX).kind)
            arrays = [
                slot.array(trace, arg, location) for slot, arg in zip(slots, args, strict=True)
            ]
            returned = body(rebuilt(init, arrays))
            _check_structure(init, returned, "the loop carries", location)
            made = [as_array(trace, leaf) for leaf in leaves(returned)]
            stable = [
                agreed(trace, slot, array, "the loop carries", location)
                for slot, array in zip(slots, made, strict=True)
            ]
            if stable == slots:
                yields = yielded(trace, slots, made, args, location)
                return _Traced(slots, block, args, yields, count)
        slots = stable


def _start(trace: Trace, init: Any) -> tuple[list[Array], list[Slot]]:
    arrays = [as_array(trace, leaf) for leaf in leaves(init)]
    return arrays, [slot_of(array) for array in arrays]


def _truth(trace: Trace, condition: Any, what: str, location: Location | None) -> Value:
    """Return the value of a condition, a rank-0 tensor of bool."""
    array = as_array(trace, condition)
    if array.extents:
        raise TensorTypeError(
            f"{what} is an array of rank {len(array.extents)}, not one truth value",
            hint="reduce it, as with .any() or .all()",
            location=location,
        )
    return trace.pointwise(as_bool(array.read()), ()).force()


def _results(
    trace: Trace, init: Any, slots: Sequence[Slot], location: Location | None
) -> tuple[tuple[Value, ...], Any]:
    """Return the values of a loop's results, and the arrays that the user sees."""
    values = tuple(trace.value(slot.kind) for slot in slots)
    return values, rebuilt(init, _arrays(trace, slots, values, location))


# ---------------------------------------------------------------- counted loops


def _bound(bound: Any) -> AffineExpr | None:
    return as_extent(int(bound) if isinstance(bound, np.integer) else bound)


def fori_loop(lo: Any, hi: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """``x = init; for i in range(lo, hi): x = body(i, x)``, as a loop of the program.

    ``init`` is an array or scalar, or tuples, lists and dicts of such; ``body`` returns the same
    with the same shapes and dtypes (a Python scalar in ``init`` takes the dtype that the body makes
    of it). The counter is an index (``x[i]``, ``A[i, :]``) and a number. The bounds are integers,
    extents, or run-time integers. What the body assigns to are its own arrays: what it was given,
    and what it made.
    Raises ``TraceError`` outside of a traced function and for an assignment to an array from
    outside, ``TensorTypeError`` where what is carried changes its type.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def power(A, x):
    ...     return sj.fori_loop(0, 3, lambda i, x: A @ x, x)
    >>> power(np.array([[2.0, 0.0], [0.0, 3.0]]), np.ones(2))
    array([ 8., 27.])
    """
    trace, location = require_trace("fori_loop"), caller()
    _check_functions("fori_loop", location, body)
    lower, upper = _bound(lo), _bound(hi)
    if lower is None or upper is None:
        return _counted_at_run_time(trace, lo, hi, body, init, location)
    rounds = difference(upper, lower)
    if not counts(rounds) and trace.extents.holds(difference(Constant(0), rounds)):
        # Loops give values: an update of the result is none of what it started from.
        return rebuilt(init, [copy(as_array(trace, leaf)) for leaf in leaves(init)])
    counter = trace.extents.counter(lower, difference(upper, Constant(1)))
    arrays, slots = _start(trace, init)
    made = _traced_body(
        trace,
        init,
        slots,
        lambda carried: body(symbolic(trace, counter), carried),
        counter,
        location,
    )
    inits = [emitted(trace, slot, array) for slot, array in zip(made.slots, arrays, strict=True)]
    results, returned = _results(trace, init, made.slots, location)
    args, yields = made.args, made.yields
    if made.counter is not None and _is_used(made):
        inits.append(trace.pointwise(extent_value(trace, lower), ()).force())
        args, results = (*args, made.counter), (*results, trace.value(made.counter.type))
        yields = (*yields, _next(trace, made, made.counter, location))
    ops = tuple(made.block.ops)
    trace.ops.append(
        For(results, counter.index, lower, upper, tuple(inits), args, ops, yields, location)
    )
    return returned


def _is_used(made: _Traced) -> bool:
    """Whether the body reads the number that it counts, rather than indexing with it."""
    taken = (
        value for op in all_ops(made.block.ops) for value in (*operands_of(op), *yields_of(op))
    )
    return made.counter in (*taken, *made.yields)


def _next(trace: Trace, made: _Traced, count: Value, location: Location | None) -> Value:
    one = Pointwise(Const(1, INDEX), (), INDEX)
    with trace.within(made.block):
        return into(trace, binary(BinaryOp.ADD, of_value(count), one), count, location)


def _counted_at_run_time(
    trace: Trace,
    lo: Any,
    hi: Any,
    body: Callable[[Any, Any], Any],
    init: Any,
    location: Location | None,
) -> Any:
    """A counted loop whose bounds are run-time integers: the counter is carried."""
    for bound in (as_array(trace, lo), as_array(trace, hi)):
        if bound.extents or not bound.element_type.is_integer:
            raise TensorTypeError("the bounds of fori_loop are integers", location=location)
    limit = as_array(trace, hi)
    limit.force()

    def round_(carried: tuple[Any, Any]) -> tuple[Any, Any]:
        return carried[0] + 1, body(*carried)

    return while_loop(lambda carried: carried[0] < limit, round_, (lo, init))[1]


# ---------------------------------------------------------------- loops without a count


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """``x = init; while cond(x): x = body(x)``, as a loop of the program.

    ``cond`` returns one truth value; ``init``, ``body`` and the errors are as in ``fori_loop``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def halved(x):
    ...     return sj.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)
    >>> halved(np.array([3.0, 5.0]))
    array([0.375, 0.625])
    """
    trace, location = require_trace("while_loop"), caller()
    _check_functions("while_loop", location, cond, body)
    arrays, slots = _start(trace, init)
    made = _traced_body(trace, init, slots, body, None, location)
    with trace.nested(repeats=True) as test:
        args = tuple(trace.value(slot.kind) for slot in made.slots)
        carried = rebuilt(init, _arrays(trace, made.slots, args, location))
        condition = _truth(trace, cond(carried), "the condition of while_loop", location)
    inits = tuple(
        emitted(trace, slot, array) for slot, array in zip(made.slots, arrays, strict=True)
    )
    results, returned = _results(trace, init, made.slots, location)
    trace.ops.append(
        While(
            results,
            inits,
            args,
            tuple(test.ops),
            condition,
            made.args,
            tuple(made.block.ops),
            made.yields,
            location,
        )
    )
    return returned


# ---------------------------------------------------------------- branches


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch as traced: what it returned, and the arrays in that."""

    block: Block
    tree: Any
    arrays: list[Array]


def cond(pred: Any, then: Callable[..., Any], orelse: Callable[..., Any], *operands: Any) -> Any:
    """``then(*operands) if pred else orelse(*operands)``, decided when the program runs.

    ``pred`` is one truth value; one that is known while tracing takes its branch at once. Both
    branches return the same nesting of arrays with the same shapes and dtypes; they read arrays
    from outside but do not assign to them. Errors are as in ``fori_loop``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def normalized(x):
    ...     length = np.sqrt(x @ x)
    ...     return sj.cond(length > 0, lambda: x / length, lambda: x)
    >>> normalized(np.array([3.0, 4.0])), normalized(np.zeros(2))
    (array([0.6, 0.8]), array([0., 0.]))
    """
    trace, location = require_trace("cond"), caller()
    _check_functions("cond", location, then, orelse)
    if isinstance(pred, bool | np.bool_):
        return then(*operands) if pred else orelse(*operands)
    condition = _truth(trace, pred, "the condition of cond", location)
    first = _traced_branch(trace, then, operands)
    with trace.within(first.block):
        slots = [slot_of(array) for array in first.arrays]
    second = _traced_branch(trace, orelse, operands)
    _check_structure(first.tree, second.tree, "the first branch returns", location)
    with trace.within(second.block):
        slots = [
            agreed(trace, slot, array, "the first branch returns", location)
            for slot, array in zip(slots, second.arrays, strict=True)
        ]
    yields = [_joined(trace, slot, first, second, k, location) for k, slot in enumerate(slots)]
    results, returned = _results(trace, first.tree, slots, location)
    if results:
        then_yields, else_yields = (tuple(pair[n] for pair in yields) for n in (0, 1))
        blocks = tuple(first.block.ops), tuple(second.block.ops)
        trace.ops.append(
            If(results, condition, blocks[0], then_yields, blocks[1], else_yields, location)
        )
    return returned


def _traced_branch(trace: Trace, branch: Callable[..., Any], operands: tuple[Any, ...]) -> _Branch:
    with trace.nested(repeats=False) as block:
        tree = branch(*operands)
        return _Branch(block, tree, [as_array(trace, leaf) for leaf in leaves(tree)])


def _joined(
    trace: Trace, slot: Slot, one: _Branch, other: _Branch, k: int, location: Location | None
) -> tuple[Value, Value]:
    """Return what the branches yield for their array ``k``, both in one buffer.

    That is where the one that changes nothing finds it (a carried value keeps its place), or a new
    one.
    """
    parts = []
    for branch in (one, other):
        with trace.within(branch.block):
            parts.append(present(trace, slot, branch.arrays[k]))
    first, second = parts
    if isinstance(first, Value) and isinstance(second, Value):  # noqa: SIM102 - for the types
        if first == second or slot.sparse is not None:
            return first, second
    dest = _kept(trace, (one, other), parts)
    if dest is None:
        dest = trace.empty(slot.kind, location)
    made = []
    for branch, part in zip((one, other), parts, strict=True):
        with trace.within(branch.block):
            made.append(dest if part == dest else into(trace, part, dest, location))
    return made[0], made[1]


def _kept(
    trace: Trace, branches: Sequence[_Branch], parts: Sequence[Value | Pointwise]
) -> Value | None:
    """Return a value from outside of both branches, no argument of the user's, that one yields."""
    inside = {
        value for branch in branches for op in all_ops(branch.block.ops) for value in defined_by(op)
    }
    given = {param.name for param in trace.params}
    for part in parts:
        if isinstance(part, Value) and part not in inside and part.name not in given:
            return part
    return None
