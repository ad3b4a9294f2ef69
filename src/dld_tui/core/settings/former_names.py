"""Names of earlier versions that files and other packages may still have."""

from __future__ import annotations

ACTIVITIES = {
    "build_tensorrt": "build",
    "critical_path": "path",
    "isolate_tactic": "tactics",
    "reduce_model": "reduce",
    "refit_engine": "refit",
    "run_tool": "tool",
    "start_up": "startup",
    "tune_routes": "routes",
}
"""Today's id of an activity by the one it had: in requests, jobs of targets, remembered forms and
entry points."""


def activity_id(name: str) -> str:
    """Return today's id of an activity."""
    return ACTIVITIES.get(name, name)
