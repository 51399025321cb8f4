"""The target of a call, and why: which backend runs it, or what keeps it from running.

In: the decorator's options and the environment. Out: a ``Target``. This version has no code
generator for GPUs, so "auto" is the CPU; "cuda" can be lowered and explained, and calling it says
what is missing on this machine. On the CPU the backend is LLVM; ``SPARSEJIT_CPU_BACKEND=numba``
has the generated Python compiled by Numba instead, to compare the two.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NoReturn

from sparsejit.api._options import JitOptions, wanted_target
from sparsejit.backends import BACKENDS, Backend
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.errors import DeviceError, UnsupportedError
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.user_functions import called_by_tensors
from sparsejit.runtime.probe import (
    NO_GPU_CODE,
    cuda_obstacles,
    cupy_version,
    package_version,
    probe_driver,
)

__all__ = [
    "Target",
    "backend_of",
    "check_num_threads",
    "choose_target",
    "refuse_cuda",
    "why_not_cuda",
]


@dataclass(frozen=True, slots=True)
class Target:
    """``name`` is "cpu", "cuda" or "interpreter"; ``reason`` says who chose it.

    ``engine`` names what makes code run there, in texts.
    """

    name: str
    reason: str
    engine: str


_AUTO_REASON = f'target="auto", and {NO_GPU_CODE}'
_CPU_BACKENDS = {"llvm": "LLVM", "numba": "Numba"}


def choose_target(options: JitOptions) -> Target:
    """Return the target of a call; ``ValueError`` where the environment names none."""
    wanted = wanted_target(options)
    asked_by = "the decorator" if options.target != "auto" else "SPARSEJIT_TARGET"
    reason = _AUTO_REASON if wanted == "auto" else f"{asked_by} asks for it"
    match wanted:
        case "auto" | "cpu":
            return Target("cpu", reason, _CPU_BACKENDS[_cpu_backend()])
        case "interpreter":
            return Target(wanted, reason, "Python")
        case _:
            return Target(wanted, reason, "Numba")


def _cpu_backend() -> str:
    """Return ``SPARSEJIT_CPU_BACKEND``, or the default; ``ValueError`` for another name."""
    asked = os.environ.get("SPARSEJIT_CPU_BACKEND") or "llvm"
    if asked not in _CPU_BACKENDS:
        choices = ", ".join(map(repr, _CPU_BACKENDS))
        raise ValueError(f"SPARSEJIT_CPU_BACKEND must be one of {choices}, not {asked!r}")
    return asked


def backend_of(target: Target, options: JitOptions) -> Backend | None:
    """Return the backend of a target, None for cuda."""
    match target.name:
        case "interpreter":
            return BACKENDS["interpreter"]
        case "cpu":
            if target.engine == "LLVM":
                return LlvmBackend(reassociate=options.reassociate)
            from sparsejit.backends.numba_cpu import NumbaBackend

            return NumbaBackend(reassociate=options.reassociate)
        case _:
            return None


def check_num_threads() -> int | None:
    """Return ``SPARSEJIT_NUM_THREADS``, None where it is not set; ``ValueError`` for no number."""
    asked = os.environ.get("SPARSEJIT_NUM_THREADS")
    if not asked:
        return None
    if not asked.isdecimal() or int(asked) < 1:
        raise ValueError(f"SPARSEJIT_NUM_THREADS must be a positive integer, not {asked!r}")
    return int(asked)


def why_not_cuda(func: TensorFunc) -> str:
    """Return why no GPU can ever run a function, empty where one could."""
    names = ", ".join(dict.fromkeys(function.name for function in called_by_tensors(func)))
    if not names:
        return ""
    return f"only Numba can compile {names}, for the CPU; explain() says what keeps it from more"


def refuse_cuda(func: TensorFunc) -> NoReturn:
    """Raise what a call with target "cuda" raises: ``DeviceError`` naming all that is missing.

    On a machine where nothing is missing, and for a function that no GPU can run, it is
    ``UnsupportedError``.
    """
    never = why_not_cuda(func)
    if never:
        raise UnsupportedError(
            f'{func.name} cannot run with target="cuda"',
            hint='use target="cpu" or target="auto"',
            reasons=(never,),
        )
    driver = probe_driver()
    obstacles = cuda_obstacles(driver, cupy_version(), package_version("numba-cuda"))
    hint = 'use target="cpu" or target="auto"'
    if obstacles:
        raise DeviceError(f'target="cuda" cannot run: {"; ".join(obstacles)}', hint=hint)
    raise UnsupportedError('target="cuda" cannot run', hint=hint, reasons=(NO_GPU_CODE,))
