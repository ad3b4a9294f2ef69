"""Asks which activity to run."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import App

from dld_tui.activities import registry as activities
from dld_tui.core.errors import DldError
from dld_tui.core.types import JSON
from dld_tui.screens.activity import ActivityScreen
from dld_tui.widgets.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.host import host


def choose_activity(app: App[int], values: Mapping[str, JSON]) -> None:
    """Ask which activity to start, and show its form."""
    offered = [info for info in activities.ACTIVITIES if info.offered]
    choices = []
    for number, info in enumerate(offered, start=1):
        why_not = activities.why_unavailable(info)
        label = f"{info.title}   {why_not or info.help}"
        choices.append(Choice(str(number), label, info.id))

    def answered(answer: str | None) -> None:
        if answer is None or host(app.screen).page.show_activity(answer):
            return
        try:
            app.push_screen(ActivityScreen(answer, values))
        except DldError as error:
            host(app.screen).show_error(error)

    app.push_screen(ChoiceDialog("Activities", "What to run?", choices), answered)
