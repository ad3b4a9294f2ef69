"""A custom tool that runs: its log stays, as it is often the result."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.activity.prepared_job import PreparedJob
from dld_tui.targets import registry as targets


class ToolJobScreen(PreparedJob):
    """Runs a tool on this machine.

    Args:
        request: The request of the activity.
        opened: Opens the output; None when it is not to be opened.
        title: What runs.
        prepare: Writes the model that the tool gets, on the thread of the job; None when there is
            nothing to write.
        folder: A temporary folder that is removed with the page.
    """

    HELP = (
        "{job.cancel} stops the tool and what it started. When it has ended, {job.cancel} goes "
        "back."
    )

    def __init__(
        self,
        request: Mapping[str, JSON],
        opened: Callable[[Any], None] | None,
        *,
        title: str,
        prepare: Callable[[CancelCheck], None] | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(
            "run_tool", request, opened or _nothing, title=title, target=targets.LOCAL,
            prepare=prepare, tidy=self._remove,
        )  # fmt: skip
        self._folder = folder
        self._opens = opened is not None

    def _remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def facts(self) -> set[str]:
        """Return the facts of a job; there is a result only where one is opened."""
        facts = super().facts()
        return facts if self._opens else facts - {"result"}

    def action_result(self) -> None:
        """Close the page and open what the tool wrote; without that, its log stays."""
        if self._opens:
            super().action_result()


def _nothing(_: object) -> None:
    """Open nothing."""
