"""The custom tools: list, add, change, remove, and run on the model of the tab.

The form of one custom tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core import config as settings
from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.form import ToolForm, form_values, line_of, lines_about, tool_of
from dld_tui.core.custom_tools.model import Tool
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.params import from_json
from dld_tui.core.text import fit, visible
from dld_tui.screens.form_page import SavingForm
from dld_tui.styles import STYLES
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.row_table import RowTable
from dld_tui.widgets.lists.table_view import Column, TableView
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.frame import Frame
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import SubPage
from dld_tui.widgets.tasks import task


class ToolFormScreen(SavingForm):
    """Adds a tool, or changes one.

    Args:
        tool: What to change; None adds one.
    """

    SCOPE = "tool_form"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("tool_form")
    tab_title = "tool"
    HELP = (
        "A program and its arguments: $Model is the model's file, $Output the file it writes,"
        " $Folder the model's folder, $$ a dollar. No shell reads them. {tool_form.save} saves,"
        " {page.close} closes."
    )

    def __init__(self, tool: Tool | None = None) -> None:
        super().__init__()
        self.tool = tool

    def body(self) -> Iterable[Widget]:
        """Return the form."""
        form = ParamForm(ToolForm, form_values(self.tool) if self.tool else {})
        title = f"Tool {self.tool.name}" if self.tool else "New tool"
        yield self.boxed(title, "{tool_form.save} save  {page.close} close", form)

    def save(self) -> str:
        """Save the tool and return its name."""
        tool = tool_of(from_json(ToolForm, self.form.values()))
        before = self.tool.name if self.tool else ""
        if tool.name != before and tool.name in store.load():
            raise UsageError(f"there is a tool {tool.name!r} already")
        store.save(tool, instead_of=before)
        return tool.name


_LABEL = 18

_KEYS = "{tools.run} run  {tools.add} add  {tools.edit} edit  {tools.remove} remove"


class ToolList(Frame, TableView):
    """The tools."""

    HELP = (
        "Programs of yours that are run on the model that is open, edits included. {tools.run} or "
        "{list.activate} runs one, {tools.add} adds one, {tools.edit} changes it, {tools.remove} "
        "forgets it."
    )


class AboutTool(Frame, LineView):
    """The settings of the tool under the cursor."""

    HELP = "The settings of the tool, an argument a line, as the program gets them."


class ToolsScreen(SubPage):
    """A list, and below it what one is."""

    SCOPE = "tools"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("tools")
    CSS_PATH = STYLES / "tools.tcss"
    tab_title = "tools"
    HELP = ToolList.HELP

    def __init__(self) -> None:
        super().__init__()
        self._tools: dict[str, Tool] = {}
        self.chosen: Tool | None = None
        """What is to be run when the page has closed."""

    def body(self) -> Iterable[Widget]:
        """Return the list and the pane below it."""
        view = ToolList(
            [
                Column("name", "Name", 20),
                Column("application", "Application", 20, priority=1),
                Column("arguments", "Arguments", min_width=20),
                Column("output", "Output", 8, priority=2),
            ],
            empty=hint("There is no tool yet. {tools.add} adds a program that is run on models."),
            id="tools",
        )
        view.frame("Custom tools", _KEYS)
        about = AboutTool(ListSource([]), gutter=False, id="about")
        about.frame("Settings")
        return view, about

    def on_mount(self) -> None:
        """Read the tools."""
        self._read()
        self.query_one(ToolList).focus()

    def facts(self) -> set[str]:
        """Return whether there is a tool under the cursor, and a model to run it on."""
        views = self.query(ToolList)
        facts = super().facts()
        if views and views.first().key_at_cursor() is not None:
            facts.add("tool")
        page = host(self).page
        if page.edited_document is not None:
            facts.add("document")
        return facts

    # The list

    def _read(self, select: str = "") -> None:
        try:
            self._tools = store.load()
        except DldError as error:
            self._tools = {}
            host(self).show_error(error, "Custom tools")
        else:
            app = host(self)
            app.config = settings.changed(app.config, tools=self._tools)
        view = self.query_one(ToolList)
        at = next((n for n, name in enumerate(self._tools) if name == select), view.cursor)
        view.set_table(
            RowTable(
                list(self._tools.values()),
                {
                    "name": lambda tool: (visible(tool.name), "strong"),
                    "application": lambda tool: visible(tool.application),
                    "arguments": lambda tool: (visible(line_of(tool.arguments)), "dim"),
                    "output": lambda tool: visible(tool.output),
                },
                key=lambda tool: tool.name,
            )
        )
        view.cursor = at
        self._show_about()
        self.refresh_bindings()

    def _selected(self) -> Tool | None:
        return self._tools.get(str(self.query_one(ToolList).key_at_cursor()))

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Show what the tool is."""
        if isinstance(event.view, ToolList):
            self._show_about()
            self.refresh_bindings()

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Run the tool, or change it where there is no model."""
        if isinstance(event.view, ToolList):
            self.action_run() if "document" in self.facts() else self.action_edit()

    def _show_about(self) -> None:
        tool = self._selected()
        about = self.query_one(AboutTool)
        about.frame(f"Settings of {visible(tool.name)}" if tool else "Settings")
        lines: list[list[Piece]] = []
        for label, text in lines_about(tool) if tool else ():
            lines.append([(fit(label, _LABEL), "dim"), (visible(text), "")])
        about.set_lines(ListSource(lines))

    # What can be done

    def action_run(self) -> None:
        """Close the page and run the tool on the model of the tab."""
        self.chosen = self._selected()
        if self.chosen is not None:
            self.dismiss(None)

    def action_add(self) -> None:
        """Ask for a new tool."""
        self._open_form(ToolFormScreen())

    def action_edit(self) -> None:
        """Change the tool under the cursor."""
        tool = self._selected()
        if tool is not None:
            self._open_form(ToolFormScreen(tool))

    @task()
    async def _open_form(self, form: ToolFormScreen) -> None:
        await self.tasks.ask(form)
        if form.saved:
            self._read(form.saved)

    @task()
    async def action_remove(self) -> None:
        """Forget the tool under the cursor, after asking."""
        tool = self._selected()
        if tool is None:
            return
        name = tool.name

        choices = [Choice("r", "remove it", "remove")]
        text = "The program itself stays where it is."
        question = ChoiceDialog(f"Remove {visible(name)}?", text, choices)
        if await self.tasks.ask(question) != "remove":
            return
        try:
            store.remove(name)
        except DldError as error:
            host(self).show_error(error)
        self._read()

    def action_copy(self) -> None:
        """Copy the application and its arguments."""
        tool = self._selected()
        if tool is not None:
            self.app.copy_to_clipboard(visible(line_of([tool.application, *tool.arguments])))
