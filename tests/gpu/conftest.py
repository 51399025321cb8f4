"""Every test here is marked `gpu`, and skipped, visibly, where there is no device."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from sparsejit.errors import DeviceError
from sparsejit.runtime.opening import open_device

HERE = Path(__file__).parent


@cache
def why_no_device() -> str:
    """Return what keeps CUDA from running here, or nothing."""
    try:
        open_device()
    except DeviceError as error:
        return error.what
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def _needs_a_device() -> None:
    if why_no_device():
        pytest.skip(why_no_device())
