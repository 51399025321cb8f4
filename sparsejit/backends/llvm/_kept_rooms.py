"""Memory of arrays that a loop allocates and frees in each pass: it is kept for the next pass.

A row of a fused nest is such an array. Its memory grows to twice what is asked for when that is
more than there is, and is freed where the function ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._text import Builder, Value
from sparsejit.ir.loops import Alloc, Dealloc, For

__all__ = ["KeptRooms"]

_NULL = Value("ptr", "null")


class KeptRooms:
    """``names`` are the arrays whose memory is kept."""

    def __init__(self, builder: Builder, functions: Functions) -> None:
        self._b = builder
        self._functions = functions
        self.names: set[str] = set()
        self._sizes: dict[str, Value] = {}

    def note(self, loop: For, growable: Collection[str]) -> None:
        """Note what a loop allocates and frees in its body."""
        freed = {stmt.memref.name for stmt in loop.body if isinstance(stmt, Dealloc)}
        made = {stmt.memref.name for stmt in loop.body if isinstance(stmt, Alloc)}
        self.names |= (made & freed) - set(growable)

    def room(
        self,
        name: str,
        size: Value,
        owned: dict[str, Value],
        check: Callable[[Value, Value], None],
    ) -> Value:
        """Return memory of at least ``size`` bytes, noted in ``owned``; ``check`` refuses none."""
        b = self._b
        held = self._sizes.get(name)
        if held is None:
            owned[name] = b.slot("ptr")
            held = self._sizes[name] = b.slot("i64")
            b.function.slots.lines.append(f"store ptr null, {owned[name]}, align 8")
            b.function.slots.lines.append(f"store i64 0, {held}, align 8")
        slot = owned[name]
        more, enough = b.new_block("more"), b.new_block("enough")
        b.branch_if(b.compare("sgt", size, b.load(held, "i64", 8)), more, enough)
        b.place(more)
        b.call(self._functions.free(), [b.load(slot, "ptr", 8)])
        b.store(_NULL, slot, 8)
        twice = b.add(size, size)
        made = b.call(self._functions.malloc(), [twice])
        check(made, twice)
        b.store(made, slot, 8)
        b.store(twice, held, 8)
        b.branch(enough)
        b.place(enough)
        return b.load(slot, "ptr", 8)

    def free(self, owned: dict[str, Value]) -> None:
        """Free all memory that was kept."""
        for name in self._sizes:
            self._b.call(self._functions.free(), [self._b.load(owned[name], "ptr", 8)])
