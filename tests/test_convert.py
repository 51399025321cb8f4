"""Conversions by kernels: the same storage that NumPy's way makes, and when kernels are made."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit import convert
from sparsejit.convert import converted, converted_by_kernel, has_kernel, loops_of
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
    Dense,
    Format,
)
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions
from sparsejit.ir.loops import LoopFunc, Push, Search, Sort
from sparsejit.tensors import VALUE_TYPES, SparseTensor, convert_in_numpy, from_coo, from_dense
from tests.formats.strategies import formats
from tests.tensors.cases import MATRIX_FORMATS, SHAPES, TENSOR_FORMATS, arrays
from tests.tensors.test_round_trips import lack_of_slots

sp: Any = scipy.sparse

REVERSED = Format("(i, j, k) -> (k : compressed, j : compressed, i : compressed)")
BLOCKS_FIRST = Format("(i, j) -> (i mod 2 : dense, i floordiv 2 : compressed, j : compressed)")


def assert_same(found: SparseTensor, wanted: SparseTensor) -> None:
    """Both have the same storage, array by array, with the same types."""
    assert found.format == wanted.format
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.fill_value, wanted.fill_value)
    arrays_of = [(*t.positions, *t.coordinates, t.values) for t in (found, wanted)]
    for one, other in zip(*arrays_of, strict=True):
        if other is None:
            assert one is None
        else:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def check(tensor: SparseTensor, target: Format) -> None:
    """The kernel stores what NumPy's way stores, or both refuse in the same words."""
    found = [tried(convert, tensor, target) for convert in (converted_by_kernel, convert_in_numpy)]
    if isinstance(found[1], str):
        assert found[0] == found[1]
    else:
        assert_same(*found)


def tried(convert: Any, tensor: SparseTensor, target: Format) -> Any:
    """What a conversion gives, or says where the target has too few slots."""
    try:
        return convert(tensor, target)
    except ValueError as error:
        if "has no slot" not in str(error):
            raise
        return str(error)


def sampled(shape: Sequence[int], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 9, shape) * (rng.random(shape) < 0.5)).astype(np.float64)


PAIRS = [
    (source, group[(7 * number + turn) % len(group)])
    for turn, group in ((3, MATRIX_FORMATS), (5, TENSOR_FORMATS))
    for number, source in enumerate(group)
]
PAIRS += [(BLOCKS_FIRST, DIA), (CSR, BSR(2, 2)), (CSC, BSR(2, 3)), (DIA, CSC), (DIA, BSR(2, 2))]
PAIRS += [(COO(3), REVERSED), (CSF(3), REVERSED), (CSC, DCSR), (CSC, COO(2)), (CSR, DIA)]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_pairs_of_formats(source: Format, target: Format) -> None:
    """Each format as a source, and each as a target; all shapes, stored zeros among the entries."""
    if not has_kernel(source, target):
        assert any(lvl.type.kind.value == "batch" for lvl in (*source.levels, *target.levels))
        return
    for seed, shape in enumerate(SHAPES[source.ndim]):
        tensor = from_dense(sampled(shape, seed), source)
        tensor.values[:1] = 0
        check(tensor, target)


@settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_random_pairs(data: st.DataObject) -> None:
    """Random formats; not shrunk, since each example is compiled."""
    source = data.draw(formats().filter(lambda fmt: fmt.ndim > 0))
    target = data.draw(formats(source.ndim))
    assume(has_kernel(source, target))
    array = data.draw(arrays(source.ndim))
    with lack_of_slots(source):
        check(from_dense(array, source), target)


@pytest.mark.parametrize("dtype", VALUE_TYPES, ids=str)
def test_value_types(dtype: np.dtype[Any]) -> None:
    array = sampled((5, 6), 4).astype(dtype)
    for source, target in ((CSR, CSC), (BSR(2, 2), CSR), (Dense(2), COO(2))):
        check(from_dense(array, source), target)


@pytest.mark.parametrize("fill", [np.nan, np.inf, -0.0, 7.0])
def test_fill_values(fill: float) -> None:
    array = np.where(sampled((5, 6), 4) == 0, fill, sampled((5, 6), 5))
    for source, target in ((BSR(2, 2), CSC), (CSR, BSR(2, 2)), (DIA, CSR), (CSC, Dense(2))):
        check(from_dense(array, source, fill), target)


def test_what_is_stored_in_no_order_and_more_than_once() -> None:
    loose = Format("(i, j) -> (i : dense, j : compressed(nonunique, nonordered))")
    pos, crd = np.array([0, 3, 4], np.int64), np.array([2, 0, 2, 1], np.uint8)
    tensor = SparseTensor(loose, (2, 3), (None, pos), (None, crd), np.arange(4.0))
    for target in (CSC, COO(2), loose.with_widths(64, 64), BSR(2, 2)):
        check(tensor, target)


def test_index_widths() -> None:
    tensor = from_dense(sampled((5, 300), 4), CSR.with_widths(64, 16))
    for target in (CSC.with_widths(8, 8), CSC.with_widths(64, 8), CSR.with_widths(16, 64)):
        if target.crd_width >= 16 or target.pos_width >= 16 or tensor.nse < 256:
            check(tensor, target)
    with pytest.raises(ValueError, match="pos_width=8 is too small"):
        converted_by_kernel(tensor, CSC.with_widths(8, 8))


@pytest.mark.parametrize("target", [DCSR, DCSC, COO(2), Format("(i, j) -> (j - i : compressed, "
                         "j : compressed)"), Format("(i, j) -> (i floordiv 2 : compressed, "
                         "j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)")],
                         ids=str)  # fmt: skip
def test_huge_extents_cost_nothing(target: Format) -> None:
    """There is no room for anything as long as a dimension; what is sorted is sorted by digits."""
    extent = 2**40
    places = np.random.default_rng(3).integers(0, extent, (2, 10))
    tensor = from_coo(tuple(places), np.arange(1.0, 11), (extent, extent), COO(2))
    other = tensor if target == COO(2) else converted_by_kernel(tensor, target)
    back = converted_by_kernel(other, COO(2)) if target != COO(2) else other
    assert_same(back, tensor)
    turned = sj.sparse_jit(lambda A: A * 2.0, output=DCSC)(tensor)
    assert turned.nse == 10


def loops(source: Format, target: Format) -> LoopFunc:
    wide = [fmt if fmt.is_all_full else fmt.with_widths(32, 32) for fmt in (source, target)]
    return loops_of(wide[0], wide[1], "float64", np.float64(0).tobytes())


@pytest.mark.parametrize(
    ("source", "target"),
    [(CSR, CSC), (CSC, CSR), (COO(2), CSC), (COO(2), CSR), (CSR, COO(2)), (CSR, DCSR), (DCSR, CSC),
     (BSR(2, 2), CSR), (BSR(2, 2), CSC), (DIA, CSR), (DIA, CSC), (CSC, BSR(2, 2)), (Dense(2), CSR),
     (CSF(3), Format("(i, j, k) -> (k : dense, i : compressed(nonunique), j : singleton)"))],
    ids=str,
)  # fmt: skip
def test_conversions_without_a_sort(source: Format, target: Format) -> None:
    """What one counting pass can order is not sorted, and nothing is searched."""
    func = loops(source, target)
    assert not any(isinstance(stmt, Sort) for stmt in all_statements(func.body))
    if source != Dense(2) and target != DCSR:
        assert not any(isinstance(stmt, Push) for stmt in all_statements(func.body))


def test_diagonals_are_not_searched_for() -> None:
    func = loops(CSR, DIA)
    parts = [part for stmt in all_statements(func.body) for expr in expressions(stmt)
             for part in all_expressions(expr)]  # fmt: skip
    assert not any(isinstance(part, Search) for part in parts)


# ---- which way is taken


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Nothing is known, few slots are worth a kernel; the sizes that kernels converted."""
    sizes: list[int] = []
    run = convert._run

    def spy(operand: Any, *rest: Any) -> SparseTensor:
        sizes.append(operand.values.size)
        return run(operand, *rest)

    monkeypatch.setattr(convert, "_run", spy)
    monkeypatch.setattr(convert, "_known", set())
    monkeypatch.setattr(convert, "_seen", {})
    monkeypatch.setattr(convert, "WORTH_COMPILING", 10)
    return sizes


def test_a_kernel_is_compiled_once_it_is_worth_it(compiled: list[int]) -> None:
    four = from_dense(np.eye(4), CSR)
    for _ in range(2):
        assert_same(four.convert(CSC), convert_in_numpy(four, CSC))
    assert compiled == []
    four.convert(CSC)  # the twelfth slot
    from_dense(np.eye(2), CSR).convert(CSC)
    assert compiled == [4, 2]
    four.convert(DCSR)  # another pair
    assert compiled == [4, 2]


def test_formats_without_a_kernel_take_numpys_way(compiled: list[int]) -> None:
    tensor = from_dense(np.ones((3, 4, 5)), Dense(3))
    assert converted(tensor, Batched(CSR)).nse == 60
    ell = from_dense(np.ones((3, 4, 5)), Batched(ELL(5)))
    assert ell.convert(CSF(3)).nse == 60
    assert compiled == []


def test_a_format_with_too_few_slots_says_for_which_entry(compiled: list[int]) -> None:
    tensor = from_dense(np.ones((3, 8)), CSR)
    with pytest.raises(ValueError, match="has no slot for entry 3 below one parent, at level"):
        tensor.convert(NV24)
    assert compiled == [24]


def test_asarray_converts_by_kernels(compiled: list[int]) -> None:
    matrix = sp.csr_array(np.eye(20))
    assert sj.asarray(matrix, format=CSC).nse == 20
    assert sj.asarray(np.eye(6), format=CSR).nse == 6
    assert compiled == [20, 36]


# ---- concatenation


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("fmt", [CSR, CSC, COO(2), DCSR, BSR(2, 2)], ids=str)
def test_concatenation_places_entries(fmt: Format, axis: int) -> None:
    joined = sj.sparse_jit(lambda A, B: np.concatenate([A, B], axis=axis), output=fmt)
    one, other = sampled((6, 6), 1), sampled((6, 6), 2)
    for formats_in in ((fmt, fmt), (DIA, CSC)):
        operands = [from_dense(x, f) for x, f in zip((one, other), formats_in, strict=True)]
        result = joined(*operands)
        assert_same(result, from_dense(np.concatenate([one, other], axis), result.format))
    if fmt == CSR:
        text = joined.lower(*(from_dense(x, CSR) for x in (one, other))).text("loops")
        assert "sort" not in text


@pytest.mark.parametrize("output", [BSR(2, 3), Format("(i, j) -> (i : compressed, j : dense)")],
                         ids=str)  # fmt: skip
def test_sums_into_blocks_meet(output: Format) -> None:
    """What is added up comes in no order inside a block, and has to meet all the same."""
    one, other = sampled((6, 6), 1), sampled((6, 6), 2)
    product = sj.sparse_jit(lambda A, B: sj.einsum("ki,kj->ij", A, B), output=output)
    result = product(from_dense(one, CSR), from_dense(other, CSR))
    np.testing.assert_array_equal(result.to_numpy(), one.T @ other)
