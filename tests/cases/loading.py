"""The handed cases as Python data: operands as sparsejit takes them, and what is expected.

In: the file of cases beside the repository. Out: for each case a ``Case``. Formats are given level
by level, elements as nested lists or coordinates, large ones as a rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import sparsejit as sj

__all__ = ["Case", "Expected", "Operand", "cases", "cases_file", "sparse_tensor"]

Array = np.ndarray[Any, np.dtype[Any]]

_DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "complex64": np.complex64,
    "complex128": np.complex128,
}


@dataclass(frozen=True, slots=True)
class Operand:
    """``value`` is an array or a ``SparseTensor``; ``entries`` are what the file lists, if it does.

    ``dense`` are all elements; ``format`` is None for a plain array.
    """

    name: str
    value: Any
    dense: Array
    format: sj.Format | None
    entries: tuple[Array, Array] | None


@dataclass(frozen=True, slots=True)
class Expected:
    """``dense`` or ``storage`` (positions and coordinates by level, values) may be missing."""

    shape: tuple[int, ...]
    dense: Array | None
    positions: Mapping[int, Array]
    coordinates: Mapping[int, Array]
    values: Array | None


@dataclass(frozen=True, slots=True)
class Case:
    """One case; ``output`` is the format of the result, None where it is a plain array."""

    id: str
    kind: str
    formula: str
    operands: tuple[Operand, ...]
    output: sj.Format | None
    dtype: np.dtype[Any]
    expected: Expected
    tolerance: float


def cases_file(name: str) -> Path:
    """Return where a file of cases lies, whether it is there or not."""
    return Path(__file__).resolve().parents[3] / "shared" / "cases" / name


@cache
def cases() -> dict[str, Case]:
    """Return all cases by id; empty where the file is absent."""
    path = cases_file("mlir_integration.json")
    if not path.exists():
        return {}
    return {raw["id"]: _case(raw) for raw in json.loads(path.read_text())["cases"]}


def _case(raw: Mapping[str, Any]) -> Case:
    note = raw.get("note", "")
    expected = _expected(raw["expected"], np.dtype(_DTYPES[raw["output"]["dtype"]]))
    if "contradicts" in note:
        expected = replace(expected, dense=None)
    if "principal branch" in note:
        expected = _principal(expected)
    shape = expected.shape
    fmt = _format(raw["output"], len(shape)) if raw["output"]["format"] else None
    # The file stores zeros where the result does, as it says in words.
    pattern = expected if "two zeros" in note else None
    return Case(
        raw["id"],
        raw["kind"],
        raw["formula"],
        tuple(_operand(operand, pattern) for operand in raw["operands"]),
        fmt,
        np.dtype(_DTYPES[raw["output"]["dtype"]]),
        expected,
        raw.get("tolerance", 2e-5),
    )


def _format(raw: Mapping[str, Any], ndim: int) -> sj.Format:
    dims = ", ".join(f"d{n}" for n in range(ndim))
    levels = ", ".join(f"{level['expr']} : {level['type']}" for level in raw["format"])
    return sj.Format(
        f"({dims}) -> ({levels})",
        pos_width=raw.get("posWidth") or 0,
        crd_width=raw.get("crdWidth") or 0,
    )


def _expected(raw: Mapping[str, Any], dtype: np.dtype[Any]) -> Expected:
    storage = raw.get("storage", {})
    return Expected(
        tuple(raw["shape"]),
        _array(raw["dense"], dtype).reshape(raw["shape"]) if "dense" in raw else None,
        {int(level): np.array(numbers) for level, numbers in storage.get("pos", {}).items()},
        {int(level): np.array(numbers) for level, numbers in storage.get("crd", {}).items()},
        _array(storage["values"], dtype) if "values" in storage else None,
    )


def _principal(expected: Expected) -> Expected:
    """Return logarithms in the principal branch, where they are given in another."""
    dense, values = expected.dense, expected.values
    assert dense is not None
    assert values is not None
    return replace(expected, dense=np.log1p(np.expm1(dense)), values=np.log1p(np.expm1(values)))


def _array(nested: Any, dtype: np.dtype[Any]) -> Array:
    """Return numbers as an array: complex ones are pairs, non-finite ones are strings."""
    if dtype.kind == "c":
        pairs = np.array(nested, dtype=object).astype(np.float64)
        return (pairs[..., 0] + 1j * pairs[..., 1]).astype(dtype)
    wide: Any = np.int64 if dtype.kind in "iub" else np.float64
    return np.array(nested, dtype=object).astype(wide).astype(dtype)


def _generated(rule: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return elements from a rule of their coordinates, as the file words it."""
    element = eval(rule, {})
    return np.array([element(*at) for at in np.ndindex(*shape)]).reshape(shape).astype(dtype)


def _operand(raw: Mapping[str, Any], pattern: Expected | None) -> Operand:
    shape, dtype = tuple(raw["shape"]), np.dtype(_DTYPES[raw["dtype"]])
    data = raw.get("data", {})
    entries = None
    if "coords" in data:
        coords = np.array(data["coords"], dtype=np.int64).reshape(-1, len(shape)).T
        entries = (coords, _array(data["values"], dtype).reshape(-1))
        dense = np.zeros(shape, dtype)
        dense[tuple(coords)] = entries[1]
    elif "dense" in data:
        dense = _array(data["dense"], dtype).reshape(shape)
    else:
        dense = _generated(raw["generator"], shape, dtype)
    fmt = _format(raw, len(shape)) if raw["format"] else None
    if pattern is not None and fmt is not None:
        at = pattern.coordinates[0]
        entries = (at[None, :], dense[at])
    value = dense if fmt is None else sparse_tensor(dense, fmt, entries)
    return Operand(raw["name"], value, dense, fmt, entries)


def sparse_tensor(
    dense: Array, fmt: sj.Format, entries: tuple[Array, Array] | None
) -> sj.SparseTensor:
    """Return a tensor with just these entries, explicit zeros included, or with the non-zeros."""
    if "structured" in str(fmt):
        return sj.prune(dense, fmt)
    if entries is None:
        made: sj.SparseTensor = sj.asarray(dense, format=fmt)
        return made
    return sj.from_coo(entries[0], entries[1], dense.shape, format=fmt)
