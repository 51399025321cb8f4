"""Running a kernel on the operands of a call.

In: a program, its kernel and the described operands. Out: the object that the user's function
returns: NumPy arrays, sparse arrays in the caller's kind, NumPy scalars for rank 0, the caller's
own object where an argument is returned. An exception leaves the caller's arrays as they were, or
names those that a device may have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import evaluate
from sparsejit.api._aliases import check_assignable, copies_needed
from sparsejit.api._memory import TOO_LARGE, may_be_too_large, out_of_memory, refuse_too_large
from sparsejit.api._program import Compiled, Program
from sparsejit.backends import OnDevice
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loops import DenseResult, Memref, ParamResult, Result, SparseResult, Var
from sparsejit.tensors import Like, Operand, buffer_names, result_maker, scipy_index_dtype
from sparsejit.trace import ResultRef

__all__ = ["ResultRecipe", "result_tree", "run_compiled"]


def run_compiled(
    program: Program,
    compiled: Compiled,
    numbers: Sequence[int],
    operands: Sequence[Operand],
    objects: Sequence[object],
    names: Sequence[str],
) -> Any:
    """Run and return the results in the user's structure; ``objects`` are the caller's own."""
    if may_be_too_large(numbers):
        refuse_too_large(program.func, compiled.loops, numbers)
    try:
        flat = _kernel_results(program, compiled, numbers, operands, names)
        return ResultRecipe.of(program, compiled, numbers, operands).results(flat, objects)
    except MemoryError as error:
        raise out_of_memory(program.func, numbers, error) from error
    except ValueError as error:
        if not str(error).startswith(TOO_LARGE):
            raise
        raise out_of_memory(program.func, numbers, error) from error


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
        written = [operands[number] for number in assigned]
        # A device says itself what may have changed; copies would cost more than its kernels.
        is_on_device = isinstance(compiled.kernel, OnDevice)
        with nullcontext() if is_on_device else _unchanged_on_error(written):
            flat = _run_kernel(program, compiled, numbers, operands, names)
        for number in assigned:
            if not operands[number].is_shared:
                operands[number].write_values(operands[number].values)
        return flat
    return _run_kernel(program, compiled, numbers, operands, names)


def _run_kernel(
    program: Program,
    compiled: Compiled,
    numbers: Sequence[int],
    operands: Sequence[Operand],
    names: Sequence[str],
) -> Sequence[Any]:
    arguments = program.arguments(numbers, operands)
    if isinstance(compiled.kernel, OnDevice):
        params = compiled.loops.params[len(numbers) :]
        return compiled.kernel.run(arguments, lambda: _described(params, operands, names))
    return compiled.kernel(arguments)


def _described(
    params: Sequence[Memref | Var], operands: Sequence[Operand], names: Sequence[str]
) -> dict[str, str]:
    """Return what users call each array of their arguments, by its memref."""
    words: list[str] = []
    for operand, name in zip(operands, names, strict=True):
        if operand.is_dense:
            words.append(repr(name))
            continue
        parts = buffer_names(operand.format)
        kinds = [kind for _, kind in parts]
        for level, kind in parts:
            where = f" in level {level}" if kinds.count(kind) > 1 else ""
            words.append(f"the {kind}{where} of {name!r}")
        words.append(f"the values of {name!r}")
    return {param.name: text for param, text in zip(params, words, strict=True)}


def _copied(operand: Operand) -> Operand:
    """Return the operand with buffers of its own."""
    buffers = tuple(
        np.array(buffer, order="K") if isinstance(buffer, np.ndarray) else buffer.copy()
        for buffer in operand.buffers
    )
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


@dataclass(frozen=True, slots=True, eq=False)
class ResultRecipe:
    """How the arrays of a kernel become what the user's function returns."""

    tree: object
    makers: tuple[Callable[[Iterator[Any], Sequence[object]], Any], ...]
    is_first_array: bool
    """Whether the one result is the first array as it is."""

    @staticmethod
    def of(
        program: Program, compiled: Compiled, numbers: Sequence[int], operands: Sequence[Operand]
    ) -> ResultRecipe:
        """Return the recipe for calls with these extents and kinds of operands."""
        like = _like(operands)
        results = compiled.results
        tree = program.traced.result
        makers = tuple(_maker(result, numbers, like) for result in results)
        is_array = (
            isinstance(tree, ResultRef)
            and tree.index == 0
            and len(results) == 1
            and isinstance(results[0], DenseResult)
            and results[0].memref.rank > 0
        )
        return ResultRecipe(tree, makers, is_array)

    def results(self, flat: Sequence[Any], objects: Sequence[object]) -> Any:
        """Return the results in the user's structure; ``objects`` are the caller's own."""
        arrays = iter(flat)
        return result_tree(self.tree, [make(arrays, objects) for make in self.makers])


def _like(operands: Sequence[Operand]) -> Like:
    """Return which library's sparse class the results have: that of the operands."""
    kinds = [operand.kind for operand in operands]
    if "cupyx" in kinds:
        return "cupyx"
    return "scipy" if any(kind.startswith("scipy") for kind in kinds) else "native"


def _maker(
    result: Result, numbers: Sequence[int], like: Like
) -> Callable[[Iterator[Any], Sequence[object]], Any]:
    match result:
        case DenseResult():
            return lambda flat, _: _array_or_scalar(next(flat))
        case SparseResult():
            return _sparse_maker(result, numbers, like)
        case ParamResult(index):
            return lambda _, objects: objects[index]
        case _:
            assert_never(result)


def _array_or_scalar(array: Any) -> Any:
    return array if array.ndim else array[()]


def _sparse_maker(
    result: SparseResult, numbers: Sequence[int], like: Like
) -> Callable[[Iterator[Any], Sequence[object]], Any]:
    shape = tuple(evaluate(extent, numbers) for extent in result.shape)
    fmt = result.format
    widths = [
        fmt.pos_width if kind == "positions" else fmt.crd_width for _, kind in buffer_names(fmt)
    ]
    count = len(result.buffers)
    fill = np.asarray(result.fill.value).astype(numpy_dtype(result.fill.dtype))[()]
    open_widths = [number for number, width in enumerate(widths) if width == 0]
    dtypes = [numpy_dtype(memref.dtype) for memref in result.buffers]
    for number in open_widths:
        dtypes[number] = scipy_index_dtype(shape, 0)
    wrap = result_maker(fmt, shape, dtypes, fill, like)

    def make(flat: Iterator[Any], _: Sequence[object]) -> Any:
        buffers = [next(flat) for _ in range(count)]
        if open_widths:
            # SciPy's rule wants to know what is stored, which is known only now.
            wanted = scipy_index_dtype(shape, buffers[-1].size)
            for number in open_widths:
                if buffers[number].dtype is not wanted:
                    buffers[number] = buffers[number].astype(wanted, copy=False)
        return wrap(buffers)

    return make


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
