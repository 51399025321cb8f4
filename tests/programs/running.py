"""Run a random program as a decorated function and in plain NumPy, and compare everything.

In: a ``Program``. Out: a ``Verdict``; a difference is an ``AssertionError``. Compared are the
results (values, dtype, shape, and whether they are a caller's object) and the final state of all
memory that the caller holds, also where the call is refused: then nothing may have changed.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

import sparsejit as sj
from tests.programs.accesses import may_be_refused
from tests.programs.language import Object, Program, source
from tests.programs.plain import Memory, evaluate_plain, make_memory

__all__ = ["Verdict", "run_program", "traced_function"]

Array = np.ndarray[Any, np.dtype[Any]]


class Verdict(Enum):
    """``REFUSED``: ``UnsupportedError`` where the aliases of the call allow it.

    ``NEEDLESS``: refused for aliases though by the program's text all reads come first. What was
    read is computed later than it is written, so this is no wrong answer, but a missed one.
    """

    RIGHT = "right"
    REFUSED = "refused for aliases"
    NEEDLESS = "refused though a copy would do"
    UNSUPPORTED = "unsupported"


def traced_function(program: Program, target: str = "interpreter") -> Any:
    """Return the program as a decorated function."""
    scope: dict[str, Any] = {"sj": sj, "np": np}
    exec(compile(source(program), "<program>", "exec"), scope)
    return sj.sparse_jit(scope["f"], target=target)


def _format(described: Object) -> Any:
    return eval(described.format, {name: getattr(sj, name) for name in sj.__all__})


def _callers(program: Program, memory: Memory) -> list[Any]:
    """Return what the caller passes for each object: views of the memory, or sparse copies."""
    return [
        sj.asarray(array, format=_format(described)) if described.format else array
        for described, array in zip(program.objects, memory.objects, strict=True)
    ]


def _state(memory: Memory, callers: list[Any]) -> list[Array]:
    """Return copies of all memory that the caller holds."""
    sparse = [value for value in callers if isinstance(value, sj.SparseTensor)]
    buffers = [
        buffer
        for tensor in sparse
        for buffer in (*tensor.positions, *tensor.coordinates)
        if buffer is not None
    ]
    return [array.copy() for array in [*memory.bases, *buffers]]


def run_program(program: Program, target: str = "interpreter") -> Verdict:
    """Run and compare; ``AssertionError`` for any difference."""
    wanted_memory = make_memory(program)
    wanted = evaluate_plain(program, wanted_memory)
    memory = make_memory(program)
    callers = _callers(program, memory)
    arguments = [
        param.number if param.object is None else callers[param.object] for param in program.params
    ]
    before = _state(memory, callers)
    values_before = [_dense(value).copy() for value in callers]
    try:
        got = traced_function(program, target)(*arguments)
    except sj.errors.UnsupportedError as error:
        _same_all(_state(memory, callers), before)
        _same_all([_dense(value) for value in callers], values_before)
        if "overlap in memory" not in str(error):
            return Verdict.UNSUPPORTED
        is_due = may_be_refused(program, make_memory(program))
        return Verdict.REFUSED if is_due else Verdict.NEEDLESS
    assert len(got) == len(wanted)
    for mine, theirs in zip(got, wanted, strict=True):
        _same(_dense(mine), np.asarray(theirs), "result")
        for held, plain in zip(callers, wanted_memory.objects, strict=True):
            assert (mine is held) == (theirs is plain), "a result is the caller's object or not"
    for array, plain in zip(memory.bases, wanted_memory.bases, strict=True):
        _same(array, plain, "state of the caller's memory")
    for held, plain in zip(callers, wanted_memory.objects, strict=True):
        _same(_dense(held), plain, "state of an argument")
    return Verdict.RIGHT


def _dense(value: Any) -> Array:
    return value.to_numpy() if isinstance(value, sj.SparseTensor) else np.asarray(value)


def _same(mine: Array, theirs: Array, what: str) -> None:
    assert mine.shape == theirs.shape, f"{what}: shape {mine.shape}, expected {theirs.shape}"
    assert mine.dtype == theirs.dtype, f"{what}: dtype {mine.dtype}, expected {theirs.dtype}"
    np.testing.assert_array_equal(mine, theirs, err_msg=what)


def _same_all(mine: list[Array], theirs: list[Array]) -> None:
    for one, other in zip(mine, theirs, strict=True):
        _same(one, other, "state after a refused call")
