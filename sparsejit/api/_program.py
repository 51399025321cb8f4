"""A traced program and its kernels: everything that calls with one cache key share.

In: the result of a trace. Out: for a call's shapes, the values of the extent symbols; for its
operands, the kernel (compiled when first needed, one per ``Variant``) and the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.api._aliases import AliasRule
from sparsejit.api._checks import IntegerRange, integer_ranges
from sparsejit.api._contractions import Contractions
from sparsejit.api._extents import ExtentRule
from sparsejit.api._long_extents import long_extents
from sparsejit.api._options import JitOptions
from sparsejit.api._widths import index_widths, leaves_width_open, orders_widths
from sparsejit.backends import Backend, Kernel, Recalling
from sparsejit.backends.disk_cache import digest
from sparsejit.debug import dump_observer, dumped_levels
from sparsejit.errors import SparseJitError, UnsupportedError
from sparsejit.ir.contraction_order import ContractionOrder
from sparsejit.ir.facts import FactKind
from sparsejit.ir.loops import LoopFunc, Memref, ParamResult, Result
from sparsejit.ir.stored_facts import RowLengths
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import IndexWidths
from sparsejit.ir.user_functions import called_by_tensors
from sparsejit.ir.walk import without_locations
from sparsejit.pipeline import Observe, Pipeline
from sparsejit.tensors import Check, Operand, stored_facts
from sparsejit.trace import Traced

__all__ = ["Compiled", "Program", "Variant", "make_program"]


@dataclass(frozen=True, slots=True)
class Variant:
    """Which kernel of a program a call takes, by its numbers.

    ``widths`` are those of the results' indices, ``contractions`` are the orders of products,
    ``long_extents`` the symbols whose values dwarf what is stored. On a
    device kernels depend on how long the ``rows`` are by each array, and on which parameters have
    ``full_batches``.
    """

    widths: IndexWidths
    contractions: tuple[ContractionOrder, ...] = ()
    long_extents: frozenset[int] = frozenset()
    rows: tuple[RowLengths | None, ...] = ()
    full_batches: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A kernel with what its function returns, and how long making it took.

    ``lowered`` gives the function: a kernel that was found on disk is called without it.
    """

    results: tuple[Result, ...]
    lowered: Callable[[], LoopFunc]
    kernel: Kernel
    seconds: float

    def serves(self, mine: Variant, other: Variant) -> bool:
        """Whether the kernel, made for variant ``mine``, would be the same for another one.

        It is where just lengths of rows differ that no schedule depends on.
        """
        if replace(mine, rows=other.rows) != other or not other.rows:
            return False
        arrays = [param.name for param in self.loops.params if isinstance(param, Memref)]
        return all(
            one == another or name not in self.loops.deciding
            for name, one, another in zip(arrays, mine.rows, other.rows, strict=True)
        )

    @property
    def loops(self) -> LoopFunc:
        """The function that the kernel was made of."""
        return self.lowered()

    @property
    def returned_params(self) -> tuple[int, ...]:
        """The parameters whose objects are returned as they are."""
        return tuple(result.index for result in self.results if isinstance(result, ParamResult))


@dataclass(slots=True, eq=False)
class Program:
    """One trace; ``constant_shapes`` are those of the arrays that were made while tracing."""

    traced: Traced
    func: TensorFunc
    pipeline: Pipeline
    extents: ExtentRule
    aliases: AliasRule
    scalars: tuple[bool, ...]
    width_is_open: bool
    contractions: Contractions
    seconds: float
    ranges: tuple[IntegerRange, ...] = ()
    constant_shapes: tuple[tuple[int, ...], ...] = ()
    compiled: dict[Variant, Compiled] = field(default_factory=dict)

    def variant(
        self, numbers: Sequence[int], operands: Sequence[Operand], check: Check = "once"
    ) -> Variant:
        """Return the index widths for the results of a call, the orders of its products, and so on.

        With ``check`` "always" nothing is taken for granted of stored operands seen before.
        """
        orders: tuple[ContractionOrder, ...] = ()
        stored = [operand.values.size for operand in operands]
        if self.contractions.is_open:
            orders = self.contractions.of(self.func, numbers, stored)
        widths = IndexWidths()
        if self.width_is_open:
            widths = index_widths(self.func, numbers, stored)
            if orders:  # another order forms other intermediates
                widths = widths.or_wider(orders_widths(self.func, orders, numbers, stored))
        long = long_extents(numbers, operands)
        if self.pipeline.outline is None:
            return Variant(widths, orders, long)
        return Variant(widths.same, orders, long, *self._stored(operands, check))

    def _stored(
        self, operands: Sequence[Operand], check: Check
    ) -> tuple[tuple[RowLengths | None, ...], frozenset[str]]:
        rows: list[RowLengths | None] = []
        full: set[str] = set()
        for param, is_scalar, operand in zip(self.func.params, self.scalars, operands, strict=True):
            if not is_scalar:
                facts = stored_facts(operand, may_have_changed=check == "always")
                rows += facts.rows
                if facts.has_full_batches:
                    full.add(param.name)
        return tuple(rows), frozenset(full)

    def known(self, variant: Variant) -> Compiled | None:
        """Return the kernel for a variant if there is one, made for another one or not."""
        found = self.compiled.get(variant)
        if found is not None:
            return found
        for other, made in self.compiled.items():
            if made.serves(other, variant):
                self.compiled[variant] = made
                return made
        return None

    def lower(self, variant: Variant, observe: Observe | None = None) -> LoopFunc:
        """Return the loops for a variant."""
        return self._pipeline_of(variant).lower(self.func, observe)

    def _pipeline_of(self, variant: Variant) -> Pipeline:
        pipeline = self.pipeline.with_index_widths(variant.widths)
        pipeline = pipeline.with_contractions(variant.contractions)
        pipeline = pipeline.with_long_extents(variant.long_extents)
        return pipeline.with_stored(variant.rows, variant.full_batches)

    def compile(self, variant: Variant, backend: Backend, options: JitOptions) -> Compiled:
        """Find the kernel on disk, or lower and load it, and remember it for this variant.

        ``UnsupportedError`` where ``library="only"`` forbids the generated code.
        """
        start = time.perf_counter()
        levels = dumped_levels()
        is_plain = options.cache and not levels and options.library != "only"
        key = self._key(variant) if is_plain and isinstance(backend, Recalling) else None
        lowered = cache(partial(self.lower, variant))
        if key is not None and isinstance(backend, Recalling):
            found = backend.recall(key, lowered)
            if found is not None:
                seconds = time.perf_counter() - start
                made = self.compiled[variant] = Compiled(found.results, lowered, found, seconds)
                return made
        observe = dump_observer(levels) if levels else None
        if observe is not None and "mlir" in levels:
            observe("mlir", mlir_text(self.func))
        loops = self.lower(variant, observe)
        if options.library == "only":
            _refuse_generated_code(self.func, loops)
        source = backend.emit(loops)
        if observe is not None:
            observe("source", source.text)
        kernel = backend.load(source, cache=options.cache)
        if key is not None and isinstance(backend, Recalling):
            backend.remember(key, kernel)
        seconds = time.perf_counter() - start
        made = self.compiled[variant] = Compiled(loops.results, lambda: loops, kernel, seconds)
        return made

    def _key(self, variant: Variant) -> str | None:
        """Return a key of all that the loops are made from, None for a function that has none.

        Functions of the user are compiled by another compiler, and have a cache of their own.
        """
        if called_by_tensors(self.func):
            return None
        return digest(repr(without_locations(self.func)), self._pipeline_of(variant).described)

    def arguments(self, numbers: Sequence[int], operands: Sequence[Operand]) -> list[Any]:
        """Return what a kernel is called with: extents, then the buffers of each operand."""
        found: list[Any] = list(numbers)
        for is_scalar, operand in zip(self.scalars, operands, strict=True):
            if is_scalar:
                found.append(operand.buffers[0][()])
            else:
                found.extend(operand.buffers)
        return found


def make_program(
    traced: Traced, pipeline: Pipeline, started: float, operands: Sequence[Operand]
) -> Program:
    """Return the program of a trace that began at ``started``; tensor passes run here."""
    levels = dumped_levels()
    func = pipeline.prepare(traced.func, dump_observer(levels) if levels else None)
    rule = AliasRule.of(func, traced.late)
    scalars = tuple(
        param.type.rank == 0 and number not in rule.assigned
        for number, param in enumerate(func.params)
    )
    return Program(
        traced,
        func,
        pipeline,
        ExtentRule.of(func, traced.guards),
        rule,
        scalars,
        leaves_width_open(func),
        Contractions.of_program(func, pipeline.stage_options.contractions is None),
        time.perf_counter() - started,
        integer_ranges(func, operands),
        tuple(map(shape_of, traced.captured)),
    )


def shape_of(captured: Any) -> tuple[int, ...]:
    """Return the shape of what a function captured: an array of any library that has arrays."""
    return tuple(captured.shape)


def _refuse_generated_code(func: TensorFunc, loops: LoopFunc) -> None:
    refusals = tuple(
        f"%{fact.subject}: {fact.text}" for fact in loops.facts if fact.kind is FactKind.LIBRARY
    )
    if refusals:
        raise UnsupportedError(
            f'library="only", and {func.name} has operations that no library kernel does',
            hint='use library="auto"',
            reasons=refusals,
        )


def mlir_text(func: TensorFunc) -> str:
    """Return the MLIR of a function, or why it has none."""
    from sparsejit.ir.mlir import print_mlir

    try:
        return print_mlir(func)
    except SparseJitError as error:
        return f"// {error}"
