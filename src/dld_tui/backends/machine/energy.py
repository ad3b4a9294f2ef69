"""Joules by counters that the machine keeps: RAPL of the processors, and that of a GPU.

RAPL is read where the kernel allows it: for ``root`` only, usually. Counters are of everything that
the package or the board does meanwhile, idle power and other programs included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic

from dld_tui.core.types import JSON

_ROOT = Path("/sys/class/powercap")


class EnergyWatch:
    """Reads the counters at the start and at the end of what is measured.

    Args:
        gpu_mj: Returns the millijoules that a GPU has used since its driver was loaded, or None.
        root: The folder of RAPL's domains.
    """

    def __init__(self, gpu_mj: Callable[[], int | None] | None = None, root: Path = _ROOT) -> None:
        self._gpu_mj, self._root = gpu_mj, root
        self._at = monotonic()
        self._rapl = _packages(root)
        self._gpu = gpu_mj() if gpu_mj is not None else None

    def facts(self, passes: int) -> dict[str, JSON]:
        """Return the joules of a pass, the watts meanwhile, and of what; empty where none is known.

        Args:
            passes: How many were made since the start.
        """
        seconds = monotonic() - self._at
        joules: dict[str, float] = {}
        for name, (end, _) in _packages(self._root).items():
            if name in self._rapl:
                begin, span = self._rapl[name]
                used = end - begin if end >= begin else end - begin + span  # it starts over
                joules[f"{name} (RAPL)"] = used / 1e6
        now = self._gpu_mj() if self._gpu_mj is not None else None
        if now is not None and self._gpu is not None:
            joules["GPU (NVML)"] = (now - self._gpu) / 1e3
        whole = sum(joules.values())
        if not joules or whole <= 0 or passes <= 0 or seconds <= 0:
            return {}
        return {
            "energy_per_inference_j": whole / passes,
            "board_power_w": whole / seconds,
            "energy_rails": " + ".join(joules),
        }


def _packages(root: Path) -> Mapping[str, tuple[int, int]]:
    """Return microjoules and where they start over, by the name of each package."""
    found: dict[str, tuple[int, int]] = {}
    try:
        folders = sorted(root.glob("*-rapl:*"))
    except OSError:
        return found
    for folder in folders:
        if folder.name.count(":") != 1:  # cores and memory are parts of a package
            continue
        try:
            name = (folder / "name").read_text().strip()
            texts = [(folder / file).read_text() for file in ("energy_uj", "max_energy_range_uj")]
            found[name or folder.name] = int(texts[0]), int(texts[1])
        except (OSError, ValueError):
            continue
    return found
