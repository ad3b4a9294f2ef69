"""CUDA through the driver: on a GPU where there is one, and what is said where there is none."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.backends.tensorrt import cuda as tensorrt_cuda
from dld_tui.backends.tensorrt.cuda import Cuda, select_device
from dld_tui.core.errors import ActivityError, UnavailableError
from tests.support.recorded import Recorded


def why_not() -> str:
    """Return why there is no GPU to run on; empty where there is one."""
    try:
        Cuda().close()
    except UnavailableError as error:
        return error.message
    return ""


NO_GPU = why_not()
on_gpu = pytest.mark.skipif(bool(NO_GPU), reason=NO_GPU or "-")


@pytest.fixture
def cuda() -> Iterator[Cuda]:
    with contextlib.closing(Cuda(0, spin=True)) as opened:
        yield opened


@pytest.mark.gpu
@on_gpu
def test_bytes_go_to_the_gpu_and_back(cuda: Cuda) -> None:
    data = bytes(range(256)) * 4096
    there, back, device = (
        cuda.allocate_host(len(data)),
        cuda.allocate_host(len(data)),
        cuda.allocate(len(data)),
    )
    stream = cuda.stream()
    begin, end = cuda.event(), cuda.event()
    cuda.write_host(there, data)
    cuda.record(begin, stream)
    cuda.copy_to_device(device, there, len(data), stream)
    cuda.copy_to_host(back, device, len(data), stream)
    cuda.record(end, stream)
    cuda.synchronize_event(end)

    assert cuda.read_host(back, len(data)) == data
    assert cuda.elapsed_ms(begin, end) > 0
    cuda.free(device)
    cuda.free_host(there)
    cuda.free_host(back)
    cuda.destroy_event(begin)
    cuda.destroy_event(end)
    cuda.destroy_stream(stream)


@pytest.mark.gpu
@on_gpu
def test_a_graph_does_again_what_was_captured(cuda: Cuda) -> None:
    host, device, stream = cuda.allocate_host(4), cuda.allocate(4), cuda.stream()
    cuda.write_host(host, b"once")
    cuda.copy_to_device(device, host, 4, stream)
    cuda.synchronize(stream)
    cuda.begin_capture(stream)
    cuda.copy_to_host(host, device, 4, stream)
    graph = cuda.end_capture(stream)
    cuda.write_host(host, b"????")

    cuda.launch(graph, stream)
    cuda.synchronize(stream)
    assert cuda.read_host(host, 4) == b"once"
    cuda.destroy_graph(graph)


@pytest.mark.gpu
@on_gpu
def test_a_capture_can_be_given_up(cuda: Cuda) -> None:
    stream = cuda.stream()
    cuda.begin_capture(stream)
    with pytest.raises(ActivityError, match=r"CUDA failed: .*captur"):
        cuda.synchronize(stream)
    cuda.abort_capture(stream)

    cuda.synchronize(stream)
    cuda.destroy_stream(stream)


@pytest.mark.gpu
@on_gpu
def test_the_gpu_is_known_and_its_memory_ends(cuda: Cuda) -> None:
    facts = cuda.environment()

    assert facts["gpu"]
    assert "." in str(facts["gpu_compute_capability"])
    assert int(str(facts["gpu_memory_bytes"])) > 1 << 30
    with pytest.raises(ActivityError, match="no memory left for"):
        cuda.allocate(1 << 50)
    with pytest.raises(UnavailableError, match="no GPU with this number"):
        Cuda(63)


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_without_a_driver_it_says_so() -> None:
    with pytest.raises(UnavailableError) as raised:
        Cuda()
    assert raised.value.hint or raised.value.message.startswith("CUDA cannot be used")


class Driver:
    """A driver that writes down every call, and fills what it is to fill with numbers of its own.

    Statuses are by function; it has a text for the status 719 only.
    """

    def __init__(self, **fails: int) -> None:
        self.fails = fails
        self.calls: list[str] = []
        self._next = itertools.count(0x1000, 0x10)

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._call, name, tensorrt_cuda._FUNCTIONS.get(name, ()))

    def _call(self, name: str, kinds: tuple[Any, ...], *arguments: Any) -> int:
        if name == "cuGetErrorString":
            status, text = arguments
            text._obj.value = b"launch failed" if status == 719 else None
            return 0 if status == 719 else 1
        if name == "cuDeviceGetName":
            arguments[0].value = b"Some GPU"
        shown = []
        for _, value in zip(kinds, arguments, strict=True):
            number = getattr(value, "value", value)
            if isinstance(number, int) and number > 1 << 32:  # where a result goes
                number = self._fill(name, number)
            shown.append(str(number))
        if name in self.fails:
            shown.append(f"status {self.fails[name]}")
        self.calls.append(f"{name}({', '.join(shown)})")
        return self.fails.get(name, 0)

    def _fill(self, name: str, address: int) -> str:
        if name == "cuEventElapsedTime":
            ctypes.c_float.from_address(address).value = 1.5
            return "-> 1.5"
        small = {"cuDeviceGet": 7, "cuDriverGetVersion": 12040, "cuDeviceGetAttribute": 9}
        kind = ctypes.c_int if name in small else ctypes.c_uint64
        value = small.get(name, 0) or next(self._next)
        kind.from_address(address).value = value
        return f"-> {value}"


@pytest.mark.parametrize("spin", [False, True])
def test_what_is_asked_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, recorded: Recorded, spin: bool
) -> None:
    driver = Driver(cuDevicePrimaryCtxSetFlags_v2=708)
    monkeypatch.setattr(tensorrt_cuda, "_load", lambda: driver)
    calls = driver.calls

    def done(title: str, result: object = None) -> None:
        calls.append(f"{title}: {result}")

    with contextlib.closing(Cuda(3, spin=spin)) as cuda:
        done("opened")
        done("environment", cuda.environment())
        for size in (0, 5000):
            memory, host = cuda.allocate(size), cuda.allocate_host(size)
            done("addresses", (memory, host))
        stream, events = cuda.stream(), (cuda.event(), cuda.event())
        done("handles", (stream, events))
        cuda.copy_to_device(1, 2, 30, stream)
        cuda.copy_to_host(2, 1, 40, stream)
        for event in events:
            cuda.record(event, stream)
        cuda.synchronize_event(events[1])
        cuda.synchronize(stream)
        done("elapsed", cuda.elapsed_ms(*events))
        cuda.begin_capture(stream)
        graph = cuda.end_capture(stream)
        done("graph", graph)
        cuda.launch(graph, stream)
        cuda.destroy_graph(graph)
        cuda.begin_capture(stream)
        cuda.abort_capture(stream)
        driver.fails["cuGraphInstantiateWithFlags"] = 700
        with pytest.raises(ActivityError):  # the graph that was captured is given back
            cuda.end_capture(stream)
        driver.fails["cuStreamEndCapture"] = 901
        cuda.abort_capture(stream)
        for event in events:
            cuda.destroy_event(event)
        cuda.destroy_stream(stream)
        cuda.free(memory)
        cuda.free_host(host)
        cuda.enter_thread()
    cuda.close()  # a second time
    recorded(f"cuda_calls_{'spinning' if spin else 'blocking'}", {"calls": "\n".join(calls)})


def test_what_the_driver_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, recorded: Recorded
) -> None:
    lines = []
    for function, status in (
        ("cuInit", 100), ("cuDeviceGet", 101), ("cuInit", 803), ("cuInit", 804),
        ("cuMemAlloc_v2", 2), ("cuMemHostAlloc", 2), ("cuMemAlloc_v2", 700),
        ("cuMemAlloc_v2", 719), ("cuDevicePrimaryCtxRetain", 2),
    ):  # fmt: skip
        driver = Driver(**{function: status})
        monkeypatch.setattr(tensorrt_cuda, "_load", lambda driver=driver: driver)
        with pytest.raises((ActivityError, UnavailableError)) as raised:
            Cuda().allocate(5000) and Cuda().allocate_host(5000)
        error = raised.value
        lines.append(f"{function} {status}: {type(error).__name__}: {error.message}")
        lines.append(f"  {error.hint}; {error.details}")
    recorded("cuda_refusals", {"refusals": "\n".join(lines)})


def test_a_driver_without_a_function_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())

    with pytest.raises(UnavailableError, match="the NVIDIA driver is too old"):
        Cuda()


def test_devices_are_numbers_or_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")

    assert select_device(2) == 2
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert select_device("MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b") == 0
    assert os.environ["CUDA_VISIBLE_DEVICES"].startswith("MIG-11c2")
    with pytest.raises(UnavailableError, match="no device 'first'"):
        select_device("first")
