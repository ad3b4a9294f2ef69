"""A Jetson board: what it is, its power mode, its clocks, and the load of its GPU, from files.

Its GPU is part of the chip, so that NVML tells little of it before JetPack 7.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from dld_tui.core.types import JSON

_LOAD_FILES = (
    "sys/devices/gpu.0/load",
    "sys/devices/platform/gpu.0/load",
    "sys/devices/platform/*.gpu/load",
    "sys/devices/platform/bus@0/*.gpu/load",
    "sys/class/devfreq/*gpu*/device/load",
)
_CLOCK_FOLDERS = (
    "sys/class/devfreq/*gpu*",
    "sys/class/devfreq/*.gv11b",
    "sys/class/devfreq/*.ga10b",
    "sys/class/devfreq/*.gp10b",
    "sys/class/devfreq/gpu-gpc-*",
)
_TIMEOUT_S = 10
_LONGEST = 2_000


def run_tool(command: Sequence[str]) -> str | None:
    """Return what a tool prints, or None when it is not there or fails."""
    try:
        done = subprocess.run(
            list(command),
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[:_LONGEST] if done.returncode == 0 else None


class Jetson:
    """The files of a board.

    Args:
        root: Where the file system begins.
        tool: Runs ``nvpmodel`` and ``jetson_clocks``.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        tool: Callable[[Sequence[str]], str | None] = run_tool,
    ) -> None:
        self._root, self._tool = root, tool
        self.board = self._board()
        """The board's name, or None when this is no Jetson."""
        self._load = self._first(_LOAD_FILES)
        self._clock = self._first(f"{folder}/cur_freq" for folder in _CLOCK_FOLDERS)

    def _board(self) -> str | None:
        model = self._text("proc/device-tree/model")
        tegra = (self._root / "etc/nv_tegra_release").exists()
        return model if model and (tegra or "jetson" in model.lower()) else None

    def facts(self) -> dict[str, JSON]:
        """Return the board, its release, power mode and clocks; what is not known is left out."""
        if self.board is None:
            return {}
        release = (self._text("etc/nv_tegra_release") or "").splitlines()
        clocks = self._tool(["jetson_clocks", "--show"])
        found: dict[str, JSON] = {
            "jetson": self.board,
            "jetson_release": release[0].lstrip("# ") if release else None,
            "jetson_power_mode": self.power_mode(),
            "jetson_clocks": None if clocks is None else clocks.strip(),
        }
        return {name: value for name, value in found.items() if value}

    def power_mode(self) -> str | None:
        """Return the power mode, e.g. ``MAXN``, or None when it cannot be told."""
        printed = self._tool(["nvpmodel", "-q"])
        for line in (printed or "").splitlines():
            name, colon, value = line.partition(":")
            if colon and "power mode" in name.lower():
                return value.strip() or None
        return None

    def state(self) -> dict[str, JSON]:
        """Return the clock of the GPU now; left out where it cannot be told."""
        mhz = self._number(self._clock)
        return {} if self.board is None or mhz is None else {"gpu_sm_mhz": mhz / 1e6}

    def read(self) -> dict[str, float]:
        """Return ``gpu`` (percent), ``gpu_mhz`` and ``memory`` (percent) as far as files tell."""
        if self.board is None:
            return {}
        found: dict[str, float] = {}
        load, hertz = self._number(self._load), self._number(self._clock)
        if load is not None:
            found["gpu"] = load / 10  # the file counts in thousandths
        if hertz is not None:
            found["gpu_mhz"] = hertz / 1e6
        busy = self._number(self._root / "sys/kernel/actmon_avg_activity/mc_all")
        emc = self._number(self._root / "sys/kernel/debug/bpmp/debug/clk/emc/rate")
        if busy is not None and emc:
            found["memory"] = min(100.0, 100 * busy * 1000 / emc)
        return found

    def _first(self, patterns: Iterable[str]) -> Path | None:
        for pattern in patterns:
            for path in sorted(self._root.glob(pattern)):
                if self._number(path) is not None:
                    return path
        return None

    def _text(self, name: str) -> str | None:
        try:
            data = (self._root / name).read_bytes()[:_LONGEST]
        except OSError:
            return None
        return data.rstrip(b"\0").decode("utf-8", "replace").strip()

    def _number(self, path: Path | None) -> float | None:
        if path is None:
            return None
        try:
            return float(path.read_text(encoding="utf-8").strip()[:40])
        except (OSError, ValueError):
            return None
