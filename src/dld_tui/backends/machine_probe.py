"""What `dld doctor` says of the machine: CUDA, clocks, power mode, groups, room on the disk."""

from __future__ import annotations

import getpass
import grp
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dld_tui.backends.jetson import Jetson, run_tool
from dld_tui.core import fmt
from dld_tui.core.health import BROKEN, GOOD, WEAK, Check
from dld_tui.core.paths import cache_dir

_LITTLE_ROOM = 2 << 30
_NO_ROOM = 100 << 20
_CUDA = re.compile(r"CUDA Version:\s*([0-9.]+)")
_ROOT_FOLDER = Path("/")

Tool = Callable[[Sequence[str]], "str | None"]


def cuda_checks(tool: Tool = run_tool) -> Iterator[Check]:
    """Say the newest CUDA that the driver runs, and the clocks of each GPU."""
    found = _CUDA.search(tool(["nvidia-smi"]) or "")
    if found is None:
        return
    yield Check("GPU", "CUDA", GOOD, f"{found[1]} at most, by the driver")
    query = "clocks.sm,clocks.max.sm,clocks.mem,persistence_mode"
    printed = tool(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"])
    for index, line in enumerate((printed or "").splitlines()):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 4:
            continue
        now, most, memory, mode = fields
        text = f"{now} MHz of {most}, memory {memory} MHz"
        if mode == "Disabled":
            fix = "sudo nvidia-smi -pm 1"
            yield Check("GPU", f"clocks {index}", WEAK, f"{text}; persistence mode is off", fix)
        else:
            yield Check("GPU", f"clocks {index}", GOOD, text)


def board_checks(board: Jetson | None = None) -> Iterator[Check]:
    """Say the power mode and clocks of a Jetson; nothing for other machines."""
    board = board or Jetson()
    facts = board.facts()
    if not facts:
        return
    yield Check("Board", "release", GOOD, str(facts.get("jetson_release", "unknown")))
    mode = str(facts.get("jetson_power_mode", "unknown"))
    if "MAXN" in mode.upper():
        yield Check("Board", "power mode", GOOD, mode)
    else:
        found = f"{mode}: not the fastest one"
        yield Check("Board", "power mode", WEAK, found, "sudo nvpmodel -m 0")
    clocks = facts.get("jetson_clocks")
    if not isinstance(clocks, str):
        fix = "sudo jetson_clocks --show"
        yield Check("Board", "clocks", WEAK, "only root may ask for them", fix)
        return
    gpu = next((line.strip() for line in clocks.splitlines() if "GPU" in line), "unknown")
    pair = dict(re.findall(r"(MinFreq|MaxFreq)=(\d+)", gpu))
    if pair and pair.get("MinFreq") != pair.get("MaxFreq"):
        yield Check("Board", "clocks", WEAK, f"they move: {gpu}", "sudo jetson_clocks")
    else:
        yield Check("Board", "clocks", GOOD, gpu)


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
