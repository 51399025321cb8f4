"""Statements about whole arrays as loops: ``Copy``, ``Sort``, ``Scan`` and ``Assemble``.

In: a ``LoopFunc``. Out: the same function with loads, stores and loops instead, so that the printer
of LLVM IR knows small statements only. Sorting stands in ``_expand_sort``, assembling in
``_expand_assembly``. What may fail sets a status, and goes on in a way that touches no memory it
should not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._expand_assembly import assembly
from sparsejit.backends.llvm._expand_sort import sort_loops
from sparsejit.ir.device_statements import LibraryCall
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loop_writing import Names, binary, int_
from sparsejit.ir.loops import (
    Assemble,
    Binary,
    Copy,
    DimOf,
    For,
    If,
    Let,
    Load,
    LoopFunc,
    Scan,
    ScanOp,
    Sort,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["Expanded", "expand"]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A function of small statements; ``status`` is the variable that says what went wrong.

    It is 0 where nothing did, and None where nothing can.
    """

    func: LoopFunc
    status: Var | None


def expand(func: LoopFunc) -> Expanded:
    """Return ``func`` without ``Copy``, ``Sort``, ``Scan`` and ``Assemble``."""
    names = Names.of(func)
    status = None
    if any(isinstance(stmt, Assemble) for stmt in all_statements(func.body)):
        status = names.var("status")
    body = _block(func.body, names, status)
    if status is not None:
        body = (Let(status, int_(0), mutable=True), *body)
    return Expanded(replace(func, body=body), status)


def _block(body: Sequence[Stmt], names: Names, status: Var | None) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() | While():
                made.append(replace(stmt, body=_block(stmt.body, names, status)))
            case If():
                then = _block(stmt.then, names, status)
                made.append(replace(stmt, then=then, orelse=_block(stmt.orelse, names, status)))
            case LibraryCall():
                otherwise = _block(stmt.otherwise, names, status)
                made.append(replace(stmt, otherwise=otherwise))
            case Copy():
                made += _copy(stmt, names)
            case Sort():
                made += sort_loops(stmt, names)
            case Scan():
                made.append(_scan(stmt, names))
            case Assemble():
                assert status is not None
                made += assembly(stmt, names, status)
            case _:
                made.append(stmt)
    return tuple(made)


def _copy(stmt: Copy, names: Names) -> tuple[Stmt, ...]:
    """Copy element by element over all axes (LLVM makes it a block copy where it is one)."""
    at = tuple(names.var("c") for _ in range(stmt.target.rank))
    body: tuple[Stmt, ...] = (Store(stmt.target, at, Load(stmt.source, at)),)
    for axis in reversed(range(stmt.target.rank)):
        body = (For(at[axis], int_(0), DimOf(stmt.source, axis), body),)
    return body


def _scan(stmt: Scan, names: Names) -> Stmt:
    memref, dtype = stmt.memref, stmt.memref.dtype
    i = names.var("i")
    before = Load(memref, (binary(BinaryOp.SUB, i, int_(1)),))
    here = Load(memref, (i,))
    op = BinaryOp.ADD if stmt.op is ScanOp.SUM else BinaryOp.MAX
    step = Store(memref, (i,), Binary(op, before, here, dtype))
    return For(i, int_(1), DimOf(memref, 0), (step,))
