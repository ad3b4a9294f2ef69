"""An engine plan as something to compare with others, and with profile reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from dld_tui.core.compare.records import KIND, MEANS, Subject
from dld_tui.core.errors import InputError
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.types import JSON, Foreign

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan


_SETTINGS = ("build_options", "inference_options", "model_options", "reporting_options")


_NAMES = ("Device", "device", "Name", "name", "Selected Device")


def open_plan_subject(path: Path, document: Document | None = None) -> Subject:
    """Read an engine plan, with the files of its set beside it.

    Args:
        path: As for :func:`~dld_tui.core.tensorrt.plan.reader.open_plan`.
        document: The model that it was built from, to match the ONNX nodes.

    Raises:
        InputError: A file cannot be read, or has no layers.
    """
    plan = open_plan(path)
    if not plan.layers:
        raise InputError("there are no layers to compare", where=str(path))
    return plan_subject(plan, map_plan(plan, document), document)


def plan_subject(
    plan: EnginePlan, mapping: Mapping[int, LayerNodes], document: Document | None = None
) -> Subject:
    """Return a plan as the subject of a comparison.

    Args:
        mapping: From :func:`~dld_tui.core.tensorrt.plan.mapping.map_plan`.
        document: The model of the mapping, if any.
    """
    timed = any(layer.time_ms is not None for layer in plan.layers)
    path = document.path if document is not None else None
    device = next((plan.device[name] for name in _NAMES if plan.device.get(name)), None)
    return Subject(
        title=plan.title,
        path=plan.path,
        layers=layer_records(plan, mapping),
        latencies_ms=_latencies(plan),
        properties={
            "status": "complete",
            "network": PurePath(plan.model_path.replace("\\", "/")).name or plan.title,
            "backend": "TensorRT",
            "execution_provider": None,
            "device": device,
            "created": None,
            KIND: MEANS if timed else None,
        },
        model={"path": str(path)} if path is not None else {},
        settings={**_settings(plan), **_shapes(plan)},
        environment={name: value for name, value in plan.device.items() if name not in _NAMES},
    )


def _latencies(plan: EnginePlan) -> tuple[float, ...]:
    """Return the timed inferences; of a summary, only its median."""
    timing = plan.timing
    if timing is None:
        return ()
    known = timing.series.get("latency", ())
    if known:
        return tuple(known)
    return (timing.latency.median,) if timing.latency is not None else ()


def _shapes(plan: EnginePlan) -> Mapping[str, JSON]:
    """Return the dimensions of the engine's inputs, as reports have them; nothing when unknown."""
    inputs = [tensor for tensor in plan.bindings if tensor.mode == "input"]
    if not inputs or any(tensor.elements is None for tensor in inputs):
        return {}
    return {"input_shapes": {tensor.name: list(tensor.dims or ()) for tensor in inputs}}


def _settings(plan: EnginePlan) -> Foreign:
    settings: dict[str, JSON] = {}
    for section in _SETTINGS:
        options = plan.metadata.get(section)
        if isinstance(options, dict):
            settings |= options
    return settings
