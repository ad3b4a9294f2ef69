"""What counters of energy say during a measurement.

They are RAPL of the processors, where the kernel allows it (for ``root`` only, usually), and that
of a GPU. They count everything that the package or the board does meanwhile, idle power and other
programs included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import linear_regression
from time import monotonic

from dld_tui.backends.machine.meters import Energy
from dld_tui.core.dataclass import dataclass

_ROOT = Path("/sys/class/powercap")


REPEAT_S = 2.0
"""Counters are updated some times per second: shorter measurements are inaccurate."""


class EnergyWatch:
    """Adds up what energy counters count during a measurement.

    Args:
        gpu_mj: Returns the millijoules that a GPU has used since its driver was loaded, or None.
        root: The folder of RAPL's domains.
    """

    def __init__(self, gpu_mj: Callable[[], int | None] | None = None, root: Path = _ROOT) -> None:
        self._gpu_mj, self._root = gpu_mj, root
        self._begin = monotonic()
        self._latest = self._counters()
        self._joules = dict.fromkeys(self._latest, 0.0)
        """Since the start, by rail."""
        self._repeat_passes, self._repeat_joules = 0, 0.0
        self._readings = [(self._begin, 0.0)]
        """When, and the joules since the last repeat."""
        self._repeats: list[float] = []

    def _counters(self) -> dict[str, _Counter]:
        counters = {
            f"{name} (RAPL)": _Counter(used / 1e6, span / 1e6)
            for name, (used, span) in _packages(self._root).items()
        }
        gpu = self._gpu_mj() if self._gpu_mj is not None else None
        if gpu is not None:
            counters["GPU (NVML)"] = _Counter(gpu / 1e3)
        return counters

    def _advance(self) -> float:
        """Read the counters, add what they counted, and return the time.

        Each reading adds what came since the last one, so a counter may wrap around often.
        """
        now, counters = monotonic(), self._counters()
        for name, counter in counters.items():
            if name not in self._joules:
                continue
            used = counter.joules - self._latest[name].joules
            if used < 0 and counter.span is None:
                del self._joules[name]  # the driver was loaded again
                continue
            self._joules[name] += used if used >= 0 or counter.span is None else used + counter.span
            self._latest[name] = counter
        self._readable = counters.keys()
        return now

    def mark(self, passes: int) -> None:
        """Read the counters; call it several times per wrap-around of the fastest one.

        Also records a repeat, if one is over: repeats show the accuracy of the energy per pass.
        The counter of a GPU is updated every tenth of a second, which is 5 % of a repeat at
        either end. So the power of a repeat is the slope of the line through all readings.

        Args:
            passes: The number of passes since the start.
        """
        now = self._advance()
        whole = sum(self._joules.values())
        self._readings.append((now, whole - self._repeat_joules))
        seconds, count = now - self._readings[0][0], passes - self._repeat_passes
        if seconds < REPEAT_S or count <= 0:
            return
        watts = linear_regression(*zip(*self._readings, strict=True)).slope
        if watts > 0:
            self._repeats.append(watts * seconds / count)
        self._repeat_passes, self._repeat_joules, self._readings = passes, whole, [(now, 0.0)]

    def read(self, passes: int) -> Energy | None:
        """Return the joules per pass, the mean power, and the source; None if unknown.

        Args:
            passes: The number of passes since the start.
        """
        seconds = self._advance() - self._begin
        joules = {name: used for name, used in self._joules.items() if name in self._readable}
        whole = sum(joules.values())
        if whole <= 0 or passes <= 0 or seconds <= 0:
            return None
        return Energy(whole / passes, whole / seconds, " + ".join(joules), tuple(self._repeats))


@dataclass(frozen=True)
class _Counter:
    """The reading of a counter."""

    joules: float
    span: float | None = None
    """Where it wraps around to 0, in joules; None if it does not."""


_PLATFORM = "psys"
"""A domain that holds the packages, which would count twice."""


def _packages(root: Path) -> Mapping[str, tuple[int, int]]:
    """Return microjoules and where they start over, by the name of each package."""
    packages: dict[str, tuple[int, int]] = {}
    try:
        folders = sorted(root.glob("*-rapl:*"))
    except OSError:
        return packages
    for folder in folders:
        if folder.name.count(":") != 1:  # the cores of a package; its memory is not counted
            continue
        try:
            name = (folder / "name").read_text().strip()
            if name == _PLATFORM:
                continue
            texts = [(folder / file).read_text() for file in ("energy_uj", "max_energy_range_uj")]
            packages[name or folder.name] = int(texts[0]), int(texts[1])
        except (OSError, ValueError):
            continue
    return packages
