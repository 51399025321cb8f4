"""The fake device refuses what a real one would answer with wrong numbers, errors or a crash."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from sparsejit.ir.device_code import (
    DeviceArray,
    KernelCode,
    LibraryArguments,
    LibraryPhase,
    LibraryRefusal,
    PointerParam,
    ScalarParam,
)
from sparsejit.ir.loops import Lit, Memref, ScanOp, Var
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.runtime.device import Fault, FaultError
from sparsejit.runtime.fake import FakeRuntime, Injection, MisuseError, to_fake
from sparsejit.runtime.plan import Strategy
from tests.runtime.test_execution import by_name

F64 = DType.FLOAT64
X, Y = Memref("x", F64, 1), Memref("y", F64, 1)


def device(pointer: int, count: int = 4) -> DeviceArray:
    """Return a vector of the device."""
    return DeviceArray(pointer, F64, (count,), (1,))


def allocated(runtime: FakeRuntime, count: int = 4) -> DeviceArray:
    """Return a new vector of the device."""
    return device(runtime.allocate(8 * count, runtime.current_stream()), count)


def doubling(writes: str = "y", updates: frozenset[str] = frozenset()) -> KernelCode:
    """Return a kernel that stores twice ``x`` in ``y``, said to write ``writes``."""

    def replay(arguments: Any, blocks: int, seed: int) -> None:
        arguments[1][...] = 2 * arguments[0]

    params = (PointerParam(X), PointerParam(Y))
    one = Lit(Const(1, INDEX))
    sets = frozenset({"x"}), frozenset({writes}), updates
    return KernelCode("k", params, "", 32, one, *sets, lambda arch: b"", replay)


# ---------------------------------------------------------------- memory


def test_addresses_of_host_and_device_are_not_confused() -> None:
    runtime = FakeRuntime()
    host = np.ones(4)
    kernel = runtime.load(doubling())
    with pytest.raises(MisuseError, match="an address of the host"):
        runtime.launch(kernel, 1, [device(host.ctypes.data), allocated(runtime)], 11)
    with pytest.raises(MisuseError, match="an address of the host"):
        runtime.copy_to_device(host.ctypes.data, host, 12)


def test_registered_memory_has_another_address_on_the_device() -> None:
    """Upstream's first fault: the host pointer itself was handed to the library."""
    runtime = FakeRuntime()
    host = np.ones(4)
    runtime.register(host)
    assert runtime.device_pointer(host) != host.ctypes.data
    kernel = runtime.load(doubling())
    with pytest.raises(MisuseError, match="an address of the host"):
        runtime.launch(kernel, 1, [device(host.ctypes.data), allocated(runtime)], 11)
    target = allocated(runtime)
    runtime.launch(kernel, 1, [device(runtime.device_pointer(host)), target], 11)
    runtime.synchronize(11)
    assert runtime.memory.view(target).tolist() == [2.0] * 4


def test_memory_is_poisoned_and_bounded() -> None:
    runtime = FakeRuntime()
    array = allocated(runtime)
    assert np.isnan(runtime.memory.view(array)).all()
    with pytest.raises(MisuseError, match="40 bytes at offset 0 of 32 bytes"):
        runtime.memory.view(device(array.pointer, 5))
    with pytest.raises(MisuseError, match="not aligned"):
        runtime.memory.view(device(array.pointer + 4, 2))


@pytest.mark.parametrize(("shift", "what"), [(0, "freed already"), (8, "offset 8")])
def test_bad_frees(shift: int, what: str) -> None:
    runtime = FakeRuntime(reuses_memory=False)
    pointer = runtime.allocate(32, 11)
    if not shift:
        runtime.free(pointer, 11)
    with pytest.raises(MisuseError, match=what):
        runtime.free(pointer + shift, 11)


def test_use_after_free() -> None:
    runtime = FakeRuntime(reuses_memory=False)
    array = allocated(runtime)
    runtime.free(array.pointer, 11)
    with pytest.raises(MisuseError, match="freed already"):
        runtime.fill(array, np.float64(0), 11)


def test_free_while_another_stream_uses_it() -> None:
    runtime = FakeRuntime()
    array = allocated(runtime)
    runtime.fill(array, np.float64(0), 12)
    with pytest.raises(MisuseError, match="not ordered"):
        runtime.free(array.pointer, 11)


# ---------------------------------------------------------------- registrations


def test_overlapping_ranges_are_registered_once() -> None:
    runtime = FakeRuntime()
    host = np.ones(10)
    runtime.register(host[:6])
    with pytest.raises(FaultError, match="712") as caught:
        runtime.register(host[4:])
    assert caught.value.fault is Fault.ALREADY_REGISTERED
    runtime.register(host[6:])


def test_read_only_memory_is_not_registered() -> None:
    runtime = FakeRuntime()
    host = np.frombuffer(bytes(64))
    with pytest.raises(FaultError, match="read-only"):
        runtime.register(host)
    assert runtime.leaks() == []


def test_only_what_is_registered_is_unregistered() -> None:
    runtime = FakeRuntime()
    host = np.ones(10)
    runtime.register(host)
    with pytest.raises(FaultError, match="713"):
        runtime.unregister(np.ones(10))
    with pytest.raises(FaultError, match="error 1"):
        runtime.unregister(host[2:])
    runtime.unregister(host)
    assert runtime.leaks() == []


def test_memory_that_is_freed_while_registered_is_found() -> None:
    """Upstream's second fault: the output's pages stayed pinned after its memory was freed."""
    runtime = FakeRuntime()
    host = np.ones(1000)
    runtime.register(host)
    del host
    gc.collect()
    assert "registered memory was freed" in runtime.leaks()


def test_pages_in_use_are_not_unregistered() -> None:
    runtime = FakeRuntime()
    host, array = np.ones(4), allocated(runtime)
    runtime.register(host)
    runtime.copy_to_device(array.pointer, host, 12)
    with pytest.raises(MisuseError, match="unregister while copy_to_device is in flight"):
        runtime.unregister(host)


# ---------------------------------------------------------------- order


def test_streams_race_without_an_event() -> None:
    runtime = FakeRuntime()
    pinned = runtime.pinned(32).view(np.float64)
    x, y = allocated(runtime), allocated(runtime)
    runtime.copy_to_device(x.pointer, pinned, 12)
    kernel = runtime.load(doubling())
    with pytest.raises(MisuseError, match="not ordered"):
        runtime.launch(kernel, 1, [x, y], 11)
    event = runtime.create_event()
    runtime.record_event(event, 12)
    runtime.stream_wait(11, event)
    runtime.launch(kernel, 1, [x, y], 11)


def test_an_event_covers_what_was_queued_before_it() -> None:
    runtime = FakeRuntime()
    pinned = runtime.pinned(32).view(np.float64)
    x, y = allocated(runtime), allocated(runtime)
    event = runtime.create_event()
    runtime.record_event(event, 12)
    runtime.copy_to_device(x.pointer, pinned, 12)
    runtime.stream_wait(11, event)
    with pytest.raises(MisuseError, match="not ordered"):
        runtime.launch(runtime.load(doubling()), 1, [x, y], 11)


def test_what_is_copied_back_is_poison_until_the_host_waits() -> None:
    runtime = FakeRuntime()
    pinned = runtime.pinned(32).view(np.float64)
    pinned[...] = 7
    array = allocated(runtime)
    runtime.fill(array, np.float64(3), 11)
    runtime.copy_to_host(pinned, array.pointer, 11)
    assert np.isnan(pinned).all()
    runtime.synchronize(11)
    assert pinned.tolist() == [3.0] * 4


def test_the_source_of_a_copy_in_flight_stays_as_it_is() -> None:
    runtime = FakeRuntime()
    pinned = runtime.pinned(32).view(np.float64)
    array = allocated(runtime)
    runtime.copy_to_device(array.pointer, pinned, 12)
    pinned[...] = 1
    with pytest.raises(MisuseError, match="changed while it was in flight"):
        runtime.synchronize(12)


def test_pageable_copies_block() -> None:
    runtime = FakeRuntime()
    host, array = np.ones(4), allocated(runtime)
    runtime.copy_to_device(array.pointer, host, 12)
    host[...] = 5
    assert runtime.memory.view(array).tolist() == [1.0] * 4


def test_host_arrays_are_contiguous() -> None:
    runtime = FakeRuntime()
    array = allocated(runtime)
    with pytest.raises(MisuseError, match="not contiguous"):
        runtime.copy_to_device(array.pointer, np.ones(8)[::2], 12)


# ---------------------------------------------------------------- kernels


def test_launches_fit_the_kernel() -> None:
    runtime = FakeRuntime()
    x, y = allocated(runtime), allocated(runtime)
    kernel = runtime.load(doubling())
    with pytest.raises(MisuseError, match="takes 2 arguments, not 1"):
        runtime.launch(kernel, 1, [x], 11)
    with pytest.raises(MisuseError, match="on 0 blocks"):
        runtime.launch(kernel, 0, [x, y], 11)
    with pytest.raises(MisuseError, match="no array of the device"):
        runtime.launch(kernel, 1, [x, np.ones(4)], 11)
    with pytest.raises(MisuseError, match="x holds int64"):
        runtime.launch(kernel, 1, [DeviceArray(x.pointer, INDEX, (4,), (1,)), y], 11)
    with pytest.raises(MisuseError, match="no kernel"):
        runtime.launch(7, 1, [x, y], 11)


def test_scalars_have_their_dtype() -> None:
    runtime = FakeRuntime()
    params = (ScalarParam(Var("a", DType.FLOAT32)),)
    one = Lit(Const(1, INDEX))
    empty: frozenset[str] = frozenset()
    code = KernelCode(
        "k", params, "", 32, one, empty, empty, empty, lambda arch: b"", lambda *_: None
    )
    kernel = runtime.load(code)
    runtime.launch(kernel, 1, [np.float32(1)], 11)
    for wrong in (np.float64(1), 1.0, 1):
        with pytest.raises(MisuseError, match="not a float32"):
            runtime.launch(kernel, 1, [wrong], 11)


def test_a_kernel_writes_what_it_says() -> None:
    runtime = FakeRuntime()
    x, y = allocated(runtime), allocated(runtime)
    runtime.fill(x, np.float64(1), 11)
    runtime.launch(runtime.load(doubling(writes="z")), 1, [x, y], 11)
    with pytest.raises(MisuseError, match="writes y, which it only reads"):
        runtime.synchronize(11)


def test_a_kernel_may_write_a_part_of_what_it_reads() -> None:
    """What it calls by another name, as a view."""
    runtime = FakeRuntime()
    whole = allocated(runtime)
    runtime.fill(whole, np.float64(1), 11)
    half = device(whole.pointer, 2)
    part = device(whole.pointer + 16, 2)
    runtime.launch(runtime.load(doubling(writes="y")), 1, [half, part], 11)
    runtime.launch(runtime.load(doubling(writes="y")), 1, [part, part], 11)
    runtime.synchronize(11)
    assert runtime.memory.view(whole).tolist() == [1.0, 1.0, 4.0, 4.0]


def test_atomics_do_not_reach_the_host() -> None:
    runtime = FakeRuntime()
    host = np.ones(4)
    runtime.register(host)
    kernel = runtime.load(doubling(updates=frozenset({"y"})))
    with pytest.raises(MisuseError, match="updates y in mapped memory"):
        runtime.launch(kernel, 1, [allocated(runtime), device(runtime.device_pointer(host))], 11)


def test_scans_and_sorts() -> None:
    runtime = FakeRuntime()
    numbers = to_fake(runtime, np.array([3, 1, 2, 9]))
    runtime.sort(numbers.where, 3, 11)
    assert numbers.get().tolist() == [1, 2, 3, 9]
    runtime.scan(numbers.where, ScanOp.SUM, 11)
    assert numbers.get().tolist() == [1, 3, 6, 15]
    keys = [to_fake(runtime, np.array(key)) for key in ([1, 0, 1, 0], [5, 7, 4, 7])]
    order = to_fake(runtime, np.zeros(4, np.int64))
    runtime.sort_order(order.where, [key.where for key in keys], 4, 11)
    assert order.get().tolist() == [1, 3, 2, 0]
    with pytest.raises(MisuseError, match="or by none"):
        runtime.sort_order(order.where, [], 4, 11)


# ---------------------------------------------------------------- library calls


def spmv_call(runtime: FakeRuntime) -> tuple[int, Any, list[DeviceArray]]:
    """Return a described SpMV with its code."""
    prepared = by_name("spmv")
    (code,) = prepared.plan(Strategy.REGULAR_DMA).calls.values()
    names = ("A_pos1", "A_crd1", "A_vals", "x", "y")
    arrays = [to_fake(runtime, np.array(a)) for a in prepared.arguments[2:]]
    where = {name: array.where for name, array in zip(names, arrays, strict=True)}
    one = np.float64(1)
    arguments = LibraryArguments(where, ((7, 5), (), ()), one, one)
    call = runtime.describe(code, arguments, 11)
    assert isinstance(call, int)
    runtime.kept = arrays  # type: ignore[attr-defined]  # as long as the test
    return call, code, list(where.values())


def sizes_of(runtime: FakeRuntime, call: int, phase: LibraryPhase) -> list[int]:
    """Return the sizes of a phase that the library takes."""
    found = runtime.phase_sizes(call, phase)
    assert not isinstance(found, LibraryRefusal)
    return list(found)


def test_workspaces_have_the_size_that_was_asked_for() -> None:
    runtime = FakeRuntime()
    call, code, _ = spmv_call(runtime)
    (phase,) = code.phases
    with pytest.raises(MisuseError, match="before its sizes are asked"):
        runtime.run_phase(call, phase, [], {})
    (size,) = sizes_of(runtime, call, phase)
    assert size > 0
    short = runtime.allocate(max(size - 1, 1), 11) if size > 1 else 0
    with pytest.raises(MisuseError, match="bytes at"):
        runtime.run_phase(call, phase, [short], {})
    runtime.run_phase(call, phase, [runtime.allocate(size, 11)], {})
    with pytest.raises(MisuseError, match="out of turn"):
        runtime.run_phase(call, phase, [], {})
    assert any("descriptors of SpMV" in leak for leak in runtime.leaks())
    runtime.destroy(call)
    with pytest.raises(MisuseError, match="not described"):
        runtime.destroy(call)


def test_a_call_is_destroyed_when_its_work_is_queued() -> None:
    runtime = FakeRuntime()
    call, code, arrays = spmv_call(runtime)
    (phase,) = code.phases
    (size,) = sizes_of(runtime, call, phase)
    runtime.run_phase(call, phase, [runtime.allocate(size, 11)], {})
    with pytest.raises(MisuseError, match="not ordered"):
        runtime.fill(arrays[-1], np.float64(0), 12)


# ---------------------------------------------------------------- injected faults


def test_the_chosen_call_fails_before_it_does_anything() -> None:
    runtime = FakeRuntime(injection=Injection(at=1))
    runtime.allocate(8, 11)
    with pytest.raises(FaultError, match="injected") as caught:
        runtime.allocate(8, 11)
    assert caught.value.fault is Fault.OUT_OF_MEMORY
    assert runtime.leaks() == ["8 bytes of device memory"]


def test_late_failures_are_told_by_the_next_wait() -> None:
    runtime = FakeRuntime(injection=Injection(at=2, is_late=True))
    array = allocated(runtime)
    runtime.fill(array, np.float64(1), 11)
    with pytest.raises(FaultError, match="told late"):
        runtime.synchronize(11)
    runtime.synchronize(11)
