"""Running a kernel on the operands of a call.

In: a program, its kernel and the described operands. Out: the object that the user's function
returns: NumPy arrays, sparse arrays in the caller's kind, NumPy scalars for rank 0, the caller's
own object where an argument is returned. An exception leaves the caller's arrays as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from sparsejit.affine import evaluate
from sparsejit.api._aliases import check_assignable, copies_needed
from sparsejit.api._memory import TOO_LARGE, out_of_memory
from sparsejit.api._program import Compiled, Program
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loops import DenseResult, ParamResult, SparseResult
from sparsejit.tensors import Operand, buffer_names, scipy_index_dtype, wrap_result
from sparsejit.trace import ResultRef

__all__ = ["result_tree", "run_compiled"]


def run_compiled(
    program: Program,
    compiled: Compiled,
    numbers: Sequence[int],
    operands: Sequence[Operand],
    objects: Sequence[object],
    names: Sequence[str],
) -> Any:
    """Run and return the results in the user's structure; ``objects`` are the caller's own."""
    try:
        flat = _kernel_results(program, compiled, numbers, operands, names)
        like_scipy = any(operand.kind.startswith("scipy") for operand in operands)
        results = list(_results(compiled, numbers, iter(flat), objects, like_scipy))
    except MemoryError as error:
        raise out_of_memory(program.func, numbers, error) from error
    except ValueError as error:
        if not str(error).startswith(TOO_LARGE):
            raise
        raise out_of_memory(program.func, numbers, error) from error
    return result_tree(program.traced.result, results)


def _kernel_results(
    program: Program,
    compiled: Compiled,
    numbers: Sequence[int],
    operands: Sequence[Operand],
    names: Sequence[str],
) -> Sequence[Any]:
    """Run the kernel; what it assigns is written to the caller's objects."""
    assigned = program.aliases.assigned
    if assigned:
        for number in assigned:
            check_assignable(operands[number], names[number])
        operands = list(operands)
        for number in copies_needed(program.aliases, operands, names):
            operands[number] = _copied(operands[number])
        with _unchanged_on_error([operands[number] for number in assigned]):
            flat = compiled.kernel(program.arguments(numbers, operands))
        for number in assigned:
            if not operands[number].is_shared:
                operands[number].write_values(operands[number].values)
        return flat
    return compiled.kernel(program.arguments(numbers, operands))


def _copied(operand: Operand) -> Operand:
    """Return the operand with buffers of its own."""
    buffers = tuple(np.array(buffer, order="K") for buffer in operand.buffers)
    return replace(operand, buffers=buffers, source=None)


@contextmanager
def _unchanged_on_error(written: Sequence[Operand]) -> Iterator[None]:
    """Give the values of these operands back when what is done to them fails."""
    before = [operand.values.copy() for operand in written]
    try:
        yield
    except BaseException:
        for operand, values in zip(written, before, strict=True):
            operand.values[...] = values
        raise


def _results(
    compiled: Compiled,
    numbers: Sequence[int],
    flat: Iterator[Any],
    objects: Sequence[object],
    like_scipy: bool,
) -> Iterator[Any]:
    for result in compiled.loops.results:
        match result:
            case DenseResult():
                array = next(flat)
                yield array if array.ndim else array[()]
            case SparseResult():
                yield _sparse(result, numbers, flat, like_scipy)
            case ParamResult(index):
                yield objects[index]
            case _:
                assert_never(result)


def _sparse(
    result: SparseResult, numbers: Sequence[int], flat: Iterator[Any], like_scipy: bool
) -> Any:
    shape = tuple(evaluate(extent, numbers) for extent in result.shape)
    buffers = [next(flat) for _ in result.buffers]
    fmt = result.format
    # SciPy's rule wants to know what is stored, which is known only now; named widths stay.
    wanted = scipy_index_dtype(shape, buffers[-1].size)
    for number, (_, kind) in enumerate(buffer_names(fmt)):
        width = fmt.pos_width if kind == "positions" else fmt.crd_width
        if width == 0:
            buffers[number] = buffers[number].astype(wanted, copy=False)
    fill = np.asarray(result.fill.value).astype(numpy_dtype(result.fill.dtype))[()]
    return wrap_result(fmt, shape, buffers, fill, "scipy" if like_scipy else "native")


def result_tree(tree: object, results: Sequence[object]) -> Any:
    """Return ``tree`` with each ``ResultRef`` replaced by that result.

    >>> result_tree((ResultRef(1), {"k": [ResultRef(0), "static"]}), [10, 20])
    (20, {'k': [10, 'static']})
    """
    match tree:
        case ResultRef(index):
            return results[index]
        case tuple():
            parts = [result_tree(item, results) for item in tree]
            return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
        case list():
            return [result_tree(item, results) for item in tree]
        case dict():
            return {key: result_tree(item, results) for key, item in tree.items()}
        case _:
            return tree
