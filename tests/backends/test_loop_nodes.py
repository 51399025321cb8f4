"""Every statement and expression of the loop IR, run on each backend: none is left out.

What is missing from the hand-written programs is here: sorts of a part, assembling, functions of
the user, products by a library, and reductions of every operation and type in parallel loops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsejit.backends import BACKENDS
from sparsejit.backends.llvm._engine import thread_pool
from sparsejit.formats import CSR
from sparsejit.ir.device_statements import (
    DenseMatrix,
    Launch,
    LibraryCall,
    LibraryOp,
    ReadBack,
    Require,
)
from sparsejit.ir.fold import identity_const, numpy_dtype
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Call,
    Cast,
    DimOf,
    Expr,
    For,
    Let,
    Lit,
    LoopFunc,
    SelectMemref,
    SortPrefix,
    Stmt,
    Store,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import UserFunction
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from tests.backends.loop_programs import PROGRAMS
from tests.backends.loop_writing import (
    F64,
    binary,
    function,
    index,
    less,
    load,
    memref,
    mul,
    number,
    run,
    var,
)
from tests.backends.test_operations import ARITHMETIC
from tests.backends.test_python_source import assemble, targets_of

ON_DEVICES = {Launch, ReadBack, Require}
"""What only a device is given; ``test_cuda_kernels`` and ``test_device_statements`` run it."""

i, j, k, n = var("i"), var("j"), var("k"), var("n")


def _halved(value: float) -> float:
    """A function that is called as it is."""
    return value / 2 if value > 0 else -value


def sort_of_a_part() -> LoopFunc:
    numbers = memref("numbers", INDEX)
    return function("sort", [n, numbers], [SortPrefix(numbers, n)])


def user_function() -> LoopFunc:
    halved = UserFunction("halved", "digestofhalved", (F64,), F64, function=_halved)
    x = memref("x")
    store = Store(x, (i,), Call(halved, (load(x, i),)))
    return function("user", [x], [For(i, index(0), DimOf(x, 0), (store,))])


def library_product() -> LoopFunc:
    a, b, c = memref("a", rank=2), memref("b", rank=2), memref("c", rank=2)
    term = mul(number(2.0), mul(load(a, i, k), load(b, k, j)))
    nest: Stmt = Store(c, (i, j), term, BinaryOp.ADD)
    for loop, extent in ((k, DimOf(a, 1)), (j, DimOf(b, 1)), (i, DimOf(a, 0))):
        nest = For(loop, index(0), extent, (nest,))
    inputs, output = (DenseMatrix(a), DenseMatrix(b)), DenseMatrix(c)
    call = LibraryCall(LibraryOp.GEMM, inputs, output, number(2.0), number(1.0), (nest,))
    return function("product", [a, b, c], [call])


def assembled() -> LoopFunc:
    return assemble(CSR, targets_of(CSR))


def one_of_two() -> LoopFunc:
    x, y, out, shown = memref("x"), memref("y"), memref("out"), memref("shown")
    copy = Store(out, (i,), load(shown, i))
    chosen = SelectMemref(shown, less(n, DimOf(x, 0)), x, y)
    body: list[Stmt] = [chosen, For(i, index(0), DimOf(shown, 0), (copy,))]
    return function("one", [n, x, y, out], body)


MORE: dict[str, Callable[[], LoopFunc]] = {
    made.__name__: made
    for made in (sort_of_a_part, user_function, library_product, assembled, one_of_two)
}


def _nodes(part: object) -> Iterator[type]:
    if isinstance(part, tuple):
        for element in part:
            yield from _nodes(element)
    elif dataclasses.is_dataclass(part):
        yield type(part)
        for field in dataclasses.fields(part):
            yield from _nodes(getattr(part, field.name))


def test_every_node_is_in_a_program() -> None:
    funcs = [*(made().func for made in PROGRAMS.values()), *(made() for made in MORE.values())]
    for func in funcs:
        verify_loops(func)
    found = {node for func in funcs for node in _nodes(func.body)}
    assert {*get_args(Stmt), *get_args(Expr)} - found == ON_DEVICES


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_part_is_sorted(backend: str) -> None:
    for count in (0, 1, 2, 40, 90):
        numbers = np.random.default_rng(count).permutation(90) * 10**6
        expected = np.append(np.sort(numbers[:count]), numbers[count:])
        run(backend, sort_of_a_part(), count, numbers)
        np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_function_of_the_user_is_called(backend: str) -> None:
    x = np.array([1.0, -3.0, 0.0, 7.0])
    run(backend, user_function(), x)
    np.testing.assert_array_equal(x, [0.5, 3.0, 0.0, 3.5])


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_product_by_a_library_adds_to_its_output(backend: str) -> None:
    rng = np.random.default_rng(3)
    for rows, inner, columns in ((3, 4, 5), (90, 80, 70), (0, 2, 3), (2, 0, 3)):
        a, b = rng.integers(-3, 4, (rows, inner)) * 1.0, rng.integers(-3, 4, (inner, columns)) * 1.0
        c = np.ones((rows, columns))
        run(backend, library_product(), a, b, c)
        np.testing.assert_array_equal(c, 1 + 2 * (a @ b))


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_entries_are_assembled(backend: str) -> None:
    rows, columns = np.array([0, 0, 2]), np.array([1, 3, 0])
    given = (3, 4, 3, rows, columns, np.array([1.0, 2.0, 3.0]))
    positions, coordinates, values = run(backend, assembled(), *given)
    assert positions.tolist() == [0, 2, 2, 3]
    assert coordinates.tolist() == [1, 3, 0]
    assert values.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_an_array_is_one_of_two(backend: str) -> None:
    """Other extents and strides, too: what is shown is the array itself."""
    x, y = np.arange(3.0), np.arange(20.0)[::4]
    for count, expected in ((2, [*x, -1, -1]), (3, [*y])):
        out = np.full(5, -1.0)
        run(backend, one_of_two(), count, x, y, out)
        assert out.tolist() == expected


# ---------------------------------------------------------------- reductions


def _reductions(dtype: DType) -> list[BinaryOp]:
    from sparsejit.backends._spellings import is_legal_binary

    return [
        op
        for op in BinaryOp
        if op.info.associative
        and op.info.commutative
        and is_legal_binary(op, dtype)
        and identity_const(op, dtype) is not None
    ]


def _reducing(dtype: DType) -> LoopFunc:
    """A parallel loop that reduces into a variable and into an array, one for each operation."""
    x, places = memref("x", dtype), memref("places", INDEX)
    body: list[Stmt] = []
    outs = []
    for place, op in enumerate(_reductions(dtype)):
        start = identity_const(op, dtype)
        assert start is not None
        total, at = var(f"total{place}", dtype), var(f"i{place}")
        one, some = memref(f"one{place}", dtype), memref(f"some{place}", dtype)
        value = load(x, at) if dtype is not DType.INT32 else Cast(load(x, at), dtype)
        steps = (
            Assign(total, binary(op, total, value)),
            Store(some, (load(places, at),), value, op),
        )
        body += [
            Alloc(one, (index(1),), start),
            Alloc(some, (index(3),), start),
            Let(total, Lit(start), mutable=True),
            For(at, index(0), DimOf(x, 0), steps, True, ((total, op), (some, op))),
            Store(one, (index(0),), total),
        ]
        outs += [one, some]
    return function(f"reducing_{dtype.short}", [x, places], body, *outs)


def _values(dtype: DType) -> NDArray[Any]:
    """Numbers whose sums and products are exact, or wrap."""
    kind = numpy_dtype(dtype)
    if dtype is DType.BOOL:
        truths: NDArray[Any] = np.arange(60) % 7 != 0
        return truths
    if dtype.is_integer:
        whole: NDArray[Any] = (np.arange(60) * 37 + 1).astype(kind)
        return whole
    powers = np.array([1, 2, -1, 0.5, -4, 0.25])[np.arange(60) % 6]
    exact: NDArray[Any] = (powers * (1j if dtype.is_complex else 1)).astype(kind)
    return exact


@pytest.fixture(params=[1, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many threads for every parallel loop, however little it does."""
    pool = thread_pool()
    before = pool.limits
    pool.set_limits(request.param, 0)
    yield request.param
    pool.set_limits(*before)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=lambda dtype: dtype.short)
def test_reductions_are_numpys(backend: str, dtype: DType, threads: int) -> None:
    x, places = _values(dtype), np.arange(60) % 3
    results = iter(run(backend, _reducing(dtype), x, places))
    for op in _reductions(dtype):
        ufunc = getattr(np, op.info.numpy)
        one, some = next(results), next(results)
        identity = identity_const(op, dtype)
        assert identity is not None
        start = x.dtype.type(identity.value)
        expected = [start, start, start]
        whole = start
        with np.errstate(all="ignore"):
            for place, value in zip(places, x, strict=True):
                expected[place] = ufunc(expected[place], value)
                whole = ufunc(whole, value)
        np.testing.assert_array_equal(one, np.array([whole], x.dtype), err_msg=str(op))
        np.testing.assert_array_equal(some, np.array(expected, x.dtype), err_msg=str(op))
