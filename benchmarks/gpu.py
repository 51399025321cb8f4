"""A device measured in one run: its tests, the transfer strategies, launches, kernels beside CuPy.

    python benchmarks/gpu.py                  under four minutes; the table comes last
    python benchmarks/gpu.py --out table.md   the table into a file as well
    python benchmarks/gpu.py --no-tests       measurements only

The tests are ``pytest -m gpu`` in a process of its own. Operands of kernels lie on the device and
are warm; a time is the median of rounds in which the contenders take turns. Where ``nvmath`` is
installed it takes part. ``SPARSEJIT_DEVICE=fake`` tries the script without a device; its times mean
nothing then.
"""

import argparse
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparsejit as sj

Run = Callable[[], Any]
Row = tuple[str, ...]

STRATEGIES = ("regular-dma", "pinned-dma", "zero-copy")
ROOT = Path(__file__).parent.parent
IS_FAKE = os.environ.get("SPARSEJIT_DEVICE") == "fake"


@dataclass(frozen=True)
class Contest:
    """Ways to compute one thing, the first one ours."""

    what: str
    runs: dict[str, Run]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="a file for the table")
    parser.add_argument("--rounds", type=int, default=3 if IS_FAKE else 15, help="(%(default)s)")
    parser.add_argument("--no-tests", action="store_true", help="measure only")
    parser.add_argument(
        "--deadline", type=float, default=230.0, help="seconds in all (%(default)s)"
    )
    options = parser.parse_args()
    end = time.monotonic() + options.deadline
    lines = [f"# {device_name()}", "", *environment(), ""]
    if not options.no_tests:
        lines += [tests_line(end), ""]
    lines += table(("transfer", "1 MB", "16 MB", "256 MB"), transfers(options.rounds, end))
    lines += table(("launch", "median"), launches(options.rounds))
    heads = ("kernel", "sparsejit", "CuPy", "nvmath", "the best other / sparsejit")
    lines += table(heads, kernels(options.rounds, end))
    text = "\n".join(lines)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


# ---------------------------------------------------------------- what is measured, where


def device_name() -> str:
    if IS_FAKE:
        return "the fake device"
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


def environment() -> Iterator[str]:
    today = time.strftime("%Y-%m-%d")
    yield f"{today}, Python {platform.python_version()}, sparsejit {sj.__version__}"
    if not IS_FAKE:
        import cupy

        runtime = cupy.cuda.runtime
        yield f"CuPy {cupy.__version__}, driver {runtime.driverGetVersion()}"


def tests_line(end: float) -> str:
    """Run the tests that want a device; say how they went."""
    left = max(end - time.monotonic() - 90, 30)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu", "-p", "no:randomly"]
    if importlib.util.find_spec("xdist") is not None:  # most of their time is compilation
        command += ["-n", str(min(os.cpu_count() or 1, 8))]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return f"tests: stopped after {left:.0f} s"
    summary = [line for line in done.stdout.splitlines() if " passed" in line or " failed" in line]
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    return "\n".join(["tests: " + (summary[-1] if summary else done.stdout[-300:]), *failed[:20]])


def medians(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    """Return the median time of each run in seconds; the runs take turns, two rounds warm up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 2):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            wait()
            if number >= 2:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def wait() -> None:
    if not IS_FAKE:
        import cupy

        cupy.cuda.runtime.deviceSynchronize()


# ---------------------------------------------------------------- transfers and launches


def transfers(rounds: int, end: float) -> Iterator[Row]:
    """Yield, for each strategy, the bytes a second at which a kernel gets to see host memory."""
    sizes = (1 / 256,) * 3 if IS_FAKE else (1, 16, 256)
    for strategy in STRATEGIES:
        total = sj.sparse_jit(lambda x: x.sum(), target="cuda", transfer=strategy)
        speeds = []
        for megabytes in sizes:
            x = np.ones(int(megabytes * 2**20) // 8)
            if time.monotonic() > end - 60:
                speeds.append("no time left")
                continue
            found = medians({"ours": lambda x=x, total=total: total(x)}, min(rounds, 7))["ours"]
            speeds.append(f"{x.nbytes / found / 1e9:.2f} GB/s")
        yield (strategy, *speeds)


def launches(rounds: int) -> Iterator[Row]:
    """Yield the time of the smallest calls."""
    A, x = sp.eye_array(10, format="csr"), np.ones(10)
    function = sj.sparse_jit(lambda A, x: A @ x, target="cuda")
    plan = function.bind(A=A)
    runs: dict[str, Run] = {
        "SpMV of 10 entries, operands on the host": lambda: function(A, x),
        "the same, bound": lambda: plan(x=x),
    }
    if not IS_FAKE:
        device_A, device_x = on_device(A), on_device(x)
        bound = function.bind(A=device_A)
        runs["the same, operands on the device"] = lambda: function(device_A, device_x)
        runs["the same, bound, operands on the device"] = lambda: bound(x=device_x)
    for name, seconds in medians(runs, 3 * rounds).items():
        yield name, f"{seconds * 1e6:.1f} us"


# ---------------------------------------------------------------- kernels


def on_device(operand: Any) -> Any:
    """Return a host operand on the device, as CuPy has it (the fake device takes host operands)."""
    if IS_FAKE:
        return operand
    import cupy
    import cupyx.scipy.sparse as cs

    return cs.csr_matrix(operand) if sp.issparse(operand) else cupy.asarray(operand)


def uniform(rows: int, columns: int, stored: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    places = rng.integers(0, rows, stored), rng.integers(0, columns, stored)
    return sp.coo_array((rng.random(stored) + 0.1, places), (rows, columns)).tocsr()


def skewed(rows: int, columns: int, stored: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    places = (
        (rng.pareto(1.1, stored) * rows / 200).astype(int) % rows,
        rng.integers(0, columns, stored),
    )
    return sp.coo_array((rng.random(stored) + 0.1, places), (rows, columns)).tocsr()


def contests() -> Iterator[Contest]:
    size = 24 if IS_FAKE else 200_000
    for name, make in (("uniform", uniform), ("skewed", skewed)):
        A = on_device(make(size, size, 20 * size, 1))
        B = on_device(make(size, size, 20 * size, 2))
        x, X = on_device(np.ones(size)), on_device(np.ones((size, 64)))
        U, V = on_device(np.ones((size, 32))), on_device(np.ones((32, size)))
        ours = {
            "SpMV": jit(lambda A, x: A @ x, A, x),
            "SpMM, 64 columns": jit(lambda A, X: A @ X, A, X),
            "SDDMM, 32": jit(lambda S, U, V: sj.where_stored(S, U @ V), A, U, V),
            "sparse add": jit(lambda A, B: A + B, A, B),
            "row maxima": jit(lambda A: A.max(axis=1), A),
        }
        if name == "uniform":
            ours["SpGEMM"] = jit(lambda A, B: A @ B, A, B)
            ours["SpGEMM, generated"] = jit(lambda A, B: A @ B, A, B, library="never")
            ours["to columns"] = jit(lambda A: A.astype(A.dtype), A, output=sj.CSC)
        for what, run in ours.items():
            yield Contest(f"{what} ({name})", {"sparsejit": run, **others(what, A, B, x, X)})
        generated = jit(lambda A, x: A @ x, A, x, library="never")
        yield Contest(
            f"SpMV, generated ({name})", {"sparsejit": generated, **others("SpMV", A, B, x, X)}
        )


def jit(
    function: Callable[..., Any], *operands: Any, library: str = "auto", output: Any = None
) -> Run:
    compiled = sj.sparse_jit(function, target="cuda", library=library, output=output)
    return lambda: compiled(*operands)


def others(what: str, A: Any, B: Any, x: Any, X: Any) -> dict[str, Run]:
    """Return what CuPy and nvmath have for a kernel."""
    if IS_FAKE:
        return {}
    found: dict[str, Run] = {}
    match what.partition(",")[0]:
        case "SpMV":
            found["CuPy"] = lambda: A @ x
        case "SpMM":
            found["CuPy"] = lambda: A @ X
        case "sparse add":
            found["CuPy"] = lambda: A + B
        case "SpGEMM":
            found["CuPy"] = lambda: A @ B
        case "to columns":
            found["CuPy"] = A.tocsc
        case "row maxima":
            found["CuPy"] = lambda: A.max(axis=1)
        case _:
            pass
    if importlib.util.find_spec("nvmath") is not None and what in ("SpMV", "SpMM, 64 columns"):
        dense = x if what == "SpMV" else X
        found["nvmath"] = nvmath_product(A, dense)
    return found


def nvmath_product(A: Any, dense: Any) -> Run:
    from nvmath.sparse import matmul

    return lambda: matmul(A, dense)


def kernels(rounds: int, end: float) -> Iterator[Row]:
    for contest in contests():
        if time.monotonic() > end:
            yield contest.what, *["no time left"] * 4
            continue
        try:
            found = medians(contest.runs, rounds)
        except Exception as error:  # one kernel that fails is a row of the table, not its end
            yield contest.what, f"{type(error).__name__}: {error}".splitlines()[0], "", "", ""
            continue
        times = [
            f"{found[k] * 1e3:.3f} ms" if k in found else ""
            for k in ("sparsejit", "CuPy", "nvmath")
        ]
        rest = [seconds for name, seconds in found.items() if name != "sparsejit"]
        ratio = f"{min(rest) / found['sparsejit']:.2f}" if rest else ""
        yield contest.what, *times, ratio


def table(heads: Row, rows: Iterator[Row]) -> list[str]:
    body = [f"| {' | '.join(row)} |" for row in (heads, ("---",) * len(heads), *rows)]
    return [*body, ""]


if __name__ == "__main__":
    main()
