"""A tensor function as MLIR text that the real ``mlir-opt`` accepts.

In goes a ``TensorFunc`` as the analysis sees it, out comes a module with one function: extents are
``?``, the arguments say whether they may be written, and the final value of an assigned argument
is materialized in it. What MLIR cannot express raises ``UnsupportedError``. Operation for operation
the text is what ``sparsify_and_bufferize`` analyses, which is how the two are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from sparsejit.affine import (
    AffineMap,
    Constant,
    Dim,
)
from sparsejit.ir import tensor
from sparsejit.ir._mlir_lines import Block, Lines, safe_name
from sparsejit.ir._mlir_scalar import BodyWriter, constant
from sparsejit.ir._mlir_types import element_type
from sparsejit.ir.loop_carriers import uncarried_loops
from sparsejit.ir.tensor import TensorFunc, Value

__all__ = ["print_mlir"]


def print_mlir(func: TensorFunc) -> str:
    """Return the MLIR module of ``func``.

    Raises ``UnsupportedError`` for levels, fill values and scalar operations that MLIR lacks.

    >>> from sparsejit.formats import Dense
    >>> from sparsejit.ir.scalar import Const
    >>> from sparsejit.ir.types import DType, TensorType
    >>> x = Value("x", TensorType((Dim(0),), DType.FLOAT64, Dense(1), Const(0.0, DType.FLOAT64)))
    >>> print(print_mlir(TensorFunc("same", (x,), ("n",), 1, (), (x,))))
    func.func @same(%x: tensor<?xf64> {bufferization.writable = false}) -> tensor<?xf64> {
      return %x : tensor<?xf64>
    }
    <BLANKLINE>
    """
    return _FunctionWriter(func).text()


class _FunctionWriter(Lines):
    def text(self) -> str:
        func = self._func
        assigned = {value.name for value in func.assigned}
        params = [
            f"{self._name(param)}: {self._type(param)} "
            f"{{bufferization.writable = {'true' if param.name in assigned else 'false'}}}"
            for param in func.params
        ]
        for op in func.ops:
            self._op(op)
        types = ", ".join(self._type(result) for result in func.results)
        arrow = f" -> {types}" if len(func.results) == 1 else f" -> ({types})" if types else ""
        names = ", ".join(self._name(result) for result in func.results)
        self._line(f"return {names} : {types}" if types else "return")
        block = self._blocks[0]
        lines = [
            *self._encodings.definitions(),
            f"func.func @{safe_name(func.name)}({', '.join(params)}){arrow} {{",
            *(f"  {line}" for line in (*block.header, *block.lines)),
            "}",
        ]
        return "\n".join(lines) + "\n"

    # ------------------------------------------------------------ operations

    def _op(self, op: tensor.Op) -> None:  # noqa: C901 - one case for each kind
        match op:
            case tensor.Generic():
                self._generic(op)
            case tensor.For():
                self._for(op)
            case tensor.While():
                self._while(op)
            case tensor.If():
                self._if(op)
            case tensor.Reshape():
                self._reshape(op)
            case tensor.Concat():
                self._concat(op)
            case tensor.Pad():
                self._pad(op)
            case tensor.Empty(result):
                extents = ", ".join(self._index(extent) for extent in result.type.shape)
                self._line(f"{self._name(result)} = tensor.empty({extents}) : {self._type(result)}")
            case tensor.AllocTensor(result, copy):
                if copy is None:
                    arguments = f"({', '.join(map(self._index, result.type.shape))})"
                else:
                    arguments = f"() copy({self._name(copy)})"
                alloc = f"bufferization.alloc_tensor{arguments}"
                self._line(f"{self._name(result)} = {alloc} : {self._type(result)}")
            case tensor.Convert(result, source):
                self._convert(self._name(result), self._name(source), self._type(source), result)
            case tensor.Insert(result, scalar, dest, indices):
                element = self._fresh()
                self._line(
                    f"{element} = tensor.extract {self._name(scalar)}[] : {self._type(scalar)}"
                )
                at = ", ".join(self._index(index) for index in indices)
                insert = f"tensor.insert {element} into {self._name(dest)}[{at}]"
                self._line(f"{self._name(result)} = {insert} : {self._type(dest)}")
            case tensor.ExtractSlice():
                self._extract_slice(op)
            case tensor.InsertSlice(result, source, dest):
                insert = f"tensor.insert_slice {self._name(source)} into {self._name(dest)}"
                types = f"{self._type(source)} into {self._type(dest)}"
                self._line(f"{self._name(result)} = {insert}{self._slice(op)} : {types}")
            case tensor.Materialize(result, source, dest):
                types = f"({self._type(source)}, {self._type(dest)}) -> {self._type(result)}"
                self._line(
                    f"{self._name(result)} = bufferization.materialize_in_destination "
                    f"{self._name(source)} in {self._name(dest)} : {types}"
                )
            case _:
                assert_never(op)

    def _convert(self, name: str, source: str, source_type: str, result: Value) -> None:
        types = f"{source_type} to {self._type(result)}"
        self._line(f"{name} = sparse_tensor.convert {source} : {types}")

    def _slice(self, op: tensor.ExtractSlice | tensor.InsertSlice) -> str:
        """The offsets, sizes and strides; only the size of a dropped dimension is a literal."""
        sizes = ", ".join(
            "1" if axis in op.dropped else self._index(size) for axis, size in enumerate(op.sizes)
        )
        strides = ", ".join(map(str, op.strides))
        return f"[{self._mixed(op.offsets)}] [{sizes}] [{strides}]"

    def _extract_slice(self, op: tensor.ExtractSlice) -> None:
        where, name = self._slice(op), self._name(op.result)
        if op.source.type.is_dense:
            types = f"{self._type(op.source)} to {self._type(op.result)}"
            self._line(f"{name} = tensor.extract_slice {self._name(op.source)}{where} : {types}")
            return
        view, type_ = self._fresh(), self._encodings.slice_type(op.source.type, op.result.type)
        types = f"{self._type(op.source)} to {type_}"
        self._line(f"{view} = tensor.extract_slice {self._name(op.source)}{where} : {types}")
        self._convert(name, view, type_, op.result)

    # ------------------------------------------------------------ loops and branches

    def _block(
        self, ops: tuple[tensor.Op, ...], end: Callable[[], str], block: Block | None = None
    ) -> list[str]:
        """The indented lines of a block; ``end`` writes what its last line needs."""
        inner = block or Block(frozenset())
        self._blocks.append(inner)
        for op in ops:
            self._op(op)
        self._line(end())
        self._blocks.pop()
        return [f"  {line}" for line in (*inner.header, *inner.lines)]

    def _taken(self, what: str, values: tuple[Value, ...]) -> str:
        types = ", ".join(map(self._type, values))
        return f"{what} {', '.join(map(self._name, values))} : {types}" if values else what

    def _truth(self, condition: Value) -> str:
        """The element of a rank-0 tensor of bool."""
        name = self._fresh()
        self._line(f"{name} = tensor.extract {self._name(condition)}[] : {self._type(condition)}")
        return name

    def _write_structure(self, op: tensor.For | tensor.While | tensor.If, *parts: str) -> None:
        """Write lines of which the first defines the results."""
        results = ", ".join(map(self._name, op.results))
        self._line(f"{results} = {parts[0]}" if results else parts[0])
        for line in parts[1:]:
            self._line(line)

    def _carried(self, args: tuple[Value, ...], inits: list[str]) -> str:
        pairs = zip(args, inits, strict=True)
        return ", ".join(f"{self._name(arg)} = {init}" for arg, init in pairs)

    def _for(self, op: tensor.For) -> None:
        lower, upper = self._index(op.lower), self._index(op.upper)
        step = self._index(Constant(1))
        inits = [self._name(init) for init in op.inits]
        types = ", ".join(self._type(result) for result in op.results)
        block = Block(frozenset({op.induction}))
        counter = self._reserve(safe_name(self._func.symbols[op.induction]))
        block.indices[Dim(op.induction)] = counter
        carried = self._carried(op.args, inits)
        lines = self._block(op.body, lambda: self._taken("scf.yield", op.yields), block)
        loop = f"scf.for {counter} = {lower} to {upper} step {step}"
        head = f"{loop} iter_args({carried}) -> ({types}) {{" if types else f"{loop} {{"
        self._write_structure(op, head, *lines, "}")

    def _while(self, op: tensor.While) -> None:
        inits = [self._name(init) for init in op.inits]
        types = ", ".join(self._type(result) for result in op.results)
        carried = self._carried(op.args, inits)
        test = self._block(
            op.test, lambda: self._taken(f"scf.condition({self._truth(op.condition)})", op.args)
        )
        given = ", ".join(f"{self._name(arg)}: {self._type(arg)}" for arg in op.body_args)
        body = self._block(op.body, lambda: self._taken("scf.yield", op.yields))
        head = f"scf.while ({carried}) : ({types}) -> ({types}) {{" if types else "scf.while {"
        entry = [f"^bb0({given}):"] if given else []
        self._write_structure(op, head, *test, "} do {", *entry, *body, "}")

    def _if(self, op: tensor.If) -> None:
        condition = self._truth(op.condition)
        types = ", ".join(self._type(result) for result in op.results)
        then = self._block(op.then, lambda: self._taken("scf.yield", op.then_yields))
        orelse = self._block(op.orelse, lambda: self._taken("scf.yield", op.else_yields))
        head = f"scf.if {condition} -> ({types}) {{" if types else f"scf.if {condition} {{"
        self._write_structure(op, head, *then, "} else {", *orelse, "}")

    # ------------------------------------------------------------ putting together

    def _reshape(self, op: tensor.Reshape) -> None:
        """A reshape; of a sparse tensor followed by a conversion, since it is a new tensor."""
        shape, rank = self._fresh(), op.result.type.rank
        extents = ", ".join(map(self._index, op.result.type.shape))
        self._line(f"{shape} = tensor.from_elements {extents} : tensor<{rank}xindex>")
        name = self._name(op.result) if op.result.type.is_dense else self._fresh()
        types = f"({self._type(op.source)}, tensor<{rank}xindex>) -> {self._type(op.result)}"
        self._line(f"{name} = tensor.reshape {self._name(op.source)}({shape}) : {types}")
        if not op.result.type.is_dense:
            self._convert(self._name(op.result), name, self._type(op.result), op.result)

    def _concat(self, op: tensor.Concat) -> None:
        names = ", ".join(map(self._name, op.sources))
        types = f"({', '.join(map(self._type, op.sources))}) -> {self._type(op.result)}"
        concat = f"tensor.concat dim({op.axis}) {names}"
        self._line(f"{self._name(op.result)} = {concat} : {types}")

    def _pad(self, op: tensor.Pad) -> None:
        element = self._fresh()
        dtype = op.value.dtype
        self._line(f"{element} = {constant(op.value.value, dtype)}")
        pad = f"tensor.pad {self._name(op.source)} low[{self._mixed(op.low)}]"
        head = f"{self._name(op.result)} = {pad} high[{self._mixed(op.high)}] {{"
        args = ", ".join(f"{self._fresh()}: index" for _ in op.low)
        types = f"{self._type(op.source)} to {self._type(op.result)}"
        self._line(head)
        self._line(f"^bb0({args}):")
        self._line(f"  tensor.yield {element} : {element_type(dtype)}")
        self._line(f"}} : {types}")

    def _generic(self, op: tensor.Generic) -> None:
        num_loops = len(op.iterator_types)
        inputs = [(self._name(value), self._type(value)) for value in op.inputs]
        maps = list(op.indexing_maps[:-1])
        carrier = uncarried_loops(op)
        if carrier:
            inputs.append(self._carrier(op, carrier))
            maps.append(AffineMap(num_loops, tuple(Dim(loop) for loop in carrier)))
        maps.append(op.indexing_maps[-1])
        kinds = ", ".join(f'"{kind.value}"' for kind in op.iterator_types)
        map_list = ", ".join(f"affine_map<{map_}>" for map_ in maps)
        ins = f"{', '.join(n for n, _ in inputs)} : {', '.join(t for _, t in inputs)}"
        head = f"linalg.generic {{indexing_maps = [{map_list}], iterator_types = [{kinds}]}}"
        init = f"outs({self._name(op.init)} : {self._type(op.init)})"
        self._line(f"{self._name(op.result)} = {head} {f'ins({ins}) ' if inputs else ''}{init} {{")
        operands = (*op.inputs, op.init)
        names = [self._fresh() for _ in operands]
        args = [
            f"{name}: {element_type(value.type.dtype)}"
            for name, value in zip(names, operands, strict=True)
        ]
        if carrier:
            args.insert(-1, f"{self._fresh()}: i1")
        self._line(f"^bb0({', '.join(args)}):")
        body = BodyWriter(
            names,
            [value.type.dtype for value in operands],
            [not value.type.is_dense for value in operands],
            op.init.type.fill if op.init.type.is_dense else None,
            self._fresh,
        )
        body.result(op.body)
        for line in body.lines:
            self._line(line)
        self._line(f"}} -> {self._type(op.result)}")

    def _carrier(self, op: tensor.Generic, loops: list[int]) -> tuple[str, str]:
        """A tensor that nobody reads, with the extents of these loops."""
        extents = ", ".join(self._index(op.extents[loop]) for loop in loops)
        no, name = self._fresh(), self._fresh()
        type_ = f"tensor<{'?x' * len(loops)}i1>"
        self._line(f"{no} = arith.constant false")
        self._line(f"{name} = tensor.splat {no}[{extents}] : {type_}")
        return name, type_
