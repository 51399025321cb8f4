"""Objects on disk: found by other processes, harmless when damaged, of one version and machine."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsejit.backends.disk_cache import write_entry
from sparsejit.backends.llvm import LlvmBackend, _engine
from sparsejit.backends.llvm.backend import CacheCounts
from tests.backends.loop_programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
HIT, MISS = CacheCounts(1, 0), CacheCounts(0, 1)

PROCESS = """
from tests.backends.loop_programs import PROGRAMS
from sparsejit.backends.llvm import LlvmBackend
import numpy as np
program = PROGRAMS["union_of_vectors"]()
backend = LlvmBackend()
kernel = backend.load_kernel(backend.emit(program.func))
given = program.arguments()
for actual, expected in zip(kernel(given), program.expected(*given)):
    np.testing.assert_allclose(actual, expected)
print(kernel.cache_counts.hits, kernel.cache_counts.misses)
"""


def _process(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROCESS],
        cwd=ROOT,
        env={**os.environ, "SPARSEJIT_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.strip()


def _run_once(*, cache: bool = True, reassociate: bool = True, step: int = 1) -> CacheCounts:
    program = PROGRAMS["spmv"]()
    backend = LlvmBackend(reassociate=reassociate)
    kernel = backend.load_kernel(backend.emit(program.func), cache=cache)
    given = program.arguments()
    given[5] = np.repeat(given[5], step)[::step]
    assert np.allclose(np.asarray(kernel(given)[0]), program.expected(*given)[0])
    return kernel.cache_counts


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The pool of threads is an object as well, written where it is first loaded.
    _engine.thread_pool()
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_processes_share_what_one_has_compiled(tmp_path: Path) -> None:
    together = [_process(tmp_path) for _ in range(3)]
    assert "0 1" in [_output(process) for process in together]
    assert _output(_process(tmp_path)) == "1 0"
    assert not list(tmp_path.rglob(".*")), "a temporary file was left"


def test_what_is_left_out_has_one_key_in_every_process(cache: Path) -> None:
    program = """
import numpy as np, sparsejit as sj
double = sj.sparse_jit(lambda x: x + x, target="cpu", cache=False)
assert double(np.ones(2)).tolist() == [2.0, 2.0]
"""
    kept = []
    for seed in range(4):
        names = {"PYTHONHASHSEED": str(seed), "SPARSEJIT_WITHOUT": "tiles,prefetch,sums,merges"}
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=os.environ | names, check=True
        )
        kept.append(sorted(cache.rglob("*.bin")))
    assert kept[0]
    assert kept == kept[:1] * 4


@pytest.mark.parametrize("damage", ["empty", "short", "changed", "other"])
def test_a_damaged_entry_is_made_anew(
    damage: str, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert _run_once() == MISS
    assert _run_once() == HIT
    (entry,) = cache.rglob("*.bin")
    whole = entry.read_bytes()
    middle = len(whole) // 2
    changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    damaged = {"empty": b"", "short": whole[:-9], "changed": changed, "other": b"x" * 500}
    entry.write_bytes(damaged[damage])
    with caplog.at_level(logging.WARNING, "sparsejit"):
        assert _run_once() == MISS
    assert "is damaged and is made anew" in caplog.text
    assert _run_once() == HIT


def test_an_entry_that_is_no_object_is_made_anew(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert _run_once() == MISS
    (entry,) = cache.rglob("*.bin")
    write_entry("llvm", f"{entry.parent.name}{entry.stem}", b"whole, but no object")
    with caplog.at_level(logging.WARNING, "sparsejit"):
        assert _run_once() == MISS
    assert "a cached kernel cannot be used" in caplog.text
    assert _run_once() == HIT


def test_what_changes_the_code_changes_the_key(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run_once() == MISS
    assert _run_once(reassociate=False) == MISS
    assert _run_once(step=2) == MISS
    known = _engine.environment()
    for place in range(len(known)):
        other = (*known[:place], "another", *known[place + 1 :])
        monkeypatch.setattr(_engine, "environment", lambda other=other: other)
        assert _run_once() == MISS, known[place]
    monkeypatch.setattr(_engine, "environment", lambda: known)
    assert _run_once() == HIT


def test_a_directory_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where a directory should be")
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(blocked))
    with caplog.at_level(logging.WARNING, "sparsejit"):
        assert _run_once() == MISS
    assert "cannot write the cache entry" in caplog.text


def test_nothing_is_read_or_written_without_the_cache(cache: Path) -> None:
    assert _run_once(cache=False) == MISS
    assert not list(cache.rglob("*"))
    assert _run_once() == MISS
    assert _run_once(cache=False) == MISS


def test_a_call_imports_llvm_and_not_numba() -> None:
    program = """
import sys
import numpy as np
import sparsejit as sj
assert "llvmlite" not in sys.modules
double = sj.sparse_jit(lambda x: x + x, target="cpu", cache=False)
assert double(np.ones(2)).tolist() == [2.0, 2.0]
print("llvmlite" in sys.modules, "numba" in sys.modules)
assert "compiled by LLVM" in double.explain()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "True False\n", done.stderr
