"""What is missing for CUDA is said, each thing in its own words, and nothing at import."""

from __future__ import annotations

import inspect
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit.errors import DeviceError
from sparsejit.runtime import opening
from sparsejit.runtime.at_hand import device_at_hand
from sparsejit.runtime.cuda import CudaRuntime
from sparsejit.runtime.device import DeviceRuntime
from sparsejit.runtime.fake import FakeRuntime, Injection
from sparsejit.runtime.opening import open_device, started, use_runtime
from sparsejit.runtime.probe import DriverReport


class CudaError(RuntimeError):
    """What CuPy raises, with CUDA's number."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}")
        self.status = status


def cupy(
    *, version: int = 13000, count: int = 1, status: int = 0, malloc_status: int = 0
) -> SimpleNamespace:
    """Return the part of CuPy that is asked before a device is used."""

    def device_count() -> int:
        if status:
            raise CudaError(status)
        return count

    def malloc(nbytes: int) -> int:
        if malloc_status:
            raise CudaError(malloc_status)
        return 4096

    runtime = SimpleNamespace(
        CUDARuntimeError=CudaError,
        driverGetVersion=lambda: version,
        getDeviceCount=device_count,
        malloc=malloc,
        free=lambda pointer: None,
    )
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (cupy(version=11040), "too old: it is for CUDA 11.4"),
        (cupy(version=12020, status=35), "too old: it is for CUDA 12.2"),
        (cupy(version=0, status=35), "no usable CUDA driver"),
        (cupy(status=3), "was forked from a process that uses CUDA"),
        (cupy(count=0), "the CUDA driver finds no device"),
        (cupy(status=100), "the CUDA driver finds no device"),
        (cupy(malloc_status=2), "no memory left"),
        (cupy(status=999), "the device does not answer"),
    ],
)
def test_a_driver_that_does_not_do(found: Any, message: str) -> None:
    with pytest.raises(DeviceError, match=message) as caught:
        started(found)
    assert str(caught.value).startswith('target="cuda" cannot run')
    assert 'use target="cpu"' in str(caught.value)


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "probe_driver", lambda: DriverReport(13000, ("H200",)))
    monkeypatch.setattr(opening, "cupy_version", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DeviceError, match="CuPy is not installed: pip install"):
        opening._opened(object())


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "probe_driver", lambda: DriverReport(missing="no such file"))
    with pytest.raises(DeviceError, match="no usable CUDA driver"):
        opening._opened(None)


def test_out_of_memory() -> None:
    def doubled(x: Any) -> Any:
        return x + x

    injection = Injection()
    with use_runtime(FakeRuntime(injection=injection)):
        made = sj.sparse_jit(doubled, target="cuda")
        made(np.ones(3))
        injection.at = len(injection.calls)
        assert injection.calls[0] == "allocate"
        with pytest.raises(DeviceError, match="allocate: injected") as caught:
            made(np.ones(3))
    assert "free device memory" in str(caught.value)
    assert "no argument has changed" in str(caught.value)


def test_in_a_forked_child(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = FakeRuntime()
    with use_runtime(runtime) as device:
        monkeypatch.setitem(opening._OPENED, os.getpid() + 1, device)
    monkeypatch.delenv("SPARSEJIT_DEVICE", raising=False)
    with pytest.raises(DeviceError, match="forked from one that uses CUDA") as caught:
        open_device()
    assert '"spawn"' in str(caught.value)


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_DEVICE", "fake")
    assert open_device().runtime.name == "fake"
    assert device_at_hand()
    monkeypatch.setenv("SPARSEJIT_DEVICE", "cpu")
    assert not device_at_hand()
    with pytest.raises(DeviceError, match='SPARSEJIT_DEVICE is "cpu"'):
        open_device()
    monkeypatch.setenv("SPARSEJIT_DEVICE", "gpu")
    with pytest.raises(ValueError, match="SPARSEJIT_DEVICE must be one of"):
        open_device()


@pytest.mark.parametrize("runtime", [CudaRuntime, FakeRuntime])
def test_runtimes_have_the_whole_protocol(runtime: type) -> None:
    functions = {
        name: value for name, value in vars(DeviceRuntime).items() if not name.startswith("_")
    }
    assert 30 <= len(functions) <= 45
    for name, wanted in functions.items():
        found = inspect.getattr_static(runtime, name)
        assert isinstance(wanted, property) == isinstance(found, property), name
        if not isinstance(wanted, property):
            assert list(inspect.signature(found).parameters) == list(
                inspect.signature(wanted).parameters
            ), name
