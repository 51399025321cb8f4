"""Random programs as data: what a drawn program consists of, and its text as Python source.

A ``Program`` has objects (arrays that the caller holds, which may be views of one memory),
parameters bound to objects or numbers, statements, and the names that it returns. Expressions are
those of NumPy; right-hand sides of index statements are a language of their own.
``tests.programs.text`` writes the function that is decorated, ``tests.programs.plain`` evaluates
the same data.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Apply",
    "At",
    "Base",
    "Call",
    "Coord",
    "Expr",
    "IndexExpr",
    "IndexUpdate",
    "Item",
    "Key",
    "Let",
    "Load",
    "Loop",
    "Num",
    "Object",
    "Over",
    "Param",
    "Place",
    "Program",
    "Statement",
    "Update",
    "Var",
    "children",
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
class Place:
    """``stride * index + other + offset``; without an index a constant."""

    index: str
    offset: int = 0
    stride: int = 1
    other: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether this is an index alone, which takes the whole extent."""
        return bool(self.index) and not self.other and (self.offset, self.stride) == (0, 1)

    @property
    def indices(self) -> tuple[str, ...]:
        """The indices that occur."""
        return tuple(index for index in (self.index, self.other) if index)


At = tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """``name[2 * i + 1, j]``: a place for each dimension."""

    name: str
    at: At


@dataclass(frozen=True, slots=True)
class Coord:
    """An index used as a value."""

    index: str


@dataclass(frozen=True, slots=True)
class Over:
    """An operation on index expressions, as a template; ``index`` is reduced over if not empty."""

    template: str
    args: tuple[IndexExpr, ...]
    index: str = ""
    reduction: str = "sum"


IndexExpr = Load | Coord | Over | Num


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
    at: At
    op: str
    terms: tuple[tuple[str, IndexExpr], ...]
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """``names = sj.fori_loop(0, count, body, inits)``, or ``while_loop`` or ``cond``, by ``kind``.

    Inside the carried values are called ``locals``; a while loop goes on while ``test`` holds and
    fewer than ``count`` rounds are done; ``cond`` has two bodies and chooses by ``test``.
    """

    kind: str
    names: tuple[str, ...]
    inits: tuple[Expr, ...]
    locals: tuple[str, ...]
    bodies: tuple[tuple[Statement, ...], ...]
    count: int = 0
    test: Expr | None = None


Statement = Let | Update | IndexUpdate | Loop


# ---------------------------------------------------------------- programs


@dataclass(frozen=True, slots=True)
class Base:
    """Memory of its own: shape, dtype, and what is drawn into it; ``fill`` between the others."""

    shape: tuple[int, ...]
    dtype: str
    seed: int
    density: float = 1.0
    fill: int = 0


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
class Call:
    """How the function is called and what it is decorated with.

    ``results`` is the container that is returned, ``packed`` one that holds the first two
    arguments, ``keywords`` how many of the last arguments are passed by name; ``outputs`` are
    formats by result position.
    """

    results: str = "tuple"
    packed: str = ""
    keywords: int = 0
    outputs: tuple[tuple[int, str], ...] = ()
    storage: str = "inline"


@dataclass(frozen=True, slots=True)
class Program:
    """``kind`` of arrangement is in the objects; ``returns`` are names, at least one."""

    bases: tuple[Base, ...]
    objects: tuple[Object, ...]
    params: tuple[Param, ...]
    statements: tuple[Statement, ...]
    returns: tuple[str, ...]
    call: Call = Call()


def children(expr: Expr | IndexExpr) -> tuple[Expr | IndexExpr, ...]:
    """Return the direct parts of an expression."""
    match expr:
        case Apply() | Over():
            return expr.args
        case Item():
            return (expr.base,)
        case _:
            return ()


def with_children(expr: Expr | IndexExpr, parts: tuple[Expr | IndexExpr, ...]) -> Expr | IndexExpr:
    """Return the expression with other parts."""
    match expr:
        case Apply(template, _):
            return Apply(template, parts)  # type: ignore[arg-type]  # parts of the same kind
        case Over(template, _, index, reduction):
            return Over(template, parts, index, reduction)  # type: ignore[arg-type]  # likewise
        case Item(_, key):
            return Item(parts[0], key)  # type: ignore[arg-type]  # likewise
        case _:
            return expr
