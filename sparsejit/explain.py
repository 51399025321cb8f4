"""``explain``: what was done with a function and why, for people.

In: facts as data: the operands, the tensor program, what the trace and the stage decided, the
target, times and counts. Out: text. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.printing import print_op, type_text
from sparsejit.ir.tensor import Op, TensorFunc
from sparsejit.ir.walk import all_ops, results_of
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

    ``refused`` says why the function does not run on the target, empty where it does. Times are in
    seconds, None for what did not happen.
    """

    func: TensorFunc
    target: str
    target_reason: str
    engine: str
    refused: str
    transfer: str
    operands: tuple[OperandNote, ...]
    facts: tuple[Fact, ...]
    index_width: int | None
    trace_seconds: float
    compile_seconds: float | None = None
    run_seconds: float | None = None
    was_hit: bool | None = None
    counts: tuple[tuple[str, int], ...] = ()


def explain_text(report: Report) -> str:
    """Return the explanation of one function for one kind of operands.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> func = TensorBuilder("nothing").finish()
    >>> report = Report(func, "cpu", "asked for", "LLVM", "", "regular-dma", (), (), None, 0.001)
    >>> print(explain_text(report).splitlines()[0])
    nothing: runs on cpu (asked for), compiled by LLVM
    """
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


_OF_OPERATIONS = (
    FactKind.LIBRARY,
    FactKind.LIBRARY_CALL,
    FactKind.LOOP_ORDER,
    FactKind.ITERATION,
    FactKind.STORAGE,
)


def _operations(report: Report) -> Iterator[str]:
    """Each operation with what ran and the facts about its results."""
    ops = list(all_ops(report.func.ops))
    if ops:
        yield "operations"
    for op in ops:
        yield f"  {print_op(op, report.func.symbols, True)[0].strip()}"
        names = {result.name for result in results_of(op)}
        found = [fact for fact in report.facts if fact.subject in names]
        if not report.refused and any(fact.kind is FactKind.LOOP_ORDER for fact in found):
            called = any(fact.kind is FactKind.LIBRARY_CALL for fact in found)
            what = "library or generated kernel" if called else "generated kernel"
            yield f"    ran as: {what} on {report.target}"
        yield from (
            f"    {fact.kind.value}: {fact.text}" for fact in found if fact.kind in _OF_OPERATIONS
        )


def _copies(report: Report) -> Iterator[str]:
    copies = [fact for fact in report.facts if fact.kind is FactKind.COPY]
    if not copies:
        yield "copies: none"
        return
    yield "copies"
    yield from (f"  %{fact.subject}: {fact.text}" for fact in copies)


def _function_facts(report: Report) -> Iterator[str]:
    """What is known of the whole function, or of values that are no results of operations."""
    ops: Sequence[Op] = tuple(all_ops(report.func.ops))
    of_ops = {result.name for op in ops for result in results_of(op)}
    rest = [
        fact
        for fact in report.facts
        if fact.kind is not FactKind.COPY
        and (fact.subject not in of_ops or fact.kind not in _OF_OPERATIONS)
    ]
    if rest:
        yield "decisions"
    yield from (f"  {fact.kind.value}, {fact.subject}: {fact.text}" for fact in rest)
    if report.index_width is not None:
        yield f"index width of results: {report.index_width} bits, then the least that fits"


def _transfers(report: Report) -> Iterator[str]:
    if report.target == "cuda":
        moved = sum(note.bytes for note in report.operands)
        yield f"transfers: {report.transfer}, {_bytes(moved)} to the device"
    else:
        yield "transfers: none, the operands stay on the host"


def _times(report: Report) -> Iterator[str]:
    steps = (
        ("trace", report.trace_seconds),
        ("compile", report.compile_seconds),
        ("first run" if report.was_hit is False else "run", report.run_seconds),
    )
    # Compiled code is made in the first run, for the arrays that it meets.
    known = [f"{name} {seconds * 1e3:.3g} ms" for name, seconds in steps if seconds is not None]
    yield f"time: {', '.join(known)}"
    if report.counts:
        counted = ", ".join(f"{name} {count}" for name, count in report.counts)
        last = {None: "", True: " (the last call was a hit)", False: " (the last call was new)"}
        yield f"cache: {counted}{last[report.was_hit]}"
