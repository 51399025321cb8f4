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
from sparsejit.ir.fold import zero_of
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
)
from sparsejit.ir.tensor import (
    AllocTensor,
    Convert,
    Empty,
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
ATOM = 100
"""The binding strength of names, numbers and calls; everything else binds less."""

_STRENGTH = {
    **dict.fromkeys((BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE), 10),
    **dict.fromkeys((BinaryOp.EQ, BinaryOp.NE), 10),
    BinaryOp.OR: 20,
    BinaryOp.XOR: 30,
    BinaryOp.AND: 40,
    **dict.fromkeys((BinaryOp.SHL, BinaryOp.SHR), 50),
    **dict.fromkeys((BinaryOp.ADD, BinaryOp.SUB), 60),
    **dict.fromkeys((BinaryOp.MUL, BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.REM), 70),
    BinaryOp.POW: 90,
}
_UNARY_STRENGTH = 80
_UNARY_SYMBOLS = {UnaryOp.NEG: "-", UnaryOp.NOT: "~"}
_COMPARISONS = 10


def loop_names(number: int, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Return names for loops: i, j, k, ..., then i1, j1, ..., without those that are taken.

    >>> loop_names(3, taken=("j",))
    ('i', 'k', 'l')
    """
    used = frozenset(taken)
    rounds = (f"{letter}{turn or ''}" for turn in count() for letter in _LETTERS)
    return tuple(islice((name for name in rounds if name not in used), number))


def const_text(const: Const) -> str:
    """Return the number as Python writes it."""
    return repr(const.value)


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


def print_scalar(expr: ScalarExpr, num_inputs: int, loops: Sequence[str]) -> str:
    """Return the text of a body with ``num_inputs`` inputs and these names of its loops.

    >>> print_scalar(Binary(BinaryOp.ADD, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1))), 2, ())
    'out + in0 * in1'
    """
    return _scalar(expr, num_inputs, loops)[0]


def _scalar(  # noqa: C901 - one case for each kind
    expr: ScalarExpr, num_inputs: int, loops: Sequence[str]
) -> tuple[str, int]:
    """Return the text and how strongly it binds."""

    def walk(inner: ScalarExpr) -> tuple[str, int]:
        return _scalar(inner, num_inputs, loops)

    def operand(index: int) -> str:
        return "out" if index == num_inputs else f"in{index}"

    match expr:
        case Unary(op, inner):
            return unary_text(op, walk(inner))
        case Binary(op, lhs, rhs):
            return binary_text(op, walk(lhs), walk(rhs))
        case Arg(index):
            text = operand(index)
        case Stored(index):
            text = f"stored({operand(index)})"
        case Const():
            return constant_atom(expr)
        case Coordinate(loop):
            text = loops[loop]
        case Nothing():
            text = "nothing"
        case Cast(inner, dtype):
            text = f"{dtype.short}({walk(inner)[0]})"
        case Select(condition, then, orelse):
            text = f"select({walk(condition)[0]}, {walk(then)[0]}, {walk(orelse)[0]})"
    return text, ATOM


def constant_atom(const: Const) -> tuple[str, int]:
    """Return the text of a constant and how strongly it binds: a sign binds like a negation."""
    text = const_text(const)
    return text, _UNARY_STRENGTH if text.startswith("-") else ATOM


def unary_text(op: UnaryOp, operand: tuple[str, int]) -> tuple[str, int]:
    """Return the text of ``op`` of an operand, given with its binding strength, and its own."""
    text, strength = operand
    symbol = _UNARY_SYMBOLS.get(op)
    if symbol is None:
        return f"{op.name.lower()}({text})", ATOM
    return symbol + (text if strength > _UNARY_STRENGTH else f"({text})"), _UNARY_STRENGTH


def binary_text(op: BinaryOp, lhs: tuple[str, int], rhs: tuple[str, int]) -> tuple[str, int]:
    """Return the text of ``lhs op rhs``, operands given with their strengths, and its own.

    Every operation associates to the left, and comparisons and powers not at all.

    >>> binary_text(BinaryOp.SUB, ("a", ATOM), ("b - c", 60))
    ('a - (b - c)', 60)
    """
    strength = _STRENGTH.get(op)
    if strength is None:
        return f"{op.info.symbol}({lhs[0]}, {rhs[0]})", ATOM
    chains = strength != _COMPARISONS and op is not BinaryOp.POW
    left = lhs[0] if lhs[1] > strength or (chains and lhs[1] == strength) else f"({lhs[0]})"
    right = rhs[0] if rhs[1] > strength else f"({rhs[0]})"
    return f"{left} {op.info.symbol} {right}", strength


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


def print_op(op: Op, symbols: Sequence[str], locations: bool = False) -> list[str]:
    """Return the lines of one operation; several for a loop and where one would be too long."""
    match op:
        case For():
            return _for(op, symbols, locations)
        case Generic():
            first, *rest = _generic(op, symbols)
            return [first + _place(op.location, locations), *rest]
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


def _for(op: For, symbols: Sequence[str], locations: bool) -> list[str]:
    lower, upper = (expr_text(bound, symbols) for bound in (op.lower, op.upper))
    pairs = ", ".join(
        f"{_name(arg)} = {_name(init)}" for arg, init in zip(op.args, op.inits, strict=True)
    )
    carries = f" carries({pairs})" if pairs else ""
    head = f"for {symbols[op.induction]} in {lower} .. {upper}{carries} {{"
    body = [line for inner in op.body for line in print_op(inner, symbols, locations)]
    body.append(f"yield {_names(op.yields)}".rstrip())
    results = f"{_names(op.results)} = " if op.results else ""
    opening = results + head + _place(op.location, locations)
    return [opening, *("  " + line for line in body), "}"]


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
