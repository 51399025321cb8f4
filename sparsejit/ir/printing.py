"""The text of the tensor IR: deterministic, one operation a line, never read back.

    func @spmv(%A: f64[d0, d1] csr, %x: f64[d1]) -> (f64[d0]) {
      %0 = empty : f64[d0]
      %1 = generic (i: parallel, j: reduction) ins(%A[i, j], %x[j]) outs(%0[i]) { out + in0 * in1 }
      return %1
    }

Operand ``k`` of a body is ``in<k>``, the destination ``out``, a loop's value its name. An extent is
printed (``i: parallel < d0``) only where no operand's shape says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, islice

from sparsejit.affine import AffineExpr, AffineMap, Dim, FloorDiv, expr_text
from sparsejit.errors import Location
from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSC,
    DCSR,
    DIA,
    ELL,
    NV24,
    Batched,
    Format,
    LevelKind,
    SparseVector,
)
from sparsejit.ir._scalar_printing import ATOM as ATOM
from sparsejit.ir._scalar_printing import binary_text as binary_text
from sparsejit.ir._scalar_printing import const_text as const_text
from sparsejit.ir._scalar_printing import constant_atom as constant_atom
from sparsejit.ir._scalar_printing import print_scalar as print_scalar
from sparsejit.ir._scalar_printing import unary_text as unary_text
from sparsejit.ir.fold import zero_of
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import (
    AllocTensor,
    Concat,
    Convert,
    Empty,
    ExtractSlice,
    For,
    Generic,
    If,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    Pad,
    Reshape,
    TensorFunc,
    Value,
    While,
)
from sparsejit.ir.types import TensorType

__all__ = [
    "ATOM",
    "binary_text",
    "const_text",
    "constant_atom",
    "fill_text",
    "format_text",
    "inferred_extent",
    "loop_names",
    "print_op",
    "print_scalar",
    "print_tensor",
    "type_text",
    "unary_text",
    "wrap_header",
]

_LINE = 100
_LETTERS = "ijklmnpqrstuvw"


def loop_names(number: int, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Return names for loops: i, j, k, ..., then i1, j1, ..., without those that are taken.

    >>> loop_names(3, taken=("j",))
    ('i', 'k', 'l')
    """
    used = frozenset(taken)
    rounds = (f"{letter}{turn or ''}" for turn in count() for letter in _LETTERS)
    return tuple(islice((name for name in rounds if name not in used), number))


def format_text(fmt: Format) -> str:
    """Return the name of a format, found by its structure, or its map; widths when they are set.

    >>> format_text(CSR.with_widths(32, 32)), format_text(BSR(2, 3))
    ('csr<32, 32>', 'bsr(2, 3)')
    """
    plain = fmt.with_widths(0, 0)
    widths = f"<{fmt.pos_width}, {fmt.crd_width}>" if fmt.pos_width or fmt.crd_width else ""
    return (_format_name(plain) or _map_text(plain)) + widths


def _format_name(fmt: Format) -> str | None:
    if fmt.is_dense:
        return "dense"
    for name, known in _named_formats(fmt):
        if fmt == known:
            return name
    kinds = [level.type.kind for level in fmt.levels]
    batches = kinds.count(LevelKind.BATCH)
    for inner, spelling in ((CSR, "csr"), (CSC, "csc"), (DCSR, "dcsr")):
        if batches and fmt == Batched(inner, batches):
            return f"batched({spelling})" if batches == 1 else f"batched({spelling}, {batches})"
    return None


def _named_formats(fmt: Format) -> Iterable[tuple[str, Format]]:
    """Yield the named formats that ``fmt`` may be, judging by its rank and its sizes."""
    rank = fmt.ndim
    if rank == 1:
        yield "sparse_vector", SparseVector
    if rank == 2:
        yield from (("csr", CSR), ("csc", CSC), ("dcsr", DCSR), ("dcsc", DCSC))
        yield from (("dia", DIA), ("nv24", NV24))
        if fmt.num_levels == 4:
            rows, columns = (_block_size(level.expr) for level in fmt.levels[:2])
            yield f"bsr({rows}, {columns})", BSR(rows, columns)
        slots = [lvl.type.size[0] for lvl in fmt.levels if lvl.type.kind is LevelKind.PADDED]
        if len(slots) == 1:
            yield f"ell({slots[0]})", ELL(slots[0])
    if rank:
        yield "coo", COO(rank)
        yield "csf", CSF(rank)


def _block_size(expr: AffineExpr) -> int:
    return expr.divisor if isinstance(expr, FloorDiv) else 1


def _map_text(fmt: Format) -> str:
    names = loop_names(fmt.ndim)
    levels = ", ".join(f"{expr_text(level.expr, names)} : {level.type}" for level in fmt.levels)
    return f"(({', '.join(names)}) -> ({levels}))"


def type_text(kind: TensorType, symbols: Sequence[str]) -> str:
    """Return the text of a tensor type: dtype, shape, format unless dense, fill unless 0."""
    shape = ", ".join(expr_text(extent, symbols) for extent in kind.shape)
    text = f"{kind.dtype.short}[{shape}]"
    if not kind.is_dense:
        text += f" {format_text(kind.format)}"
    return text + fill_text(kind.fill)


def fill_text(fill: Const) -> str:
    """Return what a text says about a fill value: nothing when it is the zero of its dtype.

    >>> from sparsejit.ir.types import DType
    >>> fill_text(Const(1.5, DType.FLOAT32)), fill_text(Const(0, DType.INT8))
    (' fill=1.5', '')
    """
    return "" if fill == zero_of(fill.dtype) else f" fill={const_text(fill)}"


def inferred_extent(
    loop: int, maps: Sequence[AffineMap], values: Sequence[Value]
) -> AffineExpr | None:
    """Return the extent of the first operand dimension that loop ``loop`` runs over, or None."""
    for value, indexing in zip(values, maps, strict=True):
        for extent, index in zip(value.type.shape, indexing.results, strict=True):
            if index == Dim(loop):
                return extent
    return None


def _name(value: Value) -> str:
    return f"%{value.name}"


def _list(exprs: Sequence[AffineExpr], symbols: Sequence[str]) -> str:
    return f"[{', '.join(expr_text(expr, symbols) for expr in exprs)}]"


def _generic(op: Generic, symbols: Sequence[str]) -> list[str]:
    names = loop_names(len(op.iterator_types), taken=symbols)
    operands = (*op.inputs, op.init)
    loops = []
    for loop, (name, iterator) in enumerate(zip(names, op.iterator_types, strict=True)):
        extent = op.extents[loop]
        known = inferred_extent(loop, op.indexing_maps, operands) == extent
        bound = "" if known else f" < {expr_text(extent, symbols)}"
        loops.append(f"{name}: {iterator.value}{bound}")
    accesses = [
        _name(value) + (_list(indexing.results, names) if indexing.results else "")
        for value, indexing in zip(operands, op.indexing_maps, strict=True)
    ]
    ins = [f"ins({', '.join(accesses[:-1])})"] if op.inputs else []
    body = print_scalar(op.body, len(op.inputs), names)
    head = f"{_name(op.result)} = generic ({', '.join(loops)})"
    parts = [head, *ins, f"outs({accesses[-1]})", f"{{ {body} }}"]
    line = " ".join(parts)
    return [line] if len(line) <= _LINE - 2 else [head, *("    " + part for part in parts[1:])]


def _slice(op: ExtractSlice | InsertSlice, whole: Value, symbols: Sequence[str]) -> str:
    strides = f"[{', '.join(map(str, op.strides))}]"
    dropped = f" drop [{', '.join(map(str, op.dropped))}]" if op.dropped else ""
    offsets, sizes = _list(op.offsets, symbols), _list(op.sizes, symbols)
    return f"{_name(whole)}{offsets} {sizes} {strides}{dropped}"


def print_op(  # noqa: C901 - one case for each kind
    op: Op, symbols: Sequence[str], locations: bool = False
) -> list[str]:
    """Return the lines of one operation; several for a loop and where one would be too long."""
    match op:
        case For():
            return _for(op, symbols, locations)
        case While():
            return _while(op, symbols, locations)
        case If():
            return _if(op, symbols, locations)
        case Generic():
            first, *rest = _generic(op, symbols)
            return [first + _place(op.location, locations), *rest]
        case Reshape():
            text = f"reshape {_name(op.source)} : {type_text(op.result.type, symbols)}"
        case Concat():
            text = f"concat axis {op.axis} ({_names(op.sources)})"
            text += f" : {type_text(op.result.type, symbols)}"
        case Pad():
            text = f"pad {_name(op.source)} low {_list(op.low, symbols)}"
            text += f" high {_list(op.high, symbols)} with {const_text(op.value)}"
            text += f" : {type_text(op.result.type, symbols)}"
        case Convert():
            text = f"convert {_name(op.source)} : {type_text(op.result.type, symbols)}"
        case Empty():
            text = f"empty : {type_text(op.result.type, symbols)}"
        case AllocTensor():
            copy = f" copy({_name(op.copy)})" if op.copy is not None else ""
            text = f"alloc_tensor{copy} : {type_text(op.result.type, symbols)}"
        case Insert():
            text = f"insert {_name(op.scalar)} into {_name(op.dest)}{_list(op.indices, symbols)}"
        case ExtractSlice():
            text = f"extract_slice {_slice(op, op.source, symbols)}"
            text += f" : {type_text(op.result.type, symbols)}"
        case InsertSlice():
            text = f"insert_slice {_name(op.source)} into {_slice(op, op.dest, symbols)}"
        case Materialize():
            text = f"materialize {_name(op.source)} in {_name(op.dest)}"
    return [f"{_name(op.result)} = {text}{_place(op.location, locations)}"]


def _place(location: Location | None, wanted: bool) -> str:
    return f"  // {location.short}" if wanted and location is not None else ""


def _names(values: Sequence[Value]) -> str:
    return ", ".join(map(_name, values))


def _carries(args: Sequence[Value], inits: Sequence[Value]) -> str:
    pairs = (f"{_name(arg)} = {_name(init)}" for arg, init in zip(args, inits, strict=True))
    return f" carries({', '.join(pairs)})" if args else ""


def _body(ops: Sequence[Op], end: str, symbols: Sequence[str], locations: bool) -> list[str]:
    lines = [line for op in ops for line in print_op(op, symbols, locations)]
    return [f"  {line}" for line in (*lines, end.rstrip())]


def _opening(op: For | While | If, head: str, locations: bool) -> str:
    results = f"{_names(op.results)} = " if op.results else ""
    return f"{results}{head} {{{_place(op.location, locations)}"


def _for(op: For, symbols: Sequence[str], locations: bool) -> list[str]:
    lower, upper = (expr_text(bound, symbols) for bound in (op.lower, op.upper))
    head = f"for {symbols[op.induction]} in {lower} .. {upper}{_carries(op.args, op.inits)}"
    body = _body(op.body, f"yield {_names(op.yields)}", symbols, locations)
    return [_opening(op, head, locations), *body, "}"]


def _while(op: While, symbols: Sequence[str], locations: bool) -> list[str]:
    head = f"while{_carries(op.args, op.inits)}"
    test = _body(op.test, f"condition {_name(op.condition)}", symbols, locations)
    body = _body(op.body, f"yield {_names(op.yields)}", symbols, locations)
    between = f"}} do carries({_names(op.body_args)}) {{" if op.body_args else "} do {"
    return [_opening(op, head, locations), *test, between, *body, "}"]


def _if(op: If, symbols: Sequence[str], locations: bool) -> list[str]:
    then = _body(op.then, f"yield {_names(op.then_yields)}", symbols, locations)
    orelse = _body(op.orelse, f"yield {_names(op.else_yields)}", symbols, locations)
    head = _opening(op, f"if {_name(op.condition)}", locations)
    return [head, *then, "} else {", *orelse, "}"]


def wrap_header(opening: str, parameters: Sequence[str], closing: str) -> list[str]:
    """Return a function's first line, or one line a parameter where that is too long."""
    line = f"{opening}({', '.join(parameters)}){closing}"
    if len(line) <= _LINE or not parameters:
        return [line]
    return [f"{opening}(", *(f"  {parameter}," for parameter in parameters), f"){closing}"]


def print_tensor(func: TensorFunc, *, locations: bool = False) -> str:
    """Return the text of a function; ``locations`` adds the user's file and line to each operation.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> from sparsejit.ir.types import DType
    >>> builder = TensorBuilder("f")
    >>> x = builder.param("x", ("n",), DType.FLOAT64)
    >>> print(print_tensor(builder.finish(x)), end="")
    func @f(%x: f64[n]) -> (f64[n]) {
      return %x
    }
    """
    assigned = {value.name for value in func.assigned}
    parameters = [
        f"{_name(value)}: {type_text(value.type, func.symbols)}"
        + (" assigned" if value.name in assigned else "")
        for value in func.params
    ]
    results = ", ".join(type_text(value.type, func.symbols) for value in func.results)
    lines = wrap_header(f"func @{func.name}", parameters, f" -> ({results}) {{")
    for op in func.ops:
        lines.extend("  " + line for line in print_op(op, func.symbols, locations))
    lines.append(f"  return {_names(func.results)}".rstrip())
    return "\n".join([*lines, "}", ""])
