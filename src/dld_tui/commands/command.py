"""A command of the TUI, the facts that it may need, and how the rows of an area are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

FACTS: Mapping[str, str] = {
    "document": "no model is open",
    "report": "no report is open",
    "optimized": "the run saved no optimised model, see --optimized-model",
    "graph": "the graph is not there yet",
    "tab": "nothing is open",
    "tabs": "only one thing is open",
    "dirty": "nothing to save",
    "can_undo": "nothing to undo",
    "can_redo": "nothing to redo",
    "node": "no node under the cursor",
    "nodes": "no node under the cursor or marked",
    "attribute": "no attribute under the cursor",
    "value": "no value under the cursor",
    "body": "this node has no body",
    "call": "no call of a function under the cursor or marked",
    "inside_function": "only attributes inside a function can refer to those of the function",
    "function": "there is no function: {functions.create} adds one",
    "called": "nothing calls this function",
    "end": "no node, input or output under the cursor",
    "input": "no input of a node under the cursor",
    "wired": "nothing is connected here",
    "variadic": "this operator takes no more inputs",
    "boundary": "no input or output of a graph under the cursor",
    "item": "nothing under the cursor that can be taken out",
    "cursor": "nothing is under the cursor",
    "finding": "no finding under the cursor",
    "trtexec": "trtexec has nothing to do with this",
    "presets": "no preset is saved yet",
    "failed_node": "the job did not fail at a node",
    "fixable": "no finding under the cursor that can be repaired",
    "repairs": "nothing was found that can be repaired",
    "entry": "nothing to change under the cursor",
    "range": "there is no profile yet: {profiles.add} adds one",
    "dynamic": "no input has a dimension that is not fixed",
    "target": "no target under the cursor: {targets.add} adds one",
    "tickable": "the field under the cursor has no list",
    "targets": "there is only this machine: add a target first",
    "job": "no job under the cursor",
    "tool": "no tool under the cursor: {tools.add} adds one",
    "tensor": "no tensor under the cursor",
    "tensor_node": "no tensor under the cursor that a node makes",
    "diverges": "every tensor is within its tolerance",
    "precisions": "the search has no result to apply",
    "kept_node": "no node under the cursor",
    "faster": "nothing was faster for sure",
    "avoids": "the search found no tactics to avoid",
    "file": "the model has no file yet: save it first",
    "initializer": "no initializer under the cursor",
    "initializers": "no initializer under the cursor or marked",
    "external_initializer": "the values of this tensor are in no data file",
    "external": "the values of the tensor are in no data file",
    "used_initializer": "nothing uses this initializer",
    "cell": "the tensor has no elements to show",
    "figure": "the elements are no numbers",
    "stored": "what is shown is worked out of what is stored: {tensor.face} goes on to that",
    "faces": "the tensor is no part of a weight in few bits",
    "slices": "the tensor has at most two dimensions",
    "matrix": "the tensor has one dimension",
    "history": "no earlier place",
    "forward": "no later place",
    "model_file": "no model under the cursor",
    "layer": "no layer under the cursor",
    "plan": "the engine is not read yet",
    "log": "the log is not read yet",
    "log_command": "the log does not say which command was run",
    "log_layers": "the log tells of no layers",
    "kernels": "this pass has no work of a GPU",
    "linked": "the layer has no ONNX node",
    "ruled": "no finding is chosen that a rule does away with",
    "model": "the model of the report is not found",
    "comparison": "the reports are not compared yet",
    "compared_layer": "no layer under the cursor",
    "compared_node": "the row has no ONNX node in a known model",
    "compared_engine": "no engine is compared",
    "compared": "the models are not compared yet",
    "old_node": "the old model has no such node",
    "new_node": "the new model has no such node",
    "running": "nothing runs",
    "finished": "the job still runs",
    "result": "the job has no result",
    "valid": "the form has an error",
    "marks": "nothing is marked",
    "copied": "no nodes were copied",
    "searched": "nothing was searched for",
}
"""Fact to the reason shown while it does not hold."""


@dataclass(frozen=True)
class Command:
    """One thing a user can do."""

    id: str
    """``area.verb``; also the name under ``[keys]`` in config.toml."""
    title: str
    """One to three words, for the footer and the palette."""
    help: str
    """One sentence."""
    keys: str = ""
    """Default keys, comma separated, in Textual's names; the first is the one shown."""
    scope: str = "app"
    """Who has the action: ``app``, ``list``, ``table``, ``workspace``, ``explorer``, …"""
    action: str = ""
    """Name of the action; by default the part of the id after the dot.

    With a dot in it, a controller of the screen and its method: ``editing.edit``.
    """
    needs: tuple[str, ...] = ()
    """Facts that must hold, keys of :data:`FACTS`."""
    footer: bool = False
    """Among the few that the footer shows."""
    palette: bool = True
    priority: bool = False
    """Wins over the focused widget, text fields too."""
    parameter: str = ""
    """An argument of the action."""
    menu: tuple[str, ...] = ()
    """What the context menu offers it on, besides what its needs tell: see :data:`PLACES`."""

    synonyms: tuple[str, ...] = ()
    """Other words under which the palette finds it."""

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

    def unavailable(self, facts: Collection[str]) -> str | None:
        """Return why it cannot run now, or None when it can."""
        return next((FACTS[need] for need in self.needs if need not in facts), None)


def table(
    scope: str,
    *rows: tuple[str, str, str, str, str, str],
    common: str = "",
    footer: str = "",
    palette: bool = True,
    priority: bool = False,
    menus: Mapping[str, str] | None = None,
) -> tuple[Command, ...]:
    """Return the rows of a scope: (id, action, keys, facts it needs, title, help).

    Args:
        scope: Who has the actions.
        common: Facts that all of them need.
        footer: The ids that the footer shows.
        palette: False for movements, which make no sense in a menu.
        priority: True when they win over a text field.
        menus: What the context menu offers a command on, by its id: see :data:`PLACES`.
    """
    made = []
    for id, action, keys, needs, title, help in rows:
        name, _, parameter = action.partition(" ")
        facts = tuple(f"{common} {needs}".split())
        shown = id in footer.split()
        made.append(Command(
            id, title, help, keys, scope, name, facts, shown, palette, priority, parameter,
            tuple((menus or {}).get(id, "").split()),
        ))  # fmt: skip
    return tuple(made)


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
"""What can be under the cursor."""

_FITS: Mapping[str, str] = {
    "node": "node",
    "nodes": "node",
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
    "linked": "layer",
}
"""Fact to the places on which a command that needs it makes sense."""

_ELSEWHERE: Mapping[str, str] = {"mark": "mark.menu"}
"""Areas whose commands have a menu of their own, and the command that shows it."""


def fits(command: Command, place: str) -> bool:
    """Return whether the context menu on a place offers a command."""
    shown = _ELSEWHERE.get(command.id.partition(".")[0], command.id)
    if not command.palette or command.id != shown:
        return False
    if command.id in _ELSEWHERE.values():
        return place in ("node", "scope")
    return place in command.menu or any(place in _FITS.get(n, "").split() for n in command.needs)
