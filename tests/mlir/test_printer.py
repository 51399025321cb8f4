"""What `print_mlir` prints is accepted by the real `mlir-opt`, or refused by us with a reason."""

from collections.abc import Callable

import pytest

from sparsejit.affine import Constant, Dim, add, mul
from sparsejit.errors import UnsupportedError, VerificationError
from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSC,
    DCSR,
    DIA,
    ELL,
    NV24,
    Batched,
    Format,
    SparseVector,
)
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.mlir import print_mlir
from sparsejit.ir.ops import BinaryOp, UnaryOp
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
    dtype_of,
)
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import DType
from tests.support.mlir_oracle import lowers, mlir_opt, parses

pytestmark = pytest.mark.mlir

FLOAT = DType.FLOAT64

FORMATS = {
    "csr": CSR,
    "csr of 32 bits": CSR.with_widths(32, 32),
    "csr of 16 and 8 bits": CSR.with_widths(16, 8),
    "csc": CSC,
    "dcsr": DCSR,
    "dcsc": DCSC,
    "coo": COO(2),
    "coo of rank 3": COO(3),
    "coo of structs": Format("(i, j) -> (i : compressed(nonunique), j : singleton)"),
    "coo without order": Format(
        "(i, j) -> (i : compressed(nonunique, nonordered), j : singleton(nonordered, soa))"
    ),
    "csf": CSF(3),
    "bsr": BSR(2, 3),
    "2:4": NV24,
    "vector": SparseVector,
    "loose": Format("(i, j) -> (i : dense, j : loose_compressed)"),
    "batched": Batched(CSR),
    "dense by columns": Format("(i, j) -> (j : dense, i : dense)"),
}

FORMATS_OF_OURS = {
    "dia": (DIA, "MLIR cannot invert the level d1 - d0"),
    "ell": (ELL(3), "MLIR has no padded level"),
    "blocks of height 1": (BSR(1, 3), "MLIR cannot invert the level 0"),
    "places before blocks": (
        Format("(i, j) -> (i mod 2 : dense, i floordiv 2 : compressed, j : dense)"),
        "MLIR cannot invert the level d0 mod 2",
    ),
}


def _identity(format_: Format, dtype: DType = FLOAT, fill: Const | None = None) -> TensorFunc:
    builder = TensorBuilder("identity")
    shape = [f"n{d}" for d in range(format_.ndim)]
    return builder.finish(builder.param("A", shape, dtype, format_, fill))


def test_formats_parse_and_lower() -> None:
    texts = [print_mlir(_identity(format_)) for format_ in FORMATS.values()]
    errors = {
        name: reply.error for name, reply in zip(FORMATS, lowers(texts), strict=True) if reply.error
    }
    assert errors == {}


@pytest.mark.parametrize("name", FORMATS_OF_OURS)
def test_formats_that_mlir_lacks_are_refused(name: str) -> None:
    format_, reason = FORMATS_OF_OURS[name]
    with pytest.raises(UnsupportedError, match=reason):
        print_mlir(_identity(format_))


def test_a_sparse_fill_is_refused_and_a_dense_one_is_not() -> None:
    one = Const(1.0, FLOAT)
    with pytest.raises(UnsupportedError, match=r"no sparse tensor with the fill value 1\.0"):
        print_mlir(_identity(CSR, FLOAT, one))
    assert "tensor<?xf64>" in print_mlir(_identity(Format("(i) -> (i : dense)"), FLOAT, one))


def test_dtypes_parse() -> None:
    replies = parses([print_mlir(_identity(CSR, dtype)) for dtype in DType])
    assert [reply.error for reply in replies if reply.error] == []


# ------------------------------------------------------------ scalar operations


def _applied(body: ScalarExpr, dtypes: tuple[DType, ...]) -> TensorFunc:
    """`out[i] = body(in0[i], in1[i], ...)` on dense vectors."""
    builder = TensorBuilder("applied")
    inputs = [
        (builder.param(f"x{number}", ("n",), dtype), (0,)) for number, dtype in enumerate(dtypes)
    ]
    extent = builder.extent("n")
    builder.param("bound", ("n",), FLOAT)
    result = dtype_of(body, dtypes)
    out = builder.empty(builder.tensor_type((extent,), result))
    return builder.finish(builder.generic(inputs, (out, (0,)), body, extents={0: extent}))


def _unary_functions() -> dict[str, TensorFunc]:
    return {
        f"{op.name} {dtype.value}": _applied(Unary(op, Arg(0)), (dtype,))
        for op in UnaryOp
        for dtype in DType
        if _is_typed(Unary(op, Arg(0)), (dtype,))
    }


def _binary_functions() -> dict[str, TensorFunc]:
    return {
        f"{op.name} {dtype.value}": _applied(Binary(op, Arg(0), Arg(1)), (dtype, dtype))
        for op in BinaryOp
        for dtype in DType
        if _is_typed(Binary(op, Arg(0), Arg(1)), (dtype, dtype))
    }


def _is_typed(body: ScalarExpr, dtypes: tuple[DType, ...]) -> bool:
    """Whether the verifier takes the operation on these dtypes at all."""
    try:
        _applied(body, dtypes)
    except VerificationError:
        return False
    return True


def _casts() -> dict[str, TensorFunc]:
    return {
        f"{source.value} to {target.value}": _applied(Cast(Arg(0), target), (source,))
        for source in DType
        for target in DType
    }


REFUSED_SCALARS = {
    "complex": {
        *("CBRT", "EXP2", "LOG2", "LOG10", "ASIN", "ACOS", "ATAN", "SINH", "COSH"),
        *("ASINH", "ACOSH", "ATANH", "RINT", "ISNAN", "ISINF", "ISFINITE"),
        *("MIN", "MAX", "FMIN", "FMAX", "LT", "LE", "GT", "GE"),
    },
    "bool": {"FLOORDIV", "REM", "FMOD", "POW", "SHL", "SHR"},
}
"""Operations that are legal on these dtypes but have no spelling in MLIR."""


@pytest.mark.parametrize(
    "functions", [_unary_functions, _binary_functions, _casts], ids=["unary", "binary", "cast"]
)
def test_scalar_operations_parse_or_are_refused(
    functions: Callable[[], dict[str, TensorFunc]],
) -> None:
    texts, refused = {}, set()
    for name, func in functions().items():
        try:
            texts[name] = print_mlir(func)
        except UnsupportedError:
            refused.add(name)
    replies = dict(zip(texts, parses(list(texts.values())), strict=True))
    assert {name: reply.error for name, reply in replies.items() if reply.error} == {}
    unexpected = {
        name
        for name in refused
        for op, dtype in [name.split()[:2]]
        if op not in REFUSED_SCALARS.get("complex" if "complex" in dtype else dtype, set())
    }
    assert unexpected == set()


def test_constants_keep_every_bit() -> None:
    bodies = [
        Const(float("nan"), DType.FLOAT32),
        Const(-0.0, FLOAT),
        Const(5e-324, FLOAT),
        Const(float("inf"), DType.FLOAT16),
        Const(3.0, DType.BFLOAT16),
        Const(-(2**63), DType.INT64),
        Const(2**64 - 1, DType.UINT64),
        Const(True, DType.BOOL),
        Const(1 - 2j, DType.COMPLEX64),
    ]
    replies = parses([print_mlir(_applied(body, ())) for body in bodies])
    expected = ("0x7FC00000", "-0.0", "4.94", "0x7C00", "3.0", "-9223372036854775808", "-1", "true")
    for reply, text in zip(replies, expected, strict=False):
        assert reply.output is not None
        assert text in reply.output, reply.output
    assert replies[-1].error == ""


def test_shared_subexpressions_are_printed_once() -> None:
    square = Binary(BinaryOp.MUL, Arg(0), Arg(0))
    text = print_mlir(_applied(Binary(BinaryOp.ADD, square, square), (FLOAT,)))
    assert text.count("arith.mulf") == 1


# ------------------------------------------------------------ semi-rings


def _sampled(body: ScalarExpr) -> TensorFunc:
    builder = TensorBuilder("sampled")
    S, A = builder.param("S", ("m", "n"), FLOAT, CSR), builder.param("A", ("m", "n"), FLOAT)
    return builder.finish(
        builder.generic([(S, (0, 1)), (A, (0, 1))], (builder.empty(S.type), (0, 1)), body)
    )


def test_semi_ring_regions_parse_and_lower() -> None:
    nothing, two = Nothing(FLOAT), Const(2.0, FLOAT)
    positive = Binary(BinaryOp.GT, Arg(0), Const(0.0, FLOAT))
    bodies = {
        "present": Select(Stored(0), Binary(BinaryOp.ADD, Arg(1), two), nothing),
        "present of its own value": Select(Stored(0), Unary(UnaryOp.EXP, Arg(0)), nothing),
        "both": Select(Stored(0), Binary(BinaryOp.ADD, Arg(0), Arg(1)), nothing),
        "kept": Select(positive, Arg(0), nothing),
    }
    replies = lowers([print_mlir(_sampled(body)) for body in bodies.values()])
    assert {n: r.error for n, r in zip(bodies, replies, strict=True) if r.error} == {}


def test_storedness_as_a_value_parses() -> None:
    body = Select(Stored(0), Const(1.0, FLOAT), Const(2.0, FLOAT))
    counted = Cast(Stored(0), FLOAT)
    replies = parses([print_mlir(_sampled(body)), print_mlir(_sampled(counted))])
    assert [reply.error for reply in replies if reply.error] == []


def test_nothing_in_a_dense_result_is_its_fill() -> None:
    builder = TensorBuilder("dense")
    S = builder.param("S", ("m", "n"), FLOAT, CSR)
    kind = builder.tensor_type(S.type.shape, FLOAT, None, Const(7.0, FLOAT))
    body = Select(Stored(0), Arg(0), Nothing(FLOAT))
    func = builder.finish(builder.generic([(S, (0, 1))], (builder.empty(kind), (0, 1)), body))
    assert "0x401C000000000000" in print_mlir(func)
    assert parses([print_mlir(func)])[0].error == ""


# ------------------------------------------------------------ loops and indices


def test_loops_without_a_plain_index_get_a_carrier() -> None:
    builder = TensorBuilder("convolution")
    x, w = builder.param("x", ("n",), FLOAT), builder.param("w", (3,), FLOAT)
    y = builder.full((builder.extent("n"),), Const(0.0, FLOAT))
    window = (add(mul(Constant(2), Dim(0)), Dim(1)),)
    body = Binary(BinaryOp.ADD, Arg(1), Arg(0))
    func = builder.finish(builder.generic([(x, window)], (y, (0,)), body, extents={1: Constant(3)}))
    assert "tensor.splat" in print_mlir(func)
    assert parses([print_mlir(func)])[0].error == ""
    assert w.type.rank == 1


def test_coordinates_are_values() -> None:
    body = Cast(Binary(BinaryOp.MUL, Coordinate(0), Coordinate(0)), FLOAT)
    assert parses([print_mlir(_applied(body, (FLOAT,)))])[0].error == ""


def test_names_are_made_safe_and_unique() -> None:
    builder = TensorBuilder("a name, with spaces")
    A = builder.param("x y", ("n",), FLOAT)
    B = builder.param("x_y", ("n",), FLOAT)
    C = builder.param("s1", ("n",), FLOAT)
    body = Binary(BinaryOp.ADD, Arg(0), Binary(BinaryOp.ADD, Arg(1), Arg(2)))
    out = builder.empty(A.type)
    func = builder.finish(builder.generic([(A, (0,)), (B, (0,)), (C, (0,))], (out, (0,)), body))
    assert parses([print_mlir(func)])[0].error == ""


# ------------------------------------------------------------ the oracle itself


def test_a_program_that_aborts_the_tool_costs_only_itself() -> None:
    good = print_mlir(_identity(CSR))
    aborting = good.replace("d0 : dense", "d0 : dense(nonunique)")
    wrong = good.replace("return", "retrun")
    replies = mlir_opt([good, wrong, aborting, wrong, good], [])
    assert [reply.output is not None for reply in replies] == [True, False, False, False, True]
    assert replies[2].error.startswith("aborted")
    assert "retrun" in replies[3].error
