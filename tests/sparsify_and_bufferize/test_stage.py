"""The contract of the atomic stage: one door, its options, its refusals, its failures."""

import inspect

import pytest

import sparsejit.sparsify_and_bufferize as stage
from sparsejit.errors import UnsupportedError, VerificationError
from sparsejit.formats import BSR, CSC, CSR, DCSR, DIA, Batched, Dense
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.facts import FactKind
from sparsejit.ir.loops import Alloc, LoopFunc
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import DType, IndexWidths
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from tests.sparsify_and_bufferize.programs import SUM, contraction, elementwise

F64 = DType.FLOAT64


def _texts(func: TensorFunc, kind: FactKind) -> list[str]:
    return [fact.text for fact in sparsify_and_bufferize(func).facts if fact.kind is kind]


def test_one_public_function() -> None:
    functions = [name for name in stage.__all__ if inspect.isfunction(getattr(stage, name))]
    assert functions == ["sparsify_and_bufferize"]


@pytest.mark.parametrize(
    "switch", ["allow_return_allocs", "function_boundaries", "create_deallocs"]
)
def test_analysis_switches_do_not_lower(switch: str) -> None:
    func = contraction(CSR, Dense(2), Dense(2))
    with pytest.raises(UnsupportedError) as caught:
        sparsify_and_bufferize(func, StageOptions(**{switch: False}))  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"lowering with {switch}=False\n  this switch is for looking at decisions only"
    )


def test_memory_space_must_be_inferred() -> None:
    with pytest.raises(UnsupportedError, match="could not infer memory space"):
        sparsify_and_bufferize(
            contraction(CSR, Dense(2), Dense(2)), StageOptions(memory_space=None)
        )


def test_allocations_live_in_the_given_space() -> None:
    options = StageOptions(memory_space=3)
    loops = sparsify_and_bufferize(contraction(CSR, Dense(2), Dense(2)), options)
    assert [stmt.memref.space for stmt in loops.body if isinstance(stmt, Alloc)] == [3]


def test_initialized_buffers() -> None:
    options = StageOptions(initialize_buffers=True)
    loops = sparsify_and_bufferize(contraction(CSR, Dense(2), Dense(2)), options)
    fills = [stmt.fill for stmt in loops.body if isinstance(stmt, Alloc)]
    assert fills == [Const(0.0, F64)]


@pytest.mark.parametrize(
    ("widths", "dtypes"),
    [
        (IndexWidths(32, 32), (DType.INT32, DType.INT32)),
        (IndexWidths(64, 32), (DType.INT64, DType.INT32)),
        (IndexWidths(64, 64), (DType.INT64, DType.INT64)),
    ],
)
def test_automatic_index_widths(widths: IndexWidths, dtypes: tuple[DType, DType]) -> None:
    options = StageOptions(index_widths=widths)
    (result,) = sparsify_and_bufferize(elementwise(SUM, CSR, CSR, CSR), options).results
    positions, coordinates, _ = result.buffers  # type: ignore[union-attr]
    assert (positions.dtype, coordinates.dtype) == dtypes


def test_a_failure_fails_the_whole() -> None:
    """An operation that cannot be lowered leaves nothing behind: no partial function."""
    batched = Batched(CSR)
    builder = TensorBuilder("f")
    A = builder.param("A", ("b", "m", "n"), F64, Dense(3))
    C = builder.empty(builder.tensor_type(("b", "m", "n"), F64, batched))
    func = builder.finish(builder.generic([(A, (0, 1, 2))], (C, (0, 1, 2)), Arg(0)))
    with pytest.raises(UnsupportedError) as caught:
        sparsify_and_bufferize(func)
    assert "a result with a batch level (level 0) must have the pattern of one operand" in str(
        caught.value
    )


def test_a_lowered_function_is_no_input() -> None:
    loops = sparsify_and_bufferize(contraction(CSR, Dense(2), Dense(2)))
    assert isinstance(loops, LoopFunc)
    with pytest.raises((VerificationError, AttributeError)):
        sparsify_and_bufferize(loops)  # type: ignore[arg-type]


def test_observers_get_text() -> None:
    seen: list[tuple[str, object]] = []
    sparsify_and_bufferize(
        contraction(CSR, CSR, CSR), observe=lambda step, text: seen.append((step, text))
    )
    steps = ["rewritten", "mlir", "decisions", "copies", "lattices"]
    assert [step for step, _ in seen] == steps
    assert all(type(text) is str for _, text in seen)


@pytest.mark.parametrize(
    ("func", "order", "storage"),
    [
        (contraction(CSR, Dense(2), Dense(2)), "i, k, j", "dense"),
        (
            contraction(CSR, CSC, CSR),  # the inner products of all rows and columns would be slow
            "i, k, j",
            "appended row by row through a dense workspace",
        ),
        (elementwise(SUM, CSR, DIA, CSR), "i, j", "appended in order"),
        (elementwise(SUM, DCSR, DCSR, DCSR), "i, j", "appended in order"),
        (
            elementwise(Binary(BinaryOp.MUL, Arg(0), Arg(1)), BSR(2, 2), Dense(2), BSR(2, 2)),
            "i_o, j_o, i_i, j_i",
            "the pattern of A",
        ),
        (
            elementwise(Binary(BinaryOp.MUL, Arg(0), Arg(1)), CSR, CSC, CSR),
            "i, j; B searched, stored in another order",
            "some entries of A, moved together in the end",
        ),
    ],
)
def test_choices_are_told(func: TensorFunc, order: str, storage: str) -> None:
    assert _texts(func, FactKind.LOOP_ORDER)[-1] == order
    assert _texts(func, FactKind.STORAGE)[-1] == storage


def test_conversions_are_told() -> None:
    (text,) = _texts(elementwise(SUM, CSR, CSC, CSR), FactKind.CONVERSION)
    assert text == "B from csc to csr, in time linear in its stored entries"
