"""What is shown of a critical path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.types import JSON
from dld_tui.extras.path.longest import CriticalPath, path_lines, path_table

if TYPE_CHECKING:
    from dld_tui.screens.results.table import TableResult


def show(result: CriticalPath, as_json: bool) -> None:
    """Print the possible gain of parallel execution, and the path."""
    from dld_tui.cli.jobs.results import show_result

    show_result(
        result, path_lines(result), [path_table(result)] if result.path else [], as_json=as_json
    )


def page(result: CriticalPath, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a critical path."""
    from dld_tui.screens.results.table import TableResult

    title = f"path of {Path(result.model).name}"
    return TableResult(title, path_lines(result), path_table(result))
