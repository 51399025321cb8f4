"""Objects loaded without LLVM: the same kernels; whatever is unknown is left to LLVM."""

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit.backends.llvm import _engine
from sparsejit.backends.llvm._compiler import compiled, engine_of
from sparsejit.backends.llvm._engine import Emitted
from sparsejit.backends.llvm._object_loader import load_object

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
@state = internal global i64 5
@table = internal constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0]
declare double @exp(double)
define i32 @entry(ptr %block) nounwind {
  %old = load i64, ptr @state
  %new = add i64 %old, 1
  store i64 %new, ptr @state
  %index = load i64, ptr %block
  %from = getelementptr double, ptr @table, i64 %index
  %value = load double, ptr %from
  %result = call double @exp(double %value)
  %to = getelementptr i64, ptr %block, i64 1
  store double %result, ptr %to
  %status = trunc i64 %new to i32
  ret i32 %status
}
"""
UNKNOWN = TEXT.replace("@exp", "@sparsejit_somewhere")

supported = pytest.mark.skipif(
    load_object(compiled(Emitted(TEXT, ("exp",))), {}) is None, reason="another system or processor"
)


def call(address: int, index: int) -> tuple[int, float]:
    """Return the status of the entry, and what it computed."""
    import ctypes

    block = (ctypes.c_int64 * 2)(index, 0)
    status = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(address)(ctypes.addressof(block))
    return status, struct.unpack("d", struct.pack("q", block[1]))[0]


@supported
def test_data_constants_and_the_library_are_reached() -> None:
    content = compiled(Emitted(TEXT, ("exp",)))
    loaded = load_object(content, {})
    assert loaded is not None
    address, _owners = engine_of(content, "entry", {})
    for turn, index in enumerate((0, 3, 1)):
        expected = (6 + turn, float(np.exp(index + 1.0)))
        assert call(loaded.symbols["entry"], index) == pytest.approx(expected)
        assert call(address, index) == pytest.approx(expected)


@supported
def test_two_loads_share_no_state() -> None:
    content = compiled(Emitted(TEXT, ("exp",)))
    one, two = load_object(content, {}), load_object(content, {})
    assert one is not None
    assert two is not None
    assert [call(one.symbols["entry"], 0)[0] for _ in range(3)] == [6, 7, 8]
    assert call(two.symbols["entry"], 0)[0] == 6


@supported
def test_code_cannot_be_written() -> None:
    loaded = load_object(compiled(Emitted(TEXT, ("exp",))), {})
    assert loaded is not None
    address = loaded.symbols["entry"]
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, rights = line.split()[:2]
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        if start <= address < end:
            assert rights.startswith("r-x")
            return
    pytest.fail("the code is not in memory")


@supported
def test_a_symbol_from_outside_has_to_be_given() -> None:
    content = compiled(Emitted(UNKNOWN, ()))
    assert load_object(content, {}) is None
    known = load_object(compiled(Emitted(TEXT, ("exp",))), {})
    assert known is not None
    assert load_object(content, {"sparsejit_somewhere": known.symbols["entry"]}) is not None


@supported
@pytest.mark.parametrize("keep", [0, 5, 64, 200])
def test_a_piece_of_an_object_is_none(keep: int) -> None:
    assert load_object(compiled(Emitted(TEXT, ("exp",)))[:keep], {}) is None


@supported
def test_a_reference_of_another_kind_is_left_to_llvm() -> None:
    content = bytearray(compiled(Emitted(TEXT, ("exp",))))
    start = struct.unpack_from("<Q", content, 0x28)[0]
    count = struct.unpack_from("<H", content, 0x3C)[0]
    for number in range(count):
        section = struct.unpack_from("<IIQQQQIIQQ", content, start + 64 * number)
        if section[1] == 4 and section[5]:  # references: the first becomes relative
            content[section[4] + 8] = 2
    assert load_object(bytes(content), {}) is None


def test_llvm_loads_what_the_loader_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engine, "load_object", lambda content, symbols: None)
    f = sj.sparse_jit(lambda x: np.exp(x) * 3, cache=False)
    np.testing.assert_allclose(f(np.arange(3.0)), np.exp(np.arange(3.0)) * 3)


@supported
def test_a_kernel_from_disk_needs_no_llvm(tmp_path: Path) -> None:
    program = """
import sys
import numpy as np
import sparsejit as sj
f = sj.sparse_jit(lambda A, x: np.exp(A @ x))
assert np.allclose(f(np.eye(2), np.ones(2)), np.e)
assert np.allclose(f(np.eye(2), np.zeros(2)), 1)
print("llvmlite" in sys.modules)
"""
    found: list[Any] = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=ROOT,
            env={"PATH": "", "PYTHONPATH": str(ROOT), "SPARSEJIT_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found == ["True\n", "False\n"]
