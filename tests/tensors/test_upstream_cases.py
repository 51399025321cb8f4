"""Storage that MLIR's integration tests pin: the same positions, coordinates and values here."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sparsejit.formats import COO, Format, LevelKind
from sparsejit.tensors import SparseTensor, buffer_names, from_coo, from_dense, prune
from tests.tensors.test_create import CONVERSIONS

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "mlir_integration.json"
DTYPES: dict[str, Any] = {
    "i1": bool, "i8": np.int8, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "complex64": np.complex64, "complex128": np.complex128,
}  # fmt: skip

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")


def load() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(CASES.read_text())["cases"] if CASES.exists() else []
    return found


def read_format(levels: list[dict[str, str]] | None, ndim: int, **widths: int) -> Format | None:
    if levels is None:
        return None
    dims = ", ".join(f"d{d}" for d in range(ndim))
    text = ", ".join(f"{level['expr']} : {level['type']}" for level in levels)
    return Format(f"({dims}) -> ({text})", **widths)


def numbers(data: Any, dtype: Any) -> Any:
    """Complex numbers are pairs, numbers that are not finite are strings."""
    array = np.array(data, np.float64 if isinstance(data, list) and data else None)
    if np.dtype(dtype).kind == "c" and array.ndim and array.shape[-1] == 2:
        array = array[..., 0] + 1j * array[..., 1]
    return array.astype(dtype)


def read_operand(operand: dict[str, Any]) -> SparseTensor | None:
    """Return the operand in its format (COO when it has none), None if it is generated."""
    shape, dtype = tuple(operand["shape"]), DTYPES[operand["dtype"]]
    widths = {"pos_width": operand.get("posWidth") or 0, "crd_width": operand.get("crdWidth") or 0}
    fmt = read_format(operand.get("format"), len(shape), **widths)
    data = operand.get("data")
    if data is None or not shape:
        return None
    if "dense" in data:
        array = numbers(data["dense"], dtype).reshape(shape)
        if fmt is None:
            fmt = COO(len(shape))
        if any(level.type.kind is LevelKind.STRUCTURED for level in fmt.levels):
            return prune(array, fmt)
        return from_dense(array, fmt)
    coords = np.array(data["coords"], np.int64).reshape(-1, len(shape)).T
    return from_coo(coords, numbers(data["values"], dtype), shape, fmt)


def assert_storage(tensor: SparseTensor, storage: dict[str, Any]) -> None:
    found = {"positions": tensor.positions, "coordinates": tensor.coordinates}
    wanted = {"positions": storage.get("pos", {}), "coordinates": storage.get("crd", {})}
    assert list(tensor.format.level_sizes(tensor.shape)) == storage["lvl"]
    for level, name in buffer_names(tensor.format):
        array = found[name][level]
        assert array is not None
        assert array.reshape(-1).tolist() == wanted[name][str(level)], (name, level)
    expected = numbers(storage["values"], tensor.dtype)
    np.testing.assert_array_equal(tensor.values, expected.reshape(-1))


STORED = [
    case
    for case in load()
    if case["kind"] in ("convert", "insert") and case["output"].get("format") is not None
]


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("case", STORED, ids=lambda case: case["id"])
def test_conversions(case: dict[str, Any], convert: Any) -> None:
    source = read_operand(case["operands"][0])
    assert source is not None
    output, expected = case["output"], case["expected"]
    widths = {"pos_width": output.get("posWidth") or 0, "crd_width": output.get("crdWidth") or 0}
    target = read_format(output["format"], len(expected["shape"]), **widths)
    assert target is not None
    made = source if source.format == target else convert(source, target)
    assert_storage(made, expected["storage"])
    if "dense" in expected:
        np.testing.assert_array_equal(made.to_numpy(), numbers(expected["dense"], made.dtype))


def test_every_operand_of_every_case_can_be_stored() -> None:
    read = 0
    for case in load():
        for operand in case["operands"]:
            tensor = read_operand(operand)
            if tensor is None:
                continue
            read += 1
            again = SparseTensor(
                tensor.format, tensor.shape, tensor.positions, tensor.coordinates, tensor.values
            )
            data = operand["data"]
            structured = any(lvl.type.kind is LevelKind.STRUCTURED for lvl in tensor.format.levels)
            if "dense" in data and not structured:
                dense = numbers(data["dense"], tensor.dtype).reshape(tensor.shape)
                np.testing.assert_array_equal(again.to_numpy(), dense)
    assert read > 200


def test_batched_coo_with_a_padding_slot() -> None:
    """``sparse_pack``: two batches of COO in one array, with bounds and a slot between them."""
    fmt = Format(
        "(b, i, j) -> (b : dense, i : loose_compressed(nonunique), j : singleton)",
    )
    bounds = np.array([[0, 3], [3, 5]])
    coordinates = np.array([[1, 2], [5, 6], [7, 8], [2, 3], [4, 2], [9, 9]])
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])
    tensor = SparseTensor(
        fmt, (2, 10, 10), (None, bounds, None), (None, coordinates, None), values
    )  # fmt: skip
    dense = np.zeros((2, 10, 10))
    dense[[0, 0, 0, 1, 1], [1, 5, 7, 2, 4], [2, 6, 8, 3, 2]] = values[:5]
    np.testing.assert_array_equal(tensor.to_numpy(), dense)
    assert tensor.nse == 5
