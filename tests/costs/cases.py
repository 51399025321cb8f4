"""Operations of which all work is linear in stored entries, and operands to see whether it is.

An operand of extent ``n`` has O(n) entries, at most a few in every row and every column, so that
products of two have O(n) terms. An operation that takes more than linear time walks over
coordinates at which nothing is stored.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import sparsejit as sj

__all__ = [
    "CUBES",
    "MATRICES",
    "OPERATIONS",
    "RESULTS",
    "Case",
    "Operation",
    "matrix_cases",
    "operands_of",
    "tensor_cases",
]

Function = Callable[..., Any]

MATRICES = {
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "column coo": sj.Format("(i, j) -> (j : compressed(nonunique), i : singleton(soa))"),
    "dcsr": sj.DCSR,
    "dcsc": sj.DCSC,
    "bsr": sj.BSR(2, 2),
    "bsc": sj.Format("(i, j) -> (j floordiv 2 : dense, i floordiv 2 : compressed, "
                     "i mod 2 : dense, j mod 2 : dense)"),
    "blocked dcsr": sj.Format("(i, j) -> (i floordiv 2 : compressed, j floordiv 2 : compressed, "
                              "i mod 2 : dense, j mod 2 : dense)"),
    "dia": sj.DIA,
    "anti-dia": sj.Format("(i, j) -> (i - j : compressed, i : range)"),
    "ell": sj.ELL(4),
    "jagged": sj.Format("(i, j) -> (j : dense, i : padded[4])"),
    "loose": sj.Format("(i, j) -> (i : dense, j : loose_compressed)"),
}  # fmt: skip
"""Formats whose storage is linear in the entries and extents."""

CUBES = {
    "csf": sj.CSF(3),
    "coo3": sj.COO(3),
    "csf reversed": sj.Format("(i, j, k) -> (k : compressed, j : compressed, i : compressed)"),
    "csf turned": sj.Format("(i, j, k) -> (j : compressed, k : compressed, i : compressed)"),
    "dense csf": sj.Format("(i, j, k) -> (i : dense, j : compressed, k : compressed)"),
    "batched csr": sj.Batched(sj.CSR),
    "few rows": sj.Format("(i, j, k) -> (i : compressed, j : dense, k : compressed)"),
}
"""Formats of rank 3, of which the last two have storage for every ``j`` of every ``i``."""

RESULTS = ("inferred", "csr", "csc", "coo", "dcsr", "dcsc", "bsr", "loose")
_FEW = 4
"""The first extent of tensors whose format has storage for each pair of it and another."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A function, and for each operand "matrix", "cube" or a kind of dense array."""

    function: Function
    operands: tuple[str, ...]
    sparse: bool = True
    """Whether the result is a sparse matrix, in any format."""


def _mttkrp(mode: str) -> Function:
    others = [index for index in "ijk" if index != mode]
    pattern = f"ijk,{others[0]}r,{others[1]}r->{mode}r"
    return lambda X, B, C: sj.einsum(pattern, X, B, C)


OPERATIONS = {
    "A @ B": Operation(lambda A, B: A @ B, ("matrix", "matrix")),
    "A.T @ B": Operation(lambda A, B: A.T @ B, ("matrix", "matrix")),
    "A @ B.T": Operation(lambda A, B: A @ B.T, ("matrix", "matrix")),
    "A.T @ B.T": Operation(lambda A, B: A.T @ B.T, ("matrix", "matrix")),
    "A + B": Operation(lambda A, B: A + B, ("matrix", "matrix")),
    "A + B.T": Operation(lambda A, B: A + B.T, ("matrix", "matrix")),
    "A * B": Operation(lambda A, B: A * B, ("matrix", "matrix")),
    "A * B.T": Operation(lambda A, B: A * B.T, ("matrix", "matrix")),
    "where_stored(A, A @ B)": Operation(
        lambda A, B: sj.where_stored(A, A @ B), ("matrix", "matrix")
    ),
    "A * (B @ B)": Operation(lambda A, B: A * (B @ B), ("matrix", "matrix")),
    "A * (U @ V)": Operation(lambda A, U, V: A * (U @ V), ("matrix", "tall", "wide")),
    "A * 2": Operation(lambda A: A * 2.0, ("matrix",)),
    "A.T * 2": Operation(lambda A: A.T * 2.0, ("matrix",)),
    "A @ x": Operation(lambda A, x: A @ x, ("matrix", "vector"), sparse=False),
    "x @ A": Operation(lambda A, x: x @ A, ("matrix", "vector"), sparse=False),
    "A @ U": Operation(lambda A, U: A @ U, ("matrix", "tall"), sparse=False),
    "A.T @ U": Operation(lambda A, U: A.T @ U, ("matrix", "tall"), sparse=False),
    "V @ A": Operation(lambda A, V: V @ A, ("matrix", "wide"), sparse=False),
    "(A * B).sum()": Operation(lambda A, B: (A * B).sum(), ("matrix", "matrix"), sparse=False),
    "(A + B).sum(axis=0)": Operation(
        lambda A, B: (A + B).sum(axis=0), ("matrix", "matrix"), sparse=False
    ),
    "(A @ B) @ x": Operation(
        lambda A, B, x: (A @ B) @ x, ("matrix", "matrix", "vector"), sparse=False
    ),
    "mttkrp 0": Operation(_mttkrp("i"), ("cube", "tall", "tall"), sparse=False),
    "mttkrp 1": Operation(_mttkrp("j"), ("cube", "tall", "tall"), sparse=False),
    "mttkrp 2": Operation(_mttkrp("k"), ("cube", "tall", "tall"), sparse=False),
    "X + Y": Operation(lambda X, Y: X + Y, ("cube", "cube"), sparse=False),
    "X * Y": Operation(lambda X, Y: X * Y, ("cube", "cube"), sparse=False),
    "(X * Y).sum()": Operation(lambda X, Y: (X * Y).sum(), ("cube", "cube"), sparse=False),
}


@dataclass(frozen=True, slots=True)
class Case:
    """An operation with formats for its sparse operands, and the format of its result."""

    operation: str
    formats: tuple[str, ...]
    result: str = "inferred"

    def __str__(self) -> str:
        return f"{self.operation}, {', '.join(self.formats)} to {self.result}"

    @property
    def kernel(self) -> Any:
        """The operation as a function that the interpreter runs."""
        output = None if self.result == "inferred" else MATRICES[self.result]
        function = OPERATIONS[self.operation].function
        return sj.sparse_jit(function, target="interpreter", output=output)


def matrix_cases() -> Iterator[Case]:
    """Yield every operation with every pair of formats of its operands, and every result."""
    for name, operation in OPERATIONS.items():
        count = operation.operands.count("matrix")
        if not count:
            continue
        results = RESULTS if operation.sparse else ("inferred",)
        for first in MATRICES:
            for second in MATRICES if count == 2 else ("",):
                for result in results:
                    yield Case(name, (first, second)[:count], result)


def tensor_cases() -> Iterator[Case]:
    """Yield every operation with tensors of rank 3, with every pair of formats."""
    for name, operation in OPERATIONS.items():
        count = operation.operands.count("cube")
        if not count:
            continue
        for first in CUBES:
            for second in CUBES if count == 2 else ("",):
                yield Case(name, (first, second)[:count])


# ---------------------------------------------------------------- operands


def operands_of(case: Case, extent: int) -> tuple[Any, ...]:
    """Return operands with O(``extent``) entries; ``extent`` is even."""
    rng = np.random.default_rng(7)
    left = list(case.formats)
    is_few = bool({"batched csr", "few rows"} & set(case.formats))
    made: list[Any] = []
    for kind in OPERATIONS[case.operation].operands:
        match kind:
            case "matrix":
                made.append(_matrix(left.pop(0), extent, len(made)))
            case "cube":
                made.append(_cube(left.pop(0), extent, _FEW if is_few else extent))
            case "vector":
                made.append(rng.random(extent))
            case "wide":
                made.append(rng.random((3, extent)))
            case _:
                made.append(rng.random((extent, 3)))
    if case.operation.startswith("mttkrp"):
        missing = "ijk".index("ijk"[int(case.operation[-1])])
        extents = [axis for number, axis in enumerate(made[0].shape) if number != missing]
        made[1:] = [rng.random((axis, 3)) for axis in extents]
    return tuple(made)


def _matrix(name: str, extent: int, number: int) -> Any:
    """Return a matrix with at most three entries in a row or column, or in a row of blocks."""
    fmt = MATRICES[name]
    at = np.arange(extent)
    if "dia" in name:
        rows, columns = np.concatenate([(at[max(-d, 0) :][: extent - abs(d)],
                                         at[max(d, 0) :][: extent - abs(d)])
                                        for d in (-1, 0, 2 + number)], axis=1)  # fmt: skip
    elif "mod" in str(fmt):
        blocks, half = np.arange(extent // 2), extent // 2
        places = [(blocks, (factor * blocks + number) % half) for factor in (1, 5)]
        rows, columns = 2 * np.concatenate(places, axis=1)
        rows, columns = np.concatenate([rows, rows + 1]), np.concatenate([columns, columns + 1])
    else:
        places = [(at, (factor * at + number) % extent) for factor in (1, 5, 7)]
        rows, columns = np.concatenate(places, axis=1)
    values = np.ones(rows.size)
    return sj.from_coo((rows, columns), values, (extent, extent), format=fmt)


def _cube(name: str, extent: int, first: int) -> Any:
    """Return a tensor with three entries at each of its middle coordinates."""
    at = np.arange(extent)
    places = [(at % first, at, (factor * at + 1) % extent) for factor in (1, 5, 7)]
    entries = np.concatenate(places, axis=1)
    shape = (first, extent, extent)
    return sj.from_coo(tuple(entries), np.ones(entries.shape[1]), shape, format=CUBES[name])
