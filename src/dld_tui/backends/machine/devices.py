"""Devices beside whole GPUs: the parts of a divided GPU (MIG), and DLA cores of a Jetson."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dld_tui.backends.gpu.jetson import run_tool
from dld_tui.core.health import GOOD, Check

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
