"""The activity behind ``dld routes``."""

from __future__ import annotations

from dld_tui.activities.registry import Activity, Command

ACTIVITY = Activity(
    "routes",
    "Tune build routes",
    "Find the TensorRT build route (compiler knobs) with the fastest engine.",
    "dld_tui.extras.routes.job:Request",
    "dld_tui.extras.routes.job:run",
    Command(
        ("routes",),
        show="dld_tui.extras.routes.pages:show",
        rewrite="dld_tui.core.tensorrt.trtexec_arguments:plain_arguments",
    ),
    result="dld_tui.extras.routes.search:RouteSearch",
    of_open_model=True,
    result_view="dld_tui.extras.routes.pages:page",
    reasons="dld_tui.extras.routes.pages:reasons",
    synonyms=("global performance tuner", "gptuner", "knobs", "compiler options"),
    offered=True,
)
