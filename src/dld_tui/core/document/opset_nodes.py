"""Nodes before and after onnx's version converter: what it changed, and what it has lost."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from dld_tui.core.document.opset_failures import ConversionError
from dld_tui.core.document.wiretext import text_of


def is_same(old: onnx.NodeProto, made: onnx.NodeProto) -> bool:
    """Return whether the converter left a node as it was, but for what it does not know of."""
    if (old.op_type, _stripped(old.input), _stripped(old.output)) != (
        made.op_type, _stripped(made.input), _stripped(made.output)
    ):  # fmt: skip
        return False
    before = {attribute.name: attribute for attribute in old.attribute}
    after = {attribute.name: attribute for attribute in made.attribute}
    return before.keys() == after.keys() and all(
        _is_same_value(before[name], after[name]) for name in before
    )


def _is_same_value(old: onnx.AttributeProto, made: onnx.AttributeProto) -> bool:
    if old.ref_attr_name or old.HasField("g") or len(old.graphs):
        return True  # the converter loses references; graphs are merged by themselves
    plain: list[bytes] = []
    for attribute in (old, made):
        copied = onnx.AttributeProto()
        copied.CopyFrom(attribute)
        copied.ClearField("doc_string")
        copied.ClearField("type")
        tensors = [*copied.tensors, *([copied.t] if copied.HasField("t") else [])]
        for tensor in tensors:
            tensor.ClearField("doc_string")
            tensor.ClearField("name")
        plain.append(copied.SerializeToString())
    return plain[0] == plain[1]


def take_over(old: onnx.NodeProto, made: onnx.NodeProto) -> None:
    """Give a changed node what the converter does not know of.

    Raises:
        ConversionError: A parameter of the function has become an input, which it cannot be.
    """
    for attribute in old.attribute:
        if not attribute.ref_attr_name:
            continue
        theirs = next((a for a in made.attribute if a.name == attribute.name), None)
        if theirs is None:
            raise ConversionError(
                f"attribute {text_of(attribute.name)} of {text_of(old.op_type)} is a parameter of"
                " the function and would become an input"
            )
        theirs.CopyFrom(attribute)
    for name in ("name", "doc_string", "domain", "overload"):
        if old.HasField(name):
            setattr(made, name, getattr(old, name))
        else:
            made.ClearField(name)
    del made.metadata_props[:]
    made.metadata_props.extend(old.metadata_props)
    del made.device_configurations[:]
    made.device_configurations.extend(old.device_configurations)


def _stripped(names: Iterable[str]) -> list[str]:
    found = list(names)
    while found and not found[-1]:
        found.pop()
    return found


def rename(node: onnx.NodeProto, names: dict[str, str]) -> None:
    """Rename values that a node uses or makes."""
    for field_names in (node.input, node.output):
        if any(name in names for name in field_names):
            new = [names.get(name, name) for name in field_names]
            del field_names[:]
            field_names.extend(new)
