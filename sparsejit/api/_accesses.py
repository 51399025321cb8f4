"""Which names a function's code reads from outside, read off its bytecode.

In: a code object. Out: an ``Access`` for each global, closure variable or first argument that the
code, or a function nested in it, loads, with the attributes that follow: ``model.layer.W`` is root
``model`` and attributes ``("layer", "W")``. Nothing is evaluated.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from types import CodeType

from sparsejit._dataclasses import dataclass

__all__ = ["Access", "Root", "accesses"]


class Root(Enum):
    """Where a name lives."""

    GLOBAL = "global"
    CLOSURE = "closure"
    RECEIVER = "receiver"


@dataclass(frozen=True, slots=True)
class Access:
    """A name read from outside, and the attributes read from it."""

    root: Root
    name: str
    attributes: tuple[str, ...] = ()


_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CELLS = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


@lru_cache(maxsize=4096)
def accesses(code: CodeType) -> tuple[Access, ...]:
    """Return what ``code`` reads from outside, in order of appearance and without repetition.

    >>> [access.name for access in accesses((lambda x: x + undefined.name).__code__)]
    ['x', 'undefined']
    """
    receiver = code.co_varnames[0] if code.co_argcount else None
    found = _of_block(code, receiver, frozenset(code.co_freevars))
    return tuple(dict.fromkeys(found))


def _of_block(code: CodeType, receiver: str | None, free: frozenset[str]) -> Iterator[Access]:
    """Yield the accesses of one block and of those nested in it.

    ``receiver`` is the outer function's first argument, ``free`` its free variables: a nested block
    reaches both through cells.
    """
    pending: Access | None = None
    for step in dis.get_instructions(code):
        if pending is not None and step.opname in _ATTRIBUTES:
            pending = Access(pending.root, pending.name, (*pending.attributes, str(step.argval)))
            continue
        # What stands on top of the stack, the last one loaded, may have attributes read from it.
        *finished, pending = [pending, *(_loaded(step, receiver, free) or (None,))]
        yield from (access for access in finished if access is not None)
    if pending is not None:
        yield pending
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            own = frozenset(constant.co_varnames) | frozenset(constant.co_cellvars)
            inner = None if receiver in own else receiver
            yield from _of_block(constant, inner, free - own)


def _loaded(
    step: dis.Instruction, receiver: str | None, free: frozenset[str]
) -> tuple[Access | None, ...]:
    """Return what one instruction loads; some versions load two variables at once."""
    if step.opname in _GLOBALS:
        return (Access(Root.GLOBAL, str(step.argval)),)
    if step.opname in _CELLS or step.opname.startswith("LOAD_FAST"):
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        return tuple(_variable(str(name), receiver, free) for name in names)
    return ()


def _variable(name: str, receiver: str | None, free: frozenset[str]) -> Access | None:
    if name == receiver:
        return Access(Root.RECEIVER, name)
    if name in free:
        return Access(Root.CLOSURE, name)
    return None
