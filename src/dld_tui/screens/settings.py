"""Settings of the program, and custom tools: the forms, and the list of tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.params import from_json, settings_of
from dld_tui.core.process.paths import config_path, short
from dld_tui.core.settings import config, custom_tools
from dld_tui.core.settings import config as settings
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.custom_tools import (
    Tool,
    ToolForm,
    form_values,
    line_of,
    lines_about,
    tool_of,
    tool_table,
)
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.screens.base_pages import AboutRow, FormPage, ListPage, labelled
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.dialogs.dialogs import Choice, QuestionDialog
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from textual.app import App


"""The page of the form with the settings that cannot be loaded."""


class SettingsScreen(FormPage):
    """Changes show at once; F5 writes them, Esc takes them back."""

    SCOPE = "settings"
    COMMAND_TABLE = table(
        "settings",
        ("settings.save", "save", "f5,ctrl+s", "valid", "save", "Save and apply the settings."),
        priority=True, footer="settings.save",
    )  # fmt: skip
    tab_title = "settings"
    HELP = (
        "A change takes effect at once. {settings.save} writes it to config.toml, {page.close} "
        "reverts it. Set keys in that file, in the table [keys]: command id = keys, such as "
        "edit.undo = 'u,ctrl+z'."
    )

    def __init__(self) -> None:
        super().__init__()
        self._before: Config | None = None

    def body(self) -> Iterable[Widget]:
        self._before = host(self).config
        shown = (*settings_of(Config), *settings.added_settings().values())
        form = ParamForm(shown, settings.values_of(self._before))
        yield self.boxed(
            f"Settings · {short(config_path())}",
            "{settings.save} save  {page.close} close",
            form,
        )

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Show the program as it would be."""
        changed = self._config()
        if changed is not None and changed != host(self).config:
            self._use(changed)

    def _config(self) -> Config | None:
        if self._before is None or not self.form.valid:
            return None
        return settings.with_values(self._before, self.form.values())

    def _use(self, config: Config) -> None:
        host(self).use_config(config)
        cast("App[int]", self.app).refresh_css(animate=False)
        self.refresh(layout=True)

    def save(self) -> str:
        """Write what is set in another way than in the file."""
        changed = self._config()
        if changed is None or self._before is None:
            return ""
        before, after = settings.values_of(self._before), settings.values_of(changed)
        differing = {name: value for name, value in after.items() if value != before[name]}
        if differing:
            settings.save(differing)
        self.notify("Saved" if differing else "Nothing changed", timeout=2)
        return self.tab_title

    def go_back(self) -> None:
        """Go back to what was set before."""
        if self._before is not None and host(self).config != self._before:
            self._use(self._before)
        self.dismiss(None)


class ToolFormScreen(FormPage):
    """Adds a tool, or changes one.

    Args:
        tool: What to change; None adds one.
    """

    SCOPE = "tool_form"
    COMMAND_TABLE = table(
        "tool_form",
        ("tool_form.save", "save", "f5,ctrl+s", "valid", "save", "Save the tool."),
        priority=True, footer="tool_form.save",
    )  # fmt: skip
    tab_title = "tool"
    HELP = (
        "A program and its arguments: $Model is the model file, $Output the output file, $Folder "
        "the model's folder, $$ a dollar sign. No shell is involved. {tool_form.save} saves, "
        "{page.close} closes."
    )

    def __init__(self, tool: Tool | None = None) -> None:
        super().__init__()
        self.tool = tool

    def body(self) -> Iterable[Widget]:
        form = ParamForm(ToolForm, form_values(self.tool) if self.tool else {})
        title = f"Tool {self.tool.name}" if self.tool else "New tool"
        yield self.boxed(title, "{tool_form.save} save  {page.close} close", form)

    def save(self) -> str:
        """Save the tool and return its name."""
        tool = tool_of(from_json(ToolForm, self.form.values()))
        before = self.tool.name if self.tool else ""
        if tool.name != before and tool.name in custom_tools.load():
            raise UsageError(f"there is a tool {tool.name!r} already")
        custom_tools.save(tool, instead_of=before)
        return tool.name


_KEYS = "{tools.run} run  {tools.add} add  {tools.edit} edit  {tools.remove} remove"


class ToolsScreen(ListPage[Tool]):
    """A list, and below it the details of one."""

    SCOPE = "tools"
    COMMAND_TABLE = table(
        "tools",
        ("tools.run", "run", "f5", "document tool", "run",
         "Run the tool on the open model, including edits."),
        ("tools.add", "add", "a", "", "add", "Add a program and its arguments as a tool."),
        ("tools.edit", "edit", "e", "tool", "edit", "Edit the tool."),
        ("tools.remove", "remove", "d,delete", "tool", "remove", "Remove the tool; ask first."),
        ("tools.copy", "copy", "y", "tool", "copy", "Copy the program and its arguments."),
        footer="tools.run tools.add tools.edit tools.remove",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "tools"
    LIST_TITLE, LIST_KEYS = "Custom tools", _KEYS
    LIST_EMPTY = "No tools yet. {tools.add} adds a program that runs on models."
    ABOUT_TITLE = "Settings"
    ROW_CONDITION = "tool"
    HELP = (
        "Your own programs to run on the open model, including edits. {tools.run} or "
        "{list.activate} runs a tool, {tools.add} adds one, {tools.edit} edits it, "
        "{tools.remove} removes it. Below are the settings of the tool at the cursor, one "
        "argument per line."
    )

    def __init__(self) -> None:
        super().__init__()
        self._tools: dict[str, Tool] = {}
        self.chosen: Tool | None = None
        """The tool to run when the page has closed."""

    def on_mount(self) -> None:
        """Read the tools."""
        self._read()

    def conditions(self) -> set[str]:
        """Return whether there is a tool under the cursor, and a model to run it on."""
        page = host(self).page
        has_model = page.edited_document is not None
        return super().conditions() | ({"document"} if has_model else set())

    # The list

    def table(self) -> Table[Tool]:
        """Return the tools."""
        return tool_table(list(self._tools.values())).pick(
            ("name", "application", "arguments", "output")
        )

    def _read(self, select: str | None = None) -> None:
        try:
            self._tools = custom_tools.load()
        except DldError as error:
            self._tools = {}
            host(self).show_error(error, "Custom tools")
        else:
            app = host(self)
            app.config = config.changed(app.config, tools=self._tools)
        self.show_rows(select)

    def activate(self) -> None:
        """Run the tool, or change it where there is no model."""
        self.action_run() if "document" in self.conditions() else self.action_edit()

    def about(self) -> list[Line]:
        """Return the settings of the tool."""
        tool = self.row
        title = f"Settings of {visible(tool.name)}" if tool else "Settings"
        self.query_one(AboutRow).frame.show(title)
        return labelled(lines_about(tool)) if tool else []

    # What can be done

    def action_run(self) -> None:
        self.chosen = self.row
        if self.chosen is not None:
            self.dismiss(None)

    def action_add(self) -> None:
        self._open_form(ToolFormScreen())

    def action_edit(self) -> None:
        tool = self.row
        if tool is not None:
            self._open_form(ToolFormScreen(tool))

    @task()
    async def _open_form(self, form: ToolFormScreen) -> None:
        await self.tasks.ask(form)
        if form.saved:
            self._read(form.saved)

    @task()
    async def action_remove(self) -> None:
        tool = self.row
        if tool is None:
            return
        name = tool.name

        choices = [Choice("k", "keep it", ""), Choice("r", "remove it", "remove")]
        text = "The program itself stays where it is."
        question = QuestionDialog(f"Remove {visible(name)}?", text, choices)
        if await self.tasks.ask(question) != "remove":
            return
        try:
            custom_tools.remove(name)
        except DldError as error:
            host(self).show_error(error)
        self._read()

    def action_copy(self) -> None:
        tool = self.row
        if tool is not None:
            self.app.copy_to_clipboard(visible(line_of([tool.application, *tool.arguments])))
