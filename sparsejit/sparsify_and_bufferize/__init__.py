"""The atomic stage: from tensors to memrefs in one step that nothing can interrupt.

``sparsify_and_bufferize`` is the only public name here, and the only way from the tensor IR to the
loop IR. In order: enabling rewrites, One-Shot analysis, copy insertion, then for each operation a
library match or sparsification, and bufferization of the dense rest; nests that share their
outermost loop are fused; verification at both ends.
After copy insertion nothing changes a use-def chain: the analysis speaks about just these chains,
and MLIR had miscompiles exactly here (a fold between copy insertion and bufferization, a written
buffer hoisted out of a loop). Watching gets text, never objects.
"""

from __future__ import annotations

from collections.abc import Callable

from sparsejit.errors import UnsupportedError
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.printing import print_tensor
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.verify import verify_tensor
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.sparsify_and_bufferize._copy_insertion import copies_text, insert_copies
from sparsejit.sparsify_and_bufferize._dense_bufferize import bufferize
from sparsejit.sparsify_and_bufferize._enabling_rewrites import rewrite_before_analysis
from sparsejit.sparsify_and_bufferize._one_shot_analysis import analyze, decisions_text
from sparsejit.sparsify_and_bufferize._options import StageOptions as StageOptions

__all__ = ["StageOptions", "sparsify_and_bufferize"]

_DEFAULT_OPTIONS = StageOptions()


def sparsify_and_bufferize(
    func: TensorFunc,
    options: StageOptions = _DEFAULT_OPTIONS,
    observe: Callable[[str, str], None] | None = None,
) -> LoopFunc:
    """Return ``func`` as loops over memrefs.

    ``observe(name, text)`` is called with the texts ``rewritten``, ``mlir`` (where MLIR can say
    it), ``decisions``, ``copies``, ``lattices`` and ``copies:fused`` as they arise.
    Raises ``UnsupportedError`` for
    what is not built, with the user's line, and ``VerificationError`` where an invariant is
    broken; any failure fails the whole.

    >>> from sparsejit.formats import CSR
    >>> from sparsejit.ir.build import TensorBuilder
    >>> from sparsejit.ir.loop_printing import print_loops
    >>> from sparsejit.ir.ops import BinaryOp
    >>> from sparsejit.ir.scalar import Arg, Binary
    >>> from sparsejit.ir.types import DType
    >>> builder = TensorBuilder("scale")
    >>> A = builder.param("A", ("m", "n"), DType.FLOAT64, CSR)
    >>> C = builder.empty(A.type)
    >>> C = builder.generic([(A, (0, 1))], (C, (0, 1)), Binary(BinaryOp.ADD, Arg(0), Arg(0)))
    >>> loop_func = sparsify_and_bufferize(builder.finish(C))
    >>> [fact.text for fact in loop_func.facts][1:]
    ['i, j', 'the pattern of A', 'i of %1', 'level 1 of %A']
    """
    _check_options(options)
    verify_tensor(func)
    func, facts = rewrite_before_analysis(func, options)
    verify_tensor(func, after="the enabling rewrites")
    if observe is not None:
        _show_rewritten(func, observe)
    decisions = analyze(func, options)
    inserted = insert_copies(func, decisions, options)
    if observe is not None:
        observe("decisions", decisions_text(func, decisions))
        observe("copies", copies_text(inserted, options))
    lowered = bufferize(inserted, options, observe)
    verify_loops(lowered, after="the atomic stage")
    return LoopFunc(
        lowered.name, lowered.params, lowered.body, lowered.results, facts + lowered.facts
    )


def _show_rewritten(func: TensorFunc, observe: Callable[[str, str], None]) -> None:
    from sparsejit.ir.mlir import print_mlir

    observe("rewritten", print_tensor(func))
    try:
        text = print_mlir(func)
    except UnsupportedError:
        return  # not everything has words in MLIR; asked for it, its printer says why
    observe("mlir", text)


def _check_options(options: StageOptions) -> None:
    for name in ("allow_return_allocs", "function_boundaries", "create_deallocs"):
        if not getattr(options, name):
            raise UnsupportedError(
                f"lowering with {name}=False",
                hint="this switch is for looking at decisions only",
            )
