"""Joules by counters that the machine keeps: RAPL of the processors, and that of a GPU.

RAPL is read where the kernel allows it: for ``root`` only, usually. Counters are of everything that
the package or the board does meanwhile, idle power and other programs included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

_ROOT = Path("/sys/class/powercap")


@dataclass(frozen=True)
class Energy:
    """What a report says of the energy of a run, under these names."""

    energy_per_inference_j: float
    board_power_w: float
    energy_rails: str
    """Of what, with `` + `` between them."""


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

    def read(self, passes: int) -> Energy | None:
        """Return the joules of a pass, the watts meanwhile, and of what; None where none is known.

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
            return None
        return Energy(whole / passes, whole / seconds, " + ".join(joules))


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
