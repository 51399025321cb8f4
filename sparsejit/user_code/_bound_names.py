"""Whether each local name is bound wherever it is read: Numba reads 0 where it is not.

In: a code object. Out: the names that some path reads before it binds them. Python raises
``UnboundLocalError`` there; compiled code would go on with a wrong number.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any

__all__ = ["unbound_names"]

_LEAVES = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_JUMPS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


def unbound_names(code: CodeType) -> tuple[str, ...]:
    """Return the local names, also of nested functions, that may be read before they are bound.

    >>> def last(n):
    ...     for k in range(n):
    ...         pass
    ...     return k
    >>> unbound_names(last.__code__)
    ('k',)
    """
    found = dict.fromkeys(_of_block(code))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(unbound_names(constant)))
    return tuple(found)


def _of_block(code: CodeType) -> Iterator[str]:
    """Yield the names of one function: what is bound before each instruction, to a fixed point."""
    steps = list(dis.get_instructions(code))
    places = {step.offset: number for number, step in enumerate(steps)}
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args, **kwargs
    bound: dict[int, frozenset[str]] = {0: frozenset(code.co_varnames[:count])}
    entries: list[Any] = vars(dis.Bytecode(code))["exception_entries"]
    handlers = [(entry.start, entry.end, places[entry.target]) for entry in entries]
    waiting = [0]
    while waiting:
        number = waiting.pop()
        step, before = steps[number], bound[number]
        after = _after(step, before)
        following = [(target, after) for target in _next(step, number, places)]
        following += [
            (target, before) for start, end, target in handlers if start <= step.offset < end
        ]
        for target, names in following:
            known = bound.get(target)
            merged = names if known is None else known & names
            if target < len(steps) and merged != known:
                bound[target] = merged
                waiting.append(target)
    for number, step in enumerate(steps):
        if number in bound:
            yield from _unbound_reads(step, bound[number])


def _next(step: dis.Instruction, number: int, places: dict[int, int]) -> Iterator[int]:
    """Yield the numbers of the instructions that may come next."""
    if step.opname not in _LEAVES | _JUMPS:
        yield number + 1
    if step.opcode in (*dis.hasjrel, *dis.hasjabs):
        yield places[int(step.argval)]


def _parts(step: dis.Instruction) -> Iterator[tuple[str, str]]:
    """Yield what an instruction does to local names, one after the other; some do two things."""
    if "_FAST" not in step.opname:
        return
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    words = [word for word in step.opname.split("_") if word in ("LOAD", "STORE", "DELETE")]
    if step.opname == "LOAD_FAST_AND_CLEAR":  # keeps what may be unbound, for later
        words = ["DELETE"]
    yield from zip(words, map(str, names), strict=True)


def _after(step: dis.Instruction, names: frozenset[str]) -> frozenset[str]:
    for word, name in _parts(step):
        if word == "STORE":
            names = names | {name}
        elif word == "DELETE":
            names = names - {name}
    return names


def _unbound_reads(step: dis.Instruction, names: frozenset[str]) -> Iterator[str]:
    for word, name in _parts(step):
        if word == "LOAD" and name not in names:
            yield name
        elif word == "STORE":
            names = names | {name}
