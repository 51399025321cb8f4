"""LLVM IR as text: values, blocks, functions and modules, written line by line.

In: calls of a ``Builder``. Out: the text of a module, the same for the same calls. Types are their
spelling (``"i64"``, ``"double"``, ``"<4 x double>"``); integer arithmetic on constants is done at
once, so that less text has to be parsed and optimized. (llvmlite's own builder takes longer than
LLVM's parser.)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from sparsejit.backends.llvm._text_values import (
    Block,
    Callee,
    Phi,
    Value,
    integer,
    lanes_of,
    scalar_of,
    undefined,
    vector_of,
)

__all__ = [
    "COLD",
    "Block",
    "Builder",
    "Callee",
    "Function",
    "Module",
    "Phi",
    "Value",
    "integer",
    "lanes_of",
    "scalar_of",
    "undefined",
    "vector_of",
]

COLD: Final = "noinline optnone nounwind"
"""The attributes of functions that run once a call or once a chunk: LLVM leaves them as they are,
and generates code for them in a hurry."""


class Function:
    """A function that is being written: its parameters, its stack slots and its blocks."""

    def __init__(
        self,
        module: Module,
        callee: Callee,
        *,
        attributes: Sequence[str] = (),
        is_internal: bool = True,
        suffix: str = "",
    ) -> None:
        self.module: Final = module
        self.callee: Final = callee
        self.params: Final = [
            Value(kind, f"%p{number}") for number, kind in enumerate(callee.operands)
        ]
        notes = attributes or [""] * len(self.params)
        listed = ", ".join(
            " ".join(part for part in (param.type, note, param.text) if part)
            for param, note in zip(self.params, notes, strict=True)
        )
        linkage = "internal " if is_internal else ""
        tail = f" {suffix}" if suffix else ""
        self._head = f"define {linkage}{callee.result} @{callee.name}({listed}){tail} {{"
        self._numbers = 0
        self._names: dict[str, int] = {}
        self.slots = self.new_block("slots")
        self.blocks: list[Block] = [self.slots]

    def new_value(self, kind: str) -> Value:
        """Return a value with a new name."""
        self._numbers += 1
        return Value(kind, f"%v{self._numbers}")

    def new_block(self, name: str) -> Block:
        """Return a block with a new name, which is placed nowhere yet."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return Block(f"{name}.{count}" if count else name)

    def lines(self) -> Iterable[str]:
        """Yield the lines of the function."""
        yield self._head
        for block in self.blocks:
            yield f"{block.name}:"
            for line in block.lines:
                yield f"  {line}"
        yield "}"


class Module:
    """A module: functions, declarations and metadata, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._declared: dict[str, Callee] = {}
        self._notes: dict[str, str] = {}
        self._defined: dict[str, Function] = {}
        self._metadata: list[str] = []
        self.needs_optimizer = False
        """Whether it has what takes all of LLVM's passes to be fast: loops that are left for it to
        vectorize, and small functions to be inlined."""

    @property
    def external(self) -> tuple[str, ...]:
        """The names of the functions that are declared and not intrinsic."""
        return tuple(name for name in self._declared if not name.startswith("llvm."))

    def declare(self, name: str, result: str, operands: Sequence[str], note: str = "") -> Callee:
        """Return a function that is defined elsewhere; ``note`` are its attributes."""
        found = self._declared.get(name)
        if found is None:
            found = self._declared[name] = Callee(name, result, operands)
            self._notes[name] = note
        return found

    def defined(self, name: str) -> Callee | None:
        """Return the function of this name, where it has been defined."""
        found = self._defined.get(name)
        return None if found is None else found.callee

    def define(
        self,
        name: str,
        result: str,
        operands: Sequence[str],
        *,
        attributes: Sequence[str] = (),
        is_internal: bool = True,
        suffix: str = "",
    ) -> Function:
        """Return a new function to be written."""
        assert name not in self._defined
        callee = Callee(name, result, operands)
        made = Function(self, callee, attributes=attributes, is_internal=is_internal, suffix=suffix)
        self._defined[name] = made
        return made

    def metadata(self, text: str) -> str:
        """Return the name of a metadata node; equal nodes are one."""
        if text not in self._metadata:
            self._metadata.append(text)
        return f"!{self._metadata.index(text)}"

    def loop_metadata(self, properties: Sequence[str]) -> str:
        """Return the name of a new loop identifier with these properties."""
        inner = ", ".join(self.metadata(text) for text in properties)
        number = len(self._metadata)
        self._metadata.append(f"distinct !{{!{number}, {inner}}}")
        return f"!{number}"

    def text(self) -> str:
        """Return the text of the module."""
        lines: list[str] = []
        for name, callee in self._declared.items():
            note = f" {self._notes[name]}" if self._notes[name] else ""
            lines.append(f"declare {callee.result} @{name}({', '.join(callee.operands)}){note}")
        for function in self._defined.values():
            lines += ["", *function.lines()]
        if self._metadata:
            lines.append("")
        for number, text in enumerate(self._metadata):
            lines.append(f"!{number} = {text}")
        return "\n".join(lines) + "\n"


_FOLDED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "ult": lambda a, b: _unsigned(a) < _unsigned(b),
}


def _unsigned(value: int) -> int:
    """Return what a number is when its bits are read without a sign."""
    return value % (1 << 64)


def _folded_truth(name: str, lhs: Value, rhs: Value) -> Value | None:
    """Return ``lhs name rhs`` where one of two truth values is known, None where neither is."""
    for known, other in ((lhs.known, rhs), (rhs.known, lhs)):
        if known is not None:
            return other if known == (name == "and") else integer(known, "i1")
    return None


class Builder:
    """Writes instructions at the end of a block of ``function``."""

    def __init__(self, function: Function) -> None:
        self.function: Final = function
        self.module: Final = function.module
        self.block = function.slots
        self.place(self.new_block("body"))

    # ------------------------------------------------------------ blocks

    def new_block(self, name: str) -> Block:
        """Return a new block; ``place`` puts it behind the others."""
        return self.function.new_block(name)

    def place(self, block: Block) -> None:
        """Go on in ``block``, the next one of the function."""
        self.function.blocks.append(block)
        self.block = block

    @contextmanager
    def in_front(self, needed: Iterable[Value]) -> Iterator[None]:
        """Write straight code once a call, in front of all blocks, if what it needs is known there.

        Else it is written here: LLVM does not move it where it only cleans up.
        """
        here = self.block
        params = {param.text for param in self.function.params}
        if all(value.known is not None or value.text in params for value in needed):
            self.block = self.function.slots
        try:
            yield
        finally:
            self.block = here

    def _end(self, line: str) -> None:
        assert not self.block.is_ended
        self.block.lines.append(line)
        self.block.is_ended = True

    def branch(self, block: Block, note: str = "") -> None:
        """End the block: go to ``block``."""
        self._end(f"br label %{block.name}{note}")

    def branch_if(self, condition: Value, then: Block, orelse: Block, note: str = "") -> None:
        """End the block: go to ``then`` where ``condition`` holds; ``note`` is metadata."""
        self._end(f"br i1 {condition.text}, label %{then.name}, label %{orelse.name}{note}")

    def ret(self, value: Value | None = None) -> None:
        """End the block: return."""
        self._end("ret void" if value is None else f"ret {value}")

    def finish(self) -> None:
        """End the block of stack slots: go to the body."""
        self.function.slots.lines.append(f"br label %{self.function.blocks[1].name}")

    # ------------------------------------------------------------ instructions

    def _line(self, kind: str, text: str) -> Value:
        made = self.function.new_value(kind)
        self.block.lines.append(f"{made.text} = {text}")
        return made

    def op(self, name: str, lhs: Value, rhs: Value, flags: str = "") -> Value:
        """Return ``lhs name rhs``: an arithmetic instruction; ``flags`` stand behind its name."""
        assert lhs.type == rhs.type, (name, lhs.type, rhs.type)
        if lhs.type[0] == "i":
            folded = self._fold(name, lhs, rhs)
            if folded is not None:
                return folded
        spelled = f"{name} {flags}" if flags else name
        return self._line(lhs.type, f"{spelled} {lhs.type} {lhs.text}, {rhs.text}")

    def _fold(self, name: str, lhs: Value, rhs: Value) -> Value | None:
        left, right = lhs.known, rhs.known
        if left is not None and right is not None and name in _FOLDED:
            return integer(_FOLDED[name](left, right), lhs.type)
        if lhs.type == "i1" and name in ("and", "or"):
            return _folded_truth(name, lhs, rhs)
        if lhs.type != "i64":
            return None
        if right == 0 and name in ("add", "sub", "or", "xor", "shl"):
            return lhs
        if left == 0 and name in ("add", "or", "xor"):
            return rhs
        if name == "mul" and (right == 1 or left == 0):
            return lhs
        if name == "mul" and (left == 1 or right == 0):
            return rhs
        return None

    def add(self, lhs: Value, rhs: Value | int) -> Value:
        """Return an index, or a vector of them, plus another one."""
        return self._of_indices("add", lhs, integer(rhs) if isinstance(rhs, int) else rhs)

    def mul(self, lhs: Value, rhs: Value | int) -> Value:
        """Return an index, or a vector of them, times another one."""
        return self._of_indices("mul", lhs, integer(rhs) if isinstance(rhs, int) else rhs)

    def _of_indices(self, name: str, lhs: Value, rhs: Value) -> Value:
        lanes = max(lanes_of(lhs.type), lanes_of(rhs.type))
        left, right = (v if lanes_of(v.type) == lanes else self.splat(v, lanes) for v in (lhs, rhs))
        return self.op(name, left, right, "nsw")

    def negate(self, value: Value, flags: str = "") -> Value:
        """Return a float with its sign changed."""
        spelled = f"fneg {flags}" if flags else "fneg"
        return self._line(value.type, f"{spelled} {value}")

    def compare(self, predicate: str, lhs: Value, rhs: Value) -> Value:
        """Return ``lhs predicate rhs``: ``slt`` and the like of integers, ``olt`` of floats."""
        assert lhs.type == rhs.type, (predicate, lhs.type, rhs.type)
        left, right = lhs.known, rhs.known
        if left is not None and right is not None and lhs.type != "i1" and predicate in _COMPARED:
            return integer(_COMPARED[predicate](left, right), "i1")
        name = "icmp" if scalar_of(lhs.type)[0] in "ip" else "fcmp"
        kind = vector_of("i1", lanes_of(lhs.type))
        return self._line(kind, f"{name} {predicate} {lhs.type} {lhs.text}, {rhs.text}")

    def select(self, condition: Value, then: Value, orelse: Value) -> Value:
        """Return one of two values that have both been computed."""
        assert then.type == orelse.type, (then.type, orelse.type)
        if then.text == orelse.text:
            return then
        if condition.known is not None:
            return then if condition.known else orelse
        return self._line(then.type, f"select {condition}, {then}, {orelse}")

    def cast(self, name: str, value: Value, kind: str) -> Value:
        """Return ``value`` converted by ``sext``, ``fptrunc``, ``bitcast`` or another one."""
        number = value.known
        if number is not None and name in ("sext", "trunc") and kind[0] == "i":
            return integer(number, kind)
        return self._line(kind, f"{name} {value} to {kind}")

    def load(self, address: Value, kind: str, align: int, note: str = "") -> Value:
        """Return what lies at an address."""
        return self._line(kind, f"load {kind}, {address}, align {align}{note}")

    def store(self, value: Value, address: Value, align: int, note: str = "") -> None:
        """Put a value at an address."""
        self.block.lines.append(f"store {value}, {address}, align {align}{note}")

    def offset(self, address: Value, index: Value | int, element: str = "i8") -> Value:
        """Return the address of the element ``index`` places further; of several, by vectors."""
        by = integer(index) if isinstance(index, int) else index
        if by.known == 0:
            return address
        kind = vector_of("ptr", max(lanes_of(address.type), lanes_of(by.type)))
        return self._line(kind, f"getelementptr inbounds {element}, {address}, {by}")

    def beyond(self, address: Value, size: Value) -> Value:
        """Return an address some bytes further, which may lie outside of the array."""
        return (
            address
            if size.known == 0
            else self._line("ptr", f"getelementptr i8, {address}, {size}")
        )

    def call(self, callee: Callee, operands: Sequence[Value], flags: str = "") -> Value:
        """Return what a function returns."""
        assert [operand.type for operand in operands] == list(callee.operands), callee.name
        listed = ", ".join(map(str, operands))
        spelled = f"call {flags}" if flags else "call"
        text = f"{spelled} {callee.result} @{callee.name}({listed})"
        if callee.result == "void":
            self.block.lines.append(text)
            return undefined("void")
        return self._line(callee.result, text)

    def slot(self, kind: str) -> Value:
        """Return the address of a new stack slot."""
        made = self.function.new_value("ptr")
        self.function.slots.lines.append(f"{made.text} = alloca {kind}")
        return made

    def phi(self, kind: str) -> Phi:
        """Return a value that blocks give at the start of this block."""
        made = Phi(self.function.new_value(kind))
        self.block.lines.append(made)
        return made

    # ------------------------------------------------------------ pairs and vectors

    def part(self, pair: Value, number: int) -> Value:
        """Return one part of a struct of two parts of one type."""
        kind = pair.type[1:-1].split(", ")[number]
        return self._line(kind, f"extractvalue {pair}, {number}")

    def pair(self, first: Value, second: Value) -> Value:
        """Return a struct of two values."""
        kind = f"{{{first.type}, {second.type}}}"
        half = self._line(kind, f"insertvalue {kind} poison, {first}, 0")
        return self._line(kind, f"insertvalue {half}, {second}, 1")

    def splat(self, value: Value, lanes: int) -> Value:
        """Return a vector that has ``value`` in each lane."""
        if lanes == 1:
            return value
        kind = vector_of(value.type, lanes)
        if value.text[0] != "%":
            return Value(kind, f"splat ({value})")
        one = self._line(kind, f"insertelement {kind} poison, {value}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self._line(kind, f"shufflevector {one}, {kind} poison, {zeros}")

    def lanes(self, vector: Value, first: int, count: int) -> Value:
        """Return ``count`` neighboring elements of a vector; one is no vector."""
        kind = vector_of(scalar_of(vector.type), count)
        if count == 1:
            return self._line(kind, f"extractelement {vector}, i64 {first}")
        places = ", ".join(f"i32 {place}" for place in range(first, first + count))
        mask = f"<{count} x i32> <{places}>"
        return self._line(kind, f"shufflevector {vector}, {vector.type} poison, {mask}")
