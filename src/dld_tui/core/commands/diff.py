"""The screen that compares two models."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_DIFF = table(
    "diff",
    ("diff.filter", "filter_status", "f", "compared", "filter",
     "Show only what was added, removed, changed, renamed or moved."),
    ("diff.all", "toggle_same", "a", "compared", "all nodes",
     "Show the nodes that are the same, too."),
    ("diff.previous", "previous_change", "left_square_bracket", "compared", "previous change",
     "Go to the change before."),
    ("diff.next", "next_change", "right_square_bracket", "compared", "next change",
     "Go to the next change."),
    ("diff.new", "show_new", "s", "new_node", "new model", "Show the node in the new model."),
    ("diff.old", "show_old", "o", "old_node", "old model", "Show the node in the old model."),
    ("diff.again", "again", "f5", "compared", "compare again", "Compare the files once more."),
    ("diff.clear", "clear", "escape", "", "clear", "Stop comparing, or show all changes again."),
    footer="diff.filter diff.all diff.next diff.new diff.old",
)
# fmt: on

ROWS: tuple[Command, ...] = (*_DIFF,)
