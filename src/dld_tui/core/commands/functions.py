"""Bodies of nodes and local functions."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_WORKSPACE = table(
    "workspace",
    ("function.list", "functions.show_list", "F", "", "functions",
     "List the local functions: signatures, attributes, instances."),
    ("function.make", "functions.make", "O", "nodes", "make function",
     "Make a function of the marked nodes, or of the one at the cursor, and call it instead."),
    ("function.inline", "functions.inline", "U", "call", "inline function",
     "Replace the call of a function at the cursor, or those marked, by the function's nodes."),
    ("function.plugin", "functions.replace_by_custom", "", "nodes", "replace by custom",
     "Put one custom node, such as a plugin's, in the place of the marked nodes."),
    ("function.reference", "functions.refer", "A", "inside_function", "refer to attribute",
     "Let the attribute at the cursor take its value from one of the function's."),
    ("body.menu", "bodies.show_menu", "L", "node", "bodies",
     "Add, copy, move or delete a body of the node."),
    common="document",
    menus={"function.list": "scope", "function.inline": "node", "function.reference": "attribute"},
)
_FUNCTIONS = table(
    "functions",
    ("functions.open", "open", "s", "function", "open", "Show the nodes of the function."),
    ("functions.create", "create", "a,insert", "", "create", "Add a function without nodes."),
    ("functions.rename", "rename", "r", "function", "rename",
     "Rename the function, and with it its instances."),
    ("functions.duplicate", "duplicate", "y", "function", "duplicate",
     "Add a copy under another name."),
    ("functions.delete", "delete", "d,delete", "function", "delete",
     "Delete the function; its instances become custom operators."),
    ("functions.instances", "instances", "i", "called", "go to instance",
     "Go to a node that calls the function."),
    ("functions.inline", "inline_all", "U", "called", "inline all",
     "Replace every instance of the function by its nodes."),
    ("functions.attributes", "attributes", "e", "function", "attributes",
     "Declare attributes of the function, with defaults or without."),
    ("functions.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Take back the last edit."),
    ("functions.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
     "Do again what was taken back."),
    footer="functions.create functions.rename functions.duplicate functions.instances"
    " functions.attributes functions.delete",
)
# fmt: on

ROWS: tuple[Command, ...] = (*_WORKSPACE, *_FUNCTIONS)
