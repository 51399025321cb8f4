"""Sums over inner loops in vector registers: several passes side by side.

In: a loop whose passes add to variables, and beside that do no more than fill rows::

    for p in A_pos[i] .. A_pos[i + 1] {
      let j = A_crd[p]
      acc = acc + A_vals[p] * x[j]
    }

Out: code that runs a vector of passes at once, with sums for each lane, of which several run side
by side unless a pass takes long, as gathers and exponentials do; what is left of the loop runs
under masks. The lanes are added up behind the loop, so the order of the sum depends on the number
of passes only.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._arrays import element_size
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._options import CodeOptions
from sparsejit.backends.llvm._partial_sums import identity
from sparsejit.backends.llvm._streams import AHEAD, find_streams, prefetch_line
from sparsejit.backends.llvm._text import Builder, Value, integer, lanes_of, vector_of
from sparsejit.backends.llvm._types import in_register
from sparsejit.backends.llvm._vector_forms import Passes, depends, has_vectors
from sparsejit.backends.llvm._vectors import Strip, iota
from sparsejit.ir.loop_walk import all_expressions, expressions
from sparsejit.ir.loops import Assign, Binary, Expr, For, Let, Load, Search, Store, Unary, Var
from sparsejit.ir.ops import BinaryOp, UnaryOp

__all__ = ["VectorSums", "find_sums", "write_sums"]

_SIDE_BY_SIDE = 4
"""How many vectors of passes run at once: additions take four times as long as they are apart."""
_GATHERED = 8
"""How many lanes are gathered at most: it takes time for each, also for those under a mask."""
_FREE = frozenset((BinaryOp.MIN, BinaryOp.MAX, BinaryOp.FMIN, BinaryOp.FMAX))
"""What gives the same in any order, also of floats."""
_OPS = _FREE | {BinaryOp.ADD, BinaryOp.MUL, BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR}


@dataclass(frozen=True, slots=True)
class VectorSums:
    """``sums`` are the variables, each with the operation that adds to it.

    ``bits`` is the size of the widest element in vectors, ``gathers`` says whether lanes load from
    places of their own, ``is_long`` whether a pass takes longer than an addition waits.
    """

    sums: tuple[tuple[Var, BinaryOp], ...]
    bits: int
    gathers: bool
    is_long: bool = False


def find_sums(
    loop: For, units: frozenset[str], roots: Mapping[str, str], options: CodeOptions
) -> VectorSums | None:
    """Return what a loop adds up if vectors can do it.

    ``units`` are as in ``Passes``; ``roots`` name the array whose memory a view shows.
    """
    if "sums" in options.without or not _stores_apart(loop, roots):
        return None
    without = _found(loop, Passes(loop.var.name, units), options)
    if without is not None:
        return VectorSums(*without, gathers=False, is_long=_has_exponentials(loop))
    if not options.host.gathers:
        return None
    found = _found(loop, Passes(loop.var.name, units, gathers=True), options)
    return None if found is None else VectorSums(*found, gathers=True)


def _has_exponentials(loop: For) -> bool:
    parts = (part for s in loop.body for e in expressions(s) for part in all_expressions(e))
    return any(isinstance(part, Unary) and part.op is UnaryOp.EXP for part in parts)


def _found(
    loop: For, passes: Passes, options: CodeOptions
) -> tuple[tuple[tuple[Var, BinaryOp], ...], int] | None:
    names = {loop.var.name: loop.var.dtype.bits}
    sums: dict[str, tuple[Var, BinaryOp]] = {}
    widest = 0
    values: list[Expr] = []
    for stmt in loop.body:
        match stmt:
            case Let(var, value, False):
                dtype = var.dtype
            case Store(memref, _, value, None) if passes.is_stored(stmt, names):
                dtype = memref.dtype
            case Assign(var, Binary(op, lhs, value, dtype)) if (
                lhs == var and var.name not in sums and _is_free(op, var, options)
            ):
                sums[var.name] = var, op
            case _:
                return None
        values.append(value)
        bits = passes.bits(value, names)
        if bits is None:
            return None
        if isinstance(stmt, Let):
            names[stmt.var.name] = bits
        else:
            widest = max(widest, bits, dtype.bits)
    if not sums or any(depends(value, sums) for value in values):
        return None
    return tuple(sums.values()), widest


def _stores_apart(loop: For, roots: Mapping[str, str]) -> bool:
    """Whether no pass reads what another one stores."""
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    places = {roots.get(s.memref.name, s.memref.name): (s.memref, s.indices) for s in stores}
    if len(places) < len(stores):
        return False
    for stmt in loop.body:
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                if isinstance(part, Load | Search):
                    name = part.memref.name if isinstance(part, Load) else part.coordinates.name
                    place = places.get(roots.get(name, name))
                    is_same = isinstance(part, Load) and place == (part.memref, part.indices)
                    if place is not None and not is_same:
                        return False
    return True


def _is_free(op: BinaryOp, var: Var, options: CodeOptions) -> bool:
    """Whether the passes may come in any order, and vectors have the operation."""
    if op not in _OPS or not has_vectors(op, var.dtype):
        return False
    return options.reassociate or op in _FREE or not var.dtype.is_float


def _term(stmt: Assign) -> Expr:
    assert isinstance(stmt.value, Binary)
    return stmt.value.rhs


def write_sums(e: Expressions, loop: For, found: VectorSums, options: CodeOptions) -> None:
    """Write a loop whose sums are in vector registers."""
    _Sums(e, loop, found, options).write()


class _Sums:
    """One loop; its lower and upper bound, and a slot for each vector of sums."""

    def __init__(self, e: Expressions, loop: For, found: VectorSums, options: CodeOptions) -> None:
        self._e = e
        self._b: Builder = e.builder
        self._loop = loop
        self._found = found
        self._options = options
        lanes = max(options.host.vector_bits // found.bits, 2)
        self._lanes = min(lanes, _GATHERED) if found.gathers else lanes
        self._count = 1 if found.gathers or found.is_long else _SIDE_BY_SIDE
        self._slots: dict[str, list[Value]] = {}
        streams = find_streams(loop, options)
        self._streams = [memref for memref in streams if e.arrays[memref.name].is_unit]

    def write(self) -> None:
        b = self._b
        lower, upper = self._e.value(self._loop.lower), self._e.value(self._loop.upper)
        some, none = b.new_block("some"), b.new_block("none")
        b.branch_if(b.compare("slt", lower, upper), some, none)
        b.place(some)
        for var, op in self._found.sums:
            start = self._e.constant(identity(op, var.dtype))
            kind = in_register(var.dtype)
            self._slots[var.name] = [
                b.slot(vector_of(kind, self._lanes)) for _ in range(self._count)
            ]
            for slot in self._slots[var.name]:
                b.store(b.splat(start, self._lanes), slot, 8)
        rest = self._whole(lower, upper)
        self._rest(rest, upper)
        self._add_up()
        b.branch(none)
        b.place(none)

    def _whole(self, lower: Value, upper: Value) -> Value:
        """Run the passes that fill whole vectors; return where the others begin."""
        b, width = self._b, self._lanes * self._count
        head, whole, done = b.block, b.new_block("vectors"), b.new_block("rest")
        first = b.add(lower, width)
        b.branch_if(b.compare("sle", first, upper), whole, done)
        b.place(whole)
        at = b.phi("i64")
        at.add(lower, head)
        self._passes(at.value, (None,) * self._count)
        following = b.add(at.value, width)
        at.add(following, b.block)
        tail = b.block
        b.branch_if(b.compare("sle", b.add(following, width), upper), whole, done)
        b.place(done)
        rest = b.phi("i64")
        rest.add(lower, head)
        rest.add(following, tail)
        return rest.value

    def _rest(self, lower: Value, upper: Value) -> None:
        """Run what is left, one vector at a time, under a mask."""
        b = self._b
        head, masked, done = b.block, b.new_block("masked"), b.new_block("sums")
        b.branch_if(b.compare("slt", lower, upper), masked, done)
        b.place(masked)
        at = b.phi("i64")
        at.add(lower, head)
        left = b.splat(b.op("sub", upper, at.value), self._lanes)
        self._passes(at.value, (b.compare("slt", iota(self._lanes), left),))
        following = b.add(at.value, self._lanes)
        at.add(following, b.block)
        b.branch_if(b.compare("slt", following, upper), masked, done)
        b.place(done)

    def _passes(self, base: Value, masks: tuple[Value | None, ...]) -> None:
        """Run the passes of some vectors."""
        b = self._b
        strip = Strip(self._e, self._loop.var.name, base, self._lanes, masks)
        for memref in self._streams:
            array = self._e.arrays[memref.name]
            place = b.offset(array.data(b), b.mul(base, element_size(memref)))
            for number in range(len(masks)):
                skipped = number * self._lanes * element_size(memref)
                prefetch_line(self._e, place, integer(AHEAD + skipped))
        for stmt in self._loop.body:
            if isinstance(stmt, Let):
                strip.define(stmt.var, stmt.value)
                continue
            if isinstance(stmt, Store):
                strip.store(stmt)
                continue
            assert isinstance(stmt, Assign)
            op = dict(self._found.sums)[stmt.var]
            for number, mask in enumerate(masks):
                slot = self._slots[stmt.var.name][number]
                term = strip.vector(_term(stmt), number, self._options.term_flags)
                before = b.load(slot, vector_of(in_register(stmt.var.dtype), self._lanes), 8)
                total = self._combine(op, before, term, stmt.var)
                b.store(total if mask is None else b.select(mask, total, before), slot, 8)

    def _combine(self, op: BinaryOp, lhs: Value, rhs: Value, var: Var) -> Value:
        flags = self._options.sum_flags
        return self._e.arithmetic.binary(op, lhs, rhs, var.dtype, flags)

    def _add_up(self) -> None:
        """Add the lanes of all sums to the variables."""
        b = self._b
        for var, op in self._found.sums:
            kind = vector_of(in_register(var.dtype), self._lanes)
            vectors = [b.load(slot, kind, 8) for slot in self._slots[var.name]]
            while len(vectors) > 1:
                pairs = zip(vectors[::2], vectors[1::2], strict=True)
                vectors = [self._combine(op, one, other, var) for one, other in pairs]
            (total,) = vectors
            while lanes_of(total.type) > 1:
                total = self._combine(op, *_halves(b, total), var)
            slot = self._e.slots[var.name]
            before = b.load(slot, in_register(var.dtype), 8)
            b.store(self._combine(op, before, total, var), slot, 8)


def _halves(b: Builder, vector: Value) -> tuple[Value, Value]:
    half = lanes_of(vector.type) // 2
    return b.lanes(vector, 0, half), b.lanes(vector, half, half)
