"""What the statistics of a report are computed from: which passes, and which percentiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dld_tui.core.report.records import PassState, Program, program_of
from dld_tui.core.statistics import Percentile, percentile, trtexec_percentile


def percentile_of(backend: str) -> Percentile:
    """Return the definition of percentiles that goes with a backend, as a report names it."""
    return trtexec_percentile if program_of(backend) is Program.TENSORRT else percentile


GPU_TIMES = (
    "SELECT pass, layer, duration_us FROM gpu_events"
    " WHERE kind = 'kernel' AND layer IS NOT NULL ORDER BY pass, seq"
)
"""The rows that the time of a layer on the GPU is the sum of."""


ATTRIBUTED_PASSES = (
    "SELECT DISTINCT pass FROM gpu_events WHERE kind = 'kernel' AND layer IS NOT NULL"
)
"""The passes with kernels that are attributed to layers."""


def counted_passes(states: Mapping[int, PassState]) -> set[int]:
    """Return the passes that statistics use: the measured ones, else the incomplete ones."""
    for state in (PassState.MEASURED, PassState.INCOMPLETE, PassState.WARM_UP):
        chosen = {index for index, pass_state in states.items() if pass_state is state}
        if chosen:
            return chosen
    return set()


def gpu_passes(states: Mapping[int, PassState], attributed: Iterable[int]) -> set[int]:
    """Return the passes that GPU times of layers are computed from.

    Those at true speed with kernels attributed to layers; without any, those that the
    statistics of layers use.

    Args:
        states: Of all passes.
        attributed: Those of `ATTRIBUTED_PASSES`.
    """
    alone = PassState.KERNELS_ALONE
    at_true_speed = {index for index in attributed if states.get(index) is alone}
    return at_true_speed or counted_passes(states)
