"""A log of trtexec as lines: its summary, and the log itself with what went wrong marked."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from dld_tui.core import fmt
from dld_tui.core.plan.file_set import device_name, device_of
from dld_tui.core.plan.trtexec_log import TrtexecLog, summary_doubts
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.core.types import JSON
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import wrap
from dld_tui.widgets.shell import glyphs

_LEVEL = re.compile(r"\[([WEF])\] ")
_HEAD = 120
"""Characters of a line in which its level stands."""
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_SHOWN = 2_000
"""Characters of a line that are shown."""
_MESSAGES = 4
_TIMES = ("Throughput", "Latency", "GPU Compute Time", "Enqueue Time", "H2D Latency", "D2H Latency")
_MEDIAN = 3
"""Place of the median among the figures of a time: min, max, mean, median, percentiles."""


def level_of(line: str) -> str:
    """Return ``warn`` or ``bad`` for a warning or an error; empty for other lines."""
    found = _LEVEL.search(line, 0, _HEAD)
    if found is None:
        return ""
    return "warn" if found[1] == "W" else "bad"


class LogRows:
    """The lines of a log; only those that are seen are made ready to be shown."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.content_width = min(max((len(line) for line in lines), default=0), _SHOWN) + 2

    def __len__(self) -> int:
        return len(self.lines)

    def key(self, index: int) -> Hashable:
        """Return the place of the line."""
        return index

    def text(self, index: int) -> str:
        """Return the line without colours."""
        return visible(_ESCAPE.sub("", self.lines[index]))

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return one line."""
        text = clip(visible(_ESCAPE.sub("", self.lines[index][:_SHOWN])), width)
        return [(text, level_of(self.lines[index]) or ("strong" if "=== " in text else ""))]


def summary_lines(log: TrtexecLog, width: int) -> list[Line]:
    """Return the log in short for `width` cells."""
    shown = glyphs.current()
    good = log.status == "PASSED"
    head: Line = [(log.status or "NO RESULT", "good strong" if good else "bad strong")]
    device = visible(device_name(device_of(log.metadata)))
    version = f"TensorRT {visible(log.version)}" if log.version else ""
    runs = f"the last of {log.runs} runs" if log.runs > 1 else ""
    for part in filter(None, (version, device, runs)):
        head.append((f" {shown.dot} {part}", "dim"))
    lines: list[Line] = [head]
    for number, part in enumerate(wrap(visible(log.command), width - 2)):
        lines.append([("$ " if number == 0 else "  ", "key"), (part, "")])
    lines += _times(log, width)
    facts = [f"{visible(name)} {visible(value)}" for name, value in log.facts.items()]
    if facts:
        lines.append([(clip(f" {shown.dot} ".join(facts), width), "dim")])
    doubts = [*log.doubts, *summary_doubts(_summary_of(log), log.percentiles)]
    lines += [[(clip(visible(text), width), "warn")] for text in doubts]
    lines += _messages(log.errors, "error", "bad", shown.error, width)
    lines += _messages(log.warnings, "warning", "warn", shown.warning, width)
    return lines


def _summary_of(log: TrtexecLog) -> dict[str, JSON]:
    """Return the performance summary of a log; empty without one."""
    return log.sections.get("performance_summary", {})


def _times(log: TrtexecLog, width: int) -> list[Line]:
    """Return the figures of the performance summary, as many a row as fit."""
    summary = _summary_of(log)
    rows: list[Line] = [[]]
    used = 0
    for name in _TIMES:
        if name not in summary:
            continue
        text = _figure(name, summary[name])
        cells = len(name) + cell_width(text) + 4
        if used and used + cells > width:
            rows.append([])
            used = 0
        rows[-1] += [(f"{name} ", "dim"), (f"{text}   ", "number")]
        used += cells
    return [row for row in rows if row]


def _figure(name: str, value: JSON) -> str:
    if isinstance(value, (int, float)):
        return f"{value:,.1f} qps" if name == "Throughput" else fmt.milliseconds(value)
    if isinstance(value, list) and len(value) > _MEDIAN:
        found = value[_MEDIAN]
        return f"{fmt.milliseconds(found)} ms" if isinstance(found, (int, float)) else fmt.UNKNOWN
    return fmt.UNKNOWN


def _messages(
    found: Sequence[str], noun: str, style: str, glyph: str, width: int
) -> list[Line]:  # fmt: skip
    if not found:
        return []
    lines: list[Line] = [[(f"{glyph} {fmt.plural(len(found), noun)}", style)]]
    lines += [[("  ", ""), (clip(visible(text), width - 2), "")] for text in found[:_MESSAGES]]
    return lines
