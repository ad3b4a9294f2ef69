"""The times of one report's layers that are compared: of the device that does the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.compare.model import Comparable
from dld_tui.core.compare.noise import resolution_of
from dld_tui.core.report.records import Layer

if TYPE_CHECKING:
    from dld_tui.core.compare.model import FloatArray

_GPU_PROVIDERS = ("CUDA", "TensorRT", "Tensorrt", "ROCM", "MIGraphX")


@dataclass
class Part:
    """Some layers of a report, and how much of each."""

    layers: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Measured:
    """The layers of one report with the times that are compared."""

    layers: Sequence[Layer]
    times: FloatArray | None
    """Milliseconds ``float64[layers, passes]``, NaN where a layer did not run; None when only
    `medians` is known."""
    medians: Sequence[float | None]
    """One a layer, in milliseconds."""
    on_gpu: bool = False
    """Whether kernels on a GPU are among what is timed."""
    resolution_ms: float = 0.0

    @cached_property
    def timed(self) -> bool:
        """Whether there are times at all: an engine plan may come without a profile."""
        return any(median is not None for median in self.medians)

    @classmethod
    def of(cls, subject: Comparable, *, gpu: bool) -> Measured:
        """Return the times of a report.

        Args:
            subject: The report.
            gpu: Take the kernels' time on the GPU where a layer has some, and nothing for a layer
                on a GPU that has none; layers on the CPU keep their own. Otherwise all are taken as
                the CPU sees them, which for a GPU is the time to launch the work.
        """
        own = subject.times
        resolution = 0.0 if own is None else resolution_of(own)
        medians = [layer.time_ms for layer in subject.layers]
        if not gpu or subject.gpu_times is None:
            return cls(subject.layers, own, medians, False, resolution)
        kernels = subject.gpu_times
        # The GPU and the processor may have been measured in passes of their own: as many of each.
        passes = kernels.shape[1] if own is None else min(kernels.shape[1], own.shape[1])
        times = np.full((len(kernels), passes), np.nan) if own is None else own[:, :passes].copy()
        for layer in subject.layers:
            if layer.gpu_time_ms is not None or runs_on_gpu(layer):
                times[layer.index] = kernels[layer.index, :passes]
                medians[layer.index] = layer.gpu_time_ms
        return cls(subject.layers, times, medians, True, resolution)

    def ran(self, index: int) -> bool:
        """Tell whether a time is known of a layer."""
        return self.medians[index] is not None

    def series(self, part: Part) -> FloatArray | None:
        """Return the sorted times of some layers in the passes in which one of them ran.

        None when they are not known by pass.
        """
        if self.times is None:
            return None
        if len(part.layers) == 1:
            alone = self.times[part.layers[0]]
            ran = ~np.isnan(alone)
            found = np.sort(alone if ran.all() else alone[ran]) * part.shares[0]
            return np.asarray(found) if found.size else None
        chosen = self.times[part.layers]
        ran = ~np.isnan(chosen)
        if not ran.any(axis=1).all():
            return None
        weighted = np.where(ran, chosen, 0.0) * np.array(part.shares)[:, None]
        return np.sort(weighted.sum(axis=0)[ran.any(axis=0)])

    def figure(self, part: Part) -> float:
        """Return the sum of the layers' medians: what is known without the passes."""
        return sum(
            (self.medians[index] or 0.0) * share
            for index, share in zip(part.layers, part.shares, strict=True)
        )


def runs_on_gpu(layer: Layer) -> bool:
    """Tell whether a layer's execution provider works on a GPU."""
    return any(word in (layer.provider or "") for word in _GPU_PROVIDERS)


def measure(subjects: Sequence[Comparable]) -> list[Measured]:
    """Return the times of reports, like with like.

    Kernel times are taken when every report that uses a GPU has them: otherwise launching in one
    would be compared with working in another.
    """
    gpu = not any(lacks_kernels(subject) for subject in subjects)
    return [Measured.of(subject, gpu=gpu) for subject in subjects]


def lacks_kernels(subject: Comparable) -> bool:
    """Tell whether layers ran on a GPU whose kernels were not recorded."""
    return subject.gpu_times is None and any(runs_on_gpu(layer) for layer in subject.layers)
