"""Operators: adding nodes, documentation, opset imports."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_ADD = table(
    "workspace",
    ("node.add", "operators.add", "a,ctrl+space,ctrl+@", "", "add",
     "Add an operator, and choose what feeds it."),
    ("model.opsets", "operators.show_opsets", "V", "", "operator sets",
     "Import operator sets, change their versions, remove them."),
    common="document", footer="node.add", menus={"node.add": "node output"},
)
_READ = table(
    "app",
    ("app.operators", "operators", "f3", "", "operators", "Read what each operator does."),
)
_NEW = table(
    "new_model",
    ("new_model.create", "create", "f5,ctrl+s", "valid", "create", "Open the new model in a tab."),
    ("new_model.copy", "copy_command", "f9", "", "copy command", "Copy the equal command line."),
    footer="new_model.create new_model.copy", priority=True,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_ADD, *_READ, *_NEW)
