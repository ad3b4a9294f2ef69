"""The part of CUDA that running an engine needs: memory, copies, streams, events and graphs.

It is the driver's own library, through ctypes: that is there wherever a GPU is, and its functions
have kept their form since CUDA 11, while cuda-python would be one more package that has to fit
the driver, and Polygraphy's wrapper of the runtime has neither events nor graphs. TensorRT uses
the same context, and its stream handles are the driver's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import ActivityError, DldError, UnavailableError
from dld_tui.core.types import PlainValues

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_OUT_OF_MEMORY = 2
_NO_DEVICE = {
    100: "the driver finds no GPU",
    101: "there is no GPU with this number",
    803: "the driver does not match the CUDA libraries",
    804: "the driver is too old for the CUDA libraries",
}
_NON_BLOCKING_STREAM, _BLOCKING_EVENT, _RELAXED_CAPTURE = 1, 1, 2
_SCHEDULE_SPIN, _SCHEDULE_BLOCKING = 1, 4
_MAJOR, _MINOR = 75, 76
_HANDLE, _SIZE, _POINTER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
_OUT = ctypes.c_void_p
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDriverGetVersion": (_OUT,),
    "cuDeviceGet": (_OUT, ctypes.c_int),
    "cuDeviceGetName": (ctypes.c_char_p, ctypes.c_int, ctypes.c_int),
    "cuDeviceGetAttribute": (_OUT, ctypes.c_int, ctypes.c_int),
    "cuDeviceTotalMem_v2": (_OUT, ctypes.c_int),
    "cuDevicePrimaryCtxSetFlags_v2": (ctypes.c_int, ctypes.c_uint),
    "cuDevicePrimaryCtxRetain": (_OUT, ctypes.c_int),
    "cuDevicePrimaryCtxRelease_v2": (ctypes.c_int,),
    "cuCtxSetCurrent": (_HANDLE,),
    "cuMemAlloc_v2": (_OUT, _SIZE),
    "cuMemFree_v2": (_POINTER,),
    "cuMemHostAlloc": (_OUT, _SIZE, ctypes.c_uint),
    "cuMemFreeHost": (_HANDLE,),
    "cuMemcpyHtoDAsync_v2": (_POINTER, _HANDLE, _SIZE, _HANDLE),
    "cuMemcpyDtoHAsync_v2": (_HANDLE, _POINTER, _SIZE, _HANDLE),
    "cuStreamCreate": (_OUT, ctypes.c_uint),
    "cuStreamDestroy_v2": (_HANDLE,),
    "cuStreamSynchronize": (_HANDLE,),
    "cuEventCreate": (_OUT, ctypes.c_uint),
    "cuEventDestroy_v2": (_HANDLE,),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventSynchronize": (_HANDLE,),
    "cuEventElapsedTime": (_OUT, _HANDLE, _HANDLE),
    "cuStreamBeginCapture_v2": (_HANDLE, ctypes.c_int),
    "cuStreamEndCapture": (_HANDLE, _OUT),
    "cuGraphInstantiateWithFlags": (_OUT, _HANDLE, ctypes.c_ulonglong),
    "cuGraphLaunch": (_HANDLE, _HANDLE),
    "cuGraphDestroy": (_HANDLE,),
    "cuGraphExecDestroy": (_HANDLE,),
}


class Cuda:
    """One device, whose primary context this process uses. Close it at the end.

    All sizes are in bytes; streams, events and graphs are the driver's handles as numbers.

    Args:
        device: Its number, or the UUID of a GPU or a MIG instance (``MIG-…``). By a UUID, the
            process sees that device only, and must not have used CUDA before.
        spin: Wait for the device with a busy processor: sooner, at the price of a core.

    Raises:
        UnavailableError: There is no driver or no such device; says why.
    """

    def __init__(self, device: int | str = 0, spin: bool = False) -> None:
        number = select_device(device)
        self._spin = spin
        self._library = _load()
        self._call("cuInit", 0)
        handle = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.addressof(handle), number)
        self._device = handle.value
        flags = _SCHEDULE_SPIN if spin else _SCHEDULE_BLOCKING
        with contextlib.suppress(DldError):  # refused where the context is in use: as it is, then
            self._call("cuDevicePrimaryCtxSetFlags_v2", self._device, flags)
        self._context = _HANDLE()
        self._call("cuDevicePrimaryCtxRetain", ctypes.addressof(self._context), self._device)
        self._open = True
        self.enter_thread()

    def enter_thread(self) -> None:
        """Let the calling thread use the device; the one that made this does already."""
        self._call("cuCtxSetCurrent", self._context)

    def environment(self) -> PlainValues:
        """Return what is known of the device, by the names that a report's environment has."""
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), self._device)
        driver, size = ctypes.c_int(), _SIZE()
        self._call("cuDriverGetVersion", ctypes.addressof(driver))
        self._call("cuDeviceTotalMem_v2", ctypes.addressof(size), self._device)
        return {
            "gpu": name.value.decode("utf-8", "replace"),
            "gpu_compute_capability": f"{self._attribute(_MAJOR)}.{self._attribute(_MINOR)}",
            "gpu_cuda_driver": f"{driver.value // 1000}.{driver.value % 1000 // 10}",
            "gpu_memory_bytes": size.value,
        }

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.addressof(value), number, self._device)
        return value.value

    def allocate(self, size: int) -> int:
        """Return the address of new memory of the device.

        Raises:
            ActivityError: There is none left.
        """
        address = _POINTER()
        self._call("cuMemAlloc_v2", ctypes.addressof(address), max(size, 1), size=size)
        return address.value

    def free(self, address: int) -> None:
        """Give memory of the device back."""
        self._call("cuMemFree_v2", address)

    def allocate_host(self, size: int) -> int:
        """Return the address of new memory of the host that copies run fastest from.

        Raises:
            ActivityError: There is none left.
        """
        address = _HANDLE()
        self._call(
            "cuMemHostAlloc", ctypes.addressof(address), max(size, 1), 0,
            size=size, owner="this machine",
        )  # fmt: skip
        return address.value or 0

    def free_host(self, address: int) -> None:
        """Give memory of :meth:`allocate_host` back."""
        self._call("cuMemFreeHost", address)

    def write_host(self, address: int, data: bytes) -> None:
        """Put bytes in memory of :meth:`allocate_host`."""
        ctypes.memmove(address, data, len(data))

    def read_host(self, address: int, size: int) -> bytes:
        """Return bytes of memory of :meth:`allocate_host`."""
        return ctypes.string_at(address, size)

    def copy_to_device(self, device: int, host: int, size: int, stream: int) -> None:
        """Copy from the host, in the order of a stream."""
        self._call("cuMemcpyHtoDAsync_v2", device, host, size, stream)

    def copy_to_host(self, host: int, device: int, size: int, stream: int) -> None:
        """Copy to the host, in the order of a stream."""
        self._call("cuMemcpyDtoHAsync_v2", host, device, size, stream)

    def stream(self) -> int:
        """Return a new stream."""
        return self._make("cuStreamCreate", _NON_BLOCKING_STREAM)

    def destroy_stream(self, stream: int) -> None:
        """Give a stream back."""
        self._call("cuStreamDestroy_v2", stream)

    def synchronize(self, stream: int) -> None:
        """Wait for all work of a stream."""
        self._call("cuStreamSynchronize", stream)

    def event(self) -> int:
        """Return a new event, waited for as this device was opened."""
        return self._make("cuEventCreate", 0 if self._spin else _BLOCKING_EVENT)

    def destroy_event(self, event: int) -> None:
        """Give an event back."""
        self._call("cuEventDestroy_v2", event)

    def record(self, event: int, stream: int) -> None:
        """Mark where a stream is."""
        self._call("cuEventRecord", event, stream)

    def synchronize_event(self, event: int) -> None:
        """Wait until the work before an event is done."""
        self._call("cuEventSynchronize", event)

    def elapsed_ms(self, first: int, last: int) -> float:
        """Return the time between two events that are done."""
        value = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.addressof(value), first, last)
        return value.value

    def begin_capture(self, stream: int) -> None:
        """Record the work of a stream from now on, instead of doing it."""
        self._call("cuStreamBeginCapture_v2", stream, _RELAXED_CAPTURE)

    def end_capture(self, stream: int) -> int:
        """Return the recorded work as a graph to launch."""
        graph, executable = _HANDLE(), _HANDLE()
        self._call("cuStreamEndCapture", stream, ctypes.addressof(graph))
        try:
            self._call("cuGraphInstantiateWithFlags", ctypes.addressof(executable), graph, 0)
        finally:
            self._call("cuGraphDestroy", graph)
        return executable.value or 0

    def abort_capture(self, stream: int) -> None:
        """Forget what is being recorded, after an error."""
        graph = _HANDLE()
        with contextlib.suppress(DldError):
            self._call("cuStreamEndCapture", stream, ctypes.addressof(graph))
        if graph.value:
            self._call("cuGraphDestroy", graph)

    def launch(self, graph: int, stream: int) -> None:
        """Do the work of a graph."""
        self._call("cuGraphLaunch", graph, stream)

    def destroy_graph(self, graph: int) -> None:
        """Give a graph back."""
        self._call("cuGraphExecDestroy", graph)

    def close(self) -> None:
        """Let go of the device; what was not given back goes with it."""
        if self._open:
            self._open = False
            self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    def _make(self, function: str, flags: int) -> int:
        handle = _HANDLE()
        self._call(function, ctypes.addressof(handle), flags)
        return handle.value or 0

    def _call(
        self, function: str, *arguments: Any, size: int | None = None, owner: str = "the GPU"
    ) -> None:
        status = int(getattr(self._library, function)(*arguments))
        if status == 0:
            return
        if status == _OUT_OF_MEMORY:
            wanted = f" for {size:,} bytes" if size is not None else ""
            raise ActivityError(
                f"{owner} has no memory left{wanted}",
                hint=f"Use a smaller batch, or end other programs on {owner}",
            )
        if status in _NO_DEVICE:
            raise UnavailableError(f"CUDA cannot be used: {_NO_DEVICE[status]}")
        raise ActivityError(f"CUDA failed: {self._meaning(status)}", details=function)

    def _meaning(self, status: int) -> str:
        text = ctypes.c_char_p()
        ask = getattr(self._library, "cuGetErrorString", None)
        if ask is not None and ask(status, ctypes.byref(text)) == 0 and text.value:
            return text.value.decode("utf-8", "replace")
        return f"error {status}"


def select_device(device: int | str) -> int:
    """Return the number that CUDA gives a device in this process.

    A UUID makes it the only one: MIG instances have no number of their own.

    Raises:
        UnavailableError: It is neither a number nor a UUID.
    """
    text = str(device).strip()
    if text.isdecimal():
        return int(text)
    if text.startswith(("MIG-", "GPU-")):
        os.environ["CUDA_VISIBLE_DEVICES"] = text
        return 0
    raise UnavailableError(
        f"there is no device {text!r}", hint="Give a number, or a UUID as dld doctor lists them"
    )


def _load() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY)
        for name, arguments in _FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
    except OSError:
        raise UnavailableError(
            "there is no NVIDIA driver on this machine: engines can be neither run nor loaded",
            hint="Run it on a target that has a GPU, or only build the engine",
        ) from None
    except AttributeError as error:
        raise UnavailableError(f"the NVIDIA driver is too old: {error}") from None
    return library


if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt


def allocator_of(
    address: int, size: int, on_shape: Callable[[tuple[int, ...]], None]
) -> trt.IOutputAllocator:
    """Return the library's allocator that gives memory which is there already.

    Args:
        address: Of the memory.
        size: Its bytes: as many as the library says that it needs at most.
        on_shape: Gets the shape, in every run.
    """

    class Allocator(trt.IOutputAllocator):
        """Gives the memory; no address when more is asked for, which ends the run."""

        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)

        def reallocate_output(
            self, tensor_name: str, memory: int, wanted: int, alignment: int
        ) -> int:
            """Return the memory; before TensorRT 10."""
            return address if wanted <= size else 0

        def reallocate_output_async(
            self, tensor_name: str, memory: int, wanted: int, alignment: int, stream: int
        ) -> int:
            """Return the memory; since TensorRT 10."""
            return address if wanted <= size else 0

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            """Pass the shape on."""
            on_shape(tuple(int(dim) for dim in shape))

    return Allocator()
