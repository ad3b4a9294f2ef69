"""Asks which activity to run."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import App

from dld_tui.activities import registry as activities
from dld_tui.core.types import JSON
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.shell.host import host

_KEYS = "123456789abcdefghijklmnoprstuvwxyz"


def choose_activity(app: App[int], values: Mapping[str, JSON]) -> None:
    """Ask which activity to start, and show its form."""
    offered = [activity for activity in activities.activities() if activity.offered]
    choices = []
    for key, activity in zip(_KEYS, offered, strict=False):
        why_not = activities.why_unavailable(activity)
        choices.append(Choice(key, f"{activity.title}   {why_not or activity.help}", activity.id))

    def answered(answer: str | None) -> None:
        if answer is not None and not host(app.screen).page.show_activity(answer):
            host(app.screen).start_activity(answer, values)

    app.push_screen(ChoiceDialog("Activities", "What to run?", choices), answered)
