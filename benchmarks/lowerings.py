"""What each lowering gives: kernels compiled with all of them, and without one at a time.

    python -m benchmarks.lowerings              all kernels, minutes
    python -m benchmarks.lowerings --quick      smaller inputs, under a minute
    python -m benchmarks.lowerings spmm max     names with one of these words only

The lowerings are general: none knows the name of a kernel. "best product" is one that no library
has: the largest product of an entry of a tensor with elements of three dense arrays, for each row
and column of the result. A number is the time without a lowering over the time with all; larger
than 1: it helps. Processor time of one thread, least of rounds in turn, which takes others on the
machine out. ``SPARSEJIT_WITHOUT`` leaves lowerings out of any program. All results are compared.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["SPARSEJIT_NUM_THREADS"] = "1"

import numpy as np

import sparsejit as sj
from benchmarks.inputs import half_overlap, uniform

Arguments = tuple[Any, ...]
COLUMNS = ("tiles", "prefetch", "sums", "nests", "bitmaps", "tables", "merges")


def spmm(A: Any, X: Any) -> Any:
    return A @ X


def sddmm(S: Any, U: Any, V: Any) -> Any:
    return S * (U @ V.T)


def attention(S: Any, Q: Any, K: Any, V: Any) -> Any:
    return sj.softmax(S * (Q @ K.T), axis=1) @ V


def product(A: Any, B: Any) -> Any:
    return A @ B


def masked_product(M: Any, A: Any, B: Any) -> Any:
    return M * (A @ B)


def total(A: Any, B: Any) -> Any:
    return A + B


def best_product(X: Any, B: Any, C: Any, d: Any) -> Any:
    return sj.einsum("ijk,jr,kr,r->ir", X, B, C, d, semiring="max_times")


def kernels(size: int) -> dict[str, tuple[Callable[..., Any], Arguments]]:
    """Return functions and operands by name; matrices of ``size`` rows with ten entries each."""
    rng = np.random.default_rng(7)
    A = uniform(size, 10 * size, 1)
    B = half_overlap(A, 2)
    X, U, V = (rng.random((size, 64)) for _ in range(3))
    extent = 300
    places = tuple(rng.integers(0, extent, 10 * size) for _ in range(3))
    tensor = sj.from_coo(places, rng.random(10 * size), (extent,) * 3, format=sj.CSF(3))
    factors = rng.random((extent, 32)), rng.random((extent, 32)), rng.random(32)
    return {
        "spmm 64": (spmm, (A, X)),
        "sddmm 64": (sddmm, (A, U, V)),
        "attention 64": (attention, (A, U, V, X)),
        "spgemm": (product, (A, B)),
        "masked product": (masked_product, (A, A, B)),
        "add": (total, (A, B)),
        "best product": (best_product, (tensor, *factors)),
    }


def compiled(fn: Callable[..., Any], arguments: Arguments, without: str) -> Callable[[], Any]:
    """Return a call of ``fn`` compiled without a lowering, none where it is empty."""
    os.environ["SPARSEJIT_WITHOUT"] = without
    kernel = sj.sparse_jit(fn)
    kernel(*arguments)
    return lambda: kernel(*arguments)


def values_of(result: Any) -> Any:
    return result.data if hasattr(result, "indptr") else result


def row(name: str, fn: Callable[..., Any], arguments: Arguments, rounds: int) -> str:
    """Return the line of the table of one kernel."""
    calls = [compiled(fn, arguments, without) for without in ("", *COLUMNS)]
    expected = values_of(calls[0]())
    for call in calls[1:]:
        np.testing.assert_allclose(values_of(call()), expected, rtol=1e-9)
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, own in zip(calls, times, strict=True):
            start = time.thread_time()
            call()
            own.append(time.thread_time() - start)
    whole, *others = map(min, times)
    ratios = " | ".join(f"{other / whole:.2f}" for other in others)
    return f"| {name} | {1e3 * whole:.3g} | {ratios} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="kernels with one of these words in their names")
    parser.add_argument("--quick", action="store_true", help="smaller inputs")
    asked = parser.parse_args()
    found = {
        name: kernel
        for name, kernel in kernels(10_000 if asked.quick else 100_000).items()
        if not asked.words or any(word in name for word in asked.words)
    }
    if not found:
        parser.error(f"no kernel has one of {', '.join(asked.words)} in its name")
    print(f"Load {os.getloadavg()[0]:.1f}; time without a lowering over the time with all.\n")
    print("| kernel | ms | " + " | ".join(COLUMNS) + " |")
    print("|" + " --- |" * (2 + len(COLUMNS)))
    for name, (fn, arguments) in found.items():
        print(row(name, fn, arguments, 5 if asked.quick else 9), flush=True)


if __name__ == "__main__":
    main()
