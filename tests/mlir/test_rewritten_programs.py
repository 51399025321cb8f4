"""The MLIR text of rewritten functions: the real `mlir-opt` accepts and analyzes it as we do."""

import random

import pytest

from sparsejit.ir.tensor import TensorFunc
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize
from tests.sparsify_and_bufferize.product_programs import draw_products
from tests.sparsify_and_bufferize.test_enabling_rewrites import PROGRAMS
from tests.support.mlir_oracle import analyze, parses

pytestmark = pytest.mark.mlir


def mlir_of(func: TensorFunc) -> str:
    texts: dict[str, str] = {}
    sparsify_and_bufferize(func, observe=texts.__setitem__)
    return texts["mlir"]


def test_named_programs_are_accepted_and_analyzed() -> None:
    texts = [mlir_of(make()) for make in PROGRAMS.values()]
    refused = {
        name: reply.error
        for name, reply in zip(PROGRAMS, parses(texts), strict=True)
        if reply.error
    }
    assert refused == {}
    failed = [found for found in analyze(texts) if isinstance(found, str)]
    assert failed == []


def test_random_products_are_accepted() -> None:
    texts = [mlir_of(draw_products(random.Random(seed)).func) for seed in range(60)]
    assert [reply.error for reply in parses(texts) if reply.error] == []
