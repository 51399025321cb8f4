"""Random tensor functions, drawn by hypothesis step by step, all of them legal."""

from __future__ import annotations

from hypothesis import strategies as st

from sparsejit.affine import AffineExpr, Constant, Dim
from sparsejit.errors import Location
from sparsejit.formats import COO, CSC, CSR, DCSR, DIA, ELL, NV24, Dense, Format
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.fold import applies, constant
from sparsejit.ir.ops import BinaryOp, ResultKind, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
)
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import DType

FORMATS: tuple[Format, ...] = (
    Dense(2),
    CSR,
    CSC.with_widths(32, 64),
    DCSR,
    COO(2),
    DIA,
    ELL(3),
    NV24,
    Format("(i, j) -> (i floordiv 2 : compressed, j : dense, i mod 2 : dense)"),
)
_KINDS = (
    *("generic", "reduce", "convert", "full", "slice", "arrange"),
    *("loop", "while", "branch"),
)
LOCATIONS = (None, Location("model.py", 7, "f"))


@st.composite
def constants(draw: st.DrawFn, dtype: DType) -> Const:
    """A constant of a dtype; now and then nan, infinite, or a negative zero."""
    plain: st.SearchStrategy[object] = st.integers(-3, 3)
    if dtype.is_float:
        plain = st.floats(width=16)
    elif dtype.is_complex:
        plain = st.complex_numbers(width=64)
    return constant(draw(plain), dtype)


@st.composite
def bodies(  # noqa: C901 - one case for each kind
    draw: st.DrawFn, dtype: DType, args: tuple[DType, ...], loops: int, depth: int = 3
) -> ScalarExpr:
    """A scalar expression of ``dtype`` over operands of the given dtypes."""
    choices = ["const", "nothing", "cast"]
    choices += ["arg"] if dtype in args else []
    choices += ["coordinate"] if dtype is DType.INT64 and loops else []
    choices += ["stored"] if dtype is DType.BOOL and args else []
    if depth:
        choices += ["unary", "binary", "binary", "select"]

    def inner(wanted: DType) -> ScalarExpr:
        return draw(bodies(wanted, args, loops, max(depth - 1, 0)))

    match draw(st.sampled_from(choices)):
        case "arg":
            return Arg(draw(st.sampled_from([k for k, d in enumerate(args) if d is dtype])))
        case "coordinate":
            return Coordinate(draw(st.integers(0, loops - 1)))
        case "stored":
            return Stored(draw(st.integers(0, len(args) - 1)))
        case "nothing":
            return Nothing(dtype)
        case "cast":
            source = draw(st.sampled_from(range(len(args))))
            return Cast(Arg(source), dtype)
        case "unary":
            ops = [op for op in UnaryOp if applies(op, dtype) and _keeps(op)]
            return Unary(draw(st.sampled_from(ops)), inner(dtype))
        case "binary":
            pairs = [op for op in BinaryOp if applies(op, dtype) and _keeps(op)]
            return Binary(draw(st.sampled_from(pairs)), inner(dtype), inner(dtype))
        case "select":
            return Select(inner(DType.BOOL), inner(dtype), inner(dtype))
        case _:
            return draw(constants(dtype))


def _keeps(op: UnaryOp | BinaryOp) -> bool:
    return op.info.result is ResultKind.SAME


@st.composite
def tensor_functions(draw: st.DrawFn) -> TensorFunc:
    """A function over square matrices, vectors and scalars of random dtypes and formats."""
    builder = TensorBuilder("f")
    n = builder.extent("n")
    values: list[Value] = []
    for number in range(draw(st.integers(1, 3))):
        rank = draw(st.integers(0, 2))
        dtype = draw(st.sampled_from(DType))
        layout = draw(st.sampled_from(FORMATS)) if rank == 2 else None
        fill = draw(constants(dtype)) if layout and not layout.is_dense else None
        values.append(builder.param(f"p{number}", (n,) * rank, dtype, layout, fill))
    values.append(builder.param("last", (n, n), DType.FLOAT64, assigned=True))
    last = values[-1]
    _steps(draw, builder, values, depth=2)
    if draw(st.booleans()):
        alike = [value for value in values if value.type == last.type]
        values.append(builder.materialize(draw(st.sampled_from(alike)), last))
    results = draw(st.lists(st.sampled_from(values), max_size=3))
    return builder.finish(*results)


def _steps(draw: st.DrawFn, builder: TensorBuilder, values: list[Value], depth: int) -> None:
    for _ in range(draw(st.integers(0, 3))):
        kinds = (
            "generic",
            "reduce",
            "convert",
            "full",
            "slice",
            "loop",
            "while",
            "branch",
            "arrange",
        )
        kind = draw(st.sampled_from(kinds))
        value = draw(st.sampled_from(values))
        location = draw(st.sampled_from(LOCATIONS))
        match kind:
            case "generic":
                values.append(_generic(draw, builder, value, values, location))
            case "convert" if value.type.rank == 2:
                layout = draw(st.sampled_from(FORMATS))
                values.append(builder.convert(value, layout, location=location))
            case "full":
                filled = draw(constants(value.type.dtype))
                values.append(builder.full(value.type.shape, filled, location=location))
            case "slice" if value.type.rank == 1 and value.type.is_dense:
                values.extend(_slices(draw, builder, value))
            case "loop" if depth:
                values.extend(_loop(draw, builder, value, values, depth))
            case "while" if depth:
                values.extend(_while(draw, builder, value, values, depth))
            case "branch" if depth:
                values.extend(_branch(draw, builder, value, values, depth))
            case "arrange" if value.type.rank:
                _arrange(draw, builder, value, location)
            case _:
                dtype, rank = value.type.dtype, value.type.rank
                scalar = builder.full((), draw(constants(dtype)))
                body = draw(bodies(dtype, (dtype, dtype), rank, 2))
                access = (value, range(rank))
                values.append(builder.generic([access], (scalar, ()), body, location=location))


def _generic(
    draw: st.DrawFn,
    builder: TensorBuilder,
    value: Value,
    values: list[Value],
    location: Location | None,
) -> Value:
    rank = value.type.rank
    loops = tuple(range(rank))
    others = draw(st.lists(st.sampled_from(values), max_size=2))
    inputs: list[tuple[Value, tuple[AffineExpr | int, ...]]] = []
    for other in others:
        index: st.SearchStrategy[AffineExpr | int] = st.sampled_from((*loops, Constant(0)))
        inputs.append((other, tuple(draw(index) for _ in range(other.type.rank))))
    dtypes = (*(other.type.dtype for other in others), value.type.dtype)
    body = draw(bodies(value.type.dtype, dtypes, rank))
    return builder.generic(inputs, (value, loops), body, location=location)


def _slices(draw: st.DrawFn, builder: TensorBuilder, value: Value) -> list[Value]:
    dropped = draw(st.booleans())
    sizes = [Constant(1)] if dropped else [value.type.shape[0]]
    offset = Constant(draw(st.integers(0, 3)))
    stride = draw(st.sampled_from((1, 2, -1)))
    cut = (0,) if dropped else ()
    part = builder.extract_slice(value, [offset], sizes, [stride], cut)
    whole = builder.insert_slice(part, value, [offset], sizes, [stride], cut)
    return [part, whole, builder.insert(part, whole, [offset])] if dropped else [part, whole]


def _loop(
    draw: st.DrawFn, builder: TensorBuilder, value: Value, values: list[Value], depth: int
) -> tuple[Value, ...]:
    def body(index: Dim, carried: tuple[Value, ...]) -> list[Value]:
        inside = [*values, *carried]
        _steps(draw, builder, inside, depth - 1)
        if value.type.rank == 1 and value.type.is_dense:
            part = builder.extract_slice(carried[0], [index], [1], dropped=(0,))
            inside.append(builder.insert(part, carried[0], [index]))
        return [draw(st.sampled_from([v for v in inside if v.type == value.type]))]

    return builder.for_loop(Constant(0), builder.extent("n"), [value], body)


def _truth(draw: st.DrawFn, builder: TensorBuilder) -> Value:
    return builder.full((), Const(draw(st.booleans()), DType.BOOL))


def _inside(
    draw: st.DrawFn, builder: TensorBuilder, value: Value, values: list[Value], depth: int
) -> list[Value]:
    """Some steps, and one of the values that are like ``value`` then."""
    inside = [*values]
    _steps(draw, builder, inside, depth - 1)
    return [draw(st.sampled_from([v for v in inside if v.type == value.type]))]


def _while(
    draw: st.DrawFn, builder: TensorBuilder, value: Value, values: list[Value], depth: int
) -> tuple[Value, ...]:
    def condition(carried: tuple[Value, ...]) -> Value:
        _steps(draw, builder, [*values, *carried], depth - 1)
        return _truth(draw, builder)

    def body(carried: tuple[Value, ...]) -> list[Value]:
        return _inside(draw, builder, value, [*values, *carried], depth)

    return builder.while_loop([value], condition, body, location=draw(st.sampled_from(LOCATIONS)))


def _branch(
    draw: st.DrawFn, builder: TensorBuilder, value: Value, values: list[Value], depth: int
) -> tuple[Value, ...]:
    def block() -> list[Value]:
        return _inside(draw, builder, value, values, depth)

    return builder.branch(_truth(draw, builder), block, block)


def _arrange(
    draw: st.DrawFn, builder: TensorBuilder, value: Value, location: Location | None
) -> None:
    rank = value.type.rank
    if value.type.is_dense:
        builder.reshape(value, (*value.type.shape, 1), location=location)
    parts = [value] * draw(st.integers(1, 3))
    builder.concat(parts, draw(st.integers(0, rank - 1)), location=location)
    widths = st.lists(st.integers(0, 3), min_size=rank, max_size=rank)
    builder.pad(value, draw(widths), draw(widths), location=location)
