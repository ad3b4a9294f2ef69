"""CUPTI through cupti-python: the work of the GPU over time. Nothing else imports it.

Kernels, copies and memsets are recorded alone, which adds a microsecond or two to each launch, or
with overhead and the calls of the runtime and the driver, whose correlation numbers identify the
launching call.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.installation import install_hint
from dld_tui.core.report.gpu_kernels import Activity, ActivityLog, NamedRange
from dld_tui.core.types import JSON

_BUFFER_BYTES = 32 << 20
"""Room for 100,000 records. When one is requested, a pass waits for milliseconds."""
_LIBRARIES = ("libcupti.so.13", "libnvperf_target.so", "libnvperf_host.so")
"""Those that the profiling part loads by name; once loaded, their folder need not be on a path."""
_WORK_KINDS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMSET")
_CALL_KINDS = ("OVERHEAD", "RUNTIME", "DRIVER")
_INJECTION = "NVTX_INJECTION64_PATH"
"""Names the library that hears of NVTX ranges; read when a program makes its first one."""
_COPIES = {
    "HTOD": "HtoD",
    "DTOH": "DtoH",
    "DTOD": "DtoD",
    "HTOH": "HtoH",
    "PTOP": "PtoP",
    "HTOA": "HtoA",
    "ATOH": "AtoH",
    "ATOA": "AtoA",
    "ATOD": "AtoD",
    "DTOA": "DtoA",
}


@functools.cache
def load(module: str = "cupti.cupti") -> Any:
    """Import a module of cupti-python and return it.

    Raises:
        UnavailableError: It is not installed, or cannot work here; says why.
    """
    _preload()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name in ("cupti", module):
            raise UnavailableError(
                "cupti-python is not installed", hint=install_hint("gpu")
            ) from None
        raise UnavailableError(
            f"cupti-python cannot be loaded: {error}", hint=install_hint("gpu")
        ) from error
    except (ImportError, OSError, RuntimeError) as error:
        raise UnavailableError(
            f"cupti-python cannot be loaded: {error}", hint=install_hint("gpu")
        ) from error


def _preload() -> None:
    """Load the libraries that come as a package, where the loader does not look for them."""
    try:
        folders = [Path(folder) for folder in importlib.import_module("nvidia").__path__]
    except ImportError:
        return
    for folder in (
        library_folder for root in folders for library_folder in sorted(root.glob("*/lib"))
    ):
        if (folder / _LIBRARIES[0]).exists():
            for name in _LIBRARIES:
                with contextlib.suppress(OSError):
                    ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
            return


def enable_nvtx() -> None:
    """Let CUPTI hear of the NVTX ranges that libraries make from now on, unless another tool does.

    It has to be called before a library makes its first range; without cupti-python it does
    nothing.
    """
    if _INJECTION in os.environ:
        return
    with contextlib.suppress(ImportError):
        roots = [Path(folder) for folder in importlib.import_module("nvidia").__path__]
        for folder in (
            library_folder for root in roots for library_folder in sorted(root.glob("*/lib"))
        ):
            if (folder / _LIBRARIES[0]).exists():
                os.environ[_INJECTION] = str(folder / _LIBRARIES[0])
                return


@contextlib.contextmanager
def cupti_errors(doing: str) -> Iterator[None]:
    """Turn exceptions of CUPTI into an UnavailableError that says that `doing` failed."""
    try:
        yield
    except UnavailableError:
        raise
    except PermissionError as error:
        raise UnavailableError(
            f"{doing} is not permitted",
            hint="Run as root, or let the driver allow it to all users with the module option"
            " NVreg_RestrictProfilingToAdminUsers=0; on a Jetson join the group debug",
            details=str(error),
        ) from error
    # The seam: its errors are RuntimeErrors, ValueErrors and its own class.
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        if "INSUFFICIENT_PRIVILEGES" in text.upper():
            raise UnavailableError(f"{doing} is not permitted: {text}") from error
        raise UnavailableError(f"{doing} does not work here: {text}") from error


class ActivityTracer:
    """Records what the GPU does between :meth:`start` and :meth:`stop`.

    Args:
        device: The CUDA device whose streams need no device in their names.
        module: ``cupti.cupti`` or a stand-in for it.
        calls: Record also the calls that launch the work, and what the driver and CUPTI take.
        ranges: Record also NVTX ranges, see :func:`enable_nvtx`.

    Raises:
        UnavailableError: cupti-python is not installed or does not load.
    """

    def __init__(
        self, device: int = 0, module: Any = None, *, calls: bool = True, ranges: bool = False
    ) -> None:
        self._cupti = module if module is not None else load()
        self._device = device
        self._kinds = (*_WORK_KINDS, *(_CALL_KINDS if calls else ()))
        self._ranges = ranges
        self._open_ranges: dict[int, tuple[str, int]] = {}
        self._enabled: list[Any] = []
        self._bad_records = 0
        self.log = ActivityLog()
        kinds = self._cupti.ActivityKind
        parsers: dict[str, Callable[[Any], None]] = {
            "CONCURRENT_KERNEL": self._kernel,
            "MEMCPY": self._copy,
            "MEMSET": self._memset,
            "OVERHEAD": self._overhead,
            "RUNTIME": self._call,
            "DRIVER": self._call,
            **({"MARKER": self._marker} if ranges else {}),
        }
        self._parsers = {int(getattr(kinds, name)): take for name, take in parsers.items()}
        self._copy_names = _enum_names(self._cupti, "ActivityMemcpyKind")
        self._overhead_names = _enum_names(self._cupti, "ActivityOverheadKind")

    def start(self) -> None:
        """Begin to record.

        Raises:
            UnavailableError: CUPTI refuses; nothing is left switched on.
        """
        try:
            with cupti_errors("recording the activity of the GPU"):
                self._cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._completed)
                for name in self._kinds:
                    kind = getattr(self._cupti.ActivityKind, name)
                    self._cupti.activity_enable(kind)
                    self._enabled.append(kind)
            if self._ranges:
                # Recording continues if it refuses names.
                with contextlib.suppress(UnavailableError), cupti_errors("recording named ranges"):
                    self._cupti.activity_enable(self._cupti.ActivityKind.MARKER)
                    self._enabled.append(self._cupti.ActivityKind.MARKER)
        except UnavailableError:
            self._disable()
            raise

    def flush(self) -> None:
        """Collect the recorded work; called between passes, to disturb none."""
        with cupti_errors("reading the activity of the GPU"):
            self._cupti.activity_flush_all(0)

    def stop(self) -> ActivityLog:
        """Stop recording and return everything.

        Raises:
            UnavailableError: CUPTI does not hand over its records.
        """
        try:
            with cupti_errors("reading the activity of the GPU"):
                self._cupti.activity_flush_all(1)
        finally:
            self._disable()
        self.log.dropped = self._dropped() + self._bad_records
        return self.log

    def _disable(self) -> None:
        for kind in self._enabled:
            with contextlib.suppress(UnavailableError), cupti_errors("stopping"):
                self._cupti.activity_disable(kind)
        self._enabled.clear()

    def _dropped(self) -> int:
        count = ctypes.c_size_t(0)
        with contextlib.suppress(UnavailableError), cupti_errors("counting"):
            self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(count))
        return count.value

    def _completed(self, records: list[Any]) -> None:
        for record in records:
            take = self._parsers.get(int(record.kind))
            try:
                if take is not None:
                    take(record)
            except (AttributeError, TypeError, ValueError):
                self._bad_records += 1  # an exception may not pass through CUPTI's own thread

    def _call(self, record: Any) -> None:
        self.log.launched(record.correlation_id, record.start)

    def _marker(self, record: Any) -> None:
        flags, kinds = int(record.flags_), self._cupti.ActivityFlag
        if flags & int(kinds.MARKER_START):
            self._open_ranges[record.id] = (str(record.name), record.timestamp)
        elif flags & int(kinds.MARKER_END):
            name, start = self._open_ranges.pop(record.id, ("", 0))
            if 0 < start <= record.timestamp:
                self.log.ranges.append(NamedRange(name, start, record.timestamp))

    def _kernel(self, record: Any) -> None:
        details: dict[str, JSON] = {
            "grid": [record.grid_x, record.grid_y, record.grid_z],
            "block": [record.block_x, record.block_y, record.block_z],
            "registers": record.registers_per_thread,
            "shared_bytes": record.static_shared_memory + record.dynamic_shared_memory,
        }
        self._add("kernel", demangled(str(record.name)), record, None, details)

    def _copy(self, record: Any) -> None:
        name = self._copy_names.get(int(record.copy_kind), "")
        self._add("memcpy", _COPIES.get(name, "copy"), record, int(record.bytes), None)

    def _memset(self, record: Any) -> None:
        self._add("memset", "memset", record, int(record.bytes), None)

    def _add(
        self,
        kind: Any,
        name: str,
        record: Any,
        size: int | None,
        details: Mapping[str, JSON] | None,
    ) -> None:
        if not 0 < record.start <= record.end:
            raise ValueError("CUPTI has no times for it")
        stream = f"stream {record.stream_id}"
        if record.device_id != self._device:
            stream = f"GPU {record.device_id} {stream}"
        start, end, correlation = record.start, record.end, record.correlation_id
        node = int(getattr(record, "graph_node_id", 0))
        self.log.work.append(
            Activity(kind, name, start, end, correlation, stream, size, details, node)
        )

    def _overhead(self, record: Any) -> None:
        if not 0 < record.start <= record.end:
            raise ValueError("CUPTI has no times for it")
        name = self._overhead_names.get(int(record.overhead_kind), "UNKNOWN")
        words = name.replace("_", " ").lower().replace("cupti", "CUPTI")
        # Not of any launch: its own start says in which pass it was.
        self.log.work.append(Activity("overhead", words, record.start, record.end, -1, "overhead"))


def _enum_names(module: Any, name: str) -> dict[int, str]:
    return {int(member): member.name for member in getattr(module, name, ())}


@functools.lru_cache(maxsize=65536)
def demangled(name: str) -> str:
    """Return a C++ name as people write it; the name itself when it is not one."""
    if not name.startswith("_Z"):
        return name
    demangle = _demangler()
    return (demangle(name) if demangle is not None else None) or name


@functools.cache
def _demangler() -> Callable[[str], str | None] | None:
    try:
        library, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
        function, free = library.__cxa_demangle, libc.free
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p]

    def demangle(name: str) -> str | None:
        status = ctypes.c_int()
        pointer = function(name.encode(), None, None, ctypes.addressof(status))
        if not pointer:
            return None
        try:
            return ctypes.string_at(pointer).decode("utf-8", "replace")
        finally:
            free(pointer)

    return demangle
