"""``dld refit``: other weights for an engine."""

from __future__ import annotations

from dld_tui.cli.activity import Result
from dld_tui.cli.output import write, write_json
from dld_tui.core import fmt
from dld_tui.core.text import visible


def show_refit(result: Result, as_json: bool) -> None:
    """Print where the engine is and how many of its weights are new."""
    if as_json:
        write_json(result)
        return
    weights, size = result.get("weights"), result.get("bytes")
    count = fmt.plural(weights, "weight") if isinstance(weights, int) else "the weights"
    kept = f", {fmt.size(size)}" if isinstance(size, int) else ""
    write(f"{visible(str(result.get('engine')))}: {count} refitted{kept}")
