"""The panes of a workspace on the screen: which are seen, how large, and what is remembered."""

from __future__ import annotations

from pathlib import Path

from textual import events, on
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget

from dld_tui.screens import workspace_layout as layout
from dld_tui.screens.workspace_base import WorkspaceBase
from dld_tui.widgets.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.findings import NoticeLine
from dld_tui.widgets.host import host
from dld_tui.widgets.line_view import LineView

_STEP_COLUMNS, _STEP_ROWS = 4, 2
_SECTION, _LAST, _NAMED = "layouts", "workspace", "workspace named"


class Area(Container):
    """Where the panes are."""

    class Resized(Message):
        """There is another number of cells."""

    def on_resize(self) -> None:
        """Say so."""
        self.post_message(self.Resized())


class Panes(WorkspaceBase):
    """The part of the workspace that lays out its panes."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._dragging = ""

    # --- laying out -----------------------------------------------------------------------------

    @property
    def area(self) -> Area:
        """The container of the panes."""
        return self.query_one(Area)

    def pane(self, name: str) -> Widget:
        """Return a pane by its name."""
        panes: dict[str, Widget] = {
            layout.EXPLORER: self.explorer,
            layout.GRAPH: self.graph,
            layout.PARAMETERS: self.parameters,
            layout.FINDINGS: self.findings,
        }
        return panes[name]

    @property
    def present(self) -> set[str]:
        """The panes that have something to show."""
        panes = {layout.EXPLORER, layout.GRAPH, layout.PARAMETERS}
        return panes | {layout.FINDINGS} if self.findings.findings else panes

    def lay_out(self) -> None:
        """Give every pane its place for the present size."""
        if not self.is_open:
            return
        width, height = self.area.size
        if not (width and height):
            return
        needed = len(self.findings.findings) + 2
        found = layout.arrange(self.plan, width, height, self.present, needed)
        self.area.set_class(not found.wide, "-narrow")
        for name in layout.TITLES:
            pane = self.pane(name)
            pane.display = name in found.shown
            if name in found.columns:
                pane.styles.width = found.columns[name]
                pane.styles.height = "1fr"
            elif name in found.rows:
                pane.styles.width = "100%"
                pane.styles.height = found.rows[name]
        findings = self.findings.findings
        notice = self.query_one(NoticeLine)
        notice.display = layout.FINDINGS not in found.shown and any(
            finding.level != "info" for finding in findings
        )
        notice.show(findings)
        self._say_panes(found)

    def _say_panes(self, found: layout.Arrangement) -> None:
        """Say in the row of tabs which panes there are, where not all of them are seen."""
        parts = []
        for number, name in layout.NUMBERS.items():
            if name in self.present:
                mark = "▸" if name in found.shown and not found.wide else " "
                parts.append(f"{number}{mark}{layout.TITLES[name]}")
        status = "" if found.wide and not self.plan.maximised else " ".join(parts)
        if status != self.tab_status:
            self.tab_status = status
            self.tab_changed()

    @on(Area.Resized)
    def area_resized(self, event: Area.Resized) -> None:
        """Lay the panes out for the new size."""
        event.stop()
        self.lay_out()

    # --- choosing -------------------------------------------------------------------------------

    def focused_pane(self) -> str:
        """Return the name of the pane that has the keys."""
        for name in layout.TITLES:
            if self.is_open and self.pane(name).has_focus_within:
                return name
        return layout.EXPLORER

    def focus_pane(self, name: str) -> None:
        """Give a pane the keys; in a narrow screen it becomes the main one."""
        if name not in self.present:
            self.notify("Nothing was found in this model", timeout=3)
            return
        if self.plan.maximised is not None:
            self.plan.maximised = name
        self.plan.main = name
        if name in (layout.EXPLORER, layout.GRAPH):
            self.plan.left = name
        self.lay_out()
        if name == layout.GRAPH:
            self.graph.focus_view()
        else:
            self.pane(name).query_one(LineView).focus()

    def action_pane(self, number: str) -> None:
        """Go to a pane by its number."""
        self.focus_pane(layout.NUMBERS[int(number)])

    def action_maximise_pane(self) -> None:
        """Give the focused pane all the room, or take it back."""
        self.plan.maximised = None if self.plan.maximised else self.focused_pane()
        self.lay_out()

    # --- sizes ----------------------------------------------------------------------------------

    def action_grow_pane(self) -> None:
        """Make the focused pane larger."""
        self._grow(1)

    def action_shrink_pane(self) -> None:
        """Make the focused pane smaller."""
        self._grow(-1)

    def _grow(self, sign: int) -> None:
        width, height = self.area.size
        pane = self.focused_pane()
        sideways = width >= layout.WIDE and pane != layout.FINDINGS
        step = _STEP_COLUMNS if sideways else _STEP_ROWS
        layout.grow(self.plan, pane, sign * step, width, height)
        self.plan.maximised = None
        self.lay_out()
        self.remember_layout()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the border between two panes."""
        if not self.is_open or self.plan.maximised:
            return
        x, y = event.screen_x, event.screen_y
        findings = self.findings.region
        left = self.explorer.region if self.explorer.display else self.graph.region
        parameters = self.parameters.region
        if self.findings.display and y == findings.y and self.area.size.width >= layout.WIDE:
            self._dragging = layout.FINDINGS
        elif self.area.size.width >= layout.WIDE and x in (left.right - 1, left.right):
            self._dragging = "columns"
        elif self.area.size.width >= layout.WIDEST and x in (parameters.x - 1, parameters.x):
            self._dragging = "parameters"
        elif self.area.size.width < layout.WIDE and y in (left.bottom - 1, left.bottom):
            self._dragging = "rows"
        if self._dragging:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the border that is held."""
        if not self._dragging:
            return
        region = self.area.region
        width, height = region.size
        if self._dragging == "columns":
            share = (event.screen_x - region.x) / width
            three = width >= layout.WIDEST
            name = "explorer columns of three" if three else "explorer columns"
        elif self._dragging == "parameters":
            share = (region.right - event.screen_x) / width
            name = "parameters columns of three"
        elif self._dragging == "rows":
            share = (event.screen_y - region.y) / height
            share = share if self.plan.main in (layout.EXPLORER, layout.GRAPH) else 1 - share
            name = "main rows"
        else:
            share, name = (region.bottom - event.screen_y) / height, "findings rows"
        self.plan.shares[name] = min(0.9, max(0.1, share))
        self.lay_out()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go of the border."""
        if self._dragging:
            self._dragging = ""
            self.release_mouse()
            self.remember_layout()

    # --- remembering ----------------------------------------------------------------------------

    def remember_layout(self) -> None:
        """Keep the sizes for the next time."""
        host(self).state.put(_SECTION, _LAST, self.plan.to_json())

    def recall_layout(self) -> None:
        """Take the sizes of the last time."""
        self.plan.load(host(self).state.get(_SECTION, _LAST))

    def action_reset_layout(self) -> None:
        """Give the panes their first sizes."""
        self.plan.reset()
        host(self).state.put(_SECTION, _LAST, {})
        self.lay_out()

    def action_save_layout(self) -> None:
        """Keep the present sizes under a name."""

        def named(name: str | None) -> None:
            if name and name.strip():
                state = host(self).state
                known = state.get(_SECTION, _NAMED)
                state.put(_SECTION, _NAMED, {**known, name.strip(): self.plan.to_json()})

        self.app.push_screen(PromptDialog("Save layout", "A name for these pane sizes."), named)

    def action_choose_layout(self) -> None:
        """Take the sizes that were kept under a name."""
        known = host(self).state.get(_SECTION, _NAMED)
        if not known:
            self.notify("No layout is saved yet", timeout=3)
            return
        choices = [Choice(str(at), name, name) for at, name in enumerate(list(known)[:9], 1)]

        def chosen(name: str | None) -> None:
            data = known.get(name or "")
            if isinstance(data, dict):
                self.plan.load(data)
                self.lay_out()
                self.remember_layout()

        self.app.push_screen(ChoiceDialog("Layout", "Which one?", choices), chosen)
