"""sparsejit and its peers in one process, interleaved round by round; results go to a JSON file.

    python -m benchmarks.run                       everything, an hour or two
    python -m benchmarks.run --quick               small inputs, under 3 minutes
    python -m benchmarks.run --kernels spmv,add --inputs tiny --peers scipy,numba
    python -m benchmarks.table results.json        the tables, in Markdown

A peer that is not installed is skipped, and the table says so. Each result is checked. Every round
runs each peer once, in turn, and the order is turned round by round. First calls are timed in fresh
processes, with an empty cache and again with the cache that left.
"""

import argparse
import gc
import glob
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS = os.environ.setdefault("BENCHMARK_THREADS", str(len(os.sched_getaffinity(0))))
for _name in ("OMP", "MKL", "NUMBA", "OPENBLAS"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", THREADS)
os.environ.setdefault("SPARSEJIT_NUM_THREADS", THREADS)
# Threads that wait for work must not disturb whoever is timed next.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")
for _path in sorted(glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))):
    os.environ.setdefault("MKL_RT", _path)

import numpy as np  # noqa: E402 threads are chosen before libraries start them

from benchmarks.kernels import Cell, cells, error, operands, reference, traffic  # noqa: E402 as above

PEERS = {
    "sparsejit": "benchmarks.peers_extra",
    **{
        name: f"benchmarks.peers.{name}_peer"
        for name in ("scipy", "numba", "pydata", "torch", "graphblas", "mkl", "tensora")
    },
}
_REQUIRES = {"pydata": "sparse", "mkl": "sparse_dot_mkl"}
_FIRST = (Cell("spmv", "tiny"), Cell("sddmm", "tiny"), Cell("fused_attn", "tiny"))
_FIRST_PEERS = ("sparsejit", "scipy", "numba", "pydata", "tensora")


def load_peers(wanted: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the peers that are installed, and why the others are left out."""
    found, missing = {}, {}
    for name in wanted:
        requires = _REQUIRES.get(name, name)
        if importlib.util.find_spec(requires) is None:
            missing[name] = f"{requires} is not installed"
            continue
        try:
            found[name] = importlib.import_module(PEERS[name])
        except Exception as problem:  # a broken installation of one peer must not stop the others
            missing[name] = f"{type(problem).__name__}: {problem}"
    return found, missing


def prepared(peer: Any, cell: Cell, a: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Return what to time, and what makes an array of its result."""
    name = "spmm" if cell.kernel.startswith("spmm") else cell.kernel
    kernel = getattr(peer, name, None)
    if kernel is None:
        raise NotImplementedError("has no such kernel")
    made = kernel(a)
    return made if isinstance(made, tuple) else (made, lambda result: result)


def resident(field: str) -> float:
    """Return a size from the process's status, in MB."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


def peak_of(run: Callable[[], Any]) -> float:
    """Return how many MB one call needs on top of what is resident."""
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


def timed(run: Callable[[], Any], repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        run()
    return (time.perf_counter() - start) / repeat


def measure(cell: Cell, peers: dict[str, Any], rounds: int, slow: float) -> dict[str, Any]:
    """Return the times of all peers on one cell."""
    a = operands(cell)
    expected = reference(cell, a)
    tolerance = 1e-9 if cell.dtype == "float64" else 2e-4
    found: dict[str, Any] = {}
    live: list[tuple[str, Callable[[], Any], int, float]] = []
    for name, peer in peers.items():
        try:
            run, as_array = prepared(peer, cell, a)
            wrong = error(as_array(run()), expected)
            estimate = timed(run, 1)
            row = {"error": wrong, "right": wrong <= tolerance, "peak_mb": peak_of(run)}
        except Exception as problem:  # what a peer cannot do is a row of the table
            found[name] = {"skipped": f"{type(problem).__name__}: {str(problem)[:120]}"}
            continue
        found[name] = row
        live.append((name, run, max(1, min(2000, int(0.002 / max(estimate, 1e-7)))), estimate))
    samples: dict[str, list[float]] = {name: [] for name, *_ in live}
    gc.disable()
    for number in range(rounds):
        for name, run, repeat, estimate in live[number % len(live) :] + live[: number % len(live)]:
            if number < 3 or estimate < slow:
                run()
                samples[name].append(timed(run, repeat))
    gc.enable()
    for name, times in samples.items():
        low, middle, high = np.percentile(times, [25, 50, 75])
        found[name] |= {
            "least": min(times),
            "median": float(middle),
            "spread": float((high - low) / middle),
            "samples": len(times),
        }
    return {**vars(cell), "traffic": traffic(cell, a), "peers": found, "load": os.getloadavg()[0]}


def bandwidth() -> float:
    """Return the largest rate of copying in GB/s, with one thread of NumPy a core."""
    from concurrent.futures import ThreadPoolExecutor

    count = int(THREADS)
    pairs = [(np.ones(1 << 24), np.ones(1 << 24)) for _ in range(count)]
    moved = 2 * sum(source.nbytes for source, _ in pairs)
    best = float("inf")
    with ThreadPoolExecutor(count) as pool:
        for _ in range(8):
            start = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(*pair), pairs))
            best = min(best, time.perf_counter() - start)
    return moved / best / 1e9


def first_call(name: str, cell: Cell) -> None:
    """Print how long import and first call take in this process; run in a fresh one."""
    import scipy.sparse  # noqa: F401 every peer needs it

    a = operands(cell)
    peer = None
    start = time.perf_counter()
    peer = importlib.import_module(PEERS[name])
    imported = time.perf_counter()
    run, _ = prepared(peer, cell, a)
    run()
    done = time.perf_counter()
    print(json.dumps({"import": imported - start, "first": done - imported,
                      "warm": min(timed(run, 1) for _ in range(50)),
                      "peak_mb": resident("VmHWM")}))  # fmt: skip


def first_calls(names: list[str]) -> list[dict[str, Any]]:
    """Return the first calls of some peers in fresh processes, the caches empty and filled."""
    rows = []
    for cell in _FIRST:
        for name in names:
            with tempfile.TemporaryDirectory() as cache:
                environment = {
                    **os.environ,
                    "SPARSEJIT_CACHE_DIR": cache,
                    "NUMBA_CACHE_DIR": cache,
                }
                for state in ("empty", "filled"):
                    command = ["-m", "benchmarks.run", "--first", f"{name}/{cell.kernel}"]
                    done = subprocess.run(
                        [sys.executable, *command],
                        env=environment, capture_output=True, text=True,
                    )  # fmt: skip
                    if done.returncode == 0:
                        measured = json.loads(done.stdout.splitlines()[-1])
                        rows.append(
                            {"peer": name, "kernel": cell.kernel, "cache": state, **measured}
                        )
    return rows


def _chosen(parser: argparse.ArgumentParser, asked: str, known: list[str]) -> list[str]:
    """Return the names that are asked for, all where none is; a wrong one ends the program."""
    names = asked.split(",") if asked else list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            parser.error(f"{name!r} is none of {', '.join(dict.fromkeys(known))}")
    return names


def _rounds(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("there is at least one round")
    return number


def main() -> None:
    """Measure, and write the results after every cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small inputs")
    parser.add_argument("--kernels", default="", help="names with commas between (all)")
    parser.add_argument("--inputs", default="", help="names with commas between (all)")
    parser.add_argument("--peers", default=",".join(PEERS), help="(%(default)s)")
    parser.add_argument("--rounds", type=_rounds, default=None, help="(9, or 5 with --quick)")
    parser.add_argument("--out", default="results.json", help="file of results (%(default)s)")
    parser.add_argument("--first", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.first:
        name, kernel = asked.first.split("/")
        first_call(name, Cell(kernel, "tiny"))
        return
    known = list(cells(quick=asked.quick))
    kernels = _chosen(parser, asked.kernels, [cell.kernel for cell in known])
    inputs = _chosen(parser, asked.inputs, [cell.data for cell in known])
    known = [cell for cell in known if cell.kernel in kernels and cell.data in inputs]
    if not known:
        parser.error("none of these kernels is measured on one of these inputs")
    if not Path(asked.out).absolute().parent.is_dir():
        parser.error(f"the folder of {asked.out} does not exist")
    peers, missing = load_peers(_chosen(parser, asked.peers, list(PEERS)))
    for name, reason in missing.items():
        print(f"without {name}: {reason}")
    results: dict[str, Any] = {
        "started": time.strftime("%Y-%m-%d %H:%M"), "threads": int(THREADS), "quick": asked.quick,
        "bandwidth": bandwidth(), "missing": missing, "cells": [], "first": [],
    }  # fmt: skip
    rounds = asked.rounds or (5 if asked.quick else 9)
    slow = 0.05 if asked.quick else 0.5
    for cell in known:
        try:
            found = measure(cell, peers, rounds, slow)
        except FileNotFoundError as problem:
            print(f"without {cell.data}: {problem}")
            continue
        results["cells"].append(found)
        times = {n: f"{1e3 * p['median']:.3g}" for n, p in found["peers"].items() if "median" in p}
        print(f"{cell.kernel} {cell.data} {cell.dtype}, ms: {times}", flush=True)
        Path(asked.out).write_text(json.dumps(results, indent=1))
    results["first"] = first_calls([name for name in _FIRST_PEERS if name in peers])
    results["bandwidth"] = max(results["bandwidth"], bandwidth())
    Path(asked.out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
