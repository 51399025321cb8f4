"""Loops, searches and branches in LLVM IR, written through a builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsejit.backends.llvm._text import Builder, Value, integer

__all__ = ["either", "first_place", "loop"]

_ASIDE = '!{!"branch_weights", i32 1, i32 2000}'


def loop(
    b: Builder,
    lower: Value,
    upper: Value,
    body: Callable[[Value], None],
    properties: Sequence[str] = (),
) -> None:
    """Write a loop; ``body`` gets its variable. ``properties`` are metadata nodes for LLVM."""
    head, inside, after = b.block, b.new_block("for"), b.new_block("end")
    b.branch_if(b.compare("slt", lower, upper), inside, after)
    b.place(inside)
    at = b.phi("i64")
    at.add(lower, head)
    body(at.value)
    following = b.add(at.value, 1)
    at.add(following, b.block)
    note = f", !llvm.loop {b.module.loop_metadata(properties)}" if properties else ""
    b.branch_if(b.compare("slt", following, upper), inside, after, note)
    b.place(after)


def first_place(
    b: Builder, lower: Value, upper: Value, is_before: Callable[[Value], Value]
) -> Value:
    """Return the first place from ``lower`` on that is not before what is wanted, or ``upper``.

    A binary search: ``is_before`` holds up to some place and nowhere behind it.
    """
    test, step, done = b.new_block("test"), b.new_block("step"), b.new_block("done")
    entry = b.block
    b.branch(test)
    b.place(test)
    low, high = b.phi("i64"), b.phi("i64")
    low.add(lower, entry)
    high.add(upper, entry)
    b.branch_if(b.compare("slt", low.value, high.value), step, done)
    b.place(step)
    middle = b.op("lshr", b.add(low.value, high.value), integer(1))
    before = is_before(middle)
    low.add(b.select(before, b.add(middle, 1), low.value), b.block)
    high.add(b.select(before, high.value, middle), b.block)
    b.branch(test)
    b.place(done)
    return low.value


def either(
    b: Builder,
    condition: Value,
    then: Callable[[], None],
    orelse: Callable[[], None] | None = None,
    *,
    is_aside: bool = False,
) -> None:
    """Write a branch: ``then`` where the condition holds, else ``orelse``.

    ``is_aside``: what does not hold is to be fast, so ``then`` gets no registers that it needs.
    """
    first, end = b.new_block("if"), b.new_block("endif")
    second = b.new_block("else") if orelse else end
    note = f", !prof {b.module.metadata(_ASIDE)}" if is_aside else ""
    b.branch_if(condition, first, second, note)
    b.place(first)
    then()
    b.branch(end)
    if orelse:
        b.place(second)
        orelse()
        b.branch(end)
    b.place(end)
