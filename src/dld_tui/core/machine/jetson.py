"""What is known from the files and tools of a Jetson: power modes, clocks of the GPU, the release.

Formats: the header of ``/etc/nvpmodel.conf`` in Jetson Linux; NVIDIA's developer guides of R28 to
R39, "Supported Modes and Power Efficiency"; and outputs that were published of each board.
"""

from __future__ import annotations

import math
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from dld_tui.core.dataclass import dataclass

_POWER_MODE = "power mode"
"""In what nvpmodel says."""

_SECTION = re.compile(r"<\s*(\w+)\b([^>]*)>?")
_NUMBER = re.compile(r"[0-9]{1,9}")
_ATTRIBUTE = re.compile(r"(\w+)\s*=\s*\"?([^\s\">]+)")
_WATTS = re.compile(r"(?:^|_)(\d+(?:\.\d+)?)W(?:_|$)", re.IGNORECASE)
_CORES = re.compile(r"_(\d+)CORES?(?:_|$)", re.IGNORECASE)
_ALL_CORES = 1 << 10
_GPU_PATH = re.compile(r"/[^/]*(?:gpu|gp10b|gv11b|ga10b|gb10b)[^/]*/(?:.*/)?max_freq$")
_GPU_LINE = re.compile(r"^\s*(GPU\d*|gpu-gpc-\d+)\b:?\s.*?\bMinFreq=")
_FREQUENCY = re.compile(r"\b(Min|Max|Current)Freq=(\d{1,15})\b")
_RELEASE = re.compile(r"\bR(\d{1,4})\s*\(release\)(?:,\s*REVISION:\s*([\d.]+))?")
_JETPACKS: Mapping[int, int] = {28: 3, 31: 4, 32: 4, 34: 5, 35: 5, 36: 6, 38: 7, 39: 7}
"""JetPack by the major number of Jetson Linux."""


@dataclass(frozen=True)
class PowerMode:
    """A mode that ``nvpmodel -m`` sets.

    Caps are in Hz or kHz, as the file has them; infinite where the file says that there is none,
    and None where it says nothing.
    """

    id: int
    name: str
    """Untrusted text."""
    gpu_cap: float | None = None
    memory_cap: float | None = None
    cpu_caps: Mapping[str, float] = field(default_factory=dict)
    cores: int | None = None

    @property
    def watts(self) -> float | None:
        """Return the power budget that its name tells, such as 15 of ``MODE_15W_6CORE``."""
        match = _WATTS.search(self.name)
        return float(match[1]) if match else None

    @property
    def _name_rank(self) -> int:
        """Return over 0 for NVIDIA's names of the mode that caps nothing that the board takes."""
        name = self.name.upper().removeprefix("MODE_")
        if not re.match(r"MAXN(_|$)", name):
            return 0
        return 2 if "SUPER" in name else 1

    @property
    def _cpu(self) -> float:
        """Return cores times the highest cap of a cluster, to order modes of equal GPU clocks."""
        cores = self.cores
        if cores is None:
            match = _CORES.search(self.name)
            cores = int(match[1]) if match else _ALL_CORES if self.name.endswith("_ALL") else 0
        return cores * max(self.cpu_caps.values(), default=1.0)

    def rank(self, *, by_gpu: bool) -> tuple[float, ...]:
        """Return what orders modes, the fastest last.

        Args:
            by_gpu: The caps of the GPU decide before the budget: every mode tells its own.
        """
        gpu = 0.0 if self.gpu_cap is None else self.gpu_cap
        watts = -1.0 if self.watts is None else self.watts
        memory = 0.0 if self.memory_cap is None else self.memory_cap
        return (self._name_rank, gpu if by_gpu else 0.0, watts, memory, self._cpu)


def power_modes(text: str) -> list[PowerMode]:
    """Return the modes of an ``nvpmodel.conf``; what is no mode is passed over."""
    modes: dict[int, PowerMode] = {}
    settings: list[list[str]] | None = None
    sections: list[tuple[int, str, list[list[str]]]] = []
    for line in text.splitlines():
        stripped = line.partition("#")[0].strip()
        if section := _SECTION.match(stripped):
            settings = None
            attributes = {key.upper(): value for key, value in _ATTRIBUTE.findall(section[2])}
            number = attributes.get("ID", "")
            if section[1].upper() == "POWER_MODEL" and _NUMBER.fullmatch(number):
                settings = []
                sections.append((int(number), attributes.get("NAME", f"mode {number}"), settings))
        elif settings is not None and stripped:
            settings.append(stripped.split())
    for number, name, rows in sections:
        modes[number] = _mode(number, name, rows)
    return list(modes.values())


def _mode(number: int, name: str, rows: Iterable[Sequence[str]]) -> PowerMode:
    gpu: list[float] = []
    memory: list[float] = []
    cpu: dict[str, float] = {}
    cores: dict[str, bool] = {}
    for row in rows:
        parameter, argument, value = _setting(row)
        if parameter == "CPU_ONLINE":
            cores[argument] = value == "1"
            continue
        if argument != "MAX_FREQ" or (cap := _cap(value)) is None:
            continue
        if parameter.startswith("GPU") and "NVD" not in parameter:  # NVD: video, not compute
            gpu.append(cap)
        elif parameter.startswith("EMC"):
            memory.append(cap)
        elif parameter.startswith("CPU"):
            cpu[parameter] = cap
    return PowerMode(
        number,
        name,
        max(gpu, default=None),
        max(memory, default=None),
        cpu,
        sum(cores.values()) if cores else None,
    )


def _setting(row: Sequence[str]) -> tuple[str, str, str]:
    """Return parameter, argument and value; R28 wrote the path of a file instead of the two."""
    if len(row) == 3:
        return row[0].upper(), row[1].upper(), row[2]
    if len(row) == 2:
        path, value = row
        if _GPU_PATH.search(path):
            return "GPU", "MAX_FREQ", value
        if path.endswith("emc_iso_cap"):
            return "EMC", "MAX_FREQ", value
        if path.endswith("/scaling_max_freq"):
            return f"CPU {path}", "MAX_FREQ", value
        if re.search(r"/cpu\d+/online$", path):
            return "CPU_ONLINE", path, value
    return "", "", ""


def _cap(value: str) -> float | None:
    try:
        number = float(int(value, 0))
    except (ValueError, OverflowError):
        return None
    return number if number > 0 else math.inf  # -1 and 0: no cap


def fastest(modes: Sequence[PowerMode]) -> list[PowerMode]:
    """Return the fastest mode, and those that nothing tells from it; none of none.

    A name that says that nothing is capped (MAXN, MAXN_SUPER) decides first, then the cap of the
    GPU where every mode tells one, the budget in the name, the cap of the memory, the CPU.
    """
    by_gpu = all(mode.gpu_cap is not None for mode in modes)
    ranks = [mode.rank(by_gpu=by_gpu) for mode in modes]
    return [mode for mode, rank in zip(modes, ranks, strict=True) if rank == max(ranks)]


def present_mode(printed: str) -> tuple[str, int | None] | None:
    """Return name and number that ``nvpmodel -q`` printed; None when there is neither."""
    name, number = "", None
    for line in printed.splitlines():
        key, colon, value = line.partition(":")
        if colon and _POWER_MODE in key.lower():
            name = value.strip()
        elif name and number is None and _NUMBER.fullmatch(line.strip()):
            number = int(line)
    return (name, number) if name else None


@dataclass(frozen=True)
class GpuClock:
    """The clock of a part of the GPU, in MHz; None where it is not told."""

    name: str
    """As ``jetson_clocks`` names it: ``GPU``, or ``gpu-gpc-0`` on a Thor."""
    lowest: float | None
    highest: float | None
    now: float | None

    @property
    def is_fixed(self) -> bool | None:
        """Return whether it cannot move; None when that is not known."""
        if not self.lowest or not self.highest:
            return None
        return self.lowest == self.highest


def gpu_clocks(printed: str) -> list[GpuClock]:
    """Return the clocks of the GPU that ``jetson_clocks --show`` printed; video engines are none.

    Xavier, Orin and older boards print a line ``GPU``, Thor a line for each GPC.
    """
    clocks = []
    for line in printed.splitlines():
        if match := _GPU_LINE.match(line):
            frequencies = {which: int(hertz) / 1e6 for which, hertz in _FREQUENCY.findall(line)}
            clocks.append(
                GpuClock(
                    match[1],
                    frequencies.get("Min"),
                    frequencies.get("Max"),
                    frequencies.get("Current"),
                )
            )
    return clocks


@dataclass(frozen=True)
class Release:
    """A release of Jetson Linux."""

    text: str
    """Such as ``R36.4.3``."""
    jetpack: int | None
    """The major version of JetPack; None when it is not known."""


def release(text: str) -> Release | None:
    """Return what ``/etc/nv_tegra_release`` says; None when it says something else."""
    match = _RELEASE.search(text)
    if match is None:
        return None
    version = f"R{match[1]}" + (f".{match[2]}" if match[2] else "")
    major = int(match[1])
    return Release(version, _JETPACKS.get(major, 3 if major < min(_JETPACKS) else None))


OLDEST_JETPACK = 6
"""The first whose TensorRT is for a Python that this program runs on."""
_TOO_OLD: Mapping[int, str] = {
    5: "its Python is 3.8 and so is the one its TensorRT is for; 3.10 is needed here",
    4: "too old: its Python is 3.6, and 3.10 is needed here",
}


def too_old(text: str) -> str:
    """Return what ``/etc/nv_tegra_release`` says of a JetPack that is too old; else nothing."""
    installed = release(text)
    if installed is None or installed.jetpack is None or installed.jetpack >= OLDEST_JETPACK:
        return ""
    why = _TOO_OLD[max(4, installed.jetpack)]
    return f"Jetson Linux {installed.text}, JetPack {installed.jetpack}: {why}"


def lacks_gpu_wheels() -> bool:
    """Return whether the index has no wheels of the GPU for this Python, that of JetPack 6.

    It has no onnxruntime-gpu for Python 3.10 of aarch64, and a CUPTI for CUDA 13 alone.
    """
    return sys.version_info < (3, 11) and platform.machine() == "aarch64"


def last_jetpack(board: str) -> int | None:
    """Return the newest major JetPack for a board, by its model; None when that is not known."""
    name = board.lower()
    if "thor" in name or "orin" in name:
        return 7
    if "xavier" in name or "jetson-agx" in name:  # what an AGX Xavier was called at first
        return 5
    if re.search(r"nano|tx1|tx2|quill|jetson_tx", name):
        return 4
    return None
