"""How long a call may take on the CPU and on a device, to choose the target of ``"auto"``.

In: a program, the numbers of a call, what its operands store. Out: seconds on either side, told by
``explain``. The model is rough: so many products a second, bytes that move, a start of each kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, evaluate
from sparsejit.ir.tensor import For, Generic, TensorFunc, Value, While
from sparsejit.ir.walk import all_ops

__all__ = ["Estimate", "estimate"]

CPU_VISITS = 1e9
DEVICE_VISITS = 1e11
"""Loop iterations a second: a core or two, and a data-center GPU whose memory is the limit."""
BYTES = {"regular-dma": 6e9, "pinned-dma": 2e10, "zero-copy": 2e10}
"""Bytes a second between host and device, by transfer strategy."""
_MOST_INDUCTION_VARIABLES = 64
CALL_SECONDS, KERNEL_SECONDS = 5e-5, 1e-5


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds on the CPU, and on a device with transfers."""

    cpu: float
    device: float

    def __str__(self) -> str:
        return (
            f"it is estimated at {_text(self.cpu)} on the cpu and {_text(self.device)} on the "
            "device, transfers included"
        )


def estimate(
    func: TensorFunc, numbers: Sequence[int], stored: Sequence[int], moved: int, transfer: str
) -> Estimate:
    """Return the estimate for a call: ``stored`` counts each parameter's values.

    ``moved`` are the bytes of operands that are not on the device yet. Loops that run an unknown
    number of times count once.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> str(estimate(TensorBuilder("nothing").finish(), (), (), 0, "pinned-dma"))
    'it is estimated at 0 us on the cpu and 50 us on the device, transfers included'
    """
    numbers = (*numbers, *(1,) * _MOST_INDUCTION_VARIABLES)
    counts = {
        param.name: (count, _size(param, numbers))
        for param, count in zip(func.params, stored, strict=False)
        if not param.type.format.is_dense
    }
    ops = list(all_ops(func.ops))
    visits = sum(_visits(op, numbers, counts) for op in ops if isinstance(op, Generic))
    kernels = sum(isinstance(op, Generic | For | While) for op in ops)
    results = sum(_size(result, numbers) * 8 for result in func.results if _is_dense(result))
    device = CALL_SECONDS + kernels * KERNEL_SECONDS + visits / DEVICE_VISITS
    return Estimate(visits / CPU_VISITS, device + (moved + results) / BYTES[transfer])


def _visits(op: Generic, numbers: Sequence[int], counts: dict[str, tuple[int, int]]) -> float:
    """Return how often the innermost loop runs, if entries are spread evenly."""
    space = float(prod(evaluate(extent, numbers) for extent in op.extents))
    seen: set[frozenset[int]] = set()
    for value, map in zip(op.inputs, op.indexing_maps, strict=False):
        loops = frozenset(expr.index for expr in map.results if isinstance(expr, Dim))
        if value.name in counts and loops not in seen:
            seen.add(loops)
            count, size = counts[value.name]
            space *= min(count / max(size, 1), 1.0)
    return space


def _is_dense(value: Value) -> bool:
    return value.type.format.is_dense


def _size(value: Value, numbers: Sequence[int]) -> int:
    return int(prod(evaluate(extent, numbers) for extent in value.type.shape))


def _text(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"
