"""What is recorded with measurements: the machine, its state, and the model."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui import __version__
from dld_tui.core.statistics import share_percent
from dld_tui.core.types import JSON, PlainValues

if TYPE_CHECKING:
    pass

_CPU_ROOT = Path("/sys/devices/system/cpu")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")
_ARM_PARTS = {
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd42": "Cortex-A78AE",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
}
_ARM = "0x41"
"""The implementer number of Arm itself in ``/proc/cpuinfo``."""


def environment(packages: Iterable[str] = ()) -> PlainValues:
    """Return what this machine is at this moment; what cannot be read is left out.

    Args:
        packages: Distributions whose versions matter, e.g. ``onnxruntime``.
    """
    machine: PlainValues = {
        "cpu": cpu_name(),
        "cpu_cores": physical_cores(),
        "cpu_threads": usable_threads(),
        "cpu_limit": _cpu_limit(),
        **_clocks(),
        "load_average": _load_average(),
        "memory_bytes": memory_bytes(),
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    for package in packages:
        machine[package] = package_version(package)
    return {name: value for name, value in machine.items() if value is not None}


def package_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    if distribution == "dld-tui":
        return __version__  # on a target it runs without being installed
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def cpu_name() -> str:
    """Return the processor's name, e.g. ``Intel(R) Xeon(R) Platinum 8481C``."""
    fields = _cpu_fields()
    for key in ("model name", "Model", "Hardware"):
        if fields.get(key):
            return fields[key]
    if fields.get("CPU implementer") == _ARM:
        return _ARM_PARTS.get(fields.get("CPU part", ""), "Arm processor")
    return platform.processor() or platform.machine() or "unknown processor"


def _cpu_fields() -> dict[str, str]:
    """Return the lines of the first processor in ``/proc/cpuinfo``."""
    fields: dict[str, str] = {}
    for line in (_read(Path("/proc/cpuinfo")) or "").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), " ".join(value.split()))
    return fields


def physical_cores() -> int | None:
    """Return the number of processor cores; None if unknown."""
    pairs = set()
    for folder in _CPU_ROOT.glob("cpu[0-9]*/topology"):
        package, core = _read(folder / "physical_package_id"), _read(folder / "core_id")
        if package is not None and core is not None:
            pairs.add((package, core))
    return len(pairs) or None


def usable_threads() -> int:
    """Return how many hardware threads this process may run on."""
    return len(_usable_processors()) or os.cpu_count() or 1


def _usable_processors() -> set[int]:
    """Return the numbers of the processors that this process may run on; empty if unknown."""
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # not on macOS
        return set()


def _cpu_limit() -> float | None:
    """Return the processors that the container grants, e.g. 1.5; None when it sets no limit."""
    parts = (_read(_CGROUP_LIMIT) or "max").split()
    if len(parts) != 2 or not all(part.isdecimal() for part in parts) or parts[1] == "0":
        return None
    return round(int(parts[0]) / int(parts[1]), 2)


def _clocks() -> PlainValues:
    """Return the governor and frequencies of the processors, the distinct ones by commonness."""
    governors = sorted(
        {
            text
            for path in _CPU_ROOT.glob("cpu[0-9]*/cpufreq/scaling_governor")
            if (text := _read(path))
        }
    )
    boost = _read(_CPU_ROOT / "cpufreq/boost")
    no_turbo = _read(_CPU_ROOT / "intel_pstate/no_turbo")
    return {
        "cpu_governor": ", ".join(governors) or None,
        "cpu_mhz": cpu_mhz(),
        "cpu_mhz_max": _mhz("cpuinfo_max_freq"),
        "cpu_boost": (boost == "1" if boost else None) if no_turbo is None else no_turbo == "0",
    }


def cpu_mhz() -> float | None:
    """Return the present frequency of the fastest processor; None if unknown."""
    return _mhz("scaling_cur_freq") or _mhz_of_cpuinfo()


def _mhz(file: str) -> float | None:
    """Return the greatest frequency over the processors."""
    frequencies = [
        int(text) / 1000
        for path in _CPU_ROOT.glob(f"cpu[0-9]*/cpufreq/{file}")
        if (text := _read(path)) and text.isdecimal()
    ]
    return max(frequencies, default=None)


def _mhz_of_cpuinfo() -> float | None:
    try:
        return float(_cpu_fields()["cpu MHz"])
    except (KeyError, ValueError):
        return None


def _load_average() -> list[JSON] | None:
    """Return the load over 1, 5 and 15 minutes: a busy machine measures badly."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except OSError:
        return None


def memory_bytes() -> int | None:
    """Return the memory of this machine; None if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def waited_percent() -> float:
    """Return how much of its time the main thread was ready to run and had no processor.

    Linux counts both in ``/proc/self/schedstat``, since the start of the process; 0 where it does
    not.
    """
    times = (_read(Path("/proc/self/schedstat")) or "").split()
    if len(times) < 2 or not all(map(str.isdecimal, times)):
        return 0.0
    used, waited = map(int, times[:2])
    return share_percent(waited, used + waited) or 0.0


def peak_memory() -> int | None:
    """Return the most memory that this process has had in use, in bytes; None if unknown."""
    for line in (_read(Path("/proc/self/status")) or "").splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM" and value.split()[0].isdecimal():
            return int(value.split()[0]) * 1024
    return None


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.platform()


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


class CpuWatch:
    """How busy other programs keep the processors while something is measured.

    Read from ``/proc/stat`` and this process's own times; unknown elsewhere. The processors are
    those that this process may run on, whoever else uses them.
    """

    def __init__(self) -> None:
        self._began = _busy_seconds()
        self._own = _own_seconds()
        self._at = time.monotonic()

    def environment(self) -> Mapping[str, JSON]:
        """Return ``other_busy_threads``, the mean since the start, and ``load_average_after``."""
        machine: dict[str, JSON] = {"load_average_after": _load_average()}
        now, passed = _busy_seconds(), time.monotonic() - self._at
        if now is not None and self._began is not None and passed > 0:
            others = (now - self._began) - (_own_seconds() - self._own)
            machine["other_busy_threads"] = round(max(0.0, others / passed), 2)
        return {name: value for name, value in machine.items() if value is not None}


def _own_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _busy_seconds() -> float | None:
    """Return the seconds that the usable processors have worked, or worked for another machine."""
    usable = {f"cpu{number}" for number in _usable_processors()}
    rows = [line.split() for line in (_read(Path("/proc/stat")) or "").splitlines()]
    rows = [row[1:9] for row in rows if row and row[0] in usable]
    if not rows or not all(len(row) == 8 and all(map(str.isdecimal, row)) for row in rows):
        return None
    ticks = 0
    for user, nice, system, _idle, _wait, interrupts, soft, stolen in (map(int, r) for r in rows):
        ticks += user + nice + system + interrupts + soft + stolen
    return ticks / os.sysconf("SC_CLK_TCK")
