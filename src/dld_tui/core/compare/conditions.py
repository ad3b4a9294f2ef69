"""Under what conditions reports were measured: what differs, what is unfair, what is doubtful."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from dld_tui.core import fmt
from dld_tui.core.compare.matching import MIN_PASSES
from dld_tui.core.compare.records import KIND, PER_ITEM, Difference, Subject, label
from dld_tui.core.compare.rows import lacks_kernels
from dld_tui.core.report.measured_figures import busy_text
from dld_tui.core.statistics import TRUSTED_COV_PERCENT, summarise
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_FACTS = ("network", "backend", "execution_provider", "device")
_FIRST_SETTINGS = (
    "provider", "provider_options", "optimization_level", "precision", "threads", "inter_threads",
    "input_shapes", "shape", "device_id",
)  # fmt: skip
_FIRST_ENVIRONMENT = ("cpu", "gpu", "cpu_threads", "cpu_limit", "cpu_governor", "power_mode")
_NOT_SETTINGS = frozenset({"percentile", "output", "model", "layer_passes"})
"""Properties of the presentation or the place of results, not about the measurement."""
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
"""Properties of the moment, by the end of their name: they differ every time."""
_CLOCK_PERCENT = 5.0
_TEXT_CELLS = 60


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


def same_model(subjects: Sequence[Subject]) -> bool | None:
    """Return whether all reports are of the same model file; None if unknown."""
    for key in ("sha256", "bytes"):
        values = [subject.model.get(key) for subject in subjects]
        if all(value is not None for value in values):
            same = all(value == values[0] for value in values)
            if key == "sha256" or not same:
                return same
    names = {subject.properties.get("network") for subject in subjects}
    # An imported profile knows no model: it goes by the name of its file.
    unknown = any(
        subject.properties.get("network") in (None, "", subject.title) for subject in subjects
    )
    return None if len(names) == 1 or unknown else False


def differences(subjects: Sequence[Subject]) -> list[Difference]:
    """Return the differences of the reports, their settings and their environment."""
    names = _FACTS if same_model(subjects) is False else _FACTS[1:]
    rows = _section("report", [s.properties for s in subjects], names, only=names)
    if same_model(subjects) is False:
        rows[:0] = _section("report", [_model_properties(s) for s in subjects], ())
    settings = [_without_shape_request(subject.settings) for subject in subjects]
    rows += _section("settings", settings, _FIRST_SETTINGS)
    return rows + _section(
        "environment", [flattened(subject.environment) for subject in subjects], _FIRST_ENVIRONMENT
    )


def relevant_differences(subjects: Sequence[Subject]) -> list[Difference]:
    """Return the differences that can make one report faster than another."""
    return [difference for difference in differences(subjects) if difference.name not in _EXTENT]


def _model_properties(subject: Subject) -> Mapping[str, JSON]:
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


def flattened(properties: Mapping[str, JSON], before: str = "") -> dict[str, JSON]:
    """Return nested values with one name each, ``clocks.locked``."""
    items: dict[str, JSON] = {}
    for name, value in properties.items():
        if isinstance(value, dict):
            items |= flattened(value, f"{before}{name}.")
        else:
            items[before + name] = value
    return items


# Unfair comparisons


def fairness_warnings(subjects: Sequence[Subject], base: int = 0) -> list[str]:
    """Return why the reports did not do the same work, the worst first, as visible text."""
    lines = [*_model_lines(subjects), *_shape_lines(subjects, base), *_source_lines(subjects)]
    known = (subject.properties.get("device") for subject in subjects)
    devices = {_text(device) for device in known if device}
    if len(devices) > 1:
        names = ", ".join(_short(name) for name in sorted(devices))
        lines.append(f"Different devices: {names}. Differences are of the device, too.")
    return [*lines, *_clock_lines(subjects)]


def doubts(subjects: Sequence[Subject]) -> list[str]:
    """Return why the figures of a report are not to be trusted, as visible text."""
    return [
        f"{label(index)}: {line}"
        for index, subject in enumerate(subjects)
        for line in _own_lines(subject)
    ]


def _model_lines(subjects: Sequence[Subject]) -> Iterator[str]:
    same = same_model(subjects)
    if same is None:
        yield "Whether the model is the same is not recorded."
    if same is not False:
        return
    names = {_text(subject.properties.get("network")) for subject in subjects}
    if len(names) == 1:
        name = _short(next(iter(names)))
        yield f"The model is not the same: {name} was changed between the reports."
    else:
        listed = ", ".join(_short(name) for name in sorted(names))
        yield f"Different models: {listed}. Only what is in both can be compared."


def _shape_lines(subjects: Sequence[Subject], base: int) -> Iterator[str]:
    prompts = [subject.prompt for subject in subjects]
    if len(set(prompts) - {None}) > 1:
        lengths = " / ".join(map(fmt.count, prompts))
        yield f"Different prompts ({lengths} tokens): the reports did not do the same work."
    shapes = [subject.settings.get("input_shapes") for subject in subjects]
    known = [shape for shape in shapes if isinstance(shape, dict)]
    if len(known) < 2 or all(shape == known[0] for shape in known):
        return
    if any(subject.properties.get(PER_ITEM) for subject in subjects):
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


def _source_lines(subjects: Sequence[Subject]) -> Iterator[str]:
    loops = [bool(subject.latencies_ms) for subject in subjects]
    if any(loops) and not all(loops):
        lacking = [label(index) for index, has_loop in enumerate(loops) if not has_loop]
        verb = "has" if len(lacking) == 1 else "have"
        yield (
            f"{', '.join(lacking)} {verb} no latency loop: end to end is of the profiled"
            " passes, which profiling makes slower."
        )
    lacking = [label(index) for index, s in enumerate(subjects) if lacks_kernels(s)]
    if lacking:
        yield (
            f"{', '.join(lacking)} ran layers on a GPU without recording its kernels: layers are"
            " compared by the time to launch them, not the time to compute them."
        )


def _clock_lines(subjects: Sequence[Subject]) -> Iterator[str]:
    properties = [flattened(subject.environment) for subject in subjects]
    for difference in _section("environment", properties, ()):
        name = difference.name
        is_clock = "clock" in name or "_mhz" in name
        values = " / ".join(_short(value) for value in difference.values)
        if name.endswith("power_mode"):
            yield f"Different power modes: {values}. Differences are of the mode, too."
        elif is_clock or name.endswith(("governor", "boost")):
            yield f"Clocks: {visible(name)} was {values}."


def _own_lines(subject: Subject) -> Iterator[str]:
    if subject.properties.get("status") == "partial":
        yield "the report is partial; its run was stopped or is still going on."
    properties = flattened(subject.environment)
    if busy := busy_text(subject.environment):
        yield f"the machine was busy ({busy})."
    for name, value in properties.items():
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
        kind = subject.properties.get(KIND)
        recorded = f"the layers' {kind}" if isinstance(kind, str) else "averages"
        yield f"only {recorded} over passes are recorded: nothing tells noise from change."
    elif passes < MIN_PASSES:
        noun = "pass" if passes == 1 else "passes"
        yield f"{passes} profiled {noun}: too few to tell noise from change."


def _short(text: str) -> str:
    return clip(visible(text), _TEXT_CELLS, keep="end")
