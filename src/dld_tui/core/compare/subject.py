"""A profile report or engine plan to compare, with times of one item where batches differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.compare.records import PER_ITEM, Comparable, Subject
from dld_tui.core.report.records import Dims, Layer
from dld_tui.core.report.report import open_report
from dld_tui.core.tensorrt.plan.subject import is_plan, open_plan_subject
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.compare.records import FloatArray
    from dld_tui.core.document.document import Document
    from dld_tui.core.report.report import Report


def subject_of(report: Report) -> Subject:
    """Return the comparable content of an open report, which may be closed afterwards.

    Raises:
        CorruptFileError: The file is damaged.
    """
    return Subject(
        title=report.path.name,
        path=str(report.path),
        layers=report.layers,
        times=None if report.by_pass is None else report.by_pass.times_ms,
        gpu_times=None if report.gpu_by_pass is None else report.gpu_by_pass.times_ms,
        latencies_ms=report.latencies,
        profiled_ms=(
            []  # passes that are but sums of layers, of a file without end-to-end times
            if report.profiled_latency is None
            else [pass_.duration_us / 1000 for pass_ in report.counted_passes]
        ),
        facts={
            "status": report.status,
            "network": report.network,
            "backend": report.backend,
            "execution_provider": report.execution_provider,
            "device": report.device,
            "created": report.created,
        },
        model=report.model,
        settings=report.settings,
        environment=report.environment,
    )


def open_subject(
    path: Path,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    document: Document | None = None,
) -> Subject:
    """Read a report file, another program's profile as one, or an engine plan.

    Args:
        progress: Called with (bytes read, bytes in all).
        cancelled: Asked while reading.
        document: The model, for matching the layers of an engine plan with its nodes.

    Raises:
        InputError: The file cannot be read, or is of another kind.
        CancelledError: `cancelled` returned True.
    """
    if is_plan(path):
        return open_plan_subject(path, document)
    with open_report(path, progress, cancelled) as report:
        return subject_of(report)


def with_equal_batches(subjects: Sequence[Comparable]) -> tuple[tuple[Comparable, ...], list[str]]:
    """Return comparable subjects, and the changes made to them as visible text.

    If the inputs differ in their batch size only, all times are divided by it.
    """
    alike, lines = tuple(subjects), list[str]()
    batches = batch_sizes([subject.settings.get("input_shapes") for subject in alike])
    if batches is not None and len(set(batches)) > 1:
        alike = tuple(
            _per_item(subject, batch) for subject, batch in zip(alike, batches, strict=True)
        )
        sizes = " / ".join(map(str, batches))
        lines.append(f"Different batch sizes ({sizes}): all times are for one item of the batch.")
    return alike, lines


def batch_sizes(shapes: Sequence[JSON]) -> list[int] | None:
    """Return the batch of each, by the dimensions of its inputs; None where more than it differs.

    Inputs are compared in their order, as engines of one model may name them otherwise.
    """
    batches, rest = [], []
    for shape in shapes:
        dims = list(shape.values()) if isinstance(shape, dict) else []
        known = [dim for dim in dims if isinstance(dim, list) and dim]
        firsts = {dim[0] for dim in known if isinstance(dim[0], int)}
        if not known or len(known) != len(dims) or len(firsts) != 1:
            return None
        [batch] = firsts
        if not isinstance(batch, int) or batch < 1:
            return None
        batches.append(batch)
        rest.append([dim[1:] for dim in known])
    return batches if all(shape == rest[0] for shape in rest) else None


def _per_item(subject: Comparable, batch: int) -> Comparable:
    return _changed(
        subject,
        facts={**subject.facts, PER_ITEM: batch},
        layers=[_layer_per_item(layer, batch) for layer in subject.layers],
        times=_divided(subject.times, batch),
        gpu_times=_divided(subject.gpu_times, batch),
        latencies_ms=[time / batch for time in subject.latencies_ms],
        profiled_ms=[time / batch for time in subject.profiled_ms],
    )


def _layer_per_item(layer: Layer, batch: int) -> Layer:
    def part(time_ms: float | None) -> float | None:
        return None if time_ms is None else time_ms / batch

    return replace(
        layer,
        time_ms=part(layer.time_ms),
        mean_ms=part(layer.mean_ms),
        min_ms=part(layer.min_ms),
        max_ms=part(layer.max_ms),
        gpu_time_ms=part(layer.gpu_time_ms),
        input_dims=_of_one_item(layer.input_dims, batch),
        output_dims=_of_one_item(layer.output_dims, batch),
    )


def _of_one_item(dims: tuple[Dims, ...], batch: int) -> tuple[Dims, ...]:
    """Return shapes as they would be with a batch of one, so that layers are matched by them."""
    return tuple((1, *shape[1:]) if shape and shape[0] == batch else shape for shape in dims)


def _divided(times: FloatArray | None, batch: int) -> FloatArray | None:
    return None if times is None else times / batch


def _changed(
    subject: Comparable,
    *,
    layers: Sequence[Layer],
    facts: Mapping[str, JSON] | None = None,
    times: FloatArray | None = None,
    gpu_times: FloatArray | None = None,
    latencies_ms: Sequence[float] | None = None,
    profiled_ms: Sequence[float] | None = None,
) -> Subject:
    return Subject(
        title=subject.title,
        path=subject.path,
        layers=layers,
        times=subject.times if times is None else times,
        gpu_times=subject.gpu_times if gpu_times is None else gpu_times,
        latencies_ms=subject.latencies_ms if latencies_ms is None else latencies_ms,
        profiled_ms=subject.profiled_ms if profiled_ms is None else profiled_ms,
        facts=subject.facts if facts is None else facts,
        model=subject.model,
        settings=subject.settings,
        environment=subject.environment,
    )
