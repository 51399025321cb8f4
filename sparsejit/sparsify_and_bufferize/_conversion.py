"""``Convert`` as a ``Generic``: which entries of the source the result stores.

Between sparse formats stored entries stay, but for fill values that only fill a dense level of the
source (the slots of a block) and would become entries of a sparse level; from a dense tensor come
the elements that differ from the fill value. Source of the rule: MLIR's ``sparse_tensor.convert``.
"""

from __future__ import annotations

from sparsejit.affine import dims_of, identity_map
from sparsejit.formats import Format
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, Nothing, ScalarExpr, Select, Unary
from sparsejit.ir.tensor import Convert, Generic
from sparsejit.ir.types import IteratorType, TensorType

__all__ = ["conversion_op", "where_not_fill"]


def conversion_op(op: Convert) -> Generic:
    """Return the operation that writes what ``op`` converts into a fresh result."""
    source, result = op.source.type, op.result.type
    rank = source.rank
    return Generic(
        op.result,
        (op.source,),
        op.result,
        (identity_map(rank), identity_map(rank)),
        (IteratorType.PARALLEL,) * rank,
        source.shape,
        _body(source, result),
        op.location,
    )


def _body(source: TensorType, result: TensorType) -> ScalarExpr:
    if result.is_dense or not _drops_fill(source.format, result.format):
        return Arg(0)
    return where_not_fill(source.fill)


def where_not_fill(fill: Const) -> ScalarExpr:
    """Return the body that copies elements other than ``fill`` and has no value for those."""
    return Select(_differs(fill), Arg(0), Nothing(fill.dtype))


def _differs(fill: Const) -> ScalarExpr:
    if fill.value != fill.value:  # nan: nothing is equal to it
        return Unary(UnaryOp.NOT, Unary(UnaryOp.ISNAN, Arg(0)))
    return Binary(BinaryOp.NE, Arg(0), fill)


def _drops_fill(source: Format, target: Format) -> bool:
    """Whether a dimension of the innermost full levels of ``source`` is sparse in ``target``."""
    stored = [n for n, level in enumerate(source.levels) if not level.type.is_full]
    filled = source.levels[stored[-1] + 1 if stored else 0 :]
    filled_dims = {dim for level in filled for dim in dims_of(level.expr)}
    sparse = [level for level in target.levels if level.type.has_coordinates]
    return any(filled_dims & dims_of(level.expr) for level in sparse)
