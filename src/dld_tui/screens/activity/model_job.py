"""Jobs on an open model as it is edited, and custom tools: their input is a snapshot."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.errors import CancelledError
from dld_tui.core.events import Event, Failed, Finished, Log
from dld_tui.core.files.view import discard_view, external_view
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.activity.job import JobInput, JobScreen
from dld_tui.screens.model.result import ModelState
from dld_tui.targets import registry as targets


class ModelJobScreen(JobScreen):
    """Runs an activity on the state of a model that a snapshot has.

    Args:
        activity: As in the registry of activities.
        request: Its settings, without the model.
        on_result: Takes the result, in which the snapshot has the name of the state.
        title: What runs.
        target: Where.
        state: The model.
        snapshot: Its structure, in a folder of its own that is removed with the page.
        setting: Name of the setting that is the model.
    """

    def __init__(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[Any], None],
        *,
        title: str,
        target: str,
        state: ModelState,
        snapshot: Path,
        setting: str,
    ) -> None:
        super().__init__(
            activity, dict(request), on_result, title=title, target=target,
            job_input=JobInput(self._write, self._discard),
        )  # fmt: skip
        self.state = state
        self._snapshot = snapshot
        self._setting = setting
        self._view: Path | None = None

    def _write(self, cancelled: CancelCheck) -> None:
        document = self.state.document()
        if document is None:  # its tab was closed
            raise CancelledError
        self._view = external_view(
            self._snapshot.read_bytes(),
            document.blobs,
            document.path.parent if document.path is not None else None,
            external=document.external,
            values=True,
            cancelled=cancelled,
        )
        self.request[self._setting] = str(self._view)

    def _discard(self) -> None:
        shutil.rmtree(self._snapshot.parent, ignore_errors=True)
        if self._view is not None:
            discard_view(self._view)

    def take(self, events: Sequence[Event]) -> None:
        """Show a batch of events, which are about the open model."""
        super().take([self._told(event) for event in events])

    def _told(self, event: Event) -> Event:
        if isinstance(event, Log):
            return dataclasses.replace(event, text=self._named(event.text))
        if isinstance(event, Failed):
            texts = {name: self._named(getattr(event, name))
                     for name in ("message", "where", "hint", "details")}  # fmt: skip
            return dataclasses.replace(event, **texts)
        if isinstance(event, Finished):
            return Finished(self._named(event.result))
        return event

    def _named(self, value: Any) -> Any:
        """Return texts with the name of the state for the path of the snapshot.

        Lists of objects, such as the rows of tensors, have no paths.
        """
        if isinstance(value, str):
            return value if self._view is None else value.replace(
                str(self._view), self.state.title
            )  # fmt: skip
        if isinstance(value, dict):
            return {key: self._named(item) for key, item in value.items()}
        if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
            return [self._named(item) for item in value]
        return value

    def go_to_node(self) -> None:
        """Close the page and show the node that the failure is about."""
        finding = self.end.finding if isinstance(self.end, Failed) else None
        if finding is None or finding.model != str(self._view):
            super().go_to_node()
            return
        self.dismiss(None)
        self.state.reveal(finding.scope, finding.node)


class ToolJobScreen(JobScreen):
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
            job_input=JobInput(prepare, self._remove),
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

    def open_result(self) -> None:
        """Close the page and open what the tool wrote; without that, its log stays."""
        if self._opens:
            super().open_result()


def _nothing(_: object) -> None:
    """Open nothing."""
