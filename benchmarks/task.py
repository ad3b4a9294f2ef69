"""One task in a process of its own: ``python -m benchmarks.task MODULE FUNCTION ARGUMENT...``.

A task imports its library before its clock starts, does one thing, and returns what it measured.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def peak_mb() -> float:
    """Return the largest resident size of this process so far, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("this system has no VmHWM in /proc/self/status")


def main(module: str, function: str, *arguments: str) -> None:
    """Run one task and print what it measured as JSON."""
    measured = getattr(importlib.import_module(module), function)(*arguments)
    print(json.dumps({**measured, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
