"""Random programs evaluated in plain NumPy, statement by statement, by brute force.

In: a ``Program``. Out: what it returns and the final state of the memory it works on. Nothing of
sparsejit takes part: sparse tensors are arrays with masks (``pairs``), and index statements are
evaluated over the whole grid of their indices (``plain_indices``).
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.programs import user_functions
from tests.programs.language import (
    Apply,
    Base,
    Expr,
    IndexUpdate,
    Item,
    Key,
    Let,
    Loop,
    Num,
    Program,
    Statement,
    Update,
    Var,
)
from tests.programs.library import cond, fori_loop, library, while_loop
from tests.programs.pairs import Array, Pair, as_plain, pair
from tests.programs.plain_indices import check_dtypes, fitting, index_update, same_kind

__all__ = ["REFUSALS", "Memory", "evaluate_plain", "final_names", "make_memory", "subscript"]

REFUSALS = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)
"""What NumPy raises for a program that means nothing."""

UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.add,
    "-=": operator.sub,
    "*=": operator.mul,
}
_FUNCTIONS = {name: getattr(user_functions, name) for name in user_functions.__all__}
SCOPE: dict[str, Any] = {"np": np, "sj": library, **_FUNCTIONS}
"""What the texts of expressions may name beside their holes."""


@dataclass(slots=True)
class Memory:
    """The bases, and the objects over them; sparse ones are copies that know what they store."""

    bases: list[Array]
    objects: list[Array]


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
    for described in program.objects:
        array = bases[described.base]
        array = array[subscript(described.view)] if described.view else array
        array = array.T if described.transposed else array
        if described.format:
            fill = np.asarray(program.bases[described.base].fill).astype(array.dtype)[()]
            pads = described.format in PADDING
            stored = _stored(array, described.format, fill)
            array = pair(array.copy(), stored, fill, True, pads)
        objects.append(array)
    return Memory(bases, objects)


def _drawn(base: Base) -> Array:
    rng = np.random.default_rng(base.seed)
    dtype = np.dtype(base.dtype)
    most = 2 if dtype.itemsize == 2 and dtype.kind not in "iu" else 4
    values = rng.integers(0 if dtype.kind in "ub" else -most, most + 1, base.shape)
    kept = rng.random(base.shape) < base.density
    if dtype.kind == "c":
        values = values + 1j * rng.integers(-2, 3, base.shape)
    made: Array = (np.where(kept, values, base.fill) if base.density < 1 else values).astype(dtype)
    return made


PADDING = ("BSR(2, 2)", "DIA")
"""The formats that store whole blocks or diagonals."""


def _stored(array: Array, fmt: str, fill: Any) -> Array:
    """Return the mask of slots that hold an entry: whole blocks, and whole diagonals."""
    stored: Array = array != fill
    if fmt not in PADDING:
        return stored
    rows, columns = (np.asarray(grid) for grid in np.indices(array.shape))
    owner: Array = (
        rows // 2 * (array.shape[1] + 1) + columns // 2 if fmt != "DIA" else columns - rows
    )
    return np.isin(owner, np.unique(owner[stored]))


def evaluate_plain(program: Program, memory: Memory) -> tuple[Any, ...]:
    """Run the program on the memory, which it changes, and return its results.

    Raises what NumPy raises, and ``ValueError`` where a statement has no meaning.
    """
    names = final_names(program, memory)
    return tuple(names[name] for name in program.returns)


def final_names(program: Program, memory: Memory) -> dict[str, Any]:
    """Run the program on the memory and return the value of every name at its end."""
    names: dict[str, Any] = {}
    for param in program.params:
        names[param.name] = param.number if param.object is None else memory.objects[param.object]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow and lost imaginary parts are meant
        for statement in program.statements:
            _execute(statement, names)
    return names


def _execute(statement: Statement, names: dict[str, Any]) -> None:
    match statement:
        case Let(name, value):
            names[name] = evaluate(value, names)
        case Update(name, None, op, value):
            made = evaluate(value, names)
            if isinstance(names[name], np.ndarray):
                UPDATES[op](names[name], made)
            else:
                names[name] = _OPERATORS[op](names[name], made)
        case Update(name, key, op, value):
            made = evaluate(value, names)
            place = subscript(key or ())
            if op == "=":
                fitting(made, names[name].dtype)
                names[name][place] = made
            else:
                names[name][place] = same_kind(op, names[name][place], made)
        case IndexUpdate():
            index_update(statement, names)
        case Loop():
            _execute_loop(statement, names)


def evaluate(expr: Expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression."""
    match expr:
        case Var(name):
            return names[name]
        case Num(value):
            return value
        case Item(base, key):
            return evaluate(base, names)[subscript(key)]
        case Apply(template, args):
            values = {f"_{n}": evaluate(arg, names) for n, arg in enumerate(args)}
            if ".astype(np." in template:
                fitting(
                    values["_0"], np.dtype(template.split("np.")[-1].removesuffix("_)").strip(")"))
                )
            if "axis=" in template and not all(map(np.ndim, values.values())):
                raise ValueError("a number has no axes")
            check_dtypes(template, [np.asarray(value).dtype for value in values.values()])
            made = _checked(eval(template.format(*values), SCOPE, values))
            if isinstance(made, Pair) and "*" not in template:
                runs = [
                    not np.ndim(v) and not isinstance(a, Num)
                    for v, a in zip(values.values(), args, strict=True)
                ]
                return pair(made, None) if any(runs) else made
            return made


def _checked(value: Any) -> Any:
    """Refuse floats that sums may not reach exactly."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.name in LARGEST_EXACT:
        finite = np.abs(value)[np.isfinite(value)]
        if not bool((finite <= LARGEST_EXACT[value.dtype.name]).all()):
            raise ValueError("a float becomes inexact")
    return value


LARGEST_EXACT = {
    "float16": 2000, "bfloat16": 250, "float32": 2**23, "float64": 2**51, "complex64": 2**23,
    "complex128": 2**51,
}  # fmt: skip


# ---------------------------------------------------------------- loops


def _read_only(value: Any) -> Any:
    """Return what a body sees of a value from outside, which it must not change."""
    if not isinstance(value, np.ndarray):
        return value
    view = as_plain(value).view()
    view.flags.writeable = False
    if isinstance(value, Pair):
        return pair(view, value.stored, value.fill, value.sure, value.pads)
    return view


def _execute_loop(loop: Loop, names: dict[str, Any]) -> None:
    def run(body: tuple[Statement, ...], values: Any, **more: Any) -> Any:
        outside = {name: _read_only(value) for name, value in names.items()}
        inside = {**outside, **dict(zip(loop.locals, values, strict=True)), **more}
        for statement in body:
            _execute(statement, inside)
        return tuple(inside[name] for name in loop.locals)

    def holds(values: Any) -> bool:
        assert loop.test is not None
        return bool(evaluate(loop.test, {**names, **dict(zip(loop.locals, values, strict=True))}))

    inits = tuple(evaluate(init, names) for init in loop.inits)
    match loop.kind:
        case "for":
            made = fori_loop(
                0, loop.count, lambda i, values: run(loop.bodies[0], values, i=i), inits
            )
        case "while":
            made = while_loop(
                lambda c: holds(c[1:]) and c[0] < loop.count,
                lambda c: (c[0] + 1, *run(loop.bodies[0], c[1:], rounds=c[0])),
                (0, *inits),
            )[1:]
        case _:
            assert loop.test is not None
            then, orelse = ((lambda *v, body=body: run(body, v)) for body in loop.bodies)
            made = cond(bool(evaluate(loop.test, names)), then, orelse, *inits)
    names.update(zip(loop.names, made, strict=True))
