"""Random programs with loops and branches, drawn as data and run in two ways.

A program is a list of statements over two vectors `a` and `b`, a scalar `s` and a sparse matrix
`A`; loops and branches hold statements and name what they carry. `run` executes one against `L`,
sparsejit while tracing or plain Python, where what is carried is copied, since loops carry values.
Values stay between -1 and 1, so that nothing overflows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Program", "draw", "run"]

Env = dict[str, Any]
Statement = tuple[str, Any]
NAMES = ("a", "b", "s")


@dataclass(frozen=True)
class Program:
    """Statements, and the names that are returned."""

    statements: tuple[Statement, ...]
    results: tuple[str, ...]


def draw(seed: int) -> Program:
    """Return the program of a seed."""
    rng = random.Random(seed)
    return Program(
        _statements(rng, 2, 2 + rng.randrange(4)),
        tuple(rng.choice(NAMES) for _ in range(1 + rng.randrange(3))),
    )


def _statements(rng: random.Random, depth: int, count: int) -> tuple[Statement, ...]:
    kinds = ["vector"] * 3 + ["scalar"] * 2 + ["element", "slice", "rename", "product"]
    nested = ["for", "while", "cond"] if depth else []
    made: list[Statement] = []
    for _ in range(count):
        kind = rng.choice(kinds + nested * 2)
        numbers = tuple(rng.randrange(1000) for _ in range(6))
        if kind in nested:
            inner = tuple(_statements(rng, depth - 1, 1 + rng.randrange(3)) for _ in range(2))
            carried = tuple(sorted(rng.sample(NAMES, 1 + rng.randrange(3))))
            made.append((kind, (numbers, carried, inner)))
        else:
            made.append((kind, numbers))
    return tuple(made)


def run(program: Program, L: Any, A: Any, a: Any, b: Any, s: Any) -> tuple[Any, ...]:
    """Run a program with the loops of `L`."""
    env = {"a": a * 1, "b": b * 1, "s": s * 1.0, "A": A, "i": 0}
    _block(program.statements, L, env)
    return tuple(env[name] * 1 for name in program.results)


def _block(statements: tuple[Statement, ...], L: Any, env: Env) -> None:
    for kind, numbers in statements:
        _STATEMENTS[kind](numbers, L, env)


def _pick(number: int, env: Env, names: str = "ab") -> Any:
    return env[names[number % len(names)]]


def _vector(n: Any, L: Any, env: Env) -> None:
    one, other = _pick(n[0], env), _pick(n[1], env)
    made = (
        lambda: one + other,
        lambda: one * other - env["s"],
        lambda: np.where(one > other, one, -other),
        lambda: one[::-1] + other * 0.5,
        lambda: np.concatenate([other[2:], one[:2]]),
        lambda: one * env["s"] + env["i"] * 0.1,
        lambda: np.pad(one[1:-1], 1, constant_values=0.5) * other,
        lambda: one.reshape(2, 3).T.reshape(6) - other,
    )[n[2] % 8]()
    env["ab"[n[3] % 2]] = np.tanh(made)


def _product(n: Any, L: Any, env: Env) -> None:
    A = env["A"].T if n[0] % 2 else env["A"]
    env["ab"[n[1] % 2]] = np.tanh(A @ _pick(n[2], env))


def _scalar(n: Any, L: Any, env: Env) -> None:
    one, other = _pick(n[0], env), _pick(n[1], env)
    made = (
        lambda: one.sum() * 0.3,
        lambda: one @ other,
        lambda: env["s"] * 0.5 + 0.25,
        lambda: one.max() - env["s"],
        lambda: one[n[3] % 6] + env["i"] * 0.01,
    )[n[2] % 5]()
    env["s"] = np.tanh(made)


def _element(n: Any, L: Any, env: Env) -> None:
    _pick(n[0], env)[n[1] % 6] = env["s"]


def _slice(n: Any, L: Any, env: Env) -> None:
    target, source = _pick(n[0], env), _pick(n[1], env)
    if n[2] % 2:
        target[1:4] = source[2:5] * 0.5
    else:
        target[::2] *= 0.5


def _rename(n: Any, L: Any, env: Env) -> None:
    env["a"], env["b"] = env["b"], env["a"]


def _inside(env: Env, carried: tuple[str, ...], values: Any, i: Any) -> Env:
    """The names in a block: what is carried, and copies of the rest, which must not change."""
    inside = {name: value * 1 for name, value in env.items() if name in NAMES}
    return {**inside, "A": env["A"], "i": i, **dict(zip(carried, values, strict=True))}


def _for(given: Any, L: Any, env: Env) -> None:
    n, carried, (body, _) = given

    def step(i: Any, values: Any) -> Any:
        inside = _inside(env, carried, values, i)
        _block(body, L, inside)
        return tuple(inside[name] for name in carried)

    made = L.fori_loop(n[0] % 2, n[1] % 4, step, tuple(env[name] for name in carried))
    env.update(zip(carried, made, strict=True))


def _while(given: Any, L: Any, env: Env) -> None:
    n, carried, (body, test) = given

    def goes_on(values: Any) -> Any:
        inside = _inside(env, carried, values[1:], 0)
        _block(test, L, inside)
        return (inside["s"] < 0.4) & (values[0] < n[0] % 4)

    def step(values: Any) -> Any:
        inside = _inside(env, carried, values[1:], values[0])
        _block(body, L, inside)
        return (values[0] + 1, *(inside[name] for name in carried))

    made = L.while_loop(goes_on, step, (0, *(env[name] for name in carried)))
    env.update(zip(carried, made[1:], strict=True))


def _cond(given: Any, L: Any, env: Env) -> None:
    n, carried, branches = given

    def branch(statements: tuple[Statement, ...]) -> Callable[..., Any]:
        def run_branch(*values: Any) -> Any:
            inside = _inside(env, carried, [value * 1 for value in values], env["i"])
            _block(statements, L, inside)
            return tuple(inside[name] for name in carried)

        return run_branch

    operands = [env[name] for name in carried]
    made = L.cond(env["s"] < n[0] % 3 * 0.3, branch(branches[0]), branch(branches[1]), *operands)
    env.update(zip(carried, made, strict=True))


_STATEMENTS: dict[str, Callable[[Any, Any, Env], None]] = {
    "vector": _vector,
    "product": _product,
    "scalar": _scalar,
    "element": _element,
    "slice": _slice,
    "rename": _rename,
    "for": _for,
    "while": _while,
    "cond": _cond,
}
