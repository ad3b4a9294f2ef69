"""The critical path of a profiled model, and where it could be cut for two devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Request:
    """The report, and its model."""

    report: Path = param(
        label="Report", help="A profile report with layers.", kind="file", positional=True,
        metavar="REPORT",
    )  # fmt: skip
    model: Path | None = param(
        None,
        label="Model",
        help="The profiled model; by default the file that the report names.",
        kind="file",
        spellings=("--model",),
        metavar="MODEL",
    )


def run(request: Request) -> Iterator[Event]:
    """Look for the path.

    Raises:
        InputError: The report has no layers, or the model cannot be read.
    """
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.cost.nodes import ModelCosts
    from dld_tui.core.report.node_times import function_callers, node_times
    from dld_tui.core.report.report import open_report
    from dld_tui.extras.path.longest import critical_path

    yield Progress(0, None, stage="Reading the report")
    with open_report(request.report) as report:
        layers = report.layers
        named = report.model.get("path")
        shapes = report.settings.get("input_shapes")
    path = request.model or (Path(named) if isinstance(named, str) else None)
    if not any(layer.nodes for layer in layers):
        raise InputError("the report has no node times", where=str(request.report))
    if path is None:
        raise InputError(
            "the report does not name its model", where=str(request.report), hint="--model"
        )
    yield Progress(0, None, stage="Reading the model")
    with contextlib.closing(open_document(path)) as document:
        costs = ModelCosts(document, _typed(document, path, shapes))
        yield Progress(0, None, stage="Finding the critical path")

        def size(scope: Scope, name: str) -> int | None:
            count = costs.bytes_of(scope, name)
            return count if isinstance(count, int) else None

        result = critical_path(
            document, node_times(layers, function_callers(document)), size,
            (str(request.report), str(path)), sum(layer.cost_ms or 0.0 for layer in layers),
        )  # fmt: skip
    yield Finished(result)


def _typed(document: Document, path: Path, shapes: JSON) -> dict[str, int]:
    """Note the types of all values for the shapes that were run; return sizes of dimensions."""
    import onnx

    from dld_tui.backends.onnxruntime.types import contrib_types
    from dld_tui.core.model.document.serialise import skeleton_bytes
    from dld_tui.core.model.edits.inputs_outputs import declare_inputs
    from dld_tui.core.model.shapes.inference import infer_types, store_types
    from dld_tui.core.model.shapes.noting import follow_shapes

    given = {
        str(name): tuple(dims)
        for name, dims in (shapes.items() if isinstance(shapes, dict) else ())
        if isinstance(dims, list)
    }
    sizes = declare_inputs(document, given)  # type: ignore[arg-type]
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    store_types(document, infer_types(model, path, contrib_types)[0])
    return follow_shapes(document, given) | sizes  # type: ignore[arg-type]
