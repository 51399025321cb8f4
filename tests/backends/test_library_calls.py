"""Library calls: what the library would compute is what the generated loops compute.

Every program that the recognizer accepts is lowered; the operands of its call are taken from real
buffers, handed to the replay as the library would get them, and compared with the loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import sparsejit as sj
from sparsejit.affine import Dim
from sparsejit.backends import BACKENDS
from sparsejit.backends.cusparse import library_codes
from sparsejit.ir.device_code import (
    DeviceArray,
    LibraryArguments,
    LibraryCode,
    LibraryRefusal,
)
from sparsejit.ir.device_statements import DenseMatrix, LibraryCall, LibraryOp, SparseMatrix
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loop_walk import free_memrefs, free_vars, library_memrefs
from sparsejit.ir.loops import Alloc, DenseResult, Expr, Let, LoopFunc, Memref, Stmt, Store, Var
from sparsejit.ir.types import DType
from sparsejit.tensors import operand_of
from tests.sparsify_and_bufferize.library_programs import ACCEPTED, Case, dense, product, sparse
from tests.sparsify_and_bufferize.test_library_kernels import calls_of, loops_of
from tests.trace.harness import Operand, operand, traced

Arrays = dict[str, NDArray[Any]]
DTYPES = {numpy_dtype(dtype): dtype for dtype in DType}


def buffers_of(value: Any) -> tuple[Any, ...]:
    """Return the buffers of an argument as kernels take them."""
    if isinstance(value, Operand):
        return operand_of(sj.asarray(value.array, format=value.format)).buffers
    return (np.asarray(value),)


def arguments_of(case: Case, func: LoopFunc) -> Mapping[str, Any]:
    """Return the arguments of a lowered program by the names of its parameters."""
    _, operands = case
    flat = [buffer.copy() for value in operands for buffer in buffers_of(value)]
    extents = [param for param in func.params if isinstance(param, Var)]
    extents = extents[: len(func.params) - len(flat)]
    rest = func.params[len(extents) :]
    found: dict[str, Any] = {p.name: array for p, array in zip(rest, flat, strict=True)}
    for param in rest:
        if isinstance(param, Var):
            found[param.name] = np.asarray(found[param.name])[()]
    shapes = [operand(value).dense.shape for value in operands]
    known: dict[str, int] = {}
    for extent, size in zip(extents, _extents(case, shapes), strict=True):
        known[extent.name] = size
    return {**known, **found}


def _extents(case: Case, shapes: list[tuple[int, ...]]) -> list[int]:
    """The extents of the symbols: those of the trace, in order of first appearance."""
    fn, operands = case
    func = traced(fn, *operands).func
    found: dict[int, int] = {}
    for param, shape in zip(func.params, shapes, strict=True):
        for expr, size in zip(param.type.shape, shape, strict=True):
            if isinstance(expr, Dim):
                found.setdefault(expr.index, size)
    return [found[number] for number in range(func.num_extents)]


def evaluated(expr: Expr, known: Mapping[str, Any], dtype: DType) -> Any:
    """Return the value of an expression over the arguments, by the interpreter."""
    out = Memref("out", dtype, 0)
    params = free_vars((Let(Var("value", dtype), expr),))
    body: tuple[Stmt, ...] = (Alloc(out, ()), Store(out, (), expr))
    func = LoopFunc("value", params, body, (DenseResult(out),))
    backend = BACKENDS["interpreter"]
    (array,) = backend.load(backend.emit(func))([known[var.name] for var in params])
    return np.asarray(array)[()]


def call_arguments(call: LibraryCall, known: Mapping[str, Any], arrays: Arrays) -> LibraryArguments:
    """Return the run-time arguments of a call: addresses are those of NumPy arrays."""
    extents = [
        tuple(int(evaluated(extent, known, DType.INT64)) for extent in matrix.extents)
        if isinstance(matrix, SparseMatrix)
        else ()
        for matrix in (*call.inputs, call.output)
    ]
    dtype = library_memrefs(call.output)[-1].dtype.compute
    scalars = [evaluated(scalar, known, dtype) for scalar in (call.alpha, call.beta)]
    return LibraryArguments(
        {name: device_array(array) for name, array in arrays.items()}, tuple(extents), *scalars
    )


def device_array(array: NDArray[Any]) -> DeviceArray:
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return DeviceArray(array.ctypes.data, DTYPES[array.dtype], array.shape, strides)


def lowered_call(name: str) -> tuple[LibraryCall, Mapping[str, Any], Arrays]:
    """Return the call of an accepted program with buffers for all memrefs that it reads."""
    case = ACCEPTED[name]
    func = loops_of(case)
    known = dict(arguments_of(case, func))
    (call,) = calls_of(func)
    targets = {target.name for target in call.targets}
    arrays: Arrays = {}
    for matrix in (*call.inputs, call.output):
        for memref in library_memrefs(matrix):
            if memref.name in known:
                arrays[memref.name] = known[memref.name]
            elif memref.name not in targets:
                arrays[memref.name] = new_array(case, func, memref, known)
    return call, known, arrays


def new_array(case: Case, func: LoopFunc, memref: Memref, known: Mapping[str, Any]) -> Any:
    """Return the array that the statements before a call make for ``memref``."""
    (call,) = calls_of(func)
    before = func.body[: func.body.index(call)]
    assert memref.rank in (1, 2, 3)
    made = LoopFunc("before", func.params, (*before,), (DenseResult(memref),))
    backend = BACKENDS["interpreter"]
    kernel = backend.load(backend.emit(made))
    return kernel([known[param.name] for param in func.params])[0]


def run_loops(call: LibraryCall, known: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Return what the loops of a call leave in the memrefs that it writes."""
    params: tuple[Memref | Var, ...] = (
        *free_vars(call.otherwise),
        *free_memrefs(call.otherwise),
    )
    results = call.targets or (library_memrefs(call.output)[-1],)
    written = tuple(DenseResult(memref) for memref in results)
    func = LoopFunc("otherwise", params, call.otherwise, written)
    backend = BACKENDS["interpreter"]
    kernel = backend.load(backend.emit(func))
    values = {**known, **{name: array.copy() for name, array in arrays.items()}}
    found = kernel([values[param.name] for param in params])
    return {memref.name: np.asarray(array) for memref, array in zip(results, found, strict=True)}


@pytest.mark.parametrize("name", sorted(set(ACCEPTED) - {"gemm", "gemm of a transpose"}))
def test_a_call_computes_what_its_loops_compute(name: str) -> None:
    call, known, arrays = lowered_call(name)
    code = library_codes()(call)
    assert isinstance(code, LibraryCode)
    arguments = call_arguments(call, known, arrays)
    if call.op is LibraryOp.NM_SPMM:  # small for the library, right all the same
        assert any("multiples of 16" in rule for rule in code.check(arguments))
    elif name == "interleaved batch":
        apart = [f"matrices of a batch are {stride} elements apart" for stride in (3, 4)]
        assert code.check(arguments) == apart
    else:
        assert code.check(arguments) == []
    before = {key: array.copy() for key, array in arrays.items()}
    got = code.replay(arrays, arguments)
    expected = run_loops(call, known, arrays)
    assert set(got) == set(expected) == set(code.writes)
    for key, array in expected.items():
        assert got[key].dtype == array.dtype
        assert_allclose(
            got[key].astype(complex), array.astype(complex), rtol=2e-3, atol=0, err_msg=key
        )
    for key, array in before.items():
        assert_array_equal(arrays[key], array)


def test_what_is_read_and_written() -> None:
    call, _, _ = lowered_call("sddmm in place")
    code = library_codes()(call)
    assert isinstance(code, LibraryCode)
    assert code.reads == {"U", "V", "S_pos1", "S_crd1", "S_vals"}
    assert code.writes == {"S_vals"}
    assert code.streamed == {"S_pos1", "S_crd1"}
    call, _, _ = lowered_call("spmv csr")
    code = library_codes()(call)
    assert isinstance(code, LibraryCode)
    assert code.streamed == {"A_pos1", "A_crd1", "A_vals"}
    assert code.writes == {"b0"}


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("spmv csr", False),
        ("spmv csc", True),
        ("spmv coo", False),
        ("spmv of a transpose", True),
        ("spmm bsr", True),
        ("spmm csr", False),
        ("sddmm csc", False),
        ("spgemm csr", True),
        ("add csr", False),
    ],
)
def test_the_same_bits_in_every_run(name: str, refused: bool) -> None:
    call, _, _ = lowered_call(name)
    code = library_codes(deterministic=True)(call)
    assert isinstance(code, LibraryRefusal) is refused
    if isinstance(code, LibraryRefusal):
        assert code.reason.startswith("deterministic=True, and Sp")


def broken(name: str, **changes: Any) -> list[str]:
    """Return the rules that a call breaks after changes to its arrays (by name) or extents."""
    call, known, arrays = lowered_call(name)
    code = library_codes()(call)
    assert isinstance(code, LibraryCode)
    arguments = call_arguments(call, known, arrays)
    changed = {
        key: replace(array, **changes[key]) if key in changes else array
        for key, array in arguments.arrays.items()
    }
    extents = changes.get("extents", arguments.extents)
    return list(code.check(replace(arguments, arrays=changed, extents=extents)))


def test_every_rule_of_the_library_can_break() -> None:
    assert broken("spmv csr", A_vals={"shape": (0,)}) == ["a sparse operand stores nothing"]
    assert broken("spmv csr", x={"shape": (0,)}) == ["an operand has no elements"]
    assert broken("spmv csr", x={"strides": (2,)}) == ["a dense vector has gaps"]
    assert broken("spmm csr", x={"strides": (7, 2)}) == ["a dense matrix has gaps"]
    assert broken("spmv csr", x={"pointer": 4}) == ["an array of float64 is not aligned to 8 bytes"]
    assert broken("spmv csr", A_vals={"shape": (25,)}) == ["25 entries in 4 by 6"]
    assert broken("spmv csr", A_pos1={"dtype": DType.INT64}) == ["indices of int32 and int64"]
    assert broken("spmv csr", A_pos1={"dtype": DType.UINT32}, A_crd1={"dtype": DType.UINT32}) == [
        "indices of uint32"
    ]
    assert broken("spmv bsr", extents=((5, 6), (), ())) == [
        "blocks of 2 by 2 do not divide the matrix"
    ]
    wide = {"shape": (6, 65535 * 16 + 1), "strides": (65535 * 16 + 1, 1)}
    result = {"shape": (4, 65535 * 16 + 1), "strides": (65535 * 16 + 1, 1)}
    assert broken("spmm csr", x=wide, b0=result) == ["1048561 columns are more than 1048560"]
    wider = {"dtype": DType.INT64}
    assert (
        broken("add csr", A_pos1=wider, A_crd1=wider, B_pos1=wider, B_crd1=wider)
        == ["sparse sums have 32-bit indices"] * 2
    )
    assert "extents of a 2:4 product are not multiples of 16" in broken("2:4 spmm float16")


def test_dense_operands_in_either_order() -> None:
    by_columns = (product, (sparse(4, 6), np.asfortranarray(dense(6, 3))))
    func = loops_of(by_columns)
    (call,) = calls_of(func)
    known = dict(arguments_of(by_columns, func))
    known["x"] = np.asfortranarray(known["x"])
    arrays = {name: known[name] for name in ("A_pos1", "A_crd1", "A_vals", "x")}
    arrays["b0"] = np.zeros((4, 3))
    code = library_codes()(call)
    assert isinstance(code, LibraryCode)
    assert code.check(call_arguments(call, known, arrays)) == []
    assert isinstance(call.output, DenseMatrix)
