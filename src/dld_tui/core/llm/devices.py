"""Devices that a decoder may run on: of a table, by numbers, or this machine."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass

from dld_tui.core.codec import decode
from dld_tui.core.cost.roofline import Roof
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.machine.environment import environment
from dld_tui.core.settings import paths
from dld_tui.core.tensorrt.plan.layer_roofline import peaks_of, roof_of
from dld_tui.core.text import visible

KEPT_PEAKS = "peaks.json"
"""The file in the folder for caches that has the measured peaks of this machine's processor."""
_MEMORY_GB = (
    (r"B200", 180), (r"H200", 141), (r"H100.*NVL", 94), (r"H100", 80), (r"A100.*80GB", 80),
    (r"A100", 40), (r"A30\b", 24), (r"A10\b", 24), (r"A2\b", 16), (r"L40", 48), (r"L4\b", 24),
    (r"T4\b", 16), (r"TITAN RTX", 24), (r"RTX 2080 Ti", 11), (r"RTX 3080 Ti", 12),
    (r"RTX 3090", 24), (r"RTX 3070", 8), (r"RTX 4090", 24), (r"RTX 4080", 16), (r"AGX Orin", 64),
)  # fmt: skip
"""10^9 bytes by name, from the data sheets; a device that comes in several sizes is left out."""


@dataclass(frozen=True)
class Device:
    """Something that a decoder may run on."""

    name: str
    """Visible text."""
    memory_bytes: int | None
    roof: Roof | None
    """None where its peaks are not known."""


def device_of(text: str) -> Device:
    """Return a device by its name, or by numbers.

    Args:
        text: ``H200``, or ``NAME=TFLOPS,GB/s,GB``.

    Raises:
        UsageError: The table does not have it, or the numbers are none.
    """
    name, sign, numbers = text.partition("=")
    if sign:
        try:
            tflops, bandwidth, memory = (float(part) for part in numbers.split(","))
        except ValueError:
            raise UsageError(
                f"--device {text!r} is no device", hint="Write NAME=TFLOPS,GB/s,GB"
            ) from None
        if not (0 < tflops < 1e6 and 0 < bandwidth < 1e6 and 0 < memory < 1e6):
            raise UsageError(f"--device {text!r} has a number that cannot be")
        peaks = dict.fromkeys(("fp32", "fp16", "bf16", "int8"), tflops * 1e12)
        return Device(visible(name), int(memory * 1e9), Roof(name, peaks, bandwidth * 1e9))
    peaks_found = peaks_of({"Name": text})
    if peaks_found is None:
        raise UsageError(
            f"the table of devices has no {visible(text)!r}",
            hint="Give numbers, as NAME=TFLOPS,GB/s,GB",
        )
    return Device(visible(text), _memory_of(text), roof_of(peaks_found))


def this_machine() -> Device:
    """Return the processor of this machine; its peaks are known once a model was profiled here."""
    facts = environment()
    memory = facts.get("memory_bytes")
    return Device(
        "this machine",
        memory if isinstance(memory, int) else None,
        _kept_roof(str(facts.get("cpu", ""))),
    )


def _kept_roof(cpu: str) -> Roof | None:
    with contextlib.suppress(OSError, ValueError, DldError):
        known = json.loads((paths.cache_dir() / KEPT_PEAKS).read_text(encoding="utf-8"))
        for key, value in known.items() if isinstance(known, dict) else ():
            if cpu and key.startswith(f"{cpu}, "):
                roof: Roof = decode(Roof, value)
                return roof
    return None


def _memory_of(name: str) -> int | None:
    sizes = (size for pattern, size in _MEMORY_GB if re.search(pattern, name, re.IGNORECASE))
    size = next(sizes, None)
    return None if size is None else size * 10**9
