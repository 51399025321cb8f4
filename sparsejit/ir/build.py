"""``TensorBuilder``: makes tensor functions one operation at a time.

The builder hands out value names (``0``, ``1``, ... in order of definition), numbers the symbols
and derives what follows from the operands: iterator types from the destination's map, extents from
the shapes. ``finish`` returns the verified function. Tracing uses it, and so do the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, dims_of
from sparsejit.errors import Location
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import zero_of
from sparsejit.ir.printing import inferred_extent, loop_names
from sparsejit.ir.scalar import Const, ScalarExpr
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
from sparsejit.ir.types import DType, IteratorType, TensorType
from sparsejit.ir.verify import verify_tensor
from sparsejit.ir.walk import all_ops, substitute_symbols

__all__ = ["Access", "TensorBuilder"]

Access = tuple[Value, Sequence[AffineExpr | int]]
"""A value and, for each of its dimensions, the index over the loops: an int is that loop."""

_FIRST_INDUCTION = 1 << 20
"""Induction variables are numbered from here while extents may still be added."""


class TensorBuilder:
    """Builds one ``TensorFunc``.

    >>> from sparsejit.formats import CSR
    >>> from sparsejit.ir.ops import BinaryOp
    >>> from sparsejit.ir.printing import print_tensor
    >>> from sparsejit.ir.scalar import Arg, Binary
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

    def __init__(self, name: str) -> None:
        self.name = name
        self._params: list[Value] = []
        self._assigned: list[Value] = []
        self._extents: list[str] = []
        self._inductions: list[str] = []
        self._names = 0
        self._blocks: list[list[Op]] = [[]]

    # ------------------------------------------------------------ symbols and values

    def extent(self, name: str | None = None) -> Dim:
        """Return the extent symbol ``name``, a new one where there is none; None takes ``d<n>``."""
        wanted = name if name is not None else f"d{len(self._extents)}"
        if wanted not in self._extents:
            self._extents.append(wanted)
        return Dim(self._extents.index(wanted))

    def symbol_names(self) -> dict[int, str]:
        """Return the names of the symbols so far, by the numbers they have while building."""
        names = dict(enumerate(self._extents))
        names.update(enumerate(self._inductions, _FIRST_INDUCTION))
        return names

    def _shape(self, shape: Sequence[AffineExpr | str | int]) -> tuple[AffineExpr, ...]:
        made: list[AffineExpr] = []
        for extent in shape:
            match extent:
                case str():
                    made.append(self.extent(extent))
                case int():
                    made.append(Constant(extent))
                case _:
                    made.append(extent)
        return tuple(made)

    def tensor_type(
        self,
        shape: Sequence[AffineExpr | str | int],
        dtype: DType,
        format: Format | None = None,
        fill: Const | None = None,
    ) -> TensorType:
        """Return a type; a string in ``shape`` is the extent symbol of that name, an int itself.

        ``format`` None is dense, ``fill`` None is zero.
        """
        layout = Dense(len(shape)) if format is None else format
        return TensorType(self._shape(shape), dtype, layout, fill or zero_of(dtype))

    def value(self, kind: TensorType) -> Value:
        """Return a new value of a type, with the next free name."""
        taken = {param.name for param in self._params}
        while str(self._names) in taken:
            self._names += 1
        self._names += 1
        return Value(str(self._names - 1), kind)

    def param(
        self,
        name: str,
        shape: Sequence[AffineExpr | str | int],
        dtype: DType,
        format: Format | None = None,
        fill: Const | None = None,
        *,
        assigned: bool = False,
    ) -> Value:
        """Add a parameter; ``assigned`` says that the function may write it.

        ``shape``, ``format`` and ``fill`` are those of ``tensor_type``.
        """
        made = Value(name, self.tensor_type(shape, dtype, format, fill))
        self._params.append(made)
        if assigned:
            self._assigned.append(made)
        return made

    def assign(self, param: Value) -> None:
        """Declare that the function may write a parameter."""
        if param not in self._assigned:
            self._assigned.append(param)

    # ------------------------------------------------------------ operations

    def append(self, op: Op) -> None:
        """Append an operation whose results come from ``value``."""
        self._blocks[-1].append(op)

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
        symbol = Dim(_FIRST_INDUCTION + len(self._inductions) - 1)
        args = tuple(self.value(init.type) for init in inits)
        self._blocks.append([])
        try:
            yields = tuple(body(symbol, args))
        finally:
            block = tuple(self._blocks.pop())
        results = tuple(self.value(init.type) for init in inits)
        self.append(
            For(results, symbol.index, lower, upper, tuple(inits), args, block, yields, location)
        )
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
        _FIRST_INDUCTION + k: Dim(func.num_extents + k) for k in range(count)
    }

    def renumber(op: Op) -> Op:
        if not isinstance(op, For):
            return op
        number = op.induction - _FIRST_INDUCTION + func.num_extents
        return replace(op, induction=number, body=tuple(renumber(inner) for inner in op.body))

    ops = tuple(renumber(substitute_symbols(op, moved)) for op in func.ops)
    values = {value.name: value for op in all_ops(ops) for value in _defined(op)}
    results = tuple(values.get(value.name, value) for value in func.results)
    return replace(func, ops=ops, results=results)


def _defined(op: Op) -> tuple[Value, ...]:
    return (*op.results, *op.args) if isinstance(op, For) else (op.result,)
