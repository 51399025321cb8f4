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

WAITING: dict[str, str] = {}  # id: reason

needs_cases = pytest.mark.skipif(
    not cases(), reason="the handed cases are not beside the repository"
)


@needs_cases
def test_every_case_is_listed_once() -> None:
    assert len(set(PASSING)) == len(PASSING)
    assert not set(PASSING) & set(WAITING)
    assert set(PASSING) | set(WAITING) == set(cases())


def test_the_list_does_not_shrink(record_property: Callable[[str, object], None]) -> None:
    assert len(PASSING) >= 212
    record_property("count of MLIR's integration tests", ("right", len(PASSING)))
    record_property("count of MLIR's integration tests", ("waiting", len(WAITING)))


@needs_cases
@pytest.mark.parametrize("case_id", PASSING)
def test_passing_case(case_id: str) -> None:
    check_case(cases()[case_id])


@needs_cases
def test_waiting_cases_do_not_pass() -> None:
    for case_id in WAITING:
        try:
            check_case(cases()[case_id])
        except Exception:  # whatever it is that does not work yet
            continue
        pytest.fail(f"{case_id} passes: move its id to passing.txt")


@needs_cases
@pytest.mark.parametrize("case_id", PASSING[::4])
def test_case_on_llvm(case_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "llvm")
    check_case(cases()[case_id], "cpu")


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
def test_case_on_numba(case_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "numba")
    check_case(cases()[case_id], "cpu")
