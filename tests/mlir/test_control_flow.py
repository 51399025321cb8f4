"""Traced loops and branches as MLIR: accepted by `mlir-opt`, and analysed alike on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit.formats import CSR
from sparsejit.ir.mlir import print_mlir
from sparsejit.ir.tensor import TensorFunc
from tests.api.control_programs import draw, run
from tests.support.mlir_comparison import differences
from tests.support.mlir_oracle import parses
from tests.trace.harness import Operand, traced

pytestmark = pytest.mark.mlir

A = Operand(np.where(np.arange(36).reshape(6, 6) % 4 == 1, 0.7, 0.0), CSR)
VECTORS = np.linspace(-0.9, 0.8, 12).reshape(2, 6)


def _traced(seed: int) -> TensorFunc:
    program = draw(seed)

    def compiled(A: Any, a: Any, b: Any, s: Any) -> Any:
        return run(program, sj, A, a, b, s)

    return traced(compiled, A, *VECTORS, 0.25).func


@pytest.fixture(scope="module")
def funcs() -> list[TensorFunc]:
    return [_traced(seed) for seed in range(40)]


def test_programs_parse(funcs: list[TensorFunc]) -> None:
    replies = parses([print_mlir(func) for func in funcs])
    assert [reply.error for reply in replies if reply.output is None] == []


def test_programs_are_decided_alike(funcs: list[TensorFunc]) -> None:
    assert differences(funcs, as_upstream=True) == []
