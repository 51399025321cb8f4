"""Copy insertion: the decisions of the analysis, made visible as allocations.

In go a ``TensorFunc`` and its ``Decisions``; out comes ``CopyInserted``, in which every operand may
be used in place: where the analysis said out-of-place, an ``AllocTensor`` stands before the
operation and takes its place. It is a copy, unless nobody reads what was there. Only a slice is
copied where only a slice is changed. ``Empty`` becomes ``AllocTensor``. A loop that yields another
buffer than the one it was given ends by copying it there, and branches that end in different
buffers copy into one made before them, so no buffer changes its owner.

The result is no ``TensorFunc``: its use-def chains must not change any more, and no pass takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.errors import Location, UnsupportedError
from sparsejit.ir import tensor
from sparsejit.ir.printing import print_op
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.walk import blocks_of
from sparsejit.sparsify_and_bufferize._flow import Use
from sparsejit.sparsify_and_bufferize._one_shot_analysis import Decisions, reason_text
from sparsejit.sparsify_and_bufferize._op_effects import grows
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["CopyInserted", "InsertedCopy", "OwnedBuffer", "copies_text", "insert_copies"]


@dataclass(frozen=True, slots=True)
class InsertedCopy:
    """One allocation that the analysis asked for: its value, what it copies, and why.

    ``copied`` is None where the old contents are not needed.
    """

    value: str
    copied: str | None
    reason: str

    @property
    def text(self) -> str:
        """What is copied, and why."""
        copied = self.copied
        what = f"a copy of %{copied}" if copied is not None else "a new buffer without a copy"
        return f"{what}: {self.reason}"


@dataclass(frozen=True, slots=True)
class OwnedBuffer:
    """A buffer that the function makes: the value that it starts as, and where it ends.

    ``block`` says in which block it is made, empty for the function's own. Unless it ``escapes``,
    the end of that block frees it; one that escapes belongs to the caller.
    """

    value: str
    block: str
    escapes: bool


@dataclass(frozen=True, slots=True)
class CopyInserted:
    """A function whose every write may happen in place.

    The first fields are those of ``TensorFunc``; inside loops a ``Materialize`` may write a loop's
    argument, and inside branches the buffer in which they leave a result. ``roots`` maps each value
    to the one whose buffer it lives in, a parameter or an owned buffer; ``copies`` are the
    allocations that were inserted, in program order.
    """

    name: str
    params: tuple[Value, ...]
    symbols: tuple[str, ...]
    num_extents: int
    ops: tuple[tensor.Op, ...]
    results: tuple[Value, ...]
    assigned: tuple[Value, ...]
    copies: tuple[InsertedCopy, ...]
    owned: tuple[OwnedBuffer, ...]
    roots: Mapping[str, str]


_DEFAULT_OPTIONS = StageOptions()

Values = tuple[Value, ...]


def insert_copies(
    func: TensorFunc, decisions: Decisions, options: StageOptions = _DEFAULT_OPTIONS
) -> CopyInserted:
    """Return ``func`` with the copies that ``decisions`` ask for.

    Raises ``UnsupportedError`` for an allocation without a source when the memory space must be
    inferred.
    """
    inserter = _Inserter(func, decisions, options)
    ops = inserter.block(func.ops)
    results = tuple(inserter.renamed(value) for value in func.results)
    roots: dict[str, str] = {param.name: param.name for param in func.params}
    made: list[tuple[str, str]] = []
    _find_roots(ops, roots, made, func.symbols, "")
    returned = {roots[value.name] for value in results}
    return CopyInserted(
        name=func.name,
        params=func.params,
        symbols=func.symbols,
        num_extents=func.num_extents,
        ops=ops,
        results=results,
        assigned=func.assigned,
        copies=tuple(inserter.copies),
        owned=tuple(OwnedBuffer(value, block, value in returned) for value, block in made),
        roots=roots,
    )


class _Inserter:
    """Walks the operations in the analysis's order of numbers and rebuilds them."""

    def __init__(self, func: TensorFunc, decisions: Decisions, options: StageOptions) -> None:
        self.copies: list[InsertedCopy] = []
        self._decisions = decisions
        self._options = options
        self._names = set(decisions.flow.sites)
        self._renamed: dict[str, Value] = {}
        self._number = 0
        self._places: dict[int, list[int]] = {}
        for place, op in enumerate(decisions.flow.ops):
            self._places.setdefault(op.op, []).append(place)

    def renamed(self, value: Value) -> Value:
        return self._renamed.get(value.name, value)

    def block(self, ops: tuple[tensor.Op, ...]) -> tuple[tensor.Op, ...]:
        made: list[tensor.Op] = []
        for op in ops:
            self._op(op, made)
        return tuple(made)

    def _fresh(self, like: Value) -> Value:
        number = 0
        while str(number) in self._names:
            number += 1
        self._names.add(str(number))
        return Value(str(number), like.type)

    def _alloc(
        self, like: Value, copy: Value | None, location: Location | None
    ) -> tensor.AllocTensor:
        self._check_space(copy, location)
        return tensor.AllocTensor(self._fresh(like), copy, location)

    def _check_space(self, copy: Value | None, location: Location | None) -> None:
        if copy is None and self._options.memory_space is None:
            raise UnsupportedError("could not infer memory space", location=location)

    def _operand(self, place: int, operand: int, made: list[tensor.Op], op: tensor.Op) -> Value:
        """The value to use for an operand; out of place, that of a new allocation before ``op``."""
        decision = self._decisions.by_use[Use(place, operand)]
        value = self.renamed(self._decisions.flow.operand(decision.use).value)
        if decision.in_place:
            return value
        alloc = self._alloc(value, None if decision.omit_copy else value, op.location)
        made.append(alloc)
        self._note(alloc, decision.use)
        return alloc.result

    def _note(self, alloc: tensor.AllocTensor, use: Use) -> None:
        copied = alloc.copy.name if alloc.copy is not None else None
        reason = reason_text(self._decisions, use)
        self.copies.append(InsertedCopy(alloc.result.name, copied, reason))

    def _op(  # noqa: C901 - one case for each kind
        self, op: tensor.Op, made: list[tensor.Op]
    ) -> None:
        place = self._places[self._number][-1]  # the last of several is the one that may write
        self._number += 1
        match op:
            case tensor.Generic():
                values = [self._operand(place, k, made, op) for k in range(len(op.inputs) + 1)]
                made.append(replace(op, inputs=tuple(values[:-1]), init=values[-1]))
            case tensor.For():
                self._for(op, place, made)
            case tensor.While():
                self._while(op, place, made)
            case tensor.If():
                self._if(op, made)
            case tensor.Empty(result):
                self._check_space(None, op.location)
                made.append(tensor.AllocTensor(result, None, op.location))
            case tensor.AllocTensor(_, copy):
                self._check_space(copy, op.location)
                made.append(replace(op, copy=None if copy is None else self.renamed(copy)))
            case tensor.Convert(_, source) | tensor.Reshape(_, source) | tensor.Pad(_, source):
                made.append(replace(op, source=self.renamed(source)))
            case tensor.Concat(_, sources):
                made.append(replace(op, sources=tuple(map(self.renamed, sources))))
            case tensor.Insert(_, scalar, _):
                dest = self._operand(place, 0, made, op)
                made.append(replace(op, scalar=self.renamed(scalar), dest=dest))
            case tensor.ExtractSlice(_, source):
                made.append(replace(op, source=self.renamed(source)))
                if source.type.is_dense:
                    self._copy_slice(op, place, made)
            case tensor.InsertSlice():
                source, dest = (self._operand(place, k, made, op) for k in range(2))
                made.append(replace(op, source=source, dest=dest))
            case tensor.Materialize(_, source, dest):
                made.append(replace(op, source=self.renamed(source), dest=self.renamed(dest)))
            case _:
                assert_never(op)

    def _copy_slice(self, op: tensor.ExtractSlice, place: int, made: list[tensor.Op]) -> None:
        """Copy the slice, which is smaller, rather than what it is taken from."""
        decision = self._decisions.by_use[Use(place, 0)]
        if not decision.in_place:
            alloc = self._alloc(op.result, None if decision.omit_copy else op.result, op.location)
            made.append(alloc)
            self._note(alloc, decision.use)
            self._renamed[op.result.name] = alloc.result

    # ------------------------------------------------------------ loops and branches

    def _inner(self, ops: tuple[tensor.Op, ...]) -> list[tensor.Op]:
        """The operations of a block, whose end is numbered too."""
        made = list(self.block(ops))
        self._number += 1
        return made

    def _inits(
        self, op: tensor.For | tensor.While, args: Values, place: int, made: list[tensor.Op]
    ) -> Values:
        """The initial values; a sparse one that the loop changes grows in a buffer of its own."""
        inits = [self._operand(place, k, made, op) for k in range(len(op.inits))]
        for k, init in enumerate(inits):
            if grows(init, args[k], op.yields[k]):
                alloc = self._alloc(init, init, op.location)
                made.append(alloc)
                reason = "a sparse tensor that a loop changes grows in a buffer of its own"
                self.copies.append(InsertedCopy(alloc.result.name, init.name, reason))
                inits[k] = alloc.result
        return tuple(inits)

    def _for(self, op: tensor.For, place: int, made: list[tensor.Op]) -> None:
        inits = self._inits(op, op.args, place, made)
        body = self._inner(op.body)
        yields = self._given_back(op, op.args, body)
        made.append(replace(op, inits=inits, body=tuple(body), yields=yields))

    def _while(self, op: tensor.While, place: int, made: list[tensor.Op]) -> None:
        inits = self._inits(op, op.body_args, place, made)
        test = tuple(self._inner(op.test))
        condition = self.renamed(op.condition)
        body = self._inner(op.body)
        yields = self._given_back(op, op.body_args, body)
        made.append(
            replace(
                op, inits=inits, test=test, condition=condition, body=tuple(body), yields=yields
            )
        )

    def _given_back(
        self, op: tensor.For | tensor.While, args: Values, body: list[tensor.Op]
    ) -> Values:
        """What a loop's body yields, copied into the buffers of ``args`` where it is another."""
        yields = [self.renamed(value) for value in op.yields]
        moved = [
            k
            for k, (arg, value) in enumerate(zip(args, op.yields, strict=True))
            if not self._decisions.are_equivalent(arg.name, value.name)
        ]
        overwritten = {args[k].name for k in moved}
        # All yields are read before any argument is overwritten, as in a simultaneous assignment.
        for k in moved:
            if overwritten & self._aliases_of(op.yields[k].name):
                copy = self._alloc(yields[k], yields[k], op.location)
                body.append(copy)
                reason = f"%{op.yields[k].name} shares memory with what the loop overwrites"
                self.copies.append(InsertedCopy(copy.result.name, yields[k].name, reason))
                yields[k] = copy.result
        for k in moved:
            yields[k] = self._stored(yields[k], args[k], body, op.location)
        return tuple(yields)

    def _stored(
        self, value: Value, dest: Value, made: list[tensor.Op], location: Location | None
    ) -> Value:
        stored = self._fresh(dest)
        made.append(tensor.Materialize(stored, value, dest, location))
        return stored

    def _if(self, op: tensor.If, made: list[tensor.Op]) -> None:
        """Branches that yield different buffers copy into one that is made before them."""
        condition = self.renamed(op.condition)
        blocks = []
        for block in blocks_of(op):
            made_inside = self._inner(block.ops)
            blocks.append((made_inside, [self.renamed(value) for value in block.taken]))
        for k, (one, other) in enumerate(zip(op.then_yields, op.else_yields, strict=True)):
            if self._decisions.are_equivalent(one.name, other.name):
                continue
            alloc = self._alloc(op.results[k], None, op.location)
            made.append(alloc)
            reason = f"the branches of %{op.results[k].name} end in different buffers"
            self.copies.append(InsertedCopy(alloc.result.name, None, reason))
            for ops, yields in blocks:
                yields[k] = self._stored(yields[k], alloc.result, ops, op.location)
        (then, then_yields), (orelse, else_yields) = blocks
        made.append(
            replace(
                op,
                condition=condition,
                then=tuple(then),
                then_yields=tuple(then_yields),
                orelse=tuple(orelse),
                else_yields=tuple(else_yields),
            )
        )

    def _aliases_of(self, name: str) -> set[str]:
        return next((set(names) for names in self._decisions.aliases if name in names), {name})


def _find_roots(  # noqa: C901 - one case for each kind
    ops: tuple[tensor.Op, ...],
    roots: dict[str, str],
    made: list[tuple[str, str]],
    symbols: tuple[str, ...],
    block: str,
) -> None:
    """Record in whose buffer each value lives, and the buffers that each block makes."""
    for op in ops:
        match op:
            case tensor.For() | tensor.While():
                for init, *carried in zip(
                    op.inits, *(inner.args for inner in blocks_of(op)), op.results, strict=True
                ):
                    for value in carried:
                        roots[value.name] = roots[init.name]
            case tensor.Generic(result, _, init):
                roots[result.name] = roots[init.name]
            case tensor.Insert(result, _, dest) | tensor.InsertSlice(result, _, dest):
                roots[result.name] = roots[dest.name]
            case tensor.Materialize(result, _, dest):
                roots[result.name] = roots[dest.name]
            case tensor.ExtractSlice(result, source) if source.type.is_dense:
                roots[result.name] = roots[source.name]
            case tensor.If():
                pass
            case (
                tensor.ExtractSlice(result)
                | tensor.Convert(result)
                | tensor.Empty(result)
                | tensor.AllocTensor(result)
                | tensor.Reshape(result)
                | tensor.Concat(result)
                | tensor.Pad(result)
            ):
                roots[result.name] = result.name
                made.append((result.name, block))
            case _:
                assert_never(op)
        for inner, text in zip(blocks_of(op), _block_texts(op, symbols), strict=True):
            _find_roots(inner.ops, roots, made, symbols, text)
        if isinstance(op, tensor.If):
            for result, one, other in zip(op.results, op.then_yields, op.else_yields, strict=True):
                assert roots[one.name] == roots[other.name], f"%{result.name} has two buffers"
                roots[result.name] = roots[one.name]


def _block_texts(op: tensor.Op, symbols: tuple[str, ...]) -> tuple[str, ...]:
    """Return how each block of ``op`` is called."""
    match op:
        case tensor.For(induction=induction):
            return (f"each iteration of {symbols[induction]}",)
        case tensor.While():
            return ("each test of a loop", "each iteration of a loop")
        case tensor.If():
            return ("one branch", "the other branch")
        case _:
            return ()


def copies_text(inserted: CopyInserted, options: StageOptions = _DEFAULT_OPTIONS) -> str:
    """Return the function after copy insertion, and the end of each buffer that it makes."""
    lines = [f"after copy insertion @{inserted.name}"]
    for op in inserted.ops:
        lines.extend(f"  {line}" for line in print_op(op, inserted.symbols))
    returned = ", ".join(f"%{value.name}" for value in inserted.results)
    lines.append(f"  return {returned}".rstrip())
    for buffer in inserted.owned:
        where = f" in {buffer.block}" if buffer.block else ""
        if buffer.escapes:
            end = "escapes, freed by the caller"
        elif options.create_deallocs:
            end = "freed at the end of its block"
        else:
            end = "not freed"
        lines.append(f"  buffer %{buffer.value}{where}: {end}")
    return "\n".join(lines)
