"""The hand-written programs on each backend, against NumPy."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsejit.backends import BACKENDS
from sparsejit.backends.numba_cpu import NumbaBackend
from sparsejit.backends.python_source import emit_python
from sparsejit.errors import BackendError, TensorTypeError
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Copy,
    DenseResult,
    DimOf,
    For,
    Let,
    LoopFunc,
    Memref,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType
from sparsejit.ir.verify_loops import verify_loops
from tests.backends.loop_programs import PROGRAMS
from tests.backends.loop_writing import (
    F64,
    add,
    binary,
    function,
    index,
    load,
    memref,
    number,
    run,
    var,
)


def _same(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    wide = np.float64 if actual.dtype.kind in "fV" else actual.dtype
    np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=1e-6)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs_agree_with_numpy(backend: str, name: str) -> None:
    program = PROGRAMS[name]()
    verify_loops(program.func)
    given = program.arguments()
    before = [
        np.copy(argument) if isinstance(argument, np.ndarray) else argument for argument in given
    ]
    results = run(backend, program.func, *given)
    for actual, expected in zip(results, program.expected(*before), strict=True):
        _same(actual, expected)
    assigned = program.assigned(*before)
    for place, argument in enumerate(given):
        if isinstance(argument, np.ndarray):
            _same(argument, assigned.get(place, before[place]))


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_arguments_may_have_any_strides_and_be_read_only(backend: str) -> None:
    x, y = memref("x", rank=2), memref("y", rank=2)
    i, j = var("i"), var("j")
    inner = For(j, index(0), DimOf(x, 1), (Store(y, (i, j), load(x, i, j)),))
    body = (Alloc(y, (DimOf(x, 0), DimOf(x, 1))), For(i, index(0), DimOf(x, 0), (inner,)))
    kernel = BACKENDS[backend].load(BACKENDS[backend].emit(function("f", [x], body, y)))
    base = np.arange(48.0).reshape(6, 8)
    locked = base.copy()
    locked.flags.writeable = False
    unaligned = np.zeros(6 * 8 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(6, 8)
    unaligned[:] = base
    for array in (
        base,
        base.T,
        base[::-2, 1::3],
        np.broadcast_to(base[0], (3, 8)),
        locked,
        unaligned,
    ):
        (result,) = kernel([array])
        np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("rank", range(6))
def test_copies_of_any_rank(backend: str, rank: int) -> None:
    x, y = memref("x", rank=rank), memref("y", rank=rank)
    body = (Alloc(y, tuple(DimOf(x, axis) for axis in range(rank))), Copy(y, x))
    array = np.arange(2.0**rank).reshape((2,) * rank).T
    (result,) = run(backend, function("f", [x], body, y), array)
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_arguments_of_another_type_are_refused(backend: str) -> None:
    x = memref("x")
    kernel = BACKENDS[backend].load(BACKENDS[backend].emit(function("f", [var("d0"), x], ())))
    for wrong in (np.zeros(2, np.float32), np.zeros((2, 2)), np.zeros(2, ">f8")):
        with pytest.raises(TensorTypeError, match="'x' must be an array of float64 and rank 1"):
            kernel([2, wrong])
    with pytest.raises(TensorTypeError, match="'x' must be an array, not of type list"):
        kernel([2, [1.0]])
    with pytest.raises(TensorTypeError, match="takes 2 arguments, not 1"):
        kernel([2])


def test_what_numba_refuses_names_the_kernel_and_the_cause() -> None:
    x = memref("x")
    undefined = Let(var("s", F64), Var("nowhere", F64))
    func = function("broken", [x], (undefined,))
    backend = BACKENDS["numba"]
    source = backend.emit(function("broken", [x, Var("nowhere", F64)], (undefined,)))
    source = type(source)(source.entry, source.text.replace(", nowhere", ""), func)
    with pytest.raises(BackendError, match=r"Numba cannot compile 'broken': (?s:.*)nowhere"):
        backend.load(source, cache=False)([np.zeros(1)])


def test_one_kernel_serves_several_threads() -> None:
    program = PROGRAMS["spmv"]()
    backend = BACKENDS["numba"]
    kernel = backend.load(backend.emit(program.func))
    wrong = []

    def work() -> None:
        for _ in range(50):
            given = program.arguments()
            results: Any = kernel(given)
            if not np.allclose(results[0], program.expected(*given)[0]):
                wrong.append(given)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_shows_what_was_never_written() -> None:
    y, z = memref("y"), memref("z", DType.INT32)
    body = (Alloc(y, (index(2),)), Alloc(z, (index(2),)))
    floats, integers = run("interpreter", function("f", [], body, y, z))
    assert np.isnan(floats).all()
    assert (integers == np.int32(-0x5A5A5A5B)).all()


def test_reassociation_keeps_nan_inf_and_the_rest_of_the_formula() -> None:
    x, total, rest = memref("x"), memref("total"), memref("rest")
    i, s = var("i"), var("s", F64)
    huge = number(1e16)
    shifted = binary(BinaryOp.SUB, add(load(x, i), huge), huge)
    step = (Assign(s, add(s, load(x, i))), Store(rest, (i,), shifted))
    body = (
        Alloc(total, (index(1),)),
        Alloc(rest, (DimOf(x, 0),)),
        Let(s, number(0.0), mutable=True),
        For(i, index(0), DimOf(x, 0), step, reductions=((s, BinaryOp.ADD),)),
        Store(total, (index(0),), s),
    )
    func = function("f", [x], body, total, rest)
    kernel = NumbaBackend(reassociate=True).load(emit_python(func))
    for special in ([], [np.inf], [np.inf, -np.inf], [np.nan], [-np.inf, 1.0]):
        array = np.ones(101)
        array[: len(special)] = special
        results: Any = kernel([array])
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(results[0][0], array.sum())
        np.testing.assert_array_equal(results[1], (array + 1e16) - 1e16)


def test_a_traceback_of_the_interpreter_shows_the_generated_line() -> None:
    x = memref("x")
    func = function("oops", [x], [Store(x, (index(7),), number(1.0))])
    with pytest.raises(IndexError) as caught:
        run("interpreter", func, np.zeros(3))
    assert "x[7] = 1.0" in str(caught.getrepr())


@pytest.mark.parametrize("dtype", [DType.INT8, DType.BOOL, DType.UINT64, DType.FLOAT32])
def test_undefined_memory_of_rank_0_can_be_allocated(dtype: DType) -> None:
    """The pattern that marks undefined memory is bytes: it fits every type, whatever the rank."""
    value = Memref("value", dtype, 0)
    func = LoopFunc("fresh", (), (Alloc(value, ()),), (DenseResult(value),))
    (result,) = BACKENDS["interpreter"].load(BACKENDS["interpreter"].emit(func))([])
    assert isinstance(result, np.ndarray)
    assert result.shape == ()
