"""What was found in an engine: one line each, the costliest first; Enter goes to the layer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from dld_tui.core import fmt
from dld_tui.core.plan.lint import PlanFinding
from dld_tui.core.plan.model import EngineLayer
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.explorer.findings import level_glyph
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.shell.frame import Frame

_STYLES = {"warning": "warn", "note": "info"}
_NAME_SHARE = 0.35
_NAME_FROM = 96
"""Rows of so many cells name the layer, shorter ones where the finding leaves room."""
_LEAST_NAME = 14


class FindingRows:
    """Findings as the lines of a view."""

    def __init__(self, findings: Sequence[PlanFinding], layers: Mapping[int, EngineLayer]) -> None:
        self.findings = findings
        self._layers = layers
        self._has_percent = any(finding.percent is not None for finding in findings)

    def __len__(self) -> int:
        return len(self.findings)

    def key(self, index: int) -> Hashable:
        """Return the place of the finding."""
        return index

    def _name(self, finding: PlanFinding) -> str:
        index = finding.layer if finding.layer is not None else next(iter(finding.layers), -1)
        layer = self._layers.get(index)
        if layer is None:
            return "the whole engine"
        more = len(finding.layers) - 1 if finding.layer is None else 0
        return visible(layer.name) + (f" and {more:,} more" if more > 0 else "")

    def text(self, index: int) -> str:
        """Return what search and copy see."""
        finding = self.findings[index]
        parts = (finding.rule, self._name(finding), finding.hazard, finding.mitigation)
        return "\t".join(visible(part) for part in parts)

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return one row."""
        finding = self.findings[index]
        style = _STYLES.get(finding.level, "info")
        pieces: list[Piece] = [(f"{level_glyph(finding.level)} ", style)]
        if self._has_percent:
            share = "" if finding.percent is None else f"{fmt.percent(finding.percent)} %"
            pieces.append((f"{share:>7}  ", "number"))
        room = width - sum(cell_width(text) for text, _ in pieces)
        named = int(room * _NAME_SHARE) if width >= _NAME_FROM else 0
        whole = visible(finding.hazard)
        if not named and room - cell_width(whole) >= _LEAST_NAME:
            named = room - cell_width(whole) - 2  # what a short finding leaves
        hazard = clip(whole, room - named - (2 if named else 0))
        pieces.append((hazard, ""))
        if named:
            gap = room - named - cell_width(hazard)
            pieces.append((" " * gap, ""))
            pieces.append((clip(self._name(finding), named, keep="end"), "link"))
        return pieces


class PlanFindings(Frame, LineView):
    """The findings of an engine."""

    HELP = (
        "What may cost time in this engine, the costliest first: the layer, what is wrong with it "
        "and, in the details, what to do. {list.activate} goes to the layer."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, empty="Nothing was found that costs time.", classes="frame")
        self.findings: Sequence[PlanFinding] = ()

    def show(self, findings: Sequence[PlanFinding], layers: Mapping[int, EngineLayer]) -> None:
        """Show findings; `layers` are by their own index."""
        self.findings = findings
        counts = [
            fmt.plural(sum(finding.level == level for finding in findings), word)
            for level, word in (("warning", "warning"), ("note", "note"))
            if any(finding.level == level for finding in findings)
        ]
        title = f"Findings · {', '.join(counts)}" if counts else "Findings"
        self.frame(title, "{list.activate} layer" if findings else "")
        self.set_lines(FindingRows(findings, layers), keep=False)

    def finding_at_cursor(self) -> PlanFinding | None:
        """Return the finding under the cursor."""
        return self.findings[self.cursor] if self.cursor < len(self.findings) else None
