"""Chains of sums of products: where the order of a product may be chosen.

In: a tensor function. Out: its ``Chain``s. ``A @ B @ x`` is two operations; as one chain it is
three leaves, the indices they share and the tree that the user wrote. What an order costs, and
which one is best, is in ``contraction_order``; the atomic stage executes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap, Dim
from sparsejit.ir.moves import Moves
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    args_of,
    dtype_of,
    map_leaves,
)
from sparsejit.ir.simplify import Missing, simplify_absence
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import DType, IteratorType
from sparsejit.ir.walk import all_ops, blocks_of, definitions, results_of, uses

__all__ = [
    "Chain",
    "Leaf",
    "Product",
    "Tree",
    "accumulates",
    "blocks_in",
    "chains_of",
    "factors_of",
    "is_zero",
    "leaves_of",
    "product_of",
    "tree_text",
]

Tree = int | tuple["Tree", ...]
"""An order of a product: a leaf's number, or what is multiplied (and summed) in one operation."""

_NARROW = (DType.FLOAT16, DType.BFLOAT16)
"""Here every new intermediate is another rounding: products stay as written."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A factor of a chain: ``factor`` of the element (its ``Arg(0)``) of ``value`` at ``index``."""

    value: Value
    index: tuple[int, ...]
    factor: ScalarExpr


@dataclass(frozen=True, slots=True)
class Chain:
    """``root`` sums, over all indices that ``output`` lacks, the product of the leaves.

    It adds the sum to its destination, or multiplies the finished sum by its ``own`` leaves
    (``S * (A @ B)``), the first of which can sample the sum.

    ``extents`` has one expression an index; the first indices are the loops of ``root``. ``inner``
    are the operations that ``written`` forms on the way. ``sampler`` is what samples the result
    (its value and indices), where that is all that uses it.
    """

    root: Generic
    leaves: tuple[Leaf, ...]
    output: tuple[int, ...]
    extents: tuple[AffineExpr, ...]
    written: Tree
    inner: tuple[Generic, ...]
    sampler: Leaf | None = None
    own: tuple[int, ...] = ()

    @property
    def guard(self) -> Leaf | None:
        """The sparse leaf of the root's own at whose entries alone the sum is needed."""
        found = (self.leaves[number] for number in self.own)
        return next((leaf for leaf in found if self._samples(leaf)), None)

    def _samples(self, leaf: Leaf) -> bool:
        everywhere = set(leaf.index) == set(self.output)
        return everywhere and not leaf.value.type.format.is_all_full

    def takes(self, parts: Iterable[frozenset[int]]) -> bool:
        """Whether the root can take these parts: a factor of a finished sum is none of its terms.

        Several parts beside its own leaves are the terms of a sum that is sampled.
        """
        rest = [part for part in parts if not (len(part) == 1 and part <= set(self.own))]
        inside = frozenset[int]().union(*rest)
        single = len(rest) == 1 or self.guard is not None
        return not self.own or (single and not inside & set(self.own))


def leaves_of(tree: Tree) -> tuple[int, ...]:
    """Return the leaves of a tree from left to right.

    >>> leaves_of((0, (2, 1)))
    (0, 2, 1)
    """
    if isinstance(tree, int):
        return (tree,)
    return tuple(leaf for part in tree for leaf in leaves_of(part))


def tree_text(tree: Tree, chain: Chain) -> str:
    """Return an order in words: the leaves' names with parentheses around each operation."""
    if isinstance(tree, int):
        return chain.leaves[tree].value.name
    return f"({' '.join(tree_text(part, chain) for part in tree)})"


def blocks_in(func: TensorFunc) -> Iterator[tuple[Op, ...]]:
    """Yield the operations of the function and of each block inside, outer blocks first."""
    yield func.ops
    for op in all_ops(func.ops):
        for block in blocks_of(op):
            yield block.ops


def is_zero(value: Value, made: Mapping[str, Op]) -> bool:
    """Whether ``value`` is a fresh tensor of zeros: filled when dense, empty when sparse."""
    match made.get(value.name):
        case Empty():
            return not value.type.is_dense and value.type.fill.value == 0
        case Generic(_, (), origin, body=Const(number)):
            return number == 0 and isinstance(made.get(origin.name), Empty) and origin.type.is_dense
        case _:
            return False


# ---------------------------------------------------------------- finding chains


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products: one factor an input (over ``Arg(0)``), and the constant factor."""

    factors: tuple[ScalarExpr, ...]
    scale: tuple[Const, ...]


def chains_of(func: TensorFunc) -> tuple[Chain, ...]:
    """Return the chains of three or more factors, in program order.

    >>> from sparsejit.formats import CSR
    >>> from sparsejit.ir.build import TensorBuilder
    >>> builder = TensorBuilder("f")
    >>> A = builder.param("A", ("m", "k"), DType.FLOAT64, CSR)
    >>> B = builder.param("B", ("k", "n"), DType.FLOAT64, CSR)
    >>> x = builder.param("x", ("n",), DType.FLOAT64)
    >>> body = Binary(BinaryOp.ADD, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1)))
    >>> zero = Const(0.0, DType.FLOAT64)
    >>> C = builder.empty(builder.tensor_type(("m", "n"), DType.FLOAT64, CSR))
    >>> C = builder.generic([(A, (0, 2)), (B, (2, 1))], (C, (0, 1)), body)
    >>> y = builder.full(A.type.shape[:1], zero)
    >>> y = builder.generic([(C, (0, 1)), (x, (1,))], (y, (0,)), body)
    >>> [chain.written for chain in chains_of(builder.finish(y))]
    [((0, 1), 2)]
    """
    finder = _Finder(func)
    return tuple(chain for ops in blocks_in(func) for chain in finder.in_block(ops))


class _Finder:
    """What finding chains asks about the function."""

    def __init__(self, func: TensorFunc) -> None:
        self._made = definitions(func)
        self._uses = uses(func)
        self._moves = Moves(func)

    def in_block(self, ops: tuple[Op, ...]) -> list[Chain]:
        place = {value.name: n for n, op in enumerate(ops) for value in results_of(op)}
        taken: set[str] = set()
        found: list[Chain] = []
        for number in reversed(range(len(ops))):
            root = ops[number]
            if not isinstance(root, Generic) or root.result.name in taken:
                continue
            chain = self._chain(root, ops, place)
            if chain is not None and len(chain.leaves) > 2:
                taken |= {op.result.name for op in chain.inner}
                found.append(chain)
        return found[::-1]

    def _chain(self, root: Generic, ops: tuple[Op, ...], place: Mapping[str, int]) -> Chain | None:
        product = product_of(root) or self._sampled(root)
        if root.init.type.dtype in _NARROW or product is None:
            return None
        collected = _Collected(list(root.extents))
        numbers = tuple(range(len(root.extents)))
        written = self._collect(
            root, product, numbers, ops, place, place[root.result.name], collected
        )
        output = _dims(root.indexing_maps[-1])
        own: tuple[int, ...] = ()
        if accumulates(root) is None:
            assert not isinstance(written, int)
            own = tuple(part for part in written if isinstance(part, int))
            if not own or len(own) != len(written) - 1:
                return None  # each sum is a chain of its own
        return Chain(
            root,
            tuple(collected.leaves),
            output,
            tuple(collected.extents),
            written,
            tuple(collected.inner),
            self._sampler(root, output),
            own,
        )

    def _collect(
        self,
        op: Generic,
        product: Product,
        numbers: tuple[int, ...],
        ops: tuple[Op, ...],
        place: Mapping[str, int],
        end: int,
        collected: _Collected,
    ) -> Tree:
        """Append the leaves of ``op``, whose loops are the indices ``numbers``."""
        scale = list(product.scale)
        parts: list[Tree] = []
        for k, value in enumerate(op.inputs):
            index = tuple(numbers[loop] for loop in _dims(op.indexing_maps[k]))
            inner = self._inlined(op, k, product, place)
            if inner is not None:
                past = ops[place[value.name] + 1 : end]
                others = tuple(o for o in past if id(o) not in collected.known)
                if self._moves.may_move(inner.inputs, others):
                    collected.inner.append(inner)
                    collected.known.add(id(inner))
                    loops = collected.loops_of(inner, index)
                    its = product_of(inner)
                    assert its is not None
                    parts.append(self._collect(inner, its, loops, ops, place, end, collected))
                    continue
            factor = product.factors[k]
            while scale:
                factor = Binary(BinaryOp.MUL, scale.pop(), factor)
            collected.leaves.append(Leaf(value, index, factor))
            parts.append(len(collected.leaves) - 1)
        if scale:  # every operand was a product itself: the constants go to the last leaf
            last = collected.leaves[-1]
            factor = last.factor
            while scale:
                factor = Binary(BinaryOp.MUL, scale.pop(), factor)
            collected.leaves[-1] = Leaf(last.value, last.index, factor)
        return tuple(parts)

    def _inlined(
        self, op: Generic, k: int, product: Product, place: Mapping[str, int]
    ) -> Generic | None:
        """Return the product that operand ``k`` is, where only ``op`` asks for it."""
        value = op.inputs[k]
        inner = self._made.get(value.name)
        if not isinstance(inner, Generic) or value.name not in place:
            return None
        if len(self._uses[value.name]) != 1 or product.factors[k] != Arg(0):
            return None
        if product_of(inner) is None or not is_zero(inner.init, self._made):
            return None
        if accumulates(op) is None and inner.init.type.format.is_all_full:
            return None  # a sampled product, which is fused whatever it costs
        return inner if inner.init.type.dtype is op.init.type.dtype else None

    def _sampled(self, op: Generic) -> Product | None:
        """Return the factors of an elementwise product into a fresh sparse tensor."""
        if op.init.type.format.is_all_full or not is_zero(op.init, self._made):
            return None
        if any(kind is not IteratorType.PARALLEL for kind in op.iterator_types):
            return None
        return None if len(op.inputs) in args_of(op.body) else factors_of(op, op.body)

    def _sampler(self, root: Generic, output: tuple[int, ...]) -> Leaf | None:
        """Return the sparse operand whose entries alone ask for the result, if there is one."""
        users = self._uses[root.result.name]
        if len(users) != 1 or not isinstance(users[0], Generic):
            return None
        user = users[0]
        if root.result not in user.inputs or any(
            kind is IteratorType.REDUCTION for kind in user.iterator_types
        ):
            return None
        read = user.indexing_maps[user.inputs.index(root.result)].results
        at = {e.index: output[d] for d, e in enumerate(read) if isinstance(e, Dim)}
        operands = (*user.inputs, user.init)
        dtypes = [value.type.dtype for value in operands]
        for k, value in enumerate(operands):
            if isinstance(self._made.get(value.name), Empty):
                continue
            index = [e.index for e in user.indexing_maps[k].results if isinstance(e, Dim)]
            if value.type.format.is_all_full or not set(index) <= set(at):
                continue
            alone = simplify_absence(user.body, dtypes, {k: value.type.fill})
            if isinstance(alone, Missing):
                return Leaf(value, tuple(at[d] for d in index), Arg(0))
        return None


class _Collected:
    """The leaves, indices and inner operations found so far; these also by their identity."""

    def __init__(self, extents: list[AffineExpr]) -> None:
        self.extents = extents
        self.leaves: list[Leaf] = []
        self.inner: list[Generic] = []
        self.known: set[int] = set()

    def loops_of(self, inner: Generic, index: tuple[int, ...]) -> tuple[int, ...]:
        """Number the loops of ``inner``, whose result is read at ``index``."""
        written = inner.indexing_maps[-1].results
        known = {e.index: at for e, at in zip(written, index, strict=True) if isinstance(e, Dim)}
        for loop, extent in enumerate(inner.extents):
            if loop not in known:
                known[loop] = len(self.extents)
                self.extents.append(extent)
        return tuple(known[loop] for loop in range(len(inner.extents)))


def _dims(index_map: AffineMap) -> tuple[int, ...]:
    """Return the loops that a map gives, where all of its results are plain loops."""
    return tuple(expr.index for expr in index_map.results if isinstance(expr, Dim))


def product_of(op: Generic) -> Product | None:
    """Return the factors of a sum of products whose operands are indexed plainly, else None."""
    added = accumulates(op)
    return None if added is None else factors_of(op, added.rhs)


def accumulates(op: Generic) -> Binary | None:
    """Return the body of an operation that adds to, or subtracts from, its destination."""
    match op.body:
        case Binary(BinaryOp.ADD | BinaryOp.SUB, Arg(index)) if index == len(op.inputs):
            return op.body
        case _:
            return None


def factors_of(op: Generic, term: ScalarExpr) -> Product | None:
    """Return the factors of ``term``, a product over the plainly indexed operands of ``op``."""
    if not op.inputs or not all(m.is_projected_permutation for m in op.indexing_maps):
        return None
    indexed = {e.index for m in op.indexing_maps[:-1] for e in m.results if isinstance(e, Dim)}
    if len(indexed) != len(op.extents):
        return None
    factors: dict[int, ScalarExpr] = {}
    scale: list[Const] = []
    dtypes = [value.type.dtype for value in (*op.inputs, op.init)]
    for factor in _flat(term):
        read = args_of(factor)
        if isinstance(factor, Const):
            scale.append(factor)
        elif len(read) == 1 and _is_plain(factor) and max(read) < len(op.inputs):
            (k,) = read
            known = factors.get(k)
            factors[k] = factor if known is None else Binary(BinaryOp.MUL, known, factor)
        else:
            return None
        if dtype_of(factor, dtypes) is not op.init.type.dtype:
            return None
    return _local(op, factors, scale)


def _local(op: Generic, factors: Mapping[int, ScalarExpr], scale: list[Const]) -> Product | None:
    """Return the product where each operand has a factor, which is zero where it is absent."""
    if len(factors) != len(op.inputs):
        return None
    local: list[ScalarExpr] = []
    for k, value in enumerate(op.inputs):
        own = map_leaves(factors[k], lambda leaf: Arg(0) if isinstance(leaf, Arg) else leaf)
        if not value.type.format.is_all_full:
            alone = simplify_absence(own, [value.type.dtype], {0: value.type.fill})
            if not isinstance(alone, Missing) or alone.const.value != 0:
                return None
        local.append(own)
    return Product(tuple(local), tuple(scale))


def _flat(term: ScalarExpr) -> Iterator[ScalarExpr]:
    """Yield the factors of a product."""
    match term:
        case Binary(BinaryOp.MUL, lhs, rhs):
            yield from _flat(lhs)
            yield from _flat(rhs)
        case _:
            yield term


def _is_plain(expr: ScalarExpr) -> bool:
    """Whether an expression depends on elements only: on no coordinate and no pattern."""
    match expr:
        case Arg() | Const():
            return True
        case Coordinate() | Stored() | Nothing():
            return False
        case Cast(operand, _) | Unary(_, operand):
            return _is_plain(operand)
        case Binary(_, lhs, rhs):
            return _is_plain(lhs) and _is_plain(rhs)
        case Select(condition, then, orelse):
            return all(map(_is_plain, (condition, then, orelse)))
        case Call():
            return False  # not to be repeated, nor to be called elsewhere
