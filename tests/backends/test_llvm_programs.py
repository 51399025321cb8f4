"""The sparsifier's named programs and random operations on LLVM, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit.backends import BACKENDS
from sparsejit.ir.loops import LoopFunc, Memref, Var
from sparsejit.ir.tensor import TensorFunc
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from sparsejit.tensors import from_dense
from tests.generics.drawing import draw
from tests.generics.running import Outcome, run_drawn
from tests.sparsify_and_bufferize.programs import PROGRAMS

EXTENTS = (4, 8, 12, 5)


def _array(func: TensorFunc, number: int, symbols: list[int], rng: np.random.Generator) -> Any:
    """Return the buffers of an operand, sparse enough for its format."""
    from sparsejit.affine import evaluate

    kind = func.params[number].type
    shape = tuple(evaluate(extent, symbols) for extent in kind.shape)
    dtype = np.dtype(kind.dtype.value)
    for density in (0.5, 0.2, 0.1, 0.02):
        values = rng.integers(-9, 10, shape) / (2 if dtype.kind in "fc" else 1)
        array = np.where(rng.random(shape) < density, values, 0).astype(dtype)
        if kind.is_dense:
            return [array if shape else array[()]]
        try:
            tensor = from_dense(array, kind.format.with_widths(64, 64))
        except ValueError:  # more entries than slots
            continue
        pairs = zip(tensor.positions, tensor.coordinates, strict=True)
        levels = [buffer for pair in pairs for buffer in pair if buffer is not None]
        return [*levels, tensor.values]
    raise AssertionError(kind)


def _arguments(func: TensorFunc, loops: LoopFunc, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    symbols = [int(rng.choice(EXTENTS)) for _ in func.symbols]
    given: list[Any] = list(symbols)
    for number in range(len(func.params)):
        given += _array(func, number, symbols, rng)
    assert len(given) == len(loops.params)
    return [
        argument.astype(param.dtype.value) if isinstance(param, Memref) else argument
        for param, argument in zip(loops.params, given, strict=True)
    ]


def _outcome(backend: str, loops: LoopFunc, arguments: list[Any]) -> Any:
    kernel = BACKENDS[backend].load(BACKENDS[backend].emit(loops), cache=False)
    given = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
    try:
        results = kernel(given)
    except ValueError as error:
        return str(error)
    written = [a for a, p in zip(given, loops.params, strict=True) if not isinstance(p, Var)]
    return [*results, *written]


@pytest.mark.parametrize("storage", ["inline", "runtime"])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_named_programs(name: str, storage: Any) -> None:
    func = PROGRAMS[name]()
    loops = sparsify_and_bufferize(func, StageOptions(storage=storage))
    for seed in range(3):
        arguments = _arguments(func, loops, seed)
        wanted = _outcome("interpreter", loops, arguments)
        actual = _outcome("llvm", loops, arguments)
        assert isinstance(actual, str) == isinstance(wanted, str)
        if isinstance(wanted, str):
            assert actual == wanted
            continue
        for one, other in zip(actual, wanted, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk", range(4))
def test_random_operations(chunk: int) -> None:
    outcomes = [run_drawn(draw(seed), "llvm") for seed in range(5000 + chunk, 5100, 4)]
    assert outcomes.count(Outcome.RIGHT) > 0.8 * len(outcomes)


@pytest.mark.parametrize("fmt", [sj.CSF(3), sj.COO(3), sj.Batched(sj.CSR)], ids=str)
@pytest.mark.parametrize("subscripts", ["abc,abd->c", "abc,abd->d", "abc,abd->cd"])
def test_a_parallel_loop_inside_of_one_that_gathers(subscripts: str, fmt: sj.Format) -> None:
    # The loop around was written twice, for long rows and for short ones, and with it the functions
    # of the parallel one inside: an assertion failed.
    A = np.where(np.arange(60).reshape(4, 5, 3) % 4 == 1, np.arange(60.0).reshape(4, 5, 3), 0)
    y = np.arange(40.0).reshape(4, 5, 2)
    kernel = sj.sparse_jit(lambda A, y: sj.einsum(subscripts, A, y), target="cpu")
    result = np.asarray(kernel(sj.asarray(A, format=fmt), y))
    np.testing.assert_array_equal(result, np.einsum(subscripts, A, y))
