"""The summary of a report: what was measured, the figure people came for, and where to look.

Pure functions from a report to lines of pieces; :class:`SummaryView` shows them at any width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest

from dld_tui.core import fmt
from dld_tui.core.report.gpu_kernels import GpuSummary
from dld_tui.core.report.groups import is_launched, with_costs
from dld_tui.core.report.layer_table import (
    display_name,
    shared_names,
    short_precision,
    short_provider,
)
from dld_tui.core.report.measured_facts import measured_facts, report_inputs
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from dld_tui.core.report.statistics import TRUSTED_COV_PERCENT, LatencySummary
from dld_tui.core.report.story import Story
from dld_tui.core.report.triage import factor
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
    fitted,
    flow,
    heat,
    histogram,
    hottest,
    width_of,
)
from dld_tui.widgets.lists.styled import layer_style, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.progress import big_digits

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


@dataclass(frozen=True)
class Advice:
    """A line on what to look at first."""

    text: str
    level: str = "info"
    """``info`` or ``warning``."""


def costliest(layers: Sequence[Layer], count: int = _TOP_LAYERS) -> list[Layer]:
    """Return the layers that cost most, with that as their time; those without one left out.

    On a GPU it is the time of their kernels, not of their launch.
    """
    timed = (layer for layer in with_costs(layers) if layer.time_ms)
    return nlargest(count, timed, key=lambda layer: layer.time_ms or 0)


def digits(value: float | None) -> int:
    """Return how many decimals show three significant digits of milliseconds."""
    if not value or value >= 100:
        return 1 if value else 2
    return 2 if value >= 1 else 3 if value >= 0.1 else 4


def when(created: str) -> str:
    """Return an ISO time as people write it, in the zone that it was taken in."""
    try:
        return datetime.fromisoformat(created.replace("Z", "+00:00")).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return visible(created)


def precisions(layers: Sequence[Layer]) -> str:
    """Return the precisions by share of what layers cost, e.g. ``fp32 97 %, int64 3 %``."""
    times: dict[str, float] = {}
    for layer in with_costs(layers):
        if layer.precision and layer.time_ms:
            name = short_precision(layer.precision)
            times[name] = times.get(name, 0.0) + layer.time_ms
    total = sum(times.values())
    if total <= 0:
        return ""
    ordered = sorted(times.items(), key=lambda item: -item[1])
    if len(ordered) == 1 or ordered[0][1] / total >= 0.995:
        return ordered[0][0]
    return ", ".join(f"{name} {100 * time / total:.0f} %" for name, time in ordered[:2])


def input_shapes(settings: Mapping[str, JSON]) -> str:
    """Return the shapes that the inputs had, e.g. ``x 8x3x224x224``; scalars are left out."""
    given = settings.get("input_shapes")
    if not isinstance(given, dict):
        return ""
    shown = []
    for name, dims in given.items():
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
    found = figure_block(latency.median, "median", rate)
    if latency.source == "latency loop":
        return found
    return block([*found.lines, [(f"of {latency.source}", "warn")]])


def figure_block(value: float, title: str, note: str) -> Block:
    """Return the figure people came for, in milliseconds, with what it is at its right."""
    text = f"{value:,.{digits(value)}f}"
    big = big_digits(text) if glyphs.current().name == "unicode" else None
    side: list[Line] = [[("ms", "accent strong")], [(title, "strong")], [(note, "dim")]]
    if big is None:
        return block([[(f"{text} ms", "accent strong"), (f" {title}", "strong")], side[2]])
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
    times = [layer.time_ms for layer in with_costs(layers) if layer.time_ms is not None]
    hot, longest = hottest(times), max(times)
    kinds = min(max(cell_width(visible(layer.type)) for layer in top), max(width // 4, 8))
    ends = shared_names(layers)
    lines: list[Line] = []
    for number, layer in enumerate(top):
        style = HEATS[heat(layer.time_ms, hot)] + ("" if number else " strong")
        share = (layer.time_ms or 0.0) / longest if longest > 0 else 0.0
        time, percent = fmt.milliseconds(layer.time_ms), fmt.percent(layer.percent)
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
    profiled, loop, times = report.profiled_latency, report.latency, report.by_pass
    ms = fmt.milliseconds
    share = None if times is None else times.covered_percent
    if profiled is not None and profiled.median > 0 and share is not None:
        what = "launches" if any(map(is_launched, report.layers)) else "layers"
        line: Line = [(f"{what} sum to ", "dim"), (ms(report.total_ms), ""), (" of ", "dim")]
        line += [(ms(profiled.median), ""), (" ms, ", "dim")]
        line.append((f"{share:.0f} %", "warn" if share < _EXPLAINED_PERCENT else ""))
        line.append((" of each pass", "dim"))
        blocks.append(block([line]))
        if loop is not None and loop.source == "latency loop" and loop.median > 0:
            more = 100 * (profiled.median / loop.median - 1)
            length = "longer" if more >= 0 else "less"
            line = [("the profiled run took ", "dim"), (f"{abs(more):.0f} %", "")]
            line.append((f" {length}", "dim"))
            blocks.append(block([line]))
    if report.has_phases and loop is not None:
        line = [("phases sum to ", "dim"), (ms(report.total_ms), ""), (" of ", "dim")]
        blocks.append(block([[*line, (ms(loop.median), ""), (" ms end to end", "dim")]]))
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
        recorded = [("slowed by records ", "dim"), (factor(gpu.slowed_by), "")]
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


def advice_lines(advice: Sequence[Advice], width: int) -> list[Line]:
    """Return what to look at first, wrapped to `width` cells."""
    if not advice:
        return []
    shown = glyphs.current()
    lines: list[Line] = []
    for item in advice:
        warning = item.level == "warning"
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
    advice: Sequence[Advice],
    width: int,
    gpu: GpuSummary | None = None,
    story: Story | None = None,
) -> list[Line]:
    """Return the whole summary for `width` cells; `gpu` is of the median pass."""
    lines = [*head(report, width), [], *story_lines(story, width)]
    figures = _some(median_block(report.latency), stats_block(report.latency))
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
