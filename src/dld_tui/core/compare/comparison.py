"""A comparison of reports or engine plans, for screens, commands and scripts.

::

    comparison = Comparison([open_subject(first), open_subject(second)])
    comparison.differences      # settings and environment that differ: read these first
    comparison.unfair           # why the reports are not comparable
    comparison.doubts           # why the figures are doubtful
    comparison.end_to_end       # a Row
    comparison.rows("layer")    # list[Row], largest difference first
    comparison.explanation()    # where the time went, as text
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.compare.engines import (
    CONVERTING,
    FEW_BITS,
    HEAVY,
    WORK,
    InsertedLayers,
    Mismatch,
    PrecisionFigures,
    any_engine,
    counts_text,
    find_mismatches,
    inserted_layers,
    precision_figures,
)
from dld_tui.core.compare.matching import (
    MIN_PASSES,
    Match,
    is_conversion,
    match_layers,
    node_keys,
    numbers_agree,
)
from dld_tui.core.compare.records import (
    KIND,
    PER_ITEM,
    Cell,
    Comparable,
    Difference,
    Row,
    Subject,
    label,
)
from dld_tui.core.compare.rows import (
    GROUPINGS,
    MeasuredLayers,
    Part,
    Side,
    column_cells,
    lacks_kernels,
    measure,
    ratio_text,
    rows_by,
    rows_of_matches,
    side_of,
    signed,
    verdict,
)
from dld_tui.core.errors import UsageError
from dld_tui.core.report.measured_facts import BUSY_THREADS
from dld_tui.core.report.records import Dims, Layer
from dld_tui.core.report.report import open_report
from dld_tui.core.report.statistics import TRUSTED_COV_PERCENT, LatencySource, median, summarise
from dld_tui.core.settings.paths import distinct_names
from dld_tui.core.tensorrt.plan.subject import is_plan, open_plan_subject
from dld_tui.core.text import clip, visible
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
    measurement = report.measurement
    return Subject(
        title=report.path.name,
        path=str(report.path),
        layers=report.layers,
        times=None if measurement.own is None else measurement.own.times_ms,
        gpu_times=None if measurement.gpu is None else measurement.gpu.times_ms,
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


_FACTS = ("network", "backend", "execution_provider", "device")
_FIRST_SETTINGS = (
    "provider", "provider_options", "optimization_level", "precision", "threads", "inter_threads",
    "input_shapes", "shape", "device_id",
)  # fmt: skip
_FIRST_ENVIRONMENT = ("cpu", "gpu", "cpu_threads", "cpu_limit", "cpu_governor", "power_mode")
_NOT_SETTINGS = frozenset({"percentile", "output", "model", "layer_passes"})
"""Facts about the presentation or the place of results, not about the measurement."""
_EXTENT = frozenset({"duration", "iterations", "warm_up", "warm_up_ms", "seed"})
"""How long was measured, which should change no median."""
_STATES = (
    "jetson_clocks",
    "load_average",
    "load_average_after",
    "other_busy_threads",
    "temperature_c",
    "power_w",
    "performance_state",
    "memory_used_bytes",
)
"""Facts of the moment, by the end of their name: they differ every time."""
_CLOCK_PERCENT = 5.0
_BUSY_SHARE = 0.5
_TEXT_CELLS = 60


def same_model(subjects: Sequence[Comparable]) -> bool | None:
    """Return whether all reports are of the same model file; None if unknown."""
    for key in ("sha256", "bytes"):
        values = [subject.model.get(key) for subject in subjects]
        if all(value is not None for value in values):
            same = all(value == values[0] for value in values)
            if key == "sha256" or not same:
                return same
    names = {subject.facts.get("network") for subject in subjects}
    # An imported profile knows no model: it goes by the name of its file.
    unknown = any(subject.facts.get("network") in (None, "", subject.title) for subject in subjects)
    return None if len(names) == 1 or unknown else False


def differences(subjects: Sequence[Comparable]) -> list[Difference]:
    """Return the differences of the reports, their settings and their environment."""
    names = _FACTS if same_model(subjects) is False else _FACTS[1:]
    rows = _section("report", [s.facts for s in subjects], names, only=names)
    if same_model(subjects) is False:
        rows[:0] = _section("report", [_model_facts(s) for s in subjects], ())
    settings = [_without_shape_request(subject.settings) for subject in subjects]
    rows += _section("settings", settings, _FIRST_SETTINGS)
    return rows + _section(
        "environment", [flattened(subject.environment) for subject in subjects], _FIRST_ENVIRONMENT
    )


def relevant_differences(subjects: Sequence[Comparable]) -> list[Difference]:
    """Return the differences that can make one report faster than another."""
    return [difference for difference in differences(subjects) if difference.name not in _EXTENT]


def _model_facts(subject: Comparable) -> Mapping[str, JSON]:
    digest = subject.model.get("sha256")
    short = digest[:12] if isinstance(digest, str) else None
    known = {"model": subject.model.get("path"), "model sha256": short}
    return {name: value for name, value in known.items() if value is not None}


def _without_shape_request(settings: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the settings with the shapes that were run instead of those requested."""
    dropped = {"shape"} if "input_shapes" in settings else set()
    return {name: value for name, value in settings.items() if name not in dropped}


def _section(
    section: str,
    tables: Sequence[Mapping[str, JSON]],
    first: Sequence[str],
    only: Sequence[str] | None = None,
) -> list[Difference]:
    """Return the names whose values are not the same everywhere, the important ones first.

    A report that lacks a name, because it was imported or is older, does not differ in it.
    """
    names = dict.fromkeys([*first, *sorted({name for table in tables for name in table})])
    rows = []
    for name in names:
        if name in _NOT_SETTINGS or name.endswith(_STATES) or (only and name not in only):
            continue
        values = [table[name] for table in tables if name in table]
        if len(values) > 1 and any(_differ(name, value, values[0]) for value in values):
            rows.append(Difference(section, name, tuple(_text(t.get(name)) for t in tables)))
    return rows


def _differ(name: str, value: JSON, other: JSON) -> bool:
    if "_mhz" in name and isinstance(value, (int, float)) and isinstance(other, (int, float)):
        return abs(value - other) > _CLOCK_PERCENT / 100 * max(abs(value), abs(other))
    return value != other


def _text(value: JSON) -> str:
    if value is None or value == "":
        return fmt.UNKNOWN
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    if isinstance(value, list):
        return "x".join(_text(part) for part in value)
    return json.dumps(value)


def flattened(facts: Mapping[str, JSON], before: str = "") -> dict[str, JSON]:
    """Return nested facts with one name each, ``clocks.locked``."""
    items: dict[str, JSON] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            items |= flattened(value, f"{before}{name}.")
        else:
            items[before + name] = value
    return items


# Unfair comparisons


def fairness_warnings(subjects: Sequence[Comparable], base: int = 0) -> list[str]:
    """Return why the reports did not do the same work, the worst first, as visible text."""
    lines = [*_model_lines(subjects), *_shape_lines(subjects, base), *_source_lines(subjects)]
    known = (subject.facts.get("device") for subject in subjects)
    devices = {_text(device) for device in known if device}
    if len(devices) > 1:
        names = ", ".join(_short(name) for name in sorted(devices))
        lines.append(f"Different devices: {names}. Differences are of the device, too.")
    return [*lines, *_clock_lines(subjects)]


def doubts(subjects: Sequence[Comparable]) -> list[str]:
    """Return why the figures of a report are not to be trusted, as visible text."""
    return [
        f"{label(index)}: {line}"
        for index, subject in enumerate(subjects)
        for line in _own_lines(subject)
    ]


def _model_lines(subjects: Sequence[Comparable]) -> Iterator[str]:
    same = same_model(subjects)
    if same is None:
        yield "Whether the model is the same is not recorded."
    if same is not False:
        return
    names = {_text(subject.facts.get("network")) for subject in subjects}
    if len(names) == 1:
        name = _short(next(iter(names)))
        yield f"The model is not the same: {name} was changed between the reports."
    else:
        listed = ", ".join(_short(name) for name in sorted(names))
        yield f"Different models: {listed}. Only what is in both can be compared."


def _shape_lines(subjects: Sequence[Comparable], base: int) -> Iterator[str]:
    shapes = [subject.settings.get("input_shapes") for subject in subjects]
    known = [shape for shape in shapes if isinstance(shape, dict)]
    if len(known) < 2 or all(shape == known[0] for shape in known):
        return
    if any(subject.facts.get(PER_ITEM) for subject in subjects):
        return  # the times are divided by the batches, and that is told
    in_order: list[JSON] = [list(shape.values()) for shape in known]
    if same_model(subjects) is False and all(shape == in_order[0] for shape in in_order):
        return  # another model may name its inputs otherwise
    batches = batch_sizes(list(known)) if all(k.keys() == known[0].keys() for k in known) else None
    if batches is not None:
        sizes = " / ".join(map(str, batches))
        yield f"Different batch sizes ({sizes}): compare the time per item, not per pass."
    else:
        yield "Different input shapes: the reports did not do the same work."


def _source_lines(subjects: Sequence[Comparable]) -> Iterator[str]:
    loops = [bool(subject.latencies_ms) for subject in subjects]
    if any(loops) and not all(loops):
        which = ", ".join(label(index) for index, has_loop in enumerate(loops) if not has_loop)
        yield (
            f"{which} has no latency loop: end to end is of the profiled passes, which profiling"
            " makes slower."
        )
    lacking = [label(index) for index, s in enumerate(subjects) if lacks_kernels(s)]
    if lacking:
        yield (
            f"{', '.join(lacking)} ran layers on a GPU without recording its kernels: layers are"
            " compared by the time to launch them, not the time to compute them."
        )


def _clock_lines(subjects: Sequence[Comparable]) -> Iterator[str]:
    facts = [flattened(subject.environment) for subject in subjects]
    for difference in _section("environment", facts, ()):
        name = difference.name
        is_clock = "clock" in name or "_mhz" in name
        values = " / ".join(_short(value) for value in difference.values)
        if name.endswith("power_mode"):
            yield f"Different power modes: {values}. Differences are of the mode, too."
        elif is_clock or name.endswith(("governor", "boost")):
            yield f"Clocks: {visible(name)} was {values}."


def _own_lines(subject: Comparable) -> Iterator[str]:
    if subject.facts.get("status") == "partial":
        yield "the report is partial; its run was stopped or is still going on."
    facts = flattened(subject.environment)
    load = facts.get("load_average")
    threads = facts.get("cpu_threads")
    others = facts.get("other_busy_threads")
    if isinstance(others, (int, float)) and isinstance(threads, int):
        if others > BUSY_THREADS:
            yield (
                f"the machine was busy (other programs kept {others:.1f} of"
                f" {fmt.plural(threads, 'thread')} busy)."
            )
    elif isinstance(load, list) and load and isinstance(threads, int):
        now = load[0]
        if isinstance(now, (int, float)) and now > max(_BUSY_SHARE * threads, 1.0):
            yield f"the machine was busy (load {now:g} on {fmt.plural(threads, 'thread')})."
    for name, value in facts.items():
        if name.endswith("throttling") and isinstance(value, str) and value not in ("", "none"):
            yield f"clocks were held back: {_short(value)}."
    latency = summarise(subject.latencies_ms) or summarise(subject.profiled_ms)
    if latency is not None and latency.cov_percent > TRUSTED_COV_PERCENT:
        yield (
            f"latency varies by {fmt.percent(latency.cov_percent)} % (standard deviation over"
            " mean); another run may give another result."
        )
    passes = len(subject.profiled_ms)
    if not passes and subject.times is not None and subject.times.shape[1] > 1:
        passes = subject.times.shape[1]  # whole inferences, with the times of their phases
    if subject.layers and all(layer.time_ms is None for layer in subject.layers):
        yield "there are no times: only layers, types, precisions and tactics can be compared."
    elif not passes and subject.layers:
        kind = subject.facts.get(KIND)
        recorded = f"the layers' {kind}" if isinstance(kind, str) else "averages"
        yield f"only {recorded} over passes are recorded: nothing tells noise from change."
    elif passes < MIN_PASSES:
        noun = "pass" if passes == 1 else "passes"
        yield f"{passes} profiled {noun}: too few to tell noise from change."


def _short(text: str) -> str:
    return clip(visible(text), _TEXT_CELLS, keep="end")


__all__ = ["GROUPINGS", "MISMATCH", "VIEWS", "Comparison"]

MISMATCH = "mismatch"
"""The rows by layer whose precision or tactic is not the same everywhere."""
VIEWS = (*GROUPINGS, MISMATCH)


class Comparison:
    """Reports side by side.

    Attributes:
        subjects: The reports, in order.
        base: The index of the one that the others are compared with.
        normalizations: How they were made comparable, as visible text.
    """

    def __init__(self, subjects: Sequence[Comparable], base: int = 0) -> None:
        """Compare reports.

        Raises:
            UsageError: There are fewer than two, or there is no report number `base`.
        """
        if len(subjects) < 2:
            raise UsageError("give two or more reports to compare")
        if not 0 <= base < len(subjects):
            raise UsageError(f"there is no report {base + 1} among {len(subjects)}")
        self.subjects, self.normalizations = with_equal_batches(subjects)
        self.base = base
        self._rows: dict[str, list[Row]] = {}
        self._explanation: list[str] | None = None

    @property
    def target(self) -> int:
        """The report that a single difference is of: the last one that is not the base."""
        last = len(self.subjects) - 1
        return last if self.base != last else last - 1

    @cached_property
    def titles(self) -> list[str]:
        """Distinct display names of the reports: untrusted text."""
        return distinct_names(
            [subject.title for subject in self.subjects],
            [subject.path for subject in self.subjects],
        )

    @cached_property
    def measured(self) -> list[MeasuredLayers]:
        """The layers' times of each report."""
        return measure(self.subjects)

    @cached_property
    def matches(self) -> list[Match]:
        """Which layers are which."""
        return match_layers(self.subjects, self._has_same_nodes)

    @cached_property
    def _has_same_nodes(self) -> bool:
        """Whether the names of nodes mean the same nodes, numbered ones as well."""
        same = same_model(self.subjects)
        return numbers_agree(self.subjects, self.base) if same is None else same

    @cached_property
    def differences(self) -> list[Difference]:
        """Settings and facts of the environment that are not the same, most telling first."""
        return differences(self.subjects)

    @cached_property
    def unfair(self) -> list[str]:
        """Why the reports did not do the same work, as visible text."""
        return [*self.normalizations, *fairness_warnings(self.subjects, self.base)]

    @cached_property
    def doubts(self) -> list[str]:
        """Why the figures of a report are not to be trusted, as visible text."""
        return doubts(self.subjects)

    @property
    def warnings(self) -> list[str]:
        """Everything that speaks against the comparison, the worst first, as visible text."""
        return [*self.unfair, *self.doubts]

    def rows(self, by: str = "layer") -> list[Row]:
        """Return the rows, the largest difference first.

        Args:
            by: One of `VIEWS`.

        Raises:
            UsageError: An unknown view.
        """
        if by not in VIEWS:
            raise UsageError(f"cannot compare by {by!r}; choose one of {', '.join(VIEWS)}")
        if by not in self._rows:
            self._rows[by] = self._rows_by(by)
        return self._rows[by]

    def _rows_by(self, by: str) -> list[Row]:
        if by == "layer":
            return rows_of_matches(self.measured, self.matches, self.base)
        if by == MISMATCH:
            return [mismatch.row for mismatch in self.mismatches]
        nodes = (
            node_keys(self.subjects, self.matches, self.base, self._has_same_nodes)
            if by == "node"
            else ()
        )
        return rows_by(self.measured, by, self.base, nodes)

    # Engines

    @cached_property
    def of_engines(self) -> bool:
        """Whether one of the reports is of an engine, which has tactics to compare."""
        return any_engine(self.subjects)

    @cached_property
    def mismatches(self) -> list[Mismatch]:
        """Layers of the same work with another precision or tactic, largest difference first."""
        return find_mismatches(self.subjects, self.measured, self.rows("layer"))

    @cached_property
    def precisions(self) -> list[PrecisionFigures]:
        """What each engine computes in, and how long what kind of work takes."""
        return [
            precision_figures(subject, side)
            for subject, side in zip(self.subjects, self.measured, strict=True)
        ]

    @cached_property
    def inserted(self) -> list[InsertedLayers]:
        """The layers of each report that only convert a tensor."""
        return [
            inserted_layers(subject, side)
            for subject, side in zip(self.subjects, self.measured, strict=True)
        ]

    @cached_property
    def speed_up_source(self) -> str:
        """What :meth:`speed_up` is of: ``end to end``, else ``all layers``; empty without times."""
        for row in (self.end_to_end, self.layer_sum):
            if all(cell.time_ms for cell in row.cells):
                return row.key
        return ""

    def speed_up(self, index: int) -> float | None:
        """Return how many times as fast as the base a report is."""
        source = self.speed_up_source
        if not source:
            return None
        row = self.end_to_end if source == self.end_to_end.key else self.layer_sum
        here, there = row.cells[index].time_ms, row.cells[self.base].time_ms
        return there / here if here and there else None

    @cached_property
    def latency_source(self) -> LatencySource:
        """What `end_to_end` is of: of profiled passes when one lacks a loop."""
        has_loops = all(subject.latencies_ms for subject in self.subjects)
        return LatencySource.LOOP if has_loops else LatencySource.PROFILED

    @cached_property
    def end_to_end(self) -> Row:
        """Median latency, of the same source in all reports."""
        loop = self.latency_source is LatencySource.LOOP
        sides = [side_of(s.latencies_ms if loop else s.profiled_ms) for s in self.subjects]
        return self._single("end to end", sides)

    @cached_property
    def layer_sum(self) -> Row:
        """The time of all layers together, per pass."""
        sides = []
        for measured in self.measured:
            chosen = [
                layer.index
                for layer in measured.layers
                if measured.ran(layer.index) or not measured.timed
            ]
            part = Part(chosen, [1.0] * len(chosen))
            sides.append(Side.of(measured, part))
        return self._single("all layers", sides)

    def _single(self, key: str, sides: Sequence[Side]) -> Row:
        base = sides[self.base]
        cells = [
            column_cells([side], [base], index == self.base)[0] for index, side in enumerate(sides)
        ]
        return Row(key, tuple(cells))

    def explanation(self) -> list[str]:
        """Return where the time went, in lines without colour; untrusted text is visible."""
        if self._explanation is None:
            others = (index for index in range(len(self.subjects)) if index != self.base)
            self._explanation = [line for index in others for line in _Pair(self, index).lines()]
        return self._explanation


# --- where the time went ------------------------------------------------------------------------

_TOP = 5
_NAMED = 3
_NAME_CELLS = 44
_UNEXPLAINED_PERCENT = 20.0
_SCATTERED_PERCENT = 50.0
"""Rows that leave out more of what the layers took together do not say where it went."""
_MANY = 8
"""Matched layers from which it means something that all changed alike."""
_NEAR, _MOST, _CHANGED = 0.06, 0.9, 0.05
"""How near to the usual factor, for how much of the time, and how far the factor is from 1."""
_CPU = "CPUExecutionProvider"


class _Pair:
    """One report against the base."""

    def __init__(self, comparison: Comparison, index: int) -> None:
        self.comparison = comparison
        self.index, self.base = index, comparison.base
        self.here, self.there = label(index), label(comparison.base)
        self.rows = [
            row for row in comparison.rows("layer") if row.cells[index].delta_ms is not None
        ]

    def lines(self) -> list[str]:
        """Return the explanation of all pairs."""
        return [
            *self._precision(),
            self._end_to_end(),
            *self._speed_up(),
            *self._alike(),
            *self._no_reason(),
            *self._layer_sum(),
            *self._top(),
            *self._fusions(),
            *self._only(self.index, self.base),
            *self._only(self.base, self.index),
            *self._moved("provider", lambda layer: layer.provider, "on"),
            *self._moved("precision", lambda layer: layer.precision, "in"),
            *self._mismatches(),
            *self._inserted(),
        ]

    def _cell(self, row: Row) -> Cell:
        return row.cells[self.index]

    def _end_to_end(self) -> str:
        row = self.comparison.end_to_end
        cell, before = self._cell(row), row.cells[self.base].time_ms
        if cell.time_ms is None or before is None or cell.delta_ms is None:
            return f"{self.here} against {self.there}: no latency was measured in both."
        return (
            f"{self.here} takes {fmt.milliseconds(cell.time_ms)} ms where {self.there} takes"
            f" {fmt.milliseconds(before)} ms: {verdict(cell)}."
        )

    def _precision(self) -> Iterator[str]:
        """Answer first what two engines are compared for: which precision pays."""
        if self.comparison.of_engines:
            yield from precision_lines(self.comparison, self.index)

    def _alike(self) -> Iterator[str]:
        """Say when all layers of the same precision and tactic changed by one factor."""
        rows = [row for row in self.comparison.rows("layer") if self._is_pair(row)]
        times = [(row.cells[self.base].time_ms, self._cell(row).time_ms) for row in rows]
        pairs = sorted((after / before, before) for before, after in times if before and after)
        if len(pairs) < _MANY or any(
            len(set(filter(None, (mismatch.precision[self.base], mismatch.precision[self.index]))))
            > 1
            for mismatch in self.comparison.mismatches
        ):
            return
        whole = sum(before for _, before in pairs)
        usual = median(ratio for ratio, _ in pairs)
        near = sum(before for ratio, before in pairs if abs(ratio / usual - 1) <= _NEAR)
        if abs(usual - 1) >= _CHANGED and near >= _MOST * whole:
            slower = "slower" if usual > 1 else "faster"
            yield (
                f"The layers of {self.here} are all {slower} alike, {usual:.2f}× what they"
                f" take in {self.there}: that is the machine (clocks, power, other programs), not"
                " the engine."
            )

    def _is_pair(self, row: Row) -> bool:
        cells = (row.cells[self.base], self._cell(row))
        return all(len(cell.layers) == 1 and cell.time_ms for cell in cells)

    def _speed_up(self) -> Iterator[str]:
        factor = self.comparison.speed_up(self.index)
        if factor is not None and self.comparison.of_engines:
            source = self.comparison.speed_up_source
            yield f"Speedup of {self.here} over {self.there}: {factor:.2f}× ({source})."

    def _no_reason(self) -> Iterator[str]:
        pair = [self.comparison.subjects[index] for index in (self.base, self.index)]
        moved = self._cell(self.comparison.end_to_end).noise is False
        if moved and same_model(pair) and not relevant_differences(pair):
            yield (
                "No setting and nothing recorded of the machine differs: the state of the machine"
                " does. Measure both again, one after the other."
            )

    def _layer_sum(self) -> Iterator[str]:
        cell = self._cell(self.comparison.layer_sum)
        whole = self._cell(self.comparison.end_to_end).delta_ms
        if cell.delta_ms is None:
            return
        line = f"Layers together: {signed(cell.delta_ms)} ms a pass"
        if whole and cell.noise is False:
            rest = whole - cell.delta_ms
            around = _half_width(cell) + _half_width(self._cell(self.comparison.end_to_end))
            if abs(rest) > max(_UNEXPLAINED_PERCENT / 100 * abs(whole), around):
                line += (
                    f", end to end {signed(whole)} ms: {signed(rest)} ms is not in the layers"
                    " (time between them, or what profiling adds)"
                )
        yield f"{line}."
        rows = sum(self._cell(row).delta_ms or 0.0 for row in self.rows)
        if cell.noise is False and abs(cell.delta_ms - rows) > max(
            _SCATTERED_PERCENT / 100 * abs(cell.delta_ms), _half_width(cell)
        ):
            yield (
                f"The rows below, by their medians, make {signed(rows)} ms of that: the rest is in"
                " other layers in each pass, as delays by another program are, and no row tells it."
            )

    def _top(self) -> Iterator[str]:
        if not self._timed():
            return
        sure = [row for row in self.rows if self._is_sure(row)]
        alone = sum(1 for row in sure if row.state(self.index, self.base))
        unsure = sum(1 for row in self.rows if self._cell(row).noise)
        unknown = len(self.rows) - len(sure) - unsure
        rest = "".join(
            f", {number:,} {text}"
            for number, text in ((alone, "in one only"), (unknown, "cannot be told"))
            if number
        )
        yield (
            f"{len(sure) - alone:,} of {fmt.plural(len(self.rows), 'row')} changed by more than"
            f" noise, {unsure:,} did not{rest}."
        )
        moved = [row for row in self.rows if not self._cell(row).noise and self._size(row)]
        top = sorted(moved, key=self._size, reverse=True)[:_TOP]
        if top:
            share = sum(self._cell(row).share_percent or 0.0 for row in top)
            noun = "That row makes" if len(top) == 1 else f"The {len(top)} largest rows make"
            yield f"{noun} {share:.0f} % of all that moved:"
        for row in top:
            yield f"  {signed(self._cell(row).delta_ms):>9} ms  {self._what(row)}"

    def _size(self, row: Row) -> float:
        return abs(self._cell(row).delta_ms or 0.0)

    def _is_sure(self, row: Row) -> bool:
        return self._cell(row).noise is False or bool(row.state(self.index, self.base))

    def _what(self, row: Row) -> str:
        name = clip(row.title, _NAME_CELLS, keep="end")
        state = row.state(self.index, self.base)
        if state:
            return f"{name}  only in {self.here if state == 'added' else self.there}"
        counts = [len(row.cells[i].layers) for i in (self.base, self.index)]
        text = f"{name}  {ratio_text(self._cell(row))}"
        if counts == [1, 1]:
            return text
        return f"{text}  {self.there} {fmt.plural(counts[0], 'layer')}, {self.here} {counts[1]:,}"

    # Fusions

    def _fusions(self) -> Iterator[str]:
        for more, fewer in ((self.index, self.base), (self.base, self.index)):
            splits = [m for m in self.comparison.matches if self._is_split(m, more, fewer)]
            if not splits:
                continue
            split = sum(len(match.members[more]) for match in splits)
            fused = sum(len(match.members[fewer]) for match in splits)
            delta = sum(
                self._time(match, self.index) - self._time(match, self.base) for match in splits
            )
            cost = f" ({signed(delta)} ms in {self.here})" if self._timed() else ""
            yield (
                f"Fused in {label(fewer)}, not in {label(more)}: {fmt.plural(fused, 'layer')} of"
                f" {label(fewer)} {'does' if fused == 1 else 'do'} the work of {split:,} of"
                f" {label(more)}{cost}."
            )
            splits.sort(key=lambda match: -self._time(match, more))
            for match in splits[:_NAMED]:
                yield f"  {self._types(match, fewer)}  =  {self._types(match, more)}"
            if len(splits) > _NAMED:
                yield f"  and {len(splits) - _NAMED:,} more"

    @staticmethod
    def _is_split(match: Match, more: int, fewer: int) -> bool:
        return match.how == "node" and len(match.members[more]) > len(match.members[fewer]) > 0

    def _time(self, match: Match, report: int) -> float:
        medians = self.comparison.measured[report].medians
        return sum(medians[index] or 0.0 for index in match.members[report])

    def _types(self, match: Match, report: int) -> str:
        layers = [self.comparison.subjects[report].layers[i] for i in match.members[report]]
        shown = " + ".join(_counted(layer.type for layer in layers))
        first = clip(visible(layers[0].name), _NAME_CELLS, keep="end")
        return f"{shown} ({first})" if len(layers) == 1 else clip(shown, 60)

    # What only one of them has, and what runs elsewhere

    def _only(self, having: int, lacking: int) -> Iterator[str]:
        chosen = [
            self.comparison.subjects[having].layers[index]
            for match in self.comparison.matches
            if match.members[having] and not match.members[lacking]
            for index in match.members[having]
        ]
        if not chosen:
            return
        medians = self.comparison.measured[having].medians
        took = sum(medians[layer.index] or 0.0 for layer in chosen)
        kinds = ", ".join(_counted((layer.type for layer in chosen), _NAMED + 1))
        purpose = (
            "; all convert a layout, type or device" if all(map(is_conversion, chosen)) else ""
        )
        cost = f", {fmt.milliseconds(took)} ms" if self.comparison.measured[having].timed else ""
        noun = fmt.plural(len(chosen), "layer")
        yield f"Only in {label(having)}: {noun}{cost} ({kinds}){purpose}."

    def _moved(
        self, subject: str, value: Callable[[Layer], str | None], word: str
    ) -> Iterator[str]:
        """Say which matched layers have another provider or precision."""
        by_change: dict[tuple[str, str], list[Match]] = {}
        for match in self.comparison.matches:
            before, after = (self._values(match, i, value) for i in (self.base, self.index))
            if before and after and before != after:
                pair = (_listed(before), _listed(after))
                by_change.setdefault(pair, []).append(match)
        for (before_text, after_text), matches in by_change.items():
            delta = sum(self._time(m, self.index) - self._time(m, self.base) for m in matches)
            fallback = f"Fallback in {self.here}: " if after_text == _CPU else ""
            if not fallback and before_text == _CPU:
                fallback = f"Fallback in {self.there}: "
            noun = fmt.plural(len(matches), "row")
            cost = f" ({signed(delta)} ms)" if self._timed() else ""
            yield (
                f"{fallback}{noun} {'runs' if len(matches) == 1 else 'run'} {word} {after_text} in"
                f" {self.here}, {word} {before_text} in {self.there}{cost}."
            )

    # What only engines have

    def _timed(self) -> bool:
        return all(self.comparison.measured[index].timed for index in (self.index, self.base))

    def _mismatches(self) -> Iterator[str]:
        if not self.comparison.of_engines:
            return
        pairs = [
            (mismatch, mismatch.tactic[self.index], mismatch.tactic[self.base])
            for mismatch in self.comparison.mismatches
        ]
        other = [mismatch for mismatch, here, there in pairs if here and there and here != there]
        if other:
            noun = fmt.plural(len(other), "row")
            delta = sum(self._cell(mismatch.row).delta_ms or 0.0 for mismatch in other)
            cost = f" ({signed(delta)} ms)" if self._timed() else ""
            yield f"{noun} with another tactic in {self.here} than in {self.there}{cost}."

    def _inserted(self) -> Iterator[str]:
        if not self.comparison.of_engines:
            return
        counts = []
        for index in (self.base, self.index):
            inserted = self.comparison.inserted[index]
            cost = "" if inserted.time_ms is None else f", {fmt.milliseconds(inserted.time_ms)} ms"
            counts.append(f"{fmt.plural(inserted.layers, 'layer')}{cost} in {label(index)}")
        yield f"Inserted to change a format or type: {'; '.join(counts)}."

    def _values(
        self, match: Match, report: int, value: Callable[[Layer], str | None]
    ) -> tuple[str, ...]:
        layers = self.comparison.subjects[report].layers
        values = {value(layers[index]) for index in match.members[report]}
        return tuple(sorted(name for name in values if name))


def _half_width(cell: Cell) -> float:
    """Return the half-width of the interval of the difference; 0 where it is unknown."""
    return 0.0 if cell.interval is None else (cell.interval.high_ms - cell.interval.low_ms) / 2


def _counted(names: Iterable[str], most: int = 8) -> list[str]:
    """Return names with their numbers, the most frequent first."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    ordered: Sequence[tuple[str, int]] = sorted(counts.items(), key=lambda item: -item[1])
    shown = [f"{count} {visible(name)}" if count > 1 else visible(name) for name, count in ordered]
    return shown if len(shown) <= most else [*shown[:most], "…"]


def _listed(values: Sequence[str]) -> str:
    return visible(" and ".join(values))


def precision_answers(comparison: Comparison, index: int) -> list[str]:
    """Return which of an engine and the base is faster, by which precision, and what spoils it.

    Empty where no precision is known.
    """
    there, here = comparison.precisions[comparison.base], comparison.precisions[index]
    if not comparison.of_engines or not there.main or not here.main:
        return []
    names = [label(comparison.base), label(index)]
    factor = comparison.speed_up(index)
    if factor is None:
        lines = [f"{names[1]} computes mainly in {here.main}, {names[0]} in {there.main}."]
    elif there.main == here.main:
        lines = [
            f"{names[1]} {_verdict(factor)} {names[0]}, both mainly in {here.main}"
            f" ({comparison.speed_up_source})."
        ]
    else:
        lines = [
            f"{here.main} against {there.main}: {names[1]}, mainly in {here.main},"
            f" {_verdict(factor)} {names[0]}, mainly in {there.main}"
            f" ({comparison.speed_up_source})."
        ]
    if there.timed and here.timed:
        lines += _why(there, here, names)
    return lines


def precision_lines(comparison: Comparison, index: int) -> Iterator[str]:
    """Yield what an engine against the base says of their precisions: an answer, then its parts."""
    there, here = comparison.precisions[comparison.base], comparison.precisions[index]
    lines = precision_answers(comparison, index)
    if not lines:
        return
    yield lines[0]
    names = [label(comparison.base), label(index)]
    counts = f"{names[0]} {counts_text(there)}; {names[1]} {counts_text(here)}"
    yield f"Layers by precision: {counts}."
    if there.timed and here.timed:
        parts = [
            f"{title} {signed(here.work_ms.get(work, 0.0) - there.work_ms.get(work, 0.0))} ms"
            for work, title in WORK.items()
        ]
        yield f"The layers of {names[1]} against those of {names[0]}: {', '.join(parts)}."
        yield from lines[1:]


def _why(there: PrecisionFigures, here: PrecisionFigures, names: Sequence[str]) -> Iterator[str]:
    """Say what eats up the gain of few bits."""
    gain = there.work_ms.get(HEAVY, 0.0) - here.work_ms.get(HEAVY, 0.0)
    extra = here.work_ms.get(CONVERTING, 0.0) - there.work_ms.get(CONVERTING, 0.0)
    if here.main not in FEW_BITS or there.main in FEW_BITS:
        return
    if gain > 0 and extra > _NOTABLE * gain:
        yield (
            f"Converting and quantizing takes back {fmt.percent(100 * extra / gain)} % of what"
            f" {here.main} gains in {names[1]}."
        )
    elif gain <= 0:
        yield f"Its convolutions and products are no faster in {here.main} than in {there.main}."


_NOTABLE = 0.1
_EQUAL = 0.02


def _verdict(factor: float) -> str:
    if abs(factor - 1) < _EQUAL:
        return "is as fast as"
    if factor < 1:
        return f"takes {1 / factor:.2f}× the time of"
    return f"has a speedup of {factor:.2f}× over"
