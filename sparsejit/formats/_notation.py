"""The reader of the format notation: ``(i, j) -> (i : dense, j : compressed)``."""

from __future__ import annotations

from sparsejit.affine import AffineExpr, Constant, Dim, add, floordiv, mod, mul
from sparsejit.formats._levels import Level, LevelKind, LevelType

__all__ = ["parse_format"]

_LARGEST = 2**31 - 1  # of a block, of the slots of a padded level
_DEEPEST = 50  # nested parentheses


class _Scanner:
    """A cursor over the text of a format."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

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

    def take_size(self, word: str, what: str) -> int:
        """Take a positive number, the size that ``word`` asks for."""
        number = self.take()
        if not (number.isascii() and number.isdecimal() and 0 < int(number[:11]) <= _LARGEST):
            raise self.error(f"{word} needs {what}, found {number!r}")
        return int(number)

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
    expr = _parse_atom(scanner, names)
    while scanner.peek() in ("floordiv", "mod", "*"):
        match scanner.take():
            case "*":
                factor = _parse_atom(scanner, names)
                if not (isinstance(expr, Constant) or isinstance(factor, Constant)):
                    raise scanner.error("a product of two dimensions")
                expr = mul(expr, factor)
            case "floordiv":
                expr = floordiv(expr, scanner.take_size("floordiv", "a positive number"))
            case word:
                expr = mod(expr, scanner.take_size(word, "a positive number"))
    return expr


def _parse_atom(scanner: _Scanner, names: list[str]) -> AffineExpr:
    token = scanner.take()
    if token == "(":
        scanner.depth += 1
        if scanner.depth > _DEEPEST:
            raise scanner.error(f"more than {_DEEPEST} nested parentheses")
        expr = _parse_sum(scanner, names)
        scanner.take(")")
        scanner.depth -= 1
        return expr
    if token in names:
        return Dim(names.index(token))
    if token.isascii() and token.isdecimal() and int(token[:11]) <= _LARGEST:
        return Constant(int(token))
    raise scanner.error(f"unknown dimension {token!r}")


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
            size.append(scanner.take_size(word, "positive sizes"))
        scanner.take("]")
    flags: list[str] = []
    if scanner.peek() == "(":
        scanner.take("(")
        while True:
            flag = scanner.take()
            if flag not in ("nonunique", "nonordered", "soa"):
                raise scanner.error(f"unknown property {flag!r}; nonunique, nonordered or soa")
            if flag in flags:
                raise scanner.error(f"property {flag!r} is given twice")
            flags.append(flag)
            if scanner.peek() != ",":
                break
            scanner.take(",")
        scanner.take(")")
    nonunique, nonordered, soa = (name in flags for name in ("nonunique", "nonordered", "soa"))
    return LevelType(kind, nonunique, nonordered, soa, tuple(size))
