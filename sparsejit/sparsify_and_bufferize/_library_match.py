"""What library recognition answers: how a library computes an operation, or why none does."""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_statements import LibraryOp
from sparsejit.ir.scalar import ScalarExpr
from sparsejit.sparsify_and_bufferize._library_operands import Storage

__all__ = ["Match", "Mismatch", "Role"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why an operation is lowered to generated loops rather than to a library call."""

    reason: str


@dataclass(frozen=True, slots=True)
class Role:
    """An operand of a match: operand ``number`` of the ``Generic``, the destination's is last.

    ``loops`` are the loops over its rows and columns (over its elements, of a vector) as the
    library is to see it; the operand of the call is the transpose of the tensor where
    ``is_transposed``. ``storage`` is that of a sparse one, ``batch`` the tensor's dimension over
    the batch, None where the operand is the same for all of it.
    """

    number: int
    loops: tuple[int, ...]
    is_transposed: bool = False
    storage: Storage | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """``output += alpha * inputs``, in the library's order of operands.

    ``alpha`` has one tuple of factors for each product: constants, and ``Arg`` of operands of rank
    0. ``sample`` is the operand whose pattern a sampled product takes (the destination itself in
    an update); its values scale the result where ``is_scaled``.
    """

    op: LibraryOp
    inputs: tuple[Role, ...]
    output: Role
    alpha: tuple[tuple[ScalarExpr, ...], ...] = ((),)
    sample: int | None = None
    is_scaled: bool = False
