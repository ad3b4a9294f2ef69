"""Links: connecting, rewiring, inputs and outputs; the context menu."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_LINKS = table(
    "workspace",
    ("link.connect", "wiring.connect", "c", "end", "connect",
     "Connect what is under the cursor: search the other end."),
    ("link.disconnect", "wiring.disconnect", "K", "wired", "disconnect",
     "Take the value away from this input, or from all users of this output."),
    ("link.replace", "wiring.replace_uses", "R", "value", "replace uses",
     "Give all users of the value another one."),
    ("link.insert", "wiring.insert_on_link", "I", "value", "insert on link",
     "Put a new node on this link, or between an output and all of its users."),
    ("link.bypass", "wiring.bypass", "", "nodes", "bypass",
     "Lead the values past the marked nodes, or the one at the cursor; the nodes stay."),
    ("link.add", "wiring.add_terminal", "", "variadic", "add input",
     "Connect one more value to an operator that takes any number."),
    ("link.remove", "wiring.remove_terminal", "", "item", "remove terminal",
     "Take the input or output out of its list; those after it move up."),
    ("link.graph_input", "wiring.make_input", "", "input", "make graph input",
     "Make a new graph input and connect it here."),
    ("link.graph_output", "wiring.make_output", "", "value", "make graph output",
     "Make the value an output of the graph."),
    ("link.type", "wiring.declare_type", "T", "value", "set type",
     "Declare the type and shape of the value."),
    ("link.earlier", "wiring.move_terminal -1", "shift+up", "boundary", "move up",
     "Move the graph's input or output up among the others."),
    ("link.later", "wiring.move_terminal 1", "shift+down", "boundary", "move down",
     "Move the graph's input or output down among the others."),
    common="document", footer="link.connect",
    menus={"link.replace": "node", "link.insert": "node", "link.graph_output": "node"},
)
_MENU = table(
    "workspace",
    ("menu.open", "context_menu", "full_stop", "cursor", "menu",
     "Show the commands for what is under the cursor."),
    common="document", palette=False,
)
_REPORT_MENU = table(
    "report",
    ("report.menu", "context_menu", "full_stop", "layer", "menu",
     "Show the commands for the layer under the cursor."),
    palette=False,
)

ROWS: tuple[Command, ...] = (*_LINKS, *_MENU, *_REPORT_MENU)
