"""Random tensor functions, drawn as data, for the analysis of buffers.

A program is made from a source of choices (`choose(n)` gives a number below n), so that hypothesis
and a seeded generator draw from the same space: several generics, slices taken out and put back,
inserts, conversions, reshapes, loops and branches that carry tensors, assigned arguments. The
programs are well typed; what they compute does not matter, which buffers they share does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, add, identity_map, mul
from sparsejit.formats import CSR, Dense
from sparsejit.ir import tensor
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import DType, IteratorType, TensorType
from sparsejit.ir.walk import results_of

__all__ = ["Choose", "draw_program"]

Choose = Callable[[int], int]

_FLOAT = DType.FLOAT64
_ZERO = Const(0.0, _FLOAT)
_M, _N = Dim(0), Dim(1)
_ONE, _PART = Constant(1), Constant(2)
_NUM_EXTENTS = 2
_PARALLEL, _REDUCTION = IteratorType.PARALLEL, IteratorType.REDUCTION


def _dense(*shape: AffineExpr) -> TensorType:
    return TensorType(shape, _FLOAT, Dense(len(shape)), _ZERO)


SCALAR, VECTOR, ROW, PIECE = _dense(), _dense(_M), _dense(_N), _dense(_PART)
MATRIX, SPARSE = _dense(_M, _N), TensorType((_M, _N), _FLOAT, CSR, _ZERO)
FLAT, COLUMN, LONG = _dense(mul(_M, _N)), _dense(_M, _ONE), _dense(add(_M, _ONE))
TRUTH = TensorType((), DType.BOOL, Dense(0), Const(False, DType.BOOL))
_TYPES = (SCALAR, VECTOR, VECTOR, ROW, MATRIX, SPARSE)


@dataclass
class _Drawing:
    """What is known while a program is drawn: names so far, values in scope, loop counters."""

    choose: Choose
    names: int = 0
    symbols: list[str] = field(default_factory=lambda: ["m", "n"])
    counters: list[int] = field(default_factory=list)
    scope: list[Value] = field(default_factory=list)

    def new(self, type_: TensorType) -> Value:
        self.names += 1
        return Value(f"t{self.names}", type_)

    def any_of(self, type_: TensorType) -> Value | None:
        """A value of the type, recent ones more often."""
        fitting = [value for value in self.scope if value.type == type_]
        if not fitting:
            return None
        at = min(self.choose(len(fitting)), self.choose(len(fitting)))
        return fitting[len(fitting) - 1 - at]

    def index(self) -> AffineExpr:
        options: list[AffineExpr] = [Constant(0), Constant(1), _N]
        for counter in self.counters:
            options += [Dim(counter), add(Dim(counter), Constant(1))]
        return options[self.choose(len(options))]


def draw_program(choose: Choose, *, size: int = 8) -> TensorFunc:
    """Draw a function with up to `size` operations outside its loops."""
    params = tuple(
        Value(f"p{number}", _TYPES[choose(len(_TYPES))]) for number in range(2 + choose(3))
    )
    # Both extents are always there, and a scalar to insert.
    params += (Value("whole", MATRIX), Value("element", SCALAR))
    drawing = _Drawing(choose, scope=list(params))
    ops = _draw_ops(drawing, 1 + choose(size), depth=0)
    assigned = tuple(param for param in params if choose(2))
    for dest in assigned:
        source = drawing.any_of(dest.type)
        if choose(2) and source is not None:
            result = drawing.new(dest.type)
            ops.append(tensor.Materialize(result, source, dest))
            drawing.scope.append(result)
    results = tuple(
        drawing.scope[len(drawing.scope) - 1 - choose(min(6, len(drawing.scope)))]
        for _ in range(choose(4))
    )
    return TensorFunc(
        "program", params, tuple(drawing.symbols), _NUM_EXTENTS, tuple(ops), results, assigned
    )


def _draw_ops(drawing: _Drawing, count: int, depth: int) -> list[tensor.Op]:
    ops: list[tensor.Op] = []
    makers: tuple[Callable[[_Drawing], tensor.Op | list[tensor.Op] | None], ...] = (
        _elementwise,
        _elementwise,
        _product,
        _reduce,
        _backwards,
        _empty,
        _insert,
        _extract_slice,
        _extract_slice,
        _insert_slice,
        _insert_slice,
        _convert,
        _update_part,
        _update_part,
        _reshape,
        _concat,
        _pad,
    )
    nested = (_draw_loop, _draw_while, _draw_if)
    for _ in range(count):
        number = drawing.choose(len(makers) + len(nested))
        if number < len(makers):
            drawn = makers[number](drawing)
        else:
            drawn = nested[number - len(makers)](drawing, depth)
        for op in drawn if isinstance(drawn, list) else [drawn]:
            if op is not None:
                ops.append(op)
                drawing.scope.extend(results_of(op))
    return ops


def _body(drawing: _Drawing, inputs: int) -> ScalarExpr:
    """An expression over some of the inputs and, perhaps, the destination."""
    used = [Arg(k) for k in range(inputs + 1) if drawing.choose(3)]
    expr: ScalarExpr = used[0] if used else Const(1.0, _FLOAT)
    for arg in used[1:]:
        expr = Binary(BinaryOp.ADD, expr, arg)
    return expr


def _elementwise(drawing: _Drawing) -> tensor.Op | None:
    type_ = _TYPES[drawing.choose(len(_TYPES))]
    inputs = [drawing.any_of(type_) for _ in range(drawing.choose(3))]
    init = drawing.any_of(type_)
    if init is None or None in inputs:
        return None
    map_ = identity_map(type_.rank)
    return tensor.Generic(
        result=drawing.new(type_),
        inputs=tuple(value for value in inputs if value is not None),
        init=init,
        indexing_maps=(map_,) * (len(inputs) + 1),
        iterator_types=(_PARALLEL,) * type_.rank,
        extents=type_.shape,
        body=_body(drawing, len(inputs)),
    )


def _product(drawing: _Drawing) -> tensor.Op | None:
    matrix = drawing.any_of(SPARSE if drawing.choose(2) else MATRIX)
    row, init = drawing.any_of(ROW), drawing.any_of(VECTOR)
    if matrix is None or row is None or init is None:
        return None
    maps = (identity_map(2), AffineMap(2, (Dim(1),)), AffineMap(2, (Dim(0),)))
    product = Binary(BinaryOp.MUL, Arg(0), Arg(1))
    return tensor.Generic(
        result=drawing.new(VECTOR),
        inputs=(matrix, row),
        init=init,
        indexing_maps=maps,
        iterator_types=(_PARALLEL, _REDUCTION),
        extents=(_M, _N),
        body=Binary(BinaryOp.ADD, Arg(2), product) if drawing.choose(4) else product,
    )


def _reduce(drawing: _Drawing) -> tensor.Op | None:
    source, init = drawing.any_of(VECTOR), drawing.any_of(SCALAR)
    if source is None or init is None:
        return None
    return tensor.Generic(
        result=drawing.new(SCALAR),
        inputs=(source,),
        init=init,
        indexing_maps=(identity_map(1), AffineMap(1, ())),
        iterator_types=(_REDUCTION,),
        extents=(_M,),
        body=Binary(BinaryOp.ADD, Arg(1), Arg(0)),
    )


def _backwards(drawing: _Drawing) -> tensor.Op | None:
    """Reads one vector in another order, over loops of which one may need a carrier upstream."""
    source, init = drawing.any_of(VECTOR), drawing.any_of(VECTOR)
    if source is None or init is None:
        return None
    loops = 1 + drawing.choose(2)
    if loops == 1:
        read = AffineMap(1, (add(mul(Constant(-1), Dim(0)), Constant(3)),))
    else:
        read = AffineMap(2, (add(Dim(0), mul(Constant(2), Dim(1))),))
    return tensor.Generic(
        result=drawing.new(VECTOR),
        inputs=(source,),
        init=init,
        indexing_maps=(read, AffineMap(loops, (Dim(0),))),
        iterator_types=(_PARALLEL, _REDUCTION)[:loops],
        extents=(_M, _N)[:loops],
        body=_body(drawing, 1),
    )


def _empty(drawing: _Drawing) -> tensor.Op:
    return tensor.Empty(drawing.new(_TYPES[drawing.choose(len(_TYPES))]))


def _insert(drawing: _Drawing) -> tensor.Op | None:
    scalar = drawing.any_of(SCALAR)
    dest = drawing.any_of((VECTOR, MATRIX, ROW)[drawing.choose(3)])
    if scalar is None or dest is None:
        return None
    indices = tuple(drawing.index() for _ in range(dest.type.rank))
    return tensor.Insert(drawing.new(dest.type), scalar, dest, indices)


def _slice_of(
    drawing: _Drawing, whole: TensorType
) -> tuple[TensorType, tuple[AffineExpr, ...], tuple[AffineExpr, ...], tuple[int, ...]]:
    """The type, offsets, sizes and dropped dimensions of a part of `whole`."""
    if whole.rank == 1:
        if drawing.choose(3) == 0:
            return SCALAR, (drawing.index(),), (_ONE,), (0,)
        return PIECE, (drawing.index(),), (_PART,), ()
    return ROW, (drawing.index(), Constant(0)), (_ONE, _N), (0,)


def _extract_slice(drawing: _Drawing) -> tensor.Op | None:
    whole = (VECTOR, MATRIX, SPARSE)[drawing.choose(3)]
    source = drawing.any_of(whole)
    if source is None:
        return None
    if whole == SPARSE:
        corner = (drawing.index(), Constant(0))
        return tensor.ExtractSlice(drawing.new(SPARSE), source, corner, (_M, _N), (1, 1))
    type_, offsets, sizes, dropped = _slice_of(drawing, whole)
    ones = (1,) * whole.rank
    return tensor.ExtractSlice(drawing.new(type_), source, offsets, sizes, ones, dropped)


def _insert_slice(drawing: _Drawing) -> tensor.Op | None:
    whole = (VECTOR, MATRIX)[drawing.choose(2)]
    dest = drawing.any_of(whole)
    type_, offsets, sizes, dropped = _slice_of(drawing, whole)
    source = drawing.any_of(type_)
    if source is None or dest is None:
        return None
    ones = (1,) * whole.rank
    return tensor.InsertSlice(drawing.new(whole), source, dest, offsets, sizes, ones, dropped)


def _update_part(drawing: _Drawing) -> list[tensor.Op] | None:
    """Takes a part out, changes it, and puts it back: mostly in the same place."""
    whole = (VECTOR, MATRIX)[drawing.choose(2)]
    source = drawing.any_of(whole)
    if source is None:
        return None
    type_, offsets, sizes, dropped = _slice_of(drawing, whole)
    ones = (1,) * whole.rank
    part, changed = drawing.new(type_), drawing.new(type_)
    other = drawing.any_of(type_) if drawing.choose(2) else None
    map_ = identity_map(type_.rank)
    inputs = () if other is None else (other,)
    update = tensor.Generic(
        result=changed,
        inputs=inputs,
        init=part,
        indexing_maps=(map_,) * (len(inputs) + 1),
        iterator_types=(_PARALLEL,) * type_.rank,
        extents=type_.shape,
        body=_body(drawing, len(inputs)),
    )
    dest = source if drawing.choose(5) else drawing.any_of(whole) or source
    if drawing.choose(8) == 0:
        offsets = (drawing.index(), *offsets[1:])
    return [
        tensor.ExtractSlice(part, source, offsets, sizes, ones, dropped),
        update,
        tensor.InsertSlice(drawing.new(whole), changed, dest, offsets, sizes, ones, dropped),
    ]


def _convert(drawing: _Drawing) -> tensor.Op | None:
    source_type, type_ = (MATRIX, SPARSE) if drawing.choose(2) else (SPARSE, MATRIX)
    source = drawing.any_of(source_type)
    return None if source is None else tensor.Convert(drawing.new(type_), source)


def _reshape(drawing: _Drawing) -> tensor.Op | None:
    """There or back: a matrix and its elements in a row, a vector and a column."""
    old, new = (
        (MATRIX, FLAT),
        (FLAT, MATRIX),
        (VECTOR, COLUMN),
        (COLUMN, VECTOR),
        (SPARSE, SPARSE),
    )[drawing.choose(5)]
    source = drawing.any_of(old)
    return None if source is None else tensor.Reshape(drawing.new(new), source)


def _concat(drawing: _Drawing) -> tensor.Op | None:
    first, second = drawing.any_of(VECTOR), drawing.any_of(PIECE)
    if first is None or second is None:
        return None
    whole = _dense(add(_M, _PART))
    return tensor.Concat(drawing.new(whole), (first, second), 0)


def _pad(drawing: _Drawing) -> tensor.Op | None:
    source = drawing.any_of(VECTOR)
    if source is None:
        return None
    return tensor.Pad(drawing.new(LONG), source, (Constant(0),), (_ONE,), Const(2.0, _FLOAT))


def _draw_carried(drawing: _Drawing) -> tuple[Value, ...]:
    types = [_TYPES[drawing.choose(len(_TYPES))] for _ in range(1 + drawing.choose(2))]
    inits = [drawing.any_of(type_) for type_ in types]
    return tuple(init for init in inits if init is not None)


def _draw_truth(drawing: _Drawing) -> tuple[list[tensor.Op], Value] | None:
    """Whether some scalar is small: two operations and the truth value."""
    scalar = drawing.any_of(SCALAR)
    if scalar is None:
        return None
    start, truth = drawing.new(TRUTH), drawing.new(TRUTH)
    body = Binary(BinaryOp.LT, Arg(0), Const(5.0, _FLOAT))
    maps = (identity_map(0), identity_map(0))
    test = tensor.Generic(truth, (scalar,), start, maps, (), (), body)
    return [tensor.Empty(start), test], truth


def _draw_block(
    drawing: _Drawing, args: tuple[Value, ...], types: Sequence[Value], depth: int
) -> tuple[tuple[tensor.Op, ...], tuple[Value, ...]]:
    """Operations of a block with arguments, and values that it yields, of the types of others."""
    outer, drawing.scope = drawing.scope, [*drawing.scope, *args]
    ops = tuple(_draw_ops(drawing, 1 + drawing.choose(4), depth + 1))
    yields = tuple(drawing.any_of(value.type) or value for value in types)
    drawing.scope = outer
    return ops, yields


def _draw_while(drawing: _Drawing, depth: int) -> tensor.Op | None:
    inits = _draw_carried(drawing)
    if depth == 2 or not inits:
        return None
    args = tuple(drawing.new(init.type) for init in inits)
    outer, drawing.scope = drawing.scope, [*drawing.scope, *args]
    test = _draw_ops(drawing, drawing.choose(3), 2)
    drawn = _draw_truth(drawing)
    drawing.scope = outer
    if drawn is None:
        return None
    body_args = tuple(drawing.new(init.type) for init in inits)
    body, yields = _draw_block(drawing, body_args, body_args, depth)
    results = tuple(drawing.new(init.type) for init in inits)
    return tensor.While(results, inits, args, (*test, *drawn[0]), drawn[1], body_args, body, yields)


def _draw_if(drawing: _Drawing, depth: int) -> list[tensor.Op] | None:
    types = _draw_carried(drawing)
    drawn = _draw_truth(drawing)
    if depth == 2 or not types or drawn is None:
        return None
    then, then_yields = _draw_block(drawing, (), types, depth)
    orelse, else_yields = _draw_block(drawing, (), types, depth)
    results = tuple(drawing.new(value.type) for value in types)
    branch = tensor.If(results, drawn[1], then, then_yields, orelse, else_yields)
    return [*drawn[0], branch]


def _draw_loop(drawing: _Drawing, depth: int) -> tensor.Op | None:
    carried = _draw_carried(drawing)
    if depth == 2 or not carried:
        return None
    args = tuple(drawing.new(init.type) for init in carried)
    results = tuple(drawing.new(init.type) for init in carried)
    counter = len(drawing.symbols)
    drawing.symbols.append(f"i{counter}")
    upper = (_M, Constant(0), Constant(1), Constant(4))[drawing.choose(4)]
    drawing.counters.append(counter)
    body, yields = _draw_block(drawing, args, args, depth)
    drawing.counters.pop()
    return tensor.For(results, counter, Constant(0), upper, carried, args, body, yields)
