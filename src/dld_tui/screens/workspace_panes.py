"""The panes of a workspace on the screen: which are seen, how large, and what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
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
        self._columns: Mapping[str, int] = {}
        """Columns of the panes that are side by side, from the left."""

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
        notices = self.query(NoticeLine)
        if not self.is_open or not notices:  # the tab is being closed, and work for it ended
            return
        width, height = self.area.size
        if not (width and height):
            return
        needed = len(self.findings.findings) + 2
        found = layout.arrange(self.plan, width, height, self.present, needed)
        self._columns = found.columns
        self._order_panes()
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
        notice = notices.first()
        notice.display = layout.FINDINGS not in found.shown and any(
            finding.level != "info" for finding in findings
        )
        notice.show(findings)
        self._say_panes(found)

    def _order_panes(self) -> None:
        """Put the panes into their order, which Tab goes by, too."""
        panes = [self.pane(name) for name in (*self.plan.order, layout.FINDINGS)]
        if [pane for pane in self.area.children if pane in panes] != panes:
            places = {pane: at for at, pane in enumerate(panes)}
            self.area.sort_children(key=lambda pane: places.get(pane, len(panes)))

    def _say_panes(self, found: layout.Arrangement) -> None:
        """Say in the row of tabs which panes there are, where not all of them are seen."""
        parts = []
        hidden = self.plan.hidden & self.present
        for number, name in layout.NUMBERS.items():
            if name in self.present:
                mark = "▸" if name in found.shown and not found.wide else " "
                mark = "×" if name in hidden else mark
                parts.append(f"{number}{mark}{layout.TITLES[name]}")
        all_seen = found.wide and not self.plan.maximised and not hidden
        status = "" if all_seen else " ".join(parts)
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
        """Give a pane the keys; a hidden one is shown, a narrow screen's becomes the main one."""
        if name not in self.present:
            self.notify("Nothing was found in this model", timeout=3)
            return
        if name in self.plan.hidden:
            self.plan.hidden.discard(name)
            self.remember_layout()
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

    def focus_first(self) -> None:
        """Give the keys to the layers, or to another pane that is seen where these are not."""
        names = (layout.EXPLORER, layout.PARAMETERS, layout.GRAPH, layout.FINDINGS)
        name = next((name for name in names if self.pane(name).display), layout.EXPLORER)
        if name == layout.GRAPH:
            self.graph.focus_view()
        else:
            self.pane(name).query_one(LineView).focus()

    def action_hide_pane(self) -> None:
        """Hide the focused pane; its number brings it back."""
        name = self.focused_pane()
        if not self.plan.hide(name):
            self.notify("The last pane stays", timeout=3)
            return
        self.lay_out()
        self.focus_first()
        self.remember_layout()
        number = next(number for number, pane in layout.NUMBERS.items() if pane == name)
        self.notify(f"{layout.TITLES[name]} is hidden: {number} shows it", timeout=3)

    def action_show_panes(self) -> None:
        """Show the hidden panes again."""
        self.plan.hidden.clear()
        self.plan.maximised = None
        self.lay_out()
        self.remember_layout()

    def action_move_pane(self, step: str) -> None:
        """Let the focused pane and its neighbour change places."""
        name = self.focused_pane()
        shown = [pane for pane in self.plan.order if self.pane(pane).display]
        if self.plan.move(name, int(step), shown):
            self.lay_out()
            self.remember_layout()
        elif name == layout.FINDINGS:
            self.notify("What was found stays at the bottom", timeout=3)
        else:
            self.notify("There is no pane on that side", timeout=3)

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
        layout.grow(self.plan, pane, sign * step, width, height, self.present)
        self.plan.maximised = None
        self.lay_out()
        self.remember_layout()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the border between two panes."""
        if not self.is_open or self.plan.maximised:
            return
        y, area = event.screen_y, self.area.region
        if area.width < layout.WIDE:
            top = self._top_pane
            if top is not None and y in (top.region.bottom - 1, top.region.bottom):
                self._dragging = "rows"
        elif self.findings.display and y == self.findings.region.y:
            self._dragging = layout.FINDINGS
        else:
            x = event.screen_x - area.x
            self._dragging = layout.border_at(self._columns, area.width, x)
        if self._dragging:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the border that is held."""
        if not self._dragging:
            return
        region = self.area.region
        width, height = region.size
        if self._dragging == "rows":
            share = (event.screen_y - region.y) / height
            is_main = self._top_pane is self.pane(self.plan.main)
            self._drag_rows("main rows", share if is_main else 1 - share)
        elif self._dragging == layout.FINDINGS:
            self._drag_rows("findings rows", (region.bottom - event.screen_y) / height)
        else:
            x = event.screen_x - region.x
            layout.drag(self.plan, self._columns, width, self._dragging, x)
        self.lay_out()

    def _drag_rows(self, name: str, share: float) -> None:
        self.plan.shares[name] = min(0.9, max(0.1, share))

    @property
    def _top_pane(self) -> Widget | None:
        """The upper of two stacked panes."""
        panes = [self.pane(name) for name in layout.TITLES]
        shown = [pane for pane in panes if pane.display]
        return min(shown, key=lambda pane: pane.region.y) if len(shown) > 1 else None

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go of the border."""
        if self._dragging:
            self._dragging = ""
            self.release_mouse()
            self.remember_layout()

    # --- remembering ----------------------------------------------------------------------------

    def remember_layout(self) -> None:
        """Keep order, sizes and what is hidden for the next time."""
        host(self).state.put(_SECTION, _LAST, self.plan.to_json())

    def recall_layout(self) -> None:
        """Take the layout of the last time."""
        self.plan.load(host(self).state.get(_SECTION, _LAST))

    def action_reset_layout(self) -> None:
        """Show all panes in their first order and sizes."""
        self.plan.reset()
        host(self).state.put(_SECTION, _LAST, {})
        self.lay_out()

    def action_save_layout(self) -> None:
        """Keep the present layout under a name."""

        def named(name: str | None) -> None:
            if name and name.strip():
                state = host(self).state
                known = state.get(_SECTION, _NAMED)
                state.put(_SECTION, _NAMED, {**known, name.strip(): self.plan.to_json()})

        self.app.push_screen(
            PromptDialog("Save layout", "A name for this layout of the panes."), named
        )

    def action_choose_layout(self) -> None:
        """Take a layout that was kept under a name."""
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
                if not self.pane(self.focused_pane()).display:
                    self.focus_first()
                self.remember_layout()

        self.app.push_screen(ChoiceDialog("Layout", "Which one?", choices), chosen)
