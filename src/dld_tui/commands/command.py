"""Commands of the TUI, the conditions that they need, and the tables that declare them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dld_tui.core.dataclass import dataclass

CONDITIONS: Mapping[str, str] = {
    "document": "no model is open",
    "form": "it does not come from a form",
    "result_file": "it is in no file: measure again with a path for the result",
    "report": "no report is open",
    "optimized": "the run saved no optimised model: use --optimized-model",
    "graph": "the graph is still loading",
    "tab": "no file is open",
    "tabs": "only one file is open",
    "dirty": "no unsaved changes",
    "can_undo": "nothing to undo",
    "can_redo": "nothing to redo",
    "node": "no node at the cursor",
    "named": "nothing with a name at the cursor",
    "nodes": "no node at the cursor or marked",
    "deletable": "nothing to delete at the cursor",
    "attribute": "no attribute at the cursor",
    "value": "no tensor at the cursor",
    "body": "this node has no subgraph",
    "call": "no function call at the cursor or marked",
    "inside_function": "only attributes inside a function can refer to its attributes",
    "function": "no function yet: {functions.create} creates one",
    "called": "this function is never called",
    "end": "no node, input or output at the cursor",
    "input": "no node input at the cursor",
    "wired": "nothing is connected here",
    "variadic": "this operator takes no more inputs",
    "boundary": "no graph input or output at the cursor",
    "item": "no removable input or output at the cursor",
    "cursor": "nothing at the cursor",
    "finding": "no finding at the cursor",
    "trtexec": "trtexec has no equivalent",
    "presets": "no saved preset",
    "failed_node": "the job did not fail at a node",
    "fixable": "no fixable finding at the cursor",
    "repairs": "no fixable findings",
    "entry": "nothing editable at the cursor",
    "range": "no profile yet: {profiles.add} adds one",
    "dynamic": "no input has a dynamic dimension",
    "target": "no target at the cursor: {targets.add} adds one",
    "tickable": "the field at the cursor has no list",
    "targets": "no targets yet: add one first",
    "job": "no job at the cursor",
    "tool": "no tool at the cursor: {tools.add} adds one",
    "tensor": "no tensor at the cursor",
    "tensor_node": "no tensor with a producer at the cursor",
    "diverges": "all tensors are within their tolerance",
    "precisions": "the search has no result to apply",
    "kept_node": "no node at the cursor",
    "faster": "no candidate was significantly faster",
    "avoids": "the search found no tactics to avoid",
    "file": "the model has no file yet: save it first",
    "initializer": "no initializer at the cursor",
    "initializers": "no initializer at the cursor or marked",
    "external_initializer": "this tensor has no external data",
    "external": "the tensor has no external data",
    "used_initializer": "this initializer has no consumer",
    "cell": "the tensor has no elements to show",
    "figure": "the elements are not numbers",
    "rows": "the tensor has no dimensions, so no rows",
    "typed": "all elements of this attribute have its type",
    "stored": "this view is computed, not stored: {tensor.face} switches to stored data",
    "faces": "the tensor is not part of a low-bit weight",
    "slices": "the tensor has at most two dimensions",
    "matrix": "the tensor has one dimension",
    "history": "no earlier place",
    "forward": "no later place",
    "model_file": "no model at the cursor",
    "layer": "no layer at the cursor",
    "layer_row": "no layer at the cursor",
    "plan": "the engine plan is still loading",
    "log": "the log is still loading",
    "log_command": "the log does not contain the command",
    "log_layers": "the log lists no layers",
    "kernels": "this pass has no GPU kernels",
    "linked": "the layer has no ONNX node",
    "ruled": "no finding with a rewrite rule is selected",
    "model": "the model of the report was not found",
    "comparison": "the comparison is still loading",
    "compared_layer": "no layer at the cursor",
    "compared_node": "the row has no ONNX node in a known model",
    "compared_engine": "no engine is being compared",
    "compared": "the comparison is still loading",
    "old_node": "the old model has no such node",
    "new_node": "the new model has no such node",
    "running": "nothing is running",
    "finished": "the job is still running",
    "result": "the job has no result",
    "valid": "the form has an error",
    "marks": "nothing is marked",
    "copied": "no nodes were copied",
    "searched": "no search yet",
}
"""Condition to the reason shown while it does not hold."""


@dataclass(frozen=True)
class Command:
    """A command of the user interface."""

    id: str
    """``area.verb``; also the name under ``[keys]`` in config.toml."""
    title: str
    """One to three words, for the footer and the palette."""
    help: str
    """One sentence."""
    keys: str = ""
    """Default keys, comma separated, in Textual's names; the first is the one shown."""
    scope: str = "app"
    """Owner of the action: ``app``, ``list``, ``table``, ``workspace``, ``explorer``, …"""
    action: str = ""
    """Name of the action; by default the part of the id after the dot.

    With a dot in it, a controller of the screen and its method: ``editing.edit``.
    """
    needs: tuple[str, ...] = ()
    """Conditions that must hold: keys of :data:`CONDITIONS`."""
    footer: bool = False
    """Whether the footer shows the command."""
    palette: bool = True
    priority: bool = False
    """Wins over the focused widget, text fields too."""
    parameter: str = ""
    """Argument of the action."""
    menu: tuple[str, ...] = ()
    """Further places whose context menu offers it: see :data:`PLACES`."""
    group: str = "Edit"
    """One of :data:`GROUPS`, by which a context menu sorts."""

    synonyms: tuple[str, ...] = ()
    """Search words of the palette besides title and help."""

    @property
    def action_name(self) -> str:
        """Return the action's name without ``action_`` and without its argument."""
        return self.action or self.id.partition(".")[2]

    @property
    def action_string(self) -> str:
        """Return the action with its argument, as a binding wants it."""
        name, arguments = self.action_name, [self.parameter] if self.parameter else []
        if "." in name:  # Textual's actions have no targets but widgets
            name, arguments = "command", [name, *arguments]
        return f"{name}({', '.join(map(repr, arguments))})" if arguments else name

    def unavailable(self, conditions: Collection[str]) -> str | None:
        """Return the reason why it cannot run now, or None if it can."""
        return next((CONDITIONS[need] for need in self.needs if need not in conditions), None)


known: dict[str, Command] = {}
"""The commands of the modules that are imported, by their ids, in order."""
known_by_scope: dict[str, dict[str, Command]] = {}
"""The same by scope and action; of several that run one action, the first."""


def table(
    scope: str,
    *rows: tuple[str, ...],
    common: str = "",
    footer: str = "",
    palette: bool = True,
    priority: bool = False,
    menus: Mapping[str, str] | None = None,
    group: str = "",
) -> tuple[Command, ...]:
    """Declare commands beside the methods that they run.

    Args:
        scope: Owner of the actions.
        rows: (id, action, keys, needs, title, help), and perhaps search words of the palette,
            comma separated. See :class:`Command`; an argument of the action follows it.
        common: Conditions that all commands need.
        footer: Ids of the commands in the footer.
        palette: Whether the palette lists them; False for movements.
        priority: Whether their keys win over a focused text field.
        menus: Command id to the places whose context menu offers it: see :data:`PLACES`.
        group: One of :data:`GROUPS`; by default that of the area.
    """
    commands = []
    for id, action, keys, needs, title, help, *words in rows:
        name, _, parameter = action.partition(" ")
        conditions = tuple(f"{common} {needs}".split())
        shown = id in footer.split()
        commands.append(Command(
            id, title, help, keys, scope, name, conditions, shown, palette, priority, parameter,
            tuple((menus or {}).get(id, "").split()),
            group or ("Go" if id.partition(".")[0] in _GOES else "Edit"),
            tuple(word.strip() for text in words for word in text.split(",")),
        ))  # fmt: skip
    for command in commands:
        known[command.id] = command
        known_by_scope.setdefault(scope, {}).setdefault(command.action_name, command)
    return tuple(commands)


def in_order(*tables: tuple[Command, ...]) -> tuple[Command, ...]:
    """Return the commands of several tables as one; palette, help and menus list them so."""
    commands = tuple(command for rows in tables for command in rows)
    for command in commands:
        known[command.id] = known.pop(command.id)
    return commands


GROUPS = ("Go", "Edit", "Mark")
"""Kinds of commands in a context menu, in their order."""
_GOES = frozenset({"go", "view", "graph", "report", "plan"})
"""Areas whose commands change what is seen, and no model."""
PLACES: Mapping[str, str] = {
    "node": "a node",
    "input": "an input of a node",
    "output": "an output of a node, or a user of one",
    "boundary": "an input or output of a graph or function",
    "attribute": "an attribute of a node",
    "initializer": "an initializer",
    "metadata": "a metadata entry or doc string",
    "scope": "a graph, a function, or a branch of the list",
    "finding": "a finding",
    "layer": "a layer of a report",
}
"""What can be at the cursor."""

DIGITS: Mapping[str, str] = {
    "edit.copy_name": "1",
    "edit.operator": "2",
    "edit.add_attribute": "3",
    "edit.fold": "4",
    "link.bypass": "5",
    "link.add": "6",
    "link.remove": "7",
    "link.graph_output": "8",
    "link.graph_input": "9",
    "edit.rename_many": "0",
}
"""The digits of commands without a key, the same in the menus of all places."""
_FITS: Mapping[str, str] = {
    "node": "node",
    "nodes": "node",
    "named": "node",
    "deletable": "node",
    "marks": "node",
    "body": "node",
    "attribute": "attribute",
    "value": "input output boundary",
    "end": "node input output boundary",
    "input": "input",
    "wired": "input output",
    "variadic": "node input",
    "boundary": "boundary",
    "item": "input output",
    "tensor": "initializer attribute input",
    "call": "node",
    "copied": "node scope",
    "inside_function": "attribute",
    "fixable": "finding",
    "finding": "finding",
    "layer": "layer",
    "layer_row": "layer",
    "linked": "layer",
}
"""Condition to the places whose context menu offers commands that need it."""

_ELSEWHERE: Mapping[str, str] = {"mark": "mark.menu"}
"""Area to the command that opens the separate menu of the area."""


def fits(command: Command, place: str) -> bool:
    """Return whether the context menu on a place offers a command."""
    shown = _ELSEWHERE.get(command.id.partition(".")[0], command.id)
    if not command.palette or command.id != shown:
        return False
    if command.id in _ELSEWHERE.values():
        return place in ("node", "scope")
    return place in command.menu or any(place in _FITS.get(n, "").split() for n in command.needs)
