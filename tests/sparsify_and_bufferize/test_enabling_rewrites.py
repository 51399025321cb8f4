"""The enabling rewrites: they keep the meaning, and form neither more nor less than they should."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.affine import evaluate
from sparsejit.backends import BACKENDS
from sparsejit.errors import UnsupportedError
from sparsejit.formats import COO, CSC, CSF, CSR, DCSR, Format
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.contraction import chains_of
from sparsejit.ir.contraction_cost import Estimates
from sparsejit.ir.contraction_order import ContractionOrder, contraction_variant, variant_cost
from sparsejit.ir.facts import FactKind
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import Alloc, DenseResult, LoopFunc, SparseResult
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr, Select, Stored, Unary
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import DType
from sparsejit.reference import Masked, dense_masked, evaluate_reference
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from sparsejit.tensors import SparseTensor, from_dense, split_buffers
from tests.sparsify_and_bufferize.map_programs import draw_maps
from tests.sparsify_and_bufferize.product_programs import ProductProgram, draw_products

F64 = DType.FLOAT64
ZERO = Const(0.0, F64)
ONE = Const(1.0, F64)


# ---------------------------------------------------------------- running


def stored_mask(tensor: SparseTensor) -> np.ndarray[Any, Any]:
    ones = np.ones_like(tensor.values)
    made = SparseTensor(tensor.format, tensor.shape, tensor.positions, tensor.coordinates, ones)
    return np.asarray(made.to_numpy() != 0)


def operands_of(program: ProductProgram) -> tuple[list[Any], list[Masked]]:
    """Return what the kernel takes and what the reference takes."""
    args: list[Any] = list(program.extents)
    masked: list[Masked] = []
    for param, array in zip(program.func.params, program.arrays, strict=True):
        if param.type.is_dense:
            args.append(array)
            masked.append(dense_masked(array))
            continue
        tensor = from_dense(array, param.type.format.with_widths(64, 64))
        for pair in zip(tensor.positions, tensor.coordinates, strict=True):
            args.extend(buffer for buffer in pair if buffer is not None)
        args.append(tensor.values)
        masked.append(Masked(array, stored_mask(tensor)))
    return args, masked


def run(loops: LoopFunc, args: list[Any], extents: Sequence[int]) -> Masked:
    """Run on the interpreter; the values of the one result, and which are stored."""
    backend = BACKENDS["interpreter"]
    flat: list[Any] = list(backend.load(backend.emit(loops))(args))
    (result,) = loops.results
    if isinstance(result, DenseResult):
        return dense_masked(flat[0])
    assert isinstance(result, SparseResult)
    shape = tuple(evaluate(extent, extents) for extent in result.shape)
    storage, values = split_buffers(result.format, shape, flat)
    tensor = SparseTensor(
        result.format, shape, storage.positions, storage.coordinates, values, result.fill.value
    )
    return Masked(tensor.to_numpy(), stored_mask(tensor))


def check(program: ProductProgram, orders: tuple[ContractionOrder, ...] | None) -> list[str]:
    """Compare the lowered program with the reference; return what was rewritten."""
    loops = sparsify_and_bufferize(program.func, StageOptions(contractions=orders))
    args, masked = operands_of(program)
    (want,) = evaluate_reference(program.func, masked, program.extents)
    got = run(loops, args, program.extents)
    np.testing.assert_allclose(got.values, want.values, rtol=1e-9, atol=1e-9)
    if 0 not in program.extents:  # an empty sum has no entries, where a dense zero is one
        np.testing.assert_array_equal(got.stored, want.stored)
    return [fact.text for fact in loops.facts if fact.kind is FactKind.REWRITE]


def random_estimates(func: TensorFunc, rng: random.Random) -> Estimates:
    extents = tuple(rng.choice([1, 10, 1000, 10**6]) for _ in range(func.num_extents))
    return Estimates(extents, tuple(rng.choice([1, 100, 10**5, 10**8]) for _ in func.params))


def random_tree(leaves: Sequence[int], rng: random.Random) -> Any:
    if len(leaves) == 1:
        return leaves[0]
    shuffled = rng.sample(list(leaves), len(leaves))
    cuts = sorted(rng.sample(range(1, len(leaves)), rng.randint(1, min(2, len(leaves) - 1))))
    bounds = [0, *cuts, len(leaves)]
    return tuple(random_tree(shuffled[a:b], rng) for a, b in pairwise(bounds))


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_random_products_keep_their_meaning(first: int) -> None:
    for seed in range(first, first + 10):
        rng = random.Random(seed)
        program = draw_products(rng)
        check(program, None)
        check(program, contraction_variant(program.func, random_estimates(program.func, rng)))
        orders = tuple(
            ContractionOrder(chain.root.result.name, random_tree(range(len(chain.leaves)), rng))
            for chain in chains_of(program.func)
            if chain.root.init.type.is_dense
        )
        check(program, orders)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_maps_keep_their_meaning(first: int) -> None:
    fused = 0
    for seed in range(first, first + 20):
        fused += len(check(draw_maps(random.Random(seed)), None))
    assert fused > 2


def test_the_random_products_are_rewritten_often() -> None:
    made: Counter[str] = Counter()
    for seed in range(60):
        rng = random.Random(seed)
        program = draw_products(rng)
        loops = sparsify_and_bufferize(program.func)
        for fact in loops.facts:
            if fact.kind is FactKind.REWRITE:
                made["order" if "is computed as" in fact.text else "sample"] += 1
    assert made["order"] > 10
    assert made["sample"] > 5


# ---------------------------------------------------------------- named programs


def _product(*factors: int) -> ScalarExpr:
    term: ScalarExpr = Arg(factors[0])
    for factor in factors[1:]:
        term = Binary(BinaryOp.MUL, term, Arg(factor))
    return term


def _sum(
    builder: TensorBuilder, accesses: Sequence[tuple[Value, tuple[int, ...]]], out: tuple[int, ...]
) -> Value:
    """Return the dense sum of the product of some operands."""
    shape = {loop: value.type.shape[d] for value, at in accesses for d, loop in enumerate(at)}
    init = builder.full([shape[loop] for loop in out], ZERO)
    count = len(accesses)
    body = Binary(BinaryOp.ADD, Arg(count), _product(*range(count)))
    return builder.generic(accesses, (init, out), body)


def _sparse_sum(builder: TensorBuilder, A: Value, B: Value, fmt: Format) -> Value:
    kind = builder.tensor_type((A.type.shape[0], B.type.shape[1]), F64, fmt)
    body = Binary(BinaryOp.ADD, Arg(2), _product(0, 1))
    return builder.generic([(A, (0, 2)), (B, (2, 1))], (builder.empty(kind), (0, 1)), body)


def _square(builder: TensorBuilder, count: int, fmt: Format) -> list[Value]:
    return [builder.param(name, ("n", "n"), F64, fmt) for name in "ABCD"[:count]]


def matrix_vector_chain() -> TensorFunc:
    """A @ B @ x."""
    builder = TensorBuilder("chain")
    A, B = _square(builder, 2, CSR)
    x = builder.param("x", ("n",), F64)
    C = _sparse_sum(builder, A, B, CSR)
    return builder.finish(_sum(builder, [(C, (0, 1)), (x, (1,))], (0,)))


def four_to_a_vector() -> TensorFunc:
    """einsum("ij,jk,kl,l->i", A, B, C, x)."""
    builder = TensorBuilder("four")
    A, B, C = _square(builder, 3, CSR)
    x = builder.param("x", ("n",), F64)
    operands = [(A, (0, 1)), (B, (1, 2)), (C, (2, 3)), (x, (3,))]
    return builder.finish(_sum(builder, operands, (0,)))


def mttkrp() -> TensorFunc:
    """einsum("ijk,jr,kr->ir", T, B, C)."""
    builder = TensorBuilder("mttkrp")
    T = builder.param("T", ("i", "j", "k"), F64, CSF(3))
    B = builder.param("B", ("j", "r"), F64)
    C = builder.param("C", ("k", "r"), F64)
    return builder.finish(_sum(builder, [(T, (0, 2, 3)), (B, (2, 1)), (C, (3, 1))], (0, 1)))


def sampled_einsum() -> TensorFunc:
    """einsum("ij,ik,kj->ij", S, A, B)."""
    builder = TensorBuilder("sddmm")
    S = builder.param("S", ("m", "n"), F64, CSR)
    A = builder.param("A", ("m", "k"), F64)
    B = builder.param("B", ("k", "n"), F64)
    body = Binary(BinaryOp.ADD, Arg(3), _product(0, 1, 2))
    operands = [(S, (0, 1)), (A, (0, 2)), (B, (2, 1))]
    return builder.finish(builder.generic(operands, (builder.empty(S.type), (0, 1)), body))


def _scores(fmt: Format, body: ScalarExpr, *, transposed: bool = False) -> TensorFunc:
    """``body`` of S and A @ B (or its transpose) at the entries of S."""
    builder = TensorBuilder("scores")
    S = builder.param("S", ("m", "n"), F64, fmt)
    A = builder.param("A", ("n", "k") if transposed else ("m", "k"), F64)
    B = builder.param("B", ("k", "m") if transposed else ("k", "n"), F64)
    E = _sum(builder, [(A, (0, 2)), (B, (2, 1))], (0, 1))
    at = (1, 0) if transposed else (0, 1)
    return builder.finish(
        builder.generic([(S, (0, 1)), (E, at)], (builder.empty(S.type), (0, 1)), body)
    )


SCALED = Select(Stored(0), Binary(BinaryOp.DIV, Arg(1), Const(8.0, F64)), ZERO)
EXPONENTIAL = Select(Stored(0), Unary(UnaryOp.EXP, Arg(1)), ZERO)


def heads() -> TensorFunc:
    """Scores of several heads at the entries of S: exp of the sum over k of Q[i,h,k] K[j,h,k]."""
    builder = TensorBuilder("heads")
    S = builder.param("S", ("m", "n"), F64, CSR)
    Q = builder.param("Q", ("m", "h", "k"), F64)
    K = builder.param("K", ("n", "h", "k"), F64)
    E = _sum(builder, [(Q, (0, 2, 3)), (K, (1, 2, 3))], (0, 1, 2))
    fmt = Format("(i, j, h) -> (i : dense, j : compressed, h : dense)")
    kind = builder.tensor_type((*S.type.shape, Q.type.shape[1]), F64, fmt)
    operands = [(S, (0, 1)), (E, (0, 1, 2))]
    return builder.finish(builder.generic(operands, (builder.empty(kind), (0, 1, 2)), EXPONENTIAL))


def masked_product() -> TensorFunc:
    """where_stored(A, A @ A), all sparse."""
    builder = TensorBuilder("triangles")
    (A,) = _square(builder, 1, CSR)
    C = _sparse_sum(builder, A, A, CSR)
    body = Select(Stored(0), Arg(1), ZERO)
    return builder.finish(
        builder.generic([(A, (0, 1)), (C, (0, 1))], (builder.empty(A.type), (0, 1)), body)
    )


def _in_place(body: ScalarExpr) -> TensorFunc:
    builder = TensorBuilder("update")
    S = builder.param("S", ("m", "n"), F64, CSR)
    A = builder.param("A", ("m", "k"), F64)
    B = builder.param("B", ("k", "n"), F64)
    E = _sum(builder, [(A, (0, 2)), (B, (2, 1))], (0, 1))
    made = builder.generic([(E, (0, 1))], (S, (0, 1)), Select(Stored(1), body, Arg(1)))
    return builder.finish(builder.materialize(made, S))


def two_samples() -> TensorFunc:
    """One product, sampled by two matrices: it is summed twice, and never formed."""
    builder = TensorBuilder("twice")
    S = builder.param("S", ("m", "n"), F64, CSR)
    T = builder.param("T", ("m", "n"), F64, DCSR)
    A = builder.param("A", ("m", "k"), F64)
    B = builder.param("B", ("k", "n"), F64)
    E = _sum(builder, [(A, (0, 2)), (B, (2, 1))], (0, 1))
    made = [
        builder.generic(
            [(value, (0, 1)), (E, (0, 1))], (builder.empty(value.type), (0, 1)), _product(0, 1)
        )
        for value in (S, T)
    ]
    return builder.finish(*made)


def _map(builder: TensorBuilder, value: Value, body: ScalarExpr) -> Value:
    at = tuple(range(value.type.rank))
    return builder.generic([(value, at)], (builder.empty(value.type), at), body)


def elementwise_chain() -> TensorFunc:
    """exp(x) + 1, then doubled, each an operation of its own."""
    builder = TensorBuilder("maps")
    x = builder.param("x", ("n",), F64)
    y = _map(builder, x, Binary(BinaryOp.ADD, Unary(UnaryOp.EXP, Arg(0)), ONE))
    return builder.finish(_map(builder, y, Binary(BinaryOp.MUL, Arg(0), Const(2.0, F64))))


def scaled_twice() -> TensorFunc:
    """A sparse matrix scaled, negated, and summed by rows."""
    builder = TensorBuilder("scaled")
    (A,) = _square(builder, 1, CSR)
    B = _map(builder, A, Binary(BinaryOp.MUL, Arg(0), Const(2.0, F64)))
    C = _map(builder, B, Unary(UnaryOp.NEG, Arg(0)))
    return builder.finish(_sum(builder, [(C, (0, 1))], (0,)))


def epilogue() -> TensorFunc:
    """max(A @ x + b, 0): the product is not recomputed, nor is what is read in its loops."""
    builder = TensorBuilder("layer")
    (A,) = _square(builder, 1, CSR)
    x = builder.param("x", ("n",), F64)
    b = builder.param("b", ("n",), F64)
    y = _map(builder, x, Unary(UnaryOp.EXP, Arg(0)))
    z = _sum(builder, [(A, (0, 1)), (y, (1,))], (0,))
    kind = builder.empty(b.type)
    total = Binary(BinaryOp.ADD, Arg(0), Arg(1))
    w = builder.generic([(z, (0,)), (b, (0,))], (kind, (0,)), total)
    return builder.finish(_map(builder, w, Binary(BinaryOp.MAX, Arg(0), ZERO)))


PROGRAMS: dict[str, Callable[[], TensorFunc]] = {
    "matrix_vector_chain": matrix_vector_chain,
    "four_to_a_vector": four_to_a_vector,
    "mttkrp": mttkrp,
    "sampled_einsum": sampled_einsum,
    "scores_scaled": lambda: _scores(CSR, SCALED),
    "scores_exponential": lambda: _scores(COO(2), EXPONENTIAL),
    "scores_transposed": lambda: _scores(CSC, EXPONENTIAL, transposed=True),
    "heads": heads,
    "masked_product": masked_product,
    "in_place_sum": lambda: _in_place(Binary(BinaryOp.ADD, Arg(1), Arg(0))),
    "in_place_function": lambda: _in_place(Unary(UnaryOp.TANH, Arg(0))),
    "two_samples": two_samples,
    "elementwise_chain": elementwise_chain,
    "scaled_twice": scaled_twice,
    "epilogue": epilogue,
}


def rewritten(func: TensorFunc) -> tuple[str, LoopFunc]:
    texts: dict[str, str] = {}
    loops = sparsify_and_bufferize(func, observe=texts.__setitem__)
    return texts["rewritten"], loops


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_rewritten_programs(name: str, file_regression: FileRegressionFixture) -> None:
    text, loops = rewritten(PROGRAMS[name]())
    facts = [f"{f.subject}: {f.text}" for f in loops.facts if f.kind is FactKind.REWRITE]
    file_regression.check(text + "\n".join(["rewrites", *facts]) + "\n", extension=".txt")


NEVER_FORMED = ["scores_scaled", "scores_exponential", "scores_transposed", "in_place_sum"]
NEVER_FORMED += ["in_place_function", "two_samples", "sampled_einsum"]


@pytest.mark.parametrize("name", NEVER_FORMED)
def test_no_dense_array_of_the_pattern_is_allocated(name: str) -> None:
    _, loops = rewritten(PROGRAMS[name]())
    allocated = [s.memref for s in all_statements(loops.body) if isinstance(s, Alloc)]
    assert [memref for memref in allocated if memref.rank > 1] == []


def test_a_chain_never_forms_the_product_of_its_matrices() -> None:
    text, _ = rewritten(matrix_vector_chain())
    assert "f64[n, n]" not in text.split("->", 1)[1]


def test_what_must_stay_fused_is_left_alone() -> None:
    rng = random.Random(0)
    for func in (mttkrp(), sampled_einsum()):
        for _ in range(50):
            numbers = Estimates(
                tuple(rng.choice([30, 1000, 10**5]) for _ in range(func.num_extents)),
                tuple(rng.choice([10**3, 10**5, 10**6]) for _ in func.params),
            )
            assert contraction_variant(func, numbers) == ()


def test_recomputation_in_reductions_is_avoided() -> None:
    text, _ = rewritten(epilogue())
    assert text.count("exp(") == 1
    assert "reduction) ins(%A[i, j], %0[j])" in text or "exp(in0) }" in text


# ---------------------------------------------------------------- choosing


def dense_chain(count: int) -> TensorFunc:
    builder = TensorBuilder("dense_chain")
    names = [f"e{i}" for i in range(count + 1)]
    made = builder.param("M0", names[:2], F64)
    for k in range(1, count):
        factor = builder.param(f"M{k}", names[k : k + 2], F64)
        made = _sum(builder, [(made, (0, 2)), (factor, (2, 1))], (0, 1))
    return builder.finish(made)


def multiplications(tree: Any, dims: Sequence[int]) -> tuple[int, int, int]:
    """Return the multiplications of an order of a dense chain, and its first and last dimension."""
    if isinstance(tree, int):
        return 0, dims[tree], dims[tree + 1]
    left, right = (multiplications(part, dims) for part in tree)
    return left[0] + right[0] + left[1] * left[2] * right[2], left[1], right[2]


def least_multiplications(dims: Sequence[int]) -> int:
    """The textbook's dynamic program."""
    count = len(dims) - 1
    best = {(i, i + 1): 0 for i in range(count)}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length
            best[i, j] = min(
                best[i, k] + best[k, j] + dims[i] * dims[k] * dims[j] for k in range(i + 1, j)
            )
    return best[0, count]


@pytest.mark.parametrize("count", [3, 4, 5])
def test_dense_chains_are_ordered_as_in_the_textbook(count: int) -> None:
    func = dense_chain(count)
    (chain,) = chains_of(func)
    rng = random.Random(count)
    for _ in range(30):
        dims = [2 ** rng.randint(0, 10) for _ in range(count + 1)]
        stored = tuple(a * b for a, b in pairwise(dims))
        orders = contraction_variant(func, Estimates(tuple(dims), stored))
        tree = orders[0].tree if orders else chain.written
        assert multiplications(tree, dims)[0] <= 1.3 * least_multiplications(dims)


def test_the_cost_of_a_variant_is_least_for_the_chosen_one() -> None:
    func = four_to_a_vector()
    numbers = Estimates((1 << 12,), (1 << 15, 1 << 15, 1 << 15, 1 << 12))
    chosen = contraction_variant(func, numbers)
    assert variant_cost(func, chosen, numbers) < variant_cost(func, (), numbers) / 10


def test_numbers_of_one_size_class_give_one_answer() -> None:
    func = dense_chain(4)
    first = Estimates((100, 10, 1000, 10, 100), (1000, 10000, 10000, 1000))
    second = Estimates((110, 9, 1100, 9, 110), (990, 9900, 9900, 990))
    assert first.bucketed == second.bucketed
    assert contraction_variant(func, first) == contraction_variant(func, second)


def test_a_sum_that_something_else_reads_is_no_part_of_a_chain() -> None:
    builder = TensorBuilder("shared")
    A, B = _square(builder, 2, CSR)
    x = builder.param("x", ("n",), F64)
    C = _sparse_sum(builder, A, B, CSR)
    y = _sum(builder, [(C, (0, 1)), (x, (1,))], (0,))
    assert chains_of(builder.finish(y, C)) == ()


def test_reads_do_not_move_past_a_write() -> None:
    builder = TensorBuilder("late")
    A, B = _square(builder, 2, CSR)
    x = builder.param("x", ("n",), F64)
    v = builder.param("v", ("n",), F64)
    y = _sum(builder, [(B, (0, 1)), (v, (1,))], (0,))
    z = _sum(builder, [(A, (0, 1)), (y, (1,))], (0,))
    changed = builder.generic([], (v, (0,)), ONE)
    final = builder.materialize(changed, v)
    w = _sum(builder, [(A, (0, 1)), (z, (1,)), (x, (0,))], (0,))
    func = builder.finish(w, final)
    leaves = {
        chain.root.result.name: [leaf.value.name for leaf in chain.leaves]
        for chain in chains_of(func)
    }
    assert leaves == {z.name: ["A", "B", "v"], w.name: ["A", z.name, "x"]}


def test_an_unknown_order_is_as_written() -> None:
    func = matrix_vector_chain()
    loops = sparsify_and_bufferize(func, StageOptions(contractions=()))
    assert [fact for fact in loops.facts if fact.kind is FactKind.REWRITE] == []


def test_rewriting_refuses_nothing_that_could_be_lowered() -> None:
    for seed in range(40):
        program = draw_products(random.Random(seed))
        try:
            sparsify_and_bufferize(program.func, StageOptions(contractions=()))
        except UnsupportedError:
            continue
        sparsify_and_bufferize(program.func)
