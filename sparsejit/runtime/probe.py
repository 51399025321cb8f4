"""Asking for a CUDA device without risk: what the driver says, and what is missing.

In: nothing but the machine. Out: a `DriverReport`, and a sentence for each thing that keeps
`target="cuda"` from running. The driver is asked in a child process, so that a damaged driver can
neither crash nor hang the caller; CuPy and Numba's CUDA part are looked for, not imported.
"""

import importlib.metadata
import importlib.util
import json
import subprocess
import sys

from sparsejit._dataclasses import dataclass

__all__ = [
    "OLDEST_DRIVER",
    "DriverReport",
    "cuda_obstacles",
    "cupy_version",
    "package_version",
    "probe_driver",
    "too_old",
]

CUPY_NAMES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
PROBE_SECONDS = 30
OLDEST_DRIVER = 12000
"""CuPy 14 asks for a driver of CUDA 12.0 or newer."""

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
    elif driver.version < OLDEST_DRIVER:
        obstacles.append(too_old(driver.version))
    elif not driver.devices:
        obstacles.append("the CUDA driver finds no device")
    extra = "cuda12" if 0 < driver.version < 13000 else "cuda13"
    for name, version in (("CuPy", cupy), ("numba-cuda", numba_cuda)):
        if version is None:
            obstacles.append(f'{name} is not installed: pip install "sparsejit[{extra}]"')
    return obstacles


def too_old(version: int) -> str:
    """Say that a driver of this version, as the driver tells it, is too old.

    >>> too_old(11040)
    'the CUDA driver is too old: it is for CUDA 11.4, and CuPy needs one for 12.0 or newer'
    """
    found = f"{version // 1000}.{version % 1000 // 10}"
    needed = f"{OLDEST_DRIVER // 1000}.{OLDEST_DRIVER % 1000 // 10}"
    return (
        f"the CUDA driver is too old: it is for CUDA {found}, and CuPy needs one for {needed} "
        "or newer"
    )


def package_version(distribution: str) -> str | None:
    """The version of an installed distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def cupy_version() -> str | None:
    """The version of CuPy, under whichever name it was installed; CuPy is not imported."""
    if importlib.util.find_spec("cupy") is None:
        return None
    known = (package_version(name) for name in CUPY_NAMES)
    return next((version for version in known if version is not None), "of unknown version")
