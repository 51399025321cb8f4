"""From a library call to its code: what a device runtime does, and what stands in for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, assert_never

from sparsejit.backends.cusparse._descriptors import describer, destroy, make_operands
from sparsejit.backends.cusparse._products import (
    product_phases,
    rows_of_sample,
    why_not_deterministic,
)
from sparsejit.backends.cusparse._replay import replay
from sparsejit.backends.cusparse._rules import broken_rules
from sparsejit.backends.cusparse._sparse_results import (
    make_sum,
    make_unfilled_product,
    sum_phases,
)
from sparsejit.backends.cusparse._sparse_results import product_phases as sparse_product_phases
from sparsejit.backends.cusparse._structured import (
    describe_structured,
    destroy_structured,
    structured_phases,
)
from sparsejit.ir.device_code import (
    LibraryArguments,
    LibraryCode,
    LibraryCodes,
    LibraryPhase,
    LibraryRefusal,
)
from sparsejit.ir.device_statements import DenseMatrix, LibraryCall, LibraryOp, SparseMatrix
from sparsejit.ir.loops import Lit

__all__ = ["library_codes"]


def library_codes(*, deterministic: bool = False) -> LibraryCodes:
    """Return what gives the code of a library call, or why the library is not to compute it.

    With ``deterministic`` a call is refused where no algorithm gives the same bits in every run.
    """
    return partial(_code, deterministic)


def _code(deterministic: bool, call: LibraryCall) -> LibraryCode | LibraryRefusal:
    if deterministic:
        reason = _why_not_deterministic(call)
        if reason is not None:
            return LibraryRefusal(f"deterministic=True, and {reason}")
    match call.op:
        case LibraryOp.SPMV | LibraryOp.SPMM:
            return _of_cusparse(call, call, product_phases(call, deterministic))
        case LibraryOp.SDDMM:
            rows = rows_of_sample(call)
            return _of_cusparse(call, rows, product_phases(rows, deterministic))
        case LibraryOp.SPGEMM:
            phases = sparse_product_phases(call)
            return _finished(
                call, phases, describer(call, make_unfilled_product), destroy, "cusparse"
            )
        case LibraryOp.SPADD:
            return _finished(call, sum_phases(call), describer(call, make_sum), destroy, "cusparse")
        case LibraryOp.NM_SPMM:
            describe = partial(describe_structured, call)
            return _finished(call, structured_phases(), describe, destroy_structured, "cusparseLt")
        case LibraryOp.GEMM:
            return LibraryRefusal("cuSPARSE has no product of dense matrices")
        case _:
            assert_never(call.op)


def _why_not_deterministic(call: LibraryCall) -> str | None:
    match call.op:
        case LibraryOp.SPMV | LibraryOp.SPMM | LibraryOp.SDDMM:
            return why_not_deterministic(call)
        case LibraryOp.SPADD | LibraryOp.NM_SPMM | LibraryOp.GEMM:
            return None
        case LibraryOp.SPGEMM:
            return "SpGEMM may differ from run to run"
        case _:
            assert_never(call.op)


def _of_cusparse(
    call: LibraryCall, as_called: LibraryCall, phases: tuple[LibraryPhase, ...]
) -> LibraryCode:
    """Return the code of ``call``; the library gets the operands of ``as_called``."""
    describe = describer(as_called, make_operands)

    def described(runtime: Any, arguments: LibraryArguments) -> Any:
        return describe(runtime, _in_order(call, as_called, arguments))

    def check(arguments: LibraryArguments) -> Sequence[str]:
        return broken_rules(as_called, _in_order(call, as_called, arguments))

    return _finished(call, phases, described, destroy, "cusparse", check)


def _in_order(
    call: LibraryCall, as_called: LibraryCall, arguments: LibraryArguments
) -> LibraryArguments:
    """Return the arguments with the extents of the operands as the library gets them."""
    output, wanted = call.output, as_called.output
    if not isinstance(output, SparseMatrix) or not isinstance(wanted, SparseMatrix):
        return arguments
    if output.extents == wanted.extents and output.layout is wanted.layout:
        return arguments
    extents = (*arguments.extents[:-1], arguments.extents[-1][::-1])
    return LibraryArguments(arguments.arrays, extents, arguments.alpha, arguments.beta)


def _finished(
    call: LibraryCall,
    phases: tuple[LibraryPhase, ...],
    describe: Any,
    destroy_call: Any,
    library: str,
    check: Any = None,
) -> LibraryCode:
    names = [name for operand in call.inputs for name in _names(operand)]
    written = _names(call.output)
    if isinstance(call.output, SparseMatrix) and not call.targets:
        names += written  # the structure is read, and the values are added onto
        written = written[-1:]
    elif isinstance(call.output, DenseMatrix) and not _overwrites(call):
        names += written

    def replayed(arrays: Mapping[str, Any], arguments: LibraryArguments) -> Mapping[str, Any]:
        return replay(call, arrays, arguments)

    return LibraryCode(
        call,
        library,
        phases,
        describe,
        destroy_call,
        frozenset(names),
        frozenset(written),
        _streamed(call),
        check or partial(broken_rules, call),
        replayed,
    )


def _overwrites(call: LibraryCall) -> bool:
    """Whether ``beta`` is 0: then the library reads nothing of the output."""
    return isinstance(call.beta, Lit) and call.beta.const.value == 0


def _names(operand: SparseMatrix | DenseMatrix) -> list[str]:
    match operand:
        case SparseMatrix(_, _, buffers):
            return [buffer.name for buffer in buffers]
        case DenseMatrix(memref):
            return [memref.name]
        case _:
            assert_never(operand)


def _streamed(call: LibraryCall) -> frozenset[str]:
    """Return the operands that are read once, in order: the entries of the sparse operand.

    A sampled product adds onto the values, so it streams the structure alone. Sparse sums and
    products of two sparse matrices go through their operands once for each phase. A matrix that
    all results of a batch share is read for each of them.
    """
    match call.op:
        case LibraryOp.SPMV | LibraryOp.SPMM | LibraryOp.NM_SPMM:
            matrix, names = call.inputs[0], _names(call.inputs[0])
        case LibraryOp.SDDMM:
            matrix, names = call.output, _names(call.output)[:-1]
        case LibraryOp.SPGEMM | LibraryOp.SPADD | LibraryOp.GEMM:
            return frozenset()
        case _:
            assert_never(call.op)
    assert isinstance(matrix, SparseMatrix)
    is_shared = call.is_batched and len(matrix.extents) == 2
    return frozenset() if is_shared else frozenset(names)
