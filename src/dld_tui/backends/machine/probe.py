"""Checks of optional libraries and GPUs, each in a separate process.

A library that crashes or hangs on import must not affect the others, and `dld doctor` must not load
what it only checks. Of the machine: CUDA, clocks, power mode, disk.
"""

from __future__ import annotations

import getpass
import grp
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dld_tui.backends.machine.clock_guard import STORED
from dld_tui.backends.machine.jetson import (
    ABSENT,
    NO_RIGHTS,
    Jetson,
    ToolAnswer,
    run_tool,
    system_tensorrt,
)
from dld_tui.backends.tensorrt.library import library_check as tensorrt_check
from dld_tui.backends.tensorrt.library import probe_in_process
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import result_of
from dld_tui.core.machine import jetson
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, WEAK, Check
from dld_tui.core.process.child import ask, signal_name
from dld_tui.core.process.installation import packages_of
from dld_tui.core.process.paths import cache_dir
from dld_tui.core.tensorrt.capabilities import MODULES

_TIMEOUT_S = 60


@dataclass(frozen=True)
class Library:
    """An optional library."""

    module: str
    extra: str
    """The extra of dld-tui that brings it."""
    code: str
    """Python that prints a JSON list of texts: the version, then what else is worth knowing."""
    packages: str = ""
    """The package alone, where not all of the extra is available."""

    @property
    def install(self) -> str:
        """Return the command that installs it; empty if it is not available.

        On JetPack 6, the extra `gpu` cannot be installed completely; and it must not be installed
        beside onnxruntime, which it would overwrite.
        """
        lacking = jetson.lacks_gpu_wheels()
        if lacking and self.module == "cupti":
            return ""
        if self.packages and (lacking or _is_installed("onnxruntime")):
            return f"pip install {self.packages}"
        return f"pip install {packages_of(self.extra)}"


LIBRARIES = (
    Library(
        "onnxruntime",
        "cpu",
        "import onnxruntime as m; show(m.__version__, *m.get_available_providers())",
    ),
    Library(
        "cupti",
        "gpu",
        "import importlib.util as u\n"
        "if u.find_spec('cupti') is None: import cupti\n"
        "from dld_tui.backends.machine.cupti import load\n"
        "from dld_tui.core.errors import UnavailableError\n"
        "try: load()\n"
        "except UnavailableError as error: raise SystemExit(error.message)\n"
        "show(installed('cupti-python'), with_name('CUPTI', installed('nvidia-cuda-cupti')))",
        "cupti-python nvidia-cuda-cupti",
    ),
    Library("polygraphy", "polygraphy", "import polygraphy as m; show(m.__version__)"),
    Library(
        "pynvml",
        "gpu",
        "import pynvml as m\n"
        "show(installed('nvidia-ml-py', 'pynvml') or getattr(m, '__version__', ''))",
        "nvidia-ml-py",
    ),
)
_PREAMBLE = """
import json
def show(*found): print('\\n' + json.dumps(found))
def installed(*names):
    from importlib.metadata import PackageNotFoundError, version
    for name in names:
        try: return version(name)
        except PackageNotFoundError: pass
    return ''
def with_name(name, version): return f'{name} {version}' if version else ''
"""
"""What the code of a library may call; some have no version but that of their package."""


def library_check(library: Library) -> Check:
    """Import a library in another process and say what became of it."""
    group, name = "Backends", library.module
    install = library.install
    try:
        # The current folder is first on the path of `-c`: a stray numpy.py must not be run.
        done = ask([sys.executable, "-c", _PREAMBLE + library.code], _TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Check(group, name, BROKEN, f"importing it took over {_TIMEOUT_S} s", install)
    except OSError as error:
        return Check(group, name, BROKEN, str(error))
    if done.status == 0:
        return Check(group, name, GOOD, _found(done.output))
    if done.status < 0:
        return Check(group, name, BROKEN, f"importing it ended with {signal_name(-done.status)}")
    reason = (done.errors.strip().splitlines() or ["no reason given"])[-1]
    if reason.startswith("ModuleNotFoundError") and f"'{library.module}'" in reason:
        return Check(group, name, MISSING, "not installed", install)
    return Check(group, name, BROKEN, reason, install)


def _found(printed: str) -> str:
    try:
        return ", ".join(str(item) for item in json.loads(printed.strip().splitlines()[-1]) if item)
    except (ValueError, IndexError):
        return "works"


def conflict_checks() -> Iterator[Check]:
    """Look for the two packages that overwrite each other's files.

    What was installed last works.
    """
    if not all(map(_is_installed, ("onnxruntime", "onnxruntime-gpu"))):
        return
    fix = "pip uninstall -y onnxruntime onnxruntime-gpu; " + f"pip install {packages_of('gpu')}"
    text = "onnxruntime and onnxruntime-gpu are both installed and share one folder"
    runtime = library_check(LIBRARIES[0])
    if runtime.state != GOOD:
        yield Check("Backends", "packages", BROKEN, f"{text}: onnxruntime does not load", fix)
    elif "CUDAExecutionProvider" in runtime.found:
        text += (
            ". It works now, as onnxruntime-gpu was installed last; to upgrade or remove one of"
            " them takes files of the other away, and then the GPU or all of it is lost"
        )
        yield Check("Backends", "packages", WEAK, text, fix)
    else:
        text += ", and onnxruntime was installed last: it has no provider for a GPU"
        yield Check("Backends", "packages", BROKEN, text, fix)


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def gpu_checks(board: Jetson | None = None) -> Iterator[Check]:
    """List the GPUs of the driver; a Jetson is identified by its device tree."""
    board = board or Jetson()
    if board.board is not None and not board.model:
        yield Check("GPU", "board", WEAK, f"{board.board}: no device tree can be read here")
    elif board.model:
        yield Check("GPU", "board", GOOD, board.model)
    command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total"]
    answer = board.tool([*command, "--format=csv,noheader"])
    if answer.problem == ABSENT and board.board is not None:
        yield _integrated_check(board)
    elif answer.problem == ABSENT:
        fix = "install the NVIDIA driver, if there is such a GPU"
        yield Check("GPU", "NVIDIA", MISSING, "no nvidia-smi: no driver found", fix)
    elif answer.problem and board.board is not None and board.gpu_file():
        # Before JetPack 7 its nvidia-smi knows little of the GPU of a Jetson.
        yield _integrated_check(board)
    elif answer.problem:
        yield Check("GPU", "NVIDIA", BROKEN, f"nvidia-smi: {answer.why}", "nvidia-smi")
    for index, line in enumerate(answer.printed.splitlines() if not answer.problem else ()):
        yield _gpu_check(index, line, board)


def _gpu_check(index: int, line: str, board: Jetson) -> Check:
    name, *rest = (field.strip() for field in line.split(","))
    titles = ("driver", "memory")
    unknown = [title for title, value in zip(titles, rest, strict=False) if is_unknown(value)]
    known = [value for value in rest if not is_unknown(value)]
    if is_unknown(name):
        return Check("GPU", f"GPU {index}", WEAK, "unknown: the driver does not name it")
    if board.board is not None and "memory" in unknown:
        unknown.remove("memory")
        known.append("shares the memory of the board")
    text = ", ".join([name, *known, *(f"{title} unknown" for title in unknown)])
    return Check("GPU", f"GPU {index}", GOOD, text)


def _integrated_check(board: Jetson) -> Check:
    """Say whether the GPU of a Jetson is to be seen; its driver is a part of Jetson Linux."""
    file = board.gpu_file()
    if file is not None:
        return Check("GPU", "NVIDIA", GOOD, f"integrated, with the driver of Jetson Linux ({file})")
    text = "the GPU of the board is not visible here: none of its files is in /sys or /dev"
    fix = "start the container with --runtime nvidia" if board.is_container() else ""
    return Check("GPU", "NVIDIA", WEAK, text, fix)


def counter_checks(
    params: Path = Path("/proc/driver/nvidia/params"), user: int | None = None
) -> Iterator[Check]:
    """Look whether this user may read hardware counters, which the driver may keep for root.

    The parameter is documented at https://developer.nvidia.com/ERR_NVGPUCTRPERM.
    """
    try:
        lines = params.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return  # no driver, or a Jetson
    user = os.geteuid() if user is None else user
    only_admin = any(line.replace(" ", "") == "RmProfilingAdminOnly:1" for line in lines)
    if not only_admin:
        yield Check("GPU", "counters", GOOD, "every user may read hardware counters")
    elif user == 0:
        yield Check("GPU", "counters", GOOD, "root may read hardware counters")
    else:
        fix = (
            "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 |"
            " sudo tee /etc/modprobe.d/nvidia-profiling.conf, then restart; or run as root"
        )
        text = "only root may read hardware counters: timelines will have NVML's coarse ones"
        yield Check("GPU", "counters", WEAK, text, fix)


def steps() -> list[tuple[str, Callable[[], Iterator[Check]]]]:
    """Return all checks: a title and a function each."""
    return [
        *((library.module, partial(_library_checks, library)) for library in LIBRARIES),
        *((module, partial(tensorrt_checks, module)) for module in MODULES),
        ("packages", conflict_checks),
        ("GPU", gpu_checks),
        ("parts of GPUs", part_checks),
        ("DLA", dla_checks),
        ("counters", counter_checks),
        ("CUDA", cuda_checks),
        ("board", board_checks),
        ("groups", group_checks),
        ("disks", disk_checks),
    ]


def tensorrt_checks(module: str) -> Iterator[Check]:
    """Load a TensorRT library and report its features."""
    yield _with_system_tensorrt(tensorrt_check(result_of(probe_in_process(module))))


def _with_system_tensorrt(check: Check, board: Jetson | None = None) -> Check:
    """Return a check whose remedy is JetPack's TensorRT, if any, instead of the index's."""
    if check.state != MISSING or check.name != "tensorrt":
        return check
    system = system_tensorrt(board)
    return check if system is None else replace(check, found=system[0], fix=system[1])


def _library_checks(library: Library) -> Iterator[Check]:
    yield library_check(library)


Tool = Callable[[Sequence[str]], "str | None"]

_GPU = re.compile(r"GPU (?P<number>\d+):")
_PART = re.compile(r"\s*MIG (?P<profile>\S+)\s+Device\s+\d+:\s*\(UUID: (?P<uuid>MIG-[^)\s]+)\)")
_DLA_NODES = ("host1x@*/nvdla*@*", "bus@0/host1x@*/nvdla*@*")
_DEVICE_TREE = Path("/proc/device-tree")


def part_checks(tool: Tool = run_tool) -> Iterator[Check]:
    """Say the parts of divided GPUs, each with what ``--device`` takes."""
    gpu = "?"
    for line in (tool(["nvidia-smi", "-L"]) or "").splitlines():
        if match := _GPU.match(line):
            gpu = match["number"]
        elif match := _PART.match(line):
            text = f"{match['profile']} of GPU {gpu}: --device {match['uuid']}"
            yield Check("GPU", "MIG", GOOD, text)


def dla_checks(device_tree: Path = _DEVICE_TREE) -> Iterator[Check]:
    """Say the DLA cores that a Jetson's device tree switches on."""
    nodes = [node for pattern in _DLA_NODES for node in device_tree.glob(pattern)]
    working = sorted(node.name for node in nodes if _is_on(node))
    if working:
        numbers = ", ".join(str(number) for number in range(len(working)))
        yield Check("GPU", "DLA", GOOD, f"cores {numbers}: --dla-core N")


def _is_on(node: Path) -> bool:
    """Return the status in the device tree; without a status, a device is on."""
    try:
        return (node / "status").read_bytes().rstrip(b"\0") in (b"okay", b"ok")
    except OSError:
        return True


_LITTLE_ROOM = 2 << 30
_NO_ROOM = 100 << 20
_CUDA = re.compile(r"CUDA Version:\s*([0-9.]+|\[?N/A\]?)")
_UNKNOWN = ("", "n/a", "not supported", "unknown error", "insufficient permissions")
"""The output of ``nvidia-smi`` for missing values, in brackets or not."""
_ROOT_FOLDER = Path("/")
_MODES = "/etc/nvpmodel.conf"
_OUTSIDE = "run dld doctor on the board itself, outside of the container"
_PACKAGES = {"nvpmodel": "nvidia-l4t-nvpmodel", "jetson_clocks": "nvidia-l4t-tools"}


def cuda_checks(tool: Tool = run_tool, board: Jetson | None = None) -> Iterator[Check]:
    """Report the newest CUDA version of the driver, and the clocks of each GPU.

    The clocks of a Jetson are those of :func:`board_checks`; its driver reports few, and it has no
    persistence mode.
    """
    match = _CUDA.search(tool(["nvidia-smi"]) or "")
    if match is None:
        return
    if is_unknown(match[1]):
        yield Check("GPU", "CUDA", WEAK, "the driver does not say which CUDA it runs")
    else:
        yield Check("GPU", "CUDA", GOOD, f"{match[1]} at most, by the driver")
    if (board or Jetson()).board is not None:
        return
    query = "clocks.sm,clocks.max.sm,clocks.mem,persistence_mode"
    printed = tool(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"])
    for index, line in enumerate((printed or "").splitlines()):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4:
            yield _clock_check(f"clocks {index}", fields)


def _clock_check(name: str, fields: Sequence[str]) -> Check:
    now, most, memory = (f"{f} MHz" if not is_unknown(f) else "unknown" for f in fields[:3])
    mode = fields[3]
    if all(is_unknown(field) for field in fields[:3]):
        return Check("GPU", name, WEAK, "unknown: the driver does not report them")
    text = f"{now} of {most}, memory {memory}"
    if mode == "Disabled":
        fix = "sudo nvidia-smi -pm 1"
        return Check("GPU", name, WEAK, f"{text}; persistence mode is off", fix)
    if is_unknown(mode):
        return Check("GPU", name, WEAK, f"{text}; persistence mode unknown")
    return Check("GPU", name, GOOD if "unknown" not in (now, most) else WEAK, text)


def is_unknown(value: str) -> bool:
    """Return whether ``nvidia-smi`` marks a value as missing, such as ``[N/A]``."""
    return value.strip().strip("[]").lower() in _UNKNOWN


def board_checks(board: Jetson | None = None) -> Iterator[Check]:
    """Say the release, power mode and clocks of a Jetson; nothing for other machines."""
    board = board or Jetson()
    if board.board is not None:
        yield _release_check(board, board.board)
        yield _mode_check(board)
        yield _gpu_clock_check(board)


def _release_check(board: Jetson, model: str) -> Check:
    text = board.text("etc/nv_tegra_release")
    installed = None if text is None else jetson.release(text)
    if installed is None:
        why = "no /etc/nv_tegra_release here" if text is None else "/etc/nv_tegra_release is odd"
        text = f"unknown: {why}"
        return Check("Board", "release", WEAK, text, _OUTSIDE if board.is_container() else "")
    problem = jetson.too_old(text or "")
    if installed.jetpack is None or not problem:
        known = "" if installed.jetpack is None else f", JetPack {installed.jetpack}"
        return Check("Board", "release", GOOD, f"Jetson Linux {installed.text}{known}")
    state = BROKEN if installed.jetpack < 5 else WEAK  # with a newer Python much works on JetPack 5
    last = jetson.last_jetpack(model)
    if last is None:
        fix = f"install JetPack {jetson.OLDEST_JETPACK} or newer, if there is one for this board"
    elif last > installed.jetpack:
        fix = f"install JetPack {last}, the newest for this board, with NVIDIA SDK Manager"
    else:
        fix = "use another machine for TensorRT: no newer JetPack runs on this board"
    return Check("Board", "release", state, problem, fix)


def _mode_check(board: Jetson) -> Check:
    name = "power mode"
    present = board.present_mode()
    modes = board.power_modes()
    best = jetson.fastest(modes or ())
    if isinstance(present, ToolAnswer):
        check = _tool_check(board, name, "nvpmodel", present, "sudo nvpmodel -q")
        if not best or present.problem == ABSENT:
            return check
        text = f"{check.found}; the fastest is {best[0].name} (mode {best[0].id})"
        return replace(check, found=text)
    title, number = present
    shown = title if number is None else f"{title} (mode {number})"
    if not modes:
        missing = modes is None
        text = f"{shown}; {_MODES} {'cannot be read' if missing else 'lists no mode'}"
        return Check("Board", name, WEAK, f"{text}, so the fastest is unknown")
    ours = [
        mode
        for mode in modes
        if (mode.name == title and number is None)
        or (mode.id == number and title in (mode.name, f"mode {number}"))
    ]
    if not ours:
        text = f"{shown}, which {_MODES} does not list; the fastest is {_named(best[0])}"
        return Check("Board", name, WEAK, text, f"sudo nvpmodel -m {best[0].id}")
    if ours[0] in best:
        return Check("Board", name, GOOD, f"{shown}, the fastest of {len(modes)}")
    text = f"{shown}; the fastest is {_named(best[0])}, and may restart the board"
    return Check("Board", name, WEAK, text, f"sudo nvpmodel -m {best[0].id}")


def _named(mode: jetson.PowerMode) -> str:
    return f"{mode.name} (mode {mode.id})"


def _gpu_clock_check(board: Jetson) -> Check:
    clocks = board.gpu_clocks()
    if isinstance(clocks, ToolAnswer):
        return _tool_check(board, "clocks", "jetson_clocks", clocks, "sudo jetson_clocks --show")
    text = "; ".join(_clock_text(clock) for clock in clocks)
    if (board.root / STORED.relative_to("/")).exists():
        line = f"{text}; held by a run with --lock-clocks, or left so by one that was killed"
        return Check("Board", "clocks", WEAK, line, f"sudo jetson_clocks --restore {STORED}")
    fixed = [clock.is_fixed for clock in clocks]
    if all(fixed):
        return Check("Board", "clocks", GOOD, text)
    if False in fixed:
        return Check("Board", "clocks", WEAK, f"they move: {text}", "sudo jetson_clocks")
    return Check("Board", "clocks", WEAK, f"unknown whether they move: {text}")


def _clock_text(clock: jetson.GpuClock) -> str:
    low, high, now = (
        "unknown" if mhz is None else f"{mhz:.6g}"
        for mhz in (clock.lowest, clock.highest, clock.now)
    )
    if clock.is_fixed:
        return f"{clock.name} fixed at {high} MHz"
    return f"{clock.name} {low} to {high} MHz, now {now}"


def _tool_check(board: Jetson, name: str, tool: str, answer: ToolAnswer, fix: str) -> Check:
    """Report why a tool of the board failed: missing, no permission, or its message."""
    if answer.problem == ABSENT:
        if board.is_container():
            return Check("Board", name, WEAK, f"unknown: no {tool} in this container", _OUTSIDE)
        fix = f"sudo apt install {_PACKAGES[tool]}"
        return Check("Board", name, WEAK, f"unknown: {tool} is not installed", fix)
    if answer.problem == NO_RIGHTS:
        return Check("Board", name, WEAK, f"unknown: only root may ask {tool}", fix)
    return Check("Board", name, WEAK, f"unknown: {tool}: {answer.why}", fix)


def group_checks(
    root: Path = _ROOT_FOLDER, groups: frozenset[str] | None = None, user: int | None = None
) -> Iterator[Check]:
    """Look whether this user may reach the GPU of a Jetson, and its counters."""
    if (os.geteuid() if user is None else user) == 0 or not (root / "dev/nvhost-gpu").exists():
        return
    groups = _own_groups() if groups is None else groups
    for name, gives in (("video", "the GPU"), ("debug", "hardware counters")):
        if name in groups:
            yield Check("Board", f"group {name}", GOOD, f"a member: {gives}")
        else:
            fix = f"sudo usermod -aG {name} {getpass.getuser()}, then log in again"
            text = f"not a member: {gives} may be inaccessible"
            yield Check("Board", f"group {name}", WEAK, text, fix)


def _own_groups() -> frozenset[str]:
    names = set()
    for number in os.getgroups():
        try:
            names.add(grp.getgrgid(number).gr_name)
        except KeyError:  # a group without a name
            continue
    return frozenset(names)


def disk_checks(folder: Path | None = None) -> Iterator[Check]:
    """Report the free space for caches and temporary files."""
    for name, place in (("cache disk", folder or cache_dir()), ("temporary disk", _temporary())):
        existing = next(path for path in (place, *place.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        text = f"{fmt.size(free)} free for {place}"
        if free < _LITTLE_ROOM:
            state = BROKEN if free < _NO_ROOM else WEAK
            yield Check("Folders", name, state, text, f"du -xsh {existing}/* | sort -h | tail")
        else:
            yield Check("Folders", name, GOOD, text)


def _temporary() -> Path:
    return Path(os.environ.get("TMPDIR") or "/tmp")
