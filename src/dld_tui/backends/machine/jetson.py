"""A Jetson board: its model, power mode and clocks, and the load of its GPU, from files.

Its GPU is part of the chip, and NVML reports little about it before JetPack 7.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.machine import jetson
from dld_tui.core.process.child import ask
from dld_tui.core.types import PlainValues

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
    "sys/devices/platform/bus@0/*.gpu/devfreq/*",
)
_TIMEOUT_S = 10
_PATIENCE_S = 1.0
"""The time after which a file is given up, such as the load of a sleeping component."""
_LONGEST_FILE = 1 << 20
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")
"""Where tools of the board are, which the PATH of a session over SSH may leave out."""
_NO_RIGHTS = re.compile(
    r"run as root|root user|must be root|requires root|permission denied|not permitted|"
    r"NVPM ERROR: .*: 13$",  # errno 13, as nvpmodel prints it
    re.IGNORECASE | re.MULTILINE,
)
_TENSORRT = "python3-libnvinfer"
"""The package of JetPack that brings TensorRT to the system's Python."""
ABSENT, NO_RIGHTS, FAILED = "absent", "no rights", "failed"
"""Why a tool failed."""


@dataclass(frozen=True)
class ToolAnswer:
    """What became of running a tool."""

    printed: str = ""
    """Its standard output, whole. Untrusted text."""
    problem: str = ""
    """Empty when all went well; else :data:`ABSENT`, :data:`NO_RIGHTS` or :data:`FAILED`."""
    why: str = ""
    """Its own words on the problem, in one line. Untrusted text."""


Tool = Callable[[Sequence[str]], ToolAnswer]


def ask_tool(command: Sequence[str]) -> ToolAnswer:
    """Run a tool and return its output, or why it failed."""
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    program = shutil.which(command[0], path=folders)
    if program is None:
        if shutil.which(command[0], mode=os.F_OK, path=folders):
            return ToolAnswer(problem=NO_RIGHTS, why="it may not be run")
        return ToolAnswer(problem=ABSENT)
    try:
        done = ask([program, *command[1:]], _TIMEOUT_S, cwd=None)
    except PermissionError as error:
        return ToolAnswer(problem=NO_RIGHTS, why=error.strerror or str(error))
    except OSError as error:
        return ToolAnswer(problem=FAILED, why=error.strerror or str(error))
    except subprocess.TimeoutExpired:
        return ToolAnswer(problem=FAILED, why=f"no answer in {_TIMEOUT_S} s")
    if done.status == 0:
        return ToolAnswer(done.output)
    both = f"{done.errors}\n{done.output}"
    denied = _NO_RIGHTS.search(both)
    lines = [line.strip() for line in both.splitlines() if line.strip()]
    why = lines[0] if lines else f"it ended with {done.status}"
    return ToolAnswer(done.output, NO_RIGHTS if denied else FAILED, why)


def run_tool(command: Sequence[str]) -> str | None:
    """Return the output of a tool; None if it is missing or fails."""
    answer = ask_tool(command)
    return None if answer.problem else answer.printed


def ends_in_time(function: Callable[[], object], limit_s: float, name: str) -> bool:
    """Run a function on a named thread; return whether it ended in time.

    A function that hangs cannot be stopped: its thread stays until the program ends.
    """
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    thread.join(limit_s)
    return not thread.is_alive()


def read_in_time(path: Path) -> bytes | None:
    """Return the first megabyte of a file; None when it does not answer in time.

    Raises:
        OSError: It cannot be read.
    """
    answer: list[bytes | OSError] = []

    def read() -> None:
        try:
            with path.open("rb") as file:
                answer.append(file.read(_LONGEST_FILE))
        except OSError as error:
            answer.append(error)

    ends_in_time(read, _PATIENCE_S, "board-file")
    content = answer[0] if answer else None
    if isinstance(content, OSError):
        raise content
    return content


class Jetson:
    """The files of a board. One that does not answer in time is not read again.

    After construction, `read` and `state` read the files that answered, and wait for them.

    Args:
        root: The root of the file system.
        tool: Runs ``nvpmodel`` and ``jetson_clocks``.
    """

    def __init__(self, root: Path = Path("/"), tool: Tool = ask_tool) -> None:
        self.root, self.tool = root, tool
        self._silent: set[Path] = set()
        self.model = self.text("proc/device-tree/model")
        """What the device tree says, of any board; None when it cannot be read."""
        self.board = self._board()
        """The board's name, or None when this is no Jetson."""
        self.load_file = self._first(_LOAD_FILES)
        """The load of the GPU in thousandths; None if the file does not exist. Reading may hang."""
        self.clock_file = self._first(f"{folder}/cur_freq" for folder in _CLOCK_FOLDERS)
        """The clock of the GPU in Hz; None if the file does not exist. Reading may hang."""
        self._traffic_file = self._first(["sys/kernel/actmon_avg_activity/mc_all"])
        self._memory_clock_file = self._first(["sys/kernel/debug/bpmp/debug/clk/emc/rate"])

    def _board(self) -> str | None:
        model = self.model or ""
        if self.text("etc/nv_tegra_release") is not None:
            return model or "Jetson, model unknown"
        return model if "jetson" in model.lower() else None

    def environment(self) -> PlainValues:
        """Return the board, its release, power mode and clocks; unknown values are left out."""
        if self.board is None:
            return {}
        release = (self.text("etc/nv_tegra_release") or "").splitlines()
        clocks = self.tool(["jetson_clocks", "--show"])
        machine: PlainValues = {
            "jetson": self.board,
            "jetson_release": release[0].lstrip("# ") if release else None,
            "jetson_power_mode": self.power_mode(),
            "jetson_clocks": None if clocks.problem else clocks.printed.strip(),
        }
        return {name: value for name, value in machine.items() if value}

    def power_mode(self) -> str | None:
        """Return the power mode, e.g. ``MAXN``; None if unknown."""
        present = self.present_mode()
        return present[0] if isinstance(present, tuple) else None

    def present_mode(self) -> tuple[str, int | None] | ToolAnswer:
        """Return the name and number of the power mode, or why neither is known.

        ``nvpmodel`` prints the mode and then fails for users who may not read all that it caps.
        If it is missing, its state file and the list of modes are used.
        """
        answer = self.tool(["nvpmodel", "-q"])
        present = jetson.present_mode(answer.printed)
        if present is not None:
            return present
        status = re.search(r"\bpmode:\s*(\d{1,9})\b", self.text("var/lib/nvpmodel/status") or "")
        if status:
            number = int(status[1])
            names = [mode.name for mode in self.power_modes() or () if mode.id == number]
            return (names[0] if names else f"mode {number}", number)
        return answer if answer.problem else ToolAnswer(problem=FAILED, why="it names no mode")

    def power_modes(self) -> list[jetson.PowerMode] | None:
        """Return the modes that the board has; None when their file cannot be read."""
        text = self.text("etc/nvpmodel.conf")
        return None if text is None else jetson.power_modes(text)

    def gpu_clocks(self) -> list[jetson.GpuClock] | ToolAnswer:
        """Return the clocks of the GPU, or why they are unknown.

        Every user may read those of sysfs; ``jetson_clocks`` shows them to root only.
        """
        answer = self.tool(["jetson_clocks", "--show"])
        clocks = [] if answer.problem else jetson.gpu_clocks(answer.printed)
        if clocks:
            return clocks
        if self.clock_file is not None:
            names = ("min_freq", "max_freq", "cur_freq")
            values = [self._number(self.clock_file.with_name(name)) for name in names]
            if values[0] is not None and values[1] is not None:
                low, high, now = (None if value is None else value / 1e6 for value in values)
                return [jetson.GpuClock("GPU", low, high, now)]
        if answer.problem:
            return answer
        return ToolAnswer(problem=FAILED, why="it has no known line about the GPU")

    def gpu_file(self) -> str | None:
        """Return a file that only a working GPU driver creates; None if there is none."""
        if self.load_file is not None or self.clock_file is not None:
            path = self.load_file or self.clock_file
            return f"/{path.relative_to(self.root)}" if path else None
        for name in ("dev/nvhost-gpu", "dev/nvgpu", "dev/nvidia0"):
            if (self.root / name).exists():
                return f"/{name}"
        return None

    def is_container(self) -> bool:
        """Return whether Docker or Podman says that this is a container."""
        return any((self.root / name).exists() for name in (".dockerenv", "run/.containerenv"))

    def state(self) -> PlainValues:
        """Return the present clock of the GPU; empty if unknown."""
        mhz = self._number(self.clock_file)
        return {} if self.board is None or mhz is None else {"gpu_sm_mhz": mhz / 1e6}

    def read(self) -> dict[str, float]:
        """Return ``gpu`` (percent), ``gpu_mhz`` and ``memory`` (percent), as far as available."""
        if self.board is None:
            return {}
        readings: dict[str, float] = {}
        load, hertz = self._number(self.load_file), self._number(self.clock_file)
        if load is not None:
            readings["gpu"] = load / 10  # the file counts in thousandths
        if hertz is not None:
            readings["gpu_mhz"] = hertz / 1e6
        busy, emc = self._number(self._traffic_file), self._number(self._memory_clock_file)
        if busy is not None and emc:
            readings["memory"] = min(100.0, 100 * busy * 1000 / emc)
        return readings

    def _first(self, patterns: Iterable[str]) -> Path | None:
        """Return the first file that has a number; else the first that does not answer."""
        silent = None
        for pattern in patterns:
            for path in sorted(self.root.glob(pattern)):
                if self._answers(path) and self._number(path) is not None:
                    return path
                if path in self._silent:
                    silent = silent or path
        return silent

    def _answers(self, path: Path) -> bool:
        """Return whether a file can be read in time; one that cannot is silent from now on."""
        if path in self._silent:
            return False
        try:
            content = read_in_time(path)
        except OSError:
            return False
        if content is None:
            self._silent.add(path)
        return content is not None

    def text(self, name: str) -> str | None:
        """Return a text file of the board; None when it is not there or cannot be read."""
        try:
            data = read_in_time(self.root / name)
        except OSError:
            return None
        return None if data is None else data.rstrip(b"\0").decode("utf-8", "replace").strip()

    def _number(self, path: Path | None) -> float | None:
        if path is None or path in self._silent:
            return None
        try:
            number = float(path.read_text(encoding="utf-8").strip()[:40])
        except (OSError, ValueError):
            return None
        return number if math.isfinite(number) else None


def system_tensorrt(
    board: Jetson | None = None,
    prefix: str = sys.prefix,
    base_prefix: str = sys.base_prefix,
    python: tuple[int, int] = (sys.version_info[0], sys.version_info[1]),
) -> tuple[str, str] | None:
    """Return how this Python could use JetPack's TensorRT: the present state, and the command.

    None if the machine is no Jetson. JetPack installs TensorRT for the system's Python only, so a
    virtual environment sees it if it uses that Python and was created with
    ``--system-site-packages``. Recreated in place, it keeps its packages, and needs no
    pip, which Debian's ``venv`` cannot install without another package.

    Args:
        prefix: ``sys.prefix``.
        base_prefix: ``sys.base_prefix``.
        python: The major and minor number of this Python's version.
    """
    board = board or Jetson()
    if board.board is None:
        return None
    old = jetson.too_old(board.text("etc/nv_tegra_release") or "")
    if old:
        return f"not installed, and JetPack's cannot be used: {old}", ""
    folder = shlex.quote(prefix)
    is_virtual = prefix != base_prefix
    packages = sorted(board.root.glob("usr/lib/python3*/dist-packages/tensorrt/__init__.py"))
    named = [path.parts[-4].removeprefix("python") for path in packages]
    ours = f"{python[0]}.{python[1]}"
    system = next((name for name in named if name in (ours, "3")), named[-1] if named else "3")
    if system not in (ours, "3"):
        text = f"not installed for Python {ours}; JetPack's is for Python {system}"
    elif not packages:
        text = "not installed; JetPack brings it"
    else:
        text = "not seen by this Python; JetPack's is installed in the system"
    steps = [] if packages else [f"sudo apt install {_TENSORRT}"]
    again = f"/usr/bin/python{system} -m venv --system-site-packages"
    if system not in (ours, "3") or base_prefix != "/usr":
        target = f"--clear {folder}" if is_virtual else ".venv"
        steps.append(f"{again} {target}, then install dld-tui there")
    elif is_virtual and not _sees_system(board, prefix):
        steps.append(f"{again} --without-pip {folder}")
    return text, " && ".join(steps)


def _sees_system(board: Jetson, prefix: str) -> bool:
    """Return whether a virtual environment was made with ``--system-site-packages``."""
    text = board.text(f"{prefix.lstrip('/')}/pyvenv.cfg") or ""
    return "include-system-site-packages=true" in text.lower().replace(" ", "")
