"""The panes of a workspace: which are seen, where, how large, and which has the keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from textual import events
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.screens.workspace import layout
from dld_tui.screens.workspace.controller import Controller, hears
from dld_tui.widgets.explorer.findings import Findings, NoticeLine
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.parameters.pane import Parameters
from dld_tui.widgets.shell.frame import CHOICE, Framed
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from textual.geometry import Size

    from dld_tui.widgets.parameters.edit_bar import EditBar


_STEP_COLUMNS, _STEP_ROWS = 4, 2
_SECTION, _LAST, _NAMED = "layouts", "workspace", "workspace named"


class Area(Container):
    """Where the panes are."""

    class Resized(Message):
        """There is another number of cells."""

    def on_resize(self) -> None:
        """Post the message."""
        self.post_message(self.Resized())


@dataclass(eq=False)
class Panes(Controller):
    """Lays out the panes, and gives them the keys."""

    COMMAND_TABLE = table(
        "workspace",
        ("view.maximise", "panes.maximise", "m", "", "maximise",
         "Maximise or restore the pane.", "maximize, full screen, fullscreen, zoom pane"),
        ("view.reset", "panes.reset_layout", "", "", "reset layout",
         "Restore the default order and sizes of the panes.", "default layout"),
        ("view.hide_pane", "panes.hide", "underscore", "", "hide pane",
         "Hide the pane; its number shows it again."),
        ("view.show_panes", "panes.show_all", "", "", "show panes", "Show all hidden panes."),
        ("view.move_left", "panes.move -1", "ctrl+left", "", "move pane left",
         "Swap the pane with its left or upper neighbour."),
        ("view.move_right", "panes.move 1", "ctrl+right", "", "move pane right",
         "Swap the pane with its right or lower neighbour."),
        ("view.grow", "panes.grow", "greater_than_sign", "", "larger pane",
         "Make the pane larger.", "bigger pane, wider pane, wider, bigger, enlarge, resize"),
        ("view.shrink", "panes.shrink", "less_than_sign", "", "smaller pane",
         "Make the pane smaller.", "narrower, resize pane, less room"),
        ("view.save_layout", "panes.save_layout", "", "", "save layout",
         "Save the layout of the panes under a name."),
        ("view.choose_layout", "panes.choose_layout", "", "", "choose layout",
         "Restore a saved layout of the panes."),
        common="document",
    )  # fmt: skip

    chosen: layout.Layout = field(default_factory=layout.Layout, init=False)
    explorer: Explorer = field(init=False)
    """Only there once the model is open, as the other panes."""
    graph: GraphPane = field(init=False)
    parameters: Parameters = field(init=False)
    findings: Findings = field(init=False)
    _dragging: str = field(default="", init=False)
    _columns: Mapping[str, int] = field(default_factory=dict, init=False)
    """Columns of the panes that are side by side, from the left."""

    async def show(self, listing: ExplorerModel, preview_bytes: int) -> None:
        """Make the panes of a model that has been read.

        Args:
            listing: The nodes as the first pane lists them.
            preview_bytes: Tensors up to this size are read as soon as they are unfolded.
        """
        self.explorer = Explorer(listing, id="explorer")
        self.graph = GraphPane(id="graph")
        self.parameters = Parameters(preview_bytes=preview_bytes, id="parameters")
        self.findings = Findings(id="findings")
        for number, name in layout.NUMBERS.items():
            pane = self.pane(name)
            if isinstance(pane, (Framed, LineView)):
                pane.frame.number = number
        # Now, as later all that is in it would be given its styles once more.
        self.area.set_class(self.area.size.width < layout.WIDE, "-narrow")
        await self.area.mount(self.explorer, self.graph, self.parameters, self.findings)

    @property
    def area(self) -> Area:
        """The container of the panes."""
        return self.page.query_one(Area)

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
        notices = self.page.query(NoticeLine)
        if not self.model.is_open or not notices:  # the tab is being closed, and work for it ended
            return
        width, height = room = self.area.region.size
        if not (width and height):
            return
        needed = len(self.findings.findings) + 2
        arrangement = layout.arrange(self.chosen, width, height, self.present, needed)
        self._columns = arrangement.columns
        self._order_panes()
        focused = next((name for name in layout.TITLES if self.pane(name).has_focus_within), "")
        self.area.set_class(not arrangement.wide, "-narrow")
        for name in layout.TITLES:
            pane = self.pane(name)
            pane.display = name in arrangement.shown
            if name in arrangement.columns:
                pane.styles.width = arrangement.columns[name]
                pane.styles.height = "1fr"
            elif name in arrangement.rows:
                pane.styles.width = "100%"
                pane.styles.height = arrangement.rows[name]
        if focused and focused not in arrangement.shown:
            self.focus_first()
        findings = self.findings.findings
        notice = notices.first()
        notice.display = layout.FINDINGS not in arrangement.shown and any(
            finding.level != "info" for finding in findings
        )
        notice.show(findings)
        self._say_panes()
        self.page.call_after_refresh(self._fit_after, room)

    def _fit_after(self, room: Size) -> None:
        """Lay out again if the line below left another room.

        Textual does not tell of it where something asked for a place before it drew the line.
        """
        if self.area.is_attached and self.area.region.size != room:
            self.lay_out()

    @hears(Area.Resized)
    def fit(self, event: Area.Resized) -> None:
        """Lay out for another size; the pane that has the keys is still seen where it was."""
        focused = [name for name in layout.TITLES if self.pane(name).has_focus_within]
        self.lay_out()
        for name in focused:
            if not self.pane(name).display and name in self.present - self.chosen.hidden:
                self.focus(name)

    def _order_panes(self) -> None:
        """Put the panes into their order, which Tab goes by, too."""
        panes = [self.pane(name) for name in (*self.chosen.order, layout.FINDINGS)]
        if [pane for pane in self.area.children if pane in panes] != panes:
            places = {pane: at for at, pane in enumerate(panes)}
            self.area.sort_children(key=lambda pane: places.get(pane, len(panes)))

    def _say_panes(self) -> None:
        """Say in the row of tabs which panes there are, and on which key."""
        parts = []
        hidden = self.chosen.hidden & self.present
        for number, name in layout.NUMBERS.items():
            if name in self.present:
                mark = "×" if name in hidden else " "
                parts.append(f"{number}{mark}{layout.TITLES[name]}")
        status = " ".join(parts)
        if status != self.page.tab_status:
            self.page.tab_status = status
            self.page.tab_changed()

    def focused(self) -> str:
        """Return the name of the pane that has the keys."""
        for name in layout.TITLES:
            if self.model.is_open and self.pane(name).has_focus_within:
                return name
        return layout.EXPLORER

    def focus(self, name: str) -> None:
        """Give a pane the keys; one that is hidden, or under another one, is shown."""
        if name not in self.present:
            self.say("The checks found nothing in this model")
            return
        if name in self.chosen.hidden:
            self.chosen.hidden.discard(name)
            self.remember_layout()
        self.chosen.bring_forward(name)
        self.lay_out()
        self._give_keys(name)

    def show_pane_of(self, widget: Widget) -> None:
        """Show the pane that a widget is in, and give it the keys."""
        for name in layout.TITLES:
            if self.pane(name) in widget.ancestors_with_self:
                self.focus(name)

    def _give_keys(self, name: str) -> None:
        if name == layout.GRAPH:
            self.graph.focus_view()
        else:
            self.pane(name).query_one(LineView).focus()

    def mount_bar(self, bar: EditBar) -> None:
        """Show a line to type into at the bottom of the focused pane."""
        self.pane(self.focused()).mount(bar)

    def maximise(self) -> None:
        """Give the focused pane all the room, or take it back."""
        self.chosen.maximised = None if self.chosen.maximised else self.focused()
        self.lay_out()

    def focus_first(self) -> None:
        """Give the keys to the graph, or to another pane that is seen where it is not."""
        names = (self.chosen.upper, layout.GRAPH, layout.EXPLORER, layout.PARAMETERS)
        self._give_keys(next((name for name in names if self.pane(name).display), layout.FINDINGS))

    def hide(self) -> None:
        """Hide the focused pane; its number brings it back."""
        name = self.focused()
        if not self.chosen.hide(name):
            self.say("The last pane cannot be hidden")
            return
        self.lay_out()
        self.focus_first()
        self.remember_layout()
        number = next(number for number, pane in layout.NUMBERS.items() if pane == name)
        self.say(f"{layout.TITLES[name]} is hidden: {number} shows it")

    def show_all(self) -> None:
        """Show the hidden panes again."""
        self.chosen.hidden.clear()
        self.chosen.maximised = None
        self.lay_out()
        self.remember_layout()

    def move(self, step: str) -> None:
        """Let the focused pane and its neighbour change places."""
        name = self.focused()
        shown = [pane for pane in self.chosen.order if self.pane(pane).display]
        if self.chosen.move(name, int(step), shown):
            self.lay_out()
            self.remember_layout()
        elif name == layout.FINDINGS:
            self.say("The findings stay at the bottom")
        else:
            self.say("There is no pane on that side")

    def grow(self) -> None:
        """Make the focused pane larger."""
        self._grow(1)

    def shrink(self) -> None:
        """Make the focused pane smaller."""
        self._grow(-1)

    def _grow(self, sign: int) -> None:
        width, height = self.area.size
        pane = self.focused()
        sideways = width >= layout.WIDE and pane != layout.FINDINGS
        step = _STEP_COLUMNS if sideways else _STEP_ROWS
        layout.grow(self.chosen, pane, sign * step, width, height, self.present)
        self.chosen.maximised = None
        self.lay_out()
        self.remember_layout()

    def take_border(self, event: events.MouseDown) -> None:
        """Take hold of the border between two panes."""
        if not self.model.is_open or self.chosen.maximised or CHOICE in event.style.meta:
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
            self.page.capture_mouse()

    def move_border(self, event: events.MouseMove) -> None:
        """Move the border that is held."""
        if not self._dragging:
            return
        region = self.area.region
        width, height = region.size
        if self._dragging == "rows":
            self._drag_rows("upper rows", (event.screen_y - region.y) / height)
        elif self._dragging == layout.FINDINGS:
            self._drag_rows("findings rows", (region.bottom - event.screen_y) / height)
        else:
            x = event.screen_x - region.x
            layout.drag(self.chosen, self._columns, width, self._dragging, x)
        self.lay_out()

    def _drag_rows(self, name: str, share: float) -> None:
        self.chosen.shares[name] = min(0.9, max(0.1, share))

    @property
    def _top_pane(self) -> Widget | None:
        """The upper of two stacked panes."""
        panes = [self.pane(name) for name in layout.TITLES]
        shown = [pane for pane in panes if pane.display]
        return min(shown, key=lambda pane: pane.region.y) if len(shown) > 1 else None

    def leave_border(self) -> None:
        """Let go of the border."""
        if self._dragging:
            self._dragging = ""
            self.page.release_mouse()
            self.remember_layout()

    def remember_layout(self) -> None:
        """Keep order, sizes and what is hidden for the next time."""
        host(self.page).state.put(_SECTION, _LAST, self.chosen.to_json())

    def recall_layout(self) -> None:
        """Take the layout of the last time."""
        self.chosen.load(host(self.page).state.get(_SECTION, _LAST))

    def reset_layout(self) -> None:
        """Show all panes in their first order and sizes."""
        self.chosen.reset()
        host(self.page).state.put(_SECTION, _LAST, {})
        self.lay_out()

    @task()
    async def save_layout(self) -> None:
        """Keep the present layout under a name."""
        from dld_tui.widgets.dialogs.dialogs import PromptDialog

        dialog = PromptDialog("Save layout", "A name for this layout of the panes.")
        name = (await self.ask(dialog) or "").strip()
        if name:
            state = host(self.page).state
            known = state.get(_SECTION, _NAMED)
            state.put(_SECTION, _NAMED, {**known, name: self.chosen.to_json()})

    @task()
    async def choose_layout(self) -> None:
        """Take a layout that was kept under a name."""
        known = host(self.page).state.get(_SECTION, _NAMED)
        if not known:
            self.say("No layout is saved yet")
            return

        options = [(str(at), name, name) for at, name in enumerate(list(known)[:9], 1)]
        name = await self.pick("Layout", "Which one?", options)
        data = known[name] if name is not None else None
        if isinstance(data, dict):
            self.chosen.load(data)
            self.lay_out()
            if not self.pane(self.focused()).display:
                self.focus_first()
            self.remember_layout()
