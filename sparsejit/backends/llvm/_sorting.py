"""``sort_prefix(elements, count)`` in LLVM IR: sorts int64 elements in place.

A few are sorted by insertion. More are sorted digit by digit (radix sort, digits of 8 bits), which
takes time linear in their number and needs memory for a copy; without it they are sorted by
insertion too. What is in order already is left alone.
"""

from __future__ import annotations

from sparsejit.backends.llvm._control import loop
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._text import Builder, Callee, Value, integer

__all__ = ["sort_prefix"]

_FEW = 20
_BUCKETS = 256


def sort_prefix(functions: Functions) -> Callee:
    """Return the function, which is added to the module when first asked for."""
    return functions.define(
        "sort_prefix", "void", ["ptr", "i64"], lambda b: _body(b, functions), "noinline nounwind"
    )


def _at(b: Builder, elements: Value, place: Value) -> Value:
    return b.offset(elements, place, "i64")


def _get(b: Builder, elements: Value, place: Value) -> Value:
    return b.load(_at(b, elements, place), "i64", 8)


def _body(b: Builder, functions: Functions) -> None:
    elements, count = b.function.params
    check, sorting, many = b.new_block("check"), b.new_block("sorting"), b.new_block("many")
    radix, few, done = b.new_block("radix"), b.new_block("few"), b.new_block("done")
    head = b.block
    b.branch(check)
    b.place(check)
    at = b.phi("i64")
    at.add(integer(1), head)
    b.branch_if(b.compare("slt", at.value, count), sorting, done)
    b.place(sorting)
    before = _get(b, elements, b.add(at.value, -1))
    at.add(b.add(at.value, 1), b.block)
    in_order = b.compare("sle", before, _get(b, elements, at.value))
    unsorted = b.new_block("unsorted")
    b.branch_if(in_order, check, unsorted)
    b.place(unsorted)
    b.branch_if(b.compare("sgt", count, integer(_FEW)), many, few)
    b.place(many)
    copy = b.call(functions.malloc(), [b.mul(count, 8)])
    b.branch_if(b.compare("ne", copy, Value("ptr", "null")), radix, few)
    b.place(radix)
    _radix(b, elements, copy, count)
    b.call(functions.free(), [copy])
    b.branch(done)
    b.place(few)
    _insertion(b, elements, count)
    b.branch(done)
    b.place(done)
    b.ret()


def _insertion(b: Builder, elements: Value, count: Value) -> None:
    def insert(place: Value) -> None:
        value = _get(b, elements, place)
        test, look, move = b.new_block("test"), b.new_block("look"), b.new_block("move")
        found = b.new_block("found")
        head = b.block
        b.branch(test)
        b.place(test)
        at = b.phi("i64")
        at.add(place, head)
        b.branch_if(b.compare("sgt", at.value, integer(0)), look, found)
        b.place(look)
        below = b.add(at.value, -1)
        other = _get(b, elements, below)
        b.branch_if(b.compare("sgt", other, value), move, found)
        b.place(move)
        b.store(other, _at(b, elements, at.value), 8)
        at.add(below, b.block)
        b.branch(test)
        b.place(found)
        b.store(value, _at(b, elements, at.value), 8)

    loop(b, integer(1), count, insert)


def _radix(b: Builder, elements: Value, copy: Value, count: Value) -> None:
    bits, source, target = b.slot("i64"), b.slot("ptr"), b.slot("ptr")
    starts = b.slot(f"[{_BUCKETS} x i64]")
    b.store(integer(0), bits, 8)
    b.store(elements, source, 8)
    b.store(copy, target, 8)
    loop(b, integer(0), count, lambda at: _note_bits(b, bits, _get(b, elements, at)))
    head, test, digit = b.block, b.new_block("next"), b.new_block("digit")
    sorted_, back, done = b.new_block("sorted"), b.new_block("back"), b.new_block("in_place")
    b.branch(test)
    b.place(test)
    shift = b.phi("i64")
    shift.add(integer(0), head)
    in_range = b.select(b.compare("slt", shift.value, integer(64)), shift.value, integer(63))
    left = b.op("lshr", b.load(bits, "i64", 8), in_range)
    more = b.op(
        "and", b.compare("ne", left, integer(0)), b.compare("slt", shift.value, integer(64))
    )
    b.branch_if(more, digit, sorted_)
    b.place(digit)
    origin, to = b.load(source, "ptr", 8), b.load(target, "ptr", 8)
    _pass(b, origin, to, starts, count, shift.value)
    b.store(to, source, 8)
    b.store(origin, target, 8)
    shift.add(b.add(shift.value, 8), b.block)
    b.branch(test)
    b.place(sorted_)
    last = b.load(source, "ptr", 8)
    b.branch_if(b.compare("ne", last, elements), back, done)
    b.place(back)
    loop(b, integer(0), count, lambda at: b.store(_get(b, copy, at), _at(b, elements, at), 8))
    b.branch(done)
    b.place(done)


def _note_bits(b: Builder, bits: Value, element: Value) -> None:
    b.store(b.op("or", b.load(bits, "i64", 8), element), bits, 8)


def _pass(b: Builder, origin: Value, to: Value, starts: Value, count: Value, shift: Value) -> None:
    """Move all elements to the order of one digit; negative numbers come first in the last one."""
    flip = b.select(b.compare("eq", shift, integer(56)), integer(0x80), integer(0))

    def bucket(element: Value) -> Value:
        digit = b.op("and", b.op("lshr", element, shift), integer(_BUCKETS - 1))
        return _at(b, starts, b.op("xor", digit, flip))

    def tally(at: Value) -> None:
        where = bucket(_get(b, origin, at))
        b.store(b.add(b.load(where, "i64", 8), 1), where, 8)

    def move(at: Value) -> None:
        element = _get(b, origin, at)
        where = bucket(element)
        place = b.load(where, "i64", 8)
        b.store(element, _at(b, to, place), 8)
        b.store(b.add(place, 1), where, 8)

    total = b.slot("i64")

    def start(at: Value) -> None:
        where = _at(b, starts, at)
        before = b.load(total, "i64", 8)
        b.store(b.add(before, b.load(where, "i64", 8)), total, 8)
        b.store(before, where, 8)

    buckets = integer(_BUCKETS)
    loop(b, integer(0), buckets, lambda at: b.store(integer(0), _at(b, starts, at), 8))
    loop(b, integer(0), count, tally)
    b.store(integer(0), total, 8)
    loop(b, integer(0), buckets, start)
    loop(b, integer(0), count, move)
