"""Random programs: drawn statement by statement, each tried in NumPy before it is kept.

In: a seed. Out: a ``Program`` that NumPy runs, with small integers for values so that sums are
exact in any order. A program has at least three statements; names that begin with ``r`` hold
results that are compared with a tolerance and not computed with.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.programs.arguments import draw_arguments
from tests.programs.calls import draw_call
from tests.programs.expressions import ExpressionDrawing
from tests.programs.forms import FORMS
from tests.programs.index_drawing import index_statement
from tests.programs.language import (
    Apply,
    Expr,
    IndexUpdate,
    Item,
    Let,
    Loop,
    Program,
    Statement,
    Update,
    Var,
    children,
)
from tests.programs.loop_drawing import draw_loop
from tests.programs.pairs import Pair
from tests.programs.plain import REFUSALS, final_names, make_memory
from tests.programs.scope import Scope

__all__ = ["draw_program"]

LARGEST = 2000  # what arrays may hold between statements
TRIES = 80
THEME_TRIES = 6
INEXACT = "r"  # the name of a value that becomes a result at once


def draw_program(seed: int) -> Program:
    """Return the program of a seed."""
    rng = random.Random(seed)
    program = draw_arguments(rng)
    wanted = rng.randint(3, 6)
    program = _with_theme(program, seed, rng)
    for _ in range(TRIES):
        if len(program.statements) == wanted:
            break
        program = _extended(program, rng) or program
    program = _with_returns(program, rng)
    memory = make_memory(program)
    return replace(program, call=draw_call(program, final_names(program, memory), memory, rng))


# ---------------------------------------------------------------- statements


def _scope(program: Program) -> Scope:
    """Return what is known after the program, of the names that may be computed with."""
    names = {
        name: value
        for name, value in final_names(program, make_memory(program)).items()
        if not name.startswith("r")
    }
    shapes = {name: np.shape(value) for name, value in names.items()}
    dtypes = {
        name: value.dtype.name if isinstance(value, np.ndarray | np.generic) else ""
        for name, value in names.items()
    }
    sparse = {
        param.name
        for param in program.params
        if param.object is not None and program.objects[param.object].format
    }
    for statement in program.statements:
        match statement:
            case Let(name, value):
                sparse = sparse - {name} | ({name} if _mentions(value, sparse) else set())
            case IndexUpdate(name, _, _, _, True):
                sparse = sparse | {name}
            case Loop(_, made, inits):
                pairs = zip(made, inits, strict=True)
                sparse = sparse | {name for name, init in pairs if _mentions(init, sparse)}
            case _:
                pass
    sparse |= {name for name, value in names.items() if isinstance(value, Pair)}
    rebound = {s.name for s in program.statements if isinstance(s, Let)}
    dense = {
        param.name
        for param in program.params
        if param.object is not None and not program.objects[param.object].format
    }
    known = {name for name, value in names.items() if isinstance(value, Pair) and value.sure}
    return Scope(shapes, dtypes, frozenset(sparse), frozenset(known | (dense - rebound)))


def _mentions(expr: Expr, names: set[str]) -> bool:
    if isinstance(expr, Var):
        return expr.name in names
    return any(_mentions(part, names) for part in children(expr))  # type: ignore[arg-type]  # parts of an Expr


def _with_theme(program: Program, seed: int, rng: random.Random) -> Program:
    """Begin with the form whose turn it is, so that all forms come equally often."""
    forms = [form for group in FORMS.values() for form in group]
    form = forms[seed % len(forms)]
    for _ in range(THEME_TRIES):
        value = ExpressionDrawing(_scope(program), rng).form(form, {}, None, 1)
        if value is None:
            continue
        longer = _tried(program, Let("t0", value)) if form.exact else _with_result(program, value)
        if longer is not None:
            return longer
    return program


def _extended(program: Program, rng: random.Random) -> Program | None:
    """Return the program with one more statement, or None where NumPy refuses the one drawn."""
    scope = _scope(program)
    statement = _statement(program, scope, rng)
    if isinstance(statement, Let) and statement.name == INEXACT:
        return _with_result(program, statement.value)
    return None if statement is None else _tried(program, statement)


def _tried(program: Program, statement: Statement) -> Program | None:
    """Return the program with a statement if NumPy runs it and it can be compared."""
    scope = _scope(program)
    longer = replace(program, statements=(*program.statements, statement))
    memory = make_memory(longer)
    try:
        names = final_names(longer, memory)
    except REFUSALS:
        return None
    kept = [value for name, value in names.items() if not name.startswith("r")]
    if not all(map(_is_small, [*kept, *memory.bases, *memory.objects])):
        if isinstance(statement, Let) and statement.name.startswith("t"):
            return _with_result(program, statement.value)
        return None
    if isinstance(statement, Let) and _views_sparse(statement, names, scope.sparse):
        return None
    if isinstance(statement, Let) and not _mentions(statement.value, set(scope.shapes)):
        return None  # a constant is no result of the program
    return longer


def _with_result(program: Program, value: Expr) -> Program | None:
    """Return the program with a value that is returned and not computed with."""
    taken = {s.name for s in program.statements if isinstance(s, Let)}
    name = next(f"r{n}" for n in range(99) if f"r{n}" not in taken)
    longer = replace(program, statements=(*program.statements, Let(name, value)))
    try:
        made = final_names(longer, make_memory(longer))[name]
    except REFUSALS:
        return None
    found = np.asarray(made)
    if found.dtype.kind in "iu":
        return longer
    finite = found[np.isfinite(found)].astype(np.complex128)
    return longer if bool((np.abs(finite) <= 10**6).all()) else None


def _is_small(value: Any) -> bool:
    array = np.asarray(value)
    if array.dtype == bool:
        return True
    return bool((np.abs(array) <= (200 if array.dtype.itemsize == 2 else LARGEST)).all())


def _viewed(expr: Expr) -> tuple[str, bool]:
    """Return the name that an expression is a view of, or "", and whether it is reshaped."""
    match expr:
        case Var(name):
            return name, False
        case Item(base, _):
            return _viewed(base)
        case Apply(template, (base,)) if template.startswith(
            ("{0}.T", "{0}.reshape", "np.reshape")
        ):
            name, is_reshaped = _viewed(base)
            return name, is_reshaped or "reshape" in template
        case _:
            return "", False


def _views_sparse(statement: Let, names: dict[str, Any], sparse: frozenset[str]) -> bool:
    """Whether a new name is a view here and a copy there, or the other way round."""
    value = names[statement.name]
    if not isinstance(value, np.ndarray):
        return False
    root, reshapes = _viewed(statement.value)
    is_dense = reshapes and root in names and root not in sparse
    if is_dense and not np.shares_memory(value, names[root]):
        return True  # NumPy copies where strides do not allow a view
    return any(
        isinstance(names[other], np.ndarray)
        and names[other] is not value
        and np.shares_memory(names[other], value)
        for other in sparse
        if other != statement.name and other in names
    )


def _statement(program: Program, scope: Scope, rng: random.Random) -> Statement | None:
    drawing = ExpressionDrawing(scope, rng)
    fresh = next(f"t{n}" for n in range(99) if f"t{n}" not in scope.shapes)
    dense = [name for name in scope.shapes if name not in scope.sparse]
    kind = rng.random()
    if kind < 0.15:
        return Let(fresh, drawing.expression(drawing.shape(), 2))
    if kind < 0.36:
        return _let_of_a_form(fresh, drawing, rng)
    if kind < 0.42:
        return _let_of_a_view(fresh, dense, scope, rng)
    if kind < 0.45:  # a name of an argument is bound to something else
        name = rng.choice(sorted(scope.shapes))
        return Let(name, drawing.expression(scope.shapes[name], 2))
    if kind < 0.55:
        return index_statement(fresh, True, scope, rng)
    if kind < 0.63:
        free = [f"t{n}" for n in range(99) if f"t{n}" not in scope.shapes]
        return draw_loop(tuple(free[: rng.choice([1, 1, 2])]), scope, rng)
    return _assignment(program, scope, rng)


def _assignment(program: Program, scope: Scope, rng: random.Random) -> Statement | None:
    """Return an update of a name, mostly of an argument."""
    kind = rng.uniform(0.63, 1)
    if kind < 0.69:
        return _sparse_update(program, scope, rng)
    drawing = ExpressionDrawing(scope, rng)
    arguments = {param.name for param in program.params}
    dense = [name for name in scope.shapes if name not in scope.sparse]
    favored = [name for name in dense if name in arguments] or dense
    pool = favored if rng.random() < 0.75 else dense
    if not pool:
        return None
    name = rng.choice(pool)
    shape = scope.shapes[name]
    if kind < 0.79:
        op = rng.choice(["+=", "-=", "*=", "+="])
        return Update(name, None, op, drawing.expression(drawing.narrower(shape), 2))
    if kind < 0.9:
        key, kept = drawing.key(shape)
        op = rng.choice(["=", "=", "+=", "-=", "*="])
        return Update(name, key, op, drawing.expression(drawing.narrower(kept), 2))
    return index_statement(name, False, scope, rng)


def _let_of_a_form(fresh: str, drawing: ExpressionDrawing, rng: random.Random) -> Statement | None:
    """Return a form of whatever shape, a sum of products, or an inexact result."""
    kind = rng.random()
    if kind < 0.2:
        return Let(fresh, drawing.einsum(None))
    inexact = kind < 0.45
    kinds = ("inexact",) if inexact else ("free", "free", "same", "matrix", "vector", "number")
    value = drawing.free([rng.choice(kinds)])
    if value is None:
        return None
    return Let(INEXACT if inexact else fresh, value)


def _sparse_update(program: Program, scope: Scope, rng: random.Random) -> Statement | None:
    """Return an assignment to a sparse argument that keeps its pattern."""
    rebound = {s.name for s in program.statements if isinstance(s, Let)}
    arguments = {param.name for param in program.params} - rebound
    names = sorted(arguments & scope.sparse & scope.patterns)
    if not names:
        return None
    name = rng.choice(names)
    drawing = ExpressionDrawing(scope, rng)
    value = drawing.expression(scope.shapes[name], 2)
    at_entries = Apply("sj.where_stored({0}, {1})", (Var(name), value))
    match rng.randrange(5):
        case 0:
            return Update(
                name, None, "*=", value if rng.random() < 0.5 else drawing.expression((), 1)
            )
        case 1:
            return Update(name, None, rng.choice(["+=", "-="]), at_entries)
        case 2:
            return Update(name, ((None, None, None),), "=", at_entries)
        case 3:
            own = rng.choice(["({0} * 2)", "np.minimum({0}, 2)", "({0} * {0})", "-{0}"])
            return Update(name, ("...",), "=", Apply(own, (Var(name),)))
        case _:
            return index_statement(name, False, scope, rng)


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
    if rng.random() < 0.2:
        return Let(fresh, Apply("{0}.reshape(-1)", (Var(name),)))
    key, _ = drawing.key(scope.shapes[name])
    return Let(fresh, Item(Var(name), key))


# ---------------------------------------------------------------- results


def _with_returns(program: Program, rng: random.Random) -> Program:
    scope = _scope(program)
    made = [name for name in scope.shapes if name.startswith("t")]
    results = [s.name for s in program.statements if isinstance(s, Let) and s.name[0] == "r"]
    changed = list(_targets(program))
    returns = [name for name in dict.fromkeys([*made, *changed]) if rng.random() < 0.6]
    if rng.random() < 0.15:
        returns.append(rng.choice(sorted(scope.shapes)))
    if not returns and not results:
        returns = [rng.choice([*made, *changed] or sorted(scope.shapes))]
    rng.shuffle(returns)
    return replace(program, returns=tuple([*results, *returns][: 4 + len(results)]))


def _targets(program: Program) -> Iterator[str]:
    for statement in program.statements:
        match statement:
            case Update() | IndexUpdate():
                yield statement.name
            case _:
                pass
