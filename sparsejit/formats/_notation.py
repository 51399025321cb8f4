"""The reader of the format notation: ``(i, j) -> (i : dense, j : compressed)``."""

from __future__ import annotations

from dataclasses import replace

from sparsejit.affine import AffineExpr, Constant, Dim, add, floordiv, mod, mul
from sparsejit.formats._levels import Level, LevelKind, LevelType

__all__ = ["parse_format"]


class _Scanner:
    """A cursor over the text of a format."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        if self.at == len(self.text):
            return ""
        if self.text.startswith("->", self.at):
            return "->"
        end = self.at
        while end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_"):
            end += 1
        return self.text[self.at : max(end, self.at + 1)]

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if wanted and token != wanted:
            found = repr(token) if token else "the end"
            raise self.error(f"expected {wanted!r}, found {found}")
        self.at += len(token)
        return token

    def error(self, what: str) -> ValueError:
        return ValueError(
            f"not a format: {what} at column {self.at + 1} of {self.text!r}\n"
            "  write for example '(i, j) -> (i : dense, j : compressed)'"
        )


def parse_format(text: str) -> tuple[int, tuple[Level, ...]]:
    """Return the number of dimensions and the levels that ``text`` says; ``ValueError`` if none.

    >>> parse_format("(i) -> (i : dense)")[0]
    1
    """
    scanner = _Scanner(text)
    names: list[str] = []
    scanner.take("(")
    while scanner.peek() != ")":
        if names:
            scanner.take(",")
        name = scanner.take()
        if not name.isidentifier() or name in names or name in ("floordiv", "mod"):
            raise scanner.error(f"{name!r} is not a new dimension name")
        names.append(name)
    scanner.take(")")
    scanner.take("->")
    scanner.take("(")
    levels: list[Level] = []
    while scanner.peek() != ")":
        if levels:
            scanner.take(",")
        expr = _parse_sum(scanner, names)
        scanner.take(":")
        levels.append(Level(expr, _parse_level_type(scanner)))
    scanner.take(")")
    if scanner.peek():
        raise scanner.error(f"unexpected {scanner.peek()!r}")
    return len(names), tuple(levels)


def _parse_sum(scanner: _Scanner, names: list[str]) -> AffineExpr:
    expr = _parse_term(scanner, names)
    while scanner.peek() in ("+", "-"):
        sign = 1 if scanner.take() == "+" else -1
        expr = add(expr, mul(Constant(sign), _parse_term(scanner, names)))
    return expr


def _parse_term(scanner: _Scanner, names: list[str]) -> AffineExpr:
    token = scanner.take()
    if token == "(":
        expr = _parse_sum(scanner, names)
        scanner.take(")")
    elif token in names:
        expr = Dim(names.index(token))
    elif token.isdigit():
        expr = Constant(int(token))
    else:
        raise scanner.error(f"unknown dimension {token!r}")
    while scanner.peek() in ("floordiv", "mod", "*"):
        op = scanner.take()
        number = scanner.take()
        if not number.isdigit() or int(number) == 0:
            raise scanner.error(f"{op} needs a positive number, found {number!r}")
        size = int(number)
        if op == "*":
            expr = mul(Constant(size), expr)
        else:
            expr = floordiv(expr, size) if op == "floordiv" else mod(expr, size)
    return expr


def _parse_level_type(scanner: _Scanner) -> LevelType:
    word = scanner.take()
    kinds = {kind.value: kind for kind in LevelKind}
    if word not in kinds:
        raise scanner.error(f"unknown level type {word!r}; one of {', '.join(kinds)}")
    kind = kinds[word]
    count = {LevelKind.STRUCTURED: 2, LevelKind.PADDED: 1}.get(kind, 0)
    size: list[int] = []
    if count:
        scanner.take("[")
        for position in range(count):
            if position:
                scanner.take(",")
            number = scanner.take()
            if not number.isdigit() or int(number) == 0:
                raise scanner.error(f"{word} needs positive sizes, found {number!r}")
            size.append(int(number))
        scanner.take("]")
    level_type = LevelType(kind, size=tuple(size))
    if scanner.peek() == "(":
        scanner.take("(")
        while True:
            flag = scanner.take()
            if flag not in ("nonunique", "nonordered", "soa"):
                raise scanner.error(f"unknown property {flag!r}; nonunique, nonordered or soa")
            level_type = replace(level_type, **{flag: True})
            if scanner.peek() != ",":
                break
            scanner.take(",")
        scanner.take(")")
    return level_type
