"""Kernels run by Numba's CUDA simulator, a thread each: a program of its own.

    NUMBA_ENABLE_CUDASIM=1 python -m tests.support.simulated_kernels

The simulator is chosen when Numba is imported. It has no warps: a block of 32 threads is one here,
and what its lanes exchange goes through shared memory. Its threads are scheduled by the operating
system, unlike those of a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api import _target
from sparsejit.backends import support
from sparsejit.backends._names import IMPORTED_FROM_NUMPY
from sparsejit.backends.numba_cuda import device, kernel_codes
from sparsejit.ir.device_code import KernelCode
from sparsejit.ir.loops import LoopFunc
from tests.support.kernel_replay import ReplayBackend

cuda: Any = import_module("numba.cuda")

_EXCHANGES = """
def vote(flag):
    flags = cuda.shared.array(32, int64)
    flags[cuda.threadIdx.x] = flag
    cuda.syncthreads()
    lanes = int64(sum(1 << lane for lane in range(32) if flags[lane]))
    cuda.syncthreads()
    return lanes


def peers(key):
    keys = cuda.shared.array(32, int64)
    keys[cuda.threadIdx.x] = key
    cuda.syncthreads()
    lanes = int64(sum(1 << lane for lane in range(32) if keys[lane] == key))
    cuda.syncthreads()
    return lanes


def shuffle(value, distance):
    values = cuda.shared.array(32, float64)
    values[cuda.threadIdx.x] = value
    cuda.syncthreads()
    other = type(value)(values[cuda.threadIdx.x ^ distance])
    cuda.syncthreads()
    return other
"""


def simulated(func: LoopFunc) -> dict[str, KernelCode]:
    """Return the kernels of a function, run by the simulator instead of a replay."""
    codes = kernel_codes(func)
    return {name: replace(c, block=32, replay=_kernel(c)) for name, c in codes.items()}


def _kernel(code: KernelCode) -> Callable[[Sequence[Any], int, int], None]:
    names: dict[str, Any] = {name: getattr(np, name) for name in IMPORTED_FROM_NUMPY}
    names |= {name: getattr(support, name) for name in support.__all__}
    names |= {name: getattr(device, name) for name in device.__all__}
    text = code.text[code.text.index(f"def {code.entry}(") :]
    text = text.replace("cuda.laneid", "cuda.threadIdx.x")
    text = text.replace("cuda.syncwarp()", "cuda.syncthreads()")
    names["cuda"] = cuda
    exec(compile(_EXCHANGES + text, f"<simulation of {code.entry}>", "exec"), names)
    kernel = cuda.jit(names[code.entry])

    def run(arguments: Sequence[Any], blocks: int, seed: int) -> None:
        flat = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in arguments]
        kernel[blocks, 32](*flat)

    return run


def main() -> None:
    """Compare sums, a product with a vector and one with a sparse matrix with SciPy's."""
    rng = np.random.default_rng(4)
    A = sp.csr_array(sp.random_array((2, 36), density=0.95, rng=rng))
    B = sp.csr_array(sp.random_array((1, 2), density=1.0, rng=rng))
    x = rng.random(36)
    with patch.object(_target, "BACKENDS", {"interpreter": ReplayBackend(codes=simulated)}):
        jit = sj.sparse_jit(target="interpreter")
        np.testing.assert_allclose(jit(lambda A, x: A @ x)(A, x), A.toarray() @ x)
        np.testing.assert_allclose(jit(lambda A: A.sum(axis=0))(A), A.toarray().sum(axis=0))
        product = jit(lambda A, B: A @ B)(B, A)
    assert product.has_canonical_format
    np.testing.assert_allclose(product.toarray(), (B @ A).toarray())
    print("simulated kernels are right")


if __name__ == "__main__":
    main()
