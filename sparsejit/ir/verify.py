"""The rules of the tensor IR, each a named function.

What enters is a function and the name of the pass that made it; nothing leaves, or a
``VerificationError`` that names the broken rule, the operation and the pass. Rules are checked in
order, and a rule may rely on those before it. The rules of the loop IR are in ``verify_loops``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sparsejit.affine import AffineExpr, Constant, Dim, dims_of
from sparsejit.errors import VerificationError
from sparsejit.ir._scalar_rules import broken_numbers, broken_types
from sparsejit.ir._structure_rules import (
    alike,
    branches_yield_the_results,
    conditions_are_truth_values,
    loops_carry_what_they_take,
    padding_fits,
    parts_fit_together,
    reshapes_keep_the_elements,
    where,
)
from sparsejit.ir.printing import print_tensor
from sparsejit.ir.scalar import dtype_of
from sparsejit.ir.tensor import (
    AllocTensor,
    Convert,
    ExtractSlice,
    For,
    Generic,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    TensorFunc,
    Value,
)
from sparsejit.ir.types import IteratorType
from sparsejit.ir.walk import (
    affine_of,
    all_ops,
    all_values,
    blocks_of,
    operands_of,
    results_of,
)

__all__ = ["TENSOR_RULES", "verify_tensor"]

Rule = Callable[[TensorFunc], Iterator[str]]


def _symbols_have_their_own_names(func: TensorFunc) -> Iterator[str]:
    """Symbols are named apart, and the extents are the first of them."""
    for name in dict.fromkeys(func.symbols):
        if func.symbols.count(name) > 1:
            yield f"two symbols are called {name}"
    if not 0 <= func.num_extents <= len(func.symbols):
        yield f"{func.num_extents} of {len(func.symbols)} symbols are extents"


def _values_are_defined_once(func: TensorFunc) -> Iterator[str]:
    """Every value has a name of its own."""
    seen: set[str] = set()
    for value in all_values(func):
        if value.name in seen:
            yield f"%{value.name} is defined twice"
        seen.add(value.name)


def _values_are_defined_before_use(func: TensorFunc) -> Iterator[str]:
    """A value is used after its definition, in its block or a block inside, with its type."""

    def take(values: Sequence[Value], known: dict[str, Value], user: str) -> Iterator[str]:
        for value in values:
            if value.name not in known:
                yield f"{user} uses %{value.name}, which is not defined there"
            elif known[value.name] != value:
                yield f"{user} uses %{value.name} with another type than it has"

    def block(ops: Sequence[Op], known: dict[str, Value]) -> Iterator[str]:
        for op in ops:
            yield from take(operands_of(op), known, where(op))
            for inner in blocks_of(op):
                inside = known | {arg.name: arg for arg in inner.args}
                yield from block(inner.ops, inside)
                yield from take(inner.taken, inside, f"the end of {where(op)}")
            known.update((value.name, value) for value in results_of(op))

    known = {param.name: param for param in func.params}
    yield from block(func.ops, known)
    yield from take(func.results, known, "return")


def _assigned_values_are_parameters(func: TensorFunc) -> Iterator[str]:
    """Only parameters can be assigned."""
    for value in func.assigned:
        if value not in func.params:
            yield f"%{value.name} is assigned and no parameter"


def _symbols_are_in_scope(func: TensorFunc) -> Iterator[str]:
    """Expressions read extents and the variables of the loops around them."""

    def check(exprs: Sequence[AffineExpr], scope: frozenset[int], user: str) -> Iterator[str]:
        for expr in exprs:
            for number in sorted(dims_of(expr) - scope):
                yield f"{user} reads symbol {number}, which has no value there"

    def block(ops: Sequence[Op], scope: frozenset[int]) -> Iterator[str]:
        for op in ops:
            yield from check(affine_of(op), scope, where(op))
            for value in results_of(op):
                yield from check(value.type.shape, scope, f"%{value.name}")
            counted = {op.induction} if isinstance(op, For) else set()
            for inner in blocks_of(op):
                for value in inner.args:
                    yield from check(value.type.shape, scope, f"%{value.name}")
                yield from block(inner.ops, scope | counted)

    extents = frozenset(range(func.num_extents))
    for param in func.params:
        yield from check(param.type.shape, extents, f"%{param.name}")
    yield from block(func.ops, extents)


def _loops_count_with_a_symbol_of_their_own(func: TensorFunc) -> Iterator[str]:
    """The variable of a loop is a symbol after the extents, and of one loop only."""
    seen: set[int] = set()
    for op in all_ops(func.ops):
        if not isinstance(op, For):
            continue
        if not func.num_extents <= op.induction < len(func.symbols):
            yield f"{where(op)} counts with symbol {op.induction}, no induction variable"
        if op.induction in seen:
            yield f"{where(op)} counts with symbol {op.induction}, as another loop does"
        seen.add(op.induction)


def _extents_have_a_source(func: TensorFunc) -> Iterator[str]:
    """Every extent symbol is, alone, a dimension of a parameter."""
    known = {extent for param in func.params for extent in param.type.shape}
    for number, name in enumerate(func.symbols[: func.num_extents]):
        if Dim(number) not in known:
            yield f"no parameter has the extent {name}"


def _types_fit_together(func: TensorFunc) -> Iterator[str]:
    """The format of a type has its rank, its fill value its dtype; extents are not negative."""
    for value in all_values(func):
        kind = value.type
        if kind.format.ndim != kind.rank:
            yield f"%{value.name} has rank {kind.rank} and a format of rank {kind.format.ndim}"
        if kind.fill.dtype is not kind.dtype:
            yield f"%{value.name} of {kind.dtype.value} has a fill of {kind.fill.dtype.value}"
        for extent in kind.shape:
            if isinstance(extent, Constant) and extent.value < 0:
                yield f"%{value.name} has the extent {extent.value}"


def _maps_fit_operands_and_loops(func: TensorFunc) -> Iterator[str]:
    """A generic has one map an operand, over its loops, with one result a dimension."""
    for op in _generics(func):
        operands, loops = (*op.inputs, op.init), len(op.iterator_types)
        if len(op.indexing_maps) != len(operands):
            yield f"{where(op)} has {len(op.indexing_maps)} maps for {len(operands)} operands"
        if len(op.extents) != loops:
            yield f"{where(op)} has {len(op.extents)} extents for {loops} loops"
        for number, (value, indexing) in enumerate(zip(operands, op.indexing_maps, strict=False)):
            of = f"{where(op)}: the map of operand {number}"
            if indexing.num_dims != loops:
                yield f"{of} is over {indexing.num_dims} loops of {loops}"
            if len(indexing.results) != value.type.rank:
                yield f"{of} has {len(indexing.results)} results for rank {value.type.rank}"
            if any(max(dims_of(index), default=-1) >= loops for index in indexing.results):
                yield f"{of} reads a loop that is not there"


def _destinations_are_written_once(func: TensorFunc) -> Iterator[str]:
    """The destination's map is a projected permutation of just the parallel loops."""
    for op in _generics(func):
        written = op.indexing_maps[-1]
        if not written.is_projected_permutation:
            yield f"{where(op)}: the destination's map {written} repeats or computes an index"
            continue
        for loop, kind in enumerate(op.iterator_types):
            indexes = Dim(loop) in written.results
            if indexes and kind is IteratorType.REDUCTION:
                yield f"{where(op)}: reduction loop {loop} indexes the destination"
            if not indexes and kind is IteratorType.PARALLEL:
                yield f"{where(op)}: parallel loop {loop} does not index the destination"


def _bodies_are_typed(func: TensorFunc) -> Iterator[str]:
    """A body reads operands and loops that exist, and its dtypes fit up to the destination's."""
    for op in _generics(func):
        dtypes = tuple(value.type.dtype for value in (*op.inputs, op.init))
        broken = list(broken_numbers(op.body, len(dtypes), len(op.iterator_types)))
        broken = broken or list(broken_types(op.body, dtypes))
        yield from (f"{where(op)}: {text}" for text in broken)
        if not broken and (made := dtype_of(op.body, dtypes)) is not op.result.type.dtype:
            yield f"{where(op)}: a body of {made.value} for a result of {dtypes[-1].value}"


def _results_have_the_type_of_their_destination(func: TensorFunc) -> Iterator[str]:
    """What is written into a destination has the destination's type afterwards."""
    for op in all_ops(func.ops):
        match op:
            case Generic():
                dest = op.init
            case Insert() | InsertSlice() | Materialize():
                dest = op.dest
            case _:
                continue
        if op.result.type != dest.type:
            yield f"{where(op)} has another type than its destination %{dest.name}"


def _conversions_keep_all_but_the_format(func: TensorFunc) -> Iterator[str]:
    """A convert keeps shape, dtype and fill; a copy keeps everything but the format."""
    for op in all_ops(func.ops):
        source = op.source if isinstance(op, Convert) else None
        if isinstance(op, AllocTensor):
            source = op.copy
        if isinstance(op, Convert | AllocTensor) and source is not None:
            before, after = source.type, op.result.type
            if (before.shape, before.dtype, before.fill) != (after.shape, after.dtype, after.fill):
                yield f"{where(op)} changes more than the format of %{source.name}"


def _inserts_fit(func: TensorFunc) -> Iterator[str]:
    """An insert takes a rank-0 tensor of the dtype, and one index a dimension."""
    for op in all_ops(func.ops):
        if not isinstance(op, Insert):
            continue
        if op.scalar.type.rank:
            yield f"{where(op)} inserts %{op.scalar.name} of rank {op.scalar.type.rank}"
        if op.scalar.type.dtype is not op.dest.type.dtype:
            yield f"{where(op)} inserts {_dtype(op.scalar)} into {_dtype(op.dest)}"
        if len(op.indices) != op.dest.type.rank:
            yield f"{where(op)} has {len(op.indices)} indices for rank {op.dest.type.rank}"


def _slices_fit(func: TensorFunc) -> Iterator[str]:
    """A slice has an offset, a size and a stride other than 0 for each dimension of the whole.

    Dropped dimensions are named in order and have size 1; the others give the part's shape.
    """
    for op in all_ops(func.ops):
        match op:
            case ExtractSlice():
                broken = _broken_slice(op, op.source, op.result)
            case InsertSlice():
                broken = _broken_slice(op, op.dest, op.source)
            case _:
                continue
        yield from (f"{where(op)}: {text}" for text in broken)


def _broken_slice(op: ExtractSlice | InsertSlice, whole: Value, part: Value) -> Iterator[str]:
    rank = whole.type.rank
    for what, count in (("offsets", op.offsets), ("sizes", op.sizes), ("strides", op.strides)):
        if len(count) != rank:
            yield f"{len(count)} {what} for rank {rank}"
            return
    if 0 in op.strides:
        yield "a stride of 0"
    if list(op.dropped) != sorted(set(op.dropped) & set(range(rank))):
        yield f"drops the dimensions {list(op.dropped)} of rank {rank}"
    elif any(op.sizes[dim] != Constant(1) for dim in op.dropped):
        yield "drops a dimension whose size is not 1"
    elif part.type.shape != tuple(s for dim, s in enumerate(op.sizes) if dim not in op.dropped):
        yield f"the shape of %{part.name} is not that of the slice"
    if part.type.dtype is not whole.type.dtype:
        yield f"a slice of {_dtype(part)} in {_dtype(whole)}"


def _only_assigned_parameters_are_written(func: TensorFunc) -> Iterator[str]:
    """A materialize writes a parameter that the function assigns, with contents of its type."""
    for op in all_ops(func.ops):
        if not isinstance(op, Materialize):
            continue
        if op.dest not in func.assigned:
            yield f"{where(op)} writes %{op.dest.name}, which is read only"
        if not alike(op.source.type, op.dest.type):
            yield f"{where(op)}: %{op.source.name} cannot be the contents of %{op.dest.name}"


def _copies_belong_to_the_stage(func: TensorFunc) -> Iterator[str]:
    """Tensors are copied by the atomic stage only."""
    for op in all_ops(func.ops):
        if isinstance(op, AllocTensor) and op.copy is not None:
            yield f"{where(op)} copies %{op.copy.name}"


def _generics(func: TensorFunc) -> Iterator[Generic]:
    return (op for op in all_ops(func.ops) if isinstance(op, Generic))


def _dtype(value: Value) -> str:
    return value.type.dtype.value


TENSOR_RULES: tuple[Rule, ...] = (
    _symbols_have_their_own_names,
    _values_are_defined_once,
    _values_are_defined_before_use,
    _assigned_values_are_parameters,
    _symbols_are_in_scope,
    _loops_count_with_a_symbol_of_their_own,
    _extents_have_a_source,
    _types_fit_together,
    _maps_fit_operands_and_loops,
    _destinations_are_written_once,
    _bodies_are_typed,
    _results_have_the_type_of_their_destination,
    _conversions_keep_all_but_the_format,
    _inserts_fit,
    _slices_fit,
    _only_assigned_parameters_are_written,
    loops_carry_what_they_take,
    conditions_are_truth_values,
    branches_yield_the_results,
    reshapes_keep_the_elements,
    parts_fit_together,
    padding_fits,
    _copies_belong_to_the_stage,
)


def verify_tensor(func: TensorFunc, after: str = "", *, inside_stage: bool = False) -> None:
    """Raise ``VerificationError`` for the first rule that ``func`` breaks.

    ``after`` names the pass that made ``func``; ``inside_stage`` allows copies of tensors. What was
    found right last is not looked at again: a function never changes.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> verify_tensor(TensorBuilder("nothing").finish())
    """
    if func is _Verified.last:
        return
    for rule in TENSOR_RULES:
        if inside_stage and rule is _copies_belong_to_the_stage:
            continue
        for what in rule(func):
            name = rule.__name__.replace("_", " ").strip()
            raise VerificationError(name, what, ir_text=_text(func), after=after)
    if not inside_stage:
        _Verified.last = func


class _Verified:
    """The function that was found right last: a pass that changes nothing returns it as it is."""

    last: TensorFunc | None = None


def _text(func: TensorFunc) -> str:
    try:
        return print_tensor(func)
    except (IndexError, KeyError, ValueError):  # a broken function may have no text
        return repr(func)
