"""The tensor IR: SSA values in destination-passing style, after MLIR's linalg on tensors.

A ``TensorFunc`` names its parameters, its symbols (extents first, then the induction variables of
its loops), a list of operations and its results. Values have value semantics: an operation never
changes an operand, it returns a new value; ``init`` is where a result would like to live. Data
only: building is in ``build``, printing in ``printing``, rules in ``verify``.
"""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap
from sparsejit.errors import Location
from sparsejit.ir.scalar import Const, ScalarExpr
from sparsejit.ir.types import IteratorType, TensorType

__all__ = [
    "AllocTensor",
    "Concat",
    "Convert",
    "Empty",
    "ExtractSlice",
    "For",
    "Generic",
    "If",
    "Insert",
    "InsertSlice",
    "Materialize",
    "Op",
    "Pad",
    "PlainOp",
    "Reshape",
    "TensorFunc",
    "Value",
    "While",
]


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: a name, unique in its function, and a type."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class Generic:
    """One perfectly nested computation: for all loops, ``out = body(inputs, out)``.

    ``indexing_maps`` has one map from loops to dimensions for each input and, last, for ``init``.
    ``extents`` has one expression over the function's symbols for each loop. The body's last
    ``Arg`` is the destination's element; a body that reads it accumulates. Every reduction loop is
    absent from the destination's map. Source: MLIR's ``linalg.generic``.
    """

    result: Value
    inputs: tuple[Value, ...]
    init: Value
    indexing_maps: tuple[AffineMap, ...]
    iterator_types: tuple[IteratorType, ...]
    extents: tuple[AffineExpr, ...]
    body: ScalarExpr
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """The same tensor in the format (and index widths) of ``result``'s type."""

    result: Value
    source: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Empty:
    """A new tensor: undefined elements when dense, no entries (all fill) when sparse."""

    result: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class AllocTensor:
    """A new buffer, with the contents of ``copy`` or undefined. Only the atomic stage makes it."""

    result: Value
    copy: Value | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """``dest`` with the element at ``indices`` replaced by the rank-0 tensor ``scalar``."""

    result: Value
    scalar: Value
    dest: Value
    indices: tuple[AffineExpr, ...]
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ExtractSlice:
    """The elements ``offsets + k * strides`` of ``source``; ``dropped`` dimensions have size 1.

    The result has the dimensions of ``source`` without the dropped ones, of extents ``sizes``.
    """

    result: Value
    source: Value
    offsets: tuple[AffineExpr, ...]
    sizes: tuple[AffineExpr, ...]
    strides: tuple[int, ...]
    dropped: tuple[int, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class InsertSlice:
    """``dest`` with the slice (as in ``ExtractSlice``) replaced by ``source``."""

    result: Value
    source: Value
    dest: Value
    offsets: tuple[AffineExpr, ...]
    sizes: tuple[AffineExpr, ...]
    strides: tuple[int, ...]
    dropped: tuple[int, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Reshape:
    """The elements of ``source``, in row-major order, in the shape of ``result``.

    A dense result may live in the buffer of its source; a sparse one is a tensor of its own, and
    may have another format.
    """

    result: Value
    source: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Concat:
    """The ``sources``, one after the other along dimension ``axis``: a new tensor.

    Sources and result may have different formats; their fill values are the same.
    """

    result: Value
    sources: tuple[Value, ...]
    axis: int
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Pad:
    """``source`` with ``low`` elements before and ``high`` after it along each dimension.

    The new elements are ``value``, which is the fill value where the result is sparse.
    """

    result: Value
    source: Value
    low: tuple[AffineExpr, ...]
    high: tuple[AffineExpr, ...]
    value: Const
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Materialize:
    """``dest`` (a parameter that the function assigns) takes the contents of ``source``.

    The result is the new state of ``dest`` and lives in its buffer.
    """

    result: Value
    source: Value
    dest: Value
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class For:
    """A loop that carries tensors: ``results = inits; for i: results = body(i, results)``.

    ``induction`` is the number of the symbol that counts from ``lower`` up to ``upper`` (excluded);
    ``args`` are the carried values inside the body, ``yields`` what the body hands on.
    """

    results: tuple[Value, ...]
    induction: int
    lower: AffineExpr
    upper: AffineExpr
    inits: tuple[Value, ...]
    args: tuple[Value, ...]
    body: tuple[Op, ...]
    yields: tuple[Value, ...]
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class While:
    """A loop without a count: ``results = inits; while condition: results = body(results)``.

    ``args`` are the carried values in the block ``test``, which computes ``condition``, a rank-0
    tensor of bool, and changes nothing; ``body_args`` are the same values in ``body``.
    Source: MLIR's ``scf.while``, whose condition hands the carried values on as they are.
    """

    results: tuple[Value, ...]
    inits: tuple[Value, ...]
    args: tuple[Value, ...]
    test: tuple[Op, ...]
    condition: Value
    body_args: tuple[Value, ...]
    body: tuple[Op, ...]
    yields: tuple[Value, ...]
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class If:
    """``results`` are ``then_yields`` where ``condition`` (rank 0, bool) holds, else the others."""

    results: tuple[Value, ...]
    condition: Value
    then: tuple[Op, ...]
    then_yields: tuple[Value, ...]
    orelse: tuple[Op, ...]
    else_yields: tuple[Value, ...]
    location: Location | None = None


PlainOp = (
    Generic
    | Convert
    | Empty
    | AllocTensor
    | Insert
    | ExtractSlice
    | InsertSlice
    | Reshape
    | Concat
    | Pad
    | Materialize
)
"""The operations without blocks."""

Op = PlainOp | For | While | If


@dataclass(frozen=True, slots=True)
class TensorFunc:
    """A function from tensors to tensors.

    ``symbols`` names the symbols that shapes and indices use, by number: ``num_extents`` extents of
    parameters, then induction variables. Extent symbol ``s`` has the value of the first parameter
    dimension whose shape expression is ``Dim(s)``; all other dimensions must agree with theirs.
    ``assigned`` are the parameters that the function may write (their final value is a
    ``Materialize`` into them); all others are read only.
    """

    name: str
    params: tuple[Value, ...]
    symbols: tuple[str, ...]
    num_extents: int
    ops: tuple[Op, ...]
    results: tuple[Value, ...]
    assigned: tuple[Value, ...] = ()
