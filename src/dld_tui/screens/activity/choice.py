"""Asks which activity to run."""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.activities import registry as activities
from dld_tui.core.types import JSON
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.shell.host import Host

_KEYS = "123456789abcdefghijklmnoprstuvwxyz"


async def choose_activity(services: Host, values: Mapping[str, JSON]) -> None:
    """Ask which activity to start, and show its form."""
    offered = [activity for activity in activities.activities() if activity.offered]
    choices = []
    for key, activity in zip(_KEYS, offered, strict=False):
        why_not = activities.why_unavailable(activity)
        choices.append(Choice(key, f"{activity.title}   {why_not or activity.help}", activity.id))

    answer = await services.tasks.ask(ChoiceDialog("Activities", "What to run?", choices))
    if answer is not None and not services.page.show_activity(answer):
        services.start_activity(answer, values)
