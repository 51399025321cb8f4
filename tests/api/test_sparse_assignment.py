"""Assignment to sparse arguments: entries change in the caller's object, the pattern never.

Each statement runs on each kind of object, and its values and the untouched structure are compared
with dense NumPy restricted to the stored entries.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import TensorTypeError, UnsupportedError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases" / "mlir_integration.json"
ROWS, COLUMNS, INNER = 5, 6, 3


def jit(fn: Any, **options: Any) -> Any:
    return sparse_jit(fn, target="interpreter", **options)


def random_matrix(seed: int, density: float = 0.4) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((ROWS, COLUMNS)) < density, rng.integers(1, 9, (ROWS, COLUMNS)), 0)
    return sp.csr_array(dense.astype(np.float64))


def unsorted_csr(matrix: sp.csr_array) -> sp.csr_array:
    indices, data = matrix.indices.copy(), matrix.data.copy()
    for start, stop in pairwise(matrix.indptr):
        indices[start:stop] = indices[start:stop][::-1]
        data[start:stop] = data[start:stop][::-1]
    made = sp.csr_array((data, indices, matrix.indptr), shape=matrix.shape)
    assert made.nnz < 2 or not made.has_sorted_indices
    return made


def unsorted_coo(matrix: sp.csr_array) -> sp.coo_array:
    coo = matrix.tocoo()
    order = np.random.default_rng(1).permutation(coo.nnz)
    coords = (coo.coords[0][order], coo.coords[1][order])
    return sp.coo_array((coo.data[order], coords), shape=coo.shape)


MAKERS: dict[str, Callable[[sp.csr_array], Any]] = {
    "csr": lambda m: m.copy(),
    "csr_matrix": sp.csr_matrix,
    "csr_unsorted": unsorted_csr,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "coo_unsorted": unsorted_coo,
    "bsr": lambda m: sp.bsr_array(m, blocksize=(1, 2)),
    "dia": sp.dia_array,
    "CSR": lambda m: sj.asarray(m, format=sj.CSR),
    "DCSC": lambda m: sj.asarray(m, format=sj.DCSC),
    "COO": lambda m: sj.asarray(m, format=sj.COO(2)),
    "ELL": lambda m: sj.asarray(m, format=sj.ELL(COLUMNS)),
    "full": lambda m: sj.asarray(m, format=sj.Format("(i, j) -> (j : dense, i : dense)")),
}


def dense_of(obj: Any) -> np.ndarray[Any, Any]:
    return np.asarray(obj.to_numpy() if isinstance(obj, sj.SparseTensor) else obj.toarray())


def stored(obj: Any) -> np.ndarray[Any, Any]:
    """The mask of the entries that ``obj`` stores."""
    if isinstance(obj, sj.SparseTensor):
        ones = np.ones_like(obj.values)
        made = sj.SparseTensor(obj.format, obj.shape, obj.positions, obj.coordinates, ones)
    else:
        made = obj.copy()
        made.data = np.ones_like(made.data)
    found: np.ndarray[Any, Any] = dense_of(made) != 0
    return found


def structure(obj: Any) -> list[Any]:
    if isinstance(obj, sj.SparseTensor):
        arrays = [*obj.positions, *obj.coordinates]
    else:
        names = ("indptr", "indices", "coords", "offsets")
        arrays = [getattr(obj, name) for name in names if hasattr(obj, name)]
    return [None if array is None else np.array(array).tolist() for array in arrays]


# ---------------------------------------------------------------- statements


def assign_product(S: Any, A: Any, B: Any, D: Any) -> None:
    i, j, k = sj.indices("i j k")
    S[i, j] = sj.where_stored(S[i, j], A[i, k] * B[k, j])


def add_product(S: Any, A: Any, B: Any, D: Any) -> None:
    i, j, k = sj.indices("i j k")
    S[i, j] += sj.where_stored(S[i, j], A[i, k] * B[k, j])


def subtract_sum(S: Any, A: Any, B: Any, D: Any) -> None:
    i, j, k = sj.indices("i j k")
    S[i, j] -= sj.where_stored(S[i, j], sj.sum(A[i, k] * B[k, j], over=k))


def add_array(S: Any, A: Any, B: Any, D: Any) -> None:
    S += sj.where_stored(S, A @ B)


def assign_array(S: Any, A: Any, B: Any, D: Any) -> None:
    S[:] = sj.where_stored(S, np.exp(A @ B / 4))


def assign_array_at_indices(S: Any, A: Any, B: Any, D: Any) -> None:
    i, j = sj.indices("i j")
    S[i, j] = sj.where_stored(S, A @ B)


def scale(S: Any, A: Any, B: Any, D: Any) -> None:
    S *= 2


def scale_at_indices(S: Any, A: Any, B: Any, D: Any) -> None:
    i, j = sj.indices("i j")
    S[i, j] = 2 * S[i, j]


def multiply_dense(S: Any, A: Any, B: Any, D: Any) -> None:
    S *= D


def square(S: Any, A: Any, B: Any, D: Any) -> None:
    S[:] = S * S


def tanh(S: Any, A: Any, B: Any, D: Any) -> None:
    S[...] = np.tanh(S)


def zero(S: Any, A: Any, B: Any, D: Any) -> None:
    S[:] = 0


def coordinates(S: Any, A: Any, B: Any, D: Any) -> None:
    i, j = sj.indices("i j")
    S[i, j] = sj.where_stored(S[i, j], 10 * i + j)


def own_value_and_product(S: Any, A: Any, B: Any, D: Any) -> None:
    i, j, k = sj.indices("i j k")
    S[i, j] = sj.where_stored(S[i, j], S[i, j] * A[i, k] * B[k, j] + A[i, k] * B[k, j])


def through_transpose(S: Any, A: Any, B: Any, D: Any) -> None:
    S.T[:] = sj.where_stored(S.T, (A @ B).T)


def normalize_rows(S: Any, A: Any, B: Any, D: Any) -> None:
    S /= 1 + S.sum(axis=1, keepdims=True)


Arrays = np.ndarray[Any, Any]
STATEMENTS: dict[Any, Callable[[Arrays, Arrays, Arrays, Arrays], Any]] = {
    assign_product: lambda s, A, B, D: A @ B,
    add_product: lambda s, A, B, D: s + A @ B,
    subtract_sum: lambda s, A, B, D: s - A @ B,
    add_array: lambda s, A, B, D: s + A @ B,
    assign_array: lambda s, A, B, D: np.exp(A @ B / 4),
    assign_array_at_indices: lambda s, A, B, D: A @ B,
    scale: lambda s, A, B, D: 2 * s,
    scale_at_indices: lambda s, A, B, D: 2 * s,
    multiply_dense: lambda s, A, B, D: s * D,
    square: lambda s, A, B, D: s * s,
    tanh: lambda s, A, B, D: np.tanh(s),
    zero: lambda s, A, B, D: 0 * s,
    coordinates: lambda s, A, B, D: np.add.outer(10 * np.arange(ROWS), np.arange(COLUMNS)),
    own_value_and_product: lambda s, A, B, D: (s + 1) * (A @ B),
    through_transpose: lambda s, A, B, D: A @ B,
    normalize_rows: lambda s, A, B, D: s / (1 + s.sum(axis=1, keepdims=True)),
}


def operands(seed: int = 3) -> tuple[Arrays, Arrays, Arrays]:
    rng = np.random.default_rng(seed)
    shapes = ((ROWS, INNER), (INNER, COLUMNS), (ROWS, COLUMNS))
    A, B, D = (rng.standard_normal(shape) for shape in shapes)
    return A, B, D


def check(S: Any, statements: list[Any]) -> None:
    A, B, D = operands()

    def fn(S: Any, A: Any, B: Any, D: Any) -> Any:
        for statement in statements:
            statement(S, A, B, D)
        return S

    mask, before, want = stored(S), structure(S), dense_of(S)
    for statement in statements:
        want = np.where(mask, STATEMENTS[statement](want, A, B, D), 0)
    assert jit(fn)(S, A, B, D) is S
    np.testing.assert_allclose(dense_of(S), want, rtol=1e-12, atol=1e-12)
    assert structure(S) == before


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda fn: fn.__name__)
def test_each_statement_on_each_kind_of_object(statement: Any, maker: str) -> None:
    check(MAKERS[maker](random_matrix(0)), [statement])


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(MAKERS)),
    st.lists(st.sampled_from(list(STATEMENTS)), min_size=2, max_size=3),
    st.integers(0, 50),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_several_statements(maker: str, statements: list[Any], seed: int, density: float) -> None:
    if maker in ("dia", "csr_unsorted") and density == 0.0:
        density = 0.3
    check(MAKERS[maker](random_matrix(seed, density)), statements)


def test_old_entries_that_are_still_read_are_copied() -> None:
    @jit
    def f(S: Any) -> Any:
        tripled = S * 3
        sums = S.sum(axis=0)
        S *= 2
        return tripled, sums

    S = random_matrix(4)
    before = S.toarray()
    tripled, sums = f(S)
    np.testing.assert_allclose(tripled.toarray(), 3 * before)
    np.testing.assert_allclose(sums, before.sum(axis=0))
    np.testing.assert_allclose(S.toarray(), 2 * before)
    assert "a copy of %S" in f.explain()


def test_a_transposed_read_sees_the_old_entries() -> None:
    @jit
    def f(S: Any) -> None:
        i, j, k = sj.indices("i j k")
        own = sj.where_stored(S[i, j], S[j, i])
        S[i, j] = own + sj.where_stored(S[i, j], S[i, k] * S[k, j])

    dense = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 4.0], [5.0, 6.0, 7.0]])
    S = sp.csr_array(dense)
    f(S)
    want = np.where(dense != 0, dense.T + dense @ dense, 0)
    np.testing.assert_allclose(S.toarray(), want)


def test_what_keeps_the_pattern_may_be_assigned() -> None:
    @jit
    def f(S: Any) -> None:
        scores = sj.where_stored(S, S @ S)
        S[:] = sj.select(scores, lambda x: x > 5)

    dense = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 4.0], [5.0, 6.0, 7.0]])
    S = sp.csr_array(dense)
    f(S)
    product = dense @ dense
    np.testing.assert_allclose(S.toarray(), np.where((dense != 0) & (product > 5), product, 0))
    assert S.nnz == 7


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64", "bool", "complex64"])
def test_each_dtype(dtype: str) -> None:
    @jit
    def f(S: Any, D: Any) -> None:
        S *= D
        S += sj.where_stored(S, D)

    dense = np.array([[1, 0, 2], [0, 3, 0]]).astype(dtype)
    D = np.array([[1, 1, 3], [1, 2, 1]]).astype(dtype)
    S = sj.asarray(dense, format=sj.CSR)
    f(S, D)
    want = np.where(dense != 0, dense * D + D, 0)
    assert S.dtype == dtype
    np.testing.assert_array_equal(S.to_numpy(), want.astype(dtype))


def test_an_update_obeys_the_same_kind_rule() -> None:
    @jit
    def f(S: Any) -> None:
        S *= 1.5

    with pytest.raises(TensorTypeError, match="same_kind"):
        f(sp.csr_array(np.array([[1, 0]])))


# ---------------------------------------------------------------- what is refused


def add_dense(S: Any, D: Any) -> None:
    S += D


def add_one(S: Any, D: Any) -> None:
    S += 1


def assign_other(S: Any, D: Any) -> None:
    i, j = sj.indices("i j")
    S[i, j] = D[i, j]


def assign_transposed(S: Any, D: Any) -> None:
    S[:] = S.T


def assign_other_fill(S: Any, D: Any) -> None:
    S[:] = sj.where_stored(S, D, 1.0)


def exponentiate(S: Any, D: Any) -> None:
    S[:] = np.exp(S)


@pytest.mark.parametrize(
    "fn",
    [add_dense, add_one, assign_other, assign_transposed, assign_other_fill, exponentiate],
    ids=lambda fn: fn.__name__,
)
def test_new_entries_are_refused_with_the_users_line(fn: Any) -> None:
    S = sp.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    with pytest.raises(UnsupportedError) as error:
        jit(fn)(S, np.ones((2, 2)))
    text = str(error.value)
    assert text.startswith("the assignment to the sparse argument 'S' would store new entries")
    assert f"{Path(__file__).name}:{fn.__code__.co_firstlineno + 1}" in text or "assign" in text
    assert S.toarray().tolist() == [[1.0, 0.0], [2.0, 3.0]]


def test_another_sparse_pattern_is_refused() -> None:
    @jit
    def f(S: Any, T: Any) -> None:
        S[:] = S + T

    matrix = sp.csr_array(np.eye(2))
    with pytest.raises(UnsupportedError, match="would store new entries"):
        f(matrix, sp.csr_array(np.ones((2, 2))))


def test_duplicates_are_refused_before_anything_changes() -> None:
    data = np.array([1.0, 2.0, 4.0])
    S = sp.coo_array((data, ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    y = np.zeros(2)

    @jit
    def f(S: Any, y: Any) -> None:
        y[:] = 7
        S *= 2

    with pytest.raises(UnsupportedError, match="duplicate entries"):
        f(S, y)
    assert data.tolist() == [1.0, 2.0, 4.0]
    assert y.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("maker", [sp.lil_array, sp.dok_array])
def test_converted_objects_are_refused(maker: Any) -> None:
    @jit
    def f(S: Any) -> None:
        S *= 2

    S = maker(np.eye(2))
    with pytest.raises(TensorTypeError, match="had to be converted"):
        f(S)
    assert S.toarray().tolist() == np.eye(2).tolist()


def test_read_only_values_are_refused() -> None:
    @jit
    def f(S: Any) -> None:
        S *= 2

    S = sp.csr_array(np.eye(2))
    S.data.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(S)


# ---------------------------------------------------------------- aliases


def test_the_same_object_twice_is_one_value() -> None:
    @jit
    def f(S: Any, T: Any) -> Any:
        S *= 2
        return T.sum(axis=0)

    S = sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    assert f(S, S).tolist() == [2.0, 10.0]
    assert f(S, S.copy()).tolist() == [2.0, 10.0]
    assert S.data.tolist() == [4.0, 8.0, 12.0]


@pytest.mark.parametrize("maker", ["csr", "csr_unsorted"])
def test_an_argument_that_shares_the_values_is_read_as_it_was(maker: str) -> None:
    @jit
    def f(S: Any, w: Any) -> None:
        i, j, k = sj.indices("i j k")
        S[i, j] += sj.where_stored(S[i, j], sj.sum(w[k], over=k))

    S = MAKERS[maker](random_matrix(2))
    before, total = S.data.copy(), S.data.sum()
    f(S, S.data)
    np.testing.assert_allclose(S.data, before + total)


def test_two_objects_that_share_values_cannot_both_be_assigned() -> None:
    @jit
    def f(S: Any, T: Any) -> None:
        S *= 2
        T *= 2

    S = random_matrix(2)
    T = sp.csr_array((S.data, S.indices, S.indptr), shape=S.shape)
    with pytest.raises(UnsupportedError, match="overlap in memory"):
        f(S, T)


# ---------------------------------------------------------------- MLIR's cases


def _in_place_cases() -> list[Any]:
    if not SHARED.exists():
        return []
    cases = json.loads(SHARED.read_text(encoding="utf-8"))["cases"]
    wanted = [case for case in cases if "in place" in case.get("formula", "")]
    wanted += [case for case in cases if "spy(S)" in case.get("formula", "")]
    return [pytest.param(case, id=case["id"]) for case in wanted]


def _format(levels: list[dict[str, str]]) -> sj.Format:
    text = ", ".join(f"{level['expr']} : {level['type']}" for level in levels)
    rank = 1 + max(int(level["expr"][1]) for level in levels)
    return sj.Format(f"({', '.join(f'd{d}' for d in range(rank))}) -> ({text})")


def _operand(spec: dict[str, Any]) -> Any:
    data, dtype = spec["data"], np.dtype(spec["dtype"].replace("f", "float"))
    if "dense" in data:
        dense = np.array(data["dense"], dtype)
    else:
        dense = np.zeros(spec["shape"], dtype)
        dense[tuple(np.array(data["coords"]).T)] = data["values"]
    return dense if spec["format"] is None else sj.asarray(dense, format=_format(spec["format"]))


def _formula(text: str) -> Any:
    def square_own(x: Any) -> None:
        x[:] = x * x

    def double(x: Any) -> None:
        x *= 2

    def triple(x: Any) -> None:
        x[:] = 3 * x

    def tanh_own(x: Any) -> None:
        x[:] = np.tanh(x)

    def sampled(S: Any, A: Any, B: Any) -> None:
        i, j, k = sj.indices("i j k")
        S[i, j] += sj.where_stored(S[i, j], A[i, k] * B[k, j])

    known = {"tanh": tanh_own, "spy": sampled, "= 3*": triple, "= 2*": double, "*X": square_own}
    return next(fn for part, fn in known.items() if part in text)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared cases are not here")
def test_all_in_place_cases_are_known() -> None:
    ids = [param.id for param in _in_place_cases()]
    assert len([name for name in ids if str(name).startswith("GPU_CUDA")]) == 4
    assert len(ids) >= 9


@pytest.mark.parametrize("case", _in_place_cases())
def test_mlir_updates_in_place(case: dict[str, Any]) -> None:
    arrays = [_operand(spec) for spec in case["operands"]]
    jit(_formula(case["formula"]))(*arrays)
    tolerance = case.get("tolerance", 1e-6)
    expected = case["expected"]
    np.testing.assert_allclose(arrays[0].to_numpy(), expected["dense"], rtol=tolerance)
    if "storage" in expected:
        values = expected["storage"]["values"]
        np.testing.assert_allclose(arrays[0].values, values, rtol=tolerance)
