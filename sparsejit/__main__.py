"""`python -m sparsejit info`: versions, devices and what would run where, for bug reports.

In: the command line and the environment. Out: text. The GPU driver is asked in a child process, so
that a damaged driver can neither crash nor hang the report; CuPy and Numba's CUDA part are looked
for, not imported.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from sparsejit import __version__

__all__ = ["DriverReport", "cuda_obstacles", "main", "probe_driver", "report"]

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "ml_dtypes")
GPU_PACKAGES = ("cupy", "numba-cuda", "cuda-toolkit", "nvidia-cusparselt-cu13")
CUPY_NAMES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
PROBE_SECONDS = 30

DRIVER_PROBE = """
import ctypes, json, sys
try:
    driver = ctypes.CDLL("libcuda.so.1" if sys.platform != "win32" else "nvcuda.dll")
except OSError as error:
    sys.exit(json.dumps({"missing": str(error)}))
status = driver.cuInit(0)
if status != 0:
    sys.exit(json.dumps({"missing": f"cuInit answers with error {status}"}))
version, count = ctypes.c_int(0), ctypes.c_int(0)
driver.cuDriverGetVersion(ctypes.byref(version))
driver.cuDeviceGetCount(ctypes.byref(count))
names = []
for ordinal in range(count.value):
    device, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    driver.cuDeviceGetName(name, 256, device)
    names.append(name.value.decode(errors="replace"))
sys.exit(json.dumps({"version": version.value, "devices": names}))
"""
# `sys.exit` with a text writes it to the standard error stream, which nothing else uses here.


@dataclass(frozen=True, slots=True)
class DriverReport:
    """What the CUDA driver said: its version and devices, or why it could not be asked."""

    version: int = 0
    devices: tuple[str, ...] = ()
    missing: str = ""

    def __str__(self) -> str:
        if self.missing:
            return f"none ({self.missing})"
        found = ", ".join(self.devices) if self.devices else "no device"
        return f"CUDA {self.version // 1000}.{self.version % 1000 // 10}, {found}"


def probe_driver(probe: str = DRIVER_PROBE) -> DriverReport:
    """Ask the CUDA driver in a child process; whatever happens there becomes a sentence here.

    >>> print(probe_driver("import os; os.abort()"))
    none (asking the driver ended the process with status -6)
    """
    command = [sys.executable, "-I", "-c", probe]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return DriverReport(missing=f"the driver did not answer in {PROBE_SECONDS} s")
    except OSError as error:
        return DriverReport(missing=f"no process to ask the driver from: {error}")
    try:
        answer = json.loads(done.stderr)
    except ValueError:
        return DriverReport(
            missing=f"asking the driver ended the process with status {done.returncode}"
        )
    if "missing" in answer:
        return DriverReport(missing=str(answer["missing"]))
    return DriverReport(int(answer["version"]), tuple(map(str, answer["devices"])))


def cuda_obstacles(driver: DriverReport, cupy: str | None, numba_cuda: str | None) -> list[str]:
    """What keeps `target="cuda"` from running, given the driver and the packages' versions.

    >>> cuda_obstacles(DriverReport(13000, ("H200",)), "14.2.0", None)
    ['numba-cuda is not installed: pip install "sparsejit[cuda13]"']
    """
    obstacles = []
    if driver.missing:
        obstacles.append(f"no usable CUDA driver ({driver.missing})")
    elif not driver.devices:
        obstacles.append("the CUDA driver finds no device")
    extra = "cuda12" if 0 < driver.version < 13000 else "cuda13"
    for name, version in (("CuPy", cupy), ("numba-cuda", numba_cuda)):
        if version is None:
            obstacles.append(f'{name} is not installed: pip install "sparsejit[{extra}]"')
    return obstacles


def report() -> str:
    """The whole text of `python -m sparsejit info`."""
    driver = probe_driver()
    versions = {name: _version(name) for name in (*PACKAGES, *GPU_PACKAGES)}
    versions["cupy"] = _cupy_version()
    obstacles = cuda_obstacles(driver, versions["cupy"], versions["numba-cuda"])
    lines = [
        f"sparsejit {__version__}",
        f"python {platform.python_version()} on {platform.platform()}",
        *(f"{name} {version or 'not installed'}" for name, version in versions.items()),
        f"cpu cores {os.cpu_count()}",
        f"cuda driver {driver}",
        "targets",
        "  interpreter: usable",
        f"  cpu: {_cpu_state(versions)}",
        f"  cuda: {'; '.join(obstacles) if obstacles else 'usable'}",
        f"  auto: {'cpu' if obstacles else 'cuda or cpu, by estimated time with transfers'}",
        *_environment_lines(),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m sparsejit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="print versions, devices and what would run where")
    parser.parse_args(arguments)
    print(report())
    return 0


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cupy_version() -> str | None:
    if importlib.util.find_spec("cupy") is None:
        return None
    known = (_version(name) for name in CUPY_NAMES)
    return next((version for version in known if version is not None), "of unknown version")


def _cpu_state(versions: dict[str, str | None]) -> str:
    missing = [name for name in ("numba", "llvmlite") if versions[name] is None]
    return f"not installed: {', '.join(missing)}" if missing else "usable"


def _environment_lines() -> list[str]:
    settings = sorted(name for name in os.environ if name.startswith("SPARSEJIT_"))
    heading = "environment" if settings else "environment: nothing set"
    return [heading, *(f"  {name}={os.environ[name]}" for name in settings)]


if __name__ == "__main__":
    sys.exit(main())
