"""The target of a call, and why: which backend runs it, or what keeps it from running.

In: the decorator's options, the environment and the operands. Out: a ``Target``. "auto" is cuda
where an operand lies on a device, or where a device is at hand and the estimated time, transfers
included, is lower. Without a device "cuda" can be lowered and explained; calling it says what is
missing on this machine. On the CPU the backend is LLVM; ``SPARSEJIT_CPU_BACKEND=numba`` has the
generated Python compiled by Numba instead, to compare the two.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparsejit._dataclasses import dataclass
from sparsejit.api._estimates import Estimate
from sparsejit.api._left_out import NESTS, left_out
from sparsejit.api._options import JitOptions, wanted_target
from sparsejit.backends import BACKENDS, Backend
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.errors import UnsupportedError
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.user_functions import called_by_tensors
from sparsejit.runtime.at_hand import device_at_hand
from sparsejit.tensors import Operand

if TYPE_CHECKING:
    from sparsejit.api._cuda import CudaBackend

__all__ = [
    "Target",
    "backend_of",
    "check_kept_memory",
    "check_num_threads",
    "choose_target",
    "cuda_backend",
    "decided",
    "refuse_cuda",
    "why_not_cuda",
]


@dataclass(frozen=True, slots=True)
class Target:
    """``name`` is "cpu", "cuda" or "interpreter"; ``reason`` says who chose it.

    ``engine`` names what makes code run there, in texts. ``is_open``: a device is at hand, and an
    estimate of each call decides (``decided``).
    """

    name: str
    reason: str
    engine: str
    is_open: bool = False


NO_DEVICE = "there is no device with a driver and CuPy"
_CPU_BACKENDS = {"llvm": "LLVM", "numba": "Numba"}


def choose_target(options: JitOptions, operands: Sequence[Operand] = ()) -> Target:
    """Return the target of a call; ``ValueError`` where the environment names none."""
    wanted = wanted_target(options)
    asked_by = "the decorator" if options.target != "auto" else "SPARSEJIT_TARGET"
    reason = f"{asked_by} asks for it"
    is_open = False
    if wanted == "auto":
        on_device = any(operand.on_device for operand in operands)
        is_open = not on_device and device_at_hand()
        wanted = "cuda" if on_device else "cpu"
        why = "an operand lies on the device" if on_device else NO_DEVICE
        reason = f'target="auto", and {why}'
    if wanted == "cuda" and not device_at_hand():
        reason += "; no device is at hand"
    match wanted:
        case "cpu":
            return Target("cpu", reason, _CPU_BACKENDS[_cpu_backend()], is_open)
        case "interpreter":
            return Target(wanted, reason, "Python")
        case _:
            return Target(wanted, reason, "Numba")


def decided(target: Target, estimate: Estimate) -> Target:
    """Return an open target as the estimate of a call decides it."""
    reason = f'target="auto", and {estimate}'
    if estimate.device < estimate.cpu:
        return Target("cuda", reason, "Numba", is_open=True)
    return Target("cpu", reason, target.engine, is_open=True)


def _cpu_backend() -> str:
    """Return ``SPARSEJIT_CPU_BACKEND``, or the default; ``ValueError`` for another name."""
    asked = os.environ.get("SPARSEJIT_CPU_BACKEND") or "llvm"
    if asked not in _CPU_BACKENDS:
        choices = ", ".join(map(repr, _CPU_BACKENDS))
        raise ValueError(f"SPARSEJIT_CPU_BACKEND must be one of {choices}, not {asked!r}")
    return asked


def backend_of(target: Target, options: JitOptions) -> Backend:
    """Return the backend of a target."""
    match target.name:
        case "interpreter":
            return BACKENDS["interpreter"]
        case "cpu":
            if target.engine == "LLVM":
                return LlvmBackend(options.reassociate, left_out() - {NESTS})
            from sparsejit.backends.numba_cpu import NumbaBackend

            return NumbaBackend(reassociate=options.reassociate)
        case _:
            return cuda_backend(options)


def cuda_backend(options: JitOptions) -> CudaBackend:
    """Return the backend for devices."""
    from sparsejit.api._cuda import CudaBackend
    from sparsejit.runtime.plan import Strategy

    strategy = Strategy(options.transfer.value)
    return CudaBackend(strategy, options.deterministic, options.library == "only")


def check_num_threads() -> int | None:
    """Return ``SPARSEJIT_NUM_THREADS``, None where it is not set; ``ValueError`` for no number."""
    asked = os.environ.get("SPARSEJIT_NUM_THREADS")
    if not asked:
        return None
    if not asked.isdecimal() or int(asked) < 1:
        raise ValueError(f"SPARSEJIT_NUM_THREADS must be a positive integer, not {asked!r}")
    return int(asked)


def check_kept_memory() -> int | None:
    """Return ``SPARSEJIT_KEPT_MEMORY``, in megabytes, None where it is not set.

    ``ValueError`` for no number.
    """
    asked = os.environ.get("SPARSEJIT_KEPT_MEMORY")
    if not asked:
        return None
    if not asked.isdecimal():
        wanted = "must be a number of megabytes, 0 or more"
        raise ValueError(f"SPARSEJIT_KEPT_MEMORY {wanted}, not {asked!r}")
    return int(asked)


def why_not_cuda(func: TensorFunc) -> str:
    """Return why no GPU can ever run a function, empty where one could."""
    names = ", ".join(dict.fromkeys(function.name for function in called_by_tensors(func)))
    if not names:
        return ""
    return f"only Numba can compile {names}, for the CPU; explain() says what keeps it from more"


def refuse_cuda(func: TensorFunc) -> None:
    """Raise ``UnsupportedError`` for a function that no GPU can run."""
    never = why_not_cuda(func)
    if never:
        raise UnsupportedError(
            f'{func.name} cannot run with target="cuda"',
            hint='use target="cpu" or target="auto"',
            reasons=(never,),
        )
