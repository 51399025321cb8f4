"""Random formats: every level kind and property, in the combinations that the language allows."""

from hypothesis import strategies as st

from sparsejit.affine import Add, AffineExpr, Constant, Dim, FloorDiv, Mod, Mul
from sparsejit.formats import Format, Level, LevelKind, LevelType

__all__ = ["formats"]

WIDTHS = (0, 8, 16, 32, 64)


@st.composite
def formats(draw: st.DrawFn, ndim: int | None = None) -> Format:
    """A format of ``ndim`` (else 0 to 3) dimensions with valid levels, in any order."""
    if ndim is None:
        ndim = draw(st.integers(0, 3))
    batch = draw(st.integers(0, ndim)) if draw(st.booleans()) else 0
    outer = [Level(Dim(d), LevelType(LevelKind.BATCH)) for d in range(batch)]
    rest = list(range(batch, ndim))
    exprs = draw(st.permutations(_expressions(draw, rest)))
    levels: list[Level] = [*outer]
    for expr in exprs:
        levels.append(Level(expr, _level_type(draw, expr, levels)))
    widths = draw(st.tuples(st.sampled_from(WIDTHS), st.sampled_from(WIDTHS)))
    return Format.of(ndim, tuple(_with_runs(levels)), *widths)


def _expressions(draw: st.DrawFn, dims: list[int]) -> list[AffineExpr]:
    """One expression a dimension, or two for a block; at most one difference."""
    exprs: list[AffineExpr] = []
    if len(dims) >= 2 and draw(st.integers(0, 4)) == 0:
        plus, minus = draw(st.permutations(dims[:2]))
        exprs += [
            Add(Dim(plus), Mul(Constant(-1), Dim(minus))),
            Dim(draw(st.sampled_from(dims[:2]))),
        ]
        dims = dims[2:]
    for dim in dims:
        size = draw(st.sampled_from((0, 0, 1, 2, 3, 4)))
        if size == 1:
            exprs += [Dim(dim), Constant(0)]
        elif size:
            exprs += [FloorDiv(Dim(dim), size), Mod(Dim(dim), size)]
        else:
            exprs.append(Dim(dim))
    return exprs


def _level_type(draw: st.DrawFn, expr: AffineExpr, before: list[Level]) -> LevelType:
    nonunique, nonordered = draw(st.tuples(st.booleans(), st.booleans()))
    kinds = [LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED]
    if not isinstance(expr, Add):
        kinds += [LevelKind.DENSE, LevelKind.PADDED]
    if isinstance(expr, Mod):
        kinds.append(LevelKind.STRUCTURED)
    if (
        before
        and before[-1].type.kind in (*kinds[:2], LevelKind.SINGLETON)
        and not isinstance(expr, Add)
    ):
        kinds.append(LevelKind.SINGLETON)
    diagonals = [level.expr for level in before if isinstance(level.expr, Add)]
    if diagonals and isinstance(expr, Dim) and str(expr) in str(diagonals):
        kinds.append(LevelKind.RANGE)
    match draw(st.sampled_from(kinds)):
        case LevelKind.DENSE:
            return LevelType(LevelKind.DENSE)
        case LevelKind.RANGE:
            return LevelType(LevelKind.RANGE)
        case LevelKind.STRUCTURED:
            assert isinstance(expr, Mod)
            size = (draw(st.integers(1, expr.divisor)), expr.divisor)
            return LevelType(LevelKind.STRUCTURED, nonunique, nonordered, size=size)
        case LevelKind.PADDED:
            slots = (draw(st.integers(1, 9)),)
            return LevelType(LevelKind.PADDED, nonunique, nonordered, size=slots)
        case kind:
            return LevelType(kind, nonunique, nonordered)


def _with_runs(levels: list[Level]) -> list[Level]:
    """Make the levels before singletons nonunique, and runs all soa or none."""
    fixed = list(levels)
    for number in range(len(fixed) - 1, 0, -1):
        if fixed[number].type.kind is LevelKind.SINGLETON:
            expr, before = fixed[number - 1].expr, fixed[number - 1].type
            fixed[number - 1] = Level(
                expr, LevelType(before.kind, True, before.nonordered, before.soa)
            )
    for number, level in enumerate(fixed):
        if level.type.kind is LevelKind.SINGLETON:
            soa = level.expr != Constant(0) and len(fixed) % 2 == 0
            kept = level.type
            fixed[number] = Level(
                level.expr, LevelType(kept.kind, kept.nonunique, kept.nonordered, soa)
            )
    for number in range(1, len(fixed)):
        one, two = fixed[number - 1].type, fixed[number].type
        if one.kind is two.kind is LevelKind.SINGLETON and one.soa != two.soa:
            fixed[number] = Level(
                fixed[number].expr, LevelType(two.kind, two.nonunique, two.nonordered, one.soa)
            )
    return fixed
