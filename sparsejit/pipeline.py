"""The pipeline: tensor passes, the atomic stage, loop passes, verified around each.

In: a traced ``TensorFunc``. Out: a ``LoopFunc`` for a backend. What runs is data, a frozen
``Pipeline``; ``default_pipeline`` is the policy, chosen from the decorator's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial

from sparsejit._dataclasses import dataclass
from sparsejit.ir.contraction_order import ContractionOrder
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.printing import print_tensor
from sparsejit.ir.stored_facts import RowLengths
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import IndexWidths
from sparsejit.ir.verify import verify_tensor
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes import (
    LoopPass,
    TensorPass,
    assemble_in_two_phases,
    canonicalize,
    keep_parallel,
    order_reductions,
    outline_kernels,
    simplify_loops,
    split_reductions,
)
from sparsejit.sparsify_and_bufferize import StageOptions as StageOptions
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize

__all__ = ["Observe", "Pipeline", "StageOptions", "default_pipeline"]

Observe = Callable[[str, str], None]
_PART = 1 << 12
"""Of fewer entries a part is not worth a thread."""
OutlinePass = Callable[..., LoopFunc]
"""``outline_kernels``, with its options."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What is done to a tensor function on its way to loops: named passes around the stage."""

    tensor_passes: tuple[tuple[str, TensorPass], ...]
    stage_options: StageOptions
    loop_passes: tuple[tuple[str, LoopPass], ...]
    outline: OutlinePass | None = None
    """For a device: what makes kernels of the work on arrays, behind all other passes."""

    def prepare(self, func: TensorFunc, observe: Observe | None = None) -> TensorFunc:
        """Return ``func`` after the tensor passes, each verified.

        ``observe`` gets the text ``tensor`` first, then ``tensor:<pass>`` after each pass.
        """
        verify_tensor(func, after="tracing")
        if observe is not None:
            observe("tensor", print_tensor(func))
        for name, tensor_pass in self.tensor_passes:
            func = tensor_pass(func)
            verify_tensor(func, after=name)
            if observe is not None:
                observe(f"tensor:{name}", print_tensor(func))
        return func

    def lower(self, func: TensorFunc, observe: Observe | None = None) -> LoopFunc:
        """Return the loops of a prepared function: the stage, then the loop passes.

        ``observe`` gets the texts of the stage, then ``loops`` and ``loops:<pass>``.
        """
        loops = sparsify_and_bufferize(func, self.stage_options, observe)
        if observe is not None:
            observe("loops", print_loops(loops))
        for name, loop_pass in self._all_loop_passes():
            loops = loop_pass(loops)
            verify_loops(loops, after=name)
            if observe is not None:
                observe(f"loops:{name}", print_loops(loops))
        return loops

    def _all_loop_passes(self) -> Iterator[tuple[str, LoopPass]]:
        yield from self.loop_passes
        if self.outline is not None:
            yield "outline-kernels", self.outline

    def run(self, func: TensorFunc, observe: Observe | None = None) -> LoopFunc:
        """Return the loops of a traced function.

        >>> from sparsejit.ir.build import TensorBuilder
        >>> default_pipeline().run(TensorBuilder("nothing").finish()).name
        'nothing'
        """
        return self.lower(self.prepare(func, observe), observe)

    @property
    def described(self) -> str:
        """All that decides what the loops of a prepared function are, beside the function."""
        passes = ((name, *_keywords(loop_pass)) for name, loop_pass in self._all_loop_passes())
        options = (
            (field.name, getattr(self.stage_options, field.name))
            for field in fields(self.stage_options)
        )
        return repr((*passes, *((name, _ordered(value)) for name, value in options)))

    def with_index_widths(self, widths: IndexWidths) -> Pipeline:
        """Return the pipeline that gives results positions and coordinates of these widths."""
        options = replace(self.stage_options, index_widths=widths)
        return replace(self, stage_options=options)

    def with_contractions(self, orders: tuple[ContractionOrder, ...]) -> Pipeline:
        """Return the pipeline that computes chains of products in these orders."""
        return replace(self, stage_options=replace(self.stage_options, contractions=orders))

    def with_long_extents(self, symbols: frozenset[int]) -> Pipeline:
        """Return the pipeline for calls in which these symbols dwarf what the operands store."""
        return replace(self, stage_options=replace(self.stage_options, long_extents=symbols))

    def with_stored(self, rows: tuple[RowLengths | None, ...], full: frozenset[str]) -> Pipeline:
        """Return the pipeline for what is known of stored operands.

        ``rows`` is for ``outline_kernels``, ``full`` names the parameters with full batches.
        """
        options = replace(self.stage_options, full_batches=full)
        outline = None if self.outline is None else partial(self.outline, rows=rows)
        return replace(self, stage_options=options, outline=outline)


def _keywords(loop_pass: LoopPass) -> tuple[tuple[str, object], ...]:
    """Return what a pass was chosen with."""
    return tuple(loop_pass.keywords.items()) if isinstance(loop_pass, partial) else ()


def _ordered(value: object) -> object:
    """Return a value whose text is the same in every process: that of a set is not."""
    return sorted(value) if isinstance(value, frozenset) else value


def default_pipeline(
    *,
    parallelization: str = "any-storage-any-loop",
    ordered_reductions: bool = False,
    stage_options: StageOptions | None = None,
    for_device: bool = False,
) -> Pipeline:
    """Return the pipeline of a target: ``for_device`` makes kernels of all work on arrays.

    ``parallelization`` is one of MLIR's strategies; ``ordered_reductions`` keeps reductions from
    being split, for ``deterministic=True`` and ``reassociate=False``.
    """
    loop_passes: list[tuple[str, LoopPass]] = [("simplify-loops", simplify_loops)]
    if parallelization != "none":
        loop_passes.append(("two-phases", assemble_in_two_phases))
        if not ordered_reductions:
            loop_passes.append(("split-reductions", split_reductions))
    if parallelization != "any-storage-any-loop":
        chosen = partial(keep_parallel, strategy=parallelization)
        loop_passes.append(("keep-parallel", chosen))
    if ordered_reductions:
        loop_passes.append(("order-reductions", order_reductions))
    options = stage_options or StageOptions()
    if parallelization != "none":
        options = replace(options, part=options.part or _PART)
    if not for_device:
        return Pipeline((("canonicalize", canonicalize),), options, tuple(loop_passes))
    options = replace(options, placing="sorted", rows_apart=False)
    outline = partial(outline_kernels, ordered=ordered_reductions)
    return Pipeline((("canonicalize", canonicalize),), options, tuple(loop_passes), outline)
