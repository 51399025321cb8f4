"""``explain``: what was done with a function and why, for people.

In: facts as data: the operands, the tensor program, what the trace and the stage decided, the
target, times and counts. Out: text. Nothing is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import expr_text
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.printing import const_text, loop_names, print_op, print_scalar, type_text
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import IndexWidths
from sparsejit.ir.walk import all_ops, blocks_of, results_of
from sparsejit.tensors import Operand

__all__ = ["OperandNote", "Report", "explain_text"]


@dataclass(frozen=True, slots=True)
class OperandNote:
    """One operand of a call: its name, what it is, and how many values it stores."""

    name: str
    kind: str
    shape: tuple[int, ...]
    stored: int
    bytes: int

    @staticmethod
    def of(name: str, operand: Operand) -> OperandNote:
        """Return what is worth saying of an operand."""
        size = sum(buffer.nbytes for buffer in operand.buffers)
        return OperandNote(name, operand.kind, operand.shape, operand.values.size, size)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that ``explain_text`` prints.

    ``refused`` says why the function does not run on the target, empty where it does. ``moved`` are
    the bytes that go to a device, ``placed`` how its kernels reach each array, and what else is
    known of the transfers. Times are in seconds, None for what did not happen.
    """

    func: TensorFunc
    target: str
    target_reason: str
    engine: str
    refused: str
    transfer: str
    operands: tuple[OperandNote, ...]
    facts: tuple[Fact, ...]
    index_widths: IndexWidths | None
    trace_seconds: float
    compile_seconds: float | None = None
    run_seconds: float | None = None
    was_hit: bool | None = None
    counts: tuple[tuple[str, int], ...] = ()
    moved: int = 0
    placed: tuple[str, ...] = ()


def explain_text(report: Report) -> str:
    """Return the explanation of one function for one kind of operands.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> func = TensorBuilder("nothing").finish()
    >>> report = Report(func, "cpu", "asked for", "LLVM", "", "regular-dma", (), (), None, 0.001)
    >>> print(explain_text(report).splitlines()[0])
    nothing: runs on cpu (asked for), compiled by LLVM
    """
    report = replace(report, facts=_named_loops(report))
    sections = (
        _head(report),
        _operands(report),
        _operations(report),
        _copies(report),
        _function_facts(report),
        _transfers(report),
        _times(report),
    )
    return "\n".join(line for section in sections for line in section)


def _named_loops(report: Report) -> tuple[Fact, ...]:
    """Return the facts, those about loops in the names of the formulas."""
    ops = {result.name: op for op in all_ops(report.func.ops) for result in results_of(op)}
    names: dict[str, str] = {}
    for fact in report.facts:
        if fact.kind is FactKind.LOOP:
            loop, _, value = fact.text.partition(" of %")
            names[fact.subject] = f"{_loop(loop, ops.get(value), report.func.symbols)} of %{value}"

    def named(found: re.Match[str]) -> str:
        return names.get(found[0], found[0])

    facts: list[Fact] = []
    for fact in report.facts:
        if fact.kind is FactKind.FUSION:
            fact = replace(fact, text=re.sub(r"\b[a-z]\w*", named, fact.text))
        if fact.subject in names:
            fact = replace(fact, subject=f"loop over {names[fact.subject]}")
        if fact.kind is not FactKind.LOOP:
            facts.append(fact)
    return tuple(facts)


def _head(report: Report) -> Iterator[str]:
    if report.refused:
        yield f"{report.func.name}: does not run on {report.target}: {report.refused}"
    else:
        yield (
            f"{report.func.name}: runs on {report.target} ({report.target_reason}), "
            f"{_how(report.engine)}"
        )


def _how(engine: str) -> str:
    return "interpreted as plain Python" if engine == "Python" else f"compiled by {engine}"


def _operands(report: Report) -> Iterator[str]:
    if report.operands:
        yield "operands"
    types = [type_text(param.type, report.func.symbols) for param in report.func.params]
    assigned = {param.name for param in report.func.assigned}
    for param, kind, note in zip(report.func.params, types, report.operands, strict=False):
        extents = " x ".join(map(str, note.shape)) or "scalar"
        size = f"{extents}, {note.stored} stored, {_bytes(note.bytes)}"
        written = ", assigned" if param.name in assigned else ""
        yield f"  {note.name}: {kind} ({note.kind}; {size}{written})"


def _bytes(count: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def _operations(report: Report) -> Iterator[str]:
    """Each operation as a formula, in program order, with the facts about its result below it."""
    if not report.func.ops:
        return
    same = _common_library(report)
    calls = {fact.subject for fact in report.facts if fact.kind is FactKind.LIBRARY_CALL}
    what = "library calls as told, else generated kernels" if calls else "each a generated kernel"
    where = "" if report.refused else f", {what} on {report.target}"
    yield f"operations{where}" + (f" ({same})" if same else "")
    facts: dict[str, list[Fact]] = {}
    for fact in report.facts:
        if fact.kind is not FactKind.COPY and not (
            fact.kind is FactKind.LIBRARY and fact.text == same
        ):
            facts.setdefault(fact.subject, []).append(fact)
    yield from _block(report.func.ops, report.func.symbols, facts, "  ")


def _common_library(report: Report) -> str:
    """Return why no operation is a library's kernel, where that is the same for all."""
    reasons = {fact.text for fact in report.facts if fact.kind is FactKind.LIBRARY}
    return reasons.pop() if len(reasons) == 1 else ""


def _block(
    ops: Sequence[Op], symbols: Sequence[str], facts: Mapping[str, Sequence[Fact]], indent: str
) -> Iterator[str]:
    starts = _starts(ops)
    for op in ops:
        if isinstance(op, Empty) or (isinstance(op, Generic) and op.result in starts):
            continue  # the memory of a result, and what a reduction starts from
        line = _formula(op, symbols, starts) if isinstance(op, Generic) else None
        yield indent + (line or print_op(op, symbols, True)[0].strip())
        told = [fact for result in results_of(op) for fact in facts.get(result.name, ())]
        seen = dict.fromkeys(f"{fact.kind.value}: {_told(fact, op, symbols)}" for fact in told)
        short = [text for text in seen if text.startswith(("loop order", "storage"))]
        if short:
            kinds = [type_text(result.type, symbols) for result in results_of(op)]
            yield f"{indent}  {'; '.join([*short, 'result: ' + ', '.join(kinds)])}"
        yield from (f"{indent}  {text}" for text in seen if text not in short)
        for block in blocks_of(op):
            yield from _block(block.ops, symbols, facts, indent + "  ")


def _told(fact: Fact, op: Op, symbols: Sequence[str]) -> str:
    """Return what a fact says, in the names of the formula above it."""
    if fact.kind is FactKind.LOOP_ORDER:
        return re.sub(r"\w+", lambda found: _loop(found[0], op, symbols), fact.text)
    return re.sub(r"\bpattern of (\d+)", r"pattern of %\1", fact.text)


def _loop(name: str, op: Op | None, symbols: Sequence[str]) -> str:
    """Return what the formula of an operation calls one of its loops."""
    if not isinstance(op, Generic):
        return name
    count = len(op.iterator_types)
    names = dict(zip(loop_names(count), loop_names(count, taken=symbols), strict=True))
    return names.get(name, name)


def _starts(ops: Sequence[Op]) -> dict[Value, str]:
    """Return the values that are one number everywhere, from which a reduction starts."""
    fills = {
        op.result: const_text(op.body)
        for op in ops
        if isinstance(op, Generic) and isinstance(op.body, Const)
    }
    used = {op.init for op in ops if isinstance(op, Generic) and not isinstance(op.body, Const)}
    return {value: text for value, text in fills.items() if value in used}


def _formula(op: Generic, symbols: Sequence[str], starts: Mapping[Value, str]) -> str:
    """Return an operation in index notation: ``%2[i] = %2[i] + %A[i, j] * %x[j], from 0.0``."""
    names = loop_names(len(op.iterator_types), taken=symbols)
    maps = zip((*op.inputs, op.result), op.indexing_maps, strict=True)
    elements = [
        f"%{value.name}"
        + (f"[{', '.join(expr_text(e, names) for e in index.results)}]" if index.results else "")
        for value, index in maps
    ]

    def operand(found: re.Match[str]) -> str:
        return elements[int(found[1])] if found[1] else elements[-1]

    body = re.sub(r"\bin(\d+)\b|\bout\b", operand, print_scalar(op.body, len(op.inputs), names))
    start = f", from {starts[op.init]}" if op.init in starts else ""
    place = f"  // {op.location.short}" if op.location is not None else ""
    return f"{elements[-1]} = {body}{start}{place}"


def _copies(report: Report) -> Iterator[str]:
    copies = [fact for fact in report.facts if fact.kind is FactKind.COPY]
    if not copies:
        yield "copies: none"
        return
    yield "copies"
    yield from (f"  %{fact.subject}: {fact.text}" for fact in copies)


def _function_facts(report: Report) -> Iterator[str]:
    """What is known of the whole function, or of values that are no results of operations."""
    of_ops = {result.name for op in all_ops(report.func.ops) for result in results_of(op)}
    same = _common_library(report)
    rest = [
        fact
        for fact in report.facts
        if fact.subject not in of_ops and fact.kind is not FactKind.COPY and fact.text != same
    ]
    if rest:
        yield "decisions"
    yield from (f"  {_subject(fact.subject)}: {fact.kind.value}: {fact.text}" for fact in rest)
    if report.index_widths is not None:
        yield f"index width of results: {report.index_widths}, then the least that fits"


def _subject(name: str) -> str:
    """Return how a decision names a value: what a rewrite made has a number of its own."""
    return f"%{name}, made by a rewrite" if name.isdigit() else name


def _transfers(report: Report) -> Iterator[str]:
    if report.target == "cuda":
        yield f"transfers: {report.transfer}, {_bytes(report.moved)} to the device"
        yield from (f"  {line}" for line in report.placed)
    else:
        yield "transfers: none, the operands stay on the host"


def _times(report: Report) -> Iterator[str]:
    steps = (
        ("trace", report.trace_seconds),
        ("compile", report.compile_seconds),
        ("first run" if report.was_hit is False else "run", report.run_seconds),
    )
    # Compiled code is made in the first run, for the arrays that it meets.
    known = [f"{name} {_time(seconds)}" for name, seconds in steps if seconds is not None]
    yield f"time: {', '.join(known)}"
    if report.counts:
        counted = ", ".join(f"{name} {count}" for name, count in report.counts)
        last = {None: "", True: " (the last call was a hit)", False: " (the last call was new)"}
        yield f"cache: {counted}{last[report.was_hit]}"


def _time(seconds: float) -> str:
    """Return a time with three digits and a unit that needs no exponent."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
