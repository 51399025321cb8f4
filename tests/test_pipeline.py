"""The pipeline: order, texts, and verification around each pass."""

from dataclasses import replace

import pytest

from sparsejit.errors import VerificationError
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.loops import Assign, LoopFunc, Var
from sparsejit.ir.scalar import Arg
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import INDEX, DType, IndexWidths
from sparsejit.pipeline import Pipeline, default_pipeline
from sparsejit.sparsify_and_bufferize import StageOptions


def copying() -> TensorFunc:
    builder = TensorBuilder("copying")
    x = builder.param("x", ("n",), DType.FLOAT64)
    return builder.finish(builder.generic([(x, (0,))], (builder.empty(x.type), (0,)), Arg(0)))


def test_texts_come_in_order() -> None:
    steps: list[str] = []
    default_pipeline(parallelization="none", ordered_reductions=True).run(
        copying(), lambda step, text: steps.append(step)
    )
    chosen = [step for step in steps if step.partition(":")[0] in ("tensor", "decisions", "loops")]
    assert chosen == [
        "tensor",
        "tensor:canonicalize",
        "decisions",
        "loops",
        "loops:simplify-loops",
        "loops:keep-parallel",
        "loops:order-reductions",
    ]


def test_a_wrong_tensor_pass_is_caught_and_named() -> None:
    def forget(func: TensorFunc) -> TensorFunc:
        return replace(func, ops=())

    pipeline = Pipeline((("forget", forget),), StageOptions(), ())
    with pytest.raises(VerificationError, match="after forget"):
        pipeline.run(copying())


def test_a_wrong_loop_pass_is_caught_and_named() -> None:
    def assign_unknown(func: LoopFunc) -> LoopFunc:
        unknown = Var("unknown", INDEX)
        return replace(func, body=(Assign(unknown, unknown), *func.body))

    pipeline = Pipeline((), StageOptions(), (("assign-unknown", assign_unknown),))
    with pytest.raises(VerificationError, match="after assign-unknown"):
        pipeline.run(copying())


def test_a_broken_trace_is_caught() -> None:
    broken = replace(copying(), params=())
    with pytest.raises(VerificationError, match="after tracing"):
        default_pipeline().run(broken)


def test_the_index_widths_reach_the_stage() -> None:
    for widths in (IndexWidths(32, 32), IndexWidths(64, 32), IndexWidths(64, 64)):
        assert default_pipeline().with_index_widths(widths).stage_options.index_widths == widths
