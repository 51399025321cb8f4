"""Compiled code on disk: found by another process, harmless when damaged, optional."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsejit.backends.base import KernelSource
from sparsejit.backends.disk_cache import cache_directory, digest, read_entry, write_entry
from sparsejit.backends.numba_cpu import CacheCounts, NumbaBackend
from sparsejit.backends.python_source import emit_python
from tests.backends.loop_programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]

PROCESS = """
from tests.backends.loop_programs import PROGRAMS
from sparsejit.backends.numba_cpu import NumbaBackend
import numpy as np
program = PROGRAMS["union_of_vectors"]()
backend = NumbaBackend()
kernel = backend.load_kernel(backend.emit(program.func))
given = program.arguments()
for actual, expected in zip(kernel(given), program.expected(*given)):
    np.testing.assert_allclose(actual, expected)
print(kernel.cache_counts.hits, kernel.cache_counts.misses)
"""


def _process(cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "SPARSEJIT_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "error", "-c", PROCESS]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.strip()


def test_processes_share_what_one_has_compiled(tmp_path: Path) -> None:
    together = [_process(tmp_path) for _ in range(2)]
    assert "0 1" in [_output(process) for process in together]
    assert _output(_process(tmp_path)) == "1 0"
    assert not list(tmp_path.rglob(".*")), "a temporary file was left"


def _run_once(cache: bool = True) -> CacheCounts:
    program = PROGRAMS["spmv"]()
    source = emit_python(program.func)
    source = KernelSource(source.entry, f"{source.text}\n# of this test\n", source.func)
    kernel = NumbaBackend().load_kernel(source, cache=cache)
    given = program.arguments()
    assert np.allclose(np.asarray(kernel(given)[0]), program.expected(*given)[0])
    return kernel.cache_counts


@pytest.mark.parametrize("damage", ["empty", "short", "changed", "other"])
def test_a_damaged_entry_is_made_anew(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))
    assert _run_once() == CacheCounts(0, 1)
    assert _run_once() == CacheCounts(1, 0)
    for entry in tmp_path.rglob("*.bin"):
        whole = entry.read_bytes()
        middle = len(whole) // 2
        changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        damaged = {"empty": b"", "short": whole[:-9], "changed": changed, "other": b"x" * 500}
        entry.write_bytes(damaged[damage])
    with caplog.at_level(logging.WARNING, "sparsejit"):
        assert _run_once() == CacheCounts(0, 1)
    assert "is damaged and is made anew" in caplog.text
    assert _run_once() == CacheCounts(1, 0)


def test_an_entry_that_numba_cannot_use_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))
    assert _run_once() == CacheCounts(0, 1)
    for entry in tmp_path.rglob("*.bin"):
        write_entry("numba", f"{entry.parent.name}{entry.stem}", b"whole, but no compiled function")
    with caplog.at_level(logging.WARNING, "sparsejit"):
        assert _run_once() == CacheCounts(0, 1)
    assert "a cached kernel cannot be used" in caplog.text


def test_a_directory_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where a directory should be")
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(blocked))
    with caplog.at_level(logging.WARNING, "sparsejit"):
        assert _run_once() == CacheCounts(0, 1)
    assert "cannot write the cache entry" in caplog.text


def test_nothing_is_written_without_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))
    assert _run_once(cache=False) == CacheCounts(0, 1)
    assert not list(tmp_path.rglob("*"))


def test_entries_are_kept_by_kind_and_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))
    key = digest("some", "text")
    assert read_entry("a", key) is None
    write_entry("a", key, b"one")
    write_entry("b", key, b"two")
    assert (read_entry("a", key), read_entry("b", key)) == (b"one", b"two")
    write_entry("a", key, b"")
    assert read_entry("a", key) == b""


def test_no_changed_byte_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))
    key, rng = digest("text"), np.random.default_rng(1)
    write_entry("a", key, rng.bytes(3000))
    (entry,) = tmp_path.rglob("*.bin")
    whole = entry.read_bytes()
    for place in rng.integers(0, 8 * len(whole), 200):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << (place % 8)
        entry.write_bytes(damaged)
        assert read_entry("a", key) is None
        entry.write_bytes(whole[: place // 8])
        assert read_entry("a", key) is None
    entry.write_bytes(whole)
    assert read_entry("a", key) is not None


def test_the_directory_is_the_users_unless_the_environment_names_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARSEJIT_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_directory() == Path("/somewhere/sparsejit")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/user")
    assert cache_directory() == Path("/home/user/.cache/sparsejit")
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", "/elsewhere")
    assert cache_directory() == Path("/elsewhere")
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", "~/elsewhere")
    assert cache_directory() == Path("/home/user/elsewhere")


def test_nothing_is_written_for_a_user_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARSEJIT_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    # What it returns for a user whom the system does not know.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    assert cache_directory() is None
    assert _run_once() == _run_once() == CacheCounts(0, 1)
    assert not list(tmp_path.rglob("*"))


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_an_entry_is_as_readable_as_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path / "cache"))
    before = os.umask(0o027)
    try:
        write_entry("a", digest("text"), b"one")
    finally:
        os.umask(before)
    (entry,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert (entry.stat().st_mode & 0o777, entry.parent.stat().st_mode & 0o777) == (0o640, 0o750)


def test_a_full_disk_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPARSEJIT_CACHE_DIR", str(tmp_path))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with caplog.at_level(logging.WARNING, "sparsejit"):
        assert _run_once() == CacheCounts(0, 1)
    assert "No space left" in caplog.text
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_numba_is_not_imported_before_the_first_kernel() -> None:
    code = "import sys, sparsejit, sparsejit.backends; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
