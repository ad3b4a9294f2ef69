"""``dld convert``, ``dld profile`` and ``dld run``: one command an activity, ours or another's."""

from __future__ import annotations

from dld_tui.activities.registry import activities
from dld_tui.cli.group import LazyGroup
from dld_tui.cli.table import CommandInfo


class ActivityGroup(LazyGroup):
    """The activities whose commands have two words, the name of the group first."""

    def rows(self) -> tuple[CommandInfo, ...]:
        """Return them, those of packages that were installed meanwhile, too."""
        return tuple(
            CommandInfo(activity.command.words[1], activity.command.summary, activity=activity.id)
            for activity in activities()
            if activity.command is not None and activity.command.words[:-1] == (self.name,)
        )


def _group(name: str, help: str) -> ActivityGroup:
    return ActivityGroup(name=name, help=help, no_args_is_help=False)


convert = _group("convert", "Modify a whole model.")
profile = _group("profile", "Measure the latency of a model and of each of its layers.")
run = _group("run", "Run an activity that another package adds.")
