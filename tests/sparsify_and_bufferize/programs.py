"""Named tensor functions for the golden texts of the sparsifier: one for each way of lowering."""

from collections.abc import Callable

from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSR,
    DIA,
    ELL,
    NV24,
    Batched,
    Dense,
    Format,
    SparseVector,
)
from sparsejit.ir.build import TensorBuilder
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
)
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import DType

__all__ = ["PROGRAMS", "contraction", "elementwise"]

F64 = DType.FLOAT64
ZERO = Const(0.0, F64)

PRODUCT = Binary(BinaryOp.MUL, Arg(0), Arg(1))
SUM = Binary(BinaryOp.ADD, Arg(0), Arg(1))
FUSED = Binary(BinaryOp.ADD, PRODUCT, Arg(1))


def _plus(term: ScalarExpr, out: int) -> ScalarExpr:
    return Binary(BinaryOp.ADD, Arg(out), term)


def contraction(lhs: Format, rhs: Format, result: Format, dtype: DType = F64) -> TensorFunc:
    """C[i, j] = sum over k of A[i, k] * B[k, j]."""
    builder = TensorBuilder("matmul")
    A = builder.param("A", ("m", "k"), dtype, lhs)
    B = builder.param("B", ("k", "n"), dtype, rhs)
    kind = builder.tensor_type(("m", "n"), dtype, result)
    zero = Const(0.0, dtype)
    C = builder.full(kind.shape, zero) if kind.is_dense else builder.empty(kind)
    return builder.finish(
        builder.generic([(A, (0, 2)), (B, (2, 1))], (C, (0, 1)), _plus(PRODUCT, 2))
    )


def elementwise(body: ScalarExpr, lhs: Format, rhs: Format, result: Format) -> TensorFunc:
    """C[i, j] = body(A[i, j], B[i, j])."""
    builder = TensorBuilder("elementwise")
    A = builder.param("A", ("m", "n"), F64, lhs)
    B = builder.param("B", ("m", "n"), F64, rhs)
    C = builder.empty(builder.tensor_type(("m", "n"), F64, result))
    return builder.finish(builder.generic([(A, (0, 1)), (B, (0, 1))], (C, (0, 1)), body))


def _spmv(fmt: Format) -> TensorFunc:
    builder = TensorBuilder("spmv")
    A = builder.param("A", ("m", "n"), F64, fmt)
    x = builder.param("x", ("n",), F64)
    y = builder.full(A.type.shape[:1], ZERO)
    return builder.finish(builder.generic([(A, (0, 1)), (x, (1,))], (y, (0,)), _plus(PRODUCT, 2)))


def _transposed(lhs: Format, result: Format) -> TensorFunc:
    builder = TensorBuilder("transposed")
    A = builder.param("A", ("m", "n"), F64, lhs)
    C = builder.empty(builder.tensor_type(("n", "m"), F64, result))
    return builder.finish(builder.generic([(A, (0, 1))], (C, (1, 0)), Arg(0)))


def _sddmm(fmt: Format) -> TensorFunc:
    builder = TensorBuilder("sddmm")
    S = builder.param("S", ("m", "n"), F64, fmt)
    A = builder.param("A", ("m", "k"), F64)
    B = builder.param("B", ("k", "n"), F64)
    dense = builder.full(S.type.shape, ZERO)
    dense = builder.generic([(A, (0, 2)), (B, (2, 1))], (dense, (0, 1)), _plus(PRODUCT, 2))
    C = builder.empty(S.type)
    return builder.finish(builder.generic([(S, (0, 1)), (dense, (0, 1))], (C, (0, 1)), PRODUCT))


def _mttkrp() -> TensorFunc:
    builder = TensorBuilder("mttkrp")
    X = builder.param("X", ("i", "j", "k"), F64, CSF(3))
    B = builder.param("B", ("j", "r"), F64)
    C = builder.param("C", ("k", "r"), F64)
    M = builder.full((X.type.shape[0], B.type.shape[1]), ZERO)
    term = Binary(BinaryOp.MUL, PRODUCT, Arg(2))
    operands = [(X, (0, 1, 2)), (B, (1, 3)), (C, (2, 3))]
    return builder.finish(builder.generic(operands, (M, (0, 3)), _plus(term, 3)))


def _sampled_rows() -> TensorFunc:
    """C[i, j] = S[i, j] * sum over k of A[i, k] * B[k, j], all of them stored by rows."""
    builder = TensorBuilder("sampled_rows")
    S = builder.param("S", ("m", "n"), F64, CSR)
    A = builder.param("A", ("m", "k"), F64, CSR)
    B = builder.param("B", ("k", "n"), F64, CSR)
    C = builder.empty(S.type)
    term = Binary(BinaryOp.MUL, PRODUCT, Arg(2))
    operands = [(S, (0, 1)), (A, (0, 2)), (B, (2, 1))]
    return builder.finish(builder.generic(operands, (C, (0, 1)), _plus(term, 3)))


def _fibers(width: int) -> TensorFunc:
    """C[i, j] = sum over k of X[i, j, k] * v[k], or C[i, j, r] with a matrix: blocks of values."""
    builder = TensorBuilder("fibers")
    X = builder.param("X", ("i", "j", "k"), F64, CSF(3))
    v = builder.param("v", ("k", "r")[:width], F64)
    fmt = Format("(i, j, r) -> (i : compressed, j : compressed, r : dense)")
    kind = builder.tensor_type(("i", "j", "r")[: 1 + width], F64, DCSR if width == 1 else fmt)
    reduced = width + 1
    result = (0, 1, 2)[: 1 + width]
    operands = [(X, (0, 1, reduced)), (v, (reduced, *result[2:]))]
    return builder.finish(
        builder.generic(operands, (builder.empty(kind), result), _plus(PRODUCT, 2))
    )


def _sampled_heads() -> TensorFunc:
    """E[i, j, h] = A[i, j] * sum over d of Q[i, h, d] * K[j, h, d]: a dense level at each entry."""
    builder = TensorBuilder("sampled_heads")
    A = builder.param("A", ("m", "n"), F64, CSR)
    Q = builder.param("Q", ("m", "h", "d"), F64)
    K = builder.param("K", ("n", "h", "d"), F64)
    fmt = Format("(i, j, h) -> (i : dense, j : compressed, h : dense)")
    E = builder.empty(builder.tensor_type(("m", "n", "h"), F64, fmt))
    term = Binary(BinaryOp.MUL, PRODUCT, Arg(2))
    operands = [(A, (0, 1)), (Q, (0, 2, 3)), (K, (1, 2, 3))]
    return builder.finish(builder.generic(operands, (E, (0, 1, 2)), _plus(term, 3)))


def _outer_sum() -> TensorFunc:
    builder = TensorBuilder("outer_sum")
    v = builder.param("v", ("m",), F64, SparseVector)
    w = builder.param("w", ("n",), F64, SparseVector)
    C = builder.empty(builder.tensor_type(("m", "n"), F64, CSR))
    return builder.finish(builder.generic([(v, (0,)), (w, (1,))], (C, (0, 1)), SUM))


def _diagonal() -> TensorFunc:
    builder = TensorBuilder("diagonal")
    A = builder.param("A", ("n", "n"), F64, CSR)
    d = builder.empty(builder.tensor_type(("n",), F64))
    return builder.finish(builder.generic([(A, (0, 0))], (d, (0,)), Arg(0)))


def _map(body: ScalarExpr, fill: float, fmt: Format = CSR) -> TensorFunc:
    builder = TensorBuilder("map")
    A = builder.param("A", ("m", "n"), F64, fmt)
    C = builder.empty(builder.tensor_type(("m", "n"), F64, fmt, Const(fill, F64)))
    return builder.finish(builder.generic([(A, (0, 1))], (C, (0, 1)), body))


def _half_sum() -> TensorFunc:
    builder = TensorBuilder("half_sum")
    A = builder.param("A", ("m", "n"), DType.FLOAT16, CSC)
    y = builder.full(A.type.shape[:1], Const(0.0, DType.FLOAT16))
    return builder.finish(builder.generic([(A, (0, 1))], (y, (0,)), _plus(Arg(0), 1)))


def _half_update() -> TensorFunc:
    builder = TensorBuilder("half_update")
    x = builder.param("x", ("n",), DType.FLOAT16, assigned=True)
    y = builder.param("y", ("n",), DType.FLOAT16)
    total = builder.generic([(y, (0,))], (x, (0,)), _plus(Arg(0), 1))
    return builder.finish(builder.materialize(total, x))


def _batched() -> TensorFunc:
    builder = TensorBuilder("batched_spmv")
    A = builder.param("A", ("b", "m", "n"), F64, Batched(CSR))
    x = builder.param("x", ("b", "n"), F64)
    y = builder.full(A.type.shape[:2], ZERO)
    return builder.finish(
        builder.generic([(A, (0, 1, 2)), (x, (0, 2))], (y, (0, 1)), _plus(PRODUCT, 2))
    )


def _three_way_sum() -> TensorFunc:
    builder = TensorBuilder("three_way_sum")
    names = ("A", "B", "C")
    A, B, C = (builder.param(name, ("n",), F64, SparseVector) for name in names)
    y = builder.empty(A.type)
    body = Binary(BinaryOp.ADD, SUM, Arg(2))
    return builder.finish(builder.generic([(A, (0,)), (B, (0,)), (C, (0,))], (y, (0,)), body))


_SET_DIFFERENCE = Select(Stored(1), Nothing(F64), Arg(0))
_SCALE_BY_ROW = Binary(BinaryOp.MUL, Arg(0), Cast(Coordinate(0), F64))
_POSITIVE = Select(Binary(BinaryOp.GT, Arg(0), ZERO), Arg(0), Nothing(F64))

PROGRAMS: dict[str, Callable[[], TensorFunc]] = {
    "spmv_csr": lambda: _spmv(CSR),
    "spmv_csc": lambda: _spmv(CSC),
    "spmv_coo": lambda: _spmv(COO(2)),
    "spmv_bsr": lambda: _spmv(BSR(2, 3)),
    "spmv_dia": lambda: _spmv(DIA),
    "spmv_ell": lambda: _spmv(ELL(3)),
    "spmv_nv24": lambda: _spmv(NV24),
    "spmv_batched": _batched,
    "spmm_csr": lambda: contraction(CSR, Dense(2), Dense(2)),
    "spgemm_inner": lambda: contraction(CSR, CSC, CSR),
    "spgemm_rows": lambda: contraction(CSR, CSR, CSR),
    "spgemm_outer": lambda: contraction(CSC, CSR, CSR),
    "add_csr": lambda: elementwise(SUM, CSR, CSR, CSR),
    "add_dcsr": lambda: elementwise(SUM, DCSR, DCSR, DCSR),
    "add_csr_csc": lambda: elementwise(SUM, CSR, CSC, CSR),
    "add_csr_dense": lambda: elementwise(SUM, CSR, Dense(2), Dense(2)),
    "add_bsr": lambda: elementwise(SUM, BSR(2, 2), BSR(2, 2), BSR(2, 2)),
    "multiply_coo_csr": lambda: elementwise(PRODUCT, COO(2), CSR, COO(2)),
    "multiply_csr_csr": lambda: elementwise(PRODUCT, CSR, CSR, CSR),
    "multiply_csr_csc": lambda: elementwise(PRODUCT, CSR, CSC, CSR),
    "multiply_csr_dense": lambda: elementwise(PRODUCT, CSR, Dense(2), CSR),
    "product_plus_factor": lambda: elementwise(FUSED, CSR, CSR, CSR),
    "set_difference": lambda: elementwise(_SET_DIFFERENCE, CSR, CSR, CSR),
    "transposed_csr": lambda: _transposed(CSR, CSR),
    "sddmm": lambda: _sddmm(CSR),
    "mttkrp": _mttkrp,
    "sampled_heads": _sampled_heads,
    "sampled_rows": _sampled_rows,
    "ttv": lambda: _fibers(1),
    "ttm": lambda: _fibers(2),
    "outer_sum": _outer_sum,
    "diagonal": _diagonal,
    "three_way_sum": _three_way_sum,
    "exp": lambda: _map(Unary(UnaryOp.EXP, Arg(0)), 1.0),
    "scale_by_row": lambda: _map(_SCALE_BY_ROW, 0.0),
    "select_positive": lambda: _map(_POSITIVE, 0.0),
    "half_sum": _half_sum,
    "half_update": _half_update,
}
