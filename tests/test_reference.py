"""The reference evaluator: the algebra of what is not stored, slots of formats, and structure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sparsejit.affine import Add, Constant, Dim
from sparsejit.errors import VerificationError
from sparsejit.formats import BSR, CSR, DIA, ELL, Dense, Format, SparseVector
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.fold import numpy_dtype
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
from sparsejit.ir.tensor import TensorFunc, While
from sparsejit.ir.types import DType
from sparsejit.ir.walk import all_ops
from sparsejit.passes import canonicalize
from sparsejit.reference import Masked, dense_masked, evaluate_reference
from tests.ir.tensor_functions import tensor_functions

F64, I64, BOOL = DType.FLOAT64, DType.INT64, DType.BOOL
INF, NAN = np.inf, np.nan
A, X = Arg(0), Arg(1)


def pointwise(
    body: ScalarExpr, fill: float = 0.0, out: Format = SparseVector, out_fill: float = 0.0
) -> TensorFunc:
    """``out[i] = body(A[i], x[i])`` for a sparse A and a dense x."""
    builder = TensorBuilder("f")
    a = builder.param("A", ("n",), F64, SparseVector, Const(fill, F64))
    x = builder.param("x", ("n",), F64)
    kind = builder.tensor_type(("n",), F64, out, Const(out_fill, F64))
    destination = (builder.empty(kind), (0,))
    return builder.finish(builder.generic([(a, (0,)), (x, (0,))], destination, body))


def evaluate(func: TensorFunc, *params: tuple[Any, Any] | Any, extents: Sequence[int]) -> Masked:
    pairs = [
        Masked(np.array(p[0]), np.array(p[1], bool)) if isinstance(p, tuple) else dense_masked(p)
        for p in params
    ]
    return evaluate_reference(func, pairs, extents)[0]


STORED = [True, True, False, False]
"""Of A = [2, 0, f, f]: the zero is stored, the last two are not."""

CASES: dict[str, tuple[ScalarExpr, float, list[float], list[bool]]] = {
    "a missing zero annihilates": (
        Binary(BinaryOp.MUL, A, X), 0.0, [INF, NAN, 0, 0], STORED,
    ),
    "from the right as well": (
        Binary(BinaryOp.MUL, X, A), 0.0, [INF, NAN, 0, 0], STORED,
    ),
    "another fill does not": (
        Binary(BinaryOp.MUL, A, X), 2.0, [INF, NAN, INF, NAN], [True] * 4,
    ),
    "a sum with something stored is stored": (
        Binary(BinaryOp.ADD, A, X), 0.0, [INF, INF, INF, NAN], [True] * 4,
    ),
    "an operation of a missing value and a constant is missing": (
        Binary(BinaryOp.ADD, A, Const(1.0, F64)), 0.0, [3, 1, 1, 1], STORED,
    ),
    "a constant zero does not annihilate": (
        Binary(BinaryOp.MUL, Const(0.0, F64), X), 0.0, [NAN, NAN, NAN, NAN], [True] * 4,
    ),
    "a missing zero over zero": (
        Binary(BinaryOp.DIV, A, Binary(BinaryOp.SUB, A, A)), 0.0, [INF, NAN, 0, 0], STORED,
    ),
    "a unary operation keeps the pattern": (
        Unary(UnaryOp.COS, A), 0.0, [np.cos(2), 1, 1, 1], STORED,
    ),
    "where_stored": (
        Select(Stored(0), X, Const(0.0, F64)), 0.0, [INF, INF, 0, 0], STORED,
    ),
    "where_stored with a missing value": (
        Select(Stored(0), Const(0.0, F64), Const(0.0, F64)), 0.0, [0, 0, 0, 0], STORED,
    ),
    "nothing is no entry": (
        Select(Stored(0), A, Nothing(F64)), 0.0, [2, 0, 0, 0], STORED,
    ),
    "and nothing of nothing": (
        Binary(BinaryOp.ADD, X, Select(Stored(0), A, Nothing(F64))), 0.0, [INF, INF, 0, 0], STORED,
    ),
    "a coordinate is stored everywhere": (
        Cast(Coordinate(0), F64), 0.0, [0, 1, 2, 3], [True] * 4,
    ),
    "a condition that is a value": (
        Select(Binary(BinaryOp.GT, A, Const(1.0, F64)), A, Const(0.0, F64)),
        0.0, [2, 0, 0, 0], STORED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_algebra(name: str) -> None:
    body, fill, expected, stored = CASES[name]
    missing = {"a unary operation keeps the pattern": 1.0,
               "an operation of a missing value and a constant is missing": 1.0}  # fmt: skip
    func = pointwise(body, fill, out_fill=missing.get(name, 0.0))
    values, mask = evaluate(
        func, ([2.0, 0.0, fill, fill], STORED), np.array([INF, INF, INF, NAN]), extents=[4]
    )
    if name == "a condition that is a value":
        stored = [True, True, False, False]
    np.testing.assert_array_equal(values, expected)
    assert mask.tolist() == stored


def test_a_dense_result_keeps_its_fill_where_nothing_is() -> None:
    func = pointwise(Select(Stored(0), A, Nothing(F64)), out=Dense(1), out_fill=7.0)
    made = evaluate(func, ([2.0, 0.0, 0, 0], STORED), np.ones(4), extents=[4])
    assert made.values.tolist() == [2.0, 0.0, 7.0, 7.0]
    assert made.stored.all()


def test_an_undefined_element_shows() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)
    func = builder.finish(builder.empty(x.type))
    assert np.isnan(evaluate(func, np.ones(2), extents=[2]).values).all()


def reduction(op: BinaryOp, term: ScalarExpr, start: float) -> TensorFunc:
    builder = TensorBuilder("f")
    a = builder.param("A", ("m", "n"), F64, CSR)
    y = builder.full(a.type.shape[:1], Const(start, F64))
    return builder.finish(builder.generic([(a, (0, 1))], (y, (0,)), Binary(op, Arg(1), term)))


def test_reductions_count_what_is_missing() -> None:
    a = ([[1.0, -2.0, 0.0], [-3.0, -1.0, 0.0]], [[1, 1, 0], [1, 1, 0]])
    sums = evaluate(reduction(BinaryOp.ADD, A, 0.0), a, extents=[2, 3])
    assert sums.values.tolist() == [-1.0, -4.0]
    largest = evaluate(reduction(BinaryOp.MAX, A, -INF), a, extents=[2, 3])
    assert largest.values.tolist() == [1.0, 0.0]
    stored_only = Select(Stored(0), A, Nothing(F64))
    largest = evaluate(reduction(BinaryOp.MAX, stored_only, -INF), a, extents=[2, 3])
    assert largest.values.tolist() == [1.0, -1.0]
    empty: Any = ([[], []], [[], []])
    assert evaluate(reduction(BinaryOp.MAX, A, -INF), empty, extents=[2, 0]).values.tolist() == [
        -INF,
        -INF,
    ]


def test_a_sparse_reduction_stores_what_some_entry_reaches() -> None:
    builder = TensorBuilder("f")
    a = builder.param("A", ("m", "n"), F64, CSR)
    kind = builder.tensor_type(("m",), F64, SparseVector)
    added = Binary(BinaryOp.ADD, Arg(1), A)
    func = builder.finish(builder.generic([(a, (0, 1))], (builder.empty(kind), (0,)), added))
    made = evaluate(func, ([[0.0, 0], [0, 0], [5, 2]], [[1, 0], [0, 0], [1, 1]]), extents=[3, 2])
    assert made.values.tolist() == [0.0, 0.0, 7.0]
    assert made.stored.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("fmt", "slots"),
    [
        (CSR, [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]),
        (ELL(2), [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]),
        (BSR(2, 2), [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]),
        (DIA, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        (Dense(2), [[1] * 4] * 3),
        (Format("(i, j) -> (i : compressed, j : dense)"), [[1] * 4, [0] * 4, [1] * 4]),
        (Format("(i, j) -> (j : compressed, i : dense)"), [[0, 1, 0, 1]] * 3),
    ],
)
def test_formats_own_slots(fmt: Format, slots: list[list[int]]) -> None:
    builder = TensorBuilder("f")
    a = builder.param("A", ("m", "n"), F64, CSR)
    func = builder.finish(builder.convert(a, fmt))
    mask = [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    made = evaluate(func, (np.array(mask) * 3.0, mask), extents=[3, 4])
    assert made.stored.astype(int).tolist() == slots


def test_padding_of_blocks_is_no_entry_of_a_sparse_format() -> None:
    builder = TensorBuilder("f")
    a = builder.param("A", ("m", "n"), F64, BSR(2, 2))
    func = builder.finish(builder.convert(a, CSR))
    made = evaluate(func, ([[1.0, 0], [0, 0]], [[1, 1], [1, 1]]), extents=[2, 2])
    assert made.stored.tolist() == [[True, False], [False, False]]
    builder = TensorBuilder("g")
    a = builder.param("A", ("m", "n"), F64, CSR)
    func = builder.finish(builder.convert(a, CSR.with_widths(64, 64)))
    made = evaluate(func, ([[1.0, 0], [0, 0]], [[1, 1], [0, 0]]), extents=[2, 2])
    assert made.stored.tolist() == [[True, True], [False, False]]


def test_slices_inserts_and_loops() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)
    part = builder.extract_slice(x, [3], [2], [-2])
    whole = builder.insert_slice(part, x, [0], [2])
    total = builder.full((), Const(0.0, F64))

    def body(i: Dim, carried: Any) -> Any:
        element = builder.extract_slice(whole, [i], [1], dropped=[0])
        added = Binary(BinaryOp.ADD, Arg(0), Arg(1))
        return [builder.generic([(element, ())], (carried[0], ()), added)]

    (total,) = builder.for_loop(Constant(0), Dim(0), [total], body)
    func = builder.finish(builder.insert(total, whole, [Constant(2)]))
    made = evaluate(func, np.array([1.0, 2, 4, 8]), extents=[4])
    assert made.values.tolist() == [8.0, 2.0, 22.0, 8.0]


def test_affine_indices_and_accesses_outside() -> None:
    builder = TensorBuilder("f")
    x, w = builder.param("x", ("n",), F64), builder.param("w", ("k",), F64)
    y = builder.param("y", ("m",), F64)
    body = Binary(BinaryOp.ADD, Arg(2), Binary(BinaryOp.MUL, A, X))
    at = (Add(Dim(0), Dim(1)),)
    func = builder.finish(builder.generic([(x, at), (w, (1,))], (y, (0,)), body))
    x_, w_, y_ = np.array([1.0, 2, 3, 4]), np.array([1.0, 10]), np.zeros(3)
    made = evaluate(func, x_, w_, y_, extents=[4, 2, 3])
    assert made.values.tolist() == [21.0, 32.0, 43.0]
    with pytest.raises(VerificationError, match="reads outside of an extent of 4"):
        evaluate(func, x_, w_, np.zeros(4), extents=[4, 2, 4])


def test_halves_accumulate_in_32_bits() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), DType.FLOAT16)
    y = builder.full((), Const(0.0, DType.FLOAT16))
    added = Binary(BinaryOp.ADD, Arg(1), Arg(0))
    func = builder.finish(builder.generic([(x, (0,))], (y, ()), added))
    made = evaluate(func, np.ones(4096, np.float16), extents=[4096])
    assert made.values == 4096.0
    assert made.values.dtype == np.float16


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (DType.INT8, [NAN, INF, -INF, 127.9, 128.0, -129.0], [0, 127, -128, 127, 127, -128]),
        (DType.UINT64, [-1.0, 2.0**64, 2.0**63, 3.7], [0, 2**64 - 1, 2**63, 3]),
        (DType.INT64, [2.0**63, -(2.0**63), 1e300], [2**63 - 1, -(2**63), 2**63 - 1]),
    ],
)  # fmt: skip
def test_floats_become_integers(dtype: DType, values: list[float], expected: list[int]) -> None:
    from sparsejit._reference_scalar import as_dtype

    assert as_dtype(np.array(values), dtype).tolist() == expected


@pytest.mark.parametrize(
    ("op", "lhs", "rhs", "expected"),
    [
        (BinaryOp.FLOORDIV, [7, -7, 7], [0, 2, -2], [0, -4, -4]),
        (BinaryOp.REM, [7, -7, 7], [0, 2, -2], [0, 1, -1]),
        (BinaryOp.POW, [2, 1, -1, -1, 0, 2], [-1, -3, -3, -2, -1, 3], [0, 1, -1, 1, 0, 8]),
        (BinaryOp.SHL, [1, 1, -1], [63, 64, 70], [-(2**63), 0, 0]),
        (BinaryOp.SHR, [8, 8, -8], [2, 64, 64], [2, 0, -1]),
        (BinaryOp.ADD, [2**63 - 1], [1], [-(2**63)]),
    ],
)
def test_integers_never_trap(
    op: BinaryOp, lhs: list[int], rhs: list[int], expected: list[int]
) -> None:
    builder = TensorBuilder("f")
    a, b = builder.param("a", ("n",), I64), builder.param("b", ("n",), I64)
    out = builder.empty(a.type)
    func = builder.finish(builder.generic([(a, (0,)), (b, (0,))], (out, (0,)), Binary(op, A, X)))
    made = evaluate(func, np.array(lhs), np.array(rhs), extents=[len(lhs)])
    assert made.values.tolist() == expected


def random_params(func: TensorFunc, n: int, seed: int) -> list[Masked]:
    source = np.random.default_rng(seed)
    made = []
    for param in func.params:
        kind = param.type
        shape = (n,) * kind.rank
        values = source.integers(-3, 4, shape).astype(numpy_dtype(kind.dtype))
        stored = source.random(shape) < 0.5
        if kind.is_dense:
            made.append(dense_masked(values))
            continue
        fill = np.asarray(kind.fill.value).astype(values.dtype)
        made.append(Masked(np.where(stored, values, fill), stored))
    return made


@given(func=tensor_functions(), n=st.integers(1, 4), seed=st.integers(0, 9))
def test_canonicalize_keeps_the_meaning(func: TensorFunc, n: int, seed: int) -> None:
    assume(func.num_extents == 1)
    # A drawn loop without a count need not end.
    assume(not any(isinstance(op, While) for op in all_ops(func.ops)))
    params = random_params(func, n, seed)
    try:
        before = evaluate_reference(func, params, [n])
    except (IndexError, VerificationError):
        return  # a slice that does not fit these extents
    after = evaluate_reference(canonicalize(func), params, [n])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.values.astype(complex), other.values.astype(complex))
        np.testing.assert_array_equal(one.stored, other.stored)


def test_reshape_concat_and_pad() -> None:
    builder = TensorBuilder("f")
    a = builder.param("A", ("m", "n"), F64, CSR)
    flat = builder.reshape(a, (Constant(6),), SparseVector)
    both = builder.concat([flat, flat], 0)
    func = builder.finish(builder.pad(both, [1], [2]))
    made = evaluate(func, ([[1.0, 0, 0], [0, 0, 5]], [[1, 1, 0], [0, 0, 1]]), extents=[2, 3])
    once = [1.0, 0, 0, 0, 0, 5]
    pattern = [True, True, False, False, False, True]
    assert made.values.tolist() == [0.0, *once, *once, 0.0, 0.0]
    assert made.stored.tolist() == [False, *pattern, *pattern, False, False]


def test_while_loops_and_branches() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", (), F64)
    bool_type = builder.tensor_type((), BOOL)

    def compare(value: Any, limit: float) -> Any:
        less = Binary(BinaryOp.LT, Arg(0), Const(limit, F64))
        return builder.generic([(value, ())], (builder.empty(bool_type), ()), less)

    def doubled(value: Any) -> Any:
        twice = Binary(BinaryOp.ADD, Arg(0), Arg(0))
        return builder.generic([(value, ())], (builder.empty(x.type), ()), twice)

    (grown,) = builder.while_loop(
        [x], lambda carried: compare(carried[0], 10.0), lambda carried: [doubled(carried[0])]
    )
    (chosen,) = builder.branch(compare(grown, 15.0), lambda: [doubled(grown)], lambda: [grown])
    func = builder.finish(grown, chosen)
    for start, expected in ((3.0, (12.0, 24.0)), (5.0, (10.0, 20.0)), (16.0, (16.0, 16.0))):
        results = evaluate_reference(func, [dense_masked(np.array(start))], [])
        assert tuple(float(result.values) for result in results) == expected
