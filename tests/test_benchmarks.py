"""The commands of ``benchmarks``: each says what it takes, and refuses what it does not know."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("run", "table", "cpu", "gpu", "conversions", "growth", "lowerings")


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)


def test_every_command_is_listed() -> None:
    found = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in path.read_text(encoding="utf-8")
    }
    assert found == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str) -> None:
    done = run(f"benchmarks.{name}", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage:")
    assert f"benchmarks{'/' if name in ('cpu', 'gpu', 'conversions') else '.'}{name}" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_argument(name: str) -> None:
    done = run(f"benchmarks.{name}", "--no-such-argument")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr


def test_an_unknown_kernel_or_peer() -> None:
    for option, name in (("--kernels", "spmw"), ("--inputs", "tny"), ("--peers", "numpy")):
        done = run("benchmarks.run", option, name)
        assert done.returncode == 2
        assert f"error: '{name}' is none of " in done.stderr


def test_arguments_that_measure_nothing(tmp_path: Path) -> None:
    for arguments, text in (
        (("--rounds", "0"), "invalid _rounds value: '0'"),
        (("--kernels", "ttm", "--inputs", "banded"), "none of these kernels is measured on"),
        (("--out", str(tmp_path / "missing" / "x.json")), "x.json does not exist"),
    ):
        done = run("benchmarks.run", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert text in done.stderr
        assert "Traceback" not in done.stderr


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    done = run("benchmarks.table", str(path))
    assert done.returncode == 2
    assert "holds no results" in done.stderr
    path.write_text('{"cells": []}', encoding="utf-8")
    assert "nothing was measured" in run("benchmarks.table", str(path)).stderr
    peers = {
        "sparsejit": {"median": 0.002, "least": 0.001, "spread": 0.1, "right": True, "peak_mb": 3},
        "scipy": {"median": 0.003, "least": 0.003, "spread": 0.5, "right": True, "peak_mb": 5},
        "mkl": {"skipped": "has no such kernel"},
    }
    cell = {"kernel": "spmv", "data": "uniform", "dtype": "float64", "traffic": 10**6, "load": 0.5}
    results = {
        "started": "2026-01-01 00:00", "threads": 1, "bandwidth": 10.0, "missing": {},
        "cells": [{**cell, "peers": peers}], "first": [],
    }  # fmt: skip
    path.write_text(json.dumps(results), encoding="utf-8")
    done = run("benchmarks.table", str(path))
    assert done.returncode == 0
    assert "| spmv | uniform | float64 | sparsejit | 2 | 1.00 | 1.50~ | - |" in done.stdout
    assert "the best other peer takes 1.50 times as long as sparsejit" in done.stdout
    assert "| spmv | uniform | float64 | 0.10 | 0.03 | - |" in done.stdout
    assert "- mkl, spmv uniform: has no such kernel" in done.stdout
