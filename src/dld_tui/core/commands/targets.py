"""Targets: the list of machines that are reached over SSH, and the form of one."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_APP = table(
    "app",
    ("app.targets", "targets", "", "", "targets",
     "Add, change and test the machines that activities run on over SSH."),
)
_LIST = table(
    "targets",
    ("targets.add", "add", "a", "", "add", "Save a connection to another machine."),
    ("targets.edit", "edit", "e", "target", "edit", "Change the connection."),
    ("targets.test", "test", "t,f5", "target", "test",
     "Connect, and say each step with the remedy for what fails."),
    ("targets.remove", "remove", "d,delete", "target", "remove",
     "Forget the connection, after asking."),
    ("targets.copy", "copy", "y", "target", "copy", "Copy the name, or what the test said."),
    footer="targets.add targets.edit targets.test targets.remove",
)
_FORM = table(
    "target_form",
    ("target_form.save", "save", "f5,ctrl+s", "valid", "save", "Save the connection."),
    ("target_form.next_page", "next_page", "ctrl+pagedown", "", "next page",
     "Show the next page."),
    ("target_form.previous_page", "previous_page", "ctrl+pageup", "", "previous page",
     "Show the previous page."),
    footer="target_form.save target_form.next_page", priority=True,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_APP, *_LIST, *_FORM)
