"""Register tiles in LLVM IR (see ``_tiles``): strips of vectors that stay in registers.

A strip has eight vectors: sixteen registers hold them, the value that multiplies them, and what is
loaded. What is left of a row goes in one more strip of eight, four, two or one vectors, whose last
half is under masks.
"""

from __future__ import annotations

from collections.abc import Callable

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._arrays import Array
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._options import CodeOptions
from sparsejit.backends.llvm._text import Builder, Value, integer, vector_of
from sparsejit.backends.llvm._tiles import STRIP, Tile
from sparsejit.backends.llvm._types import in_register
from sparsejit.backends.llvm._vectors import Strip, iota
from sparsejit.ir.loops import For, Let, Store
from sparsejit.ir.ops import BinaryOp

__all__ = ["TilePrinter"]

_VECTORS = 8
_SUMS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)


@dataclass(slots=True)
class _Row:
    """One updated row: its array, the address of the strip's first element, and the sums' slots."""

    array: Array
    first: Value
    slots: list[Value]


class TilePrinter:
    """Prints one nest; ``print_loop`` prints its outer loop, and hands inner loops to ``leaf``."""

    def __init__(
        self,
        expressions: Expressions,
        tile: Tile,
        options: CodeOptions,
    ) -> None:
        self._e = expressions
        self._b: Builder = expressions.builder
        self._tile = tile
        self._lanes = max(options.host.vector_bits // tile.bits, 2)
        self._options = options
        self._base = integer(0)
        self._masks: tuple[Value | None, ...] = ()
        self._rows: dict[str, _Row] = {}

    @property
    def base(self) -> Value:
        """Where the strip begins."""
        return self._base

    @property
    def width(self) -> int:
        """How many elements the strip has."""
        return self._lanes * len(self._masks)

    def write(self, print_loop: Callable[[], None]) -> None:
        """Print the nest, strip by strip."""
        b = self._b
        vectors = max(_VECTORS // len(self._tile.targets), 1)
        width = vectors * self._lanes
        lower, upper = self._e.value(self._tile.lower), self._e.value(self._tile.upper)
        head, test, whole = b.block, b.new_block("strips"), b.new_block("strip")
        rest, done = b.new_block("rest"), b.new_block("row_done")
        b.branch(test)
        b.place(test)
        at = b.phi("i64")
        at.add(lower, head)
        following = b.add(at.value, width)
        b.branch_if(b.compare("sle", following, upper), whole, rest)
        b.place(whole)
        self._strip(at.value, (None,) * vectors, print_loop)
        at.add(following, b.block)
        b.branch(test)
        b.place(rest)
        self._rest(at.value, upper, vectors, print_loop)
        b.branch(done)
        b.place(done)

    def _rest(
        self, base: Value, upper: Value, vectors: int, print_loop: Callable[[], None]
    ) -> None:
        """Print what is left of the row: the first of 1, 2, 4, ... vectors that have room."""
        b, lanes = self._b, self._lanes
        left = b.op("sub", upper, base)
        done = b.new_block("rest_done")
        some = b.new_block("some")
        b.branch_if(b.compare("sgt", left, integer(0)), some, done)
        b.place(some)
        count = 1
        while True:
            is_last = count >= vectors
            fits, more = b.new_block("fits"), b.new_block("more")
            if not is_last:
                b.branch_if(b.compare("sle", left, integer(count * lanes)), fits, more)
                b.place(fits)
            masks = tuple(
                self._mask(left, number) if number >= count // 2 else None
                for number in range(count)
            )
            self._strip(base, masks, print_loop)
            b.branch(done)
            if is_last:
                break
            b.place(more)
            count *= 2
        b.place(done)

    def _mask(self, left: Value, number: int) -> Value:
        b, lanes = self._b, self._lanes
        room = b.splat(b.add(left, -number * lanes), lanes)
        return b.compare("slt", iota(lanes), room)

    def _strip(
        self, base: Value, masks: tuple[Value | None, ...], print_loop: Callable[[], None]
    ) -> None:
        """Load the sums, run the outer loop, store the sums."""
        b = self._b
        self._base, self._masks = base, masks
        strip = Strip(self._e, STRIP.name, base, self._lanes, masks)
        self._rows = {}
        starts = dict(self._tile.starts)
        for memref, indices in self._tile.targets:
            array = self._e.arrays[memref.name]
            self._e.values[STRIP.name] = base
            first = self._e.place(array, indices)
            kind = vector_of(in_register(memref.dtype), self._lanes)
            slots = [b.slot(kind) for _ in masks]
            self._rows[memref.name] = _Row(array, first, slots)
            start = starts.get(memref.name)
            for number, slot in enumerate(slots):
                if start is not None:
                    value = b.splat(self._e.constant(start), self._lanes)
                else:
                    value = strip.load_at(array, first, number)
                b.store(value, slot, 8)
        print_loop()
        for row in self._rows.values():
            for number, slot in enumerate(row.slots):
                kind = vector_of(in_register(row.array.memref.dtype), self._lanes)
                strip.store_at(row.array, row.first, number, b.load(slot, kind, 8))

    def leaf(self, loop: For) -> None:
        """Print an inner loop: each vector of the strip is updated once."""
        b = self._b
        strip = Strip(self._e, loop.var.name, self._base, self._lanes, self._masks)
        for stmt in loop.body:
            if isinstance(stmt, Let):
                strip.define(stmt.var, stmt.value)
                continue
            assert isinstance(stmt, Store)
            assert stmt.reduce is not None
            is_sum = stmt.reduce in _SUMS
            dtype = stmt.memref.dtype
            for number, slot in enumerate(self._rows[stmt.memref.name].slots):
                term = strip.vector(stmt.value, number, self._options.term_flags if is_sum else "")
                before = b.load(slot, vector_of(in_register(dtype), self._lanes), 8)
                flags = self._options.sum_flags if is_sum else ""
                total = self._e.arithmetic.binary(stmt.reduce, before, term, dtype, flags)
                b.store(total, slot, 8)
