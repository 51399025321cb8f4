"""A brute-force evaluator of the tensor IR: every loop point, one after the other, in plain Python.

In: a ``TensorFunc`` and, for each parameter, a ``Dense`` value: an array of all elements and which
of them are stored. Out: the same for each result. It knows nothing of formats beyond whether a type
stores everything, and has its own reading of the absence algebra, so that it can contradict the
compiler's. Reading an element that nothing defined is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np

from sparsejit.affine import AffineExpr, Dim, evaluate
from sparsejit.ir.fold import constant, fold_binary, fold_cast, fold_unary, numpy_dtype
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
)
from sparsejit.ir.tensor import (
    Convert,
    Empty,
    ExtractSlice,
    Generic,
    InsertSlice,
    Materialize,
    Op,
    TensorFunc,
    Value,
)
from sparsejit.ir.types import INDEX, DType, TensorType

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Tensor:
    """All elements of a tensor, which are stored, and which have a value at all."""

    values: Array
    stored: Array
    defined: Array

    @staticmethod
    def of(values: Array, stored: Array | None = None) -> Tensor:
        """Return a tensor with all elements defined; all stored unless told."""
        everything = np.ones(values.shape, bool)
        return Tensor(values.copy(), everything if stored is None else stored.copy(), everything)


@dataclass(frozen=True)
class State:
    """An element while a body is evaluated: missing (nobody stores it), constant, or known."""

    const: Const
    kind: str  # "missing", "constant", "known", "nothing"
    is_out: bool = False


def run(func: TensorFunc, params: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the results of ``func``, and its parameters afterwards."""
    symbols: dict[int, int] = {}
    for param, given in zip(func.params, params, strict=True):
        for extent, number in zip(param.type.shape, given.values.shape, strict=True):
            if isinstance(extent, Dim):
                symbols.setdefault(extent.index, number)
    for param, given in zip(func.params, params, strict=True):
        shape = tuple(evaluate(extent, symbols) for extent in param.type.shape)
        assert shape == given.values.shape, f"{param.name}: {shape} is not {given.values.shape}"
    env = {param.name: given for param, given in zip(func.params, params, strict=True)}
    after = dict(env)
    for op in func.ops:
        result = _run_op(op, env, symbols)
        env[op.result.name] = result  # type: ignore[union-attr]  # loops are not evaluated
        if isinstance(op, Materialize):
            after[op.dest.name] = result
    results = [env[value.name] for value in func.results]
    for result in results:
        assert result.defined.all(), "a result has undefined elements"
    return results, [after[param.name] for param in func.params]


def _run_op(op: Op, env: Mapping[str, Tensor], symbols: Mapping[int, int]) -> Tensor:
    match op:
        case Generic():
            return _generic(op, env, symbols)
        case Empty():
            return _empty(op.result.type, symbols)
        case Convert():
            source = env[op.source.name]
            fill = np.asarray(op.result.type.fill.value, source.values.dtype)
            stored = np.ones(source.values.shape, bool)
            if not op.result.type.format.is_all_full:
                dense = op.source.type.format.is_all_full
                stored = (source.values != fill) if dense else source.stored
            return replace(source, stored=stored)
        case ExtractSlice():
            return _sliced(env[op.source.name], op, symbols)
        case InsertSlice():
            return _inserted(env[op.source.name], env[op.dest.name], op, symbols)
        case Materialize():
            assert op.source.type == op.dest.type == op.result.type
            return env[op.source.name]
        case _:
            raise NotImplementedError(type(op).__name__)


def _shape(kind: TensorType, symbols: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(evaluate(extent, symbols) for extent in kind.shape)


def _empty(kind: TensorType, symbols: Mapping[int, int]) -> Tensor:
    shape = _shape(kind, symbols)
    full = kind.format.is_all_full
    values = np.full(shape, kind.fill.value, numpy_dtype(kind.dtype))
    return Tensor(values, np.full(shape, full), np.full(shape, not full))


def _key(op: ExtractSlice | InsertSlice, symbols: Mapping[int, int]) -> tuple[Any, ...]:
    key = []
    for d, (offset, size, stride) in enumerate(zip(op.offsets, op.sizes, op.strides, strict=True)):
        places = [evaluate(offset, symbols) + k * stride for k in range(evaluate(size, symbols))]
        key.append(places[:1] if d in op.dropped else places)
    return np.ix_(*key) if key else ()


def _sliced(source: Tensor, op: ExtractSlice, symbols: Mapping[int, int]) -> Tensor:
    key, shape = _key(op, symbols), _shape(op.result.type, symbols)
    parts = [part[key].reshape(shape) for part in (source.values, source.stored, source.defined)]
    return Tensor(*parts)


def _inserted(source: Tensor, dest: Tensor, op: InsertSlice, symbols: Mapping[int, int]) -> Tensor:
    key = _key(op, symbols)
    made = []
    for inner, outer in (
        (source.values, dest.values),
        (source.stored, dest.stored),
        (source.defined, dest.defined),
    ):
        new = outer.copy()
        new[key] = inner.reshape(new[key].shape)
        made.append(new)
    return Tensor(*made)


def _index(
    exprs: Sequence[AffineExpr], point: Sequence[int], shape: Sequence[int]
) -> tuple[int, ...]:
    index = tuple(evaluate(expr, point) for expr in exprs)
    assert all(0 <= i < n for i, n in zip(index, shape, strict=True)), f"{index} outside {shape}"
    return index


def _generic(op: Generic, env: Mapping[str, Tensor], symbols: Mapping[int, int]) -> Tensor:
    operands: list[tuple[Value, Tensor]] = [(value, env[value.name]) for value in op.inputs]
    init = env[op.init.name]
    values, stored, defined = init.values.copy(), init.stored.copy(), init.defined.copy()
    full = op.init.type.format.is_all_full
    extents = [evaluate(extent, symbols) for extent in op.extents]
    for point in itertools.product(*map(range, extents)):
        states: list[tuple[State, bool]] = []
        for (value, tensor), indexing in zip(operands, op.indexing_maps, strict=False):
            index = _index(indexing.results, point, tensor.values.shape)
            states.append(_load(value.type.dtype, tensor, index))
        at = _index(op.indexing_maps[-1].results, point, values.shape)
        now = Tensor(values, stored, defined)
        states.append(_load(op.init.type.dtype, now, at, is_out=True))
        state = _evaluate(op.body, states, point)
        if state.is_out or state.kind == "nothing":
            continue
        assert state.const.dtype is op.init.type.dtype, f"{state.const} into {op.init.type.dtype}"
        values[at] = state.const.value
        defined[at] = True
        stored[at] = full or stored[at] or state.kind != "missing"
    return Tensor(values, stored, defined)


def _load(
    dtype: DType, tensor: Tensor, index: tuple[int, ...], is_out: bool = False
) -> tuple[State, bool]:
    stored = bool(tensor.stored[index])
    if not tensor.defined[index]:
        return State(Const(False, DType.BOOL), "undefined", is_out), stored
    const = constant(tensor.values[index], dtype)
    return State(const, "known" if stored or is_out else "missing", is_out), stored


def _evaluate(  # noqa: C901 - one case for each kind
    expr: ScalarExpr, operands: Sequence[tuple[State, bool]], point: Sequence[int]
) -> State:
    match expr:
        case Arg(index):
            state = operands[index][0]
            assert state.kind != "undefined", "an undefined element is read"
            return state
        case Stored(index):
            present = operands[index][1]
            return State(Const(present, DType.BOOL), "known" if present else "missing")
        case Const():
            return State(expr, "constant")
        case Coordinate(loop):
            return State(Const(point[loop], INDEX), "known")
        case Nothing(dtype):
            return State(constant(0, dtype), "nothing")
        case Cast(operand, dtype):
            inner = _evaluate(operand, operands, point)
            return State(fold_cast(inner.const, dtype), inner.kind)
        case Unary(op, operand):
            inner = _evaluate(operand, operands, point)
            return State(fold_unary(op, inner.const), inner.kind)
        case Binary(op, lhs, rhs):
            return _binary(op, _evaluate(lhs, operands, point), _evaluate(rhs, operands, point))
        case Select(condition, then, orelse):
            decided = _evaluate(condition, operands, point)
            chosen = _evaluate(then if decided.const.value else orelse, operands, point)
            # A constant that absence has chosen is nobody's entry.
            absent = decided.kind == "missing" and chosen.kind == "constant"
            return replace(chosen, kind="missing") if absent else chosen
        case Call(function, inputs):
            states = [_evaluate(part, operands, point) for part in inputs]
            if any(state.kind == "nothing" for state in states):
                return State(constant(0, function.result), "nothing")
            assert function.function is not None
            given = function.function(*(state.const.value for state in states))
            value = (given is not None) if function.is_question else (given or 0)
            return State(constant(value, function.result), "stored")
        case _:
            assert_never(expr)


def _is(state: State, number: object) -> bool:
    """Whether a missing element is what the operation's row says."""
    if state.kind != "missing" or number is None:
        return False
    dtype = state.const.dtype
    if number == -1 and dtype is DType.BOOL:
        return state.const.value is True
    if isinstance(number, str):
        kind = np.dtype(numpy_dtype(dtype))
        if kind.kind in "iu":
            return bool(state.const.value == getattr(np.iinfo(kind), number))
        extreme = {"max": np.inf, "min": -np.inf}[number]
        return bool(state.const.value == extreme)
    return bool(state.const.value == constant(number, dtype).value)


def _binary(op: BinaryOp, lhs: State, rhs: State) -> State:
    info = op.info
    kinds = {lhs.kind, rhs.kind}
    if "nothing" in kinds:
        return replace(lhs, kind="nothing")
    if "missing" in kinds and "known" in kinds:
        if _is(lhs, info.left_annihilator):
            return lhs
        if _is(rhs, info.right_annihilator):
            return rhs
        if _is(lhs, info.left_identity):
            return rhs
        if _is(rhs, info.right_identity):
            return lhs
    kind = "known" if "known" in kinds else "missing" if "missing" in kinds else "constant"
    return State(fold_binary(op, lhs.const, rhs.const), kind)
