"""Running an activity without its form, and showing what comes of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.core.plugins import resolve
from dld_tui.core.types import JSON
from dld_tui.screens.activity.result_head import View
from dld_tui.widgets.shell.host import Host
from dld_tui.widgets.shell.page import Page


def show_view(owner: Host, view: View) -> None:
    """Show what came of a job: a page, a file or a text."""
    if isinstance(view, Page):
        owner.add_page(view)
    elif isinstance(view, Path):
        owner.open_path(view)
    elif view is not None:
        owner.page.app.notify(view, timeout=8, markup=False)


def run_activity(owner: Host, activity: str, values: Mapping[str, JSON]) -> None:
    """Run an activity here, and show what comes of it."""
    about = registry.find(activity)

    def done(result: Any) -> None:
        show_view(owner, resolve(about.result_view)(result, values))

    owner.run_job(about.id, values, done, title=about.title)
