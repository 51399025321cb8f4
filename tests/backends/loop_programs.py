"""Loop functions written by hand, with arguments and what NumPy says about the results.

They are the small kernels that a backend must get right before anything else: each has one
feature of the loop IR as its subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Cast,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    LoopFunc,
    Push,
    Resize,
    Scan,
    ScanOp,
    Search,
    Select,
    Sort,
    Stmt,
    Store,
    Unary,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from tests.backends.loop_writing import (
    F32,
    F64,
    I32,
    add,
    binary,
    function,
    index,
    less,
    load,
    memref,
    mul,
    number,
    var,
)

i, j, k, p, q, n, count = (var(name) for name in ("i", "j", "k", "p", "q", "n", "count"))
one = index(1)


@dataclass(frozen=True)
class Program:
    """A loop function, and for each set of arguments the results and the final arguments."""

    func: LoopFunc
    arguments: Callable[[], list[Any]]
    expected: Callable[..., tuple[Any, ...]]
    """The results, from the arguments as they were before the call."""
    assigned: Callable[..., dict[int, Any]] = lambda *arguments: {}
    """The arguments that are written in place, by position, from those before the call."""


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _csr(rows: int, columns: int) -> sp.csr_array:
    dense = _rng().standard_normal((rows, columns)) * (_rng().random((rows, columns)) < 0.3)
    matrix = sp.csr_array(dense)
    return sp.csr_array(
        (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)),
        matrix.shape,
    )


def spmv() -> Program:
    pos, crd, vals = memref("A_pos1", I32), memref("A_crd1", I32), memref("A_vals")
    x, y = memref("x"), memref("y")
    inner = For(
        p,
        load(pos, i),
        load(pos, add(i, one)),
        (
            Let(j, load(crd, p)),
            Store(y, (i,), mul(load(vals, p), load(x, j)), BinaryOp.ADD),
        ),
    )
    body = (
        Alloc(y, (var("d0"),), Const(0.0, F64)),
        For(i, index(0), var("d0"), (inner,), parallel=True),
    )
    func = function("spmv", [var("d0"), var("d1"), pos, crd, vals, x], body, y)
    matrix = _csr(7, 9)

    def arguments() -> list[Any]:
        return [7, 9, matrix.indptr, matrix.indices, matrix.data, np.arange(9.0)]

    return Program(func, arguments, lambda *given: (matrix.toarray() @ given[5],))


def union_of_vectors() -> Program:
    """``c = a + b`` of two sorted sparse vectors: co-iteration, appending, cutting to size."""
    a_crd, a_vals, b_crd, b_vals = (
        memref("a_crd0", I32),
        memref("a_vals", F32),
        memref("b_crd0", I32),
        memref("b_vals", F32),
    )
    c_crd, c_vals = memref("c_crd0", I32), memref("c_vals", F32)
    ia, ib, total = var("ia"), var("ib"), var("total", F32)
    in_a, in_b = var("in_a", DType.BOOL), var("in_b", DType.BOOL)
    far = index(2**62)
    step: tuple[Stmt, ...] = (
        Let(ia, Select(less(p, DimOf(a_crd, 0)), load(a_crd, p), far)),
        Let(ib, Select(less(q, DimOf(b_crd, 0)), load(b_crd, q), far)),
        Let(i, binary(BinaryOp.MIN, ia, ib)),
        Let(in_a, binary(BinaryOp.EQ, ia, i)),
        Let(in_b, binary(BinaryOp.EQ, ib, i)),
        Let(total, number(0.0, F32), mutable=True),
        If(in_a, (Assign(total, add(total, load(a_vals, p))), Assign(p, add(p, one)))),
        If(in_b, (Assign(total, add(total, load(b_vals, q))), Assign(q, add(q, one)))),
        Push(c_crd, count, Cast(i, I32)),
        Push(c_vals, count, total),
        Assign(count, add(count, one)),
    )
    more = binary(BinaryOp.OR, less(p, DimOf(a_crd, 0)), less(q, DimOf(b_crd, 0)))
    body = (
        Alloc(c_crd, (index(0),)),
        Alloc(c_vals, (index(1),)),
        Let(p, index(0), mutable=True),
        Let(q, index(0), mutable=True),
        Let(count, index(0), mutable=True),
        While(more, step),
        Resize(c_crd, count),
        Resize(c_vals, count),
    )
    func = function("union", [a_crd, a_vals, b_crd, b_vals], body, c_crd, c_vals)

    def arguments() -> list[Any]:
        rng = _rng()
        a, b = (np.sort(rng.choice(200, size, replace=False)) for size in (60, 40))
        return [
            a.astype(np.int32),
            rng.random(60).astype(np.float32),
            b.astype(np.int32),
            rng.random(40).astype(np.float32),
        ]

    def expected(a: Any, x: Any, b: Any, y: Any) -> tuple[Any, ...]:
        dense = np.zeros(200, np.float32)
        dense[a] += x
        dense[b] += y
        crd = np.union1d(a, b)
        return crd.astype(np.int32), dense[crd]

    return Program(func, arguments, expected)


def matmul() -> Program:
    """Dense product into an argument, with a running sum in a register."""
    a, b, c = memref("a", rank=2), memref("b", rank=2), memref("c", rank=2)
    s = var("s", F64)
    innermost = For(
        k,
        index(0),
        DimOf(a, 1),
        (Assign(s, add(s, mul(load(a, i, k), load(b, k, j)))),),
        reductions=((s, BinaryOp.ADD),),
    )
    each = (Let(s, number(0.0), mutable=True), innermost, Store(c, (i, j), s, BinaryOp.ADD))
    body = (For(i, index(0), DimOf(a, 0), (For(j, index(0), DimOf(b, 1), each),), parallel=True),)

    def arguments() -> list[Any]:
        rng = _rng()
        a = rng.random((5, 4))
        b = np.asfortranarray(rng.random((4, 6)))
        return [a, b, rng.random((10, 6))[::2]]

    return Program(
        function("matmul", [a, b, c], body),
        arguments,
        lambda a, b, c: (),
        lambda a, b, c: {2: c + a @ b},
    )


def searches() -> Program:
    """Positions of keys: ordered, unordered, in a column of an array of structs."""
    crd, mixed, pairs, keys = (
        memref("crd", I32),
        memref("mixed", DType.UINT16),
        memref("pairs", INDEX, 2),
        memref("keys", INDEX),
    )
    outs = [memref(name, INDEX) for name in ("found", "found_mixed", "found_pairs", "found_last")]
    key = var("key")

    def search(array: Any, ordered: bool = True, column: int | None = None) -> Expr:
        return Search(array, index(1), DimOf(array, 0), key, ordered, column)

    values = (
        search(crd),
        search(mixed, ordered=False),
        search(pairs, column=0),
        search(pairs, ordered=False, column=1),
    )
    stores = [Store(out, (i,), value) for out, value in zip(outs, values, strict=True)]
    body: tuple[Stmt, ...] = (
        *(Alloc(out, (DimOf(keys, 0),)) for out in outs),
        For(i, index(0), DimOf(keys, 0), (Let(key, load(keys, i)), *stores)),
    )
    func = function("searches", [crd, mixed, pairs, keys], body, *outs)

    def arguments() -> list[Any]:
        pairs = np.array([[0, 9], [2, 5], [4, 5], [8, 1]])
        ordered = np.array([1, 3, 3, 6, 8], np.int32)
        return [ordered, np.array([4, 8, 0, 3], np.uint16), pairs, np.arange(-1, 10)]

    def first(array: Any, key: int) -> int:
        places = [place for place in range(1, len(array)) if array[place] == key]
        return places[0] if places else -1

    def expected(crd: Any, mixed: Any, pairs: Any, keys: Any) -> tuple[Any, ...]:
        arrays = (crd, mixed, pairs[:, 0], pairs[:, 1])
        return tuple(np.array([first(array, key) for key in keys]) for array in arrays)

    return Program(func, arguments, expected)


def views() -> Program:
    """Views with positive, negative and no stride left, read and written through."""
    a, r = memref("a", rank=2), memref("r")
    even, back, row, cell, flip = (
        memref("even", rank=2),
        memref("back", rank=2),
        memref("row"),
        memref("cell", rank=0),
        memref("flip"),
    )
    copied, single = memref("copied", rank=2), memref("single", rank=0)
    rows = DimOf(a, 0)
    half = binary(BinaryOp.FLOORDIV, add(rows, one), index(2))
    last = add(rows, index(-1))
    empty, scratch = memref("empty"), memref("scratch")
    body = (
        View(even, a, (index(0), one), (half, index(3)), (2, 1)),
        View(back, a, (last, index(4)), (rows, index(2)), (-1, -3)),
        View(row, a, (index(2), index(0)), (one, DimOf(a, 1)), (1, 1), dropped=(0,)),
        View(flip, r, (add(DimOf(r, 0), index(-1)),), (DimOf(r, 0),), (-1,)),
        View(empty, r, (index(-1),), (index(0),), (-1,)),
        View(cell, a, (index(1), index(2)), (one, one), (1, 1), dropped=(0, 1)),
        Alloc(copied, (DimOf(back, 0), DimOf(back, 1))),
        Copy(copied, back),
        Alloc(single, (), Const(2.0, F64)),
        Store(single, (), load(cell), BinaryOp.MUL),
        Store(even, (one, index(2)), number(-7.0)),
        Store(cell, (), number(50.0), BinaryOp.MAX),
        For(j, index(0), DimOf(row, 0), (Store(row, (j,), load(flip, j), BinaryOp.ADD),)),
        Alloc(scratch, (index(3),)),
        Dealloc(scratch),
        Copy(cell, single),
        Store(r, (index(0),), Cast(DimOf(empty, 0), F64), BinaryOp.ADD),
    )
    func = function("views", [a, r], body, copied, single)

    def arguments() -> list[Any]:
        return [np.arange(25.0).reshape(5, 5), np.arange(5.0) * 100]

    def expected(a: Any, r: Any) -> tuple[Any, ...]:
        return a[::-1, 4::-3], np.array(2 * a[1, 2])

    def assigned(a: Any, r: Any) -> dict[int, Any]:
        after = a.copy()
        after[2, 3] = -7
        after[2] += r[::-1]
        after[1, 2] = 2 * a[1, 2]
        return {0: after, 1: r}

    return Program(func, arguments, expected, assigned)


def half_floats() -> Program:
    """16-bit floats: loaded, widened, computed with, narrowed, filled, copied."""
    x, scale = memref("x", DType.FLOAT16), var("scale", DType.BFLOAT16)
    y, z, ones = (
        memref("y", DType.FLOAT16),
        memref("z", DType.BFLOAT16),
        memref("ones", DType.BFLOAT16),
    )
    wide = Cast(load(x, i), F32)
    product = mul(wide, Cast(scale, F32))
    size = DimOf(x, 0)
    body = (
        Alloc(y, (size,)),
        Alloc(z, (size,)),
        Alloc(ones, (index(2),), Const(1.5, DType.BFLOAT16)),
        For(
            i,
            index(0),
            size,
            (
                Store(y, (i,), Cast(product, DType.FLOAT16)),
                Store(z, (i,), Cast(product, DType.BFLOAT16)),
            ),
        ),
    )
    import ml_dtypes

    def arguments() -> list[Any]:
        return [np.array([1.0, 2.5, -0.0, np.inf, 6e4, 1e-7], np.float16), 1.25]

    def expected(x: Any, scale: float) -> tuple[Any, ...]:
        with np.errstate(over="ignore"):
            wide = x.astype(np.float32) * np.float32(scale)
            half = wide.astype(np.float16)
        return half, wide.astype(ml_dtypes.bfloat16), np.full(2, 1.5, ml_dtypes.bfloat16)

    return Program(function("halves", [x, scale], body, y, z, ones), arguments, expected)


def scans_and_sort() -> Program:
    """Prefix sums and maxima in place; the order of entries by two coordinates."""
    counts, peaks = memref("counts", I32), memref("peaks")
    rows, columns, order = memref("rows", INDEX), memref("columns", INDEX), memref("order", INDEX)
    body = (
        Scan(counts, ScanOp.SUM),
        Scan(peaks, ScanOp.MAX),
        Sort(order, (rows, columns), (index(4), index(10**6)), DimOf(rows, 0)),
    )

    def arguments() -> list[Any]:
        rng = _rng()
        return [
            np.array([0, 2, 0, 5, 1], np.int32),
            np.array([1.0, -1.0, 3.0, 2.0]),
            rng.integers(0, 4, 50),
            rng.integers(0, 10**6, 50),
        ]

    return Program(
        function("scans", [counts, peaks, rows, columns], body, order),
        arguments,
        lambda counts, peaks, rows, columns: (np.lexsort((columns, rows)),),
        lambda counts, peaks, rows, columns: {
            0: np.cumsum(counts, dtype=np.int32),
            1: np.maximum.accumulate(peaks),
        },
    )


def narrow_integers() -> Program:
    """int8 arithmetic wraps at 8 bits at every step, and reductions too."""
    small = DType.INT8
    x, total = memref("x", small), memref("total", small)
    v, s = var("v", small), var("s", small)
    square = mul(v, add(v, v))
    body = (
        Alloc(total, (index(1),), Const(-100, small)),
        Let(s, Lit(Const(5, small)), mutable=True),
        For(
            i,
            index(0),
            DimOf(x, 0),
            (
                Let(v, load(x, i)),
                Store(total, (index(0),), square, BinaryOp.ADD),
                Assign(s, binary(BinaryOp.MAX, mul(s, v), Unary(UnaryOp.NEG, v, small))),
                Store(x, (i,), binary(BinaryOp.FLOORDIV, square, s)),
            ),
        ),
        Store(total, (index(0),), s, BinaryOp.XOR),
    )

    def simulate(x: Any) -> tuple[Any, Any]:
        after, total, s = x.copy(), np.int8(-100), np.int8(5)
        with np.errstate(all="ignore"):
            for place, v in enumerate(x):
                square = v * (v + v)
                total = total + square
                s = max(s * v, -v)
                after[place] = square // s if s else 0
        return after, np.array([total ^ s])

    return Program(
        function("narrow", [x], body, total),
        lambda: [np.array([3, 100, -128, 0, 77, -5, 127], np.int8)],
        lambda x: (simulate(x)[1],),
        lambda x: {0: simulate(x)[0]},
    )


PROGRAMS: dict[str, Callable[[], Program]] = {
    made.__name__: made
    for made in (
        spmv,
        union_of_vectors,
        matmul,
        searches,
        views,
        half_floats,
        scans_and_sort,
        narrow_integers,
    )
}
"""The programs by name."""
