"""Random programs evaluated in plain NumPy, statement by statement, by brute force.

In: a ``Program``. Out: what it returns and the final state of the memory it works on. Nothing of
sparsejit takes part: index statements are evaluated over the whole grid of their indices.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.programs.language import (
    Apply,
    Base,
    Expr,
    IndexExpr,
    IndexUpdate,
    Item,
    Key,
    Let,
    Load,
    Num,
    Over,
    Program,
    Statement,
    Update,
    Var,
    children,
)

__all__ = ["Memory", "evaluate_plain", "final_names", "make_memory", "subscript"]

Array = np.ndarray[Any, np.dtype[Any]]
Indices = dict[str, int]

INDICES = ("i", "j", "k")
UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "+=": np.ndarray.__iadd__,
    "-=": np.ndarray.__isub__,
    "*=": np.ndarray.__imul__,
}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.add,
    "-=": operator.sub,
    "*=": operator.mul,
}
UFUNCS = {"+=": np.add, "-=": np.subtract, "*=": np.multiply}


@dataclass(slots=True)
class Memory:
    """The bases, the objects over them, and what the sparse ones store."""

    bases: list[Array]
    objects: list[Array]
    masks: dict[int, Array] = field(default_factory=dict)


def subscript(key: Key) -> Any:
    """Return the object that NumPy is subscripted with."""
    named = {"...": ..., "None": None}
    return tuple(
        slice(*part) if isinstance(part, tuple) else named.get(part, part)  # type: ignore[call-overload]  # strings or numbers
        for part in key
    )


def make_memory(program: Program) -> Memory:
    """Return fresh arrays, sharing memory as the program's objects say."""
    bases = [_drawn(base) for base in program.bases]
    objects: list[Array] = []
    masks: dict[int, Array] = {}
    for number, described in enumerate(program.objects):
        array = bases[described.base]
        array = array[subscript(described.view)] if described.view else array
        array = array.T if described.transposed else array
        if described.format:
            array = array.copy()
            masks[number] = _stored(array, described.format)
        objects.append(array)
    return Memory(bases, objects, masks)


def _drawn(base: Base) -> Array:
    rng = np.random.default_rng(base.seed)
    values = rng.integers(-4, 5, base.shape)
    if base.density < 1:
        values = np.where(rng.random(base.shape) < base.density, values, 0)
    return values.astype(base.dtype)


def _stored(array: Array, fmt: str) -> Array:
    """Return the mask of slots that hold an entry: whole blocks, and whole diagonals."""
    stored: Array = array != 0
    if fmt not in ("BSR(2, 2)", "DIA"):
        return stored
    rows, columns = (np.asarray(grid) for grid in np.indices(array.shape))
    owner: Array = (
        rows // 2 * (array.shape[1] + 1) + columns // 2 if fmt != "DIA" else columns - rows
    )
    return np.isin(owner, np.unique(owner[stored]))


class _Plain:
    """What a program's templates call ``sj``."""

    maximum, minimum = staticmethod(np.maximum), staticmethod(np.minimum)
    where = staticmethod(np.where)

    def __init__(self, masks: Mapping[int, Array]) -> None:
        self.masks = masks  # by id of the array

    def einsum(self, subscripts: str, *operands: Any) -> Any:
        return np.array(np.einsum(subscripts, *operands))[()]  # a value, never a view

    def where_stored(self, S: Array, value: Any) -> Any:
        stored = self.masks.get(id(S), np.ones(S.shape, bool))
        value = np.asarray(value)
        return np.where(stored, value, np.zeros((), value.dtype))


def evaluate_plain(program: Program, memory: Memory) -> tuple[Any, ...]:
    """Run the program on the memory, which it changes, and return its results.

    Raises what NumPy raises, and ``ValueError`` where an index statement has no meaning.
    """
    names = final_names(program, memory)
    return tuple(names[name] for name in program.returns)


def final_names(program: Program, memory: Memory) -> dict[str, Any]:
    """Run the program on the memory and return the value of every name at its end."""
    masks = {id(memory.objects[n]): mask for n, mask in memory.masks.items()}
    names: dict[str, Any] = {}
    for param in program.params:
        names[param.name] = param.number if param.object is None else memory.objects[param.object]
    library = _Plain(masks)
    with np.errstate(all="ignore"):
        for statement in program.statements:
            _execute(statement, names, library)
    return names


def _execute(statement: Statement, names: dict[str, Any], library: _Plain) -> None:
    match statement:
        case Let(name, value):
            names[name] = _value(value, names, library)
        case Update(name, None, op, value):
            made = _value(value, names, library)
            if isinstance(names[name], np.ndarray):
                UPDATES[op](names[name], made)
            else:
                names[name] = _OPERATORS[op](names[name], made)
        case Update(name, key, op, value):
            made = _value(value, names, library)
            place = subscript(key or ())
            if op == "=":
                names[name][place] = made
            else:
                names[name][place] = _same_kind(op, names[name][place], made)
        case IndexUpdate():
            _index_update(statement, names)


def _same_kind(op: str, old: Any, value: Any) -> Any:
    array = np.array(old)
    UFUNCS[op](array, value, out=array, casting="same_kind")
    return array


def _value(expr: Expr, names: Mapping[str, Any], library: _Plain) -> Any:
    match expr:
        case Var(name):
            return names[name]
        case Num(value):
            return value
        case Item(base, key):
            return _value(base, names, library)[subscript(key)]
        case Apply(template, args):
            values = {f"_{n}": _value(arg, names, library) for n, arg in enumerate(args)}
            return eval(template.format(*values), {"np": np, "sj": library}, values)


# ---------------------------------------------------------------- index statements


def _loads(expr: IndexExpr) -> Iterator[Load]:
    if isinstance(expr, Load):
        yield expr
    for part in children(expr):
        assert not isinstance(part, Var | Apply | Item)
        yield from _loads(part)


def _index_update(statement: IndexUpdate, names: dict[str, Any]) -> None:
    left = [index for index, _ in statement.at if index]
    _check_sums(statement)
    accesses = [load for _, term in statement.terms for load in _loads(term)]
    bounded = [(load.at, np.shape(names[load.name])) for load in accesses]
    if not statement.fresh:
        bounded.append((statement.at, np.shape(names[statement.name])))
    extents = _extents(bounded)
    total: Any = None
    for sign, term in statement.terms:
        value = _term(term, left, extents, names)
        if total is None:
            total = value if sign == "+" else -value
        else:
            total = np.add(total, value) if sign == "+" else np.subtract(total, value)
    total = np.broadcast_to(total, [extents[index] for index in left])
    if statement.fresh:
        names[statement.name] = np.array(total)
        return
    target = names[statement.name]
    if not isinstance(target, np.ndarray):
        raise ValueError("a number has no elements")
    grids = np.meshgrid(*(np.arange(extents[index]) for index in left), indexing="ij", copy=True)
    by_index = dict(zip(left, grids, strict=True))
    place = tuple(by_index[index] + offset if index else offset for index, offset in statement.at)
    old = target[place]
    target[place] = total if statement.op == "=" else _same_kind(statement.op, old, total)


def _check_sums(statement: IndexUpdate) -> None:
    """Refuse a sum over an index that its expression lacks, or that is used beside it too."""
    outside = {index for index, _ in statement.at}
    for term in (term for _, term in statement.terms):
        closed = _closed(term)
        for load in _loads(term):
            outside |= {index for index, _ in load.at} - closed
        if closed & outside:
            raise ValueError("an index has two meanings")
        for part in _sums(term):
            if part.index not in _own(part):
                raise ValueError("a sum over an index that the expression lacks")
            if any(offset for load in _loads(part) for _, offset in load.at):
                # Its extents would have to agree with those outside of the sum.
                raise ValueError("an offset inside of a sum")


def _own(expr: IndexExpr) -> set[str]:
    return {index for load in _loads(expr) for index, _ in load.at}


def _sums(expr: IndexExpr) -> Iterator[Over]:
    if isinstance(expr, Over):
        if expr.index:
            yield expr
        for part in expr.args:
            yield from _sums(part)


def _extents(bounded: list[tuple[tuple[tuple[str, int], ...], tuple[int, ...]]]) -> Indices:
    """Return the largest extents that keep every access inside; plain accesses must agree."""
    plain: Indices = {}
    extents: Indices = {}
    for at, shape in bounded:
        if len(at) != len(shape):
            raise ValueError("an access has another rank")
        for (index, offset), extent in zip(at, shape, strict=True):
            room = extent - offset
            if room < (0 if index else 1):
                raise ValueError("an access leaves its array")
            if not index:
                continue
            if not offset and plain.setdefault(index, extent) != extent:
                raise ValueError("extents differ")
            extents[index] = min(extents.get(index, room), room)
    return extents


def _term(term: IndexExpr, left: list[str], extents: Indices, names: Mapping[str, Any]) -> Any:
    """Return a term over the indices on the left, summed over its other ones."""
    value = _grid(term, extents, names)
    if not np.shape(value):
        return value  # a number promotes weakly, also as a term
    own = {index for load in _loads(term) for index, _ in load.at if index} - _closed(term)
    for axis, index in enumerate(INDICES):
        if index in own and index not in left:
            value = np.add.reduce(value, axis=axis, keepdims=True, dtype=value.dtype)
    axes = [axis for axis, index in enumerate(INDICES) if index not in left]
    value = np.squeeze(value, axis=tuple(axes))
    ordered = [index for index in INDICES if index in left]
    return np.transpose(value, [ordered.index(index) for index in left])


def _closed(expr: IndexExpr) -> set[str]:
    """Return the indices that ``sum(..., over=)`` inside has summed over."""
    own = {expr.index} if isinstance(expr, Over) and expr.index else set()
    return own.union(*(_closed(part) for part in children(expr)))  # type: ignore[arg-type]  # index expressions


def _grid(expr: IndexExpr, extents: Indices, names: Mapping[str, Any]) -> Any:
    """Return the values over all of i, j and k, with extent 1 along those that do not occur.

    Numbers stay numbers, since Python's promote weakly.
    """
    match expr:
        case Num(value):
            return value
        case Load(name, ()):
            return names[name]
        case Load(name, at):
            place = []
            for index, offset in at:
                column = np.arange(extents[index]) + offset if index else np.array([offset])
                axis = INDICES.index(index) if index else 0
                shape = [1, 1, 1]
                shape[axis] = column.size
                place.append(column.reshape(shape))
            found: Array = names[name][tuple(place)]
            return found.reshape(found.shape or (1, 1, 1))
        case Over(template, args, index):
            values = {f"_{n}": _grid(arg, extents, names) for n, arg in enumerate(args)}
            scope = {"np": np, "sj": _Plain({})}
            made: Array = eval(template.format(*values), scope, values)
            if index:
                axis = INDICES.index(index)
                made = np.add.reduce(made, axis=axis, keepdims=True, dtype=made.dtype)
            return made
