"""The energy of a run, as meters tell it that packages add (``dld_tui.meters``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.process.plugins import Plugin, plugins, skip
from dld_tui.core.report.gpu_kernels import Sample

Window: TypeAlias = "tuple[int, int]"
"""Two times in nanoseconds of the Unix epoch."""
GpuCounter: TypeAlias = "Callable[[], int | None]"
"""Returns the millijoules that a GPU has used since its driver was loaded, or None."""


@dataclass(frozen=True)
class Energy:
    """The energy of a run in a report, by these names."""

    energy_per_inference_j: float
    board_power_w: float
    energy_rails: str
    """Of what, with `` + `` between them."""
    energy_repeats_j: tuple[float, ...] = ()
    """Joules per pass in each repeat of some seconds; empty for shorter runs."""


class EnergyMeter(Protocol):
    """Counts from when it is made."""

    def mark(self, passes: int) -> None:
        """Note how many passes were made since the start: called several times a second."""

    def read(self, passes: int) -> Energy | None:
        """Return the energy of a pass, after so many since the start; None if unknown."""


@dataclass(frozen=True)
class Meter:
    """A way to tell the energy of a run: an entry point of ``dld_tui.meters``."""

    count: Callable[[GpuCounter | None], EnergyMeter] | None = None
    """Begins to count."""
    of_rails: Callable[[Mapping[str, Sequence[Sample]], Window, float], Energy | None] | None = None
    """Takes the watts of a board, samples by rail, the window in which the passes ran, and the
    seconds of one."""


class RunEnergy:
    """Counts with all meters; the first one that knows the energy tells it.

    Args:
        gpu_mj: The counter of the GPU that computes, if one does.
    """

    def __init__(self, gpu_mj: GpuCounter | None = None) -> None:
        self._meters: list[tuple[Plugin[Meter], EnergyMeter]] = []
        for plugin in plugins("meters", Meter):
            if plugin.value.count is not None:
                try:
                    self._meters.append((plugin, plugin.value.count(gpu_mj)))
                # The seam to code of others, which may raise anything.
                except Exception as error:  # noqa: BLE001
                    skip("meters", plugin, error)

    def mark(self, passes: int) -> None:
        """Tell the meters how many passes were made since the start."""
        for plugin, meter in [*self._meters]:
            try:
                meter.mark(passes)
            except Exception as error:  # noqa: BLE001 - as above
                skip("meters", plugin, error)
                self._meters.remove((plugin, meter))

    def read(self, passes: int) -> Energy | None:
        """Return the joules per pass, the mean power, and of what; None if unknown."""
        for plugin, meter in self._meters:
            try:
                found = meter.read(passes)
            except Exception as error:  # noqa: BLE001 - as above
                skip("meters", plugin, error)
                continue
            if found is not None:
                return found
        return None


def energy_of_rails(
    rails: Mapping[str, Sequence[Sample]], window: Window, pass_s: float
) -> Energy | None:
    """Return the energy of a pass by the watts of a board; None if unknown.

    Args:
        rails: Samples by the names of the rails that add up to the power of the board.
        window: When the passes ran.
        pass_s: The seconds of one.
    """
    for plugin in plugins("meters", Meter):
        if plugin.value.of_rails is None:
            continue
        try:
            energy = plugin.value.of_rails(rails, window, pass_s)
        except Exception as error:  # noqa: BLE001 - as above
            skip("meters", plugin, error)
            continue
        if energy is not None:
            return energy
    return None
