"""The layers of an engine in a report: names and nodes by its inspector, times by its profiler."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.backends.tensorrt_timing import LAUNCH_BOUND, LayerPass, PassTimes
from dld_tui.core import fmt
from dld_tui.core.errors import InputError
from dld_tui.core.files.writer import write_text
from dld_tui.core.gpu.attribution import PassSpan
from dld_tui.core.plan.lint_kinds import is_shape_work
from dld_tui.core.plan.mapping import map_plan, mapping_notes
from dld_tui.core.plan.model import EnginePlan
from dld_tui.core.plan.reader import open_plan
from dld_tui.core.plan.records import layer_records
from dld_tui.core.report.records import Layer
from dld_tui.core.report.statistics import median
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.report.trt_names import layer_type
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

_TRACK = "engine layers"
_SUPPORT = frozenset({"Constant", "NoOp", "Signal", "Wait", "ShapeHostToDevice", "shape_call"})
"""Types of layers that compute nothing of the model."""
_COPIES = ("HostToDeviceCopy", "DeviceToHostCopy", "DeviceToShapeHostCopy", "[HostToDevice")


@dataclass
class LayerRows:
    """Which record each row of the profiler is of."""

    layers: list[Layer | None] = field(default_factory=list)
    """None is left out of the report."""
    notes: list[str] = field(default_factory=list)


def plan_of(information: str, passes: Sequence[LayerPass]) -> EnginePlan | None:
    """Return what an engine's inspector says, with the times of its layers; None if unreadable."""
    with tempfile.TemporaryDirectory(prefix="layers-") as name:
        graph, profile = Path(name) / "engine.trt.json", Path(name) / "engine.profile.json"
        graph.write_text(information, encoding="utf-8", errors="replace")
        profile.write_text(json.dumps(profile_rows(passes)), encoding="utf-8", errors="replace")
        try:
            return open_plan(graph, profile=profile, beside=False)
        except InputError:
            return None


def profile_rows(passes: Sequence[LayerPass]) -> list[dict[str, JSON]]:
    """Return the layers' times as ``trtexec --exportProfile`` writes them."""
    times = _by_place(passes)
    whole = sum(sum(values) for _, values in times) or 1.0
    rows: list[dict[str, JSON]] = [{"count": len(passes)}]
    for name, values in times:
        total = sum(values)
        rows.append(
            {
                "name": name,
                "timeMs": total,
                "averageMs": total / len(values),
                "medianMs": median(values),
                "percentage": 100 * total / whole,
            }
        )
    return rows


def _by_place(passes: Sequence[LayerPass]) -> list[tuple[str, list[float]]]:
    """Return each layer's name and times; names repeat, so a layer is its place in the pass."""
    if not passes:
        return []
    names = [name for name, _ in passes[0].layers]
    same = [one for one in passes if [name for name, _ in one.layers] == names]
    return [(name, [one.layers[place][1] for one in same]) for place, name in enumerate(names)]


def rows_of(
    names: Iterable[str], plan: EnginePlan | None, document: Document | None, hide: bool
) -> LayerRows:
    """Return the record of each row of the profiler, in their order.

    Args:
        names: Of one pass.
        plan: What the inspector says of the layers.
        document: The model, whose nodes the layers compute.
        hide: Leave out what computes nothing of the model.
    """
    found = LayerRows()
    mapping = map_plan(plan, document) if plan is not None else {}
    waiting: dict[str, deque[Layer]] = defaultdict(deque)
    folded: dict[str, str] = {}
    support: set[str] = set()
    if plan is not None:
        kept = {layer.index for layer in plan.layers}
        folded = {layer.name: layer.type for layer in plan.all_layers if layer.index not in kept}
        support |= folded.keys()
        for record in layer_records(plan, mapping):
            waiting[record.name].append(record)
            if hide and is_shape_work(plan.layers[record.index]):
                support.add(record.name)
        found.notes += mapping_notes({layer.index: mapping[layer.index] for layer in plan.layers})
        if plan.names_only:
            found.notes.append(
                "The engine tells only the names of its layers: build it with --verbosity detailed"
            )
    hidden = 0
    for name in names:
        known = waiting[name]
        layer = known.popleft() if known else Layer(name, folded.get(name) or layer_type(name))
        if hide and (name in support or layer.type in _SUPPORT or _is_copy(name)):
            hidden += 1
            found.layers.append(None)
        else:
            found.layers.append(layer)
    if hidden:
        found.notes.append(f"{fmt.plural(hidden, 'layer')} that compute nothing are hidden")
    return found


def _is_copy(name: str) -> bool:
    return any(mark in name for mark in _COPIES)


def write_layers(
    writer: ReportWriter, passes: Sequence[LayerPass], rows: LayerRows, origin_ns: int
) -> list[PassSpan]:
    """Write layers and passes, and return where the passes are, in microseconds since `origin_ns`.

    The profiler tells durations alone, so the layers of a pass are put one after another.
    """
    if not passes:
        return []
    numbers = [None if layer is None else writer.add_layer(layer) for layer in rows.layers]
    names = [name for name, _ in passes[0].layers]
    spans: list[PassSpan] = []
    odd = 0
    for index, one in enumerate(passes):
        start_us, took_us = (one.start_ns - origin_ns) / 1000, one.duration_ns / 1000
        same = [name for name, _ in one.layers] == names
        odd += not same
        writer.add_pass(index, start_us, took_us, "measured" if same else "incomplete")
        at = start_us
        samples: list[tuple[int, float, float, float, int | str]] = []
        for number, (_, ms) in zip(numbers, one.layers, strict=False):
            if same and number is not None:
                samples.append((number, at, 1000 * ms, 1000 * ms, _TRACK))
            at += 1000 * ms
        writer.add_samples(index, samples)
        spans.append(PassSpan(index, start_us, took_us, ()))
    for note in rows.notes:
        writer.note(note)
    if odd:
        writer.note(f"{odd:,} of the passes ran other layers and do not count", "warning")
    return spans


def write_phases(writer: ReportWriter, times: PassTimes, transfers: bool) -> None:
    """Write what copies, compute and enqueueing take, and what it means."""
    phases = times.summary()
    writer.set_fact("phases_ms", phases)
    if not transfers:
        writer.note("Latency is without copies: inputs and outputs stay on the GPU")
    if not times.compute:
        return
    compute, enqueue = median(times.compute), median(times.enqueue)
    text = f"enqueueing takes {enqueue:.3f} ms (median), the GPU {compute:.3f} ms"
    if enqueue > LAUNCH_BOUND * compute:
        writer.note(f"Launch-bound: {text}; a CUDA graph would help", "warning")
    copies = max(median(times.h2d), median(times.d2h))
    if transfers and copies >= compute:
        writer.note(f"Copying takes {copies:.3f} ms, longer than the GPU works", "warning")


def save_set(
    path: Path, information: str, passes: Sequence[LayerPass], times: PassTimes
) -> list[Path]:
    """Write the engine's layers, and their times and those of the passes beside it.

    The files are what ``dld plan`` and TREx read. Existing ones are replaced.

    Raises:
        SaveError: One cannot be written.
    """
    stem = path.name.removesuffix(".json").removesuffix(".trt").removesuffix(".graph")
    files = {path: information}
    if passes:
        files[path.with_name(f"{stem}.profile.json")] = json.dumps(profile_rows(passes), indent=1)
    if times.compute:
        files[path.with_name(f"{stem}.timing.json")] = json.dumps(times.rows())
    for target, text in files.items():
        write_text(target, text, overwrite=True)
    return list(files)
