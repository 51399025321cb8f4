"""The memory of a function's own arrays: allocated, grown, freed, also where the function fails.

In: statements that make arrays or change their lengths. Out: the code, and the arrays where the
expressions find them. What the function owns is known in stack slots.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from sparsejit.backends.llvm._arrays import Array, Layout, element_size
from sparsejit.backends.llvm._block_moves import fill
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._kept_rooms import KeptRooms
from sparsejit.backends.llvm._text import Value, integer
from sparsejit.errors import UnsupportedError
from sparsejit.ir.loops import Alloc, For, Memref, Push, Resize, Var
from sparsejit.ir.types import DType

__all__ = ["NO_MEMORY", "OwnMemory"]

NO_MEMORY = 1
"""The status of a function that could not allocate memory."""

_NULL = Value("ptr", "null")
_INDEX = DType.INT64


class OwnMemory:
    """``given`` is the memory of arrays that the caller has made, ``growable`` are those that grow.

    ``fail(status, when)`` leaves the function where ``when`` holds.
    """

    def __init__(
        self,
        expressions: Expressions,
        functions: Functions,
        growable: Collection[str],
        given: Mapping[str, Value],
        fail: Callable[[Value, Value], None],
    ) -> None:
        self._e = expressions
        self._b = expressions.builder
        self._functions = functions
        self._growable = growable
        self._given = given
        self._fail = fail
        self._owned: dict[str, Value] = {}
        self._kept = KeptRooms(self._b, functions)

    def note(self, loop: For) -> None:
        """Keep the memory of what a loop allocates and frees in its body."""
        self._kept.note(loop, self._growable)

    def free_kept(self) -> None:
        """Free what was kept for the next pass of a loop."""
        self._kept.free(self._owned)

    def free_all(self) -> None:
        """Free all there is."""
        for slot in self._owned.values():
            self._b.call(self._functions.free(), [self._b.load(slot, "ptr", 8)])

    def _check_memory(self, pointer: Value, size: Value) -> None:
        """Fail where there is none; asking for nothing may give nothing."""
        b = self._b
        missing = b.compare("eq", pointer, _NULL)
        if size.known is None:
            missing = b.op("and", missing, b.compare("ne", size, integer(0)))
        self._fail(integer(NO_MEMORY, "i32"), missing)

    def _own(self, memref: Memref, pointer: Value) -> None:
        """Note memory that is to be freed where the function fails."""
        slot = self._owned.get(memref.name)
        if slot is None:
            slot = self._owned[memref.name] = self._b.slot("ptr")
            self._b.function.slots.lines.append(f"store ptr null, {slot}, align 8")
        self._b.store(pointer, slot, 8)

    def alloc(self, stmt: Alloc) -> None:
        """Make an array, in memory of the caller's where that has given some."""
        memref = stmt.memref
        extents = tuple(self._e.value(extent) for extent in stmt.extents)
        if memref.name in self._given:
            pointer = self._given[memref.name]
        else:
            size = self._size(extents, element_size(memref))
            if memref.name in self._kept.names:
                pointer = self._kept.room(memref.name, size, self._owned, self._check_memory)
            else:
                allocate = self._functions.malloc(is_aligned=memref.rank > 1)
                pointer = self._b.call(allocate, [size])
                self._check_memory(pointer, size)
                self._own(memref, pointer)
        array = Array(memref, Layout.CONTIGUOUS, pointer, extents)
        if stmt.fill is not None:
            fill(self._e, array, stmt.fill)
        self._e.arrays[memref.name] = self._in_slots(array)

    def _size(self, extents: Sequence[Value], size: int) -> Value:
        """The bytes of an array; fail where the number does not fit."""
        b = self._b
        multiply = self._functions.intrinsic(
            "llvm.umul.with.overflow.i64", "{i64, i1}", "i64", "i64"
        )
        total = integer(size)
        too_large = integer(0, "i1")
        for extent in extents:
            if extent.known is not None and 0 <= extent.known < 1 << 30 and len(extents) == 1:
                return integer(extent.known * size)
            pair = b.call(multiply, [total, extent])
            total = b.part(pair, 0)
            too_large = b.op("or", too_large, b.part(pair, 1))
        if extents:
            too_large = b.op("or", too_large, b.compare("slt", total, integer(0)))
            self._fail(integer(NO_MEMORY, "i32"), too_large)
        return total

    def _in_slots(self, array: Array) -> Array:
        """Return the array as it is, or in stack slots where it will grow."""
        if array.memref.name not in self._growable:
            return array
        pointer, extent = self._b.slot("ptr"), self._b.slot("i64")
        self._b.store(array.pointer, pointer, 8)
        self._b.store(array.extents[0], extent, 8)
        return Array(array.memref, array.layout, pointer, (extent,), in_slots=True)

    def dealloc(self, memref: Memref) -> None:
        """Free an array."""
        if memref.name in self._kept.names:
            return
        self._b.call(self._functions.free(), [self._e.arrays[memref.name].data(self._b)])
        self._own(memref, _NULL)

    def push(self, stmt: Push) -> None:
        """Store an element behind the last one; the array grows where it is full."""
        b = self._b
        array = self._own_array(stmt.memref)
        count = self._e.value(stmt.count)
        full = b.compare("sge", count, array.extent(b, 0))
        grow, grown = b.new_block("grow"), b.new_block("grown")
        b.branch_if(full, grow, grown)
        b.place(grow)
        size = integer(element_size(stmt.memref))
        operands = [array.data(b), array.extent(b, 0), count, size]
        made = b.call(self._functions.grow(), operands)
        self._moved(array, b.part(made, 0), size, b.part(made, 1))
        b.branch(grown)
        b.place(grown)
        place = Var(f"%{stmt.memref.name}", _INDEX)
        self._e.values[place.name] = count
        self._e.store(array, (place,), self._e.value(stmt.value))

    def _own_array(self, memref: Memref) -> Array:
        """The array, which may move."""
        array = self._e.arrays[memref.name]
        if not array.in_slots:
            raise UnsupportedError(f"changing the length of {memref.name}, made by somebody else")
        return array

    def _moved(self, array: Array, pointer: Value, size: Value, extent: Value) -> None:
        """Note where an array lies now; fail where there was no memory."""
        self._check_memory(pointer, size)
        self._b.store(pointer, array.pointer, 8)
        self._b.store(extent, array.extents[0], 8)
        self._own(array.memref, pointer)

    def resize(self, stmt: Resize) -> None:
        """Give the array so many elements; nothing moves of an empty one."""
        b = self._b
        array = self._own_array(stmt.memref)
        count = self._e.value(stmt.count)
        move, moved = b.new_block("move"), b.new_block("moved")
        b.branch_if(b.compare("sgt", count, integer(0)), move, moved)
        b.place(move)
        size = b.mul(count, element_size(stmt.memref))
        place = b.call(self._functions.realloc(), [array.data(b), size])
        self._moved(array, place, integer(1), count)
        b.branch(moved)
        b.place(moved)
        b.store(count, array.extents[0], 8)
