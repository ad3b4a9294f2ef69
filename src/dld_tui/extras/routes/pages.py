"""What is shown of a search of build routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.availability import library_reasons
from dld_tui.core.types import JSON
from dld_tui.extras.routes.search import RouteSearch, knob_table, search_lines, trial_table

if TYPE_CHECKING:
    from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
    from dld_tui.screens.results.table import TableResult


def reasons(values: Mapping[str, JSON], capabilities: LibraryCapabilities | None) -> dict[str, str]:
    """Return why a search of build routes is not available; ``""`` is for all of it."""
    by_setting = library_reasons(values, capabilities)
    if problem := by_setting.get("build_route"):
        by_setting[""] = f"no build routes: {problem}"
    return {**by_setting, "build_route": "the search sets it"}


def show(result: RouteSearch, as_json: bool) -> None:
    """Print the knobs, or the result of each route."""
    from dld_tui.cli.jobs.results import show_result

    show_result(result, search_lines(result), [_table(result)], as_json=as_json)


def page(result: RouteSearch, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a search of build routes."""
    from dld_tui.screens.results.table import TableResult

    return TableResult("routes", search_lines(result), _table(result))


def _table(result: RouteSearch) -> Table[Any]:
    return trial_table(result) if result.trials else knob_table(result.knobs)
