"""Fused kernels need the memory of their result and at most as much again, in a fresh process.

Nothing of the size of a dense product, and nothing of the size of an operand, is made on the way.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
import numpy as np, scipy.sparse as sp
import sparsejit as sj

name, index = sys.argv[1], np.dtype(sys.argv[2])
n, rank = 60_000, 32
kernel = {
    "sddmm": lambda A, U, V: A * (U @ V.T),
    "attention": lambda A, U, V: sj.softmax(A * (U @ V.T), axis=1) @ U,
    "inner product": lambda A, U, V: (A * (U @ V.T)).sum(),
    "two products": lambda A, U, V: A @ (A @ U),
}[name]

def field(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 1024

def operands(n):
    rng = np.random.default_rng(1)
    places = rng.integers(0, n, (2, 10 * n))
    A = sp.coo_array((rng.random(10 * n), places), (n, n)).tocsr()
    A.sum_duplicates()
    A = sp.csr_array((A.data, A.indices.astype(index), A.indptr.astype(index)), A.shape)
    return A, rng.random((n, rank)), rng.random((n, rank))

fn = sj.sparse_jit(kernel, target="cpu")
for size in (300, 3000):  # compiled, threads and their stacks made
    fn(*operands(size))
given = operands(n)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = field("VmRSS")
result = fn(*given)
used = field("VmHWM") - before
parts = (result.data, result.indices, result.indptr) if sp.issparse(result) else (result,)
print(used, sum(part.nbytes for part in parts) / 2**20)
"""

SLACK = 6
"""Megabytes for code that is compiled for the operands, and pages of threads."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what the system says of the process")
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("name", ["sddmm", "attention", "inner product", "two products"])
def test_memory_of_fused_kernels(name: str, index: str) -> None:
    """A factor has 15 MB here, A has 7 or 9, the dense product 29,000."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, index], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    used, size = map(float, done.stdout.split())
    again = size if name == "two products" else 0
    assert used < size + again + SLACK
