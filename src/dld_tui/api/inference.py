"""Inferred types of a model, and what inference complains of, from a child process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

from dld_tui.activities.infer_shapes import InferredPart, Result
from dld_tui.core.checks.findings import INFERENCE, Finding, ToolFinding, findings_of
from dld_tui.core.codec import decode
from dld_tui.core.errors import ActivityError, CancelledError, DldError
from dld_tui.core.events import Event, Part
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.document.locations import scope_at
from dld_tui.core.model.document.serialise import snapshot
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.targets import registry

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

LOG = logging.getLogger("dld_tui")
LIMIT_S = 120.0
"""Time limit of inference in seconds."""


def infer(document: Document, home: Path, tell: Callable[[str], None] = LOG.warning) -> bool:
    """Set inferred types in the document; return whether there are any.

    Args:
        document: The model.
        home: Its file, in whose folder external data is looked for.
        tell: Takes the reason where inference fails.
    """
    try:
        _run(document, home)
    except DldError as error:
        tell(f"{home}: {error.message}")
    return any(scope.inferred for scope in document.scopes())


def infer_missing(
    document: Document, home: Path, tell: Callable[[str], None] = LOG.warning
) -> None:
    """Set inferred types where the model does not declare all of them; see :func:`infer`."""
    if any(
        name and scope.value_type(name) is None
        for scope in document.scopes()
        for node in scope.nodes
        for name in node.outputs
    ):
        infer(document, home, tell)


def inference_findings(document: Document, home: Path) -> list[Finding]:
    """Set inferred types in the document and return what inference complains of.

    A failure of the child process is a finding.

    Raises:
        CancelledError: The user stopped it.
    """
    document.forget_types()
    try:
        return findings_of(document, _run(document, home))
    except CancelledError:
        raise
    except DldError as error:
        return [Finding("warning", INFERENCE, f"shapes are not known: {visible(error.message)}")]


def _run(document: Document, home: Path) -> list[ToolFinding]:
    """Set inferred types and return complaints; see the activity ``infer_shapes``."""

    def take(event: Event) -> None:
        if not isinstance(event, Part):
            return
        part = decode(InferredPart, event.data)
        scope = scope_at(document, part.place)
        if scope is not None:
            types = {name: part.kinds[at] for name, at in part.types.items()}
            document.call_types.note(scope, part.variant, types, part.called)

    timed_out = False
    with temporary_folder("types") as folder:
        path = folder / "snapshot.onnx"
        path.write_bytes(b"".join(snapshot(document, doubtful=True)))
        request: dict[str, JSON] = {"model": str(path), "snapshot": True, "home": str(home)}
        with registry.get().start("infer_shapes", request) as job:

            def stop() -> None:
                nonlocal timed_out
                timed_out = True
                job.cancel()

            timer = Timer(LIMIT_S, stop)
            timer.daemon = True
            timer.start()
            try:
                return job.result(take, kind=Result).errors
            except CancelledError:
                if timed_out:
                    raise ActivityError(f"inference was stopped after {LIMIT_S:g} s") from None
                raise
            finally:
                timer.cancel()
