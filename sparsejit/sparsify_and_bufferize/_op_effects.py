"""What each operation does to buffers: reads, writes and possible aliases, one flat table.

In goes a ``TensorFunc``; out comes a ``Flow``: its operations in program order, terminators
included, with the facts that One-Shot analysis asks for. The table mirrors upstream's operations
one to one, so an ``Insert`` is two of them (the read of the scalar, then the store) and a slice of
a sparse tensor is a slice and a conversion; ``FlowOp.op`` says to which of ours each belongs.

Ours are numbered in program order, a loop or branch before its blocks, a block's end after it, the
return last; the function itself is -1. Block arguments belong to the operation that holds the
block.
"""

from __future__ import annotations

from typing import assert_never

from sparsejit.affine import Constant
from sparsejit.formats import Dense
from sparsejit.ir import tensor
from sparsejit.ir.fold import zero_of
from sparsejit.ir.loop_carriers import uncarried_loops
from sparsejit.ir.scalar import args_of
from sparsejit.ir.types import INDEX, IteratorType, TensorType
from sparsejit.ir.walk import blocks_of
from sparsejit.sparsify_and_bufferize._flow import FUNCTION as FUNCTION
from sparsejit.sparsify_and_bufferize._flow import Alias, BlockOf, Flow, FlowOp, Operand, Site
from sparsejit.sparsify_and_bufferize._flow import Use as Use

__all__ = ["FUNCTION", "Use", "flow_of", "grows"]

Path = tuple[BlockOf, ...]


def flow_of(
    func: tensor.TensorFunc, *, function_boundaries: bool = True, as_upstream: bool = False
) -> Flow:
    """Return the table for ``func``.

    Without ``function_boundaries`` the function is unknown territory: its parameters must not be
    written, and the return is taken to read and to write what it is given.

    Our loops give their results back in the buffers that they were given, even where the body
    yields another (copy insertion sees to that). With ``as_upstream`` a loop does so only if the
    body yields the buffer of its argument.
    """
    builder = _Builder(as_upstream)
    builder.block(func.ops, ())
    builder.add(
        "func.return",
        "return",
        tuple(
            Operand(value, str(number), reads=True, writes=not function_boundaries)
            for number, value in enumerate(func.results)
        ),
    )
    sites = {
        param.name: Site(param, FUNCTION, "argument", number, ())
        for number, param in enumerate(func.params)
    }
    uses: dict[str, list[Use]] = {name: [] for name in sites}
    for number, op in enumerate(builder.ops):
        made = [("result", op.results, op.path)]
        for block, args in enumerate(op.args):
            made.append(("argument", args, (*op.path, BlockOf(number, block))))
        for kind, values, path in made:
            for position, value in enumerate(values):
                sites[value.name] = Site(value, number, kind, position, path)
                uses[value.name] = []
    for number, op in enumerate(builder.ops):
        for position, operand in enumerate(op.operands):
            uses[operand.value.name].append(Use(number, position))
    aliased: dict[str, list[tuple[Use, Alias]]] = {}
    for number, op in enumerate(builder.ops):
        for position, operand in enumerate(op.operands):
            if operand.alias is not None:
                found = aliased.setdefault(operand.alias.value, [])
                found.append((Use(number, position), operand.alias))
    assigned = {value.name for value in func.assigned} if function_boundaries else set()
    return Flow(
        ops=tuple(builder.ops),
        sites=sites,
        uses={name: tuple(found) for name, found in uses.items()},
        aliased={name: tuple(found) for name, found in aliased.items()},
        read_only=frozenset(param.name for param in func.params if param.name not in assigned),
        idle_counters=frozenset(
            op.source.induction
            for op in builder.ops
            if isinstance(op.source, tensor.For) and _never_runs(op.source)
        ),
        func=func,
    )


class _Builder:
    """Numbers our operations while it lists upstream's."""

    def __init__(self, as_upstream: bool) -> None:
        self.as_upstream = as_upstream
        self.ops: list[FlowOp] = []
        self.number = 0

    def block(self, ops: tuple[tensor.Op, ...], path: Path) -> None:
        for op in ops:
            self.op(op, path)

    def add(
        self,
        upstream: str,
        label: str,
        operands: tuple[Operand, ...] = (),
        results: tuple[tensor.Value, ...] = (),
        path: Path = (),
        *,
        undefined: bool = False,
        identity: tuple[bool, ...] = (),
        carrier: int | None = None,
        source: tensor.Op | None = None,
    ) -> None:
        self.ops.append(
            FlowOp(
                self.number,
                upstream,
                label,
                operands,
                results,
                path=path,
                undefined=undefined,
                identity=identity,
                carrier=carrier,
                source=source,
            )
        )

    def op(self, op: tensor.Op, path: Path) -> None:  # noqa: C901 - one case for each kind
        match op:
            case tensor.For():
                self.counted_loop(op, path)
                return
            case tensor.While():
                self.while_loop(op, path)
                return
            case tensor.If():
                self.branch(op, path)
                return
            case tensor.Reshape():
                self.reshape(op, path)
            case tensor.Concat(result, sources):
                parts = tuple(
                    Operand(part, f"part#{number}", reads=True)
                    for number, part in enumerate(sources)
                )
                self.add("tensor.concat", f"%{result.name}", parts, (result,), path)
            case tensor.Pad(result, source):
                read = (Operand(source, "source", reads=True),)
                self.add("tensor.pad", f"%{result.name}", read, (result,), path)
            case tensor.Generic():
                self.generic(op, path)
            case tensor.Empty(result):
                label = f"%{result.name}"
                self.add("tensor.empty", label, (), (result,), path, undefined=True, source=op)
            case tensor.AllocTensor(result, copy):
                copied = () if copy is None else (Operand(copy, "copy", reads=True),)
                self.add(
                    "bufferization.alloc_tensor",
                    f"%{result.name}",
                    copied,
                    (result,),
                    path,
                    undefined=copy is None,
                    source=op,
                )
            case tensor.Convert(result, source):
                read = (Operand(source, "source", reads=True),)
                self.add("sparse_tensor.convert", f"%{result.name}", read, (result,), path)
            case tensor.Insert(result, scalar, dest):
                label = f"%{result.name}"
                self.add(
                    "tensor.extract", label, (Operand(scalar, "scalar", reads=True),), (), path
                )
                written = Operand(dest, "dest", True, writes=True, alias=Alias(result.name))
                self.add("tensor.insert", label, (written,), (result,), path, source=op)
            case tensor.ExtractSlice():
                self.extract(op, path)
            case tensor.InsertSlice(result, source, dest):
                operands = (
                    Operand(source, "source", reads=True),
                    Operand(
                        dest,
                        "dest",
                        reads=True,  # also where all of it is replaced: extents are unknown
                        writes=True,
                        alias=Alias(result.name),
                    ),
                )
                self.add(
                    "tensor.insert_slice", f"%{result.name}", operands, (result,), path, source=op
                )
            case tensor.Materialize():
                self.materialize(op, path)
            case _:
                assert_never(op)
        self.number += 1

    def generic(self, op: tensor.Generic, path: Path) -> None:
        used = args_of(op.body)
        operands = tuple(
            Operand(value, f"ins#{number}", reads=number in used)
            for number, value in enumerate(op.inputs)
        )
        last = len(operands)
        destination = Operand(
            op.init, "outs", reads=last in used, writes=True, alias=Alias(op.result.name)
        )
        elementwise = all(kind is IteratorType.PARALLEL for kind in op.iterator_types) and all(
            value.type.is_dense for value in (*op.inputs, op.init)
        )
        self.add(
            "linalg.generic",
            f"%{op.result.name}",
            (*operands, destination),
            (op.result,),
            path,
            identity=tuple(elementwise and map_.is_identity for map_ in op.indexing_maps),
            carrier=last if uncarried_loops(op) else None,
            source=op,
        )

    def materialize(self, op: tensor.Materialize, path: Path) -> None:
        source = Operand(op.source, "source", reads=True, must=True)
        dest = Operand(op.dest, "dest", writes=True, must=True, alias=Alias(op.result.name))
        self.add(
            "bufferization.materialize_in_destination",
            f"%{op.result.name}",
            (source, dest),
            (op.result,),
            path,
            identity=(True, True),
            source=op,
        )

    def extract(self, op: tensor.ExtractSlice, path: Path) -> None:
        label = f"%{op.result.name}"
        if op.source.type.is_dense:
            alias = Alias(op.result.name, part=True)
            sliced = (Operand(op.source, "source", alias=alias),)
            self.add("tensor.extract_slice", label, sliced, (op.result,), path, source=op)
            return
        # Entries of a sparse tensor cannot be viewed: the slice is converted into a tensor of
        # its own.
        view = tensor.Value(f"{op.result.name}.view", op.result.type)
        sliced = (Operand(op.source, "source", alias=Alias(view.name, part=True)),)
        self.add("tensor.extract_slice", label, sliced, (view,), path, source=op)
        read = (Operand(view, "source", reads=True),)
        self.add("sparse_tensor.convert", label, read, (op.result,), path)

    def reshape(self, op: tensor.Reshape, path: Path) -> None:
        """A reshape to extents that stand in a tensor; a sparse one is converted afterwards.

        Memory may be strided, so ours is a new tensor, where upstream's is one that may alias.
        """
        label, rank = f"%{op.result.name}", Constant(op.result.type.rank)
        kind = TensorType((rank,), INDEX, Dense(1), zero_of(INDEX))
        extents = tensor.Value(f"{op.result.name}.shape", kind)
        self.add("tensor.from_elements", label, (), (extents,), path)
        dense = op.result.type.is_dense
        seen = op.result if dense else tensor.Value(f"{op.result.name}.view", op.result.type)
        alias = Alias(seen.name) if self.as_upstream or not dense else None
        operands = (
            Operand(op.source, "source", reads=alias is None, alias=alias),
            Operand(extents, "shape", reads=True),
        )
        self.add("tensor.reshape", label, operands, (seen,), path, source=op)
        if not dense:
            read = (Operand(seen, "source", reads=True),)
            self.add("sparse_tensor.convert", label, read, (op.result,), path)

    # ------------------------------------------------------------ loops and branches

    def structure(
        self,
        upstream: str,
        op: tensor.For | tensor.While | tensor.If,
        operands: tuple[Operand, ...],
        path: Path,
    ) -> tuple[int, str]:
        """Add an operation with blocks; return its place and its label."""
        place = len(self.ops)
        label = f"%{op.results[0].name}" if op.results else f"{upstream[4:]} {self.number}"
        self.ops.append(
            FlowOp(
                self.number,
                upstream,
                label,
                operands,
                op.results,
                args=tuple(block.args for block in blocks_of(op)),
                path=path,
                repetitive=not isinstance(op, tensor.If),
                exclusive=isinstance(op, tensor.If),
                source=op,
            )
        )
        self.number += 1
        return place, label

    def end(
        self,
        upstream: str,
        label: str,
        values: tuple[tensor.Value, ...],
        path: Path,
        results: tuple[tensor.Value, ...] = (),
    ) -> None:
        """Add the end of a block; ``results`` live in the buffers of ``values``, perhaps."""
        aliases = [Alias(result.name, maybe=True) for result in results]
        operands = tuple(
            Operand(value, str(n), reads=True, must=True, alias=aliases[n] if aliases else None)
            for n, value in enumerate(values)
        )
        self.add(upstream, label, operands, (), path)
        self.number += 1

    def carried(
        self, op: tensor.For | tensor.While, args: tuple[tensor.Value, ...], reads: bool
    ) -> tuple[Operand, ...]:
        """The initial values of a loop; ``args`` are what its yields may be the buffers of.

        A sparse tensor that our loops change is copied into a buffer of its own, which grows.
        """
        rows = zip(op.inits, args, op.results, op.yields, strict=True)
        operands = []
        for number, (init, arg, result, yielded) in enumerate(rows):
            role = f"init#{number}"
            if grows(init, arg, yielded) and not self.as_upstream:
                operands.append(Operand(init, role, reads=True))
                continue
            same = (arg.name, yielded.name) if self.as_upstream else None
            alias = Alias(result.name, carried=same)
            operands.append(Operand(init, role, reads, arg.name, writes=True, alias=alias))
        return tuple(operands)

    def counted_loop(self, op: tensor.For, path: Path) -> None:
        operands = self.carried(op, op.args, _may_not_run(op))
        place, label = self.structure("scf.for", op, operands, path)
        body = (*path, BlockOf(place, 0))
        self.block(op.body, body)
        self.end("scf.yield", f"yield of {label}", op.yields, body)

    def while_loop(self, op: tensor.While, path: Path) -> None:
        operands = self.carried(op, op.body_args, reads=True)
        place, label = self.structure("scf.while", op, operands, path)
        test, body = (*path, BlockOf(place, 0)), (*path, BlockOf(place, 1))
        self.block(op.test, test)
        self.truth(op.condition, label, test)
        self.end("scf.condition", f"condition of {label}", op.args, test)
        self.block(op.body, body)
        self.end("scf.yield", f"yield of {label}", op.yields, body)

    def branch(self, op: tensor.If, path: Path) -> None:
        name = f"%{op.results[0].name}" if op.results else f"if {self.number}"
        self.truth(op.condition, name, path)
        place, label = self.structure("scf.if", op, (), path)
        for number, (word, block) in enumerate(zip(("then", "else"), blocks_of(op), strict=True)):
            inside = (*path, BlockOf(place, number))
            self.block(block.ops, inside)
            self.end("scf.yield", f"{word} of {label}", block.taken, inside, op.results)

    def truth(self, condition: tensor.Value, label: str, path: Path) -> None:
        """The read of a condition's element."""
        read = (Operand(condition, "condition", reads=True),)
        self.add("tensor.extract", label, read, (), path)


def grows(init: tensor.Value, arg: tensor.Value, yielded: tensor.Value) -> bool:
    """Whether a loop carries a sparse tensor of which it may change what is stored."""
    return not init.type.is_dense and yielded != arg


def _may_not_run(op: tensor.For) -> bool:
    """Whether the loop may run zero times, so that its results are the initial values."""
    is_constant = isinstance(op.lower, Constant) and isinstance(op.upper, Constant)
    return not is_constant or _never_runs(op)


def _never_runs(op: tensor.For) -> bool:
    match op.lower, op.upper:
        case Constant(lower), Constant(upper):
            return upper <= lower
        case _:
            return False
