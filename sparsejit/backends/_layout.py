"""Python expressions as small trees, and the text of a tree in lines of at most 100 columns.

In: nodes made by the printer. Out: text with the fewest parentheses that keep the meaning. A node
that does not fit on the rest of its line is broken inside its brackets, one item a line::

    y[i] = minimum(
        y[i],
        A_vals[p1] + x[j],
    )
"""

from __future__ import annotations

from typing import assert_never

from sparsejit._dataclasses import dataclass

__all__ = [
    "WIDTH",
    "Atom",
    "Attribute",
    "Call",
    "Conditional",
    "Index",
    "Infix",
    "Node",
    "Prefix",
    "Slice",
    "flat",
    "layout",
]

WIDTH = 100
"""The longest line of a printed program."""

_CONDITIONAL, _NOT, _COMPARISON, _UNARY, _ATOM = 0, 1, 2, 8, 10
_LEVELS = {"|": 3, "^": 4, "&": 5, "<<": 6, ">>": 6, "+": 7, "-": 7, "*": 7.5, "/": 7.5, "//": 7.5}
_LEVELS |= {"%": 7.5} | dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARISON)


@dataclass(frozen=True, slots=True)
class Atom:
    """A name or a literal."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """``function(items)``, a tuple where ``function`` is empty."""

    function: str
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """``array[items]``; no items index an array of rank 0."""

    array: str
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """``owner.name``."""

    owner: Node
    name: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """``-operand``, ``~operand`` or ``not operand``."""

    op: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Infix:
    """``lhs op rhs``."""

    op: str
    lhs: Node
    rhs: Node


@dataclass(frozen=True, slots=True)
class Slice:
    """``lower : upper : step``, an item of an index; a step of 1 is left out."""

    lower: Node
    upper: Node
    step: int = 1


@dataclass(frozen=True, slots=True)
class Conditional:
    """``then if condition else orelse``."""

    condition: Node
    then: Node
    orelse: Node


Node = Atom | Call | Index | Attribute | Prefix | Infix | Conditional | Slice


def _level(node: Node) -> float:
    """How tightly ``node`` binds; Python's precedence."""
    match node:
        case Atom(text):
            return _UNARY if text.startswith("-") else _ATOM
        case Call() | Index() | Attribute():
            return _ATOM
        case Prefix(op, _):
            return _NOT if op == "not " else _UNARY
        case Infix(op, _, _):
            return _LEVELS[op]
        case Conditional() | Slice():
            return _CONDITIONAL
        case _:
            assert_never(node)


Operands = tuple[tuple[str, Node, float], ...]
"""What stands before each operand, the operand, and the level it needs at least."""


def _operands(node: Prefix | Infix | Conditional) -> Operands:
    match node:
        case Prefix(op, operand):
            return ((op, operand, _level(node)),)
        case Infix(op, Infix(inner, _, _) as lhs, rhs) if _same_chain(op, inner):
            return (*_operands(lhs), (f"{op} ", rhs, _LEVELS[op] + 0.1))
        case Infix(op, lhs, rhs):
            level = _LEVELS[op]
            above = level + 0.1  # operators of one level group to the left, comparisons never
            return (("", lhs, above if level == _COMPARISON else level), (f"{op} ", rhs, above))
        case Conditional(condition, then, orelse):
            return (("", then, _NOT), ("if ", condition, _NOT), ("else ", orelse, _NOT))
        case _:
            assert_never(node)


def _same_chain(op: str, inner: str) -> bool:
    """Whether ``a inner b op c`` needs no parentheses."""
    return _LEVELS[op] == _LEVELS[inner] != _COMPARISON


def flat(node: Node, at_least: float = 0) -> str:
    """Return ``node`` on one line, in parentheses if it binds less tightly than ``at_least``.

    >>> i = Atom("i")
    >>> flat(Infix("*", Infix("+", i, Atom("1")), i))
    '(i + 1) * i'
    """
    match node:
        case Atom(name):
            text = name
        case Call(function, items):
            comma = "," if not function and len(items) == 1 else ""
            text = f"{function}({', '.join(map(flat, items))}{comma})"
        case Index(array, items):
            text = f"{array}[{', '.join(map(flat, items)) or '()'}]"
        case Attribute(owner, name):
            text = f"{flat(owner, _ATOM)}.{name}"
        case Slice(lower, upper, step):
            text = f"{flat(lower)} : {flat(upper)}" + ("" if step == 1 else f" : {step}")
        case Prefix() | Infix() | Conditional():
            text = " ".join(
                before + flat(operand, level) for before, operand, level in _operands(node)
            )
        case _:
            assert_never(node)
    return f"({text})" if _level(node) < at_least else text


def layout(node: Node, indent: int, column: int, at_least: float = 0) -> str:
    """Return ``node`` as text that starts in ``column`` of a line indented by ``indent``.

    >>> print(layout(Call("f", (Atom("a" * 60), Atom("b" * 60))), 0, 0).replace("a" * 60, "a..."))
    f(
        a...,
        bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb,
    )
    """
    text = flat(node, at_least)
    if column + len(text) < WIDTH:
        return text
    inner = indent + 4
    margin = " " * inner
    match node:
        case Atom():
            return text
        case Attribute(owner, name):
            return f"{layout(owner, indent, column + 1 + len(name), _ATOM)}.{name}"
        case Slice(lower, upper, step):
            bounds = [
                f"(\n{margin}{layout(bound, inner, inner)}\n{' ' * indent})"
                for bound in (lower, upper)
            ]
            return " : ".join((*bounds, str(step)) if step != 1 else bounds)
        case Call(head, items) | Index(head, items):
            opening, closing, last = ("(", ")", ",") if isinstance(node, Call) else ("[", "]", "")
            lines = [margin + layout(item, inner, inner) for item in items]
            separated = ",\n".join(lines) + last
            return f"{head}{opening}\n{separated}\n{' ' * indent}{closing}"
        case Prefix() | Infix() | Conditional():
            lines = [
                margin + before + layout(operand, inner, inner + len(before), level)
                for before, operand, level in _operands(node)
            ]
            return "(\n" + "\n".join(lines) + f"\n{' ' * indent})"
        case _:
            assert_never(node)
