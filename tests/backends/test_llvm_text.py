"""The LLVM IR of hand-written programs: golden files, the same in every process, of no machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from llvmlite import binding
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.backends.llvm import LlvmBackend
from sparsejit.errors import UnsupportedError
from sparsejit.ir.loops import LoopFunc
from tests.backends.loop_programs import PROGRAMS
from tests.ir.loop_functions import loop_functions

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("spmv", "union_of_vectors", "matmul", "searches", "views", "half_floats")


@pytest.mark.parametrize("name", NAMES)
def test_program_text(name: str, file_regression: FileRegressionFixture) -> None:
    file_regression.check(LlvmBackend().llvm_ir(PROGRAMS[name]().func), extension=".ll")


def test_without_reassociation_nothing_has_fast_math_flags() -> None:
    func = PROGRAMS["matmul"]().func
    assert "reassoc contract" in LlvmBackend().llvm_ir(func)
    strict = LlvmBackend(reassociate=False).llvm_ir(func)
    assert "reassoc" not in strict
    assert "contract" not in strict


def test_the_text_depends_on_the_function_only() -> None:
    program = (
        "from sparsejit.backends.llvm import LlvmBackend\n"
        "from tests.backends.loop_programs import PROGRAMS\n"
        "print(LlvmBackend().llvm_ir(PROGRAMS['union_of_vectors']().func))\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    (text,) = texts
    assert "target" not in text
    assert binding.get_host_cpu_name() not in text


@settings(max_examples=40, phases=[Phase.generate])
@given(loop_functions())
def test_any_loop_function_is_accepted_by_llvm(func: LoopFunc) -> None:
    try:
        text = LlvmBackend().llvm_ir(func)
    except UnsupportedError:  # an argument whose length would change
        return
    module = binding.parse_assembly(text)
    module.verify()
    module.close()
