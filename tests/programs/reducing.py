"""Make a failing program smaller: the first thing to do with one.

In: a ``Program`` and a question. Out: a program for which the answer is the same, from which no
statement, result, argument or part of an expression can be left out.

    python -m tests.programs.reducing SEED
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.programs.drawing import draw_program
from tests.programs.language import (
    Apply,
    Call,
    Expr,
    IndexExpr,
    IndexUpdate,
    Item,
    Let,
    Loop,
    Num,
    Program,
    Statement,
    Update,
    Var,
    children,
    with_children,
)
from tests.programs.plain import REFUSALS, evaluate_plain, make_memory
from tests.programs.running import run_program
from tests.programs.text import source

__all__ = ["failure_of", "reduced"]


def failure_of(program: Program) -> str:
    """Return what goes wrong in a word or two, "" if nothing does or NumPy refuses."""
    try:
        evaluate_plain(program, make_memory(program))
    except REFUSALS:
        return ""
    try:
        run_program(program)
    except Exception as error:  # the kind of the failure is the question
        words = str(error).split(":")[-1].split()  # numbers and names change on the way
        return " ".join([type(error).__name__, *words[:4]])
    return ""


def reduced(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return the smallest program found, step by step, for which ``fails`` still holds."""
    while True:
        for smaller in _smaller(program):
            if fails(smaller):
                program = smaller
                break
        else:
            return program


def _smaller(program: Program) -> Iterator[Program]:
    yield from _smaller_calls(program)
    statements = program.statements
    for n in range(len(statements)):
        yield replace(program, statements=statements[:n] + statements[n + 1 :])
    for n in range(len(program.params)):
        yield replace(program, params=program.params[:n] + program.params[n + 1 :])
    for n, statement in enumerate(statements):
        for simpler in _simpler_statements(statement):
            yield replace(program, statements=(*statements[:n], simpler, *statements[n + 1 :]))
    for n, described in enumerate(program.objects):
        if described.format:
            dense = replace(described, format="")
            objects = (*program.objects[:n], dense, *program.objects[n + 1 :])
            yield replace(program, objects=objects)


def _smaller_calls(program: Program) -> Iterator[Program]:
    """Yield plainer ways to call the program, and fewer results."""
    plain_call = Call(outputs=program.call.outputs, storage=program.call.storage)
    for call in (Call(), plain_call, replace(program.call, outputs=())):
        if call != program.call:
            yield replace(program, call=call)
    if len(program.returns) > 1:
        for n in range(len(program.returns)):
            kept = program.returns[:n] + program.returns[n + 1 :]
            outputs = tuple((at - (at > n), fmt) for at, fmt in program.call.outputs if at != n)
            call = replace(program.call, outputs=outputs)
            yield replace(program, returns=kept, call=call)


def _simpler_statements(statement: Statement) -> Iterator[Statement]:
    match statement:
        case Let(name, value):
            for expr in _simpler(value):
                yield Let(name, expr)  # type: ignore[arg-type]  # parts of an Expr are Exprs
        case Update(name, key, op, value):
            for expr in _simpler(value):
                yield Update(name, key, op, expr)  # type: ignore[arg-type]  # likewise
        case Loop():
            yield from _simpler_loops(statement)
        case IndexUpdate(_, _, _, terms, _):
            for n, (sign, term) in enumerate(terms):
                if len(terms) > 1:
                    yield replace(statement, terms=terms[:n] + terms[n + 1 :])
                for simpler in _simpler(term):
                    changed = (*terms[:n], (sign, simpler), *terms[n + 1 :])
                    yield replace(statement, terms=changed)  # type: ignore[arg-type]  # likewise


def _simpler_loops(loop: Loop) -> Iterator[Statement]:
    for n in range(len(loop.names)):
        if len(loop.names) > 1:
            yield replace(
                loop,
                names=loop.names[:n] + loop.names[n + 1 :],
                inits=loop.inits[:n] + loop.inits[n + 1 :],
                locals=loop.locals[:n] + loop.locals[n + 1 :],
            )
    if loop.count > 0:
        yield replace(loop, count=loop.count - 1)
    for n, body in enumerate(loop.bodies):
        smaller = [body[:k] + body[k + 1 :] for k in range(len(body))]
        for k, inner in enumerate(body):
            smaller += [(*body[:k], one, *body[k + 1 :]) for one in _simpler_statements(inner)]
        for bodies in smaller:
            yield replace(loop, bodies=(*loop.bodies[:n], bodies, *loop.bodies[n + 1 :]))


def _simpler(expr: Expr | IndexExpr) -> Iterator[Expr | IndexExpr]:
    parts = children(expr)
    yield from parts
    if isinstance(expr, Apply | Item | Var):
        yield Num(1)
    for n, part in enumerate(parts):
        for simpler in _simpler(part):
            yield with_children(expr, (*parts[:n], simpler, *parts[n + 1 :]))


def _main(seed: int) -> None:
    program = draw_program(seed)
    kind = failure_of(program)
    if not kind:
        print(f"seed {seed} is right")
        return
    small = reduced(program, lambda candidate: failure_of(candidate) == kind)
    print(source(small), *small.bases, *small.objects, *small.params, sep="\n")
    try:
        run_program(small)
    except Exception:  # shown, since it is what was asked for
        traceback.print_exc()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
