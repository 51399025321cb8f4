"""How the tests of tracing call it: operands from arrays, texts, and evaluation in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsejit.errors import Location
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import constant
from sparsejit.ir.printing import print_tensor
from sparsejit.trace import (
    ArgumentKind,
    ArgumentSpec,
    ResultRef,
    Slot,
    Traced,
    TraceOptions,
    trace,
)
from sparsejit.trace._promotion import dtype_of_numpy
from tests.support.evaluate import Tensor, run

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Operand:
    """An argument: its elements, its format, and which elements it stores (those that differ)."""

    array: Any
    format: Format | None = None
    fill: complex = 0
    kind: ArgumentKind = ArgumentKind.ARRAY

    @property
    def dense(self) -> Array:
        return np.asarray(self.array)

    def spec(self, name: str) -> ArgumentSpec:
        dtype = dtype_of_numpy(self.dense.dtype)
        fmt = self.format or Dense(self.dense.ndim)
        return ArgumentSpec(
            name, self.dense.shape, dtype, fmt, constant(self.fill, dtype), self.kind
        )

    def tensor(self) -> Tensor:
        full = self.format is None or self.format.is_all_full
        return Tensor.of(self.dense, None if full else self.dense != self.fill)


def operand(value: Any) -> Operand:
    """Return an argument as ``Operand``: Python and NumPy scalars keep their kind."""
    if isinstance(value, Operand):
        return value
    if isinstance(value, np.generic):
        return Operand(value, kind=ArgumentKind.NUMPY_SCALAR)
    if isinstance(value, bool | int | float | complex):
        return Operand(value, kind=ArgumentKind.PYTHON_SCALAR)
    return Operand(value)


def traced(
    fn: Callable[..., Any], *operands: Any, output: Any = None, names: Sequence[str] | None = None
) -> Traced:
    """Trace ``fn`` on operands (arrays are dense)."""
    given = [operand(value) for value in operands]
    code = fn.__code__
    found = names or code.co_varnames[: code.co_argcount]
    specs = [value.spec(name) for value, name in zip(given, found, strict=True)]
    slots = tuple(Slot(number) for number in range(len(specs)))
    return trace(fn, slots, {}, specs, TraceOptions(fn.__name__.strip("<>"), output))


def text(fn: Callable[..., Any], *operands: Any, output: Any = None) -> str:
    """Return the text of the tensor function."""
    return print_tensor(traced(fn, *operands, output=output).func)


def evaluated(
    fn: Callable[..., Any], *operands: Any, output: Any = None
) -> tuple[Any, list[Array]]:
    """Return what the traced function gives, with arrays for results, and the operands after it."""
    result = traced(fn, *operands, output=output)
    given = [operand(value).tensor() for value in operands]
    given += [Tensor.of(np.asarray(obj)) for obj in result.captured]
    results, after = run(result.func, given)

    def filled(tree: Any) -> Any:
        match tree:
            case ResultRef(index):
                return results[index].values
            case tuple() | list():
                return type(tree)(filled(item) for item in tree)
            case dict():
                return {key: filled(item) for key, item in tree.items()}
            case _:
                return tree

    return filled(result.result), [tensor.values for tensor in after[: len(operands)]]


def stored(fn: Callable[..., Any], *operands: Any, output: Any = None) -> Array:
    """Return which elements of the first result are stored."""
    result = traced(fn, *operands, output=output)
    results, _ = run(result.func, [operand(value).tensor() for value in operands])
    return results[0].stored


def check(
    fn: Callable[..., Any],
    *operands: Any,
    expected: Any = None,
    output: Any = None,
    rtol: float = 1e-12,
) -> None:
    """Compare with NumPy: ``expected(*arrays)``, by default ``fn`` itself, on copies."""
    reference = fn if expected is None else expected
    given = [
        value if operand(value).kind is not ArgumentKind.ARRAY else operand(value).dense.copy()
        for value in operands
    ]
    with np.errstate(all="ignore"):
        wanted = reference(*given)
    got, after = evaluated(fn, *operands, output=output)
    compare(got, wanted, rtol)
    for mine, theirs in zip(after, given, strict=True):
        compare(mine, theirs, rtol)


def compare(got: Any, wanted: Any, rtol: float) -> None:
    """Assert that two results agree in structure, shape, dtype and values."""
    if isinstance(wanted, tuple | list):
        assert type(got) is type(wanted)
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            compare(one, other, rtol)
        return
    if isinstance(wanted, dict):
        assert got.keys() == wanted.keys()
        compare(list(got.values()), list(wanted.values()), rtol)
        return
    if wanted is None or (isinstance(wanted, int) and isinstance(got, int)):
        assert got == wanted
        return
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype, f"dtype {got.dtype}, expected {wanted.dtype}"
    assert got.shape == wanted.shape, f"shape {got.shape}, expected {wanted.shape}"
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)


def here(fn: Callable[..., Any], offset: int) -> Location:
    """Return the location of a line of ``fn``, counted from its ``def``."""
    return Location(fn.__code__.co_filename, fn.__code__.co_firstlineno + offset, fn.__name__)
