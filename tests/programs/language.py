"""Random programs as data: what a drawn program consists of, and its text as Python source.

A ``Program`` has objects (arrays that the caller holds, which may be views of one memory),
parameters bound to objects or numbers, statements, and the names that it returns. Expressions are
those of NumPy; right-hand sides of index statements are a language of their own. ``source`` writes
the function that is decorated; ``tests.programs.plain`` evaluates the same data.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Apply",
    "Base",
    "Expr",
    "IndexExpr",
    "IndexUpdate",
    "Item",
    "Key",
    "Let",
    "Load",
    "Num",
    "Object",
    "Over",
    "Param",
    "Program",
    "Statement",
    "Update",
    "Var",
    "children",
    "key_text",
    "source",
    "with_children",
]

Key = tuple[object, ...]
"""A subscript: integers, (start, stop, step) triples, or "..." and "None" as strings."""


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Var:
    """A name."""

    name: str


@dataclass(frozen=True, slots=True)
class Num:
    """A literal."""

    value: float


@dataclass(frozen=True, slots=True)
class Apply:
    """A template with holes ``{0}``, ``{1}``, ... filled with expressions.

    Python evaluates the text on tracers, and, with NumPy arrays for names, in the plain evaluator.
    """

    template: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A subscripted expression."""

    base: Expr
    key: Key


Expr = Var | Num | Apply | Item


@dataclass(frozen=True, slots=True)
class Load:
    """``name[i, j + 1]``: an index and an offset for each dimension; no index is a constant."""

    name: str
    at: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Over:
    """An operation on index expressions, as a template; ``index`` is summed over if not empty."""

    template: str
    args: tuple[IndexExpr, ...]
    index: str = ""


IndexExpr = Load | Over | Num


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Let:
    """``name = value``."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Update:
    """``name[key] op value``; without a key ``name op value``, where ``op`` is not ``=``."""

    name: str
    key: Key | None
    op: str
    value: Expr


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """``name[i, j] op`` the sum of terms, each with a sign; ``fresh`` makes the output before."""

    name: str
    at: tuple[tuple[str, int], ...]
    op: str
    terms: tuple[tuple[str, IndexExpr], ...]
    fresh: bool = False


Statement = Let | Update | IndexUpdate


# ---------------------------------------------------------------- programs


@dataclass(frozen=True, slots=True)
class Base:
    """Memory of its own: shape, dtype, and what is drawn into it."""

    shape: tuple[int, ...]
    dtype: str
    seed: int
    density: float = 1.0


@dataclass(frozen=True, slots=True)
class Object:
    """What the caller holds: a view of a base, or (with a format's name) a sparse copy of it."""

    base: int
    view: Key = ()
    transposed: bool = False
    format: str = ""


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: bound to an object, or to a number."""

    name: str
    object: int | None = None
    number: float | int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """``kind`` of arrangement is in the objects; ``returns`` are names, at least one."""

    bases: tuple[Base, ...]
    objects: tuple[Object, ...]
    params: tuple[Param, ...]
    statements: tuple[Statement, ...]
    returns: tuple[str, ...]


def children(expr: Expr | IndexExpr) -> tuple[Expr | IndexExpr, ...]:
    """Return the direct parts of an expression."""
    match expr:
        case Apply() | Over():
            return expr.args
        case Item():
            return (expr.base,)
        case _:
            return ()


# ---------------------------------------------------------------- source text


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


def _at(at: tuple[tuple[str, int], ...]) -> str:
    texts = [
        str(offset) if not index else f"{index} + {offset}" if offset else index
        for index, offset in at
    ]
    return ", ".join(texts) or "()"


def _index_expr(expr: IndexExpr) -> str:
    match expr:
        case Load(name, at):
            return f"{name}[{_at(at)}]" if at else name
        case Num(value):
            return f"({value!r})" if value < 0 else repr(value)
        case Over(template, args, index):
            text = template.format(*map(_index_expr, args))
            return f"sj.sum({text}, over={index})" if index else text


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


def source(program: Program) -> str:
    """Return the text of the program as a Python function ``f``."""
    lines = [f"def f({', '.join(param.name for param in program.params)}):"]
    if any(isinstance(statement, IndexUpdate) for statement in program.statements):
        lines.append("    i, j, k = sj.indices('i j k')")
    for statement in program.statements:
        lines += [f"    {line}" for line in _statement(statement)]
    lines.append(f"    return {', '.join(program.returns)},")
    return "\n".join(lines) + "\n"


def with_children(expr: Expr | IndexExpr, parts: tuple[Expr | IndexExpr, ...]) -> Expr | IndexExpr:
    """Return the expression with other parts."""
    match expr:
        case Apply(template, _):
            return Apply(template, parts)  # type: ignore[arg-type]  # parts of the same kind
        case Over(template, _, index):
            return Over(template, parts, index)  # type: ignore[arg-type]  # likewise
        case Item(_, key):
            return Item(parts[0], key)  # type: ignore[arg-type]  # likewise
        case _:
            return expr
