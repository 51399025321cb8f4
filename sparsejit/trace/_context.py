"""The trace in progress: what has been emitted so far, and the state of the traced arrays.

One ``Trace`` per call of ``trace``, found through a context variable, so that threads and nested
calls do not see each other. Operations are appended here and nowhere else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Dim
from sparsejit.errors import Location, TraceError
from sparsejit.formats import Format
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.tensor import Empty, Op, Value
from sparsejit.ir.types import DType, TensorType
from sparsejit.trace._blocks import Block
from sparsejit.trace._extents import Extents
from sparsejit.trace._interface import ArgumentKind, ArgumentSpec, TraceOptions
from sparsejit.trace._locations import caller, user_place
from sparsejit.trace._pointwise import Pointwise, of_value
from sparsejit.trace._sealed import Sealed

if TYPE_CHECKING:
    from sparsejit.trace._array import Array
    from sparsejit.trace._index_extents import Bound

__all__ = [
    "Cell",
    "Deferred",
    "Trace",
    "Unassigned",
    "check_alive",
    "current_trace",
    "in_trace",
    "is_tracing",
    "require_trace",
    "trace_in_progress",
]

_FIRST_INDEX = 1 << 10
"""Indices of index notation are numbered from here, dimensions of array expressions from 0."""

_UNROLLED = 64
"""How often a loop of the user's Python code may come to the same place."""


@dataclass(slots=True)
class Deferred:
    """A fresh result that is emitted when it is needed, in the format that is then asked for."""

    emit: Callable[[Format | None], Value]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Unassigned:
    """An output before its first assignment, with what is known of it."""

    shape: tuple[AffineExpr, ...] | None
    dtype: DType | None
    format: Format | None


@dataclass(slots=True)
class Cell:
    """What a name stands for at this moment of the trace; assignment replaces the content.

    ``param`` is the number of the parameter whose object this is, ``assigned`` whether the function
    has written to it. ``immutable``: a scalar, of which Python's ``s += e`` makes a new one.
    ``location`` is where the content was written down, ``block`` the block that it was made in,
    ``sealed`` why it cannot be assigned where it is dense.
    """

    shape: tuple[AffineExpr, ...]
    content: Pointwise | Deferred | Unassigned
    param: int | None = None
    assigned: bool = False
    immutable: bool = False
    location: Location | None = None
    block: Block | None = None
    sealed: Sealed | None = None

    def computed(self, content: Pointwise) -> None:
        """Keep the value that the content has been computed into."""
        self.content = content


_BUFFER = re.compile(r"(.+)_(pos|crd|val)[a-z]*\d*")


def _collide(one: str, other: str) -> bool:
    """Whether two parameters have one name, or one is called like a buffer of the other."""
    matches = _BUFFER.fullmatch(one), _BUFFER.fullmatch(other)
    bases = [match[1] if match is not None else None for match in matches]
    return one == other or bases[0] == other or bases[1] == one


class Trace:
    """The state of one trace."""

    def __init__(self, options: TraceOptions, make_array: Callable[..., Array]) -> None:
        self.options = options
        self.extents = Extents()
        self.block = self._root = Block()
        self.params: list[Value] = []
        self.cells: list[Cell] = []
        self.kinds: list[ArgumentKind] = []
        self.captured: list[object] = []
        self.facts: list[Fact] = []
        self.alive = True
        self.elements = False
        self._make_array = make_array
        self._numbers = 0
        self._indices = _FIRST_INDEX
        self._captured_at: dict[int, int] = {}
        self._steps: Counter[object] = Counter()
        self.index_names: dict[int, str] = {}
        self.bounds: dict[str, tuple[Bound, ...]] = {}
        self.late: set[tuple[int, int]] = set()
        self.counters = 0

    # ------------------------------------------------------------ blocks

    @property
    def ops(self) -> list[Op]:
        """The operations of the block that is being traced."""
        return self.block.ops

    @property
    def counts(self) -> dict[Dim, Value]:
        """The values of extents and loop counters that this block has."""
        return self.block.counts

    @property
    def slices(self) -> dict[Hashable, Value]:
        """The slices that were taken in this block, or around it."""
        return self.block.slices

    @contextmanager
    def nested(self, *, repeats: bool) -> Iterator[Block]:
        """Trace into a new block inside the present one, which ``repeats`` or runs at most once."""
        block = Block.inside(self.block, repeats)
        with self.within(block):
            yield block

    @contextmanager
    def within(self, block: Block | None) -> Iterator[None]:
        """Trace into ``block``, which is around the present one: what it gets runs before that.

        None is the function's own block.
        """
        before, self.block = self.block, block or self._root
        try:
            yield
        finally:
            self.block = before

    def block_of(self, cell: Cell) -> Block:
        """Return the block of a cell; ``TraceError`` where that has ended."""
        block = cell.block or self._root
        if not self.block.is_within(block):
            raise TraceError(
                "an array of a loop body or branch is used after it",
                hint="return it from the body: what the loop carries is its result",
                location=caller(),
            )
        return block

    def check_assignable(self, cell: Cell) -> None:
        """Raise ``TraceError`` for an assignment to an array from outside of this block."""
        if self.block_of(cell) is not self.block:
            raise TraceError(
                "assignment to an array from outside of a loop body or branch",
                hint="carry it: give it to the loop as an initial value, and return it",
                location=caller(),
            )

    @contextmanager
    def of_elements(self) -> Iterator[None]:
        """Let arrays of rank 0 be elements over index variables: they are never computed alone."""
        before, self.elements = self.elements, True
        try:
            yield
        finally:
            self.elements = before

    # ------------------------------------------------------------ parameters

    def add_param(self, spec: ArgumentSpec) -> Cell:
        """Add a parameter of the tensor function and return its cell."""
        number = len(self.params)
        shape = tuple(
            self.extents.symbol(number, dim, extent) for dim, extent in enumerate(spec.shape)
        )
        name = spec.name
        while name.isdigit() or any(_collide(name, param.name) for param in self.params):
            name += "_"
        value = Value(name, TensorType(shape, spec.dtype, spec.format, spec.fill))
        weak = spec.kind is ArgumentKind.PYTHON_SCALAR
        content = of_value(value)
        whole = Pointwise(content.body, content.accesses, content.dtype, weak)
        immutable = spec.kind is not ArgumentKind.ARRAY
        cell = Cell(shape, whole, number, immutable=immutable, block=self._root)
        self.params.append(value)
        self.cells.append(cell)
        self.kinds.append(spec.kind)
        return cell

    def capture(self, obj: object, describe: Callable[[str], ArgumentSpec]) -> Cell:
        """Return the cell of an object met in the function's body; the same object is one cell."""
        number = self._captured_at.get(id(obj))
        if number is None:
            number = len(self.params)
            self.add_param(describe(f"captured{len(self.captured)}"))
            self.captured.append(obj)  # which keeps the identity from being reused
            self._captured_at[id(obj)] = number
        return self.cells[number]

    def note_read(self, cell: Cell) -> None:
        """Note that the user's code reads ``cell`` now, perhaps behind assignments to others."""
        if cell.param is not None and not cell.assigned:
            written = (n for n, other in enumerate(self.cells) if other.assigned)
            self.late.update((cell.param, n) for n in written)

    # ------------------------------------------------------------ values and operations

    def value(self, kind: TensorType) -> Value:
        """Return a new value; names are made consecutive when the trace ends."""
        self._check_shape(kind.shape)
        self._numbers += 1
        return Value(str(self._numbers - 1), kind)

    def _check_shape(self, shape: Sequence[AffineExpr]) -> None:
        for extent in shape:
            if not isinstance(extent, Dim):
                self.extents.check_fits(extent, "an extent")

    def empty(self, kind: TensorType, location: Location | None) -> Value:
        """Append ``Empty`` of a type."""
        result = self.value(kind)
        self.ops.append(Empty(result, location))
        return result

    def index_number(self) -> int:
        """Return the number of a new index variable."""
        self._indices += 1
        return self._indices - 1

    def array(self, cell: Cell) -> Array:
        """Return a traced array that stands for ``cell``."""
        if cell.block is None:
            cell.block = self.block
        return self._make_array(self, cell)

    def count_step(self) -> None:
        """Count that the user's code has come to this place; ``TraceError`` for too long a loop.

        A place is the instruction in each function of the user's that is being called.
        """
        place = user_place()
        self._steps[place] += 1
        if self._steps[place] > _UNROLLED:
            raise TraceError(
                f"a Python loop was unrolled more than {_UNROLLED} times",
                hint="say it with array operations or index notation",
                location=caller(),
            )

    def pointwise(self, content: Pointwise | Deferred, shape: tuple[AffineExpr, ...]) -> Array:
        """Return a new traced array; ``TensorValueError`` for a shape beyond 64 bits."""
        self._check_shape(shape)
        return self.array(Cell(shape, content, immutable=not shape, location=caller()))

    # ------------------------------------------------------------ extents

    def pin(self, expr: AffineExpr, what: str) -> int:
        """Return the value of an extent, which becomes a constant of the trace; a fact says so."""
        before = len(self.extents.static)
        number = self.extents.pin(expr)
        for param, dim in self.extents.static[before:]:
            place = caller()
            where = f" at {place.short}" if place is not None else ""
            size = self.extents.number(self.params[param].type.shape[dim])
            text = f"dimension {dim} is {size} in this trace: {what}{where} needs the number"
            self.facts.append(Fact(FactKind.SHAPE, self.params[param].name, text))
        return number


trace_in_progress: ContextVar[Trace | None] = ContextVar("sparsejit_trace", default=None)
"""The trace in progress in this thread, or None."""


def current_trace() -> Trace | None:
    """Return the trace in progress in this thread, or None."""
    return trace_in_progress.get()


def is_tracing() -> bool:
    """Return whether a function is being traced in this thread."""
    return trace_in_progress.get() is not None


def require_trace(what: str) -> Trace:
    """Return the trace in progress; ``TraceError`` outside of one."""
    found = trace_in_progress.get()
    if found is None:
        raise TraceError(
            f"{what} was called outside of a traced function",
            hint="use it inside a @sparse_jit function",
            location=caller(),
        )
    return found


@contextmanager
def in_trace(trace: Trace) -> Iterator[None]:
    """Make ``trace`` the one in progress; when it ends, its arrays are dead."""
    token = trace_in_progress.set(trace)
    try:
        yield
    finally:
        trace.alive = False
        trace_in_progress.reset(token)


def check_alive(trace: Trace, what: str) -> None:
    """Raise ``TraceError`` where an array is used after, or outside of, the trace it belongs to."""
    if trace_in_progress.get() is not trace:
        raise TraceError(
            f"{what} was kept from an earlier trace",
            hint="return it from the function instead of storing it elsewhere",
            location=caller(),
        )
