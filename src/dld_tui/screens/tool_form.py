"""The form of one custom tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.form import ToolForm, form_values, tool_of
from dld_tui.core.custom_tools.model import Tool
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.params import from_json
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.host import host
from dld_tui.widgets.page import SubPage
from dld_tui.widgets.param_form import ParamForm


class ToolBox(Frame, Vertical):
    """The frame of the form."""


class ToolFormScreen(SubPage):
    """Adds a tool, or changes one.

    Args:
        tool: What to change; None adds one.
    """

    SCOPE = "tool_form"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("tool_form")
    CSS_PATH = "../styles/form.tcss"
    tab_title = "tool"
    HELP = (
        "A program and its arguments: $Model is the model's file, $Output the file it writes,"
        " $Folder the model's folder, $$ a dollar. No shell reads them. F5 saves, Esc closes."
    )

    def __init__(self, tool: Tool | None = None) -> None:
        super().__init__()
        self.tool = tool
        self.saved = ""
        """The name under which it was saved; empty when it was not."""

    def body(self) -> Iterable[Widget]:
        """Return the form."""
        box = ToolBox(ParamForm(ToolForm, form_values(self.tool) if self.tool else {}))
        box.frame(f"Tool {self.tool.name}" if self.tool else "New tool", "F5 save  Esc close")
        yield box

    def on_mount(self) -> None:
        """Go to the first field."""
        self.query_one(ParamForm).focus_first()

    def facts(self) -> set[str]:
        """Return whether the form may be saved."""
        forms = self.query(ParamForm)
        return super().facts() | ({"valid"} if forms and forms.first().valid else set())

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Grey saving while something is wrong."""
        self.refresh_bindings()

    def action_save(self) -> None:
        """Save the tool; says what is wrong with it."""
        try:
            self.saved = self._save()
        except DldError as error:
            host(self).show_error(error)
            return
        self.dismiss(None)

    def _save(self) -> str:
        tool = tool_of(from_json(ToolForm, self.query_one(ParamForm).values()))
        before = self.tool.name if self.tool else ""
        if tool.name != before and tool.name in store.load():
            raise UsageError(f"there is a tool {tool.name!r} already")
        store.save(tool, instead_of=before)
        return tool.name
