"""What `dld doctor` says of the machine: CUDA, clocks, power mode, groups, room on the disk."""

from __future__ import annotations

import getpass
import grp
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dld_tui.backends.gpu.clock_guard import STORED
from dld_tui.backends.gpu.jetson import ABSENT, NO_RIGHTS, Jetson, ToolAnswer, run_tool
from dld_tui.core import fmt
from dld_tui.core.machine import jetson
from dld_tui.core.machine.health import BROKEN, GOOD, WEAK, Check
from dld_tui.core.settings.paths import cache_dir

_LITTLE_ROOM = 2 << 30
_NO_ROOM = 100 << 20
_CUDA = re.compile(r"CUDA Version:\s*([0-9.]+|\[?N/A\]?)")
_UNKNOWN = ("", "n/a", "not supported", "unknown error", "insufficient permissions")
"""What ``nvidia-smi`` prints, in brackets or not, for a value that it does not have."""
_ROOT_FOLDER = Path("/")
_MODES = "/etc/nvpmodel.conf"
_OUTSIDE = "run dld doctor on the board itself, outside of the container"
_PACKAGES = {"nvpmodel": "nvidia-l4t-nvpmodel", "jetson_clocks": "nvidia-l4t-tools"}

Tool = Callable[[Sequence[str]], "str | None"]


def cuda_checks(tool: Tool = run_tool, board: Jetson | None = None) -> Iterator[Check]:
    """Say the newest CUDA that the driver runs, and the clocks of each GPU.

    The clocks of a Jetson are those of :func:`board_checks`; its driver tells few, and it has no
    persistence mode.
    """
    found = _CUDA.search(tool(["nvidia-smi"]) or "")
    if found is None:
        return
    if is_unknown(found[1]):
        yield Check("GPU", "CUDA", WEAK, "the driver does not say which CUDA it runs")
    else:
        yield Check("GPU", "CUDA", GOOD, f"{found[1]} at most, by the driver")
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
        return Check("GPU", name, WEAK, "unknown: the driver does not tell them")
    text = f"{now} of {most}, memory {memory}"
    if mode == "Disabled":
        fix = "sudo nvidia-smi -pm 1"
        return Check("GPU", name, WEAK, f"{text}; persistence mode is off", fix)
    if is_unknown(mode):
        return Check("GPU", name, WEAK, f"{text}; persistence mode unknown")
    return Check("GPU", name, GOOD if "unknown" not in (now, most) else WEAK, text)


def is_unknown(value: str) -> bool:
    """Return whether ``nvidia-smi`` says with a value that it has none, such as ``[N/A]``."""
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
    told = None if text is None else jetson.release(text)
    if told is None:
        why = "no /etc/nv_tegra_release here" if text is None else "/etc/nv_tegra_release is odd"
        found = f"unknown: {why}"
        return Check("Board", "release", WEAK, found, _OUTSIDE if board.is_container() else "")
    problem = jetson.too_old(text or "")
    if told.jetpack is None or not problem:
        known = "" if told.jetpack is None else f", JetPack {told.jetpack}"
        return Check("Board", "release", GOOD, f"Jetson Linux {told.text}{known}")
    state = BROKEN if told.jetpack < 5 else WEAK  # with a newer Python much works on JetPack 5
    last = jetson.last_jetpack(model)
    if last is None:
        fix = f"install JetPack {jetson.OLDEST_JETPACK} or newer, if there is one for this board"
    elif last > told.jetpack:
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
        found = f"{check.found}; the fastest is {best[0].name} (mode {best[0].id})"
        return replace(check, found=found)
    title, number = present
    shown = title if number is None else f"{title} (mode {number})"
    if not modes:
        missing = modes is None
        found = f"{shown}; {_MODES} {'cannot be read' if missing else 'lists no mode'}"
        return Check("Board", name, WEAK, f"{found}, so the fastest is unknown")
    ours = [
        mode
        for mode in modes
        if (mode.name == title and number is None)
        or (mode.id == number and title in (mode.name, f"mode {number}"))
    ]
    if not ours:
        found = f"{shown}, which {_MODES} does not list; the fastest is {_named(best[0])}"
        return Check("Board", name, WEAK, found, f"sudo nvpmodel -m {best[0].id}")
    if ours[0] in best:
        return Check("Board", name, GOOD, f"{shown}, the fastest of {len(modes)}")
    found = f"{shown}; the fastest is {_named(best[0])}, and may restart the board"
    return Check("Board", name, WEAK, found, f"sudo nvpmodel -m {best[0].id}")


def _named(mode: jetson.PowerMode) -> str:
    return f"{mode.name} (mode {mode.id})"


def _gpu_clock_check(board: Jetson) -> Check:
    clocks = board.gpu_clocks()
    if isinstance(clocks, ToolAnswer):
        return _tool_check(board, "clocks", "jetson_clocks", clocks, "sudo jetson_clocks --show")
    text = "; ".join(_clock_text(clock) for clock in clocks)
    if (board.root / STORED.relative_to("/")).exists():
        found = f"{text}; held by a run with --lock-clocks, or left so by one that was killed"
        return Check("Board", "clocks", WEAK, found, f"sudo jetson_clocks --restore {STORED}")
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
    """Say why a tool of the board told nothing: not there, no rights, or what it said."""
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
    for name, what in (("video", "the GPU"), ("debug", "hardware counters")):
        if name in groups:
            yield Check("Board", f"group {name}", GOOD, f"a member: {what}")
        else:
            fix = f"sudo usermod -aG {name} {getpass.getuser()}, then log in again"
            found = f"not a member: {what} may be out of reach"
            yield Check("Board", f"group {name}", WEAK, found, fix)


def _own_groups() -> frozenset[str]:
    names = set()
    for number in os.getgroups():
        try:
            names.add(grp.getgrgid(number).gr_name)
        except KeyError:  # a group without a name
            continue
    return frozenset(names)


def disk_checks(folder: Path | None = None) -> Iterator[Check]:
    """Say how much room there is for caches and temporary files."""
    for name, place in (("cache disk", folder or cache_dir()), ("temporary disk", _temporary())):
        existing = next(path for path in (place, *place.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        found = f"{fmt.size(free)} free for {place}"
        if free < _LITTLE_ROOM:
            state = BROKEN if free < _NO_ROOM else WEAK
            yield Check("Folders", name, state, found, f"du -xsh {existing}/* | sort -h | tail")
        else:
            yield Check("Folders", name, GOOD, found)


def _temporary() -> Path:
    return Path(os.environ.get("TMPDIR") or "/tmp")
