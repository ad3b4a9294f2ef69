"""The activity behind ``dld path``."""

from __future__ import annotations

from dld_tui.activities.registry import Activity, Command

ACTIVITY = Activity(
    "path",
    "Find the critical path",
    "Show what parallel execution could save, and where to split a model for two devices.",
    "dld_tui.extras.path.job:Request",
    "dld_tui.extras.path.job:run",
    Command(("path",), show="dld_tui.extras.path.pages:show"),
    result="dld_tui.extras.path.longest:CriticalPath",
    result_view="dld_tui.extras.path.pages:page",
    synonyms=("parallelism", "longest path", "split", "pipeline"),
    of_report=True,
)
