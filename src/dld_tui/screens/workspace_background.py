"""Types and shapes from a child process: what a workspace shows beside what the file declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, cast

from dld_tui.core.document.values import ValueType
from dld_tui.core.events import Event, Part
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.targets import registry
from dld_tui.targets.base import Job

_LOOK_S = 0.05


@dataclass
class InferredTypes:
    """What inference says of a model."""

    scopes: list[tuple[list[JSON], dict[str, ValueType]]] = field(default_factory=list)
    """Types by value name, for the place of each scope (:mod:`dld_tui.core.document.places`)."""
    errors: JSON = field(default_factory=list)
    """What no runtime will take, as the activity ``infer_shapes`` tells it."""


def infer_types(snapshot: Path, home: Path | None, cancelled: CancelCheck) -> InferredTypes:
    """Return the inferred types of a model's values.

    Blocks until the child process has ended: call it on a thread.

    Args:
        snapshot: What :func:`dld_tui.core.document.snapshot.snapshot` gave, as a file.
        home: The model's own file, where it has one.
        cancelled: Asked now and then.

    Raises:
        ActivityError: Inference refuses the model.
        CancelledError: `cancelled` said so.
    """
    found = InferredTypes()
    types = _Types(found)
    request: dict[str, JSON] = {
        "model": str(snapshot), "snapshot": True, "home": str(home) if home else None
    }  # fmt: skip
    with registry.get().start("infer_shapes", request) as job, Watch(job, cancelled):
        result = job.result(types.take)
    found.errors = result["errors"]
    return found


class Watch:
    """Cancels a job, from a thread of its own, when somebody says so."""

    def __init__(self, job: Job, cancelled: CancelCheck) -> None:
        self._job = job
        self._cancelled = cancelled
        self._over = False

    def _look(self) -> None:
        while not self._over:
            if self._cancelled():
                self._job.cancel()
                return
            sleep(_LOOK_S)

    def __enter__(self) -> Watch:
        """Begin to ask."""
        Thread(target=self._look, daemon=True, name="watch a job").start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop asking."""
        self._over = True


class _Types:
    """Puts the parts together; equal types are one object."""

    def __init__(self, found: InferredTypes) -> None:
        self._found = found
        self._known: dict[ValueType, ValueType] = {}

    def take(self, event: Event) -> None:
        """Take in a part, and let the event loop go on."""
        if not isinstance(event, Part):
            return
        place = cast("list[JSON]", event.data["place"])
        kinds = [self._type(data) for data in cast("list[list[Any]]", event.data["kinds"])]
        types = cast("Mapping[str, int]", event.data["types"])
        scopes = self._found.scopes
        if not scopes or scopes[-1][0] != place:
            scopes.append((place, {}))
        scopes[-1][1].update((name, kinds[number]) for name, number in types.items())
        sleep(0.001)  # this thread holds the interpreter otherwise

    def _type(self, data: list[Any]) -> ValueType:
        dtype, dims, *container = data
        made = ValueType(dtype, None if dims is None else tuple(dims), *container)
        return self._known.setdefault(made, made)
