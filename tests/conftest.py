"""What every test run shares: private caches, a fixed hypothesis profile, golden files, markers.

The caches are set before any module is collected, since Numba and sparsejit read them when they are
imported; the workers of a parallel run inherit them from the process that starts them.
"""

import importlib.util
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.mlir_oracle import find_tools

TESTS = Path(__file__).resolve().parent

# The machine may be shared and slow, so time says nothing about a test: no deadline, no complaint
# about slow drawing. The examples are the same in every run, so a red run is red for everybody.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-mlir",
        action="store_true",
        help="fail, rather than skip the tests marked mlir, when mlir-opt is not installed",
    )
    parser.addoption(
        "--require-cubin",
        action="store_true",
        help="fail, rather than skip what needs no device, when the extra cuda13 is not installed",
    )


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    caches = tempfile.mkdtemp(prefix="sparsejit-tests-")
    config.add_cleanup(lambda: shutil.rmtree(caches, ignore_errors=True))
    os.environ["SPARSEJIT_CACHE_DIR"] = str(Path(caches, "sparsejit"))
    os.environ["NUMBA_CACHE_DIR"] = str(Path(caches, "numba"))
    for name in ("TARGET", "DUMP", "NUM_THREADS", "KEPT_MEMORY"):
        os.environ.pop(f"SPARSEJIT_{name}", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = {
        "mlir": None if find_tools() else "mlir-opt is missing (extra `mlir`)",
        "cubin": None
        if importlib.util.find_spec("numba_cuda") and importlib.util.find_spec("cuda")
        else "Numba CUDA is missing (extra `cuda13`)",
        "gpu": None if _may_have_device() else "CuPy is missing (extra `cuda13`)",
    }
    for marker in ("mlir", "cubin"):
        if missing[marker] and config.getoption(f"--require-{marker}"):
            raise pytest.UsageError(missing[marker])
    for item in items:
        for marker, reason in missing.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _may_have_device() -> bool:
    return os.environ.get("SPARSEJIT_DEVICE") == "fake" or bool(importlib.util.find_spec("cupy"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests counted with ``record_property("count of ...", (what, number))``, summed."""
    totals: dict[str, Counter[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name.startswith("count of ") and getattr(report, "when", "") == "call":
                    what, number = value
                    totals.setdefault(name, Counter())[what] += number
    for name, counts in sorted(totals.items()):
        listed = ", ".join(f"{number} {what}" for what, number in counts.items())
        terminalreporter.write_line(f"{name}: {listed}")


@pytest.fixture(scope="module")
def original_datadir(request: pytest.FixtureRequest) -> Path:
    """Golden files lie at `tests/golden/<path of the test module>/<test>.txt`."""
    return TESTS / "golden" / request.path.relative_to(TESTS).with_suffix("")
