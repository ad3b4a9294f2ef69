"""Whether the result of a conversion is as sound as the model that it was made of.

A helper: on a model of many nodes that takes seconds of computing, which a thread would take from
those who use the program. Result: ``{}``; it fails where the result has new errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request:
    """Which models."""

    before: Path = param(label="Before", help="The model that was converted.", kind="file")
    after: Path = param(label="After", help="The result.", kind="file")


@dataclass(frozen=True)
class Result:
    """That it has none."""


def run(request: Request) -> Iterator[Event]:
    """Check.

    Raises:
        InputError: One of them cannot be opened.
        ActivityError: The result has errors that the model has not.
    """
    from dld_tui.core.checks.repairs import require_sound

    yield Progress(0, None, stage="Checking the result")
    require_sound(request.before, request.after, lambda: False)
    yield Finished(Result())
