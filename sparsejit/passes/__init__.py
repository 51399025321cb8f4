"""Passes: pure functions from a program to a program, legal wherever they are applied.

A ``TensorPass`` runs before the atomic stage, a ``LoopPass`` after it. The pipeline verifies the
program around each of them; a pass looks at nothing but the program.
"""

from collections.abc import Callable

from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.tensor import TensorFunc
from sparsejit.passes.canonicalize import canonicalize as canonicalize
from sparsejit.passes.outline_kernels import outline_kernels as outline_kernels
from sparsejit.passes.parallelization import keep_parallel as keep_parallel
from sparsejit.passes.parallelization import order_reductions as order_reductions
from sparsejit.passes.simplify_loops import simplify_loops as simplify_loops
from sparsejit.passes.split_reductions import split_reductions as split_reductions
from sparsejit.passes.two_phases import assemble_in_two_phases as assemble_in_two_phases

__all__ = [
    "LoopPass",
    "TensorPass",
    "assemble_in_two_phases",
    "canonicalize",
    "keep_parallel",
    "order_reductions",
    "outline_kernels",
    "simplify_loops",
    "split_reductions",
]

TensorPass = Callable[[TensorFunc], TensorFunc]
LoopPass = Callable[[LoopFunc], LoopFunc]
