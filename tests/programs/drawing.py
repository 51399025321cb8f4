"""Random programs: drawn statement by statement, each tried in NumPy before it is kept.

In: a seed. Out: a ``Program`` that NumPy runs, with small integers for values so that sums are
exact in any order. A program has at least three statements; half assign to an argument, a third
has the same object twice or views that overlap.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.programs.expressions import ExpressionDrawing, Scope
from tests.programs.language import (
    Base,
    Expr,
    IndexUpdate,
    Item,
    Let,
    Object,
    Param,
    Program,
    Statement,
    Update,
    Var,
    children,
)
from tests.programs.plain import final_names, make_memory

__all__ = ["draw_program"]

LARGEST = 2000  # what arrays may hold between statements
TRIES = 60

FORMATS = {
    1: ("SparseVector", "COO(1)"),
    2: ("CSR", "CSC", "COO(2)", "DCSR", "DCSC", "BSR(2, 2)", "DIA", "ELL(5)"),
    3: ("CSF(3)", "COO(3)"),
}
ARRANGEMENTS = (
    "apart", "apart", "apart", "apart", "same", "shifted", "shifted", "transposed", "row",
    "interleaved",
)  # fmt: skip


def draw_program(seed: int) -> Program:
    """Return the program of a seed."""
    rng = random.Random(seed)
    program = _arguments(rng)
    wanted = rng.randint(3, 6)
    for _ in range(TRIES):
        if len(program.statements) == wanted:
            break
        program = _extended(program, rng) or program
    return _with_returns(program, rng)


# ---------------------------------------------------------------- arguments


def _arguments(rng: random.Random) -> Program:
    m, n = (rng.choice([1, 2, 2, 3, 3, 4, 4, 0] if rng.random() < 0.3 else [2, 3, 4]) for _ in "mn")
    if rng.random() < 0.3:
        n = m
    main = rng.choice(["float64", "float64", "float64", "int64", "float32"])
    bases: list[Base] = []
    objects: list[Object] = []

    def add(shape: tuple[int, ...], dense: bool) -> None:
        dtype = main if rng.random() < 0.85 else rng.choice(["float64", "int64"])
        density = 1.0 if dense else rng.choice([0.3, 0.6])
        bases.append(Base(shape, dtype, rng.randrange(10**6), density))
        fmt = "" if dense else rng.choice(FORMATS[len(shape)])
        objects.append(Object(len(bases) - 1, format=fmt))

    arrangement = rng.choice(ARRANGEMENTS)
    _overlapping(arrangement, m, n, main, rng, bases, objects)
    shapes = [(m,), (n,), (m, n), (m, n), (n, m), (m, m), (m, n, 2)]
    for _ in range(rng.randint(2, 4)):
        shape = rng.choice(shapes)
        add(shape, rng.random() < (0.5 if len(shape) > 1 else 0.8))
    if all(described.format for described in objects):
        add((m,), True)
    letters = list("yxzwuv")
    params = [
        Param("ABCDEFGH"[number] if described.format else letters.pop(0), number)
        for number, described in enumerate(objects)
    ]
    if arrangement == "same":
        twice = rng.randrange(len(params))
        params.append(Param(f"{params[twice].name}2", twice))
    if rng.random() < 0.4:
        params.append(Param("s", None, rng.choice([2, -1, 3, 2.0, 0.0])))
    rng.shuffle(params)
    return Program(tuple(bases), tuple(objects), tuple(params), (), ())


def _overlapping(
    arrangement: str,
    m: int,
    n: int,
    dtype: str,
    rng: random.Random,
    bases: list[Base],
    objects: list[Object],
) -> None:
    """Add two dense objects that are views of one memory."""
    seed = rng.randrange(10**6)
    is_vector = rng.random() < 0.5
    rest = () if is_vector else (n,)
    match arrangement:
        case "shifted":
            bases.append(Base((m + 1, *rest), dtype, seed))
            views: list[tuple[object, ...]] = [((0, m, None),), ((1, m + 1, None),)]
            views[1] = rng.choice([views[1], ((None, None, -1),)[:1] if m == 0 else views[1]])
            objects += [Object(0, view) for view in views]
        case "interleaved":
            bases.append(Base((2 * m, *rest), dtype, seed))
            objects += [Object(0, ((0, None, 2),)), Object(0, ((1, None, 2),))]
        case "transposed":
            bases.append(Base((m, m), dtype, seed))
            objects += [Object(0), Object(0, transposed=True)]
        case "row":
            bases.append(Base((m + 1, n), dtype, seed))
            column = rng.random() < 0.3
            part: tuple[object, ...] = ((None, None, None), 0) if column and n else (m,)
            objects += [Object(0), Object(0, part)]
        case _:
            pass


# ---------------------------------------------------------------- statements


def _scope(program: Program) -> Scope:
    """Return what is known after the program: shapes, and which names may be sparse."""
    names = final_names(program, make_memory(program))
    shapes = {name: np.shape(value) for name, value in names.items()}
    sparse = {
        param.name
        for param in program.params
        if param.object is not None and program.objects[param.object].format
    }
    patterns = frozenset(sparse)
    for statement in program.statements:
        match statement:
            case Let(name, value):
                sparse = sparse - {name} | ({name} if _mentions(value, sparse) else set())
            case Update(name, _, _, value) if name not in shapes or _mentions(value, sparse):
                pass
            case IndexUpdate(name, _, _, _, True):
                sparse = sparse | {name}
            case _:
                pass
    rebound = {s.name for s in program.statements if isinstance(s, Let)}
    return Scope(shapes, frozenset(sparse), patterns - rebound)


def _mentions(expr: Expr, names: set[str]) -> bool:
    if isinstance(expr, Var):
        return expr.name in names
    return any(_mentions(part, names) for part in children(expr))  # type: ignore[arg-type]  # parts of an Expr


def _extended(program: Program, rng: random.Random) -> Program | None:
    """Return the program with one more statement, or None where NumPy refuses the one drawn."""
    scope = _scope(program)
    statement = _statement(program, scope, rng)
    if statement is None:
        return None
    longer = replace(program, statements=(*program.statements, statement))
    memory = make_memory(longer)
    try:
        names = final_names(longer, memory)
    except (ValueError, TypeError, IndexError, KeyError, AttributeError):
        return None
    if not all(map(_is_small, [*names.values(), *memory.bases])):
        return None
    if isinstance(statement, Let) and _views_sparse(statement.name, names, scope.sparse):
        return None
    return longer


def _is_small(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype != bool and bool((np.abs(array) <= LARGEST).all())


def _views_sparse(name: str, names: dict[str, Any], sparse: frozenset[str]) -> bool:
    """Whether a new name is a view of a sparse value here, where it would be a copy there."""
    value = names[name]
    if not isinstance(value, np.ndarray):
        return False
    return any(
        isinstance(names[other], np.ndarray)
        and names[other] is not value
        and np.shares_memory(names[other], value)
        for other in sparse
        if other != name
    )


def _statement(program: Program, scope: Scope, rng: random.Random) -> Statement | None:
    drawing = ExpressionDrawing(scope, rng)
    arguments = {param.name for param in program.params}
    fresh = next(f"t{n}" for n in range(99) if f"t{n}" not in scope.shapes)
    dense = [name for name in scope.shapes if name not in scope.sparse]
    kind = rng.random()
    if kind < 0.28:
        return Let(fresh, drawing.expression(drawing.shape(), 2))
    if kind < 0.36:
        return _let_of_a_view(fresh, dense, scope, rng)
    if kind < 0.41:  # a name of an argument is bound to something else
        name = rng.choice(sorted(scope.shapes))
        return Let(name, drawing.expression(scope.shapes[name], 2))
    if kind < 0.50:
        return drawing.index_statement(fresh, is_fresh=True)
    favored = [name for name in dense if name in arguments] or dense
    pool = favored if rng.random() < 0.75 else dense
    if rng.random() < 0.015 and scope.sparse:
        pool = sorted(scope.sparse)
    if not pool:
        return None
    name = rng.choice(pool)
    shape = scope.shapes[name]
    if kind < 0.68:
        op = rng.choice(["+=", "-=", "*=", "+="])
        return Update(name, None, op, drawing.expression(drawing.narrower(shape), 2))
    if kind < 0.84:
        key, kept = drawing.key(shape)
        op = rng.choice(["=", "=", "+=", "-=", "*="])
        return Update(name, key, op, drawing.expression(drawing.narrower(kept), 2))
    return drawing.index_statement(name, is_fresh=False)


def _let_of_a_view(
    fresh: str, dense: list[str], scope: Scope, rng: random.Random
) -> Statement | None:
    arrays = [name for name in dense if scope.shapes[name]]
    if not arrays:
        return None
    name = rng.choice(arrays)
    drawing = ExpressionDrawing(scope, rng)
    if rng.random() < 0.3:
        return Let(fresh, drawing.transposed(Var(name)))
    if rng.random() < 0.2:
        return Let(fresh, Var(name))
    key, _ = drawing.key(scope.shapes[name])
    return Let(fresh, Item(Var(name), key))


# ---------------------------------------------------------------- results


def _with_returns(program: Program, rng: random.Random) -> Program:
    scope = _scope(program)
    made = [name for name in scope.shapes if name.startswith("t")]
    changed = list(_targets(program))
    returns = [name for name in dict.fromkeys([*made, *changed]) if rng.random() < 0.6]
    if rng.random() < 0.15:
        returns.append(rng.choice(sorted(scope.shapes)))
    if not returns:
        returns = [rng.choice([*made, *changed] or sorted(scope.shapes))]
    rng.shuffle(returns)
    return replace(program, returns=tuple(returns[:4]))


def _targets(program: Program) -> Iterator[str]:
    for statement in program.statements:
        if not isinstance(statement, Let):
            yield statement.name
