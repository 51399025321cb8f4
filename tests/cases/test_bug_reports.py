"""Faults that users of other sparse systems reported, and their variants: here they are right.

The numbers are those of the reports (HB-01 to HB-25), transcribed; each test's name says what went
wrong elsewhere.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

# All of them run on the interpreter, and some once more compiled, at the end of this file.
each_target = pytest.mark.parametrize("target", ["interpreter"])


def tensor(fmt: sj.Format, shape: tuple[int, ...], coords: Any, values: Any) -> sj.SparseTensor:
    """Return a tensor from coordinates as the reports list them: one row an entry."""
    at = np.array(coords, dtype=np.int64).reshape(-1, len(shape)).T
    return sj.from_coo(at, np.array(values, dtype=np.float64), shape, format=fmt)


def multiply(A: Any, B: Any) -> Any:
    return sj.einsum("ik,kj->ij", A, B)


# ---------------------------------------------------------------- HB-01, HB-15: empty rows

B1 = tensor(sj.CSR, (3, 4), [[0, 0], [1, 2], [1, 3]], [2.0, 3.0, -1.0])
C1 = tensor(sj.CSR, (4, 2), [[0, 1], [1, 0]], [7.0, 11.0])


@each_target
@pytest.mark.parametrize("fmt", [sj.CSR, sj.DCSR, sj.COO(2), sj.Dense(2)], ids=str)
@pytest.mark.parametrize("right", [sj.CSR, sj.CSC], ids=str)
def test_hb01_product_with_empty_rows(target: str, fmt: sj.Format, right: sj.Format) -> None:
    result = sparse_jit(multiply, target=target, output=fmt)(B1, C1.convert(right))
    dense = np.array([[0.0, 14.0], [0.0, 0.0], [0.0, 0.0]])
    if fmt.is_dense:
        np.testing.assert_array_equal(result, dense)
        return
    np.testing.assert_array_equal(result.to_numpy(), dense)
    assert result.nse == 1
    if fmt == sj.CSR:
        assert result.positions[1].tolist() == [0, 1, 1, 1]
        assert result.coordinates[1].tolist() == [1]
        assert result.values.tolist() == [14.0]


@each_target
def test_hb15_inner_indices_never_meet(target: str) -> None:
    A = tensor(sj.CSR, (2, 4), [[0, 0], [0, 1], [1, 0], [1, 1]], [1.0] * 4)
    B = tensor(sj.CSR, (4, 2), [[2, 0], [2, 1], [3, 0], [3, 1]], [1.0] * 4)
    result = sparse_jit(multiply, target=target)(A, B)
    assert result.format.with_widths(0, 0) == sj.CSR
    assert result.positions[1].tolist() == [0, 0, 0]
    assert result.coordinates[1].size == result.values.size == 0


@pytest.mark.parametrize(("m", "k", "n"), [(0, 10, 0), (3, 0, 4), (0, 0, 0)])
def test_hb15_products_without_extent(m: int, k: int, n: int) -> None:
    A, B = sp.csr_array((m, k)), sp.csr_array((k, n))
    result = sparse_jit(multiply, target="interpreter")(A, B)
    assert result.shape == (m, n)
    assert result.nnz == 0
    assert result.indptr.tolist() == [0] * (m + 1)


# ---------------------------------------------------------------- HB-03: a dense operand in a sum


def add(b: Any, c: Any) -> Any:
    i = sj.indices("i")[0]
    a = sj.output()
    a[i] = b[i] + c[i]
    return a


STORED_3 = {"two": ([1, 4], [4.0, 5.0]), "none": ([], []), "all": (range(5), [1.0, 2, 3, 4, 5])}


@each_target
@pytest.mark.parametrize("stored", STORED_3)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("c_is_sparse", [False, True])
def test_hb03_each_operand_is_read_once(
    target: str, stored: str, swapped: bool, c_is_sparse: bool
) -> None:
    at, values = STORED_3[stored]
    b = tensor(sj.SparseVector, (5,), [[i] for i in at], values)
    dense = np.array([1.0, 2.0, 3.0, 4.0, 6.0])
    c = sj.asarray(dense, format=sj.SparseVector) if c_is_sparse else dense
    operands = (c, b) if swapped else (b, c)
    result = sparse_jit(add, target=target, output=sj.Dense(1))(*operands)
    np.testing.assert_array_equal(result, b.to_numpy() + dense)


# ---------------------------------------------------------------- HB-05: outer reduction

AT_5 = [[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 0], [2, 0, 0], [3, 0, 0]]
X5 = tensor(sj.CSF(3), (4, 4, 3), AT_5, [1.0, 2.0, 7.0, 3.0, 5.0, -1.0])
Y5 = tensor(sj.CSF(3), (4, 4, 3), AT_5, [1.0, 2.0, 7.0, 3.0, 5.0, -1.0])


@each_target
@pytest.mark.parametrize("fmt", [sj.COO(4), sj.CSF(4), sj.Dense(4)], ids=str)
@pytest.mark.parametrize("second", [Y5, X5], ids=["equal", "the same object"])
def test_hb05_contraction_over_the_leading_mode(target: str, fmt: sj.Format, second: Any) -> None:
    function = sparse_jit(lambda X, Y: sj.einsum("ijk,ilm->jklm", X, Y), target=target, output=fmt)
    result = function(X5, second)
    expected = np.einsum("ijk,ilm->jklm", X5.to_numpy(), Y5.to_numpy())
    if fmt.is_dense:
        np.testing.assert_array_equal(result, expected)
        return
    np.testing.assert_array_equal(result.to_numpy(), expected)
    assert result.values.tolist() == [27.0, 2.0, 49.0, 21.0, 2.0, 21.0, 13.0]
    assert result.values.sum() == expected.sum()
    at = np.array(result.convert(sj.COO(4)).coordinates).T.tolist()
    assert at == sorted(at)
    assert len({tuple(row) for row in at}) == len(at) == 7


# ---------------------------------------------------------------- HB-07: one matrix twice

A7 = tensor(sj.CSR, (3, 3), [[0, 1], [1, 2], [2, 0], [2, 2]], [2.0, 3.0, 4.0, -1.0])


@each_target
@pytest.mark.parametrize("fmt", [sj.CSR, sj.COO(2)], ids=str)
@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,kj->ik", "ij,jk,kl->il"])
def test_hb07_one_matrix_with_different_indices(
    target: str, fmt: sj.Format, subscripts: str
) -> None:
    uses = subscripts.count(",") + 1
    A = A7.convert(fmt)
    function = sparse_jit(
        lambda *operands: sj.einsum(subscripts, *operands), target=target, output=sj.CSR
    )
    result = function(*[A] * uses)
    expected = np.einsum(subscripts, *[A7.to_numpy()] * uses)
    np.testing.assert_array_equal(result.to_numpy(), expected)
    copies = [tensor(sj.CSR, (3, 3), [[0, 1], [1, 2], [2, 0], [2, 2]], A7.values)] * uses
    np.testing.assert_array_equal(function(*copies).to_numpy(), expected)


# ---------------------------------------------------------------- HB-09: conflicting orders

B9 = tensor(sj.CSR, (3, 3), [[0, 1], [1, 1], [2, 0]], [1.0, -2.0, 3.0])
C9 = tensor(sj.CSC, (3, 3), [[0, 1], [1, 0]], [4.0, 6.0])
CASES_9: dict[str, tuple[Callable[..., Any], sj.Format | None]] = {
    "sum to dense": (lambda B, C: B + C, sj.Dense(2)),
    "sum to CSR": (lambda B, C: B + C, sj.CSR),
    "product": (lambda B, C: B * C, None),
    "product to CSR": (lambda B, C: B * C, sj.CSR),
}


@each_target
@pytest.mark.parametrize("name", CASES_9)
def test_hb09_rows_and_columns_mix(target: str, name: str) -> None:
    function, fmt = CASES_9[name]
    compiled = sparse_jit(function, target=target, output=fmt)
    result = compiled(B9, C9)
    dense = result if isinstance(result, np.ndarray) else result.to_numpy()
    np.testing.assert_array_equal(dense, function(B9.to_numpy(), C9.to_numpy()))
    if name == "sum to CSR":
        assert "conver" in compiled.explain()


@each_target
def test_hb09_columns_times_columns_to_rows(target: str) -> None:
    B = B9.convert(sj.CSC)
    result = sparse_jit(multiply, target=target, output=sj.CSR)(B, C9)
    assert result.format.with_widths(0, 0) == sj.CSR
    np.testing.assert_array_equal(result.to_numpy(), B9.to_numpy() @ C9.to_numpy())


# ---------------------------------------------------------------- HB-11: not canonical


def not_canonical(kind: str) -> Any:
    indptr, indices = np.array([0, 3, 5]), np.array([2, 0, 0, 1, 1])
    values = np.array([4.0, 1.0, 2.0, 5.0, -5.0])
    A = sp.csr_array((values, indices, indptr), shape=(2, 3))
    if kind == "csr":
        return A
    rows = np.repeat([0, 1], np.diff(indptr))
    return sp.coo_array((values, (rows, indices)), shape=(2, 3))


@each_target
@pytest.mark.parametrize("kind", ["csr", "coo"])
def test_hb11_duplicates_are_summed_first(target: str, kind: str) -> None:
    A = not_canonical(kind)
    indices = (A.indices if kind == "csr" else A.coords[1]).copy()

    def run(function: Callable[[Any], Any]) -> Any:
        result = sparse_jit(function, target=target)(A)
        sparse = isinstance(result, sj.SparseTensor) or sp.issparse(result)
        return sj.asarray(result).to_numpy() if sparse else np.asarray(result)

    dense = [[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]]
    assert run(lambda A: 1.0 * A).tolist() == dense
    assert run(lambda A: A[:, :2]).tolist() == [[3.0, 0.0], [0.0, 0.0]]
    assert run(lambda A: A * A).tolist() == [[9.0, 0.0, 16.0], [0.0, 0.0, 0.0]]
    assert run(lambda A: A @ np.ones(3)).tolist() == [7.0, 0.0]
    assert run(lambda A: np.exp(A)).tolist() == np.exp(dense).tolist()
    # Duplicates that cancel are a stored zero, and no missing row.
    squares = sparse_jit(lambda A: A * A, target=target)(A)
    assert squares.nnz == 3
    np.testing.assert_array_equal(A.indices if kind == "csr" else A.coords[1], indices)


# ---------------------------------------------------------------- HB-13: fill values in sums


@each_target
@pytest.mark.parametrize(
    ("fill", "sums"),
    [
        (np.nan, [3.0, np.nan, np.nan]),
        (np.inf, [3.0, np.inf, np.inf]),
        (5.0, [3.0, 8.0, 10.0]),
        (0.0, [3.0, 3.0, 0.0]),
    ],
)
def test_hb13_the_fill_counts_only_where_something_is_missing(
    target: str, fill: float, sums: list[float]
) -> None:
    at = [[0, 0], [0, 1], [1, 0]]
    A = sj.asarray(tensor(sj.COO(2), (3, 2), at, [1.0, 2.0, 3.0]), fill_value=fill)
    result = sparse_jit(lambda A: A.sum(axis=1), target=target)(A)
    np.testing.assert_array_equal(result, sums)
    means = sparse_jit(lambda A: A.mean(axis=1), target=target)(A)
    np.testing.assert_array_equal(means, np.array(sums) / 2)


# ---------------------------------------------------------------- HB-17: derivatives


def gradients(A: Any, B: Any) -> tuple[Any, Any]:
    """The derivative of `(A @ B).sum()` with respect to the stored values of A and of B."""
    i, j, k = sj.indices("i j k")
    rows_of_B, columns_of_A = sj.output(), sj.output()
    rows_of_B[k] = B[k, j]
    columns_of_A[k] = A[i, k]
    dA, dB = sj.output(), sj.output()
    dA[i, k] = sj.where_stored(A[i, k], rows_of_B[k])
    dB[k, j] = sj.where_stored(B[k, j], columns_of_A[k])
    return dA, dB


CASES_17 = {
    "diagonal": ((3, 3), [[0, 0], [1, 1], [2, 2]], [2.0, 3.0, 4.0],
                 (3, 3), [[0, 0], [1, 1], [2, 2]], [5.0, 6.0, 7.0]),
    "an empty row": ((2, 3), [[0, 0], [0, 2]], [2.0, 3.0],
                     (3, 2), [[0, 1], [2, 0], [2, 1]], [5.0, 6.0, 7.0]),
    "never met": ((2, 3), [[0, 0]], [2.0], (3, 2), [[0, 1], [1, 0]], [5.0, 6.0]),
}  # fmt: skip


@each_target
@pytest.mark.parametrize("name", CASES_17)
def test_hb17_gradients_at_every_stored_entry(target: str, name: str) -> None:
    shape_A, at_A, values_A, shape_B, at_B, values_B = CASES_17[name]
    A, B = tensor(sj.COO(2), shape_A, at_A, values_A), tensor(sj.COO(2), shape_B, at_B, values_B)
    dA, dB = sparse_jit(gradients, target=target)(A, B)
    for gradient, operand, other, is_left in ((dA, A, B, True), (dB, B, A, False)):
        assert gradient.format.with_widths(0, 0) == sj.COO(2)
        for mine, theirs in zip(gradient.coordinates, operand.coordinates, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        for n in range(operand.nse):  # finite differences, exact since the loss is linear
            moved = operand.values.copy()
            moved[n] += 0.5
            dense, fixed = operand.to_numpy(), other.to_numpy()
            at = tuple(c[n] for c in operand.coordinates if c is not None)
            shifted = dense.copy()
            shifted[at] += 0.5
            old = (dense @ fixed if is_left else fixed @ dense).sum()
            new = (shifted @ fixed if is_left else fixed @ shifted).sum()
            np.testing.assert_allclose(gradient.values[n], (new - old) / 0.5, rtol=1e-6)
    if name == "diagonal":
        assert dA.values.tolist() == [5.0, 6.0, 7.0]
        assert dB.values.tolist() == [2.0, 3.0, 4.0]
    if name == "never met":
        assert dB.values.tolist() == [2.0, 0.0]
        assert dB.nse == 2


# ---------------------------------------------------------------- HB-19: scaled addition


def scaled_addition(A: Any, B: Any, C: Any, alpha: Any, beta: Any) -> Any:
    i, j, k = sj.indices("i j k")
    Y = sj.output()
    Y[i, j] = alpha * A[i, k] * B[k, j] + beta * C[i, j]
    return Y


@each_target
@pytest.mark.parametrize("beta", [0.5, 0.0, 1.0, -2.0])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("is_empty", [False, True])
def test_hb19_scaled_multiply_and_add(target: str, beta: float, order: Any, is_empty: bool) -> None:
    at, values = ([], []) if is_empty else ([[0, 1], [1, 2]], [2.0, -1.0])
    A = tensor(sj.CSR, (2, 3), at, values)
    B = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    C = np.array([[10.0, 20.0], [30.0, 40.0]], order=order)
    result = sparse_jit(scaled_addition, target=target)(A, B, C, 3.0, beta)
    np.testing.assert_array_equal(result, 3.0 * A.to_numpy() @ B + beta * C)
    if beta == 0.5 and not is_empty:
        assert result.tolist() == [[23.0, 34.0], [0.0, 2.0]]


def test_hb19_a_term_that_is_left_out_is_not_read() -> None:
    """Scales are run-time values here, so 0 * nan is nan, as in NumPy; a static 0 leaves C out."""
    A, B = tensor(sj.CSR, (2, 3), [[0, 1]], [2.0]), np.ones((3, 2))
    C = np.full((2, 2), np.nan)

    def function(A: Any, B: Any, C: Any, beta: Any) -> Any:
        return 3.0 * (A @ B) + beta * C if beta else 3.0 * (A @ B)

    static = sparse_jit(function, target="interpreter", static_argnames=("beta",))
    np.testing.assert_array_equal(static(A, B, C, 0.0), [[6.0, 6.0], [0.0, 0.0]])


# ---------------------------------------------------------------- HB-21: damaged operands


def test_hb21_coordinates_outside_the_shape() -> None:
    at = (np.array([1, 3, 5]), np.array([1, 1, 1]))
    with pytest.raises(ValueError, match=r"coords\[1\]\[0\] is 1, outside 0 .. 0 of dimension 1"):
        sj.from_coo(at, np.ones(3, np.float32), (6, 1), format=sj.COO(2))


@pytest.mark.parametrize(
    ("positions", "coordinates", "words"),
    [
        ([0, 1, 2], [0, -1], "negative|-1"),
        ([0, 2, 1], [0, 1], "decrease|position"),
        ([0, 1, 3], [0, 1], "position|values|overrun|length"),
        ([0, 1, 2], [0, 3], "3"),
    ],
)
def test_hb21_damaged_rows(positions: list[int], coordinates: list[int], words: str) -> None:
    values = np.ones(2)
    with pytest.raises(ValueError, match=words):
        sj.SparseTensor(
            sj.CSR, (2, 3), (None, np.array(positions)), (None, np.array(coordinates)), values
        )
    damaged = sp.csr_array((2, 3))
    damaged.indptr, damaged.indices, damaged.data = (
        np.array(positions, np.int32), np.array(coordinates, np.int32), values,
    )  # fmt: skip
    with pytest.raises(ValueError, match=words):
        sparse_jit(lambda A: 2 * A, target="interpreter")(damaged)


# ---------------------------------------------------------------- HB-23: linear positions

LARGE = 100_000
A23 = tensor(sj.CSC, (LARGE, LARGE), [[99998, 99998]], [1.0])


@each_target
def test_hb23_positions_beyond_32_bits(target: str) -> None:
    assert sparse_jit(lambda A: sj.argmax(A), target=target)(A23) == 9999899998
    assert sparse_jit(lambda A: A.max(), target=target)(A23) == 1.0


@each_target
def test_hb23_negative_entries_only(target: str) -> None:
    A = tensor(sj.CSC, (LARGE, LARGE), [[0, 0], [1, 0]], [-1.0, -2.0])
    at = int(sparse_jit(lambda A: sj.argmax(A), target=target)(A))
    assert at == 1  # the first position that is not stored
    assert sparse_jit(lambda A: A.max(), target=target)(A) == 0.0


@each_target
def test_hb23_sum_then_argmax(target: str) -> None:
    assert sparse_jit(lambda A: sj.argmax(A.sum(axis=0)), target=target)(A23) == 99998


@each_target
def test_hb23_broadcast_product_with_few_entries(target: str) -> None:
    a = tensor(sj.SparseVector, (LARGE,), [[99_999]], [2.0])
    result = sparse_jit(lambda a, b: np.multiply.outer(a, b), target=target)(a, a)
    assert result.shape == (LARGE, LARGE)
    assert result.nse == 1
    assert result.values.tolist() == [4.0]


def test_hb23_reshape_to_one_axis() -> None:
    result = sparse_jit(lambda A: A.reshape(-1), target="interpreter")(A23)
    assert result.shape == (LARGE * LARGE,)
    assert result.coordinates[0].tolist() == [9999899998]


# ---------------------------------------------------------------- HB-25: scalar results

A25 = tensor(sj.COO(3), (3, 3, 3), [[0, 1, 2], [1, 1, 0], [2, 0, 2]], [2.0, -3.0, 4.0])
B25 = tensor(sj.COO(3), (3, 3, 3), [[0, 1, 2], [1, 1, 1], [2, 0, 2]], [5.0, 7.0, 0.5])
OPERANDS_25: dict[str, tuple[Any, Any]] = {
    "coo": (A25, B25),
    "csf": (A25.convert(sj.CSF(3)), B25.convert(sj.CSF(3))),
    "one dense": (A25, B25.to_numpy()),
    "the other dense": (A25.to_numpy(), B25),
    "empty": (tensor(sj.COO(3), (3, 3, 3), [], []), tensor(sj.CSF(3), (3, 3, 3), [], [])),
}


@each_target
@pytest.mark.parametrize("operands", OPERANDS_25)
@pytest.mark.parametrize("subscripts", ["abc,abc->", "abc,cba->"])
def test_hb25_complete_contraction(target: str, operands: str, subscripts: str) -> None:
    given = OPERANDS_25[operands]
    result = sparse_jit(lambda A, B: sj.einsum(subscripts, A, B), target=target)(*given)
    dense = [value if isinstance(value, np.ndarray) else value.to_numpy() for value in given]
    assert result == np.einsum(subscripts, *dense)
    assert np.asarray(result).dtype == np.float64
    if operands != "empty" and subscripts == "abc,abc->":
        assert result == 12.0


# ---------------------------------------------------------------- the same, compiled

COMPILED: dict[str, Callable[[], None]] = {
    "HB-03": lambda: test_hb03_each_operand_is_read_once("cpu", "two", False, False),
    "HB-07": lambda: test_hb07_one_matrix_with_different_indices("cpu", sj.CSR, "ij,kj->ik"),
    "HB-09": lambda: test_hb09_rows_and_columns_mix("cpu", "sum to CSR"),
    "HB-13": lambda: test_hb13_the_fill_counts_only_where_something_is_missing(
        "cpu", np.nan, [3.0, np.nan, np.nan]
    ),
    "HB-15": lambda: test_hb15_inner_indices_never_meet("cpu"),
    "HB-17": lambda: test_hb17_gradients_at_every_stored_entry("cpu", "never met"),
    "HB-19": lambda: test_hb19_scaled_multiply_and_add("cpu", 0.5, "F", False),
    "HB-23": lambda: test_hb23_positions_beyond_32_bits("cpu"),
    "HB-25": lambda: test_hb25_complete_contraction("cpu", "coo", "abc,cba->"),
}


@pytest.mark.parametrize("report", COMPILED)
def test_report_on_the_cpu(report: str) -> None:
    COMPILED[report]()
