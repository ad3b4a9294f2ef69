"""Checks that a model which was made of another one has no errors that the other lacks.

A helper activity: native code looks at the models, which may crash the process, and a model of many
nodes takes seconds. It fails if there are new errors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request:
    """Which models."""

    before: Path = param(label="Before", help="The model that it was made of.", kind="file")
    after: Path = param(label="After", help="The result.", kind="file")


@dataclass(frozen=True)
class Result:
    """There are no new errors."""

    notes: list[str]
    """What cannot be told. Untrusted text."""


def run(request: Request) -> Iterator[Event]:
    """Check.

    Raises:
        InputError: One of them cannot be opened.
        ActivityError: The result has errors that the model has not.
    """
    from dld_tui.backends.conversion.soundness import require_sound
    from dld_tui.core.llm.folder import open_document

    yield Progress(0, None, stage="Checking the result")
    with (
        contextlib.closing(open_document(request.before)) as before,
        contextlib.closing(open_document(request.after)) as after,
    ):
        notes = require_sound(before, after)
    yield Finished(Result(notes))
