"""The inside of the atomic stage, as text: what tests may look at and nobody can feed onward.

This module alone, outside the stage, may import the stage's private modules (an import contract).
Each function takes a tensor function and returns text, never an object of the stage.
"""

from collections.abc import Sequence

import numpy as np

from sparsejit.affine import evaluate
from sparsejit.ir.tensor import Materialize, TensorFunc
from sparsejit.sparsify_and_bufferize._copy_insertion import copies_text, insert_copies
from sparsejit.sparsify_and_bufferize._one_shot_analysis import Decisions, analyze, decisions_text
from sparsejit.sparsify_and_bufferize._op_effects import FUNCTION, Use
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._raw_conflicts import RawConflict
from tests.support.tensor_evaluator import Evaluator, UndefinedConditionError

__all__ = [
    "comparable_decisions_for_test",
    "copies_for_test",
    "decisions_for_test",
    "executed_for_test",
]


def decisions_for_test(func: TensorFunc, options: StageOptions | None = None) -> str:
    """The in-place decisions, as `text("decisions")` and the golden files have them."""
    return decisions_text(func, analyze(func, options or StageOptions()))


def copies_for_test(func: TensorFunc, options: StageOptions | None = None) -> str:
    """The function after copy insertion; upstream's `-test-tensor-copy-insertion`."""
    chosen = options or StageOptions()
    return copies_text(insert_copies(func, analyze(func, chosen), chosen), chosen)


def comparable_decisions_for_test(
    func: TensorFunc, options: StageOptions | None = None, *, as_upstream: bool = False
) -> str:
    """The decisions in upstream's numbering, to be compared line by line with `mlir-opt`'s.

    `as_upstream` leaves out what we deliberately do otherwise.

    One line for each operation (its name, then true or false for each tensor operand), one for the
    equivalent arguments, one for the read-only values that a write would have reached, and one for
    each conflict, in the order met; of a conflict all that qualify are listed, as upstream
    names any one of them.
    """
    decisions = analyze(func, options or StageOptions(), as_upstream=as_upstream)
    flow = decisions.flow
    lines = []
    for number, op in enumerate(flow.ops):
        verdicts = [decisions.by_use[Use(number, k)].in_place for k in range(len(op.operands))]
        if op.carrier is not None:
            verdicts.insert(op.carrier, True)
        lines.append(" ".join([op.upstream, *(str(verdict).lower() for verdict in verdicts)]))
    params = ["-1" if number is None else str(number) for number in decisions.equivalent_params]
    if any(number != "-1" for number in params):
        lines.append(f"equivalent {' '.join(params)}")
    read_only = {name for decision in decisions.taken for name in decision.read_only}
    lines.extend(sorted(f"read-only {_site(decisions, name)}" for name in read_only))
    lines.extend(
        " | ".join(sorted(_conflict(decisions, conflict) for conflict in decision.conflicts))
        for decision in decisions.taken
        if decision.conflicts
    )
    return "\n".join(lines)


def _site(decisions: Decisions, name: str) -> str:
    site = decisions.flow.sites[name]
    if site.kind == "result":
        return f"{site.op} result {site.number}"
    counted = site.op != FUNCTION and decisions.flow.ops[site.op].upstream == "scf.for"
    first = 1 if counted else 0  # the loop's counter
    return f"{site.op} bbArg {site.number + first}"


def _conflict(decisions: Decisions, conflict: RawConflict) -> str:
    def use(found: Use) -> str:
        carrier = decisions.flow.ops[found.op].carrier
        shifted = carrier is not None and found.operand >= carrier
        return f"{found.op}#{found.operand + shifted}"

    definition = _site(decisions, conflict.definition)
    return f"read {use(conflict.read)} write {use(conflict.write)} definition {definition}"


def executed_for_test(func: TensorFunc, extents: Sequence[int]) -> str:
    """Run `func` by value and, after copy insertion, in place; text of where the two differ.

    Empty when they agree on every defined element of the results and of the assigned parameters
    that were materialized, and no other parameter was written.
    """
    inserted = insert_copies(func, analyze(func))
    numbers = dict(enumerate(extents))
    start = {
        param.name: np.asarray(np.arange(1.0, 1 + np.prod(shape)).reshape(shape) / (number + 3))
        for number, param in enumerate(func.params)
        for shape in [tuple(evaluate(extent, numbers) for extent in param.type.shape)]
    }
    final = {op.dest.name: op.result for op in func.ops if isinstance(op, Materialize)}
    watched = [*func.results, *final.values()]
    by_value = Evaluator(in_place=False, extents=dict(numbers))
    try:
        expected = by_value.run(func.ops, watched, start)
    except UndefinedConditionError:
        return ""
    memory = {name: array.copy() for name, array in start.items()}
    in_place = Evaluator(in_place=True, extents=dict(numbers))
    found = in_place.run(inserted.ops, inserted.results, memory)
    found += [memory[name].copy() for name in final]
    lines = [
        f"%{value.name}: {got.tolist()} instead of {want.tolist()}"
        for value, got, want in zip(watched, found, expected, strict=True)
        if not np.all(np.isclose(got, want) | np.isnan(want))
    ]
    assigned = {param.name for param in func.assigned}
    lines += [
        f"param %{name} was written"
        for name, array in start.items()
        if name not in assigned and not np.array_equal(array, memory[name])
    ]
    return "\n".join(lines)
