"""What onnx's version converter says when it gives up, as one line that names a node."""

from __future__ import annotations

import re

import onnx

from dld_tui.core.document.labels import Labels
from dld_tui.core.document.places import bodies
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.errors import ActivityError
from dld_tui.core.text import clip, visible

_NO_ADAPTER = re.compile(r"No Adapter (From|To) Version \$(\d+) for (\w+)")
_NO_PREVIOUS = re.compile(r"No Previous Version of (\w+) exists")
_UNKNOWN = re.compile(r"has no registered schema.* to %lld\.?(.+)$", re.DOTALL)
"""The operator follows, with the digits of two versions behind it."""
_SOURCE = re.compile(r"^\S+\.(?:h|cc|cpp):\d+: \w+: ")
_ASSERTION = re.compile(r"Assertion `.*?` failed: ")


class ConversionError(ActivityError):
    """A model, or a function of it, cannot be converted; says why in one line."""


def refusal(text: str, labels: Labels, model: onnx.ModelProto, version: int) -> ConversionError:
    """Return why the converter gave up.

    Args:
        text: Its message.
        labels: The labels in the model that it saw.
        model: The model with its real names.
        version: The version that was asked for.
    """
    if match := _NO_ADAPTER.search(text):
        end, step, op_type = match.groups()
        steps = f"from opset {step}" if end == "From" else f"to opset {step}"
        why = f"the converter cannot take {op_type} {steps} on the way to opset {version}"
        return ConversionError(why + _nodes(model, op_type))
    if match := _NO_PREVIOUS.search(text):
        op_type = match.group(1)
        return ConversionError(
            f"{op_type} does not exist in opset {version}" + _nodes(model, op_type)
        )
    if match := _UNKNOWN.search(text):
        known = {text_of(node.op_type) for _, body in bodies(model) for node in body.node}
        said = match.group(1)
        fitting = (name for name in known if said.removeprefix(name).isdigit())
        op_type = max(fitting, key=len, default=said)
        why = f"{visible(op_type)} is not an operator of ai.onnx"
        return ConversionError(why + _nodes(model, op_type))
    remark = labels.remarks(_ASSERTION.sub("", _SOURCE.sub("", text)))[0]
    return ConversionError(f"the converter stopped: {remark.message}")


def _nodes(model: onnx.ModelProto, op_type: str) -> str:
    """Return ``: node NAME and 3 more`` for the nodes of an operator."""
    found = [
        text_of(node.name) or f">{text_of(next(iter(node.output), ''))}"
        for _, body in bodies(model)
        for node in body.node
        if text_of(node.op_type) == op_type and node.domain in ("", "ai.onnx")
    ]
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f": node {clip(visible(found[0]), 120, keep='middle')}{more}"
