"""What each operation does to buffers: reads, writes and possible aliases, one flat table.

In goes a ``TensorFunc``; out comes a ``Flow``: its operations in program order, terminators
included, with the facts that One-Shot analysis asks for. The table mirrors upstream's operations
one to one, so an ``Insert`` is two of them (the read of the scalar, then the store) and a slice of
a sparse tensor is a slice and a conversion; ``FlowOp.op`` says to which of ours each belongs.

Ours are numbered in program order, a loop before its body, a body's yield after it, the return
last; the function itself is -1. Block arguments belong to the operation that holds the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from sparsejit.affine import Constant
from sparsejit.ir import tensor
from sparsejit.ir.mlir import needs_loop_carrier
from sparsejit.ir.scalar import args_of
from sparsejit.ir.types import IteratorType

__all__ = ["FUNCTION", "Alias", "Flow", "FlowOp", "Operand", "Site", "Use", "flow_of"]

FUNCTION = -1


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """Operand ``operand`` of the flow operation ``op`` (its place in ``Flow.ops``)."""

    op: int
    operand: int


@dataclass(frozen=True, slots=True)
class Alias:
    """A value that lives in the operand's buffer if the operand is used in place.

    ``part``: only in a part of it, so never equivalent. ``carried``: equivalent if these two
    values are (a loop's argument and what its body yields for it).
    """

    value: str
    part: bool = False
    carried: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor operand: does the operation read its elements, write them, hand on its buffer?

    ``reads_through``: it is read as well if this value is (a loop reads an initial value when its
    body reads the argument). ``must``: it has to be used in place, or the program is refused.
    """

    value: tensor.Value
    role: str
    reads: bool = False
    reads_through: str | None = None
    writes: bool = False
    must: bool = False
    alias: Alias | None = None


@dataclass(frozen=True, slots=True)
class FlowOp:
    """One operation as upstream sees it.

    ``op`` is the number of our operation and ``label`` its name in texts; ``path`` the flow
    operations around it, outermost first; ``undefined``: the result has no contents yet.
    ``identity``: for each operand, whether an elementwise loop reads it at its own place.
    ``carrier`` is the place among the operands of one that only carries loop extents upstream.
    """

    op: int
    upstream: str
    label: str
    operands: tuple[Operand, ...] = ()
    results: tuple[tensor.Value, ...] = ()
    args: tuple[tensor.Value, ...] = ()
    path: tuple[int, ...] = ()
    undefined: bool = False
    repetitive: bool = False
    identity: tuple[bool, ...] = ()
    carrier: int | None = None
    source: tensor.Op | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """Where a value comes from: ``kind`` is "result" or "argument"; ``block`` its flow path."""

    value: tensor.Value
    op: int
    kind: str
    number: int
    block: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """All operations, the site of each value, its uses, and which values must not be written.

    ``idle_counters`` are the induction symbols of loops that never run.
    """

    ops: tuple[FlowOp, ...]
    sites: dict[str, Site]
    uses: dict[str, tuple[Use, ...]]
    read_only: frozenset[str]
    idle_counters: frozenset[int]
    func: tensor.TensorFunc

    def operand(self, use: Use) -> Operand:
        """Return the facts of a use."""
        return self.ops[use.op].operands[use.operand]

    def all_uses(self) -> Iterator[Use]:
        """Return every use, in program order."""
        for number, op in enumerate(self.ops):
            for operand in range(len(op.operands)):
                yield Use(number, operand)

    def aliasing_operands(self, value: str) -> tuple[tuple[Use, Alias], ...]:
        """Return the operands in whose buffer ``value`` may live, with the relation."""
        site = self.sites[value]
        if site.kind == "argument":
            return ()
        found = []
        for operand, facts in enumerate(self.ops[site.op].operands):
            if facts.alias is not None and facts.alias.value == value:
                found.append((Use(site.op, operand), facts.alias))
        return tuple(found)


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
        for kind, values, block in (
            ("argument", op.args, (*op.path, number)),
            ("result", op.results, op.path),
        ):
            for position, value in enumerate(values):
                sites[value.name] = Site(value, number, kind, position, block)
                uses[value.name] = []
    for number, op in enumerate(builder.ops):
        for position, operand in enumerate(op.operands):
            uses[operand.value.name].append(Use(number, position))
    assigned = {value.name for value in func.assigned} if function_boundaries else set()
    return Flow(
        ops=tuple(builder.ops),
        sites=sites,
        uses={name: tuple(found) for name, found in uses.items()},
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

    def block(self, ops: tuple[tensor.Op, ...], path: tuple[int, ...]) -> None:
        for op in ops:
            self.op(op, path)

    def add(
        self,
        upstream: str,
        label: str,
        operands: tuple[Operand, ...] = (),
        results: tuple[tensor.Value, ...] = (),
        path: tuple[int, ...] = (),
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

    def op(self, op: tensor.Op, path: tuple[int, ...]) -> None:
        match op:
            case tensor.For():
                self.loop(op, path)
                return
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
            case tensor.Materialize(result, source, dest):
                operands = (
                    Operand(source, "source", reads=True, must=True),
                    Operand(dest, "dest", writes=True, must=True, alias=Alias(result.name)),
                )
                self.add(
                    "bufferization.materialize_in_destination",
                    f"%{result.name}",
                    operands,
                    (result,),
                    path,
                    identity=(True, True),
                    source=op,
                )
            case _:
                assert_never(op)
        self.number += 1

    def generic(self, op: tensor.Generic, path: tuple[int, ...]) -> None:
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
            carrier=last if needs_loop_carrier(op) else None,
            source=op,
        )

    def extract(self, op: tensor.ExtractSlice, path: tuple[int, ...]) -> None:
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

    def loop(self, op: tensor.For, path: tuple[int, ...]) -> None:
        may_not_run = _may_not_run(op)
        operands = tuple(
            Operand(
                init,
                f"init#{number}",
                reads=may_not_run,
                reads_through=arg.name,
                writes=True,
                alias=Alias(
                    result.name, carried=(arg.name, yielded.name) if self.as_upstream else None
                ),
            )
            for number, (init, arg, result, yielded) in enumerate(
                zip(op.inits, op.args, op.results, op.yields, strict=True)
            )
        )
        place = len(self.ops)
        label = f"%{op.results[0].name}" if op.results else f"for {self.number}"
        self.ops.append(
            FlowOp(
                self.number,
                "scf.for",
                label,
                operands,
                op.results,
                args=op.args,
                path=path,
                repetitive=True,
                source=op,
            )
        )
        self.number += 1
        self.block(op.body, (*path, place))
        yields = tuple(
            Operand(value, str(number), reads=True, must=True)
            for number, value in enumerate(op.yields)
        )
        self.add("scf.yield", f"yield of {label}", yields, (), (*path, place))
        self.number += 1


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
