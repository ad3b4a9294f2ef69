"""Types that a model does not declare, found by shape inference in a child process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dld_tui.cli.output import narrate
from dld_tui.core.document.places import scope_at
from dld_tui.core.document.snapshot import snapshot
from dld_tui.core.document.values import ValueType
from dld_tui.core.errors import DldError
from dld_tui.core.events import Event, Part
from dld_tui.core.types import JSON
from dld_tui.targets import registry

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


def infer(document: Document, home: Path) -> bool:
    """Note the types that shape inference finds, in a child process; False when it finds none."""
    found = False

    def take(event: Event) -> None:
        nonlocal found
        if not isinstance(event, Part):
            return
        scope = scope_at(document, cast("list[JSON]", event.data["place"]))
        kinds = [
            ValueType(dtype, None if dims is None else tuple(dims), *container)
            for dtype, dims, *container in cast("list[list[Any]]", event.data["kinds"])
        ]
        if scope is not None:
            types = cast("dict[str, int]", event.data["types"])
            scope.inferred.update((name, kinds[number]) for name, number in types.items())
            found = True

    try:
        with tempfile.TemporaryDirectory(prefix="dld-") as folder:
            path = Path(folder) / "snapshot.onnx"
            path.write_bytes(b"".join(snapshot(document, doubtful=True)))
            request: dict[str, JSON] = {"model": str(path), "snapshot": True, "home": str(home)}
            with registry.get().start("infer_shapes", request) as job:
                job.result(take)
    except DldError as error:
        narrate(f"{home}: {error.message}")
    return found
