"""The panes of a report that are lines of text: summary, charts, environment, one layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.core import fmt
from dld_tui.core.llm.figures import GenerationFigures, generation_of
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report.gpu_kernels import GpuSummary
from dld_tui.core.report.groups import is_launched
from dld_tui.core.report.layer_table import (
    display_name,
    node_names,
    precision_style,
    shapes_text,
    shared_names,
    short_precision,
    short_provider,
)
from dld_tui.core.report.measured_facts import measured_facts, report_inputs
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.report import Report
from dld_tui.core.report.statistics import TRUSTED_COV_PERCENT, LatencySource, LatencySummary
from dld_tui.core.report.story import Story
from dld_tui.core.report.triage import factor
from dld_tui.core.tables.table import MEAN
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.types import JSON
from dld_tui.widgets.charts.bars import (
    ASCII_LEVELS,
    HEATS,
    LEVELS,
    Block,
    Line,
    bar,
    bar_ramp,
    block,
    columns,
    digits,
    fitted,
    flow,
    heat,
    histogram,
    hottest,
    spread,
    width_of,
)
from dld_tui.widgets.charts.plots import ChartView
from dld_tui.widgets.charts.report_charts import (
    BAR_CHARTS,
    CONTEXT_CHART,
    BarRows,
    Chart,
    ChartData,
    ChartRow,
    Run,
    chart_rows,
    drawn,
    line_charts,
    precision_rows,
)
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, layer_style, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.progress import big_digits
from dld_tui.widgets.timeline.cells import time_text

_TOP_LAYERS = 3
_HISTOGRAM_CELLS = 30
_INPUTS = 2
"""Inputs whose shapes are named."""
_WIDE = 150
"""Cells from which everything is in one row of blocks."""
_LEAST_LAYERS = 42
"""Cells that the costliest layers need beside the figures."""
_GAP = 3
_EXPLAINED_PERCENT = 85.0
"""Layers below this share of the whole leave much time between them: dispatch, copies, waiting."""
_JOINED_PERCENT = 95.0
_BUSY_PERCENT = 70.0
"""A GPU that works less than this share of the pass waits for something."""


def costliest(layers: Sequence[Layer], count: int = _TOP_LAYERS) -> list[Layer]:
    """Return the layers that cost most; those that cost nothing are left out."""
    return nlargest(count, (one for one in layers if one.cost_ms), lambda one: one.cost_ms or 0.0)


def when(created: str) -> str:
    """Return an ISO time as people write it, in the zone that it was taken in."""
    try:
        return datetime.fromisoformat(created.replace("Z", "+00:00")).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return visible(created)


def precisions(layers: Sequence[Layer]) -> str:
    """Return the precisions by share of what layers cost, e.g. ``fp32 97 %, int64 3 %``."""
    times: dict[str, float] = {}
    for layer in layers:
        if layer.precision and layer.cost_ms:
            name = short_precision(layer.precision)
            times[name] = times.get(name, 0.0) + layer.cost_ms
    total = sum(times.values())
    if total <= 0:
        return ""
    ordered = sorted(times.items(), key=lambda item: -item[1])
    if len(ordered) == 1 or ordered[0][1] / total >= 0.995:
        return ordered[0][0]
    return ", ".join(f"{name} {100 * time / total:.0f} %" for name, time in ordered[:2])


def input_shapes(settings: Mapping[str, JSON]) -> str:
    """Return the shapes that the inputs had, e.g. ``x 8x3x224x224``; scalars are left out."""
    shapes = settings.get("input_shapes")
    if not isinstance(shapes, dict):
        return ""
    shown = []
    for name, dims in shapes.items():
        if isinstance(dims, list) and dims:
            text = "x".join("?" if dim is None else str(dim) for dim in dims)
            shown.append(f"{clip(visible(str(name)), 20, keep='middle')} {visible(text)}")
    more = f" +{len(shown) - _INPUTS}" if len(shown) > _INPUTS else ""
    return "  ".join(shown[:_INPUTS]) + more


def _has_guesses(report: Report) -> bool:
    return any(report_input.why for report_input in report_inputs(report))


def head(report: Report, width: int) -> list[Line]:
    """Return what was measured, on what and when; loud when the report is partial."""
    passes = report.latency.count if report.latency else 0
    parts = [
        visible(report.backend),
        short_provider(report.execution_provider) if report.execution_provider else "",
        visible(report.device),
        precisions(report.layers),
        input_shapes(report.settings) + (" (guessed)" if _has_guesses(report) else ""),
        f"{fmt.count(passes)} {'pass' if passes == 1 else 'passes'}",
        when(report.created),
    ]
    name = clip(visible(report.network) or "(no name)", max(width // 2, 16), keep="middle")
    lines: list[Line] = [[(name, "strong"), ("  ", "")]]
    if cell_width(name) > 24 and width < 100:
        lines.append([])
    lines = _joined([part for part in parts if part], lines, width)
    if report.status == "partial":
        shown = glyphs.current().warning
        text = "the run was stopped or is still going; figures cover what was measured so far"
        lines.append([(f"{shown} PARTIAL REPORT", "warn strong"), (f"  {text}", "warn")])
    return lines


def _joined(parts: Sequence[str], lines: list[Line], width: int) -> list[Line]:
    """Append parts with dots between them, in as many lines as they need."""
    dot = f" {glyphs.current().dot} "
    fresh = True
    for part in parts:
        between = "" if fresh else dot
        if lines[-1] and width_of(lines[-1]) + cell_width(between + part) > width:
            lines.append([])
            between = ""
        lines[-1].append((between + part, "dim"))
        fresh = False
    return lines


def median_block(latency: LatencySummary | None) -> Block:
    """Return the median latency, three lines high."""
    if latency is None:
        return block([[("no latency was measured", "dim")]])
    rate = f"{latency.throughput:,.{0 if latency.throughput >= 100 else 1}f} inferences/s"
    figure = figure_block(latency.median, "median", rate)
    if latency.source is LatencySource.LOOP:
        return figure
    return block([*figure.lines, [(f"of {latency.source}", "warn")]])


def decoder_blocks(figures: GenerationFigures) -> list[Block]:
    """Return the two figures of a decoder, each three lines high."""
    of = f"prompt {figures.prompt:,}, batch {figures.batch:,}"
    each = f"{fmt.milliseconds(figures.token_ms)} ms each"
    return [
        figure_block(figures.first_token_ms, "to the first token", of),
        _big_block(figures.rate_text, "tokens/s", "after it", each),
    ]


def figure_block(value: float, title: str, note: str) -> Block:
    """Return the figure people came for, in milliseconds, with what it is at its right."""
    return _big_block(f"{value:,.{digits(value)}f}", "ms", title, note)


def _big_block(text: str, unit: str, title: str, note: str) -> Block:
    big = big_digits(text.replace(",", "")) if glyphs.current().name == "unicode" else None
    side: list[Line] = [[(unit, "accent strong")], [(title, "strong")], [(note, "dim")]]
    if big is None:
        return block([[(f"{text} {unit}", "accent strong"), (f" {title}", "strong")], side[2]])
    return block([[(row + "  ", "accent strong"), *side[at]] for at, row in enumerate(big)])


def stats_block(latency: LatencySummary | None) -> Block:
    """Return the figures beside the median, in two columns."""
    if latency is None:
        return block([])
    places = digits(latency.median)

    def number(name: str, value: float) -> Line:
        return [(f"{name:<5}", "dim"), (f"{value:>9,.{places}f}", "")]

    gap = ("   ", "")
    noisy = latency.cov_percent > TRUSTED_COV_PERCENT
    lines = [
        [*number("min", latency.min), gap, *number("p90", latency.p90)],
        [*number("mean", latency.mean), gap, *number("p95", latency.p95)],
        [*number("max", latency.max), gap, *number("p99", latency.p99)],
        [
            *number("std", latency.std),
            gap,
            ("CoV  ", "dim"),
            (f"{latency.cov_percent:>7.1f} %", "warn" if noisy else ""),
        ],
    ]
    return block(lines)


def distribution_block(
    values: Sequence[float], median: float | None, cells: int = _HISTOGRAM_CELLS
) -> Block:
    """Return the distribution of latencies as a small histogram, their median marked."""
    if len(values) < 2:
        return block([])
    shape = histogram(values, cells)
    if shape is None or shape.high <= shape.low:
        return block([])
    plain = glyphs.current().name == "ascii"
    counts = [float(count) if count else None for count in shape.counts]
    rows = columns(counts, 3, ramp=ASCII_LEVELS if plain else LEVELS)
    places = digits(shape.high)
    above = f" +{shape.above:,} above" if shape.above else ""
    low, high = f"{shape.low:.{places}f}", f"{shape.high:.{places}f}{above}"
    scale = low + " " * max(cells - len(low) - len(high), 1) + high
    lines: list[Line] = [_marked(row, shape.bin_of(median) if median else None) for row in rows]
    return block([*lines, [(scale, "dim")]])


def _marked(row: str, at: int | None) -> Line:
    """Return a row of the histogram with the median's column in the colour of the median."""
    if at is None:
        return [(row, "bar")]
    return [(row[:at], "bar"), (row[at : at + 1], "accent"), (row[at + 1 :], "bar")]


def layers_block(layers: Sequence[Layer], width: int = 52, count: int = _TOP_LAYERS) -> Block:
    """Return the costliest layers; the first is the loud one."""
    top = costliest(layers, count)
    if not top:
        return block([[("no layer was measured", "dim")]])
    times = [layer.cost_ms for layer in layers if layer.cost_ms is not None]
    hot, longest = hottest(times), max(times)
    kinds = min(max(cell_width(visible(layer.type)) for layer in top), max(width // 4, 8))
    ends = shared_names(layers)
    lines: list[Line] = []
    for number, layer in enumerate(top):
        style = HEATS[heat(layer.cost_ms, hot)] + ("" if number else " strong")
        share = (layer.cost_ms or 0.0) / longest if longest > 0 else 0.0
        time, percent = fmt.milliseconds(layer.cost_ms), fmt.percent(layer.percent)
        kind = fit(visible(layer.type), kinds, keep="middle")
        room = max(width - 8 - 21 - kinds - 1, 8)
        lines.append(
            [
                (f"{time:>8} ms {percent:>5} % ", style),
                (bar(share, 8, bar_ramp()) + " ", style),
                (kind + " ", layer_style(layer.type)),
                (
                    clip(ends.without(display_name(layer)), room, keep="end"),
                    "" if number else "strong",
                ),
            ]
        )
    return block(lines, width)


def coverage(report: Report, width: int) -> list[Block]:
    """Return how the layers relate to the whole, and how much of them is joined to ONNX nodes.

    Blocks of at most `width` cells.
    """
    blocks: list[Block] = []
    loop, figures, ms = report.latency, report.measurement, fmt.milliseconds
    profiled, share = report.profiled_latency, figures.covered_percent
    if figures.pass_ms is not None and share is not None:
        noun = "launches" if any(map(is_launched, report.layers)) else report.wording.rows
        line: Line = [(f"{noun} sum to ", "dim"), (ms(figures.total_ms), ""), (" of ", "dim")]
        line += [(ms(figures.pass_ms), ""), (" ms, ", "dim")]
        line.append((f"{share:.0f} %", "warn" if share < _EXPLAINED_PERCENT else ""))
        line.append((f" of an undisturbed {report.wording.whole}", "dim"))
        blocks.append(block([line]))
    is_loop = loop is not None and loop.source is LatencySource.LOOP
    if is_loop and loop and profiled and loop.median > 0:
        more = 100 * (profiled.median / loop.median - 1)
        line = [("the profiled run took ", "dim"), (f"{abs(more):.0f} %", "")]
        line.append((f" {'longer' if more >= 0 else 'less'}", "dim"))
        blocks.append(block([line]))
    for fact in measured_facts(report):
        style = "warn" if fact.is_doubtful else ""
        name = f"{fact.name} "
        rows = wrap(fact.short or fact.text, max(width - cell_width(name), 10))
        before = [name, *[" " * cell_width(name)] * (len(rows) - 1)]
        rest = zip(before, rows, strict=True)
        blocks.append(block([[(start, "dim"), (row, style)] for start, row in rest]))
    joined = report.joined_percent
    if joined is not None and not report.model and not any(layer.nodes for layer in report.layers):
        blocks.append(block([[("not joined to ONNX nodes: no model is named", "dim")]]))
    elif joined is not None:
        style = "warn" if joined < _JOINED_PERCENT else ""
        line = [(f"{joined:.0f} %", style), (" of time joined to ONNX nodes", "dim")]
        blocks.append(block([line]))
    return blocks


def gpu_facts(report: Report, gpu: GpuSummary | None, width: int) -> list[Line]:
    """Return how busy the GPU is in a pass, its gaps and copies, and the fallback.

    Gaps only of passes without profiling; and what recording kernels did to these.
    """
    if gpu is None:
        return []
    ms = fmt.milliseconds
    busy: Line = [("GPU busy ", "dim"), (f"{ms(gpu.busy_us / 1000)} ms", "accent")]
    busy.append((f" {gpu.busy_percent:.0f} %", "warn" if gpu.busy_percent < _BUSY_PERCENT else ""))
    gaps: Line = [("launch gaps ", "dim"), (f"{ms(gpu.gaps_us / 1000)} ms", "")]
    if not gpu.true_speed:
        gaps = [("with profiling on", "warn")]
    copies: Line = [("copies ", "dim"), (f"{ms(gpu.copy_us / 1000)} ms", "")]
    if gpu.copied_bytes:
        copies.append((f" {gpu.copied_text}", "dim"))
    kernels: Line = [(f"{gpu.kernels:,}", ""), (" kernels", "dim")]
    fallen = sum(layer.provider == "CPUExecutionProvider" for layer in report.layers)
    fallback: Line = [("on the CPU ", "dim")]
    fallback.append((fmt.plural(fallen, "layer"), "warn") if fallen else ("no layer", ""))
    recorded: Line = []
    if gpu.slowed_by is not None:
        recorded = [("with records ", "dim"), (f"{factor(gpu.slowed_by)} as long", "")]
    lines: list[Line] = [[]]
    for part in (busy, gaps, copies, kernels, recorded, fallback):
        if not part:
            continue
        gap: Line = [(" " * _GAP, "")] if lines[-1] else []
        if lines[-1] and width_of(lines[-1]) + width_of([*gap, *part]) > width:
            lines.append([])
            gap = []
        lines[-1] += [*gap, *part]
    return lines


def advice_lines(advice: Sequence[Note], width: int) -> list[Line]:
    """Return what to look at first, wrapped to `width` cells."""
    if not advice:
        return []
    shown = glyphs.current()
    lines: list[Line] = []
    for item in advice:
        warning = item.kind is NoteKind.WARNING
        mark, style = (shown.warning, "warn") if warning else (shown.info, "info")
        first = True
        for part in wrap(item.text, max(width - 3, 10)):
            lines.append([(f" {mark} " if first else "   ", style), (part, "")])
            first = False
    return lines


def story_lines(story: Story | None, width: int) -> list[Line]:
    """Return what a person would say, and what may help, with the key for it."""
    if story is None or not (story.opening or story.steps):
        return []
    lines: list[Line] = [[(row, "strong")] for row in wrap(story.opening, max(width, 20))]
    for number, step in enumerate(story.steps):
        key = hint("{report.improve}") if not number else " "
        text = f"{key}  {step.text}"
        basis = clip(step.about, max(width - cell_width(text) - 2, 0))
        lines.append([(text, "key"), (f"  {basis}", "dim")])
    return [*lines, []]


def summary_lines(
    report: Report,
    advice: Sequence[Note],
    width: int,
    gpu: GpuSummary | None = None,
    story: Story | None = None,
) -> list[Line]:
    """Return the whole summary for `width` cells; `gpu` is of the median pass."""
    lines = [*head(report, width), [], *story_lines(story, width)]
    made = generation_of(report)
    first = decoder_blocks(made[0]) if made else [median_block(report.latency)]
    figures = _some(*first, stats_block(report.latency))
    median = report.latency.median if report.latency is not None else None
    shape, about = distribution_block(report.latencies, median), coverage(report, width)
    busy = gpu_facts(report, gpu, width)
    used = sum(figure.width + _GAP for figure in figures)
    remarks = advice_lines(advice, width)
    if width >= _WIDE:
        room = width - used - (shape.width + _GAP if shape.lines else 0)
        top = layers_block(report.layers, min(room, 100), _TOP_LAYERS + 1)
        lines += flow([*figures, *_some(shape), top], width)
        lines += [[], *busy, *flow(about, width), *remarks]
    elif width - used >= _LEAST_LAYERS:
        lines += flow([*figures, layers_block(report.layers, width - used, _TOP_LAYERS + 1)], width)
        lines += [
            [],
            *busy,
            *flow(about, width),
            *remarks,
            [],
            *(list(line) for line in shape.lines),
        ]
    else:
        lines += [*flow(figures, width), [], *busy, *([[]] if busy else [])]
        lines += [*(list(line) for line in layers_block(report.layers, min(width, 76)).lines), []]
        below = block([line for part in about for line in part.lines])
        lines += [*flow(_some(shape, below), width), *remarks]
    return [fitted(line, width) for line in lines]


def _some(*blocks: Block) -> list[Block]:
    return [part for part in blocks if part.lines]


_DEVICE = ("gpu", "jetson")
"""What the names of facts about a GPU and its clocks begin with."""
_AFTER = "_after"
"""The end of the name of a state that was taken again after the run."""
_BESIDE = (_AFTER, "_lowest", "_highest")
"""What is shown beside the value that it belongs to."""
_UNITS = (("_mhz", "MHz"), ("_w", "W"), ("_c", "°C"))
_NAME_CELLS = 28


def environment_lines(report: Report, model_problem: str | None) -> list[Line]:
    """Return settings, environment, model and notes as lines of name and value."""
    lines: list[Line] = []
    shown = glyphs.current()
    if report.notes:
        lines.append([("Notes", "strong")])
        for note in report.notes:
            warning = note.kind is NoteKind.WARNING
            mark = shown.warning if warning else shown.info
            lines.append([(f" {mark} ", "warn" if warning else "info"), (visible(note.text), "")])
        lines.append([])
    if model_problem is not None:
        text = f" {shown.warning} {model_problem}; figures are kept, links may be wrong"
        lines += [[(text, "warn")], []]
    device = device_rows(report.environment)
    if device:
        width = min(max(len(name) for name, _, _ in device), _NAME_CELLS)
        lines.append([("GPU, clocks and power", "strong")])
        for name, value, style in device:
            lines.append([(" " + fit(name, width, keep="end") + "  ", "dim"), (value, style)])
        lines.append([])
    measured = measured_facts(report)
    if measured:
        width = min(max(len(fact.name) for fact in measured), _NAME_CELLS)
        lines.append([("Also measured", "strong")])
        for fact in measured:
            style = "warn" if fact.is_doubtful else ""
            lines.append([(" " + fit(fact.name, width) + "  ", "dim"), (fact.text, style)])
        lines.append([])
    rest = {key: value for key, value in report.environment.items() if not _is_device(key)}
    for title, rows in (
        ("Environment", [(_plain(name), text) for name, text in flat(rest)]),
        ("Settings", list(flat(report.settings))),
        ("Model", list(flat(report.model))),
    ):
        if not rows:
            continue
        width = min(max(len(name) for name, _ in rows), _NAME_CELLS)
        lines.append([(title, "strong")])
        for name, value in rows:
            lines.append([(" " + fit(name, width, keep="end") + "  ", "dim"), (value, "")])
        lines.append([])
    return lines[:-1]


def device_rows(facts: Mapping[str, JSON]) -> list[tuple[str, str, str]]:
    """Return (name, value with its unit, style) of the facts about a GPU and its clocks.

    The range of a clock that moved is shown beside its median; and what was taken again after the
    run beside the first value when it differs, in older reports.
    """
    rows = []
    for key, value in facts.items():
        beside = next((key[: -len(end)] for end in _BESIDE if key.endswith(end)), None)
        if not _is_device(key) or beside in facts:
            continue
        text = _measured(key, value)
        lowest, highest = facts.get(f"{key}_lowest"), facts.get(f"{key}_highest")
        if lowest is not None and highest is not None:
            text += f" ({_measured(key, lowest)} to {_measured(key, highest)})"
        after = facts.get(f"{key}{_AFTER}")
        later = text if after is None else _measured(key, after)
        if later != text:
            text = f"{text}, after the run {later}"
        warning = _is_warning(key, value) or (after is not None and _is_warning(key, after))
        rows.append((_device_name(key), text, "warn" if warning else ""))
    return rows


def _is_device(key: str) -> bool:
    return key in _DEVICE or key.startswith(tuple(f"{word}_" for word in _DEVICE))


def _device_name(key: str) -> str:
    name = key.removeprefix("gpu_")
    for ending, _ in (*_UNITS, ("_bytes", "")):
        name = name.removesuffix(ending)
    return visible(name.replace("_", " "))


def _plain(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ").replace("mhz", "MHz")


def _measured(key: str, value: JSON) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if key.endswith("_bytes"):
            return fmt.size(int(value))
        unit = next((unit for ending, unit in _UNITS if key.endswith(ending)), "")
        return f"{value:,.4g} {unit}".rstrip() if value < 1e4 else f"{value:,.0f} {unit}".rstrip()
    return _text(value)


def _is_warning(key: str, value: JSON) -> bool:
    """Return whether a fact makes figures hard to compare: throttling, clocks that float."""
    if "throttling" in key:
        return value not in (None, "none", "", False, [])
    return key.endswith("clocks_locked") and value is False


def flat(facts: Mapping[str, JSON], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested facts as (name, text) with visible text; lists on one line."""
    rows: list[tuple[str, str]] = []
    for name, value in facts.items():
        label = f"{prefix}{visible(str(name))}"
        if isinstance(value, dict) and value:
            rows += flat(value, f"{label}.")
        else:
            is_size = str(name).endswith("_bytes") and isinstance(value, int)
            rows.append((label, _measured(name, value) if is_size else _text(value)))
    return rows


def _text(value: JSON) -> str:
    if value is None or value == {}:
        return fmt.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value) or fmt.UNKNOWN
    return visible(str(value))


_LEAST_FOR_BOTH = 10
"""Rows from which two charts are shown."""


class LaidOutView(LineView):
    """Lines that are laid out for the width, and again for another width or set of glyphs."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, gutter=False, classes="frame")

    def laid_out(self, width: int) -> Sequence[Line] | None:
        """Return the lines for a width; None while there is nothing to show."""
        raise NotImplementedError

    def draw(self) -> None:
        """Lay the lines out."""
        lines = self.laid_out(self.size.width - 2) if self.size.width > 4 else None
        if lines is not None:
            self.set_lines(ListSource([[(" ", ""), *line] for line in lines]), keep=False)

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self.draw()

    def notify_style_update(self) -> None:
        """Draw again when the glyph set changes with the theme."""
        super().notify_style_update()
        if self.is_mounted:
            self.draw()


class SummaryView(LaidOutView):
    """What was measured, the median, the costliest layers, what to look at first."""

    HELP = (
        "Latency (measured without profiling), the costliest layers, and advice. Profiling slows a "
        "run down, so layers are measured in separate passes."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.report: Report | None = None
        self.advice: Sequence[Note] = ()
        self.gpu: GpuSummary | None = None
        self.story: Story | None = None

    def set_report(
        self,
        report: Report,
        advice: Sequence[Note],
        gpu: GpuSummary | None = None,
        story: Story | None = None,
    ) -> None:
        """Show a report's summary; `gpu` is of its median pass."""
        self.report, self.advice, self.gpu, self.story = report, advice, gpu, story
        shared = shared_names(report.layers).gapped
        self.frame.show(f"Summary · {shared}" if shared else "Summary", "{report.card} share")
        self.draw()

    def laid_out(self, width: int) -> Sequence[Line] | None:
        if self.report is None:
            return None
        return summary_lines(self.report, self.advice, width, self.gpu, self.story)


def passes_lines(values: Sequence[float], width: int, rows: int) -> list[Line]:
    """Return latencies in order of the passes as a column chart, with its scale at the right."""
    if not values or width < 16:
        return []
    plain = glyphs.current().name == "ascii"
    low, high = min(values), max(values)
    places = digits(high)
    scale = [f"{high:,.{places}f}", *[""] * (rows - 2), f"{low:,.{places}f}"][:rows]
    room = width - max(len(text) for text in scale) - 2
    chart = columns(spread(values, room), rows, low=low, ramp=ASCII_LEVELS if plain else LEVELS)
    lines: list[Line] = []
    for text, label in zip(chart, scale, strict=True):
        lines.append([(fit(text, room), "bar"), (" " + label, "dim")])
    return lines


class BarChart(ChartView):
    """Bars that can be walked through, or a chart between axes with a cursor on what it shows."""

    HELP = (
        "{report.chart} shows the next chart: time by layer type, precisions, latency over the "
        "passes and its distribution, time against output size, roofline. {report.unit} switches "
        "between milliseconds and percent; {list.activate} shows the layers of the type. In a "
        "scatter chart, {list.right} and {list.left} go to the next and previous dot, and "
        "{list.activate} shows its layer or pass."
    )


class PassesChart(Rows):
    """Latency over the passes, with the least and the largest value at the right."""

    ROWS: ClassVar[int] = 4

    def __init__(self) -> None:
        super().__init__()
        self.values: Sequence[float] = ()
        self.title = ""

    def set_values(self, values: Sequence[float], title: str) -> None:
        """Show latencies in milliseconds, in order."""
        self.values, self.title = values, title
        self.refresh(layout=True)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the chart for a width in cells."""
        lines = passes_lines(self.values, width - 2, self.ROWS - 1)
        return [[(" " + self.title, "dim")], *([(" ", ""), *line] for line in lines)]


class ChartPane(Framed, Vertical):
    """The charts of a report, one at a time, and latency over the passes."""

    @dataclass
    class TypeChosen(Message):
        """Enter on the bar of a layer type."""

        type: str

    @dataclass
    class LayerChosen(Message):
        """Enter on the dot of a layer."""

        index: int

    @dataclass
    class PassChosen(Message):
        """Enter on a run that is a pass of the report."""

        index: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.percent = False
        self.charts = self.line_charts()
        self.titles = BAR_CHARTS | {name: chart.title for name, chart in self.charts.items()}
        """Of the charts by id, in their order."""
        self.chart = next(iter(self.titles))
        self._groups: Sequence[Group] = ()
        self._layers: Sequence[Layer] = ()
        self._latencies: Sequence[float] = ()
        self._rows: Sequence[ChartRow] = ()
        self._passes: Sequence[int] = ()
        self._generation: Sequence[GenerationFigures] = ()

    def line_charts(self) -> dict[str, Chart]:
        """Return the charts without bars by id."""
        return line_charts()

    def compose(self) -> ComposeResult:
        """Lay out the two charts."""
        yield BarChart(empty="No layer was measured in this report.", id="type-chart")
        yield PassesChart()

    def set_report(self, report: Report, types: Sequence[Group]) -> None:
        """Show the charts of a report; `types` are its layers grouped by type."""
        values = report.latencies
        title = "latency over the inferences, ms"
        if not values:
            values = tuple(run.duration_us / 1000 for run in report.passes)
            self._passes = tuple(run.index for run in report.passes)
            title = "latency over the profiled passes, ms"
        self._generation = generation_of(report)
        if self._generation:
            self.charts[CONTEXT_CHART.id] = CONTEXT_CHART
            self.titles[CONTEXT_CHART.id] = CONTEXT_CHART.title
        self.set_layers(report.layers, types, values, title)

    def set_layers(
        self, layers: Sequence[Layer], types: Sequence[Group], latencies: Sequence[float],
        title: str,
    ) -> None:  # fmt: skip
        """Show the charts of layers, and latencies of whole runs in milliseconds, in order.

        Args:
            layers: The layers.
            types: The layers grouped by type.
            latencies: Of the runs; empty when they are not known.
            title: What the latencies are.
        """
        self._groups, self._layers = types, layers
        self._latencies = latencies
        self.query_one(PassesChart).set_values(latencies, title)
        self.on_resize()
        self._draw()

    def toggle_unit(self) -> None:
        """Switch between milliseconds and percent."""
        self.percent = not self.percent
        self._draw()

    def next_chart(self) -> None:
        """Show the next chart."""
        order = [*self.titles]
        self.chart = order[(order.index(self.chart) + 1) % len(order)]
        self._draw()
        self.query_one(BarChart).cursor = 0

    def on_resize(self) -> None:
        """Draw for the new size; latency over the passes only where there is room for both."""
        room = self.size.height >= _LEAST_FOR_BOTH
        self.query_one(PassesChart).display = room and len(self._latencies) > 1

    def _draw(self) -> None:
        view = self.query_one(BarChart)
        self._rows = ()
        if self.chart in ("type", "precision"):
            self._rows = (
                chart_rows(self._groups, self.percent)
                if self.chart == "type"
                else precision_rows(self._layers, self.percent)
            )
            view.show_bars(BarRows(self._rows))
        else:
            chart = self.charts[self.chart]
            view.show_chart(chart.id, lambda width, height: drawn(chart, self.data(width, height)))
        keys = "{report.chart} next chart"
        if self._rows:
            keys += f"  {{report.unit}} {'ms' if self.percent else 'percent'}"
        self.frame.show(self.titles[self.chart], keys)

    def data(self, width: int, height: int) -> ChartData:
        """Return what the charts are drawn of."""
        return ChartData(
            self._layers, self._latencies, width, height, self._passes, self._generation
        )

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Say which type, layer or pass was chosen."""
        event.stop()
        if isinstance(event.key, Run):
            self.post_message(self.PassChosen(event.key.index))
        elif isinstance(event.key, int):
            self.post_message(self.LayerChosen(event.key))
        elif event.index < len(self._rows):
            self.post_message(self.TypeChosen(self._rows[event.index].key))

    def on_line_view_cursor_moved(self, event: events.Event) -> None:
        """Keep the bars' cursor to this pane."""
        event.stop()


class EnvironmentView(LineView):
    """Settings, environment, model and remarks of a run."""

    HELP = "Settings of the run and the state of the machine: versions, clocks, power mode."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            empty="The file does not record its settings and environment.",
            classes="frame",
        )

    def set_report(self, report: Report, model_problem: str | None) -> None:
        """Show what a report says about its run."""
        self.frame.show("Environment and settings")
        self.set_lines(ListSource(environment_lines(report, model_problem)), keep=False)


def layer_lines(layer: Layer, start_us: float, self_us: float, width: int) -> list[Line]:
    """Return lines about a layer, the most telling first.

    Args:
        layer: The layer.
        start_us: When the span under the cursor began, since the start of the pass.
        self_us: What it took itself.
        width: Cells.
    """
    # Its part is of what layers cost: on a GPU of the kernels, and not of what launches them.
    on_gpu = layer.gpu_time_ms is not None
    time = fmt.milliseconds(layer.gpu_time_ms if on_gpu else layer.time_ms)
    figures = f"{time} ms{' GPU' if on_gpu else ''}  {fmt.percent(layer.percent)} %"
    kind = clip(visible(layer.type), 24, keep="middle")
    room = max(width - cell_width(figures) - cell_width(kind) - 8, 8)
    name = clip(visible(layer.name), room, keep="end")
    first: Line = [
        (f" {glyphs.current().cursor} ", "accent"),
        (name, "strong"),
        ("  ", ""),
        (kind, layer_style(layer.type)),
        ("  ", ""),
        (figures, "number"),
    ]
    second: Line = [
        ("   at ", "dim"),
        (time_text(start_us), ""),
        (" for ", "dim"),
        (time_text(self_us), "number"),
        ("  min ", "dim"),
        (fmt.milliseconds(layer.min_ms), ""),
        ("  max ", "dim"),
        (fmt.milliseconds(layer.max_ms), ""),
        ("  runs ", "dim"),
        (MEAN.shown(layer.count), ""),
        ("  ", ""),
        (short_provider(layer.provider), "dim"),
        ("  ", ""),
        (short_precision(layer.precision), precision_style(layer.precision)),
    ]
    third: Line = [("   ONNX ", "dim"), (node_names(layer), "link")]
    fourth: Line = [("   in  ", "dim"), (visible(shapes_text(layer.input_dims)) or fmt.UNKNOWN, "")]
    fifth: Line = [("   out ", "dim"), (visible(shapes_text(layer.output_dims)) or fmt.UNKNOWN, "")]
    return [first, second, third, fourth, fifth]
