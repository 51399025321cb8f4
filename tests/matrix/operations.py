"""The operations of the matrix test: one formula in three spellings, and the same in NumPy.

Each operation has operands with dimensions by letter (m, n, k are the extents of a combination),
and for each operand where its format comes from: the first or second factor of the combination,
a format of rank 3, of rank 1, or dense. Functions are written as users write them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import sparsejit as sj

__all__ = ["FRONT_ENDS", "OPERATIONS", "Function", "Operation", "Source"]

FRONT_ENDS = ("einsum", "array", "index")
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Source:
    """An operand: its name, its dimensions, and which factor its format comes from.

    ``origin`` is "a", "b" (the factors), "3d", "vector" or "dense"; ``nonzero`` keeps zeros out.
    """

    name: str
    dims: str
    origin: str
    nonzero: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """A formula. ``numpy`` takes dense arrays, and what they store as ``masks``."""

    name: str
    sources: tuple[Source, ...]
    result: str
    spellings: dict[str, Function]
    numpy: Function
    reads_pattern: bool = False
    needs: str = ""  # dimensions that must not be empty
    assigns: bool = False  # the first operand
    carries: bool = False  # a sparse tensor, through a loop
    ordered: bool = False  # asks for an order of the elements, which complex numbers lack


A, B = Source("A", "mn", "a"), Source("B", "mn", "b")


def _statement(left: str, right: str) -> Function:
    """Return the function that assigns ``right`` to a new output at the indices ``left``."""
    letters = sorted(set(left + "".join(c for c in right if c.islower())) & set("ijkr"))
    names = ", ".join(letters)
    arguments = ", ".join(dict.fromkeys(c for c in right if c.isupper()))
    at = ", ".join(left) if left else "()"
    text = (
        f"def f({arguments}):\n"
        f"    {names}, = sj.indices('{' '.join(letters)}')\n"
        f"    M_ = sj.output()\n"
        f"    M_[{at}] = {right}\n"
        f"    return M_\n"
    )
    scope: dict[str, Any] = {"sj": sj, "np": np}
    exec(compile(text, f"<statement {right}>", "exec"), scope)
    made: Function = scope["f"]
    return made


def _copy(letters: str, array: Any) -> Any:
    return sj.einsum(f"{letters}->{letters}", array)


def _updated(Y: Any, value: Any) -> Any:
    Y += value
    return Y


def _updated_at_indices(Y: Any, A: Any, B: Any) -> Any:
    i, j = sj.indices("i j")
    Y[i, j] += A[i, j] * B[i, j]
    return Y


def _where_stored_at_indices(A: Any, B: Any) -> Any:
    i, j = sj.indices("i j")
    M = sj.output()
    M[i, j] = sj.where_stored(A[i, j], 2.0 * B[i, j] + 1.0)
    return M


def _masked_product_at_indices(S: Any, A: Any, B: Any) -> Any:
    i, j, k = sj.indices("i j k")
    M = sj.output()
    M[i, j] = sj.where_stored(S[i, j], sj.sum(A[i, k] * B[k, j], over=k))
    return M


def _shifted_at_indices(A: Any) -> Any:
    i, j = sj.indices("i j")
    M = sj.output()
    M[i, j] = A[i + 1, j]
    return M


OPERATIONS = (
    Operation("add", (A, B), "mn", {
        "einsum": lambda A, B: _copy("ij", A) + _copy("ij", B),
        "array": lambda A, B: A + B,
        "index": _statement("ij", "A[i, j] + B[i, j]"),
    }, lambda A, B: A + B),
    Operation("subtract", (A, B), "mn", {
        "einsum": lambda A, B: np.subtract(np.einsum("ij", A), np.einsum("ij", B)),
        "array": lambda A, B: A - B,
        "index": _statement("ij", "A[i, j] - B[i, j]"),
    }, lambda A, B: A - B),
    Operation("multiply", (A, B), "mn", {
        "einsum": lambda A, B: sj.einsum("ij,ij->ij", A, B),
        "array": lambda A, B: A * B,
        "index": _statement("ij", "A[i, j] * B[i, j]"),
    }, lambda A, B: A * B),
    Operation("maximum", (A, B), "mn", {
        "einsum": lambda A, B: np.maximum(_copy("ij", A), _copy("ij", B)),
        "array": lambda A, B: np.maximum(A, B),
        "index": _statement("ij", "sj.maximum(A[i, j], B[i, j])"),
    }, np.maximum, ordered=True),
    Operation("multiply and add", (A, B), "mn", {
        "einsum": lambda A, B: sj.einsum("ij,ij->ij", A, B) + B,
        "array": lambda A, B: A * B + B,
        "index": _statement("ij", "A[i, j] * B[i, j] + B[i, j]"),
    }, lambda A, B: A * B + B),
    Operation("product", (Source("A", "mk", "a"), Source("B", "kn", "b")), "mn", {
        "einsum": lambda A, B: sj.einsum("ik,kj->ij", A, B),
        "array": lambda A, B: A @ B,
        "index": _statement("ij", "A[i, k] * B[k, j]"),
    }, lambda A, B: A @ B),
    Operation("gram", (Source("A", "km", "a"), Source("B", "kn", "b")), "mn", {
        "einsum": lambda A, B: sj.einsum("ki,kj->ij", A, B),
        "array": lambda A, B: A.T @ B,
        "index": _statement("ij", "A[k, i] * B[k, j]"),
    }, lambda A, B: A.T @ B),
    Operation("transpose", (Source("A", "nm", "a"),), "mn", {
        "einsum": lambda A: sj.einsum("ij->ji", A),
        "array": lambda A: A.T,
        "index": _statement("ij", "A[j, i]"),
    }, lambda A: A.T),
    Operation("row sums", (A, B), "m", {
        "einsum": lambda A, B: sj.einsum("ij->i", A) + sj.einsum("ij->i", B),
        "array": lambda A, B: (A + B).sum(axis=1),
        "index": _statement("i", "A[i, j] + B[i, j]"),
    }, lambda A, B: (A + B).sum(axis=1)),
    Operation("total", (A, B), "", {
        "einsum": lambda A, B: sj.einsum("ij,ij->", A, B),
        "array": lambda A, B: (A * B).sum(),
        "index": _statement("", "A[i, j] * B[i, j]"),
    }, lambda A, B: (A * B).sum()),
    Operation("sampled product",
              (A, Source("U", "mk", "b"), Source("V", "kn", "dense")), "mn", {
        "einsum": lambda A, U, V: sj.einsum("ij,ik,kj->ij", A, U, V),
        "array": lambda A, U, V: A * (U @ V),
        "index": _statement("ij", "A[i, j] * U[i, k] * V[k, j]"),
    }, lambda A, U, V: A * (U @ V)),
    Operation("where stored", (A, B), "mn", {
        "einsum": lambda A, B: sj.where_stored(A, 2.0 * _copy("ij", B) + 1.0),
        "array": lambda A, B: sj.where_stored(A, 2.0 * B + 1.0),
        "index": _where_stored_at_indices,
    }, lambda A, B, masks: np.where(masks[0], 2.0 * B + 1.0, 0), reads_pattern=True),
    Operation("masked product",
              (Source("S", "mn", "b"), Source("A", "mk", "a"), Source("B", "kn", "b")), "mn", {
        "einsum": lambda S, A, B: sj.where_stored(S, sj.einsum("ik,kj->ij", A, B)),
        "array": lambda S, A, B: sj.where_stored(S, A @ B),
        "index": _masked_product_at_indices,
    }, lambda S, A, B, masks: np.where(masks[0], A @ B, 0), reads_pattern=True),
    Operation("trace", (Source("A", "mm", "a"), Source("B", "mm", "b")), "", {
        "einsum": lambda A, B: sj.einsum("ii,ii->", A, B),
        "array": lambda A, B: np.trace(A * B),
        "index": _statement("", "A[i, i] * B[i, i]"),
    }, lambda A, B: np.trace(A * B)),
    Operation("diagonal", (Source("A", "mm", "a"), Source("B", "mn", "b")), "mn", {
        "einsum": lambda A, B: sj.einsum("ii,ij->ij", A, B),
        "array": lambda A, B: np.diagonal(A)[:, None] * B,
        "index": _statement("ij", "A[i, i] * B[i, j]"),
    }, lambda A, B: np.diagonal(A)[:, None] * B),
    Operation("map", (A,), "mn", {
        "einsum": lambda A: np.sin(sj.einsum("ij->ij", A)) * 3.0,
        "array": lambda A: np.sin(A) * 3.0,
        "index": _statement("ij", "np.sin(A[i, j]) * 3.0"),
    }, lambda A: np.sin(A) * 3.0),
    Operation("map of fill", (A,), "mn", {
        "einsum": lambda A: np.cos(sj.einsum("ij->ij", A)),
        "array": lambda A: np.cos(A),
        "index": _statement("ij", "np.cos(A[i, j])"),
    }, lambda A: np.cos(A)),
    Operation("mttkrp",
              (Source("X", "mkl", "3d"), Source("A", "kn", "a"), Source("B", "ln", "b")), "mn", {
        "einsum": lambda X, A, B: sj.einsum("ijk,jr,kr->ir", X, A, B),
        "array": lambda X, A, B: np.einsum("ijk,jr,kr->ir", X, A, B),
        "index": _statement("ir", "X[i, j, k] * A[j, r] * B[k, r]"),
    }, lambda X, A, B: np.einsum("ijk,jr,kr->ir", X, A, B)),
    Operation("tensor times matrix", (Source("X", "mlk", "3d"), Source("A", "kn", "a")), "mn", {
        "einsum": lambda X, A: sj.einsum("ijk,kr->ir", X, A),
        "array": lambda X, A: np.tensordot(X, A, axes=(2, 0)).sum(axis=1),
        "index": _statement("ir", "X[i, j, k] * A[k, r]"),
    }, lambda X, A: np.einsum("ijk,kr->ir", X, A)),
    Operation("broadcast", (A, Source("V", "n", "vector")), "mn", {
        "einsum": lambda A, V: sj.einsum("ij,j->ij", A, V) + V,
        "array": lambda A, V: A * V[None, :] + V,
        "index": _statement("ij", "A[i, j] * V[j] + V[j]"),
    }, lambda A, V: A * V + V),
    Operation("matrix times vector", (A, Source("V", "n", "vector")), "m", {
        "einsum": lambda A, V: sj.einsum("ij,j", A, V),
        "array": lambda A, V: A @ V,
        "index": _statement("i", "A[i, j] * V[j]"),
    }, lambda A, V: A @ V),
    Operation("divide", (A, Source("B", "mn", "dense", nonzero=True)), "mn", {
        "einsum": lambda A, B: sj.einsum("ij->ij", A) / B,
        "array": lambda A, B: A / B,
        "index": _statement("ij", "A[i, j] / B[i, j]"),
    }, lambda A, B: A / B),
    Operation("compare", (A, B), "mn", {
        "einsum": lambda A, B: _copy("ij", A) != _copy("ij", B),
        "array": lambda A, B: A != B,
        "index": _statement("ij", "A[i, j] != B[i, j]"),
    }, lambda A, B: A != B),
    Operation("row maximum", (A, B), "m", {
        "einsum": lambda A, B: np.max(sj.einsum("ij,ij->ij", A, B), axis=1),
        "array": lambda A, B: (A * B).max(axis=1),
        "index": _statement("i", "sj.max(A[i, j] * B[i, j], over=j)"),
    }, lambda A, B: (A * B).max(axis=1), needs="n", ordered=True),
    Operation("slice", (Source("A", "pn", "a"),), "mn", {
        "einsum": lambda A: sj.einsum("ij->ij", A[1:]),
        "array": lambda A: A[1:, :],
        "index": _shifted_at_indices,
    }, lambda A: A[1:]),
    Operation("update", (Source("Y", "mn", "dense"), A, B), "mn", {
        "einsum": lambda Y, A, B: _updated(Y, sj.einsum("ij,ij->ij", A, B)),
        "array": lambda Y, A, B: _updated(Y, A * B),
        "index": _updated_at_indices,
    }, lambda Y, A, B: Y + A * B, assigns=True),
)  # fmt: skip
