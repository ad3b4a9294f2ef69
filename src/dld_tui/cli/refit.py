"""``dld refit``: other weights for an engine."""

from __future__ import annotations

from dld_tui.activities.refit_engine import Result
from dld_tui.cli.output import write, write_json
from dld_tui.core import fmt
from dld_tui.core.text import visible


def show_refit(result: Result, as_json: bool) -> None:
    """Print where the engine is and how many of its weights are new."""
    if as_json:
        write_json(result)
        return
    count = fmt.plural(result.weights, "weight")
    write(f"{visible(str(result.engine))}: {count} refitted, {fmt.size(result.bytes)}")
