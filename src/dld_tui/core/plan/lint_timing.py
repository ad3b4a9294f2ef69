"""Rules about whole inferences: launching, copies, clocks. They need the timing of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.plan.lint_model import PlanFinding
from dld_tui.core.report.statistics import TRUSTED_COV_PERCENT

if TYPE_CHECKING:
    from dld_tui.core.plan.model import EnginePlan, TimingSummary

LAUNCH_SHARE = 0.8


def timing_findings(plan: EnginePlan) -> Iterator[PlanFinding]:
    """Yield the findings about the timing of a plan; none without a timing."""
    timing = plan.timing
    if timing is None:
        return
    for rule, hazard, mitigation in (*_launch(timing), *_copies(timing), *_clocks(timing)):
        yield PlanFinding(None, rule, "warning", hazard, mitigation, None)


def _launch(timing: TimingSummary) -> Iterator[tuple[str, str, str]]:
    if timing.enqueue is None or timing.compute is None or timing.compute.median <= 0:
        return
    share = timing.enqueue.median / timing.compute.median
    if share > LAUNCH_SHARE:
        yield (
            "launch-bound",
            f"Enqueueing takes {fmt.milliseconds(timing.enqueue.median)} ms where the GPU works"
            f" {fmt.milliseconds(timing.compute.median)} ms: the GPU waits to be told what to do",
            "Use a CUDA graph, a larger batch, or several inferences at a time",
        )


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
                f"Copying {direction} takes {fmt.milliseconds(copied.median)} ms, the work itself"
                f" {fmt.milliseconds(timing.compute.median)} ms",
                "Use pinned memory, smaller types at the border of the network, or keep the data on"
                " the GPU; copies can run beside the work of another inference",
            )


def _clocks(timing: TimingSummary) -> Iterator[tuple[str, str, str]]:
    measured = timing.compute or timing.latency
    varies = measured.cov_percent if measured is not None else None
    if varies is not None and varies > TRUSTED_COV_PERCENT:
        yield (
            "unsteady-times",
            f"Times vary by {fmt.percent(varies)} % from inference to inference"
            " (standard deviation over mean): the clocks are probably not locked",
            "Lock the clocks and leave the GPU to this run alone, then measure again",
        )
