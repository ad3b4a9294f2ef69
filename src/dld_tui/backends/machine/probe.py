"""Look which optional libraries and GPUs work, each in a process of its own.

A library that crashes or hangs while it is imported must not take the others with it, and `dld
doctor` must not load what it only asks about.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dld_tui.backends.gpu.jetson import ABSENT, Jetson, run_tool, system_tensorrt
from dld_tui.backends.machine import machine_probe
from dld_tui.backends.machine.machine_probe import is_unknown
from dld_tui.backends.tensorrt.library import ask
from dld_tui.backends.tensorrt.library import library_check as tensorrt_check
from dld_tui.core.machine import jetson
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, WEAK, Check
from dld_tui.core.tensorrt.facts import MODULES

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
    """What brings it alone; for where not all of the extra can be had."""

    @property
    def install(self) -> str:
        """Return the command that brings it; nothing where it cannot be had.

        On JetPack 6 the extra `gpu` cannot be installed whole; and beside onnxruntime it must not
        be, which it would overwrite.
        """
        lacking = jetson.lacks_gpu_wheels()
        if lacking and self.module == "cupti":
            return ""
        if self.packages and (lacking or _is_installed("onnxruntime")):
            return f"pip install {self.packages}"
        return f"pip install 'dld-tui[{self.extra}]'"


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
        "from dld_tui.backends.gpu.cupti import load\n"
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
        done = subprocess.run(
            [sys.executable, "-c", _PREAMBLE + library.code],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return Check(group, name, BROKEN, f"importing it took over {_TIMEOUT_S} s", install)
    except OSError as error:
        return Check(group, name, BROKEN, str(error))
    if done.returncode == 0:
        return Check(group, name, GOOD, _found(done.stdout))
    if done.returncode < 0:
        return Check(group, name, BROKEN, f"importing it ended with signal {-done.returncode}")
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    if reason.startswith("ModuleNotFoundError") and f"'{library.module}'" in reason:
        return Check(group, name, MISSING, "not installed", install)
    return Check(group, name, BROKEN, reason, install)


def _found(printed: str) -> str:
    try:
        return ", ".join(str(item) for item in json.loads(printed.strip().splitlines()[-1]) if item)
    except (ValueError, IndexError):
        return "works"


def conflict_checks() -> Iterator[Check]:
    """Look for the two packages that overwrite each other's files."""
    both = [name for name in ("onnxruntime", "onnxruntime-gpu") if _is_installed(name)]
    if len(both) == 2:
        fix = "pip uninstall -y onnxruntime onnxruntime-gpu; pip install 'dld-tui[gpu]'"
        found = "onnxruntime and onnxruntime-gpu are both installed and share one folder"
        yield Check("Backends", "packages", BROKEN, found, fix)


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def gpu_checks(board: Jetson | None = None) -> Iterator[Check]:
    """Ask the driver for GPUs; a Jetson says what it is in the device tree."""
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
    found = ", ".join([name, *known, *(f"{title} unknown" for title in unknown)])
    return Check("GPU", f"GPU {index}", GOOD, found)


def _integrated_check(board: Jetson) -> Check:
    """Say whether the GPU of a Jetson is to be seen; its driver is a part of Jetson Linux."""
    file = board.gpu_file()
    if file is not None:
        return Check("GPU", "NVIDIA", GOOD, f"integrated, with the driver of Jetson Linux ({file})")
    found = "the GPU of the board is not to be seen here: none of its files in /sys and /dev"
    fix = "start the container with --runtime nvidia" if board.is_container() else ""
    return Check("GPU", "NVIDIA", WEAK, found, fix)


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
        found = "only root may read hardware counters: timelines will have NVML's coarse ones"
        yield Check("GPU", "counters", WEAK, found, fix)


def steps() -> list[tuple[str, Callable[[], Iterator[Check]]]]:
    """Return what there is to look at: a title and the look."""
    return [
        *((library.module, partial(_library_checks, library)) for library in LIBRARIES),
        *((module, partial(tensorrt_checks, module)) for module in MODULES),
        ("packages", conflict_checks),
        ("GPU", gpu_checks),
        ("parts of GPUs", part_checks),
        ("DLA", dla_checks),
        ("counters", counter_checks),
        ("CUDA", machine_probe.cuda_checks),
        ("board", machine_probe.board_checks),
        ("groups", machine_probe.group_checks),
        ("disks", machine_probe.disk_checks),
    ]


def tensorrt_checks(module: str) -> Iterator[Check]:
    """Load a TensorRT library and say what it can do."""
    asked = ask(module)
    while True:
        try:
            next(asked)
        except StopIteration as stop:
            yield _with_system_tensorrt(tensorrt_check(stop.value))
            return


def _with_system_tensorrt(check: Check, board: Jetson | None = None) -> Check:
    """Return a check whose remedy is JetPack's TensorRT where there is one, not the index's."""
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
        if found := _GPU.match(line):
            gpu = found["number"]
        elif found := _PART.match(line):
            text = f"{found['profile']} of GPU {gpu}: --device {found['uuid']}"
            yield Check("GPU", "MIG", GOOD, text)


def dla_checks(device_tree: Path = _DEVICE_TREE) -> Iterator[Check]:
    """Say the DLA cores that a Jetson's device tree switches on."""
    nodes = [node for pattern in _DLA_NODES for node in device_tree.glob(pattern)]
    working = sorted(node.name for node in nodes if _is_on(node))
    if working:
        numbers = ", ".join(str(number) for number in range(len(working)))
        yield Check("GPU", "DLA", GOOD, f"cores {numbers}: --dla-core N")


def _is_on(node: Path) -> bool:
    """Return what the device tree says; without a word on it, a device is on."""
    try:
        return (node / "status").read_bytes().rstrip(b"\0") in (b"okay", b"ok")
    except OSError:
        return True
