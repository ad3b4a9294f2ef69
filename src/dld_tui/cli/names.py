"""Names of what is saved, as types of click: a shell completes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class SavedName(click.types.StringParamType):
    """A name that a shell completes; whether it is known, the command says.

    Args:
        known: Returns the names that there are. What it raises means that there are none.
    """

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self._known = known

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin like this; never fails, as nobody would see why."""
        from click.shell_completion import CompletionItem

        try:
            names = sorted(set(self._known()))
        except Exception:  # noqa: BLE001 - a seam: a traceback amid a command line helps nobody
            return []
        # One with a control character, which only a hand-written file has, would reach the shell.
        return [CompletionItem(n) for n in names if n.startswith(incomplete) and n.isprintable()]


def _places() -> Iterable[str]:
    from dld_tui.targets import registry

    return registry.names()


def _targets() -> Iterable[str]:
    from dld_tui.core.connections import store

    return store.load()


def _tools() -> Iterable[str]:
    from dld_tui.core.custom_tools import store

    return store.load()


def _jobs() -> Iterable[str]:
    from dld_tui.targets.ssh.results import JobsStore

    return [job.id for job in JobsStore().all()]


PLACE = SavedName(_places)
"""Where a job runs: this machine, or a saved target."""
TARGET = SavedName(_targets)
TOOL = SavedName(_tools)
JOB = SavedName(_jobs)
