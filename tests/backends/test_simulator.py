"""Kernels in Numba's CUDA simulator, which must be chosen before Numba is imported."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_simulated_kernels() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.simulated_kernels"],
        cwd=ROOT,
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "simulated kernels are right", done.stderr
