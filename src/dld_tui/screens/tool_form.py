"""The form of one custom tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.form import ToolForm, form_values, tool_of
from dld_tui.core.custom_tools.model import Tool
from dld_tui.core.errors import UsageError
from dld_tui.core.params import from_json
from dld_tui.screens.form_page import SavingForm
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.param_form import ParamForm


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
