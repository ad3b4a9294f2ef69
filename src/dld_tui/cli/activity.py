"""Commands that run an activity: options from its request, progress on stderr, its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import click

from dld_tui.activities import registry as activities
from dld_tui.cli.narrator import Narrator
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import require_free
from dld_tui.core.params import settings_of, to_json, validate
from dld_tui.core.types import JSON
from dld_tui.targets import registry as targets

Result: TypeAlias = "dict[str, JSON]"


def run_activity(activity_id: str, request: Any, target: str | None = None) -> Result:
    """Run a job to its end and return its result.

    Raises:
        DldError: What the job says of its failure.
    """
    validate(request)
    with Narrator() as narrator, targets.get(target).start(activity_id, to_json(request)) as job:
        return job.result(narrator.event)


def activity_command(
    name: str, activity_id: str, show: Callable[[Result, bool], int | None]
) -> click.Command:
    """Return the command of an activity.

    Args:
        name: The command's name.
        activity_id: As in :data:`dld_tui.activities.registry.ACTIVITIES`.
        show: Prints a result, as JSON when its second argument is True; returns the exit status.
    """
    activity = activities.load(activity_id)

    def callback(target: str | None, force: bool, as_json: bool, **values: Any) -> int | None:
        request = request_from(activity.request, values)
        for setting in settings_of(activity.request):
            output = getattr(request, setting.name)
            if setting.param.kind == "output" and output is not None:
                require_free(output, force)
        return show(run_activity(activity_id, request, target), as_json)

    shared = [
        click.Option(["--target"], metavar="NAME", help="Run there instead of here."),
        click.Option(["--force"], is_flag=True, help="Overwrite an existing output."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."),
    ]
    return click.Command(
        name,
        callback=callback,
        params=[*parameters_of(activity.request), *shared],
        help=activity.info.help,
    )
