"""Combinations of the matrix test: one choice of everything, and how it is run and judged.

In: a ``Combination``. Out: an ``Outcome``; a wrong answer is an ``AssertionError``. Judged are
values, shape and dtype against NumPy, the storage by ``SparseTensor``'s own checks, and values and
stored mask against the reference evaluator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.formats import LevelKind
from sparsejit.pipeline import default_pipeline
from sparsejit.sparsify_and_bufferize import StageOptions
from tests.matrix.operations import OPERATIONS, Operation, Source
from tests.matrix.pattern_operations import PATTERN_OPERATIONS

__all__ = [
    "FACTORS",
    "FORMATS",
    "PATTERN_FACTORS",
    "RESULT_FORMATS",
    "UNCARRIED",
    "Combination",
    "Outcome",
    "is_forbidden",
    "run_combination",
]

Array = np.ndarray[Any, np.dtype[Any]]

FORMATS = {
    "dense": sj.Dense(2),
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "aos coo": sj.Format("(i, j) -> (i : compressed(nonunique), j : singleton)"),
    "column coo": sj.Format("(i, j) -> (j : compressed(nonunique), i : singleton(soa))"),
    "dcsr": sj.DCSR,
    "dcsc": sj.DCSC,
    "bsr23": sj.BSR(2, 3),
    "bsr22": sj.BSR(2, 2),
    "bsc": sj.Format("(i, j) -> (j floordiv 2 : dense, i floordiv 2 : compressed, "
                     "i mod 2 : dense, j mod 2 : dense)"),
    "blocked dcsr": sj.Format("(i, j) -> (i floordiv 2 : compressed, j floordiv 3 : compressed, "
                              "i mod 2 : dense, j mod 3 : dense)"),
    "blocked dense": sj.Format("(i, j) -> (i floordiv 2 : dense, j floordiv 2 : dense, "
                               "i mod 2 : dense, j mod 2 : dense)"),
    "compressed dense": sj.Format("(i, j) -> (i : compressed, j : dense)"),
    "loose": sj.Format("(i, j) -> (i : dense, j : loose_compressed)"),
    "column-major": sj.Format("(i, j) -> (j : dense, i : dense)"),
    "nv24": sj.NV24,
    "1:2": sj.Format("(i, j) -> (i : dense, j floordiv 2 : dense, j mod 2 : structured[1, 2])"),
    "dia": sj.DIA,
    "ell": sj.ELL(9),
    "jagged": sj.Format("(i, j) -> (j : dense, i : padded[9])"),
    "anti-dia": sj.Format("(i, j) -> (i - j : compressed, i : range)"),
}  # fmt: skip

RESULT_FORMATS = (
    "inferred", "dense", "csr", "csc", "coo", "aos coo", "column coo", "dcsr", "dcsc", "bsr23",
    "compressed dense", "loose", "column-major", "bsc",
)  # fmt: skip

FORMATS_OF_RANK_3 = (
    sj.CSF(3),
    sj.COO(3),
    sj.Dense(3),
    sj.Format("(i, j, k) -> (k : compressed, i : dense, j : compressed)"),
    sj.Batched(sj.CSR),
    sj.Format("(i, j, k) -> (j : dense, k : compressed, i : compressed)"),
)
FORMATS_OF_RANK_1 = (sj.Dense(1), sj.SparseVector, sj.COO(1))

# m, n, k; the other extents follow from them.
SHAPES = (
    (5, 7, 3), (6, 4, 8), (7, 5, 1), (1, 1, 1), (1, 6, 4), (4, 1, 5), (0, 3, 2), (3, 0, 2),
    (2, 3, 0), (0, 0, 0), (3, 8, 2), (2, 2, 9),
)  # fmt: skip

FACTORS: dict[str, Sequence[Any]] = {
    "operation": [operation.name for operation in OPERATIONS],
    "front_end": ["einsum", "array", "index"],
    "a": list(FORMATS),
    "b": list(FORMATS),
    "result": RESULT_FORMATS,
    "storage": ["inline", "runtime"],
    "shape": SHAPES,
    "dtype": ["float64", "float32", "int64", "complex128"],
    "objects": ["sparsejit", "scipy"],
    "density": [0.0, 0.3, 0.7],
}
PATTERN_FACTORS = {**FACTORS, "operation": [operation.name for operation in PATTERN_OPERATIONS]}
"""The same factors for the operations that read patterns, move entries, loop, or assign."""
UNCARRIED = ("column-major", "blocked dense")
"""Formats that no loop carries as sparse ones: those that store every element."""
_BY_NAME = {operation.name: operation for operation in (*OPERATIONS, *PATTERN_OPERATIONS)}


@dataclass(frozen=True, slots=True)
class Combination:
    """One choice of every factor; ``seed`` draws the data."""

    operation: str
    front_end: str
    a: str
    b: str
    result: str
    storage: Literal["inline", "runtime"]
    shape: tuple[int, int, int]
    dtype: str
    objects: str
    density: float
    seed: int = 0


class Outcome(Enum):
    """``FULL``: more entries than a structured result has slots, refused as it must be."""

    RIGHT = "right"
    UNSUPPORTED = "unsupported"
    FULL = "full"


def is_forbidden(row: dict[str, Any]) -> bool:
    """Whether NumPy itself refuses: the maximum of nothing, an order of complex numbers."""
    operation = _BY_NAME[row["operation"]]
    extents = _extents(row["shape"])
    if any(extents[dim] == 0 for dim in operation.needs):
        return True
    if operation.carries and row["a"] in UNCARRIED:
        return True
    return operation.ordered and row["dtype"] == "complex128"


def _extents(shape: tuple[int, int, int]) -> dict[str, int]:
    m, n, k = shape
    return {"m": m, "n": n, "k": k, "l": 3, "p": m + 1}


def _format(source: Source, combination: Combination) -> sj.Format:
    match source.origin:
        case "a":
            return FORMATS[combination.a]
        case "b":
            return FORMATS[combination.b]
        case "3d":
            return FORMATS_OF_RANK_3[combination.seed % len(FORMATS_OF_RANK_3)]
        case "vector":
            return FORMATS_OF_RANK_1[combination.seed % len(FORMATS_OF_RANK_1)]
        case _:
            return sj.Dense(len(source.dims))


def _drawn(shape: tuple[int, ...], source: Source, c: Combination, rng: Any) -> Array:
    values = rng.integers(-4, 5, shape)
    values = np.where(values == 0, 5, values)
    kept = np.ones(shape, bool) if source.nonzero else rng.random(shape) < c.density
    array: Array = np.where(kept, values, 0).astype(c.dtype)
    if c.dtype == "complex128":
        array = array * (1 + 0.5j)
    elif c.dtype != "int64":
        array = array / 2
    return array.astype(c.dtype)


def _operand(array: Array, fmt: sj.Format, objects: str) -> tuple[Any, Array, Array]:
    """Return the object to pass, its dense values, and the mask of what it stores."""
    if fmt.is_dense:
        return array, array, np.ones(array.shape, bool)
    is_structured = any(level.type.kind is LevelKind.STRUCTURED for level in fmt.levels)
    tensor = sj.prune(array, fmt) if is_structured else sj.asarray(array, format=fmt)
    dense, stored = tensor.to_numpy(), stored_mask(tensor)
    if objects == "scipy" and fmt in _FORMATS_OF_SCIPY and _blocks_divide(fmt, array.shape):
        return tensor.to_scipy(), dense, stored
    return tensor, dense, stored


_FORMATS_OF_SCIPY = (sj.CSR, sj.CSC, sj.COO(2), sj.COO(3), sj.BSR(2, 3), sj.DIA)


def _blocks_divide(fmt: sj.Format, shape: tuple[int, ...]) -> bool:
    return fmt != sj.BSR(2, 3) or (shape[0] % 2 == 0 and shape[1] % 3 == 0)


def stored_mask(tensor: sj.SparseTensor) -> Array:
    """Return where a tensor stores entries."""
    ones = sj.SparseTensor(
        tensor.format, tensor.shape, tensor.positions, tensor.coordinates,
        np.ones(tensor.values.shape), 0.0,
    )  # fmt: skip
    mask: Array = ones.to_numpy() != 0
    return mask


def _result_format(operation: Operation, combination: Combination) -> sj.Format | None:
    if combination.result == "inferred" or operation.assigns:
        return None
    fmt = FORMATS[combination.result]
    match len(operation.result):
        case 2:
            return fmt
        case 1:
            return sj.Dense(1) if fmt.is_all_full else sj.SparseVector
        case _:
            return None


def run_combination(combination: Combination, target: str = "interpreter") -> Outcome:
    """Run one combination on a target and compare; ``AssertionError`` for a wrong answer."""
    operation = _BY_NAME[combination.operation]
    rng = np.random.default_rng(combination.seed)
    extents = _extents(combination.shape)
    made = [
        _operand(
            _drawn(tuple(extents[d] for d in source.dims), source, combination, rng),
            _format(source, combination),
            combination.objects,
        )
        for source in operation.sources
    ]
    operands, dense = [item[0] for item in made], [item[1].copy() for item in made]
    masks = {"masks": [item[2] for item in made]} if operation.reads_pattern else {}
    expected = np.asarray(operation.numpy(*dense, **masks))
    wanted = _result_format(operation, combination)
    function = sj.sparse_jit(
        operation.spellings[combination.front_end], target=target, output=wanted
    )
    options = StageOptions(storage=combination.storage)
    function._pipeline = default_pipeline(stage_options=options)
    try:
        result, reference = _both(function, operands)
    except sj.errors.UnsupportedError:
        return Outcome.UNSUPPORTED
    except ValueError as error:
        if "more entries than slots" in str(error):
            return Outcome.FULL
        raise
    if operation.assigns:
        assert result is operands[0]
    _check_result(result, expected, reference, wanted)
    if not any(extent == 0 for extent in extents.values()):
        _check_pattern(result, reference)
    return Outcome.RIGHT


def _both(function: Any, operands: Sequence[Any]) -> tuple[Any, Any]:
    """Return the result and the reference's, which does not change its arguments."""
    reference = function.lower(*operands).reference(*operands)
    return function(*operands), reference


def _tolerance(dtype: np.dtype[Any]) -> float:
    return 1e-5 if dtype in (np.float32, np.complex64) else 1e-12


def _check_result(result: Any, expected: Array, reference: Any, wanted: Any) -> None:
    dense = as_dense(result)
    assert dense.dtype == expected.dtype, f"dtype {dense.dtype}, expected {expected.dtype}"
    assert dense.shape == expected.shape
    tolerance = _tolerance(expected.dtype)
    np.testing.assert_allclose(dense, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(reference.values, expected, rtol=tolerance, atol=tolerance)
    if wanted is None:
        return
    if wanted.is_dense:
        assert isinstance(result, np.ndarray)
    else:
        found = result.format if isinstance(result, sj.SparseTensor) else sj.asarray(result).format
        assert found.with_widths(0, 0) == wanted


def as_dense(result: Any) -> Array:
    """Return a result as a NumPy array, after checking its storage from scratch."""
    if isinstance(result, sj.SparseTensor):
        checked = sj.SparseTensor(
            result.format, result.shape, result.positions, result.coordinates, result.values,
            result.fill_value,
        )  # fmt: skip
        return checked.to_numpy()
    if sp.issparse(result):
        assert getattr(result, "has_canonical_format", True)
        return sj.asarray(result).to_numpy()  # type: ignore[no-any-return]  # any kind of operand
    return np.asarray(result)


def _check_pattern(result: Any, reference: Any) -> None:
    """Compare what is stored with the reference; the reduction of nothing has its own rule."""
    if isinstance(result, sj.SparseTensor) or sp.issparse(result):
        tensor = sj.asarray(result)
        np.testing.assert_array_equal(stored_mask(tensor), reference.stored)
