"""The cases distilled from MLIR's integration tests: elements and storage, as upstream has them.

``passing.txt`` lists the cases that pass; it only grows. Every other case stands in ``WAITING``
with its reason, and a case there that passes fails the test: its id moves to the list. The file of
cases lies beside the repository; without it everything here is skipped.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.judging import check_case
from tests.cases.loading import cases

PASSING = tuple(Path(__file__).with_name("passing.txt").read_text().split())

CONCATENATE = "np.concatenate of traced arrays is not built"
RESHAPE = "reshape of traced arrays is not built"

WAITING = {
    **{
        f"concatenate_dim_{where}__{operands}_{result}": CONCATENATE
        for where in ("0", "0_permute", "1")
        for operands in ("sparse", "mix")
        for result in ("sparse", "dense")
    },
    **{
        f"sparse_{name}_{result}": RESHAPE
        for name in (
            "collapse_shape__to_vec",
            "collapse_shape__6x10",
            "expand_shape__vec_to_3x4",
            "expand_shape__3x2x2",
        )
        for result in ("sparse", "dense")
    },
    "sparse_reductions__or_i32": "np.bitwise_or.reduce is not built",
    "sparse_reductions__xor_i32": "np.bitwise_xor.reduce is not built",
    "sparse_binary__vector_setdiff": "entries where a region is empty are stored as zeros",
    "sparse_reduce_custom_sum__red0": "a reduction of an empty unary is not built",
}

needs_cases = pytest.mark.skipif(
    not cases(), reason="the handed cases are not beside the repository"
)


@needs_cases
def test_every_case_is_listed_once() -> None:
    assert len(set(PASSING)) == len(PASSING)
    assert not set(PASSING) & set(WAITING)
    assert set(PASSING) | set(WAITING) == set(cases())


def test_the_list_does_not_shrink(record_property: Callable[[str, object], None]) -> None:
    assert len(PASSING) >= 188
    record_property("count of MLIR's integration tests", ("right", len(PASSING)))
    record_property("count of MLIR's integration tests", ("waiting", len(WAITING)))


@needs_cases
@pytest.mark.parametrize("case_id", PASSING)
def test_passing_case(case_id: str) -> None:
    check_case(cases()[case_id])


@needs_cases
@pytest.mark.parametrize("case_id", sorted(WAITING))
def test_waiting_case(case_id: str) -> None:
    try:
        check_case(cases()[case_id])
    except Exception:  # whatever it is that does not work yet
        return
    pytest.fail("passes: move its id to passing.txt")


SLICE_ON_NUMBA = (
    "sparse_matmul__sparse_sparse_CSR",
    "sparse_coo_test__coo_coo_out_coo",
    "block__scale_bsr",
    "sparse_transpose__t",
    "sparse_binary__triangular",
    "GPU_CUDA_sparse-sddmm-lib__bsr",
    "sparse_complex_ops__tanh",
    "sparse_sum_bf16__sum",
    "sparse_reduce_custom__csr_csc",
)


@needs_cases
@pytest.mark.parametrize("case_id", SLICE_ON_NUMBA)
def test_case_on_numba(case_id: str) -> None:
    check_case(cases()[case_id], "cpu")
