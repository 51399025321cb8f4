"""Library calls: a matched ``Generic`` as a ``LibraryCall`` around its generated loops.

In: the match, the operation, its buffers, and the loops that compute it. Out: statements. A new
result of a sampled product first gets the structure of its sample, which the library does not make:
from then on the product is an update of that result. A new result of a product with a dense matrix
is not filled with zeros first: the library overwrites it, and only the loops that stand for the
call begin with the zeros. So it is with a result that is scaled before a product is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce

from sparsejit._dataclasses import dataclass
from sparsejit.ir import loops
from sparsejit.ir.device_statements import DenseMatrix, LibraryCall, LibraryOp, SparseMatrix
from sparsejit.ir.fold import constant
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr, Select, Stored
from sparsejit.ir.tensor import Generic, Op, Value
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.walk import all_ops, blocks_of, operands_of, yields_of
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import (
    Buffer,
    DenseBuffer,
    ScalarBuffer,
    SparseBuffer,
)
from sparsejit.sparsify_and_bufferize._library_kernels import (
    match_library_kernel,
    match_scaling,
)
from sparsejit.sparsify_and_bufferize._library_match import Match, Role
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._scalar_lowering import lower_scalar

__all__ = [
    "Start",
    "library_call",
    "scaled_values",
    "starts_of_products",
    "structure_copy",
    "update_of_sampled",
]

Stmts = tuple[loops.Stmt, ...]

_WITH_BETA = (LibraryOp.SPMV, LibraryOp.SPMM)
"""Products that the library adds to what is there times ``beta``; it reads nothing if that is 0."""


def library_call(
    match: Match,
    op: Generic,
    buffers: tuple[Buffer, ...],
    symbols: Mapping[int, loops.Expr],
    otherwise: Stmts,
    start: Start | None = None,
) -> LibraryCall:
    """Return the call; ``buffers`` are those of the inputs and, last, of the result.

    The statements of ``start`` stand in front of the loops ``otherwise``.
    """
    dtype = op.init.type.dtype.compute

    def operand(role: Role) -> SparseMatrix | DenseMatrix:
        return _operand(role, op, buffers[role.number], symbols)

    alphas = [_product(op, factors, buffers, dtype) for factors in match.alpha]
    is_new = match.op in (LibraryOp.SPGEMM, LibraryOp.SPADD)
    output, result = operand(match.output), buffers[-1]
    beta = _number(0 if is_new else 1, dtype) if start is None else start.beta(dtype)
    return LibraryCall(
        match.op,
        tuple(map(operand, match.inputs)),
        output,
        alphas[0],
        alphas[1] if match.op is LibraryOp.SPADD else beta,
        otherwise if start is None else (*start.statements, *otherwise),
        result.flat if is_new and isinstance(result, SparseBuffer) else (),
    )


def _operand(
    role: Role, op: Generic, buffer: Buffer, symbols: Mapping[int, loops.Expr]
) -> SparseMatrix | DenseMatrix:
    if role.storage is None:
        assert isinstance(buffer, DenseBuffer)
        return DenseMatrix(buffer.memref, role.is_transposed, role.batch)
    assert isinstance(buffer, SparseBuffer)
    shape = (*op.inputs, op.init)[role.number].type.shape
    matrix = role.storage.rows, role.storage.columns
    axes = matrix if role.batch is None else (role.batch, *matrix)
    extents = tuple(ix.lower_affine(shape[axis], symbols) for axis in axes)
    storage = role.storage
    return SparseMatrix(storage.layout, extents, buffer.flat, storage.block, role.is_transposed)


def _number(value: int, dtype: DType) -> loops.Expr:
    return loops.Lit(constant(value, dtype))


def _product(
    op: Generic, factors: tuple[ScalarExpr, ...], buffers: tuple[Buffer, ...], dtype: DType
) -> loops.Expr:
    """Return the product of factors without dimensions, in the dtype that is computed in."""
    if not factors:
        return _number(1, dtype)
    dtypes = tuple(value.type.dtype for value in (*op.inputs, op.init))

    def element(number: int) -> loops.Expr:
        buffer = buffers[number]
        if isinstance(buffer, ScalarBuffer):
            found: loops.Expr = buffer.var
        else:
            assert isinstance(buffer, DenseBuffer)
            found = loops.Load(buffer.memref, ())
        return found if dtypes[number] is dtype else loops.Cast(found, dtype)

    product = reduce(lambda lhs, rhs: Binary(BinaryOp.MUL, lhs, rhs), factors)
    return lower_scalar(product, dtypes, element, lambda loop: ix.index(0))


# ------------------------------------------------------------ what a product is added to


@dataclass(frozen=True, slots=True)
class Start:
    """What a product is added to: ``op`` computes it, by ``statements``.

    The library does that itself: ``beta`` is 0 where ``op`` fills with zeros, and the factor where
    it scales what is there. ``buffers`` are those of all values, by name.
    """

    op: Generic
    buffers: Mapping[str, Buffer]
    statements: Stmts

    def beta(self, dtype: DType) -> loops.Expr:
        """Return ``beta`` in the dtype that is computed in."""
        if _fills_with_zero(self.op):
            return _number(0, dtype)
        found = match_scaling(self.op)
        assert found is not None
        buffers = tuple(self.buffers[value.name] for value in self.op.inputs)
        return _product(self.op, found[1], buffers, dtype)


def starts_of_products(
    ops: tuple[Op, ...], results: Iterable[Value], roots: Mapping[str, str], options: StageOptions
) -> frozenset[str]:
    """Return the values that are there for nothing but that a library adds a product to them.

    Nobody else reads them, and the product is in the block that makes them. They are zeros, or
    what was in the very buffer before, times factors; ``roots`` says whose buffer is whose.
    """
    taken = (value for op in all_ops(ops) for value in (*operands_of(op), *yields_of(op)))
    users = Counter(value.name for value in (*taken, *results))
    found: set[str] = set()
    for block in _blocks(ops):
        starts = {
            op.result.name
            for op in block
            if isinstance(op, Generic) and (_fills_with_zero(op) or _scales_in_place(op, roots))
        }
        for op in block:
            if isinstance(op, Generic) and op.init.name in starts and users[op.init.name] == 1:
                match = match_library_kernel(op, options)
                if isinstance(match, Match) and match.op in _WITH_BETA:
                    found.add(op.init.name)
    return frozenset(found)


def _blocks(ops: tuple[Op, ...]) -> Iterator[tuple[Op, ...]]:
    yield ops
    for op in ops:
        for block in blocks_of(op):
            yield from _blocks(block.ops)


def _fills_with_zero(op: Generic) -> bool:
    """Whether ``op`` makes every element of a dense value 0."""
    return isinstance(op.body, Const) and op.body.value == 0 and _visits_all(op)


def _scales_in_place(op: Generic, roots: Mapping[str, str]) -> bool:
    """Whether ``op`` multiplies all that is in its buffer by a number that is not 0.

    With a factor of 0 the library would not read what is there, and nan times 0 is nan.
    """
    found = match_scaling(op)
    if found is None or not _visits_all(op) or op.result.type.dtype.bits <= 16:
        return False
    number, factors = found
    source = op.inputs[number]
    return (
        roots[source.name] == roots[op.result.name]
        and source.type == op.result.type
        and op.indexing_maps[number] == op.indexing_maps[-1]
        and not any(isinstance(factor, Const) and factor.value == 0 for factor in factors)
    )


def _visits_all(op: Generic) -> bool:
    """Whether ``op`` writes each element of a dense value once."""
    written = op.indexing_maps[-1]
    return (
        op.result.type.is_dense
        and written.is_projected_permutation
        and len(written.results) == len(op.iterator_types)
    )


# ------------------------------------------------------------ sampled products


def update_of_sampled(match: Match, op: Generic) -> tuple[Match, Generic]:
    """Return the product as an update of a result that has the structure of its sample.

    The result's elements are to be scaled afterwards where ``match.is_scaled``.
    """
    out = len(op.inputs)
    scalars = sorted({f.index for factors in match.alpha for f in factors if isinstance(f, Arg)})
    kept = [*(role.number for role in match.inputs), *scalars]
    number = {old: new for new, old in enumerate((*kept, out))}
    factors = [Arg(number[f.index]) if isinstance(f, Arg) else f for f in match.alpha[0]]
    pair = [Arg(number[role.number]) for role in match.inputs]
    term = reduce(lambda lhs, rhs: Binary(BinaryOp.MUL, lhs, rhs), [*factors, *pair])
    here = Arg(len(kept))
    update = replace(
        op,
        inputs=tuple(op.inputs[old] for old in kept),
        indexing_maps=tuple(op.indexing_maps[old] for old in (*kept, out)),
        body=Select(Stored(here.index), Binary(BinaryOp.ADD, here, term), here),
    )
    moved = replace(
        match,
        inputs=tuple(replace(role, number=number[role.number]) for role in match.inputs),
        output=replace(match.output, number=here.index),
        alpha=(tuple(factors),),
        sample=here.index,
    )
    return moved, update


def structure_copy(target: SparseBuffer, source: SparseBuffer, fill: loops.Lit) -> Stmts:
    """Return the statements that make ``target`` with the structure of ``source``, all ``fill``."""
    made: list[loops.Stmt] = []
    for new, old in zip(target.flat[:-1], source.flat[:-1], strict=True):
        made += [loops.Alloc(new, (loops.DimOf(old, 0),)), loops.Copy(new, old)]
    slots = loops.DimOf(source.values, 0)
    return (*made, loops.Alloc(target.values, (slots,), fill.const))


def scaled_values(target: SparseBuffer, source: SparseBuffer, namer: Names) -> Stmts:
    """Return the loop that multiplies the values of ``target`` by those of ``source``."""
    place = loops.Var(namer.fresh("p"), INDEX)
    factor = loops.Load(source.values, (place,))
    store = loops.Store(target.values, (place,), factor, BinaryOp.MUL)
    extent = loops.DimOf(target.values, 0)
    return (loops.For(place, ix.index(0), extent, (store,), parallel=True),)
