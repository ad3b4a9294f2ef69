"""Custom tools: the list of programs that are run on models, and the form of one."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_APP = table(
    "app",
    ("app.tools", "tools", "f10", "", "custom tools",
     "Run programs of yours on the open model; add and change them."),
)
_LIST = table(
    "tools",
    ("tools.run", "run", "f5", "document tool", "run",
     "Run the tool on the open model, edits included."),
    ("tools.add", "add", "a", "", "add", "Save a program and its arguments as a tool."),
    ("tools.edit", "edit", "e", "tool", "edit", "Change the tool."),
    ("tools.remove", "remove", "d,delete", "tool", "remove", "Forget the tool, after asking."),
    ("tools.copy", "copy", "y", "tool", "copy", "Copy the application and its arguments."),
    footer="tools.run tools.add tools.edit tools.remove",
)
_FORM = table(
    "tool_form",
    ("tool_form.save", "save", "f5,ctrl+s", "valid", "save", "Save the tool."),
    footer="tool_form.save", priority=True,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_APP, *_LIST, *_FORM)
