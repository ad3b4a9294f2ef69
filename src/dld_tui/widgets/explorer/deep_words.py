"""Words of a search that look deeper than types and names of nodes: shapes and values.

``[1,3,224`` and ``3x224x224`` are the shape of a tensor that a node takes or makes, ``f32[`` its
type, too; ``axis=1`` is an attribute, ``=0.5`` an attribute or an element of a small constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.document.literals import parse_literal
from dld_tui.core.errors import DldError
from dld_tui.core.operators.attribute_words import attribute_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dld_tui.core.document.node import Node

_FLOAT32_STEP = 6e-8
"""By how much, as a share, a number and the float32 next to it may differ."""
_MOST = 16
"""Elements of a constant that is looked into."""


def holds_deep(node: Node, word: str) -> bool:
    """Return whether a word is a shape or value of a node."""
    name, equals, text = word.partition("=")
    if equals:
        return bool(text) and _has_value(node, name.strip("@"), text)
    wanted = word if "[" in word else f"[{word.replace('x', ',')}]"
    scope = node.scope
    for value in (*node.outputs, *node.inputs):
        known = scope.value_type(value) if value else None
        if known is not None and (wanted in known.short.lower() or wanted in _long(known.text)):
            return True
    return False


def _long(text: str) -> str:
    return text.lower().replace(" ", "")


def _has_value(node: Node, name: str, text: str) -> bool:
    wanted = _plain(text)
    for attribute in node.attributes():
        if name and attribute.name.lower() != name:
            continue
        if (word := attribute_word(attribute)) is not None and word.lower() == text:
            return True
        values = attribute.value if isinstance(attribute.value, list) else [attribute.value]
        if _long(str(attribute.value)) == text or any(_is(value, wanted) for value in values):
            return True
    return not name and any(_is(value, wanted) for value in _constants(node))


def _plain(text: str) -> object:
    for kind in ("int", "float"):
        try:
            return parse_literal(text, kind)
        except DldError:
            continue
    return text


def _is(value: object, wanted: object) -> bool:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").lower() == wanted
    if type(value) is float and isinstance(wanted, int | float):
        return value == wanted or abs(value - wanted) < abs(wanted) * _FLOAT32_STEP
    return type(value) in (int, float, bool) and value == wanted


def _constants(node: Node) -> Iterator[object]:
    """Yield the elements of small constants that a node takes or is."""
    for name in (*node.inputs, *node.outputs):
        definition = node.scope.resolve(name) if name else None
        if definition is None:
            continue
        tensor = definition.scope.initializer(name)
        if tensor is None and definition.node is not None and definition.node.op_type == "Constant":
            tensor = definition.node.tensor("value")
        if tensor is not None and tensor.element_count <= _MOST:
            try:
                yield from tensor.read().reshape(-1).tolist()
            except DldError:
                continue
