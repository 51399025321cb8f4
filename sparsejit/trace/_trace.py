"""``trace``: run the user's function once on tracers and return the tensor function.

In: the function, its arguments with a ``Slot`` for each operand, the specifications of the
operands. Out: a ``Traced``. Results that nothing needs are not computed; values are numbered in
order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from sparsejit.affine import AffineExpr, Dim, as_linear, dims_of, substitute
from sparsejit.errors import TraceError, UnsupportedError
from sparsejit.formats import Format
from sparsejit.ir.printing import loop_names
from sparsejit.ir.tensor import (
    Convert,
    ExtractSlice,
    For,
    If,
    Materialize,
    Op,
    TensorFunc,
    Value,
)
from sparsejit.ir.verify import verify_tensor
from sparsejit.ir.walk import (
    all_ops,
    blocks_of,
    map_blocks,
    map_ops,
    operands_of,
    replace_values,
    results_of,
    substitute_symbols,
    yields_of,
)
from sparsejit.tensors import VALUE_TYPES
from sparsejit.trace._array import Array, computed
from sparsejit.trace._context import Deferred, Trace, Unassigned, in_trace
from sparsejit.trace._foreign_errors import restated
from sparsejit.trace._functions import copy
from sparsejit.trace._indexed import Index, Indexed
from sparsejit.trace._interface import ArgumentSpec, ResultRef, Slot, Traced, TraceOptions
from sparsejit.trace._operands import NoValue
from sparsejit.trace._pointwise import of_value
from sparsejit.trace._symbolic import SymbolicInt
from sparsejit.trace._tracer import ArrayTracer

__all__ = ["trace"]


def trace(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    specs: Sequence[ArgumentSpec],
    options: TraceOptions,
) -> Traced:
    """Trace ``fn(*args, **kwargs)``.

    ``args`` and ``kwargs`` hold a ``Slot`` for each operand, nested in tuples, lists and dicts;
    everything else in them is static. The same slot is one array.

    Raises ``TraceError`` for what cannot be traced, ``TensorTypeError`` where shapes or dtypes do
    not fit, ``UnsupportedError`` for what is not built.
    """
    state = Trace(options, ArrayTracer)
    arrays = [state.array(state.add_param(spec)) for spec in specs]
    with in_trace(state):
        given = _filled(args, arrays)
        named = {name: _filled(value, arrays) for name, value in kwargs.items()}
        try:
            returned = fn(*given, **named)
        except Exception as error:  # SciPy refuses tracers by any kind; others are raised again
            found = restated(error)
            if found is None:
                raise
            raise found from (None if isinstance(error, RecursionError) else error)
        results: list[Value] = []
        returned = _collected(state, returned, results, count())
        _write_back(state)
    return _finished(state, returned, results)


def _filled(tree: Any, arrays: Sequence[Array]) -> Any:
    """Return nested arguments with the array in place of each slot."""
    match tree:
        case Slot(index):
            return arrays[index]
        case tuple() if hasattr(tree, "_fields"):
            return type(tree)(*(_filled(item, arrays) for item in tree))
        case tuple() | list():
            return type(tree)(_filled(item, arrays) for item in tree)
        case dict():
            return {key: _filled(item, arrays) for key, item in tree.items()}
        case _:
            return tree


# ---------------------------------------------------------------- results


def _collected(state: Trace, tree: Any, results: list[Value], positions: Iterator[int]) -> Any:
    """Return the returned object with a reference for each array; append their values.

    ``positions`` counts all leaves, since that is how users count results: static ones, and arrays
    that are returned twice.
    """
    match tree:
        case Array():
            value = _result_value(state, tree, next(positions))
            names = [known.name for known in results]
            if value.name in names:
                return ResultRef(names.index(value.name))
            results.append(value)
            return ResultRef(len(results) - 1)
        case Index() | Indexed():
            raise TraceError(
                f"{state.options.name} returns an indexed expression",
                hint="assign it to an output, as in M[i] = ..., and return M",
            )
        case NoValue():
            raise tree.refusal()
        case SymbolicInt():
            next(positions)
            return int(tree)
        case np.ndarray() if (
            tree.dtype in VALUE_TYPES
        ):  # made inside of the function: fresh results
            return _collected(state, copy(tree), results, positions)
        case tuple() if hasattr(tree, "_fields"):
            return type(tree)(*(_collected(state, item, results, positions) for item in tree))
        case tuple() | list():
            return type(tree)(_collected(state, item, results, positions) for item in tree)
        case dict():
            _check_returned(state, tree)
            return {key: _collected(state, item, results, positions) for key, item in tree.items()}
        case _:
            next(positions)
            _check_returned(state, tree)
            return tree


def _check_returned(state: Trace, tree: Any) -> None:
    """Raise ``TraceError`` for what would hold arrays of the trace after its end."""
    match tree:
        case Iterator() | Coroutine() | AsyncIterator():
            what = f"a {type(tree).__name__}"
            if isinstance(tree, Coroutine):
                tree.close()
        case set() | frozenset() if any(isinstance(item, Array) for item in tree):
            what = f"a {type(tree).__name__} of arrays"
        case dict() if any(isinstance(key, Array) for key in tree):
            what = "a dict that has an array as a key"
        case _:
            return
    raise TraceError(
        f"{state.options.name} returns {what}",
        hint="return arrays, or tuples, lists and dicts of arrays",
    )


def _requested(options: TraceOptions, position: int) -> Format | None:
    if isinstance(options.output, Mapping):
        return options.output.get(position)
    return options.output


def _result_value(state: Trace, array: Array, position: int) -> Value:
    cell = array._cell
    if isinstance(cell.content, Unassigned):
        raise TraceError(
            f"{state.options.name} returns an output that it never assigned",
            hint="assign to it, as in M[i, j] = ...",
        )
    wanted = _requested(state.options, position)
    if array._view is None and cell.param is not None:
        if cell.assigned:
            return _assigned_result(state, cell.param, wanted)
        param = state.params[cell.param]
        return param if wanted in (None, param.type.format) else _convert(state, param, wanted)
    part = None if isinstance(cell.content, Deferred) else array.read()
    if part is not None and part.view is not None and _aliases_param(state, part.view.value):
        # The caller's memory is only handed out as the caller's object.
        cell_value = computed(state, part, array.extents, wanted, cell.location)
    else:
        cell_value = array.force(wanted)
    if wanted is not None and cell_value.type.format != wanted:
        return _convert(state, cell_value, wanted)
    return cell_value


def _assigned_result(state: Trace, number: int, wanted: Format | None) -> Value:
    param = state.params[number]
    if wanted not in (None, param.type.format):
        raise UnsupportedError(
            f"the result is the caller's array {param.name!r}, which the function assigns",
            hint="its format cannot be changed; return a new tensor, or leave output= out",
        )
    return param  # replaced by its final state when the trace ends


def _convert(state: Trace, value: Value, format: Format | None) -> Value:
    assert format is not None
    kind = value.type
    result = state.value(type(kind)(kind.shape, kind.dtype, format, kind.fill))
    state.ops.append(Convert(result, value))
    return result


def _aliases_param(state: Trace, value: Value) -> bool:
    sources: dict[str, str] = {}
    for op in all_ops(state.ops):
        match op:
            case ExtractSlice(result, source):
                sources[result.name] = source.name
            case If(results=results, then_yields=yields):
                for one, other in zip(results, yields, strict=True):
                    sources[one.name] = other.name
            case _:
                pass
    name = value.name
    while name in sources:
        name = sources[name]
    return name in {param.name for param in state.params}


def _write_back(state: Trace) -> None:
    """Let every assigned parameter take its final content."""
    for param, cell in zip(state.params, state.cells, strict=True):
        if cell.assigned:
            source = state.array(cell).force()
            result = state.value(param.type)
            state.ops.append(Materialize(result, source, param, cell.location))
            cell.content = of_value(result)


# ---------------------------------------------------------------- the function


def _finished(state: Trace, returned: Any, results: Sequence[Value]) -> Traced:
    final = {
        cell.param: _content(cell.content)
        for cell in state.cells
        if cell.assigned and cell.param is not None
    }
    params = {param.name: n for n, param in enumerate(state.params)}
    values = tuple(
        final.get(params[value.name], value) if value.name in params else value for value in results
    )
    ops = _needed(state.ops, {value.name for value in values})
    solved, count = state.extents.final([param.type.shape for param in state.params])
    ops, counters = _numbered_counters(ops, count)
    solved.update(counters)
    ops = tuple(substitute_symbols(op, solved) for op in ops)
    names = {param.name: param.name for param in state.params}
    for value in _in_order(ops):
        names[value.name] = str(len(names) - len(state.params))
    prefix = "d"
    while any(name.startswith(prefix) for name in params):
        prefix += "_"
    extents = tuple(f"{prefix}{n}" for n in range(count))

    def renamed(value: Value) -> Value:
        kind = value.type
        shape = tuple(substitute(extent, solved) for extent in kind.shape)
        made = type(kind)(shape, kind.dtype, kind.format, kind.fill)
        return Value(names[value.name], made)

    def renumbered(value: Value) -> Value:
        return Value(names[value.name], value.type)

    func = TensorFunc(
        name=state.options.name,
        params=tuple(map(renamed, state.params)),
        symbols=(*extents, *loop_names(len(counters), taken=extents)),
        num_extents=count,
        ops=tuple(replace_values(op, renumbered) for op in ops),
        results=tuple(map(renamed, values)),
        assigned=tuple(renamed(state.params[n]) for n in sorted(final)),
    )
    verify_tensor(func, after=f"tracing {state.options.name}")
    guards = [substitute(state.extents.resolve(guard), solved) for guard in state.extents.guards]
    return Traced(
        func,
        returned,
        tuple(state.captured),
        tuple(dict.fromkeys(state.extents.static)),
        tuple(state.facts),
        _strongest(guards),
        frozenset(state.late),
    )


def _strongest(guards: Sequence[AffineExpr]) -> tuple[AffineExpr, ...]:
    """Return the guards without those that others imply: ``d0 - 1`` follows from ``d0 - 3``."""
    least: dict[object, tuple[int, AffineExpr]] = {}
    for guard in guards:
        linear = as_linear(guard)
        if not dims_of(guard):
            continue
        key = guard if linear is None else tuple(sorted(linear[0].items()))
        rest = 0 if linear is None else linear[1]
        if key not in least or rest < least[key][0]:
            least[key] = (rest, guard)
    return tuple(guard for _, guard in least.values())


def _content(content: Any) -> Value:
    value: Value = content.view.value  # the state after Materialize
    return value


def _needed(ops: Sequence[Op], needed: set[str]) -> tuple[Op, ...]:
    """Return the operations that a result, what a block yields or an assigned parameter depends on.

    ``needed`` are the names of what is wanted, and of what that takes afterwards.
    """
    kept: list[Op] = []
    for op in reversed(ops):
        if not isinstance(op, Materialize) and not any(v.name in needed for v in results_of(op)):
            continue
        if blocks_of(op):
            needed.update(value.name for value in yields_of(op))
            op = map_blocks(op, lambda inner: _needed(inner, needed))
        needed.update(value.name for value in operands_of(op))
        kept.append(op)
    return tuple(reversed(kept))


def _in_order(ops: Sequence[Op]) -> Iterator[Value]:
    """Yield the values that operations define, in the order of the text but results last."""
    for op in ops:
        for block in blocks_of(op):
            yield from block.args
            yield from _in_order(block.ops)
        yield from results_of(op)


def _numbered_counters(
    ops: tuple[Op, ...], first: int
) -> tuple[tuple[Op, ...], dict[int, AffineExpr]]:
    """Number the counters of the loops that are left from ``first``; return also what they were."""
    numbers = [op.induction for op in all_ops(ops) if isinstance(op, For)]
    places = {number: first + n for n, number in enumerate(numbers)}

    def renumber(op: Op) -> tuple[Op, ...]:
        return (replace(op, induction=places[op.induction]),) if isinstance(op, For) else (op,)

    return map_ops(ops, renumber), {number: Dim(place) for number, place in places.items()}
