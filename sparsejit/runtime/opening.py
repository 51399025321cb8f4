"""Opening the device of this process: CUDA through CuPy, or the fake one; what is missing is said.

Nothing is opened at import. ``SPARSEJIT_DEVICE=fake`` runs everything on the fake device.
``use_runtime`` gives the calls inside it another one, for tests.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import cache
from itertools import count
from typing import Any, NoReturn

from sparsejit._dataclasses import dataclass
from sparsejit.errors import DeviceError
from sparsejit.runtime.at_hand import CHOSEN, cuda_driver
from sparsejit.runtime.cuda import CudaRuntime
from sparsejit.runtime.device import DeviceRuntime
from sparsejit.runtime.fake import FakeRuntime
from sparsejit.runtime.probe import (
    OLDEST_DRIVER,
    cuda_obstacles,
    cupy_version,
    package_version,
    probe_driver,
    too_old,
)
from sparsejit.runtime.transfer import Transfers

__all__ = ["Device", "open_device", "started", "use_runtime"]

_HINT = 'use target="cpu" or target="auto"'


@dataclass(slots=True, eq=False, weakref_slot=True)
class Device:
    """A runtime with its pinned memory; ``lock`` lets one thread at a time run plans on it.

    ``kernels`` are those that are loaded, by name, for each owner of a plan.
    """

    runtime: DeviceRuntime
    transfers: Transfers
    number: int = field(default_factory=count(1).__next__)
    lock: Any = field(default_factory=threading.RLock)
    kernels: weakref.WeakKeyDictionary[Any, dict[str, int]] = field(
        default_factory=weakref.WeakKeyDictionary
    )


_DEVICES: weakref.WeakKeyDictionary[DeviceRuntime, Device] = weakref.WeakKeyDictionary()
_OPENED: dict[int, Device] = {}
"""The CUDA device by process: a forked child must not use its parent's."""
_OPENING = threading.Lock()


@contextmanager
def use_runtime(runtime: DeviceRuntime) -> Iterator[Device]:
    """Run the plans of calls inside on this runtime."""
    device = _DEVICES.get(runtime)
    if device is None:
        device = _DEVICES[runtime] = Device(runtime, Transfers(runtime))
    before = CHOSEN.set(device)
    try:
        yield device
    finally:
        CHOSEN.reset(before)


def open_device() -> Device:
    """Return the device that plans run on.

    Raises ``DeviceError`` that names what is missing: CuPy, a driver, a driver that is new enough,
    a device, or a process that has not been forked off one that uses CUDA.
    """
    chosen = CHOSEN.get()
    if chosen is not None:
        return chosen
    asked = os.environ.get("SPARSEJIT_DEVICE") or "cuda"
    match asked:
        case "fake":
            return _fake_device()
        case "cuda":
            with _OPENING:
                return _cuda_device()
        case "cpu":
            raise DeviceError('target="cuda" cannot run: SPARSEJIT_DEVICE is "cpu"', hint=_HINT)
        case _:
            raise ValueError(
                f"SPARSEJIT_DEVICE must be one of 'cuda', 'fake', 'cpu', not {asked!r}"
            )


@cache
def _fake_device() -> Device:
    runtime = FakeRuntime()
    return Device(runtime, Transfers(runtime))


def _cuda_device() -> Device:
    device = _OPENED.get(os.getpid())
    if device is not None:
        return device
    if _OPENED:
        raise DeviceError(
            'target="cuda" cannot run: this process was forked from one that uses CUDA',
            hint='start processes by multiprocessing\'s "spawn", or use CUDA in the children alone',
        )
    device = _opened(cuda_driver())
    _OPENED[os.getpid()] = device
    return device


def _opened(driver: Any) -> Device:
    """Open CUDA, by a driver's library; ``DeviceError`` where that cannot be."""
    if driver is None or importlib.util.find_spec("cupy") is None:
        _refuse(cuda_obstacles(probe_driver(), cupy_version(), package_version("numba-cuda")))
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        _refuse([f"CuPy cannot be imported ({error})"])
    return Device(runtime := started(cupy), Transfers(runtime))


def started(cupy: Any) -> CudaRuntime:
    """Return the runtime through CuPy, once the device has answered."""
    api = cupy.cuda.runtime
    version = int(api.driverGetVersion())
    if 0 < version < OLDEST_DRIVER:
        _refuse([too_old(version)])
    try:
        count = int(api.getDeviceCount())
        if count:
            api.free(api.malloc(4))
    except api.CUDARuntimeError as error:
        _refuse([_why_unusable(error.status, str(error), version)])
    if not count:
        _refuse(["the CUDA driver finds no device"])
    return CudaRuntime(cupy)


def _why_unusable(status: int, text: str, version: int) -> str:
    match status:
        case 35 if version:
            return f"{too_old(version)} (CUDA says so)"
        case 35:
            return "no usable CUDA driver (its library is there and it does not answer)"
        case 3:
            return (
                "CUDA cannot be started in this process, as in one that was forked from a process "
                f"that uses CUDA ({text})"
            )
        case 100:
            return "the CUDA driver finds no device"
        case 2:
            return f"the device has no memory left ({text})"
        case _:
            return f"the device does not answer ({text})"


def _refuse(obstacles: list[str]) -> NoReturn:
    raise DeviceError(f'target="cuda" cannot run: {"; ".join(obstacles)}', hint=_HINT)
