"""What loops carry and branches return: types that stay the same, and where values go.

In: arrays and scalars as the user's functions return them. Out: ``Slot``s, one type for each place,
and the values that a block yields. An expression is computed right into the buffer that it will
live in, where the user's program has no more use for what was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Dim
from sparsejit.errors import Location, TensorTypeError
from sparsejit.formats import Dense, Format, LevelKind
from sparsejit.ir.fold import numpy_dtype, zero_of
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Convert, Value
from sparsejit.ir.types import DType, TensorType
from sparsejit.trace._array import Array
from sparsejit.trace._computation import without_batches
from sparsejit.trace._context import Cell, Deferred, Trace
from sparsejit.trace._emit import elementwise_into
from sparsejit.trace._operands import shape_text
from sparsejit.trace._pointwise import Pointwise, cast, of_value
from sparsejit.trace._promotion import result_dtype
from sparsejit.trace._result_formats import result_layout

__all__ = ["Slot", "agreed", "emitted", "into", "present", "slot_of", "yielded"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The type of one place that a loop carries or a branch fills.

    ``weak``: it is a Python scalar all the time (NEP 50). ``sparse`` is the format and fill value
    of a sparse tensor.
    """

    shape: tuple[AffineExpr, ...]
    dtype: DType
    weak: bool = False
    sparse: tuple[Format, Const] | None = None

    @property
    def kind(self) -> TensorType:
        """The type of its values: of a sparse tensor, in the format that it is carried in."""
        fmt, fill = self.sparse or (Dense(len(self.shape)), zero_of(self.dtype))
        return TensorType(self.shape, self.dtype, _carrier(fmt), fill)

    def array(self, trace: Trace, value: Value, location: Location | None) -> Array:
        """Return the traced array of a value of this type, in the user's format."""
        content: Pointwise | Deferred = replace(of_value(value), weak=self.weak)
        if self.sparse is not None and self.sparse[0] != value.type.format:
            own = self.sparse[0]

            def emit(format: Format | None) -> Value:
                return _in_format(trace, value, format or own)

            content = Deferred(emit, self.dtype)
        return trace.array(Cell(self.shape, content, immutable=not self.shape, location=location))


def _carrier(fmt: Format) -> Format:
    """Return the format in which loops carry tensors of a format: its arrays grow one by one.

    An array of structs becomes one array a dimension, positions that leave gaps leave none.
    """
    if all(level.type.kind not in _UNGROWN for level in fmt.levels):
        return fmt
    levels = []
    for level in fmt.levels:
        kind = level.type
        if kind.kind is LevelKind.SINGLETON:
            kind = replace(kind, soa=True)
        elif kind.kind is LevelKind.LOOSE_COMPRESSED:
            kind = replace(kind, kind=LevelKind.COMPRESSED)
        levels.append(replace(level, type=kind))
    return Format.of(fmt.ndim, tuple(levels), fmt.pos_width, fmt.crd_width)


_UNGROWN = (LevelKind.SINGLETON, LevelKind.LOOSE_COMPRESSED)


def _is_weak(array: Array) -> bool:
    content = array._cell.content
    return array._view is None and isinstance(content, Pointwise) and content.weak


def _sample(dtype: DType, weak: bool) -> Pointwise:
    """A constant of a dtype, for promotion."""
    return Pointwise(zero_of(dtype), (), dtype, weak)


def _sparse_value(array: Array) -> Value | None:
    """Return the value of an array that is sparse."""
    content = array._cell.content
    if array._view is None and not isinstance(content, Deferred):
        part = array.read()
        if part.view is None and result_layout(part, range(len(array.extents))).format.is_dense:
            return None
    value = array.force()
    return None if value.type.is_dense else value


def slot_of(array: Array) -> Slot:
    """Return the type that an initial value has.

    Loops carry batches as dense levels: a computed pattern has not equally many entries in each.
    """
    value = _sparse_value(array) if array.extents else None
    sparse = None if value is None else (without_batches(value.type.format), value.type.fill)
    return Slot(array.extents, array.element_type, _is_weak(array), sparse)


def _text(trace: Trace, shape: Sequence[AffineExpr], dtype: DType) -> str:
    return f"{numpy_dtype(dtype).name} of shape {shape_text(trace, shape)}"


def agreed(trace: Trace, slot: Slot, array: Array, what: str, location: Location | None) -> Slot:
    """Return the type that holds ``slot`` and what a block yields for it.

    It is ``slot`` itself unless that is a Python scalar, which adapts. Raises ``TensorTypeError``
    where shapes, dtypes or formats differ; ``what`` says what ought to stay the same.
    """
    wanted = _text(trace, slot.shape, slot.dtype)
    found = _text(trace, array.extents, array.element_type)
    hint = "types must stay the same: convert one of them, as with .astype or np.broadcast_to"
    same_rank = len(slot.shape) == len(array.extents)
    if not same_rank or not all(map(trace.extents.unify, slot.shape, array.extents)):
        raise TensorTypeError(f"{what} {wanted}, not {found}", hint=hint, location=location)
    value = _sparse_value(array) if array.extents else None
    if value is not None or slot.sparse is not None:
        return _agreed_sparse(slot, value, array.element_type, what, location)
    weak = _is_weak(array)
    both = (_sample(slot.dtype, slot.weak), _sample(array.element_type, weak))
    dtype = result_dtype(both)
    if slot.weak == weak and array.element_type is slot.dtype:
        return slot
    if not slot.weak and not (weak and dtype is slot.dtype):
        raise TensorTypeError(f"{what} {wanted}, not {found}", hint=hint, location=location)
    return replace(slot, dtype=dtype, weak=slot.weak and weak)


def _agreed_sparse(
    slot: Slot, value: Value | None, dtype: DType, what: str, location: Location | None
) -> Slot:
    """Return the type of a sparse tensor; index widths are left open where entries change."""
    hint = "types must stay the same: convert one of them, as with .asformat(format)"
    if value is None or slot.sparse is None:
        words = ("dense", "sparse") if slot.sparse is None else ("sparse", "dense")
        raise TensorTypeError(
            f"{what} a {words[0]} array, not a {words[1]} one", hint=hint, location=location
        )
    fmt, fill = slot.sparse
    kind = value.type
    plain, own = fmt.with_widths(0, 0), without_batches(kind.format)
    found = own.with_widths(0, 0)
    if (plain, fill, slot.dtype) != (found, kind.fill, dtype):
        one, other = (
            f"{numpy_dtype(kind).name} in the format ({layout}) with fill {const.value!r}"
            for kind, layout, const in (
                (slot.dtype, plain, fill),
                (dtype, found, kind.fill),
            )
        )
        raise TensorTypeError(f"{what} {one}, not {other}", hint=hint, location=location)
    return slot if fmt in (own, plain) else replace(slot, sparse=(plain, fill))


# ---------------------------------------------------------------- values


def _in_format(trace: Trace, value: Value, format: Format) -> Value:
    """Return a sparse value in a format, with its index widths."""
    if value.type.format == format:
        return value
    result = trace.value(replace(value.type, format=format))
    trace.ops.append(Convert(result, value))
    return result


def emitted(trace: Trace, slot: Slot, array: Array) -> Value:
    """Return the value of an initial value, in the type of its slot."""
    if slot.sparse is not None:
        return _in_format(trace, array.force(), slot.kind.format)
    if array.element_type is slot.dtype:
        return array.force()
    return trace.pointwise(cast(array.read(), slot.dtype), array.extents).force()


def present(trace: Trace, slot: Slot, array: Array) -> Value | Pointwise:
    """Return what an array is now: a value of the slot's type, or an expression."""
    if slot.sparse is not None:
        return _in_format(trace, array.force(), slot.kind.format)
    content = array._cell.content
    if array._view is None and isinstance(content, Deferred):
        array.force()
    part = cast(array.read(), slot.dtype)
    view, identity = part.view, tuple(Dim(d) for d in range(len(slot.shape)))
    if view is None or view.index != identity or not view.value.type.is_dense:
        return part
    whole = all(map(trace.extents.same, view.value.type.shape, slot.shape))
    return view.value if whole else part


def into(trace: Trace, part: Value | Pointwise, dest: Value, location: Location | None) -> Value:
    """Write a value or expression into ``dest``."""
    part = of_value(part) if isinstance(part, Value) else part
    shape = dest.type.shape
    at = tuple(Dim(d) for d in range(len(shape)))
    return elementwise_into(trace, part, dict(enumerate(shape)), dest, at, location)


def yielded(
    trace: Trace,
    slots: Sequence[Slot],
    arrays: Sequence[Array],
    dests: Sequence[Value],
    location: Location | None,
) -> tuple[Value, ...]:
    """Return the values that a loop's body yields, expressions computed in place of ``dests``.

    The order is such that no expression reads what another one has overwritten, where there is one.
    """
    parts = [present(trace, slot, array) for slot, array in zip(slots, arrays, strict=True)]
    done = {k: part for k, part in enumerate(parts) if isinstance(part, Value)}
    waiting = {k: part for k, part in enumerate(parts) if isinstance(part, Pointwise)}
    while waiting:
        free = (k for k in waiting if not _is_read(dests[k], k, waiting))
        k = next(free, min(waiting))
        done[k] = into(trace, waiting.pop(k), dests[k], location)
    return tuple(done[k] for k in range(len(parts)))


def _is_read(dest: Value, own: int, waiting: Mapping[int, Pointwise]) -> bool:
    """Whether an expression that waits, other than ``own``, reads ``dest``."""
    return any(
        access.value == dest for k, part in waiting.items() if k != own for access in part.accesses
    )
