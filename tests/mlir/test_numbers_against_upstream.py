"""The numbers that upstream computes from our MLIR text are those that the functions mean."""

import numpy as np
import pytest

from sparsejit.affine import evaluate
from sparsejit.formats import COO, CSC, CSR, DCSR, Format
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.scalar import Arg
from sparsejit.ir.tensor import TensorFunc
from tests.support.buffer_program_parts import FLOAT, ZERO, plus, times
from tests.support.buffer_programs import PROGRAMS
from tests.support.mlir_execution import run_upstream
from tests.support.tensor_evaluator import Array, Evaluator

pytestmark = pytest.mark.mlir

EXECUTED = [
    "argument_not_assigned",
    "copies_that_stay_and_go",
    "element_moved_inside",
    "elementwise_in_place",
    "insert_and_return_both",
    "loop_carries_a_tensor",
    "loop_start_returned",
    "materialize_copies",
    "matrix_times_destination",
    "old_value_used_before",
    "outer_value_written_inside_a_loop",
    "overlapping_views",
    "result_is_an_assigned_argument",
    "reversed_in_place",
    "same_array_twice",
    "slice_changed_and_put_back",
    "slice_put_back_elsewhere",
    "slice_updated_whole_returned",
    "sparse_update_not_in_place",
    "where_stored",
]
"""Left out are what upstream does not lower, `sddmm` (this build of upstream aborts on the flags of
a workspace) and `loop_that_surely_runs` (a rewrite before its analysis makes upstream refuse)."""


def _arrays(func: TensorFunc, extents: tuple[int, ...]) -> dict[str, Array]:
    """One array a parameter, all of whose elements are stored."""
    generator = np.random.default_rng(7)
    return {
        param.name: np.asarray(
            generator.uniform(0.5, 2.0, [evaluate(extent, extents) for extent in param.type.shape])
        )
        for param in func.params
    }


def _check(func: TensorFunc, extents: tuple[int, ...], arrays: dict[str, Array]) -> None:
    meant = Evaluator(in_place=False, extents=dict(enumerate(extents)))
    expected = meant.run(func.ops, func.results, arrays)
    found = run_upstream(func, arrays, extents)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("name", EXECUTED)
def test_named_programs(name: str) -> None:
    func = PROGRAMS[name]()
    extents = (4, 3, 2)[: func.num_extents]
    _check(func, extents, _arrays(func, extents))


@pytest.mark.parametrize(
    "format_",
    [CSR, CSC, DCSR, COO(2), Format("(i, j) -> (i : dense, j : loose_compressed)")],
    ids=["csr", "csc", "dcsr", "coo", "loose"],
)
def test_matrix_times_vector(format_: Format) -> None:
    builder = TensorBuilder("spmv")
    A = builder.param("A", ("m", "n"), FLOAT, format_)
    x = builder.param("x", ("n",), FLOAT)
    y = builder.full(A.type.shape[:1], ZERO)
    product = plus(Arg(2), times(Arg(0), Arg(1)))
    func = builder.finish(builder.generic([(A, (0, 1)), (x, (1,))], (y, (0,)), product))
    arrays = _arrays(func, (5, 4))
    arrays["A"][np.random.default_rng(3).random((5, 4)) < 0.5] = 0.0
    _check(func, (5, 4), arrays)
