"""``TensorBuilder``: makes tensor functions one operation at a time.

The builder hands out value names (``0``, ``1``, ... in order of definition), numbers the symbols
and derives what follows from the operands: iterator types from the destination's map, extents from
the shapes. ``finish`` returns the verified function. Tracing uses it, and so do the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, add, dims_of
from sparsejit.errors import Location
from sparsejit.formats import Dense, Format
from sparsejit.ir._function_state import FIRST_INDUCTION, FunctionState
from sparsejit.ir.printing import inferred_extent, loop_names
from sparsejit.ir.scalar import Const, ScalarExpr
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
from sparsejit.ir.types import IteratorType, TensorType
from sparsejit.ir.verify import verify_tensor
from sparsejit.ir.walk import all_ops, defined_by, map_blocks, substitute_symbols

__all__ = ["Access", "TensorBuilder"]

Access = tuple[Value, Sequence[AffineExpr | int]]
"""A value and, for each of its dimensions, the index over the loops: an int is that loop."""


class TensorBuilder(FunctionState):
    """Builds one ``TensorFunc``.

    >>> from sparsejit.formats import CSR
    >>> from sparsejit.ir.ops import BinaryOp
    >>> from sparsejit.ir.printing import print_tensor
    >>> from sparsejit.ir.scalar import Arg, Binary, Const
    >>> from sparsejit.ir.types import DType
    >>> builder = TensorBuilder("spmv")
    >>> A = builder.param("A", ("m", "n"), DType.FLOAT64, CSR)
    >>> x = builder.param("x", ("n",), DType.FLOAT64)
    >>> y = builder.full(A.type.shape[:1], Const(0.0, DType.FLOAT64))
    >>> body = Binary(BinaryOp.ADD, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1)))
    >>> y = builder.generic([(A, (0, 1)), (x, (1,))], (y, (0,)), body)
    >>> print(print_tensor(builder.finish(y)), end="")
    func @spmv(%A: f64[m, n] csr, %x: f64[n]) -> (f64[m]) {
      %0 = empty : f64[m]
      %1 = generic (i: parallel) outs(%0[i]) { 0.0 }
      %2 = generic (i: parallel, j: reduction) ins(%A[i, j], %x[j]) outs(%1[i]) { out + in0 * in1 }
      return %2
    }
    """

    # ------------------------------------------------------------ operations

    def empty(self, kind: TensorType, *, location: Location | None = None) -> Value:
        """Append ``Empty``: undefined elements when dense, no entries when sparse."""
        result = self.value(kind)
        self.append(Empty(result, location))
        return result

    def alloc_tensor(
        self, kind: TensorType, copy: Value | None = None, *, location: Location | None = None
    ) -> Value:
        """Append ``AllocTensor``, for programs as they are inside the stage."""
        result = self.value(kind)
        self.append(AllocTensor(result, copy, location))
        return result

    def full(
        self, shape: Sequence[AffineExpr], value: Const, *, location: Location | None = None
    ) -> Value:
        """Append a new dense tensor whose elements all are ``value``."""
        fresh = self.empty(self.tensor_type(shape, value.dtype), location=location)
        return self.generic([], (fresh, range(len(shape))), value, location=location)

    def generic(
        self,
        inputs: Sequence[Access],
        init: Access,
        body: ScalarExpr,
        *,
        extents: Mapping[int, AffineExpr] | Sequence[AffineExpr] | None = None,
        location: Location | None = None,
    ) -> Value:
        """Append ``Generic`` and return its result, which has the type of ``init``.

        Loops are numbered by the indices of the accesses: ``(A, (0, 1))`` is ``A[i, j]``, and
        ``(x, (add(Dim(0), Dim(1)),))`` is ``x[i + j]``. A loop that is no index of the destination
        reduces. The extent of a loop is that of the first dimension it indexes alone, inputs
        first; ``extents`` overrides it, for all loops (a sequence) or for some. Raises
        ``ValueError`` for a loop without extent.
        """
        accesses = (*inputs, init)
        indices = [tuple(Dim(e) if isinstance(e, int) else e for e in at) for _, at in accesses]
        given = _numbered(extents)
        used = [dim + 1 for at in indices for expr in at for dim in dims_of(expr)]
        num_loops = max([0, *used, *(loop + 1 for loop in given)])
        maps = tuple(AffineMap(num_loops, at) for at in indices)
        values = tuple(value for value, _ in accesses)
        parallel = {index.index for index in indices[-1] if isinstance(index, Dim)}
        bounds: list[AffineExpr] = []
        for loop in range(num_loops):
            extent = given.get(loop, inferred_extent(loop, maps, values))
            if extent is None:
                raise ValueError(f"no operand bounds loop {loop}: give its extent")
            bounds.append(extent)
        kinds = tuple(
            IteratorType.PARALLEL if loop in parallel else IteratorType.REDUCTION
            for loop in range(num_loops)
        )
        result = self.value(init[0].type)
        op = Generic(result, values[:-1], values[-1], maps, kinds, tuple(bounds), body, location)
        self.append(op)
        return result

    def convert(self, source: Value, format: Format, *, location: Location | None = None) -> Value:
        """Append ``Convert`` to a format."""
        result = self.value(replace(source.type, format=format))
        self.append(Convert(result, source, location))
        return result

    def insert(
        self,
        scalar: Value,
        dest: Value,
        indices: Sequence[AffineExpr | int],
        *,
        location: Location | None = None,
    ) -> Value:
        """Append ``Insert`` of a rank-0 tensor into ``dest`` at ``indices``; ints are constants."""
        result = self.value(dest.type)
        self.append(Insert(result, scalar, dest, self._shape(indices), location))
        return result

    def extract_slice(
        self,
        source: Value,
        offsets: Sequence[AffineExpr | int],
        sizes: Sequence[AffineExpr | int],
        strides: Sequence[int] | None = None,
        dropped: Sequence[int] = (),
        *,
        location: Location | None = None,
    ) -> Value:
        """Append ``ExtractSlice``; offsets, sizes and strides have one entry a source dimension.

        ``dropped`` dimensions, of size 1, are no dimensions of the result, which is dense when the
        source is; a slice of a sparse tensor keeps its format and drops nothing.
        """
        steps = tuple(strides) if strides is not None else (1,) * len(offsets)
        whole = self._shape(sizes)
        shape = tuple(size for d, size in enumerate(whole) if d not in dropped)
        kind = source.type
        layout = Dense(len(shape)) if kind.is_dense else kind.format
        result = self.value(replace(kind, shape=shape, format=layout))
        at = self._shape(offsets)
        self.append(ExtractSlice(result, source, at, whole, steps, tuple(dropped), location))
        return result

    def insert_slice(
        self,
        source: Value,
        dest: Value,
        offsets: Sequence[AffineExpr | int],
        sizes: Sequence[AffineExpr | int],
        strides: Sequence[int] | None = None,
        dropped: Sequence[int] = (),
        *,
        location: Location | None = None,
    ) -> Value:
        """Append ``InsertSlice`` of ``source`` into ``dest``, a slice as in ``extract_slice``."""
        steps = tuple(strides) if strides is not None else (1,) * len(offsets)
        result = self.value(dest.type)
        at, whole = self._shape(offsets), self._shape(sizes)
        self.append(InsertSlice(result, source, dest, at, whole, steps, tuple(dropped), location))
        return result

    def reshape(
        self,
        source: Value,
        shape: Sequence[AffineExpr | str | int],
        format: Format | None = None,
        *,
        location: Location | None = None,
    ) -> Value:
        """Append ``Reshape`` to ``shape``; a sparse result of another rank needs a ``format``."""
        kind = source.type
        layout = format or (Dense(len(shape)) if kind.is_dense else kind.format)
        result = self.value(replace(kind, shape=self._shape(shape), format=layout))
        self.append(Reshape(result, source, location))
        return result

    def concat(
        self,
        sources: Sequence[Value],
        axis: int,
        format: Format | None = None,
        *,
        location: Location | None = None,
    ) -> Value:
        """Append ``Concat`` along ``axis``, into the format of the first source unless given."""
        total: AffineExpr = Constant(0)
        for source in sources:
            total = add(total, source.type.shape[axis])
        kind = sources[0].type
        shape = (*kind.shape[:axis], total, *kind.shape[axis + 1 :])
        result = self.value(replace(kind, shape=shape, format=format or kind.format))
        self.append(Concat(result, tuple(sources), axis, location))
        return result

    def pad(
        self,
        source: Value,
        low: Sequence[AffineExpr | int],
        high: Sequence[AffineExpr | int],
        value: Const | None = None,
        *,
        location: Location | None = None,
    ) -> Value:
        """Append ``Pad`` by ``low`` and ``high`` with ``value``, the fill value unless given."""
        kind = source.type
        before, after = self._shape(low), self._shape(high)
        shape = tuple(
            add(add(one, size), other)
            for one, size, other in zip(before, kind.shape, after, strict=True)
        )
        result = self.value(replace(kind, shape=shape))
        self.append(Pad(result, source, before, after, value or kind.fill, location))
        return result

    def materialize(self, source: Value, dest: Value, *, location: Location | None = None) -> Value:
        """Append ``Materialize`` of ``source`` in a parameter, which becomes an assigned one."""
        self.assign(dest)
        result = self.value(dest.type)
        self.append(Materialize(result, source, dest, location))
        return result

    def for_loop(
        self,
        lower: AffineExpr,
        upper: AffineExpr,
        inits: Sequence[Value],
        body: Callable[[Dim, tuple[Value, ...]], Sequence[Value]],
        *,
        name: str | None = None,
        location: Location | None = None,
    ) -> tuple[Value, ...]:
        """Append ``For``; ``body`` gets the induction variable and the carried values.

        What ``body`` appends is the loop's body, what it returns is carried on. Results and carried
        values have the types of ``inits``. The variable is called ``name`` or the next free letter.
        """
        taken = (*self._extents, *self._inductions)
        variable = name if name is not None and name not in taken else loop_names(1, taken)[0]
        self._inductions.append(variable)
        symbol = Dim(FIRST_INDUCTION + len(self._inductions) - 1)
        args = tuple(self.value(init.type) for init in inits)
        block, yields = self._block(lambda: body(symbol, args))
        results = tuple(self.value(init.type) for init in inits)
        self.append(
            For(results, symbol.index, lower, upper, tuple(inits), args, block, yields, location)
        )
        return results

    def while_loop(
        self,
        inits: Sequence[Value],
        condition: Callable[[tuple[Value, ...]], Value],
        body: Callable[[tuple[Value, ...]], Sequence[Value]],
        *,
        location: Location | None = None,
    ) -> tuple[Value, ...]:
        """Append ``While``: ``condition`` and ``body`` get the carried values.

        ``condition`` returns a truth value, ``body`` what is carried on.
        """
        args = tuple(self.value(init.type) for init in inits)
        test, (holds,) = self._block(lambda: (condition(args),))
        body_args = tuple(self.value(init.type) for init in inits)
        block, yields = self._block(lambda: body(body_args))
        results = tuple(self.value(init.type) for init in inits)
        self.append(
            While(results, tuple(inits), args, test, holds, body_args, block, yields, location)
        )
        return results

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        orelse: Callable[[], Sequence[Value]],
        *,
        location: Location | None = None,
    ) -> tuple[Value, ...]:
        """Append ``If``; the branches return its results, which have the types of ``then``'s."""
        then_ops, then_yields = self._block(then)
        else_ops, else_yields = self._block(orelse)
        results = tuple(self.value(value.type) for value in then_yields)
        self.append(If(results, condition, then_ops, then_yields, else_ops, else_yields, location))
        return results

    # ------------------------------------------------------------ the function

    def finish(self, *results: Value) -> TensorFunc:
        """Return the function; ``VerificationError`` where it breaks a rule of the tensor IR."""
        func = TensorFunc(
            name=self.name,
            params=tuple(self._params),
            symbols=(*self._extents, *self._induction_names()),
            num_extents=len(self._extents),
            ops=tuple(self._blocks[0]),
            results=results,
            assigned=tuple(self._assigned),
        )
        if self._inductions:
            func = _number_inductions(func)
        verify_tensor(func, after=f"building {self.name}")
        return func

    def _induction_names(self) -> tuple[str, ...]:
        """The names of the induction variables, without those that became an extent's later."""
        free = iter(loop_names(len(self._inductions), (*self._extents, *self._inductions)))
        return tuple(next(free) if n in self._extents else n for n in self._inductions)


def _numbered(
    extents: Mapping[int, AffineExpr] | Sequence[AffineExpr] | None,
) -> dict[int, AffineExpr]:
    if extents is None:
        return {}
    return dict(extents) if isinstance(extents, Mapping) else dict(enumerate(extents))


def _number_inductions(func: TensorFunc) -> TensorFunc:
    """Renumber induction variables, so that they follow the extents."""
    count = len(func.symbols) - func.num_extents
    moved: dict[int, AffineExpr] = {
        FIRST_INDUCTION + k: Dim(func.num_extents + k) for k in range(count)
    }

    def renumber(op: Op) -> Op:
        inner = map_blocks(op, lambda ops: tuple(map(renumber, ops)))
        if not isinstance(inner, For):
            return inner
        return replace(inner, induction=inner.induction - FIRST_INDUCTION + func.num_extents)

    ops = tuple(renumber(substitute_symbols(op, moved)) for op in func.ops)
    values = {value.name: value for op in all_ops(ops) for value in defined_by(op)}
    results = tuple(values.get(value.name, value) for value in func.results)
    return replace(func, ops=ops, results=results)
