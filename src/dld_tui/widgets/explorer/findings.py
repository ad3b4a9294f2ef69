"""The findings pane: what is wrong or odd in the model, one line each; Enter goes there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.checks.findings import Finding
from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import ListedNames
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.search import FilterBar
from dld_tui.widgets.lists.styled import Piece, Rows, operator_style, wrap
from dld_tui.widgets.parameters.descriptions import place_text
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint, holding
from dld_tui.widgets.shell.frame import Framed

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node

_OLDER = "older than the last edit"
_STYLES = {"error": "bad", "warning": "warn", "info": "info"}
_NODE_CELLS = 34
_LEAST_WHOLE, _LEAST_LIST = 20, 6
"""Cells and rows of the pane from which a cut message is shown in full below the list."""


def level_glyph(level: str) -> str:
    """Return the glyph of ``error``, ``warning`` or ``info``."""
    shown = glyphs.current()
    return {"error": shown.error, "warning": shown.warning}.get(level, shown.info)


def summary_text(findings: Sequence[Finding]) -> str:
    """Return for example ``1 error  2 warnings``; empty when there are none."""
    counts = Counter[str](finding.level for finding in findings)
    levels = (("error", "errors"), ("warning", "warnings"), ("info", "info"))
    return "  ".join(
        fmt.plural(counts[level], level, many) for level, many in levels if counts[level]
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
    """The rows; its owner is the pane around it."""

    SCOPE = "findings"
    COMMAND_TABLE = (
        *table(
            "findings",
            ("findings.fix", "fix", "f", "fixable", "fix", "Fix the finding at the cursor.",
             "repair, quick fix, fix, mend"),
            ("findings.fix_rule", "fix_rule", "E", "fixable", "fix all",
             "Fix all findings of the same rule.", "repair all"),
            ("findings.only_rule", "pane.toggle_rule", "b", "finding", "only this rule",
             "Show only findings of this rule, or of all rules again."),
        ),
        *table(
            "findings",
            ("findings.clear", "clear", "escape", "", "show all",
             "Clear the filter of the findings."),
            palette=False,
        ),
    )  # fmt: skip
    HELP = (
        "Errors, warnings and infos about the model. {list.activate} goes to the node, "
        "{findings.fix} fixes the finding, {findings.fix_rule} fixes all findings of its rule, "
        "{findings.only_rule} shows only that rule, {list.search} filters by text."
    )

    def __init__(self, pane: Findings) -> None:
        super().__init__(empty="No findings.", id="findings-list")
        self.pane = pane
        self.finder.open_filter = pane.type_filter

    def conditions(self) -> set[str]:
        finding = self.pane.current
        is_fixable = finding is not None and finding.is_fixable
        return holding(finding=finding is not None, fixable=is_fixable)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to clear."""
        if action == "clear":
            return self.pane.is_filtered
        return super().check_action(action, parameters)

    def action_fix(self) -> None:
        self._ask(every=False)

    def action_fix_rule(self) -> None:
        self._ask(every=True)

    def _ask(self, *, every: bool) -> None:
        finding = self.pane.current
        if finding is not None:
            self.post_message(Findings.FixAsked(finding, every))

    def action_clear(self) -> None:
        self.pane.clear_filter()


def _label(node: Node) -> str:
    return visible(node.name or next(filter(None, node.outputs), ""))


class FindingLines:
    """The line source."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = findings
        nodes = (finding.node for finding in findings if finding.node is not None)
        self._names = ListedNames(map(_label, nodes))

    def __len__(self) -> int:
        return len(self.findings)

    def key(self, index: int) -> Hashable:
        finding = self.findings[index]
        return (finding.rule, finding.scope, finding.node, finding.value, finding.message)

    def text(self, index: int) -> str:
        return " ".join(text for text, _ in self.line(index, 400)).strip()

    def line(self, index: int, width: int) -> Sequence[Piece]:
        finding = self.findings[index]
        pieces: list[Piece] = [(level_glyph(finding.level) + " ", _STYLES[finding.level])]
        room = width - 2
        node = finding.node
        if node is not None and width > 60:
            kind = clip(visible(node.op_type), 16)
            cells = _NODE_CELLS - cell_width(kind) - 1
            pieces.append((kind + " ", operator_style(node.op_type, node.domain)))
            label = self._names.cut(_label(node), cells, keep="middle")
            pieces.append((fit(label, cells) + " ", ""))
            room -= _NODE_CELLS + 1
        place = ""
        if finding.scope is not None and finding.scope.parent is not None:
            place = clip(place_text(finding.scope), room // 3, keep="end")
        does = "" if not finding.is_fixable else "fixes" if finding.repair else "rewrites"
        key = hint(f" {{findings.fix}} {does}") if does and width > 40 else ""
        text = fit(
            visible(finding.message), room - cell_width(place) - bool(place) - cell_width(key)
        )
        pieces.append((text, "" if finding.level != "info" else "info"))
        if place:
            pieces.append((" " + place, "dim"))
        if key:
            pieces.append((key, "dim"))
        return pieces


class Findings(Framed, Vertical):
    """The pane."""

    @dataclass
    class Chosen(Message):
        """Enter on a finding."""

        finding: Finding

    @dataclass
    class FixAsked(Message):
        """A finding, or every one of its rule, is to be fixed."""

        finding: Finding
        every: bool

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.findings: list[Finding] = []
        """All of them."""
        self.shown: list[Finding] = []
        """Those that the filter lets through."""
        self.list = FindingsList(self)
        self._whole = Rows()
        self._is_older = False
        self._rule = ""
        self._text = ""
        self._wanted: tuple[Hashable, Callable[[], None]] | None = None

    def compose(self) -> ComposeResult:
        yield FilterBar("rule, node or words")
        yield self.list
        yield self._whole

    def on_resize(self) -> None:
        """Say more of the finding under the cursor, or less."""
        self._tell()

    def _tell(self) -> None:
        """Say the whole message of the finding under the cursor below the list, where it is cut."""
        finding, width = self.current, self.list.size.width
        rows: list[list[Piece]] = []
        if finding is not None and width > _LEAST_WHOLE:
            message = visible(finding.message)
            row = FindingLines([finding]).line(0, width - 2)
            if message not in "".join(text for text, _ in row):
                rows = [[(f"  {row}", "dim")] for row in wrap(message, width - 3)]
        if self.size.height < len(rows) + _LEAST_LIST:
            rows = []
        self._whole.styles.height = len(rows)
        self._whole.set_rows(rows)

    @property
    def current(self) -> Finding | None:
        """The finding under the cursor."""
        return next(iter(self.shown[self.list.cursor :]), None)

    def show(self, findings: Sequence[Finding], *, older: bool) -> None:
        """Show findings, of the model as it is, or older than the last edit."""
        findings = list(findings)
        if findings != self.findings or self._text:
            self.findings = findings
            self._show()
        else:
            self.list.invalidate()  # what they are about may have another name
        self.say(older=older)
        self._look_for_wanted(is_last=not older)

    def return_to(self, key: Hashable, there: Callable[[], None]) -> None:
        """Put the cursor on a finding: now, or when the checks have found it again.

        Args:
            key: Of its row.
            there: Called once the cursor is on it; never if the next checks do not find it.
        """
        self._wanted = (key, there)
        self._look_for_wanted(is_last=False)

    def _look_for_wanted(self, *, is_last: bool) -> None:
        if self._wanted is not None:
            key, there = self._wanted
            if is_there := self.list.go_to_key(key):
                there()
            if is_there or is_last:
                self._wanted = None

    @property
    def is_behind(self) -> bool:
        """Whether rows are still to come: keys wait for them for a moment."""
        return self._is_older

    def say(self, *, older: bool) -> None:
        """Show whether the findings are older than the last edit."""
        self._is_older = older
        parts = [summary_text(self.findings)]
        if self.is_filtered:
            parts.append(f"{len(self.shown)} of {self._rule or 'these'} shown")
        self.frame.show("Findings", "   ".join(filter(None, (*parts, _OLDER if older else ""))))

    def _show(self) -> None:
        words = self._text.lower().split()
        self.shown = [f for f in self.findings if self._passes(f, words)]
        self.list.empty = (
            hint("No finding matches the filter. {findings.clear} clears it.")
            if self.is_filtered
            else ("No findings.")
        )
        self.list.set_lines(FindingLines(self.shown))
        self.say(older=self._is_older)
        self._tell()

    def _passes(self, finding: Finding, words: list[str]) -> bool:
        if self._rule and finding.rule != self._rule:
            return False
        if not words:
            return True
        node = finding.node
        about = (node.op_type, node.name) if node is not None else ()
        text = " ".join((finding.rule, finding.level, visible(finding.message), *about)).lower()
        return all(word in text for word in words)

    @property
    def is_filtered(self) -> bool:
        """Whether findings may be hidden."""
        return bool(self._rule or self._text.strip())

    def toggle_rule(self) -> None:
        """Show only findings of the rule under the cursor, or those of all rules again."""
        finding = self.current
        self._rule = "" if self._rule or finding is None else finding.rule
        self._show()

    def type_filter(self) -> None:
        """Put the keys into the filter line."""
        self.query_one(FilterBar).ask(self._text)

    def clear_filter(self) -> None:
        """Show all findings."""
        self._rule = self._text = ""
        self.query_one(FilterBar).show("")
        self._show()

    @on(FilterBar.Changed)
    def filter_typed(self, event: FilterBar.Changed) -> None:
        """Show what fits the text so far."""
        event.stop()
        if event.text != self._text:
            self._text = event.text
            self._show()

    @on(FilterBar.Left)
    def filter_left(self, event: FilterBar.Left) -> None:
        """Give the keys back to the list."""
        event.stop()
        if event.clear:
            self.clear_filter()
        self.list.focus()
        self.query_one(FilterBar).show(self._text)

    @on(LineView.CursorMoved)
    def cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Keep the list's message inside."""
        event.stop()
        self._tell()

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Say which finding was chosen."""
        event.stop()
        self.post_message(self.Chosen(self.shown[event.index]))
