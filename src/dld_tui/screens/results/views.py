"""What opens when a job that was started from a form has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dld_tui.activities import registry
from dld_tui.activities.build import Result as Built
from dld_tui.activities.refit import Result as Refitted
from dld_tui.core.conversion.reduction import Reduction
from dld_tui.core.dataclass import dataclass
from dld_tui.core.process.plugins import resolve
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.shell.page import AppServices, Page


@dataclass(frozen=True)
class InSplitView:
    """A model to open beside the one that it was made of."""

    path: Path
    original: Path


View: TypeAlias = "Page | Path | InSplitView | str | None"
"""A page, a file to open, one beside another, a text to show, or nothing."""

_FILES = ("report", "output", "path")


def opened_file(result: Any, values: Mapping[str, JSON]) -> View:
    """Return the file that an activity wrote."""
    fields = result if isinstance(result, Mapping) else vars(result)
    return next((Path(fields[key]) for key in _FILES if fields.get(key)), None)


def built_engine(result: Built, values: Mapping[str, JSON]) -> View:
    """Return the layers of an engine where that was asked for, else that it is built."""
    if values.get("open_metadata") and result.layer_info is not None:
        return result.layer_info
    problem = result.layer_info_problem
    more = f"; its layers are not written: {problem}" if problem else ""
    return visible(f"{result.engine} is built{more}")


def refitted_engine(result: Refitted, values: Mapping[str, JSON]) -> View:
    """Return that an engine has its new weights."""
    return visible(result.text)


def of_reduction(result: Reduction, values: Mapping[str, JSON]) -> View:
    """Return the smallest model that still fails, beside the one that it is part of."""
    return InSplitView(result.path, Path(str(values["model"])))


def show_view(owner: AppServices, view: View) -> None:
    """Show what came of a job: a page, a file or a text."""
    if isinstance(view, Page):
        owner.add_page(view)
    elif isinstance(view, Path):
        owner.open_path(view)
    elif isinstance(view, InSplitView):
        original = view.original

        def opened(result_page: Page) -> None:  # a model is read when its tab is seen
            result_page.when_open(
                lambda: owner.open_path(original, lambda page: show(page, result_page))
            )

        def show(page: Page, result_page: Page) -> None:
            page.when_open(lambda: page.show_split(result_page))

        owner.open_path(view.path, opened)
    elif view is not None:
        owner.page.app.notify(view, timeout=8, markup=False)


def run_activity(owner: AppServices, activity: str, values: Mapping[str, JSON]) -> None:
    """Run an activity here, and show what comes of it."""
    about = registry.find(activity)

    def done(result: Any) -> None:
        show_view(owner, resolve(about.result_view)(result, values))

    owner.run_job(about.id, values, done, title=about.title)
