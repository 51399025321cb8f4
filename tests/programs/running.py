"""Run a random program as a decorated function and in plain NumPy, and compare everything.

In: a ``Program``. Out: a ``Verdict``; a difference is an ``AssertionError``. Compared are the
results (values, dtype, shape, which elements are stored where that is known, the format where one
was asked for, and whether they are a caller's object) and the final state of all memory that the
caller holds, also where the call is refused: then nothing may have changed.
"""

from __future__ import annotations

import linecache
from enum import Enum
from typing import Any, Literal, cast

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.formats import Format, LevelKind
from sparsejit.pipeline import default_pipeline
from sparsejit.sparsify_and_bufferize import StageOptions
from tests.programs import user_functions
from tests.programs.accesses import may_be_refused
from tests.programs.language import Loop, Program
from tests.programs.pairs import Array, Pair, as_plain
from tests.programs.plain import Memory, evaluate_plain, make_memory
from tests.programs.text import source

__all__ = ["Verdict", "run_program", "traced_function"]

_NAMES = {name: getattr(sj, name) for name in sj.__all__}
_FUNCTIONS = {name: getattr(user_functions, name) for name in user_functions.__all__}


class Verdict(Enum):
    """``REFUSED``: ``UnsupportedError`` where the aliases of the call allow it.

    ``NEEDLESS``: refused for aliases though by the program's text all reads come first. What was
    read is computed later than it is written, so this is no wrong answer, but a missed one.
    """

    RIGHT = "right"
    REFUSED = "refused for aliases"
    NEEDLESS = "refused though a copy would do"
    UNSUPPORTED = "unsupported"


def traced_function(program: Program, target: str = "interpreter", **options: Any) -> Any:
    """Return the program as a function decorated with these options."""
    text = source(program)
    scope: dict[str, Any] = {"sj": sj, "np": np, **_FUNCTIONS}
    exec(compile(text, "<program>", "exec"), scope)
    linecache.cache["<program>"] = (len(text), None, text.splitlines(True), "<program>")
    outputs = {number: _format(name) for number, name in program.call.outputs}
    made = sj.sparse_jit(scope["f"], target=target, output=outputs or None, **options)
    storage = cast(Literal["inline", "runtime"], program.call.storage)
    made._pipeline = default_pipeline(stage_options=StageOptions(storage=storage))
    return made


def _format(name: str) -> Format:
    return cast(Format, eval(name, dict(_NAMES)))


def _callers(program: Program, memory: Memory) -> list[Any]:
    """Return what the caller passes for each object: views of the memory, or sparse copies."""
    return [
        sj.asarray(as_plain(array), format=_format(described.format), fill_value=array.fill)
        if isinstance(array, Pair)
        else array
        for described, array in zip(program.objects, memory.objects, strict=True)
    ]


def _called(program: Program, function: Any, arguments: list[Any]) -> list[Any]:
    """Return the results of a call in the program's way, in order."""
    names = [param.name for param in program.params]
    if program.call.packed:
        first, second, *arguments = arguments
        held: dict[str, Any] = {
            "tuple": (first, second),
            "list": [first, second],
            "dict": {"a": first, "b": second},
        }
        packed = held[program.call.packed]
        arguments = [packed, *arguments]
        names = ["packed", *names[2:]]
    cut = len(arguments) - program.call.keywords
    given = dict(zip(names[cut:], arguments[cut:], strict=True))
    got = function(*arguments[:cut], **given)
    kind = type(got).__name__
    assert kind == program.call.results, f"a {kind} of results"
    return [got[str(n)] for n in range(len(got))] if isinstance(got, dict) else list(got)


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


def run_program(program: Program, target: str = "interpreter", **options: Any) -> Verdict:
    """Run with these options and compare; ``AssertionError`` for any difference."""
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
        got = _called(program, traced_function(program, target, **options), arguments)
    except sj.errors.UnsupportedError as error:
        _same_all(_state(memory, callers), before)
        _same_all([_dense(value) for value in callers], values_before)
        if "overlap in memory" not in str(error):
            return Verdict.UNSUPPORTED
        is_due = may_be_refused(program, make_memory(program))
        return Verdict.REFUSED if is_due else Verdict.NEEDLESS
    assert len(got) == len(wanted)
    outputs = dict(program.call.outputs)
    loops = [loop for loop in program.statements if isinstance(loop, Loop)]
    carried = {name for loop in loops for name in loop.names}
    coarsest = _coarsest(program)
    for number, (mine, theirs) in enumerate(zip(got, wanted, strict=True)):
        what = f"result {number}"
        tolerance = max(coarsest, _tolerance(as_plain(np.asarray(theirs)).dtype))
        exact = not program.returns[number].startswith("r")
        _same(_dense(mine), as_plain(np.asarray(theirs)), what, 0 if exact else tolerance)
        _check_storage(mine, theirs, outputs.get(number), what)
        for held, plain in zip(callers, wanted_memory.objects, strict=True):
            if mine is held and program.returns[number] in carried:
                continue  # what no round of a loop has changed may be the object itself
            assert (mine is held) == (theirs is plain), f"{what} is the caller's object or not"
    for array, plain in zip(memory.bases, wanted_memory.bases, strict=True):
        _same(array, plain, "state of the caller's memory")
    for held, plain in zip(callers, wanted_memory.objects, strict=True):
        _same(_dense(held), as_plain(plain), "state of an argument")
    return Verdict.RIGHT


def _dense(value: Any) -> Array:
    """Return a value as an array, after checking its storage from scratch."""
    if isinstance(value, sj.SparseTensor):
        return sj.SparseTensor(
            value.format, value.shape, value.positions, value.coordinates, value.values,
            value.fill_value,
        ).to_numpy()  # fmt: skip
    assert not sp.issparse(value), "no argument is SciPy's"
    return np.asarray(value)


def _check_storage(mine: Any, theirs: Any, wanted: str | None, what: str) -> None:
    """Compare format, fill value and stored mask with what is known of them."""
    if wanted is not None:
        found = mine.format if isinstance(mine, sj.SparseTensor) else sj.Dense(np.ndim(mine))
        assert found.with_widths(0, 0) == _format(wanted), f"{what}: format {found}"
    if not isinstance(mine, sj.SparseTensor) or not isinstance(theirs, Pair) or not theirs.size:
        return
    if theirs.stored is None or theirs.pads or not _stores_entries_only(mine.format):
        return
    ones = sj.SparseTensor(
        mine.format, mine.shape, mine.positions, mine.coordinates,
        np.ones(mine.values.shape), 0.0,
    )  # fmt: skip
    np.testing.assert_array_equal(ones.to_numpy() != 0, theirs.stored, err_msg=f"{what}: stored")


def _stores_entries_only(fmt: Format) -> bool:
    """Whether nothing is stored beside entries: no dense level below a sparse one."""
    kinds = [level.type.kind for level in fmt.levels]
    last = kinds[-1]
    return last in (LevelKind.COMPRESSED, LevelKind.SINGLETON, LevelKind.LOOSE_COMPRESSED)


def _coarsest(program: Program) -> float:
    """Return how far inexact results may differ for the narrowest floats on the way to them.

    NumPy makes 16-bit floats of 8-bit integers where it needs floats, and these are not rounded
    at every step here.
    """
    dtypes = [np.dtype(base.dtype) for base in program.bases]
    if any(dtype.itemsize < 3 for dtype in dtypes):
        return 2e-2
    is_cast = "float32" in source(program)
    return 1e-5 if is_cast or {"float32", "complex64"} & {d.name for d in dtypes} else 1e-10


def _tolerance(dtype: np.dtype[Any]) -> float:
    return 1e-5 if dtype in (np.float32, np.complex64) else 1e-10


def _same(mine: Array, theirs: Array, what: str, tolerance: float = 0) -> None:
    assert mine.shape == theirs.shape, f"{what}: shape {mine.shape}, expected {theirs.shape}"
    assert mine.dtype == theirs.dtype, f"{what}: dtype {mine.dtype}, expected {theirs.dtype}"
    if not tolerance:
        np.testing.assert_array_equal(mine, theirs, err_msg=what)
        return
    if mine.dtype.name == "bfloat16":
        mine, theirs = mine.astype(np.float32), theirs.astype(np.float32)
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance, err_msg=what)


def _same_all(mine: list[Array], theirs: list[Array]) -> None:
    for one, other in zip(mine, theirs, strict=True):
        _same(one, other, "state after a refused call")
