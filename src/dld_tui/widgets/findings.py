"""The findings pane: what is wrong or odd in the model, one line each; Enter goes there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.core.checks.findings import Finding
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.operator_style import operator_style
from dld_tui.widgets.parameter_links import place_text
from dld_tui.widgets.styled import Rows

_STYLES = {"error": "bad", "warning": "warn", "info": "info"}
_NODE_CELLS = 34


def level_glyph(level: str) -> str:
    """Return the glyph of ``error``, ``warning`` or ``info``."""
    shown = glyphs.current()
    return {"error": shown.error, "warning": shown.warning}.get(level, shown.info)


def summary_text(findings: Sequence[Finding]) -> str:
    """Return for example ``1 error  2 warnings``; empty when there are none."""
    counts = Counter[str](finding.level for finding in findings)
    words = {"error": "error", "warning": "warning", "info": "remark"}
    return "  ".join(
        f"{counts[level]} {word}{'' if counts[level] == 1 else 's'}"
        for level, word in words.items()
        if counts[level]
    )


class NoticeLine(Rows):
    """The worst finding in one row, for screens with no room for the pane."""

    def show(self, findings: Sequence[Finding]) -> None:
        """Show the first of findings that are sorted by their level."""
        if not findings:
            self.set_rows([[]])
            return
        worst = findings[0]
        row: list[Piece] = [
            (f" {level_glyph(worst.level)} {summary_text(findings)}  ", _STYLES[worst.level]),
            (visible(worst.message), ""),
        ]
        self.set_rows([row])


class FindingsList(LineView):
    """The rows."""

    HELP = "What is wrong or odd in the model. Enter goes to the node."


class FindingLines:
    """The line source."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = findings

    def __len__(self) -> int:
        return len(self.findings)

    def key(self, index: int) -> Hashable:
        """Return the finding's place in the list."""
        return index

    def text(self, index: int) -> str:
        """Return all that the row says."""
        return " ".join(text for text, _ in self.line(index, 400)).strip()

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return one row: level, node, what is wrong, where."""
        finding = self.findings[index]
        pieces: list[Piece] = [(level_glyph(finding.level) + " ", _STYLES[finding.level])]
        room = width - 2
        node = finding.node
        if node is not None and width > 60:
            label = visible(node.name or next(filter(None, node.outputs), ""))
            kind = clip(visible(node.op_type), 16)
            cells = _NODE_CELLS - cell_width(kind) - 1
            pieces.append((kind + " ", operator_style(node.op_type, node.domain)))
            pieces.append((fit(label, cells, keep="middle") + " ", ""))
            room -= _NODE_CELLS + 1
        place = ""
        if finding.scope is not None and finding.scope.parent is not None:
            place = clip(place_text(finding.scope), room // 3, keep="end")
        text = fit(visible(finding.message), room - cell_width(place) - bool(place))
        pieces.append((text, "" if finding.level != "info" else "info"))
        if place:
            pieces.append((" " + place, "dim"))
        return pieces


class Findings(Frame, Vertical):
    """The pane."""

    @dataclass
    class Chosen(Message):
        """Enter on a finding."""

        finding: Finding

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.findings: list[Finding] = []
        self.list = FindingsList(empty="Nothing was found.", id="findings-list")

    def compose(self) -> ComposeResult:
        """Lay out the list."""
        yield self.list

    def show(self, findings: Sequence[Finding], *, state: str) -> None:
        """Show findings; `state` says how current they are."""
        self.findings = list(findings)
        self.list.set_lines(FindingLines(self.findings))
        summary = summary_text(self.findings)
        self.frame("Findings", "   ".join(filter(None, (summary, state))))

    @on(LineView.CursorMoved)
    def cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Keep the list's message inside."""
        event.stop()

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Say which finding was chosen."""
        event.stop()
        self.post_message(self.Chosen(self.findings[event.index]))
