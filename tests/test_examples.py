"""The examples: their data is what the script writes, and each of them runs to its end."""

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DATA = EXAMPLES / "data"


@pytest.fixture(scope="module")
def make_data() -> dict[str, object]:
    return runpy.run_path(str(EXAMPLES / "make_data.py"))


@pytest.mark.parametrize("name", ["matrix.mtx", "tensor.tns"])
def test_the_script_writes_the_shipped_data(make_data: dict[str, object], name: str) -> None:
    text = make_data[f"{Path(name).stem}_text"]
    assert callable(text)
    assert text() == (DATA / name).read_text(encoding="ascii")


def test_the_matrix_is_what_the_script_promises() -> None:
    matrix = scipy.io.mmread(DATA / "matrix.mtx", spmatrix=False)
    assert isinstance(matrix, sp.coo_array)
    assert matrix.shape == (600, 600)
    assert matrix.nnz == 4000
    assert np.count_nonzero(matrix.toarray()) == 4000


@pytest.mark.parametrize("name", ["quickstart.py", "three_front_ends.py"])
def test_each_example_runs_and_agrees(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[:4]] == [
        "SpMV",
        "SpMM",
        "SDDMM",
        "MTTKRP",
    ]
    assert all("agree" in line for line in done.stdout.splitlines()[:4])


def test_the_quickstart_tells_a_little_and_all_of_it_when_asked() -> None:
    short, whole = (
        subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / "quickstart.py"), *options],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        ).stdout
        for options in ([], ["--explain"])
    )
    assert len(short.splitlines()) < 20
    assert "it is never formed" in short
    assert "func @" not in short
    assert "func @sddmm(%S" in whole
    assert "parallel for i" in whole


# Sizes at which interpreted loops take about a second; each job checks its own numbers.
JOBS = {
    "j1_gcn_layer.py": 30,
    "j2_graph_attention.py": 30,
    "j3_matrix_factorization.py": 10,
    "j4_cp_decomposition.py": 8,
    "j5_coulomb_exchange.py": 4,
    "j6_graph_analytics.py": 12,
    "j7_conjugate_gradients.py": 7,
    "j8_pruned_network.py": 4,
    "j9_single_cell.py": 10,
}


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", JOBS)
def test_each_job_agrees_with_other_libraries(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARSEJIT_TARGET", target)
    spec = importlib.util.spec_from_file_location(f"examples_{Path(name).stem}", EXAMPLES / name)
    assert spec is not None
    assert spec.loader is not None
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    job.main(JOBS[name])
    assert "agree" in capsys.readouterr().out.splitlines()[0]


def test_a_job_runs_as_a_script_of_a_given_size() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "j9_single_cell.py"), "10"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "SPARSEJIT_TARGET": "interpreter"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("10 cells, 10 genes")


def test_no_example_is_left_out() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "make_data.py",
        "quickstart.py",
        "three_front_ends.py",
        *JOBS,
    }
