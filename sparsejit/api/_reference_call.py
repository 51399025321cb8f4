"""``Lowered.reference``: the traced program by brute force, on the arguments of a call.

In: a program and described operands. Out: the results in the user's structure, with pairs of dense
values and stored mask in the place of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsejit.api._program import Program
from sparsejit.api._run import result_tree
from sparsejit.tensors import Operand, wrap_result

if TYPE_CHECKING:
    from sparsejit.reference import Masked

__all__ = ["reference_of"]


def reference_of(program: Program, numbers: Sequence[int], operands: Sequence[Operand]) -> Any:
    """Return what a call with these operands means; scalars are arrays of rank 0 here."""
    from sparsejit.reference import evaluate_reference

    params = [_masked(operand) for operand in operands]
    results = evaluate_reference(program.func, params, numbers)
    return result_tree(program.traced.result, results)


def _masked(operand: Operand) -> Masked:
    """Return the dense values and the mask of what is stored."""
    from sparsejit.reference import Masked, dense_masked

    if operand.is_dense:
        return dense_masked(np.asarray(operand.buffers[0]))
    fmt, shape, structure = operand.format, operand.shape, operand.buffers[:-1]
    values = wrap_result(fmt, shape, operand.buffers, operand.fill_value)
    slots = np.ones(operand.values.shape, np.bool_)
    stored = wrap_result(fmt, shape, (*structure, slots), np.False_)
    return Masked(values.to_numpy(), stored.to_numpy())
