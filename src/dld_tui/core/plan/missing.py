"""What the files of an engine do not say, and how to get it."""

from __future__ import annotations

from dld_tui.core.plan.model import EnginePlan


def missing(plan: EnginePlan) -> list[str]:
    """Return a sentence for each thing that would be worth having, the most important first."""
    found: list[str] = []
    if plan.passes is None and plan.total_ms is None:
        found.append(
            "No times of the layers: trtexec --loadEngine=ENGINE --exportProfile=NAME.profile.json "
            "--separateProfileRun writes them; keep the file beside this one."
        )
    if plan.timing is None:
        found.append(
            "No times of whole inferences: trtexec --loadEngine=ENGINE "
            "--exportTimes=NAME.timing.json writes them."
        )
    if not plan.device:
        found.append(
            "The device is not known, so no roofline can be drawn: keep the log of trtexec, or "
            "NAME.profile.metadata.json, beside this file."
        )
    return found
