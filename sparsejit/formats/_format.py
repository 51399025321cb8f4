"""``Format``: the map from dimensions to levels, checked, invertible, compared by structure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sparsejit.affine import (
    AffineExpr,
    AffineMap,
    Constant,
    Dim,
    FloorDiv,
    Mod,
    add,
    dims_of,
    expr_text,
    mul,
)
from sparsejit.formats._levels import Level, LevelKind, LevelType
from sparsejit.formats._notation import parse_format

__all__ = ["Format"]

_WIDTHS = (0, 8, 16, 32, 64)


@dataclass(frozen=True, init=False)
class Format:
    """How a tensor's entries are laid out, level by level.

    ``text`` is MLIR's notation: ``(dims) -> (expr : level type, ...)`` with the level types
    ``dense``, ``batch``, ``compressed``, ``loose_compressed``, ``singleton``,
    ``structured[n, m]``, ``range``, ``padded[k]`` and the properties ``nonunique``,
    ``nonordered``, ``soa`` in parentheses. An expression is ``d``, ``d floordiv c``, ``d mod c``
    or ``d - e``; together they determine each dimension once.
    ``pos_width`` and ``crd_width`` ask for 8, 16, 32 or 64 bit positions and coordinates; 0 leaves
    the choice to SciPy's rule. Two formats are equal when their maps and types are, whatever their
    dimensions are called.

    Raises ``ValueError`` for text that is not a format, or a map that does not determine the
    dimensions.

    >>> from sparsejit.formats import BSR, CSR
    >>> Format("(row, col) -> (row : dense, col : compressed)") == CSR
    True
    >>> BSR(2, 3).num_levels
    4
    """

    ndim: int
    levels: tuple[Level, ...]
    pos_width: int
    crd_width: int

    def __init__(self, text: str, pos_width: int = 0, crd_width: int = 0) -> None:
        if not isinstance(text, str):
            raise ValueError(f"a format is written as text, not {text!r}")
        ndim, levels = parse_format(text)
        self._set(ndim, levels, pos_width, crd_width)

    def _set(self, ndim: int, levels: tuple[Level, ...], pos_width: int, crd_width: int) -> None:
        object.__setattr__(self, "ndim", ndim)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "pos_width", pos_width)
        object.__setattr__(self, "crd_width", crd_width)
        _check(self)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Formats are part of every cache key, so the walk over the levels is made once.
        return hash((self.ndim, self.levels, self.pos_width, self.crd_width))

    def __reduce__(self) -> tuple[object, ...]:
        # Rebuilt, not copied: hashes of enums differ from process to process.
        return Format.of, (self.ndim, self.levels, self.pos_width, self.crd_width)

    @staticmethod
    def of(ndim: int, levels: tuple[Level, ...], pos_width: int = 0, crd_width: int = 0) -> Format:
        """Return the format with these levels over ``ndim`` dimensions.

        >>> from sparsejit.formats import SparseVector
        >>> Format.of(1, (Level(Dim(0), LevelType(LevelKind.COMPRESSED)),)) == SparseVector
        True
        """
        made = Format.__new__(Format)
        made._set(ndim, levels, pos_width, crd_width)
        return made

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        # Checks name the format in what they may have to say, whether or not they say it.
        names = tuple(f"d{d}" for d in range(self.ndim))
        levels = ", ".join(f"{expr_text(lvl.expr, names)} : {lvl.type}" for lvl in self.levels)
        return f"({', '.join(names)}) -> ({levels})"

    def __repr__(self) -> str:
        widths = f", {self.pos_width}, {self.crd_width}" if self.pos_width or self.crd_width else ""
        return f'Format("{self}"{widths})'

    def with_widths(self, pos_width: int, crd_width: int) -> Format:
        """Return the same map with other widths of positions and coordinates.

        >>> from sparsejit.formats import CSR
        >>> CSR.with_widths(32, 16).crd_width
        16
        """
        return Format.of(self.ndim, self.levels, pos_width, crd_width)

    @property
    def num_levels(self) -> int:
        """The number of levels."""
        return len(self.levels)

    @cached_property
    def dim_to_lvl(self) -> AffineMap:
        """The map from dimensions to level coordinates."""
        return AffineMap(self.ndim, tuple(level.expr for level in self.levels))

    @cached_property
    def lvl_to_dim(self) -> AffineMap:
        """The map from level coordinates back to dimensions: the inverse of ``dim_to_lvl``.

        >>> from sparsejit.formats import BSR
        >>> print(BSR(2, 3).lvl_to_dim)
        (d0, d1, d2, d3) -> (2 * d0 + d2, 3 * d1 + d3)
        """
        inverse = tuple(_invert(self, d) for d in range(self.ndim))
        return AffineMap(self.num_levels, inverse)

    @cached_property
    def is_dense(self) -> bool:
        """Whether this is ``Dense(ndim)``: dimensions stored in order, all of them dense."""
        plain = all(level.type == LevelType(LevelKind.DENSE) for level in self.levels)
        return plain and self.dim_to_lvl.is_identity

    @cached_property
    def is_all_full(self) -> bool:
        """Whether every level is full, so that each coordinate owns a slot."""
        return all(level.type.is_full for level in self.levels)

    @cached_property
    def coo_start(self) -> int | None:
        """The level where a COO tail (compressed nonunique, singletons) begins, else None.

        >>> from sparsejit.formats import COO, CSR
        >>> COO(3).coo_start, CSR.coo_start
        (0, None)
        """
        kinds = [level.type.kind for level in self.levels]
        start = len(kinds)
        while start > 0 and kinds[start - 1] is LevelKind.SINGLETON:
            start -= 1
        if start == len(kinds) or start == 0:
            return None
        return start - 1

    @cached_property
    def is_aos(self) -> bool:
        """Whether the COO tail keeps its coordinates as an array of structs, (nse, rank)."""
        start = self.coo_start
        return start is not None and not any(lvl.type.soa for lvl in self.levels[start + 1 :])

    @cached_property
    def is_unique(self) -> bool:
        """Whether the format promises that no coordinate is stored twice.

        >>> from sparsejit.formats import COO
        >>> COO(2).is_unique, Format("(i) -> (i : compressed(nonunique))").is_unique
        (True, False)
        """
        singleton = LevelKind.SINGLETON  # the last of a run of singletons speaks for all of it
        return not any(
            level.type.nonunique
            and not (self.levels[n + 1 : n + 2] and self.levels[n + 1].type.kind is singleton)
            for n, level in enumerate(self.levels)
        )

    @cached_property
    def is_ordered(self) -> bool:
        """Whether the format promises lexicographic order of its coordinates."""
        return not any(level.type.nonordered for level in self.levels)

    def level_sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extent of each level for a tensor of ``shape`` (dimension units).

        A block level covers the extent rounded up; a difference ``j - i`` counts all diagonals.

        >>> from sparsejit.formats import BSR
        >>> BSR(2, 3).level_sizes((5, 6))
        (3, 2, 2, 3)
        """
        return tuple(_level_size(level.expr, shape) for level in self.levels)

    def level_starts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the least coordinate of each level: 0, or ``1 - rows`` for ``j - i``.

        >>> from sparsejit.formats import DIA
        >>> DIA.level_starts((3, 5))
        (-2, 0)
        """
        pairs = (_difference(level.expr) for level in self.levels)
        return tuple(0 if pair is None else 1 - shape[pair[1]] for pair in pairs)


def _level_size(expr: AffineExpr, shape: tuple[int, ...]) -> int:
    match expr:
        case Dim(d):
            return shape[d]
        case FloorDiv(Dim(d), divisor):
            return -(-shape[d] // divisor)
        case Mod(_, divisor):
            return divisor
        case Constant():  # d floordiv 1 and d mod 1, folded
            return 1
        case _:
            dims = sorted(dims_of(expr))
            return sum(shape[d] for d in dims) - 1 if all(shape[d] for d in dims) else 0


def _invert(fmt: Format, dim: int) -> AffineExpr:
    """Return dimension ``dim`` as an expression over the level coordinates."""
    inner = outer = None
    for number, level in enumerate(fmt.levels):
        match level.expr:
            case Dim(d) if d == dim:
                return Dim(number)
            case FloorDiv(Dim(d), divisor) if d == dim:
                outer = (number, divisor)
            case Mod(Dim(d), divisor) if d == dim:
                inner = (number, divisor)
            case _:
                pass
    if inner is not None and outer is not None and inner[1] == outer[1]:
        return add(mul(Constant(outer[1]), Dim(outer[0])), Dim(inner[0]))
    for number, level in enumerate(fmt.levels):  # j - i with j a level of its own
        difference = _difference(level.expr)
        if difference is not None and dim in difference:
            plus, minus = difference
            known = plus if dim == minus else minus
            if any(other.expr == Dim(known) for other in fmt.levels):
                level_of_known = Dim(_level_of(fmt, known))
                if dim == minus:  # level = plus - dim
                    return add(level_of_known, mul(Constant(-1), Dim(number)))
                return add(level_of_known, Dim(number))
    raise ValueError(f"the levels of ({fmt}) do not determine dimension d{dim}")


def _level_of(fmt: Format, dim: int) -> int:
    return next(n for n, level in enumerate(fmt.levels) if level.expr == Dim(dim))


def _difference(expr: AffineExpr) -> tuple[int, int] | None:
    """Return ``(a, b)`` when ``expr`` is ``da - db``."""
    dims = sorted(dims_of(expr))
    for plus, minus in ((p, m) for p in dims for m in dims if p != m):
        if expr == add(Dim(plus), mul(Constant(-1), Dim(minus))):
            return plus, minus
    return None


def _check(fmt: Format) -> None:
    for width, name in ((fmt.pos_width, "pos_width"), (fmt.crd_width, "crd_width")):
        if isinstance(width, bool) or width not in _WIDTHS:
            raise ValueError(f"{name} must be one of {_WIDTHS}, not {width!r}")
    for number, level in enumerate(fmt.levels):
        where = _Place(fmt, number)
        _check_expr(fmt, number, level, where)
        _check_level(fmt, number, level, where)
    _ = fmt.lvl_to_dim  # raises where a dimension is not determined
    stored = [level.expr for level in fmt.levels if not isinstance(level.expr, Constant)]
    blocked = sum(isinstance(expr, FloorDiv) for expr in stored)
    if len(stored) != fmt.ndim + blocked:
        raise ValueError(f"the levels of ({fmt}) determine a dimension twice")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a format something is wrong: a text that only errors need."""

    format: Format
    number: int

    def __str__(self) -> str:
        return f"level {self.number} of ({self.format})"


def _check_expr(fmt: Format, number: int, level: Level, where: _Place) -> None:
    """Refuse expressions that are neither ``d``, ``d floordiv c``, ``d mod c`` nor ``d - e``."""
    kind = level.type.kind
    difference = _difference(level.expr)
    match level.expr:
        case Dim() | FloorDiv(Dim(), _) | Mod(Dim(), _) | Constant(0):
            pass
        case _ if difference is not None:
            if kind not in (LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED):
                raise ValueError(f"{where}: a diagonal level such as 'j - i' is compressed")
        case other:
            text = expr_text(other)
            allowed = "d, d floordiv c, d mod c or d - e"
            raise ValueError(f"{where}: a level stores {allowed}, not {text}")
    if kind is LevelKind.RANGE:
        before = [_difference(lvl.expr) or () for lvl in fmt.levels[:number]]
        if not any(level.expr == Dim(dim) for pair in before for dim in pair):
            raise ValueError(f"{where}: a range level follows a diagonal level such as 'j - i'")
    if kind is LevelKind.BATCH and not isinstance(level.expr, Dim):
        raise ValueError(f"{where}: a batch level stores a dimension of its own")


def _check_level(fmt: Format, number: int, level: Level, where: _Place) -> None:
    kind = level.type.kind
    before = fmt.levels[number - 1].type.kind if number else None
    if kind is LevelKind.SINGLETON:
        allowed = (LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED, LevelKind.SINGLETON)
        if before not in allowed:
            raise ValueError(f"{where}: a singleton level follows a compressed or singleton level")
        if not fmt.levels[number - 1].type.nonunique:
            raise ValueError(f"{where}: the level before a singleton must be nonunique")
        if before is LevelKind.SINGLETON and fmt.levels[number - 1].type.soa != level.type.soa:
            raise ValueError(f"{where}: all singleton levels are soa, or none is")
    elif level.type.soa:
        raise ValueError(f"{where}: only a singleton level can be soa")
    if kind is LevelKind.BATCH and before not in (None, LevelKind.BATCH):
        raise ValueError(f"{where}: batch levels come first")
    if kind is LevelKind.STRUCTURED:
        n, m = level.type.size
        inner = level.expr
        if not (isinstance(inner, Mod) and inner.divisor == m and 0 < n <= m):
            needed = f"an expression 'd mod {m}', n <= m"
            raise ValueError(f"{where}: structured[{n}, {m}] needs {needed}")
    if level.type.is_full and (level.type.nonunique or level.type.nonordered):
        raise ValueError(f"{where}: a {kind.value} level is always unique and ordered")
