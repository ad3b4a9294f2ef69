"""What must hold for a command to run, and the reason shown while it does not."""

from __future__ import annotations

from collections.abc import Mapping

FACTS: Mapping[str, str] = {
    "document": "no model is open",
    "report": "no report is open",
    "tab": "nothing is open",
    "tabs": "only one thing is open",
    "dirty": "nothing is changed",
    "can_undo": "nothing to undo",
    "can_redo": "nothing to redo",
    "node": "no node under the cursor",
    "nodes": "no node under the cursor or marked",
    "attribute": "no attribute under the cursor",
    "value": "no value under the cursor",
    "body": "this node has no body",
    "history": "no earlier place",
    "forward": "no later place",
    "layer": "no layer under the cursor",
    "linked": "the layer has no ONNX node",
    "model": "the model of the report is not found",
    "compared": "the models are not compared yet",
    "old_node": "the old model has no such node",
    "new_node": "the new model has no such node",
    "running": "nothing runs",
    "finished": "the job still runs",
    "result": "the job has no result",
    "valid": "the form has an error",
    "marks": "nothing is marked",
    "searched": "nothing was searched for",
}
"""Fact to the reason shown while it does not hold."""
