"""`python -m sparsejit info`: it always answers, whatever the driver does."""

import subprocess
import sys

import numpy
import pytest

import sparsejit
from sparsejit import __main__ as command
from sparsejit.runtime.probe import DriverReport, cuda_obstacles, probe_driver

INSTALL = '{} is not installed: pip install "sparsejit[{}]"'


def test_info_prints_versions_and_targets() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sparsejit", "info"], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == f"sparsejit {sparsejit.__version__}"
    assert f"numpy {numpy.__version__}" in lines
    assert "  cpu: usable" in lines
    assert [line.split(":")[0] for line in lines[lines.index("targets") + 1 :]][:4] == [
        "  interpreter",
        "  cpu",
        "  cuda",
        "  auto",
    ]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("probe", "report"),
    [
        (
            'import sys; sys.exit(\'{"version": 13010, "devices": ["H200", "H200"]}\')',
            DriverReport(13010, ("H200", "H200")),
        ),
        ('import sys; sys.exit(\'{"missing": "no file"}\')', DriverReport(missing="no file")),
        (
            "import os; os.kill(os.getpid(), 11)",
            DriverReport(missing="asking the driver ended the process with status -11"),
        ),
        ("", DriverReport(missing="asking the driver ended the process with status 0")),
    ],
)
def test_whatever_the_driver_does_is_a_report(probe: str, report: DriverReport) -> None:
    assert probe_driver(probe) == report


def test_a_driver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsejit.runtime.probe.PROBE_SECONDS", 1)
    assert probe_driver("while True: pass").missing == "the driver did not answer in 1 s"


@pytest.mark.parametrize(
    ("driver", "cupy", "numba_cuda", "obstacles"),
    [
        (DriverReport(13000, ("H200",)), "14.2.0", "0.30.4", []),
        (DriverReport(13000, ()), "14.2.0", "0.30.4", ["the CUDA driver finds no device"]),
        (
            DriverReport(12080, ("A100",)),
            None,
            None,
            [INSTALL.format("CuPy", "cuda12"), INSTALL.format("numba-cuda", "cuda12")],
        ),
        (
            DriverReport(missing="not there"),
            None,
            "0.30.4",
            ["no usable CUDA driver (not there)", INSTALL.format("CuPy", "cuda13")],
        ),
    ],
)
def test_each_obstacle_is_named(
    driver: DriverReport, cupy: str | None, numba_cuda: str | None, obstacles: list[str]
) -> None:
    assert cuda_obstacles(driver, cupy, numba_cuda) == obstacles


def test_reports_read_as_sentences() -> None:
    assert str(DriverReport(12080, ("A100",))) == "CUDA 12.8, A100"
    assert str(DriverReport(13000)) == "CUDA 13.0, no device"
    assert str(DriverReport(missing="not there")) == "none (not there)"


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        command.main(["explain"])
    assert status.value.code == 2
    assert "invalid choice: 'explain'" in capsys.readouterr().err


def test_settings_of_the_environment_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARSEJIT_TARGET", "cpu")
    assert command.main(["info"]) == 0
    assert "\n  SPARSEJIT_TARGET=cpu\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("fake", "the fake device, as SPARSEJIT_DEVICE asks: slow, for tests"),
        ("cpu", "hidden by SPARSEJIT_DEVICE=cpu"),
    ],
)
def test_the_environment_chooses_the_device(
    asked: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSEJIT_DEVICE", asked)
    (line,) = (line for line in command.report().splitlines() if line.startswith("  cuda: "))
    assert line.startswith(f"  cuda: {said}")
