"""What enters tracing and what leaves it: plain data shared by ``trace`` and ``api``.

The caller (``api``) binds and flattens the arguments of the user's function; each array or run-time
scalar becomes an ``ArgumentSpec``, known by its number. Tracing runs the function once on tracers
and returns a ``Traced``: the tensor function and how its results make up the returned object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Dim, evaluate
from sparsejit.formats import Format
from sparsejit.ir.facts import Fact
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import DType

__all__ = [
    "ArgumentKind",
    "ArgumentSpec",
    "ResultRef",
    "Slot",
    "TraceOptions",
    "Traced",
    "guards_hold",
]


class ArgumentKind(Enum):
    """Decides promotion (NEP 50): a Python scalar is weak, a NumPy scalar and an array are not."""

    ARRAY = "array"
    NUMPY_SCALAR = "numpy scalar"
    PYTHON_SCALAR = "python scalar"

    def __repr__(self) -> str:
        return f"ArgumentKind.{self.name}"


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """One operand: its name in the user's function, its concrete shape, and its type.

    ``shape`` is the shape of the call that is traced; of it, only which extents are 1 (and, with
    ``static_extents``, the numbers themselves) may influence the trace. ``format`` has concrete
    index widths. Two arguments that are the same object are one spec.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    format: Format
    fill: Const
    kind: ArgumentKind = ArgumentKind.ARRAY


@dataclass(frozen=True, slots=True)
class Slot:
    """A leaf of the flattened arguments: operand ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class ResultRef:
    """A leaf of the returned object: result ``index`` of the tensor function."""

    index: int


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """``output``: the requested format of all results, or by result position."""

    name: str
    output: Format | Mapping[int, Format] | None = None


@dataclass(frozen=True, slots=True)
class Traced:
    """The result of tracing.

    ``captured`` are objects met in the function's body that are no arguments (closures, globals),
    in the order of the extra parameters that they became, after those of the arguments.
    ``result`` is the returned object with a ``ResultRef`` for each traced leaf (other leaves are
    static values); containers are tuples, lists and dicts. ``static_extents`` lists
    (argument, dimension) pairs whose extent became a constant of the trace. ``guards`` are further
    assumptions about extents (that ``A[1:5]`` lies inside A): expressions over the symbols of
    ``func`` that are not negative in the traced call. A later call with the same key may use the
    trace only where ``guards_hold``; else the function is traced again. ``late`` are the pairs
    (parameter, assigned parameter) of which the user's code reads the first after its first
    assignment to the second, wherever ``func`` does so.
    """

    func: TensorFunc
    result: object
    captured: tuple[object, ...] = ()
    static_extents: tuple[tuple[int, int], ...] = ()
    facts: tuple[Fact, ...] = ()
    guards: tuple[AffineExpr, ...] = ()
    late: frozenset[tuple[int, int]] = frozenset()


def guards_hold(traced: Traced, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether a trace serves parameters of these shapes: they fit, and the guards hold.

    ``shapes`` has one shape for each parameter of ``traced.func``: arguments, then captured.
    """
    values: dict[int, int] = {}
    for param, shape in zip(traced.func.params, shapes, strict=True):
        for extent, number in zip(param.type.shape, shape, strict=True):
            if isinstance(extent, Dim):
                values.setdefault(extent.index, number)
    for param, shape in zip(traced.func.params, shapes, strict=True):
        for extent, number in zip(param.type.shape, shape, strict=True):
            if evaluate(extent, values) != number:
                return False
    return all(evaluate(guard, values) >= 0 for guard in traced.guards)
