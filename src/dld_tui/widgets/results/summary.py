"""The first pane of a report, an answer: what it takes, where the time goes, what may help."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.reading.first_lines import (
    beside_layers,
    between,
    costly_types,
    doubts,
    median_title,
    rate_text,
    shapes_text,
    spread,
)
from dld_tui.core.reading.story import NextStep
from dld_tui.core.report.generation import generation_of
from dld_tui.core.report.groups import are_launches, costliest
from dld_tui.core.report.layer_table import layer_names
from dld_tui.core.report.layer_table import shapes_text as dims_text
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import LAYERS_ONLY, Report
from dld_tui.core.report.triage import passes_text
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import cut_names
from dld_tui.widgets.charts.bars import (
    HEATS,
    Block,
    Line,
    bar,
    bar_ramp,
    block,
    fitted,
    flow,
    heat,
    hottest,
    width_of,
)
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, layer_style, wrap
from dld_tui.widgets.results.report_views import (
    decoder_blocks,
    distribution_block,
    figure_block,
)
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.frame import Framed

_GAP = 3
_BESIDE = 104
"""Cells from which the advice is beside the answer, not below it."""
_HISTOGRAM = (32, 24, 16)
"""Cells of the histogram, as far as there is room."""
_MOST_TYPES = 12
_MOST_ADVICE = 4
"""Rows of advice that the answer leaves, where there is so much of it."""
_ABOUT = 2
"""Rows that say more of the advice at the cursor, where there are enough."""
_LOW = 13
"""Rows below which they are not."""


def figure_lines(report: Report, width: int) -> list[Line]:
    """Return the big figures, and beside them their distribution, spread and inputs."""
    latency = report.latency
    generation = generation_of(report)
    if generation:
        blocks = decoder_blocks(generation[0])
    elif report.properties.get(LAYERS_ONLY):
        blocks = [figure_block(report.measurement.total_ms, "sum of the layers", "")]
    elif latency is None:
        return [[("no latency was measured", "dim")]]
    else:
        rate = rate_text(latency) if latency.throughput else ""
        blocks = [figure_block(latency.median, median_title(latency), rate)]
    about: list[Line] = []
    if generation and generation[0].repeats_ms:
        first, rate = map(between, (generation[0].first_tokens_ms, generation[0].rates))
        about = [[(f"first token{first} ms  tokens/s{rate}", "")]]
    if latency is not None and not generation:
        about = [[("  ".join(spread(latency)), "")]] if latency.count > 1 else []
        about.append([(passes_text(report, latency.count), "dim")])
    if shapes := shapes_text(report):
        about.append([(shapes, "dim")])
    below: list[Line] = []
    if about and _width([*blocks, block(about)]) <= width:
        blocks.append(block(about))
    elif about:
        below = [[piece for line in about for piece in (*line, ("  ", ""))]]
    median = latency.median if latency is not None and not generation else None
    for cells in _HISTOGRAM:
        shape = distribution_block(report.latency_samples, median, cells, 2)
        if median is not None and shape.lines and _width([*blocks, shape]) <= width:
            blocks[1:1] = [shape]
            break
    return [fitted(line, width) for line in (*flow(blocks, width, _GAP), *below)]


def _width(blocks: Sequence[Block]) -> int:
    return sum(one.width + _GAP for one in blocks) - _GAP


def doubt_lines(report: Report, width: int, most: int) -> list[Line]:
    """Return what speaks against the figures: as many sentences as fit in so many rows."""
    sentences = [text for group in doubts(report) for text in group]
    rows: list[str] = []
    for count in range(len(sentences), 0, -1):
        text = " ".join(sentences[:count])
        if count < len(sentences):
            text += hint(f" {glyphs.current().ellipsis} {{report.pane.5}} tells more")
        rows = wrap(text, max(width - 2, 10))
        if len(rows) <= most:
            break
    marks = [f"{glyphs.current().warning} ", *["  "] * len(rows)]
    return [[(mark, "warn"), (row, "warn")] for mark, row in zip(marks, rows[:most], strict=False)]


def share_lines(report: Report, width: int, most: int) -> list[Line]:
    """Return the types of layers as bars of one scale, in at most so many rows."""
    for count in range(_MOST_TYPES, 0, -1):
        lines = _shares(report, width, count)
        if len(lines) <= most:
            return lines
    return _shares(report, width, 1)[:most]


def _shares(report: Report, width: int, count: int) -> list[Line]:
    types, rest = costly_types(report, count)
    if not types:
        return []
    scale = max(width - cell_width(visible(types[0].key)) - 18, 8)
    lines: list[Line] = []
    for number, group in enumerate(types):
        name, style = clip(visible(group.key), max(width // 3, 8)), layer_style(group.key)
        length = bar(group.percent / 100, scale, bar_ramp()).rstrip()
        times = f" ×{group.count:,}" if group.count > 1 and not number else ""
        text = f" {fmt.percent(group.percent)} %{times}"
        item: Line = [(f"{name} ", style), (length, style), (text, "" if number else "strong")]
        _put(lines, item, width, fresh=number < 2)
    if rest:
        _put(lines, [(f"others {fmt.percent(rest)} %", "dim")], width, fresh=len(types) == 1)
    if around := beside_layers(report):
        _put(lines, [(around, "dim")], width, fresh=len(types) == 1 and not rest)
    return lines


def _put(lines: list[Line], item: Line, width: int, *, fresh: bool) -> None:
    """Append an item to the last row, or to a new one."""
    if fresh or width_of(lines[-1]) + _GAP + width_of(item) > width:
        lines.append(item)
    else:
        lines[-1] += [(" " * _GAP, ""), *item]


def slowest_lines(layers: Sequence[Layer], width: int, count: int) -> list[Line]:
    """Return the layers that cost most: names are cut last, and where they are equal."""
    top = costliest(layers, count)
    hot = hottest(layer.cost_ms for layer in layers if layer.cost_ms is not None)
    names = layer_names(top, layers)
    room = min(max(map(cell_width, names), default=0), max(width - _FIGURES, 8))
    about = [[visible(layer.type), dims_text(layer.output_dims)] for layer in top]
    cells = [max(map(cell_width, texts)) for texts in zip(*about, strict=True)]
    while cells and sum(cells) + 2 * len(cells) > width - room - _FIGURES:
        del cells[-1]  # the type says more
    lines: list[Line] = []
    for number, (layer, name) in enumerate(zip(top, cut_names(names, room), strict=True), 1):
        figures = f"{fmt.three_digits(layer.cost_ms):>7} ms {fmt.percent(layer.percent):>5} %"
        lines.append([
            (f"{number} ", "dim"),
            (fit(name, room), "strong" if number == 1 else ""),
            (f" {figures}", HEATS[heat(layer.cost_ms, hot)]),
        ])  # fmt: skip
        styles = (layer_style(layer.type), "dim")
        for text, size, style in zip(about[number - 1], cells, styles, strict=False):
            lines[-1] += [("  ", ""), (fit(text, size), style)]
    return lines


_FIGURES = 21
"""Cells of the rank of a layer, its time and its share."""
_LABEL = "slowest  "
_FEW_ROWS = 5
"""Rows in which there is no room for single layers, too: these are seen in another pane then."""


def answer_lines(report: Report, width: int, room: int) -> list[Line]:
    """Return the answer for `width` cells in at most `room` rows, the most telling first."""
    lines = figure_lines(report, width)
    lines += doubt_lines(report, width, 2 if room >= len(lines) + 6 else 1)
    if not report.layers:
        return [*lines, [("no layer was measured", "dim")]][:room]
    gap: list[Line] = [[]] if room - len(lines) > 2 else []
    left = room - len(lines) - len(gap)
    shares = share_lines(report, width, 2 if left > _FEW_ROWS else left)
    lines += [*gap, *shares] if shares else []
    left = min(room - len(lines) - 1, 5)
    if left >= 2 and not are_launches(report.layers):
        slowest = slowest_lines(report.layers, width - len(_LABEL), left)
        blank = " " * len(_LABEL)
        labelled = ([(blank if at else _LABEL, "dim"), *line] for at, line in enumerate(slowest))
        lines += [[], *labelled]
    return [fitted(line, width) for line in lines[:room]]


class AnswerText(Rows):
    """The answer; as many rows as there is room for."""

    report: Report | None = None
    room = 0

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the rows for a width in cells."""
        if self.report is None or width < 8:
            return ()
        return answer_lines(self.report, width, self.room)


class AdviceView(LineView):
    """What may help, one row each; Enter tries it."""

    SCOPE = "advice"
    COMMAND_TABLE = table(
        "advice",
        ("advice.try", "activate", "enter", "", "try it",
         "Try the advice at the cursor: measure it, or show it in the model first."),
        footer="advice.try",
    )  # fmt: skip
    HELP = (
        "Changes that may reduce the latency, what they can bring at most and what they brought "
        "other models. {advice.try} measures the change, which is kept only if it is significantly "
        "faster, or shows it in the model first."
    )
    _names = 0
    """Cells of the longest name."""

    def set_steps(self, steps: Sequence[NextStep]) -> None:
        """Show the advice of a report."""
        names = max((cell_width(step.text) for step in steps), default=0)
        rows: list[Line] = [
            [(fit(step.text, names), "strong"), (f"  {step.speedup_text or step.basis}", "dim")]
            for step in steps
        ]
        self._names = names
        self.set_lines(ListSource(rows, [*range(len(steps))]), keep=False)

    def shows_all(self, text: str) -> bool:
        """Return whether there is room for a text beside the names."""
        return self._names + 3 + cell_width(text) <= self.view_size.width


class AdviceAbout(Rows):
    """Why the advice at the cursor may help, and how much."""

    text = ""

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the text in rows of a width in cells."""
        return [[("  ", ""), (row, "dim")] for row in wrap(self.text, max(width - 2, 10))[:_ABOUT]]


class SummaryPane(Framed, Container):
    """The answer and the advice, below each other or side by side."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.steps: Sequence[NextStep] = ()

    def compose(self) -> ComposeResult:
        """Lay out the answer, and the advice with its title."""
        yield AnswerText(id="answer")
        with Container(id="what-helps"):
            yield Rows([[("what may help", "dim")]])
            yield AdviceView(empty="Nothing to suggest from these figures", id="advice")
            yield AdviceAbout()

    def set_report(self, report: Report, steps: Sequence[NextStep]) -> None:
        """Show a report and what may help."""
        self.frame.show("Summary", "{report.compare} compare  {report.card} share")
        self.query_one(AnswerText).report = report
        self.query_one(AdviceView).set_steps(steps)
        self.steps = steps
        self.on_resize()

    @on(LineView.CursorMoved)
    def _tell(self) -> None:
        view, about = self.query_one(AdviceView), self.query_one(AdviceAbout)
        step = self.steps[view.cursor] if self.steps else None
        is_told = step is None or (not step.speedup_text and view.shows_all(step.basis))
        about.text = "" if step is None or is_told else step.about
        about.refresh(layout=True)

    def on_resize(self) -> None:
        """Give the answer the room that the advice leaves."""
        width, height = self.content_size
        answer, is_beside = self.query_one(AnswerText), width >= _BESIDE
        is_low = height < _LOW and not is_beside
        below = 1 if is_low else 2 + _ABOUT  # the title, a blank row, and what is said of a row
        advice = len(self.query_one(AdviceView).lines)
        advice = min(max(advice, 1), _MOST_ADVICE // 2 if is_low else _MOST_ADVICE)
        answer.room = height if is_beside else max(height - advice - below, 3)
        self.set_class(is_low, "-low")
        self.set_class(is_beside, "-beside")
        answer.refresh(layout=True)
        self._tell()
