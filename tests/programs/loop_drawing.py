"""Random loops and branches: what they carry, and bodies of one or two statements."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.programs.expressions import ExpressionDrawing
from tests.programs.language import Apply, Expr, Let, Loop, Num, Statement, Update, Var
from tests.programs.scope import Scope

__all__ = ["draw_loop"]


def draw_loop(names: tuple[str, ...], scope: Scope, rng: random.Random) -> Loop | None:
    """Return a loop or a branch that gives values for ``names``."""
    usable = [
        name for name in sorted(scope.shapes) if name not in scope.sparse or name in scope.patterns
    ]
    if not usable:
        return None
    carried = [rng.choice(usable) for _ in names]
    own = tuple(f"c{n}" for n in range(len(names)))
    inside = _inside(scope, dict(zip(own, carried, strict=True)))
    kind = rng.choice(["for", "for", "while", "cond"])
    # What a branch is given is not its own, so it assigns nothing.
    counter = {"for": Var("i"), "while": Var("rounds")}.get(kind, Num(1))
    bodies = tuple(_body(own, inside, counter, rng) for _ in range(2 if kind == "cond" else 1))
    test: Expr | None = None
    if kind == "while":
        test = Apply(rng.choice(["{0}.sum() < 40", "np.abs({0}).max() < 30"]), (Var(own[0]),))
    elif kind == "cond":
        test = Apply(rng.choice(["{0}.sum() > 0", "{0}.max() < 3"]), (Var(carried[0]),))
    inits = tuple(_init(name, inside, rng) for name in carried)
    return Loop(kind, names, inits, own, bodies, rng.randint(0, 3), test)


def _init(name: str, scope: Scope, rng: random.Random) -> Expr:
    return Apply("({0} * 1)", (Var(name),)) if rng.random() < 0.2 else Var(name)


def _inside(scope: Scope, own: dict[str, str]) -> Scope:
    """Return what is known inside of a body, where carried values have names of their own."""
    return replace(
        scope,
        shapes={**scope.shapes, **{name: scope.shapes[of] for name, of in own.items()}},
        dtypes={**scope.dtypes, **{name: scope.dtypes[of] for name, of in own.items()}},
        sparse=scope.sparse | {name for name, of in own.items() if of in scope.sparse},
        patterns=scope.patterns | {name for name, of in own.items() if of in scope.patterns},
    )


def _body(
    own: tuple[str, ...], scope: Scope, counter: Expr, rng: random.Random
) -> tuple[Statement, ...]:
    count = rng.randint(1, 2)
    return tuple(_statement(rng.choice(own), own, scope, counter, rng) for _ in range(count))


def _statement(
    name: str, own: tuple[str, ...], scope: Scope, counter: Expr, rng: random.Random
) -> Statement:
    drawing = ExpressionDrawing(scope, rng)
    shape = scope.shapes[name]
    if name in scope.sparse:
        template = rng.choice(["sj.where_stored({0}, {1})", "({0} * 2)", "np.minimum({0}, 3)"])
        return Let(
            name, _of_dtype(Apply(template, (Var(name), drawing.expression(shape, 1))), scope, name)
        )
    kind = rng.random()
    if kind < 0.35 and shape and not isinstance(counter, Num):
        key, kept = drawing.key(shape)
        op = rng.choice(["=", "+=", "-=", "*="])
        return Update(name, key, op, drawing.expression(drawing.narrower(kept), 1))
    if kind < 0.45 and not isinstance(counter, Num):
        return Update(name, None, rng.choice(["+=", "-="]), drawing.expression(shape, 1))
    if kind < 0.55:
        return Let(name, Var(rng.choice(own)))
    template = rng.choice(["{0}", "np.minimum({0}, 20)", "({0} + {1})", "({0} - {1})"])
    made = Apply(template, (drawing.expression(shape, 2), Var(name)))
    if rng.random() < 0.25:
        made = Apply("({0} + {1})", (made, counter))
    return Let(name, _of_dtype(made, scope, name))


def _of_dtype(expr: Expr, scope: Scope, name: str) -> Expr:
    """Return an expression in the dtype that is carried."""
    dtype = scope.dtypes[name]
    if dtype in ("bfloat16", "float64", ""):
        return expr
    return Apply(f"({{0}}).astype(np.{dtype.replace('bool', 'bool_')})", (expr,))
