"""Run a handed case and judge its result: elements, and storage level by level.

In: a ``Case``. Out: nothing; a difference is an ``AssertionError``, what is not built an
``UnsupportedError``.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import sparsejit as sj
from tests.cases.formulas import function_of
from tests.cases.loading import Case, Expected, sparse_tensor

__all__ = ["check_case"]


def check_case(case: Case, target: str = "interpreter") -> None:
    """Run the case and compare."""
    match case.kind:
        case "einsum" | "concatenate" | "reshape":
            result = _kernel(case, target)
        case "convert":
            result = _converted(case)
        case "insert":
            result = _inserted(case)
        case "alloc":
            result = _allocated(case, target)
        case "assemble":
            result = _assembled(case)
        case other:
            raise AssertionError(f"a case of kind {other}")
    _check(result, case)


def _kernel(case: Case, target: str) -> Any:
    function = function_of(case.id, case.formula)
    assert function is not None, f"no function for {case.formula}"
    in_place = "(in place)" in case.formula or case.formula.startswith("S(i,j) +=")
    output = None if in_place else _requested(case)
    compiled = sj.sparse_jit(function, target=target, output=output)
    # Cases are loaded once for all targets, and some functions write their arguments.
    values = [copy.deepcopy(operand.value) for operand in case.operands]
    result = compiled(*values)
    assert not in_place or result is values[0]
    return result


def _requested(case: Case) -> sj.Format | None:
    """Return the format to ask for; a scalar has none."""
    rank = len(case.expected.shape)
    if case.output is None:
        return sj.Dense(rank) if rank else None
    return case.output


def _converted(case: Case) -> Any:
    (operand,) = case.operands
    if operand.format is None:
        assert case.output is not None
        return sparse_tensor(operand.dense, case.output, operand.entries)
    if case.output is None:
        return operand.value.to_numpy()
    return operand.value.convert(case.output)


def _inserted(case: Case) -> Any:
    (operand,) = case.operands
    assert case.output is not None
    if operand.entries is not None:
        coords, values = operand.entries
    else:
        coords = np.array(np.nonzero(operand.dense))
        values = operand.dense[tuple(coords)]
    return sj.from_coo(coords, values, operand.dense.shape, format=case.output)


def _allocated(case: Case, target: str) -> Any:
    shape = case.expected.shape
    assert case.output is not None
    if case.id.endswith("zeros"):
        none = np.zeros((1, 0), np.int64)
        return sj.from_coo(none, np.zeros(0, case.dtype), shape, format=case.output)

    def ones() -> Any:
        (i,) = sj.indices("i")
        x = sj.output(shape=shape, dtype=case.dtype)
        x[i] = 1
        return x

    return sj.sparse_jit(ones, target=target, output=case.output)()


def _assembled(case: Case) -> Any:
    """Assemble from level buffers; what is expected are the values, given back."""
    if case.id == "sparse_pack__csr_assemble":
        (operand,) = case.operands
        tensor = sj.SparseTensor(
            sj.CSR, (2, 2), (None, np.array([0, 1, 3])), (None, np.array([1, 0, 1])),
            np.array([1.0, 2.0, 3.0]),
        )  # fmt: skip
        np.testing.assert_array_equal(tensor.to_numpy(), operand.dense)
        return tensor.values
    fmt = sj.Format(
        "(d0, d1, d2) -> (d0 : dense, d1 : loose_compressed(nonunique), d2 : singleton)"
    )
    bounds = np.array([[0, 3], [3, 5]])
    at = np.array([[1, 2], [5, 6], [7, 8], [2, 3], [4, 2], [0, 0]])
    values = np.array([1.0, 2, 3, 4, 5, 0])
    tensor = sj.SparseTensor(fmt, (2, 10, 10), (None, bounds, None), (None, at, None), values)
    dense = np.zeros((2, 10, 10))
    dense[[0, 0, 0, 1, 1], at[:5, 0], at[:5, 1]] = values[:5]
    np.testing.assert_array_equal(tensor.to_numpy(), dense)
    return tensor.values[:5]


# ---------------------------------------------------------------- judging


def _close(mine: Any, theirs: Any, tolerance: float, what: str) -> None:
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.shape == theirs.shape, f"{what}: shape {mine.shape}, expected {theirs.shape}"
    kind: Any = np.complex128 if theirs.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        mine.astype(kind), theirs.astype(kind), rtol=tolerance, atol=tolerance, err_msg=what
    )


def _check(result: Any, case: Case) -> None:
    expected = case.expected
    sparse = isinstance(result, sj.SparseTensor)
    if sparse and result.fill_value != 0:
        result = sj.asarray(result, fill_value=0)  # upstream shows 0 where nothing is stored
    dense = result.to_numpy() if sparse else np.asarray(result)
    assert dense.dtype == case.dtype, f"dtype {dense.dtype}, expected {case.dtype}"
    has_storage = expected.values is not None
    if expected.dense is not None:
        _close(dense, expected.dense, case.tolerance, "elements")
    if not has_storage:
        return
    assert case.output is not None
    if case.output.is_all_full:
        _close(dense.reshape(-1), expected.values, case.tolerance, "values")
        return
    assert sparse, f"the result is a {type(result).__name__}"
    assert result.format.with_widths(0, 0) == case.output.with_widths(0, 0)
    _check_storage(result, expected, case.tolerance)


def _check_storage(result: sj.SparseTensor, expected: Expected, tolerance: float) -> None:
    found = {n: array for n, array in enumerate(result.positions) if array is not None}
    assert set(found) == set(expected.positions)
    for level, positions in expected.positions.items():
        np.testing.assert_array_equal(np.ravel(found[level]), positions, f"positions of {level}")
    found = {n: array for n, array in enumerate(result.coordinates) if array is not None}
    assert set(found) == set(expected.coordinates)
    for level, coordinates in expected.coordinates.items():
        got = np.ravel(found[level])
        np.testing.assert_array_equal(got, coordinates, f"coordinates of level {level}")
    _close(result.values, expected.values, tolerance, "values")
