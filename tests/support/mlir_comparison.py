"""Compare our One-Shot decisions with upstream's, program by program.

Both sides become lines of text in one numbering: only operations that both know are counted, and
only tensor operands. Equal are: each operation's verdicts, the equivalent arguments, the read-only
values met, and the number and order of conflicts. Upstream names one conflict of possibly several,
picked from a set ordered by addresses, so it must be among ours.
"""

from collections.abc import Sequence
from functools import lru_cache

from sparsejit.errors import UnsupportedError
from sparsejit.ir.mlir import print_mlir
from sparsejit.ir.tensor import TensorFunc
from sparsejit.sparsify_and_bufferize import StageOptions
from tests.support.mlir_oracle import Analysis, Conflict, Definition, Use, analyze, tensor_ops_only
from tests.support.stage_internals import comparable_decisions_for_test

__all__ = ["REFUSED", "differences", "our_lines", "upstream_lines"]

REFUSED = "refused"
"""The line of a program that no copy can save."""

_REFUSALS = (
    "not bufferizable under the given constraints",
    "is not equivalent to the corresponding iter bbArg",
)

_COUNTED = frozenset(
    {
        "bufferization.alloc_tensor",
        "bufferization.materialize_in_destination",
        "func.return",
        "linalg.generic",
        "scf.condition",
        "scf.for",
        "scf.if",
        "scf.while",
        "scf.yield",
        "sparse_tensor.convert",
        "tensor.concat",
        "tensor.empty",
        "tensor.extract",
        "tensor.extract_slice",
        "tensor.from_elements",
        "tensor.insert",
        "tensor.insert_slice",
        "tensor.pad",
        "tensor.reshape",
    }
)


def our_lines(
    func: TensorFunc, options: StageOptions | None = None, *, as_upstream: bool = False
) -> list[str]:
    """Our decisions, comparable; `as_upstream` without our deliberate differences."""
    try:
        text = comparable_decisions_for_test(func, options, as_upstream=as_upstream)
    except UnsupportedError:
        return [REFUSED]
    return text.splitlines()


def upstream_lines(answer: Analysis | str) -> list[str]:
    """Upstream's decisions, comparable; a refusal for lack of a legal copy is one line."""
    if isinstance(answer, str):
        return [REFUSED if any(text in answer for text in _REFUSALS) else answer]
    analysis = tensor_ops_only(answer, _COUNTED.__contains__)
    lines = [
        " ".join([op.name, *(verdict for verdict in op.in_place if verdict != "none")])
        for op in analysis.ops
    ]
    if any(number != -1 for number in analysis.equivalent_args):
        lines.append(f"equivalent {' '.join(map(str, analysis.equivalent_args))}")
    lines.extend(sorted({f"read-only {_site(value)}" for value in analysis.not_writable}))
    lines.extend(_conflict(analysis, conflict) for conflict in analysis.conflicts)
    return lines


def _site(definition: Definition) -> str:
    return f"{definition.op} {definition.kind} {definition.number}"


def _conflict(analysis: Analysis, conflict: Conflict) -> str:
    def use(found: Use) -> str:
        before = analysis.ops[found.op].in_place[: found.operand]
        return f"{found.op}#{sum(verdict != 'none' for verdict in before)}"

    return (
        f"read {use(conflict.read)} write {use(conflict.write)} "
        f"definition {_site(conflict.definition)}"
    )


@lru_cache(maxsize=8)
def _answers(
    texts: tuple[str, ...], function_boundaries: bool, allow_return_allocs: bool
) -> tuple[Analysis | str, ...]:
    """Upstream's answers; asked once for each set of programs."""
    return tuple(
        analyze(
            texts,
            function_boundaries=function_boundaries,
            allow_return_allocs=allow_return_allocs,
        )
    )


def differences(
    funcs: Sequence[TensorFunc],
    options: StageOptions | None = None,
    *,
    as_upstream: bool = False,
) -> list[str]:
    """A report for each program on which the two disagree; empty when they agree on all."""
    chosen = options or StageOptions()
    texts = tuple(print_mlir(func) for func in funcs)
    answers = _answers(texts, chosen.function_boundaries, chosen.allow_return_allocs)
    reports = []
    for func, text, answer in zip(funcs, texts, answers, strict=True):
        ours = our_lines(func, chosen, as_upstream=as_upstream)
        theirs = upstream_lines(answer)
        same = len(ours) == len(theirs) and all(
            line == other or other in line.split(" | ")
            for line, other in zip(ours, theirs, strict=True)
        )
        if not same:
            reports.append("\n".join([text, "ours:", *ours, "upstream:", *theirs]))
    return reports
