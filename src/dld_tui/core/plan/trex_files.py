"""Writing the file set of TREx, so that tools which read that read this plan."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from dld_tui.core.errors import UsageError
from dld_tui.core.files.writer import Output, write_set
from dld_tui.core.plan.archive import text_of_file
from dld_tui.core.plan.json_text import documents
from dld_tui.core.plan.model import EngineLayer, EnginePlan, EngineTensor
from dld_tui.core.report.encoding import finite
from dld_tui.core.types import JSON

_BUILD = ("model_options", "build_options")
_PROFILE = ("performance_summary", "inference_options", "device_information")


def trex_paths(prefix: Path) -> dict[str, Path]:
    """Return where the files of a set go, by role: ``DIR/NAME`` and an ending."""
    endings = {
        "graph": ".graph.json", "profile": ".profile.json", "timing": ".timing.json",
        "build.metadata": ".build.metadata.json", "profile.metadata": ".profile.metadata.json",
    }  # fmt: skip
    return {role: prefix.with_name(prefix.name + ending) for role, ending in endings.items()}


def write_trex(plan: EnginePlan, prefix: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a plan as TREx's files and return their paths, those that there is something for.

    What was read from a file of the same form is written as it was; the rest is made from the
    plan.

    Args:
        plan: The engine.
        prefix: ``DIR/NAME``; the folder must be there.
        overwrite: False refuses when one of the files exists.

    Raises:
        UsageError: One of the files exists and may not be replaced.
        InputError: A file that the plan was read from is gone.
        SaveError: A file cannot be written; those that were there are untouched.
    """
    texts = {
        "graph": _graph(plan),
        "profile": _profile(plan),
        "timing": _timing(plan),
        "build.metadata": _metadata(plan.metadata, _BUILD),
        "profile.metadata": _metadata(plan.metadata, _PROFILE),
    }
    paths = trex_paths(prefix)
    outputs = []
    for role, text in texts.items():
        path = paths[role]
        if not text:
            continue
        if not overwrite and os.path.lexists(path):
            raise UsageError("the file exists", where=str(path), hint="Add --force to overwrite it")
        outputs.append(Output(path, [text.encode()], overwrite))
    write_set(outputs)
    return [output.path for output in outputs]


def _graph(plan: EnginePlan) -> str:
    source = plan.files.get("graph")
    if source:
        text = text_of_file(Path(source))
        # Concatenated layers and lists are forms that TREx does not read.
        if text.lstrip().startswith("{"):
            found, _ = documents(text, source)
            if len(found) == 1 and isinstance(found[0], dict) and "Layers" in found[0]:
                return text
    if not plan.all_layers:
        return ""
    layers: list[JSON] = [
        layer.name if plan.names_only else dict(layer.attributes) for layer in plan.all_layers
    ]
    bindings: list[JSON] = [tensor.name for tensor in plan.bindings or _ends(plan)]
    return _text({"Layers": layers, "Bindings": bindings})


def _ends(plan: EnginePlan) -> list[EngineTensor]:
    """Return what is read and not written, then what is written and not read."""
    read = {tensor.name: tensor for layer in plan.all_layers for tensor in layer.inputs}
    written = {tensor.name: tensor for layer in plan.all_layers for tensor in layer.outputs}
    inputs = [tensor for name, tensor in read.items() if name not in written]
    return inputs + [tensor for name, tensor in written.items() if name not in read]


def _profile(plan: EnginePlan) -> str:
    source = plan.files.get("profile")
    if source:
        return text_of_file(Path(source))
    if plan.log is not None and len(plan.log.profile) > 1:
        return _text(plan.log.profile)
    rows = [_row(layer, plan.passes) for layer in plan.all_layers if layer.time_ms is not None]
    return _text([{"count": plan.passes or 1}, *rows]) if rows else ""


def _row(layer: EngineLayer, passes: int | None) -> JSON:
    time_ms = layer.time_ms or 0.0
    row: dict[str, JSON] = {
        "name": layer.name, "timeMs": time_ms * (passes or 1), "averageMs": time_ms
    }  # fmt: skip
    if layer.median_ms is not None:
        row["medianMs"] = layer.median_ms
    return row | {"percentage": layer.percent or 0.0}


def _timing(plan: EnginePlan) -> str:
    source = plan.files.get("timing")
    return text_of_file(Path(source)) if source else ""


def _metadata(metadata: Mapping[str, JSON], keys: tuple[str, ...]) -> str:
    found: dict[str, JSON] = {key: metadata[key] for key in keys if key in metadata}
    return _text(found) if found else ""


def _text(value: JSON) -> str:
    return json.dumps(finite(value), indent=1, allow_nan=False) + "\n"
