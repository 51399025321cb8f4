"""Random loop functions, drawn by hypothesis statement by statement, all of them legal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from sparsejit.affine import Dim
from sparsejit.formats import CSR
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.fold import applies, zero_of
from sparsejit.ir.loop_walk import expr_dtype, memrefs_defined
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Cast,
    Copy,
    Dealloc,
    DenseResult,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    ParamResult,
    Push,
    Resize,
    Result,
    Scan,
    ScanOp,
    Search,
    Select,
    Sort,
    SparseResult,
    Stmt,
    Store,
    Unary,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp, ResultKind, UnaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from tests.ir.tensor_functions import constants

_NAMES = ("x", "A_pos1", "A_crd1", "A_vals")


@dataclass(slots=True)
class _Scope:
    """What is known here; ``count`` numbers new names and is shared by all blocks."""

    memrefs: list[Memref]
    variables: list[Var]
    mutable: list[Var] = field(default_factory=list)
    count: list[int] = field(default_factory=lambda: [0])

    def inner(self) -> _Scope:
        return replace(
            self,
            memrefs=list(self.memrefs),
            variables=list(self.variables),
            mutable=list(self.mutable),
        )

    def fresh(self, base: str) -> str:
        self.count[0] += 1
        return f"{base}{self.count[0]}"


def index(value: int) -> Lit:
    """An index constant."""
    return Lit(Const(value, INDEX))


@st.composite
def expressions(  # noqa: C901 - one case for each kind
    draw: st.DrawFn, dtype: DType, scope: _Scope, depth: int = 2
) -> Expr:
    """An expression of ``dtype``."""

    def inner(wanted: DType) -> Expr:
        return draw(expressions(wanted, scope, depth - 1))

    leaves: list[Expr] = [var for var in scope.variables if var.dtype is dtype]
    leaves.append(Lit(draw(constants(dtype))))
    if dtype is INDEX and scope.memrefs:
        memref = draw(st.sampled_from(scope.memrefs))
        leaves += [DimOf(memref, axis) for axis in range(memref.rank)]
    leaf = draw(st.sampled_from(leaves))
    if not depth:
        return leaf
    match draw(st.sampled_from(("leaf", "unary", "binary", "select", "cast", "load", "search"))):
        case "unary" if dtype.compute is dtype:
            ops = [op for op in UnaryOp if applies(op, dtype) and _keeps(op)]
            return Unary(draw(st.sampled_from(ops)), inner(dtype), dtype)
        case "binary" if dtype.compute is dtype:
            pairs = [op for op in BinaryOp if applies(op, dtype) and _keeps(op)]
            return Binary(draw(st.sampled_from(pairs)), inner(dtype), inner(dtype), dtype)
        case "select":
            return Select(inner(DType.BOOL), inner(dtype), inner(dtype))
        case "cast":
            return Cast(inner(draw(st.sampled_from(DType))), dtype)
        case "load":
            fitting = [memref for memref in scope.memrefs if memref.dtype is dtype]
            if fitting:
                memref = draw(st.sampled_from(fitting))
                return Load(memref, tuple(inner(INDEX) for _ in range(memref.rank)))
        case "search" if dtype is INDEX:
            rows = [m for m in scope.memrefs if m.dtype.is_integer and m.rank == 1]
            if rows:
                keys = inner(INDEX), inner(INDEX), inner(INDEX)
                return Search(draw(st.sampled_from(rows)), *keys, ordered=draw(st.booleans()))
        case _:
            pass
    return leaf


def _keeps(op: UnaryOp | BinaryOp) -> bool:
    return op.info.result is ResultKind.SAME


@st.composite
def blocks(draw: st.DrawFn, scope: _Scope, depth: int = 2) -> tuple[Stmt, ...]:
    """A block; what it allocates it frees at its end."""
    made: list[Stmt] = []
    for _ in range(draw(st.integers(0, 4))):
        made.extend(_statement(draw, scope, depth))
    kinds = (Alloc, Assemble, Sort)
    owned = [new for stmt in made if isinstance(stmt, kinds) for new in memrefs_defined(stmt)]
    return (*made, *map(Dealloc, owned))


def _statement(draw: st.DrawFn, scope: _Scope, depth: int) -> list[Stmt]:
    kinds = ["let", "alloc", "memref", "memref"] + ["assemble", "sort"] * (depth == 2)
    kinds += ["for", "while", "if"] if depth else []
    kinds += ["assign"] if scope.mutable else []
    match draw(st.sampled_from(kinds)):
        case "let":
            value = draw(expressions(draw(st.sampled_from(DType)), scope))
            var = Var(scope.fresh("v"), expr_dtype(value))
            mutable = draw(st.booleans())
            scope.variables.append(var)
            scope.mutable.extend([var] * mutable)
            return [Let(var, value, mutable)]
        case "assign":
            var = draw(st.sampled_from(scope.mutable))
            return [Assign(var, draw(expressions(var.dtype, scope)))]
        case "alloc":
            return [_alloc(draw, scope)]
        case "for":
            return [_for(draw, scope, depth)]
        case "while":
            condition = draw(expressions(DType.BOOL, scope))
            return [While(condition, draw(blocks(scope.inner(), depth - 1)))]
        case "if":
            condition = draw(expressions(DType.BOOL, scope))
            then = draw(blocks(scope.inner(), depth - 1))
            orelse = draw(st.sampled_from(((), draw(blocks(scope.inner(), depth - 1)))))
            return [If(condition, then, orelse)]
        case "assemble":
            return _assemble(draw, scope)
        case "sort":
            rows = [m for m in scope.memrefs if m.rank == 1 and m.dtype is INDEX]
            keys = tuple(draw(st.lists(st.sampled_from(rows), max_size=2))) if rows else ()
            extents = tuple(draw(expressions(INDEX, scope)) for _ in keys)
            order = Memref(scope.fresh("o"), INDEX, 1)
            scope.memrefs.append(order)
            return [Sort(order, keys, extents, index(2))]
        case _:
            return _on_memref(draw, scope)


def _alloc(draw: st.DrawFn, scope: _Scope) -> Alloc:
    dtype = draw(st.sampled_from(DType))
    space = draw(st.integers(0, 1))
    memref = Memref(scope.fresh("b"), dtype, draw(st.integers(0, 2)), space)
    extents = tuple(draw(expressions(INDEX, scope)) for _ in range(memref.rank))
    scope.memrefs.append(memref)
    return Alloc(memref, extents, draw(st.sampled_from((None, draw(constants(dtype))))))


def _for(draw: st.DrawFn, scope: _Scope, depth: int) -> For:
    lower, upper = draw(expressions(INDEX, scope)), draw(expressions(INDEX, scope))
    inside = scope.inner()
    var = Var(scope.fresh("i"), INDEX)
    inside.variables.append(var)
    parallel = draw(st.booleans())
    reductions = tuple((var, BinaryOp.ADD) for var in scope.mutable[:1]) if parallel else ()
    return For(var, lower, upper, draw(blocks(inside, depth - 1)), parallel, reductions)


def _on_memref(draw: st.DrawFn, scope: _Scope) -> list[Stmt]:
    memref = draw(st.sampled_from(scope.memrefs))
    flat = memref.rank == 1
    number = draw(expressions(INDEX, scope))
    match draw(st.sampled_from(("store", "reduce", "copy", "view", "push", "scan", "resize"))):
        case "copy":
            same = [m for m in scope.memrefs if (m.dtype, m.rank) == (memref.dtype, memref.rank)]
            return [Copy(memref, draw(st.sampled_from(same)))]
        case "view" if memref.rank:
            dropped = (0,) if draw(st.booleans()) else ()
            rank = memref.rank - len(dropped)
            view = Memref(scope.fresh("w"), memref.dtype, rank, memref.space)
            parts = (number,) * memref.rank
            scope.memrefs.append(view)
            return [View(view, memref, parts, parts, (2,) * memref.rank, dropped)]
        case "push" if flat:
            return [Push(memref, number, draw(expressions(memref.dtype, scope)))]
        case "scan" if flat:
            return [Scan(memref, draw(st.sampled_from(ScanOp)))]
        case "resize" if flat:
            return [Resize(memref, number)]
        case kind:
            usable = [op for op in BinaryOp if applies(op, memref.dtype) and _keeps(op)]
            reduces = kind == "reduce" and memref.dtype.compute is memref.dtype
            op = draw(st.sampled_from(usable)) if reduces else None
            indices = tuple(draw(expressions(INDEX, scope)) for _ in range(memref.rank))
            return [Store(memref, indices, draw(expressions(memref.dtype, scope)), op)]


def _assemble(draw: st.DrawFn, scope: _Scope) -> list[Stmt]:
    rows = [m for m in scope.memrefs if m.rank == 1 and m.dtype is INDEX]
    entries = [m for m in scope.memrefs if m.rank == 1]
    if not rows:
        return []
    values = draw(st.sampled_from(entries))
    kinds = (INDEX, INDEX, values.dtype)
    targets = tuple(Memref(scope.fresh("t"), kind, 1) for kind in kinds)
    extents = draw(expressions(INDEX, scope)), draw(expressions(INDEX, scope))
    scope.memrefs.extend(targets)
    coordinates = (rows[0], rows[-1])
    fill = zero_of(values.dtype)
    return [Assemble(targets, CSR, extents, coordinates, values, index(2), fill)]


@st.composite
def loop_functions(draw: st.DrawFn) -> LoopFunc:
    """A function over a few memrefs and an extent, with a dense, a sparse and a kept result."""
    extent = Var("d0", INDEX)
    dtypes = (draw(st.sampled_from(DType)), INDEX, DType.INT32, DType.FLOAT64)
    params = tuple(Memref(name, dtype, 1) for name, dtype in zip(_NAMES, dtypes, strict=True))
    scope = _Scope(list(params), [extent])
    body = draw(blocks(scope))
    result = Memref("result", DType.FLOAT32, 2)
    shape = (extent, index(3))
    results: tuple[Result, ...] = (
        DenseResult(result),
        SparseResult(CSR, (Dim(0), Dim(0)), zero_of(DType.FLOAT64), params[1:]),
        ParamResult(1),
    )
    facts = (Fact(FactKind.LOOP_ORDER, "result", "i, j"),)
    return LoopFunc("f", (extent, *params), (*body, Alloc(result, shape)), results, facts)
