"""Operations on entries, compiled, and by the reference: both give what the interpreter gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from tests.semantics.masked import Masked, dense_of

RNG = np.random.default_rng(3)
A = Masked(RNG.standard_normal((9, 7)), RNG.random((9, 7)) < 0.4, sj.CSR)
B = Masked(A.values, A.stored, sj.CSC)

PROGRAMS: dict[str, Any] = {
    "select": lambda A: sj.select(A, lambda a, i, j: a > 0 and i < j),
    "unary": lambda A: sj.unary(A, present=lambda a: a if a > 0 else -a, absent=lambda: 1),
    "binary": lambda A: sj.binary(A, A * 2, overlap=lambda a, b: b - a),
    "reduce": lambda A: sj.reduce(lambda x, y: 0.5 * x + y, A, identity=0.0, axis=1),
    "max": lambda A: A.max(axis=1),
    "prod": lambda A: (A + 1).prod(axis=0),
    "argmax": lambda A: A.argmax(axis=1),
    "argmin of all": lambda A: A.argmin(),
    "softmax": lambda A: sj.softmax(A, axis=1),
    "min_plus": lambda A: sj.einsum("ij,kj->ik", A, A, semiring="min_plus"),
}


@pytest.mark.parametrize("tensor", [A, B], ids=["csr", "csc"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_and_reference(name: str, tensor: Masked) -> None:
    program = PROGRAMS[name]
    wanted = dense_of(sj.sparse_jit(program, target="interpreter")(tensor.operand))
    compiled = sj.sparse_jit(program, target="cpu")
    np.testing.assert_allclose(dense_of(compiled(tensor.operand)), wanted, rtol=1e-12)
    reference = compiled.lower(tensor.operand).reference(tensor.operand)
    np.testing.assert_allclose(reference.values, wanted, rtol=1e-12)


LIMIT = 1.0


def above(a: Any) -> Any:
    return a > LIMIT


def test_captured_numbers_are_seen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = Masked(np.array([[1.5, 2.5, 3.5]]), np.ones((1, 3), bool), sj.CSR).operand
    direct = sj.sparse_jit(lambda A: sj.select(A, lambda a: a > LIMIT), target="interpreter")
    named = sj.sparse_jit(lambda A: sj.select(A, above), target="interpreter")
    assert (direct(matrix).nse, named(matrix).nse) == (3, 3)
    monkeypatch.setitem(globals(), "LIMIT", 3.0)
    assert (direct(matrix).nse, named(matrix).nse) == (1, 1)
