"""Commands that run an activity: options from its request, progress on stderr, its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click

from dld_tui.activities import registry as activities
from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.cancelling import naming_cancels
from dld_tui.cli.many_targets import run_on_all
from dld_tui.cli.names import PLACE
from dld_tui.cli.narrator import Narrator
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import require_free
from dld_tui.core.params import is_same_file, settings_of, to_json, validate
from dld_tui.core.types import JSON
from dld_tui.targets import registry as targets

Result: TypeAlias = "dict[str, JSON]"
Rewrite: TypeAlias = "Callable[[list[str]], list[str]]"


class RewritingCommand(click.Command):
    """A command that may change its arguments before they are parsed."""

    def __init__(self, name: str, rewrite: Rewrite | None, **about: Any) -> None:
        super().__init__(name, **about)
        self.rewrite = rewrite

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the changed arguments."""
        return super().parse_args(ctx, self.rewrite(args) if self.rewrite else args)


def run_activity(activity_id: str, request: Any, target: str | None = None) -> Result:
    """Run a job to its end and return its result.

    Raises:
        DldError: What the job says of its failure.
    """
    validate(request)
    if target is not None:
        ask_on_terminal()
    with (
        naming_cancels(activity_id, request, [] if target is None else [target]),
        Narrator() as narrator,
        targets.get(target).start(activity_id, to_json(request)) as job,
    ):
        return job.result(narrator.event)


def activity_command(
    name: str,
    activity_id: str,
    show: Callable[[Result, bool], int | None],
    rewrite: Rewrite | None = None,
) -> click.Command:
    """Return the command of an activity.

    Args:
        name: The command's name.
        activity_id: As in :data:`dld_tui.activities.registry.ACTIVITIES`.
        show: Prints a result, as JSON when its second argument is True; returns the exit status.
        rewrite: Brings arguments in the ways of other tools to ours before they are parsed.
    """
    activity = activities.load(activity_id)

    def callback(target: tuple[str, ...], force: bool, as_json: bool, **values: Any) -> int | None:
        request = request_from(activity.request, values)
        validate(request)
        if len(target) > 1:
            return _compare(run_on_all(activity_id, request, target, force), as_json)
        for setting in settings_of(activity.request):
            output = getattr(request, setting.name)
            if setting.param.kind == "output" and output is not None:
                is_input = getattr(request, "in_place", False) and is_same_file(
                    output, request.model
                )
                require_free(output, force or is_input)
        return show(run_activity(activity_id, request, *target), as_json)

    return RewritingCommand(
        name,
        rewrite,
        callback=callback,
        params=[
            *parameters_of(activity.request),
            *shared_options(several=_reports(activity.request)),
        ],
        help=activity.info.help,
    )


def _reports(request: type[Any]) -> bool:
    """Return whether an activity writes a report, so that those of several targets compare."""
    return any(s.param.kind == "output" and s.param.suffix for s in settings_of(request))


def shared_options(*, several: bool = True) -> list[click.Parameter]:
    """Return the options of every command that runs an activity.

    Args:
        several: Whether it can run on several targets at once.
    """
    more = "; given again, on all of them at once, and compare." if several else "."
    return [
        click.Option(
            ["--target"],
            type=PLACE,
            metavar="NAME",
            multiple=True,
            help=f"Run there instead of here{more}",
        ),
        click.Option(["--force"], is_flag=True, help="Overwrite an existing output."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."),
    ]


def _compare(reports: Sequence[Path], as_json: bool) -> int:
    from dld_tui.cli.compare import command

    arguments = [*(["--json"] if as_json else []), "--", *map(str, reports)]
    return int(command.main(arguments, standalone_mode=False) or 0)
