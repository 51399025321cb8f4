"""The text of scalar expressions: as Python writes them, with as few parentheses as it needs.

In: a body, the number of its inputs and the names of its loops. Out: text. The pieces (a constant,
an operation of operands that are text already) serve the texts of the loop IR too.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
)

__all__ = ["ATOM", "binary_text", "const_text", "constant_atom", "print_scalar", "unary_text"]

ATOM = 100
"""The binding strength of names, numbers and calls; everything else binds less."""

_STRENGTH = {
    **dict.fromkeys((BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE), 10),
    **dict.fromkeys((BinaryOp.EQ, BinaryOp.NE), 10),
    BinaryOp.OR: 20,
    BinaryOp.XOR: 30,
    BinaryOp.AND: 40,
    **dict.fromkeys((BinaryOp.SHL, BinaryOp.SHR), 50),
    **dict.fromkeys((BinaryOp.ADD, BinaryOp.SUB), 60),
    **dict.fromkeys((BinaryOp.MUL, BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.REM), 70),
    BinaryOp.POW: 90,
}
_UNARY_STRENGTH = 80
_UNARY_SYMBOLS = {UnaryOp.NEG: "-", UnaryOp.NOT: "~"}
_COMPARISONS = 10


def const_text(const: Const) -> str:
    """Return the number as Python writes it."""
    return repr(const.value)


def print_scalar(expr: ScalarExpr, num_inputs: int, loops: Sequence[str]) -> str:
    """Return the text of a body with ``num_inputs`` inputs and these names of its loops.

    >>> print_scalar(Binary(BinaryOp.ADD, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1))), 2, ())
    'out + in0 * in1'
    """
    return _scalar(expr, num_inputs, loops)[0]


def _scalar(  # noqa: C901 - one case for each kind
    expr: ScalarExpr, num_inputs: int, loops: Sequence[str]
) -> tuple[str, int]:
    """Return the text and how strongly it binds."""

    def walk(inner: ScalarExpr) -> tuple[str, int]:
        return _scalar(inner, num_inputs, loops)

    def operand(index: int) -> str:
        return "out" if index == num_inputs else f"in{index}"

    match expr:
        case Unary(op, inner):
            return unary_text(op, walk(inner))
        case Binary(op, lhs, rhs):
            return binary_text(op, walk(lhs), walk(rhs))
        case Arg(index):
            text = operand(index)
        case Stored(index):
            text = f"stored({operand(index)})"
        case Const():
            return constant_atom(expr)
        case Coordinate(loop):
            text = loops[loop]
        case Nothing():
            text = "nothing"
        case Cast(inner, dtype):
            text = f"{dtype.short}({walk(inner)[0]})"
        case Select(condition, then, orelse):
            text = f"select({walk(condition)[0]}, {walk(then)[0]}, {walk(orelse)[0]})"
        case Call(function, operands):
            text = f"{function.text}({', '.join(walk(part)[0] for part in operands)})"
    return text, ATOM


def constant_atom(const: Const) -> tuple[str, int]:
    """Return the text of a constant and how strongly it binds: a sign binds like a negation."""
    text = const_text(const)
    return text, _UNARY_STRENGTH if text.startswith("-") else ATOM


def unary_text(op: UnaryOp, operand: tuple[str, int]) -> tuple[str, int]:
    """Return the text of ``op`` of an operand, given with its binding strength, and its own."""
    text, strength = operand
    symbol = _UNARY_SYMBOLS.get(op)
    if symbol is None:
        return f"{op.name.lower()}({text})", ATOM
    return symbol + (text if strength > _UNARY_STRENGTH else f"({text})"), _UNARY_STRENGTH


def binary_text(op: BinaryOp, lhs: tuple[str, int], rhs: tuple[str, int]) -> tuple[str, int]:
    """Return the text of ``lhs op rhs``, operands given with their strengths, and its own.

    Every operation associates to the left, and comparisons and powers not at all.

    >>> binary_text(BinaryOp.SUB, ("a", ATOM), ("b - c", 60))
    ('a - (b - c)', 60)
    """
    strength = _STRENGTH.get(op)
    if strength is None:
        return f"{op.info.symbol}({lhs[0]}, {rhs[0]})", ATOM
    chains = strength != _COMPARISONS and op is not BinaryOp.POW
    left = lhs[0] if lhs[1] > strength or (chains and lhs[1] == strength) else f"({lhs[0]})"
    right = rhs[0] if rhs[1] > strength else f"({rhs[0]})"
    return f"{left} {op.info.symbol} {right}", strength
