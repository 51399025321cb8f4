"""The text of a drawn program: the Python function that is decorated."""

from __future__ import annotations

from tests.programs.language import (
    Apply,
    At,
    Coord,
    Expr,
    IndexExpr,
    IndexUpdate,
    Item,
    Key,
    Let,
    Load,
    Loop,
    Num,
    Over,
    Place,
    Program,
    Statement,
    Update,
    Var,
)

__all__ = ["key_text", "source"]


def _key_part(part: object) -> str:
    match part:
        case (start, stop, step):
            texts = ["" if number is None else str(number) for number in (start, stop, step)]
            return ":".join(texts[:2] if step is None else texts)
        case _:
            return str(part)


def key_text(key: Key) -> str:
    """Return a subscript as Python writes it, without brackets."""
    return ", ".join(map(_key_part, key)) or "()"


def _expr(expr: Expr) -> str:
    match expr:
        case Var(name):
            return name
        case Num(value):
            return f"({value!r})" if value < 0 else repr(value)
        case Apply(template, args):
            return template.format(*map(_expr, args))
        case Item(base, key):
            return f"{_expr(base)}[{key_text(key)}]"


def _place(place: Place) -> str:
    if not place.index:
        return str(place.offset)
    text = place.index if place.stride == 1 else f"{place.stride} * {place.index}"
    text += f" + {place.other}" if place.other else ""
    return f"{text} + {place.offset}" if place.offset else text


def _at(at: At) -> str:
    return ", ".join(map(_place, at)) or "()"


def _index_expr(expr: IndexExpr) -> str:
    match expr:
        case Load(name, at):
            return f"{name}[{_at(at)}]" if at else name
        case Coord(index):
            return index
        case Num(value):
            return f"({value!r})" if value < 0 else repr(value)
        case Over(template, args, index, reduction):
            text = template.format(*map(_index_expr, args))
            return f"sj.{reduction}({text}, over={index})" if index else text


def _statement(statement: Statement) -> list[str]:
    match statement:
        case Let(name, value):
            return [f"{name} = {_expr(value)}"]
        case Update(name, None, op, value):
            return [f"{name} {op} {_expr(value)}"]
        case Update(name, key, op, value):
            assert key is not None
            return [f"{name}[{key_text(key)}] {op} {_expr(value)}"]
        case IndexUpdate(name, at, op, terms, fresh):
            text = "".join(f" {sign} {_index_expr(term)}" for sign, term in terms)
            text = text.removeprefix(" + ")
            made = [f"{name} = sj.output()"] if fresh else []
            return [*made, f"{name}[{_at(at)}] {op} {text.strip()}"]
        case Loop():
            return _loop(statement)


def _loop(loop: Loop) -> list[str]:
    carried = ", ".join(loop.locals) + ","
    lines: list[str] = []
    for name, body in zip(("body", "orelse"), loop.bodies, strict=False):
        match loop.kind:
            case "for":
                head = [f"def {name}(i, carried):", f"    {carried} = carried"]
            case "while":
                head = [f"def {name}(carried):", f"    rounds, {carried} = carried"]
            case _:
                head = [f"def {name}({carried}):"]
        inner = [line for statement in body for line in _statement(statement)]
        rounds = "rounds + 1, " if loop.kind == "while" else ""
        lines += [*head, *(f"    {line}" for line in inner), f"    return ({rounds}{carried})"]
    names, inits = ", ".join(loop.names) + ",", ", ".join(map(_expr, loop.inits)) + ","
    match loop.kind:
        case "for":
            return [*lines, f"{names} = sj.fori_loop(0, {loop.count}, body, ({inits}))"]
        case "while":
            assert loop.test is not None
            lines += ["def goes_on(carried):", f"    rounds, {carried} = carried"]
            lines += [f"    return (rounds < {loop.count}) & ({_expr(loop.test)})"]
            return [*lines, f"_, {names} = sj.while_loop(goes_on, body, (0, {inits}))"]
        case _:
            assert loop.test is not None
            return [*lines, f"{names} = sj.cond({_expr(loop.test)}, body, orelse, {inits})"]


def source(program: Program) -> str:
    """Return the text of the program as a Python function ``f``."""
    names = [param.name for param in program.params]
    packed = program.call.packed
    heads = ["packed", *names[2:]] if packed else names
    lines = [f"def f({', '.join(heads)}):"]
    if packed:
        taken = ["packed[0]", "packed[1]"] if packed != "dict" else ["packed['a']", "packed['b']"]
        lines.append(f"    {names[0]}, {names[1]} = {', '.join(taken)}")
    if any(isinstance(statement, IndexUpdate) for statement in program.statements):
        lines.append("    i, j, k = sj.indices('i j k')")
    for statement in program.statements:
        lines += [f"    {line}" for line in _statement(statement)]
    returned = ", ".join(program.returns)
    match program.call.results:
        case "dict":
            items = ", ".join(f"'{n}': {name}" for n, name in enumerate(program.returns))
            lines.append(f"    return {{{items}}}")
        case "list":
            lines.append(f"    return [{returned}]")
        case _:
            lines.append(f"    return {returned},")
    return "\n".join(lines) + "\n"
