"""CUDA through the driver: on a GPU where there is one, and what is said where there is none."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.backends.tensorrt import cuda as tensorrt_cuda
from dld_tui.backends.tensorrt.cuda import Cuda, select_device
from dld_tui.core.errors import ActivityError, UnavailableError


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
    """A driver whose every call succeeds, but for those that are told to fail.

    It has a text for the status 719 only.
    """

    def __init__(self, **fails: int) -> None:
        self.fails = fails
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*_arguments: Any) -> int:
            self.calls.append(name)
            if name == "cuGetErrorString":
                status, text = _arguments
                text._obj.value = b"launch failed" if status == 719 else None
                return 0 if status == 719 else 1
            return self.fails.get(name, 0)

        return call


@pytest.mark.parametrize(
    ("fails", "kind", "message"),
    [
        ({"cuInit": 100}, UnavailableError, "CUDA cannot be used: the driver finds no GPU"),
        ({"cuDeviceGet": 101}, UnavailableError, "there is no GPU with this number"),
        ({"cuMemAlloc_v2": 2}, ActivityError, "the GPU has no memory left for 5,000 bytes"),
        ({"cuMemAlloc_v2": 700}, ActivityError, "CUDA failed: error 700"),
        ({"cuMemAlloc_v2": 719}, ActivityError, "CUDA failed: launch failed"),
    ],
)
def test_what_the_driver_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, fails: dict[str, int], kind: type[Exception], message: str
) -> None:
    driver = Driver(**fails)
    monkeypatch.setattr(tensorrt_cuda, "_load", lambda: driver)

    with pytest.raises(kind, match=message):
        Cuda().allocate(5000)


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
