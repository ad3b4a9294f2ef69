"""Which commands the context menu offers on what is under the cursor.

A command that needs a node fits a node, and so on: the facts that it needs say where it belongs, so
that a new command appears by itself. Where they do not say enough, ``Command.menu`` names more
places.
"""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.core.commands.model import Command

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
