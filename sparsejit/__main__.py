"""`python -m sparsejit info`: versions, devices and what would run where, for bug reports.

In: the command line and the environment. Out: text. The GPU driver is asked without risk, by
`runtime.probe`.
"""

import argparse
import os
import platform
import sys
from collections.abc import Sequence

from sparsejit import __version__
from sparsejit.runtime.probe import (
    cuda_obstacles,
    cupy_version,
    package_version,
    probe_driver,
)

__all__ = ["main", "report"]

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "ml_dtypes")
GPU_PACKAGES = ("cupy", "numba-cuda", "cuda-toolkit", "nvidia-cusparselt-cu13")


def report() -> str:
    """The whole text of `python -m sparsejit info`."""
    driver = probe_driver()
    versions = {name: package_version(name) for name in (*PACKAGES, *GPU_PACKAGES)}
    versions["cupy"] = cupy_version()
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
        f"  cuda: {_cuda_state(obstacles)}",
        f"  auto: {'cpu' if obstacles else 'cuda for operands on the device, else cpu'}",
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


def _cuda_state(obstacles: Sequence[str]) -> str:
    asked = os.environ.get("SPARSEJIT_DEVICE") or "cuda"
    if asked == "fake":
        return "the fake device, as SPARSEJIT_DEVICE asks: slow, for tests"
    hidden = () if asked == "cuda" else (f"hidden by SPARSEJIT_DEVICE={asked}",)
    found = (*hidden, *obstacles)
    return f"{'; '.join(found)}; lower, text and explain work" if found else "usable"


def _cpu_state(versions: dict[str, str | None]) -> str:
    missing = [name for name in ("numba", "llvmlite") if versions[name] is None]
    return f"not installed: {', '.join(missing)}" if missing else "usable"


def _environment_lines() -> list[str]:
    settings = sorted(name for name in os.environ if name.startswith("SPARSEJIT_"))
    heading = "environment" if settings else "environment: nothing set"
    return [heading, *(f"  {name}={os.environ[name]}" for name in settings)]


if __name__ == "__main__":
    sys.exit(main())
