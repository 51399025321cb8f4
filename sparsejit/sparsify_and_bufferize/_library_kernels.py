"""Library recognition: is this ``Generic`` a kernel that a library has? A pure question.

It is asked inside the stage, where level types and indexing maps are visible and the copies are
decided. The answer is a ``Match``, up to the order of loops and operands, transposes and factors,
or a ``Mismatch`` with the reason. What a library has is the union over versions and devices; a
library that turns out, when a call is planned, not to take it leaves the generated loops.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit.affine import Dim
from sparsejit.ir.device_statements import LibraryOp, SparseLayout
from sparsejit.ir.fold import constant
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr, Select, Stored, Unary
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import DType, IteratorType
from sparsejit.sparsify_and_bufferize._library_limits import why_not_taken
from sparsejit.sparsify_and_bufferize._library_match import Match, Mismatch, Role
from sparsejit.sparsify_and_bufferize._library_operands import storage_of
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["match_library_kernel", "match_scaling"]


class _NoMatchError(Exception):
    """What is raised, and caught, inside this module where an operation is no library kernel."""


def match_library_kernel(op: Generic, options: StageOptions) -> Match | Mismatch:
    """Return how a library computes ``op``, or why it does not."""
    if not options.library_kernels:
        return Mismatch("the target offers no library kernels")
    try:
        match = _match(op)
    except _NoMatchError as error:
        return Mismatch(f"no library kernel: {error}")
    problem = why_not_taken(match, op, options)
    if problem is not None:
        return Mismatch(f"no library kernel: {problem}")
    if match.op.value not in options.library_kernels:
        return Mismatch(f"the target has no library for {match.op.value}")
    return match


def match_scaling(op: Generic) -> tuple[int, tuple[ScalarExpr, ...]] | None:
    """Return which operand ``op`` multiplies by factors without dimensions, and these, or None."""
    try:
        matrices, factors = _split(op, _factors(op.body, op.init.type.dtype))
    except _NoMatchError:
        return None
    return (matrices[0], factors) if len(matrices) == 1 else None


# ------------------------------------------------------------ the shape of the operation


def _match(op: Generic) -> Match:
    if any(isinstance(expr, Dim) is False for map_ in op.indexing_maps for expr in map_.results):
        raise _NoMatchError("an operand is indexed by more than loops")
    for map_ in op.indexing_maps:
        if len(set(map_.results)) != len(map_.results):
            raise _NoMatchError("an operand is read along a diagonal")
    parallel = op.iterator_types.count(IteratorType.PARALLEL)
    reductions = op.iterator_types.count(IteratorType.REDUCTION)
    match (parallel, reductions):
        case (1, 1) | (2, 1) | (3, 1):
            return _product(op)
        case (2, 0):
            return _sum(op)
        case _:
            raise _NoMatchError(f"it has {parallel} parallel and {reductions} reduction loops")


def _product(op: Generic) -> Match:
    """``out += product``, or the same where an operand stores something."""
    out = len(op.inputs)
    sample: int | None = None
    body = op.body
    match op.body:
        case Select(Stored(where), inner, Arg(rest)) if rest == out:
            sample, body = where, inner
        case _:
            pass
    term = _term(body, out)
    matrices, alpha = _split(op, _factors(term, op.init.type.dtype))
    sparse = [number for number in matrices if not _value(op, number).type.is_dense]
    if sample is not None or (
        not op.init.type.is_dense and len(sparse) == 1 and len(matrices) == 3
    ):
        return _sampled(op, matrices, alpha, sample, sparse)
    if len(matrices) != 2:
        raise _NoMatchError(f"a product of {len(matrices)} tensors")
    if op.init.type.is_dense and not sparse:
        return _dense_times_dense(op, matrices, alpha)
    if op.init.type.is_dense:
        return _sparse_times_dense(op, matrices, alpha, sparse)
    return _sparse_times_sparse(op, matrices, alpha, sparse)


def _term(body: ScalarExpr, out: int) -> ScalarExpr:
    """Return what is added to the destination."""
    match body:
        case Binary(BinaryOp.ADD, Arg(number), term) | Binary(BinaryOp.ADD, term, Arg(number)):
            if number == out:
                return term
        case Binary(BinaryOp.SUB, Arg(number), term) if number == out:
            return Unary(UnaryOp.NEG, term)
        case _:
            pass
    raise _NoMatchError("it is no sum of products")


def _factors(term: ScalarExpr, dtype: DType) -> list[ScalarExpr]:
    match term:
        case Binary(BinaryOp.MUL, lhs, rhs):
            return [*_factors(lhs, dtype), *_factors(rhs, dtype)]
        case Unary(UnaryOp.NEG, operand):
            return [constant(-1, dtype), *_factors(operand, dtype)]
        case _:
            return [term]


def _split(op: Generic, factors: list[ScalarExpr]) -> tuple[list[int], tuple[ScalarExpr, ...]]:
    """Return the operands with dimensions and the factors without."""
    matrices: list[int] = []
    alpha: list[ScalarExpr] = []
    for factor in factors:
        match factor:
            case Arg(number) if number < len(op.inputs):
                is_scalar = op.inputs[number].type.rank == 0
                if is_scalar and op.inputs[number].type.is_dense:
                    alpha.append(factor)
                else:
                    matrices.append(number)
            case Const():
                alpha.append(factor)
            case _:
                raise _NoMatchError("a factor is computed, not read")
    if len(set(matrices)) != len(matrices):
        raise _NoMatchError("an operand is a factor twice")
    return matrices, tuple(alpha)


def _value(op: Generic, number: int) -> Value:
    return (*op.inputs, op.init)[number]


def _loops(op: Generic, number: int) -> tuple[int, ...]:
    """Return the loops over the dimensions of an operand."""
    results = op.indexing_maps[number].results
    return tuple(expr.index for expr in results if isinstance(expr, Dim))


def _reduction(op: Generic) -> int:
    return op.iterator_types.index(IteratorType.REDUCTION)


def _role(op: Generic, number: int, wanted: tuple[int, ...], batch: int | None = None) -> Role:
    """Return the operand as a vector or matrix over the loops ``wanted``, for each of ``batch``."""
    found = _loops(op, number)
    rest = tuple(loop for loop in found if loop != batch)
    if set(rest) != set(wanted):
        raise _NoMatchError("its operands do not have the dimensions of a product")
    axis = found.index(batch) if batch in found else None
    tensor = _value(op, number).type
    if tensor.is_dense:
        return Role(number, wanted, rest != wanted, batch=axis)
    storage = storage_of(tensor)
    if isinstance(storage, str):
        raise _NoMatchError(storage)
    if storage.batch != axis:
        raise _NoMatchError("the batch of its sparse factor is no batch of the result")
    rows, columns = found[storage.rows], found[storage.columns]
    return Role(number, wanted, (rows, columns) != wanted, storage, axis)


def _sparse_times_dense(
    op: Generic, matrices: list[int], alpha: tuple[ScalarExpr, ...], sparse: list[int]
) -> Match:
    if len(sparse) != 1:
        raise _NoMatchError("two sparse factors and a dense result")
    left, inner = sparse[0], _reduction(op)
    right = next(number for number in matrices if number != left)
    out, around = len(op.inputs), _loops(op, len(op.inputs))
    batch = _batch_loop(op, left)
    rows = [loop for loop in _loops(op, left) if loop not in (inner, batch)]
    if len(rows) != 1 or inner not in _loops(op, left) or rows[0] not in around:
        raise _NoMatchError("the sparse factor is not summed over one of its dimensions")
    columns = tuple(loop for loop in around if loop not in (rows[0], batch))
    matrix = _role(op, left, (rows[0], inner), batch)
    assert matrix.storage is not None
    kind = LibraryOp.SPMV if not columns and batch is None else LibraryOp.SPMM
    if matrix.storage.layout is SparseLayout.NM:
        kind = LibraryOp.NM_SPMM
        if not columns:
            raise _NoMatchError("a 2:4 matrix times a vector")
    factor = _role(op, right, (inner, *columns), batch)
    output = _role(op, out, (rows[0], *columns), batch)
    return Match(kind, (matrix, factor), output, (alpha,))


def _batch_loop(op: Generic, left: int) -> int | None:
    """Return the loop over a batch: that of the sparse factor, or of dense matrices around it.

    Of the two loops over a batch of results and over their columns the batch is the outer one.
    """
    found = _loops(op, left)
    if len(found) > 2:
        storage = storage_of(_value(op, left).type)
        if isinstance(storage, str):
            raise _NoMatchError(storage)
        assert storage.batch is not None
        return found[storage.batch]
    others = [loop for loop in _loops(op, len(op.inputs)) if loop not in found]
    return others[0] if len(others) > 1 else None


def _dense_times_dense(op: Generic, matrices: list[int], alpha: tuple[ScalarExpr, ...]) -> Match:
    inner, out = _reduction(op), len(op.inputs)
    around = _loops(op, out)
    if len(around) != 2:
        what = "a dense matrix times a vector" if len(around) < 2 else "a batch of dense products"
        raise _NoMatchError(what)
    left, right, result = _roles_of_product(op, matrices, (around[0], inner, around[1]))
    return Match(LibraryOp.GEMM, (left, right), result, (alpha,))


def _roles_of_product(
    op: Generic, matrices: list[int], loops: tuple[int, int, int]
) -> tuple[Role, Role, Role]:
    """Return the factors and the result over the loops of rows, sum and columns."""
    row, inner, column = loops
    left = next((k for k in matrices if set(_loops(op, k)) == {row, inner}), None)
    right = next((k for k in matrices if set(_loops(op, k)) == {inner, column}), None)
    if left is None or right is None:
        raise _NoMatchError("its operands do not have the dimensions of a product")
    result = _role(op, len(op.inputs), (row, column))
    return _role(op, left, (row, inner)), _role(op, right, (inner, column)), result


def _sparse_times_sparse(
    op: Generic, matrices: list[int], alpha: tuple[ScalarExpr, ...], sparse: list[int]
) -> Match:
    if len(sparse) != 2:
        raise _NoMatchError("a dense factor and a sparse result")
    if len(_loops(op, len(op.inputs))) != 2:
        raise _NoMatchError("a sparse result that is no matrix")
    row, column = _loops(op, len(op.inputs))
    left, right, result = _roles_of_product(op, matrices, (row, _reduction(op), column))
    return Match(LibraryOp.SPGEMM, *_by_rows((left, right), result), (alpha,))


def _by_rows(roles: tuple[Role, Role], result: Role) -> tuple[tuple[Role, ...], Role]:
    """Return the operands of a sparse product, or of its transpose, all compressed by rows.

    ``C = A @ B`` with columns compressed is ``C.T = B.T @ A.T`` with rows compressed.
    """
    straight = all(_is_by_rows(role) for role in (*roles, result))
    if straight:
        return roles, result
    turned = tuple(_turned(role) for role in (*roles[::-1], result))
    if all(_is_by_rows(role) for role in turned):
        return turned[:2], turned[2]
    raise _NoMatchError("its operands are not all compressed by rows, or all by columns")


def _is_by_rows(role: Role) -> bool:
    assert role.storage is not None
    is_csc = role.storage.layout is SparseLayout.CSC
    return role.is_transposed == is_csc


def _turned(role: Role) -> Role:
    return replace(role, loops=role.loops[::-1], is_transposed=not role.is_transposed)


def _sampled(
    op: Generic,
    matrices: list[int],
    alpha: tuple[ScalarExpr, ...],
    sample: int | None,
    sparse: list[int],
) -> Match:
    """A dense product where a sparse matrix stores something."""
    is_scaled = sample is None
    if sample is None:
        (sample,) = sparse
        matrices = [number for number in matrices if number != sample]
    out = len(op.inputs)
    if op.init.type.is_dense:
        raise _NoMatchError("a sampled product with a dense result")
    if len(matrices) != 2 or any(not _value(op, number).type.is_dense for number in matrices):
        raise _NoMatchError("a sampled product of other than two dense matrices")
    if op.indexing_maps[sample] != op.indexing_maps[out]:
        raise _NoMatchError("the sample does not have the dimensions of the result")
    if len(_loops(op, out)) != 2:
        raise _NoMatchError("a sampled result that is no matrix")
    row, column = _loops(op, out)
    left, right, result = _roles_of_product(op, matrices, (row, _reduction(op), column))
    _role(op, sample, (row, column))
    pattern, wanted = _value(op, sample).type.format, op.init.type.format
    if pattern.with_widths(0, 0) != wanted.with_widths(0, 0):
        raise _NoMatchError("the result does not have the format of the sample")
    return Match(LibraryOp.SDDMM, (left, right), result, (alpha,), sample, is_scaled)


def _sum(op: Generic) -> Match:
    """``alpha * A + beta * B`` of two sparse matrices."""
    out = len(op.inputs)
    terms = _terms(op.body)
    if len(terms) != 2 or op.init.type.is_dense:
        raise _NoMatchError("it is neither a product nor a sum of two sparse matrices")
    roles: list[Role] = []
    alphas: list[tuple[ScalarExpr, ...]] = []
    for term in terms:
        matrices, alpha = _split(op, _factors(term, op.init.type.dtype))
        if len(matrices) != 1 or _value(op, matrices[0]).type.is_dense:
            raise _NoMatchError("it is no sum of two sparse matrices")
        roles.append(_role(op, matrices[0], _loops(op, out)))
        alphas.append(alpha)
    pair = roles[0], roles[1]
    return Match(LibraryOp.SPADD, *_alike(pair, _role(op, out, _loops(op, out))), tuple(alphas))


def _alike(roles: tuple[Role, Role], result: Role) -> tuple[tuple[Role, ...], Role]:
    """Return the operands of a sum, or of its transpose, all compressed by rows."""
    for turn in (False, True):
        found = tuple(_turned(role) if turn else role for role in (*roles, result))
        if all(_is_by_rows(role) for role in found):
            return found[:2], found[2]
    raise _NoMatchError("its operands are not all compressed by rows, or all by columns")


def _terms(body: ScalarExpr) -> list[ScalarExpr]:
    match body:
        case Binary(BinaryOp.ADD, lhs, rhs):
            return [*_terms(lhs), *_terms(rhs)]
        case Binary(BinaryOp.SUB, lhs, rhs):
            return [*_terms(lhs), *(Unary(UnaryOp.NEG, term) for term in _terms(rhs))]
        case _:
            return [body]
