"""SpMV and SpMM as cuSPARSE gets them: descriptors, strides, algorithms, and what they compute.

The library's functions are played by a stand-in that reads memory at the addresses it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from numpy.testing import assert_allclose

from sparsejit.backends.cusparse import _abi, _descriptors, _operands, _products, library_codes
from sparsejit.errors import VerificationError
from sparsejit.ir.device_code import LibraryCode, LibraryRefusal
from sparsejit.ir.device_statements import LibraryCall, SparseLayout
from sparsejit.ir.loop_walk import library_memrefs
from sparsejit.ir.types import DType
from tests.backends.library_stand_in import StandIn, StandInRuntime
from tests.backends.test_library_calls import (
    Arrays,
    broken,
    call_arguments,
    lowered_call,
    run_loops,
)
from tests.sparsify_and_bufferize.library_programs import ACCEPTED

BATCHES = sorted(name for name in ACCEPTED if name.startswith("batch"))
SINGLE = (
    *("spmv csr", "spmv coo", "spmv of a transpose", "spmv update", "spmv downdate"),
    *("spmm csr", "spmm coo", "spmm of a transpose", "spmm from the right", "spmm into columns"),
    *("spmm of rows", "vectors of one matrix are columns", "spmv scaled update"),
    *("spmv update scaled by", "spmv update of zeros", "spmv update of nothing"),
    *("spmv update by itself", "spmv update read between"),
)


def computed(
    call: LibraryCall, known: Any, arrays: Arrays, version: tuple[int, int] = (12, 6)
) -> StandIn | LibraryRefusal:
    """Call the stand-in as a device calls the library; results are in ``arrays`` afterwards."""
    code = library_codes()(call)
    assert isinstance(code, LibraryCode)
    library = StandIn(list(arrays.values()), version)
    runtime = StandInRuntime(library)
    state = code.describe(runtime, call_arguments(call, known, arrays))
    if isinstance(state, LibraryRefusal):
        assert library.made == {}
        return state
    for phase in code.phases:
        sizes = phase.sizes(runtime, state)
        assert not isinstance(sizes, LibraryRefusal)
        phase.run(runtime, state, [0 for _ in phase.workspaces], {})
    code.destroy(runtime, state)
    assert library.made == {}
    return library


def check(name: str) -> None:
    call, known, arrays = lowered_call(name)
    expected = run_loops(call, known, arrays)
    copies = {key: array.copy(order="K") for key, array in arrays.items()}
    if "b0" in copies:  # a new result: whatever was in its memory
        copies["b0"][...] = np.nan
    done = computed(call, known, copies)
    assert isinstance(done, StandIn)
    assert len(done.algorithms) == 1
    for key, array in copies.items():
        assert_allclose(array, expected.get(key, arrays[key]), rtol=1e-6, err_msg=key)


@pytest.mark.parametrize("name", [*BATCHES, *SINGLE])
def test_the_library_computes_what_the_loops_compute(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", ["batch csr", "batch coo", "batch of dense matrices"])
def test_matrices_with_gaps_and_in_other_orders(name: str) -> None:
    call, known, arrays = lowered_call(name)
    expected = run_loops(call, known, arrays)
    factor, result = library_memrefs(call.inputs[1])[0].name, library_memrefs(call.output)[0].name
    wide = np.zeros((4, 7, 5))
    wide[::2, :6, :3] = arrays[factor]
    columns = np.swapaxes(np.swapaxes(arrays[result], 1, 2).copy(), 1, 2)
    arrays |= {factor: wide[::2, :6, :3], result: columns}
    assert arrays[factor].strides == (560, 40, 8)
    assert isinstance(computed(call, known, arrays), StandIn)
    assert_allclose(arrays[result], expected[result])


@pytest.mark.parametrize("name", ["batch csr", "batch coo", "batch of dense matrices"])
def test_one_batch(name: str) -> None:
    """The strides of an axis of one element may be anything."""
    call, known, arrays = lowered_call(name)
    is_shared = "dense" in name
    known = dict(known) | {"d2" if is_shared else "d0": 1}
    stored = 0 if is_shared else arrays["A_vals"].size // 2
    for key, array in arrays.items():
        first = array[:stored] if key == "A_vals" and stored else array
        arrays[key] = first[:1] if array.ndim > 1 else first
    expected = run_loops(call, known, arrays)
    for key, array in arrays.items():
        if array.ndim == 3:
            arrays[key] = as_strided(array.copy(), strides=(8, *array.strides[1:]))
    assert isinstance(computed(call, known, arrays), StandIn)
    (result,) = expected
    assert_allclose(arrays[result], expected[result])


def test_algorithms_that_take_batches() -> None:
    for name, algorithm in (("batch csr", 6), ("batch coo", 5), ("spmm csr", 0)):
        call, known, arrays = lowered_call(name)
        done = computed(call, known, arrays)
        assert isinstance(done, StandIn)
        assert done.algorithms == [algorithm]


@pytest.mark.parametrize("name", ["batch of vectors", "batch with one vector"])
def test_batches_of_single_columns_need_a_version_that_is_right(name: str) -> None:
    """Earlier versions run SpMV then, which has no batches."""
    call, known, arrays = lowered_call(name)
    refused = computed(call, known, arrays, version=(12, 5))
    assert refused == LibraryRefusal("this cuSPARSE may be wrong for a batch of single columns")
    assert isinstance(computed(*lowered_call("batch csr"), version=(12, 5)), StandIn)


def test_batches_are_not_the_same_in_every_run() -> None:
    call, _, _ = lowered_call("batch coo")
    refused = library_codes(deterministic=True)(call)
    assert isinstance(refused, LibraryRefusal)
    assert "a batch of SpMM of COO may differ from run to run" in refused.reason


# ---------------------------------------------------------------- rules


def test_an_output_times_0_is_left_to_the_loops() -> None:
    """The library reads nothing of it then, but nan times 0 is nan."""
    call, known, arrays = lowered_call("spmv update scaled by")
    assert isinstance(computed(call, known, arrays), StandIn)
    refused = computed(call, {**known, "b": np.float64(0)}, arrays)
    assert refused == LibraryRefusal("the output is multiplied by 0")


def test_every_rule_of_batches_can_break() -> None:
    assert broken("batch csr", x={"shape": (3, 6, 3)}) == ["batches of 2 and 3"]
    many = {"shape": (65536, 4, 3)}
    found = broken("batch of dense matrices", x={"shape": (65536, 6, 3)}, b0=many)
    assert found == ["more than 65535 batches"]
    near = broken("batch csr", x={"strides": (17, 3, 1)})
    assert near == ["matrices of a batch are 17 elements apart"]
    inside = broken("batch csr", b0={"strides": (3, 6, 1)})
    assert inside == ["matrices of a batch are 3 elements apart"]
    same = broken("batch csr", b0={"strides": (0, 3, 1)})
    assert same == ["matrices of a batch are 0 elements apart"]
    assert broken("batch csr", x={"strides": (0, 3, 1)}) == []  # an input may be the same for all
    assert broken("batch csr", x={"strides": (40, 3, 1)}) == []
    gaps = broken("batch csr", A_crd2={"strides": (7, 1)})
    assert gaps == ["the entries of its batches do not lie behind each other"]
    none = broken("batch of dense matrices", x={"shape": (0, 6, 3)}, b0={"shape": (0, 4, 3)})
    assert none == ["an operand has no elements"] * 3
    wide = {"dtype": DType.INT64}
    assert broken("batch csr", A_pos2=wide) == ["indices of int32 and int64"]


def test_batches_with_unused_slots_are_noticed_where_they_are_computed() -> None:
    call, known, arrays = lowered_call("batch csr")
    arrays["A_pos2"] = arrays["A_pos2"].copy()
    arrays["A_pos2"][1, -1] -= 1
    code = library_codes()(call)
    assert isinstance(code, LibraryCode)
    with pytest.raises(VerificationError, match="batches are full"):
        code.replay(arrays, call_arguments(call, known, arrays))


# ---------------------------------------------------------------- seeded faults


def _strides(change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Any:
    right: Any = _operands.Stored.__dict__["batch_strides"]
    return property(lambda self: change(right.fget(self)))


def _all_stored(self: Any) -> int:
    return int(self.values.shape[0])


def _without(function: str) -> Callable[..., bool]:
    def call(library: Any, name: str, *arguments: object, may_refuse: bool = False) -> bool:
        return name == function or _CALL(library, name, *arguments, may_refuse=may_refuse)

    return call


def _changed(**fields: Any) -> Callable[..., Any]:
    def of_batch(*arguments: Any) -> Any:
        return replace(_OF_BATCH(*arguments), **fields)

    return of_batch


_CALL, _OF_BATCH = _abi.call, _operands._of_batch
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "values have no stride": (
        _operands.Stored,
        "batch_strides",
        _strides(lambda s: (*s[:-1], 0)),
    ),
    "positions have no stride": (
        _operands.Stored,
        "batch_strides",
        _strides(lambda s: (0, *s[1:])),
    ),
    "strides change places": (_operands.Stored, "batch_strides", _strides(lambda s: s[::-1])),
    "strides count bytes": (
        _operands.Stored,
        "batch_strides",
        _strides(lambda s: tuple(4 * stride for stride in s)),
    ),
    "all entries are one matrix": (_operands.Stored, "num_stored", property(_all_stored)),
    "rows have no batch": (_descriptors, "call", _without("cusparseCsrSetStridedBatch")),
    "entries have no batch": (_descriptors, "call", _without("cusparseCooSetStridedBatch")),
    "dense matrices have no batch": (
        _descriptors,
        "call",
        _without("cusparseDnMatSetStridedBatch"),
    ),
    "one batch": (_operands, "_of_batch", _changed(batches=1)),
    "dense matrices are the same": (_operands, "_of_batch", _changed(batch_stride=0)),
    "an algorithm without batches": (
        _products,
        "BATCH_ALGORITHMS",
        {SparseLayout.CSR: 12, SparseLayout.COO: 3},
    ),
    "single columns whatever the version": (
        _descriptors,
        "takes_columns",
        lambda library: True,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_seeded_faults_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, name, wrong = FAULTS[fault]
    monkeypatch.setattr(holder, name, wrong)
    for case in BATCHES:
        try:
            check(case)
            if "vector" in case:
                test_batches_of_single_columns_need_a_version_that_is_right(case)
        except Exception:  # a wrong answer, a refusal, or an element outside
            return
    pytest.fail(f"everything looks right although: {fault}")
