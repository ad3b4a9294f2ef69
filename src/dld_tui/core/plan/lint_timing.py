"""Rules about whole inferences: launching, copies, clocks. They need the timing of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.plan.lint_model import PlanFinding
from dld_tui.core.plan.lint_whole import uses_cuda_graph
from dld_tui.core.report.statistics import TRUSTED_COV_PERCENT

if TYPE_CHECKING:
    from dld_tui.core.plan.model import EnginePlan, TimingSummary

LAUNCH_SHARE = 0.8
STEADY, OUTLIER = 1.05, 1.5
"""Of the median: most inferences are below the one, and a few beyond the other."""


def timing_findings(plan: EnginePlan) -> Iterator[PlanFinding]:
    """Yield the findings about the timing of a plan; none without a timing."""
    timing = plan.timing
    if timing is None:
        return
    launch = _launch(timing, uses_cuda_graph(plan))
    for rule, hazard, mitigation in (*launch, *_copies(timing), *_clocks(timing)):
        yield PlanFinding(None, rule, "warning", hazard, mitigation, None)


def _launch(timing: TimingSummary, has_graph: bool) -> Iterator[tuple[str, str, str]]:
    if timing.enqueue is None or timing.compute is None or timing.compute.median <= 0:
        return
    share = timing.enqueue.median / timing.compute.median
    if share > LAUNCH_SHARE:
        graph = "" if has_graph else "a CUDA graph, "
        yield (
            "launch-bound",
            f"Enqueueing takes {_figure(timing.enqueue.median)} ms where the GPU takes"
            f" {_figure(timing.compute.median)} ms: the host can hardly keep the GPU busy",
            f"Use {graph}a larger batch, or several inferences at a time",
        )


def _figure(milliseconds: float) -> str:
    return fmt.milliseconds(milliseconds, digits=4)


def _copies(timing: TimingSummary) -> Iterator[tuple[str, str, str]]:
    if timing.compute is None:
        return
    for rule, copied, direction in (
        ("h2d-bound", timing.h2d, "to the GPU"),
        ("d2h-bound", timing.d2h, "from the GPU"),
    ):
        if copied is not None and copied.median > 0 and copied.median >= timing.compute.median:
            yield (
                rule,
                f"Copying {direction} takes {_figure(copied.median)} ms, the work itself"
                f" {_figure(timing.compute.median)} ms",
                "Use pinned memory, smaller types at the border of the network, or keep the data on"
                " the GPU; copies can run beside the work of another inference",
            )


def _clocks(timing: TimingSummary) -> Iterator[tuple[str, str, str]]:
    measured = timing.compute or timing.latency
    varies = measured.cov_percent if measured is not None else None
    if measured is None or varies is None or varies <= TRUSTED_COV_PERCENT:
        return
    hazard = (
        f"Times vary by {fmt.percent(varies)} % from inference to inference (standard deviation"
        " over mean)"
    )
    steady = measured.p90 is not None and measured.p90 <= STEADY * measured.median
    if steady and measured.max > OUTLIER * measured.median:
        yield (
            "unsteady-times",
            f"{hazard}: nine of ten take {_figure(measured.p90 or 0.0)} ms or less, the longest"
            f" {_figure(measured.max)} ms",
            "A few inferences were held up, as by another program on the GPU or a busy host: take"
            " the median, and measure again with the machine left alone",
        )
        return
    yield (
        "unsteady-times",
        hazard,
        "Lock the clocks (nvidia-smi -lgc) and leave the GPU to this run alone, then measure again",
    )
