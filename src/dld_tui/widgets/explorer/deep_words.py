"""Words of a search that look deeper than types and names of nodes: shapes and values.

``[1,3,224`` and ``3x224x224`` are the shape of a tensor that a node takes or makes, ``f32[`` its
type, too; ``axis=1`` is an attribute, ``=0.5`` an attribute or an element of a small constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.errors import DldError
from dld_tui.core.model.document.operator_matching import attribute_word
from dld_tui.core.model.tensors.literals import parse_literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope

    Known = dict[tuple[Scope, str], bool]

_FLOAT32_STEP = 6e-8
"""By how much, as a share, a number and the float32 next to it may differ."""
_MOST = 16
"""Elements of a constant that is looked into."""


def holds_deep(node: Node, word: str, known: Known) -> bool:
    """Return whether a word is a shape or value of a node.

    Args:
        node: The node.
        word: The word, in lower case.
        known: What earlier calls with this word have found out of tensors.
    """
    name, equals, text = word.partition("=")
    if equals:
        return bool(text) and _has_value(node, name.strip("@"), text, known)
    wanted = word if "[" in word else f"[{word.replace('x', ',')}]"
    scope = node.scope
    for value in (*node.outputs, *node.inputs):
        verdict = known.get((scope, value))
        if verdict is None:
            of = scope.value_type(value) if value else None
            verdict = of is not None and (wanted in of.short.lower() or wanted in _long(of.text))
            known[scope, value] = verdict
        if verdict:
            return True
    return False


def _long(text: str) -> str:
    return text.lower().replace(" ", "")


def _has_value(node: Node, name: str, text: str, known: Known) -> bool:
    wanted = _plain(text)
    for attribute in node.attributes():
        if name and attribute.name.lower() != name:
            continue
        if (word := attribute_word(attribute)) is not None and word.lower() == text:
            return True
        values = attribute.value if isinstance(attribute.value, list) else [attribute.value]
        if _long(str(attribute.value)) == text or any(_is(value, wanted) for value in values):
            return True
    return not name and any(_is_constant(node.scope, value, wanted, known) for value in _ends(node))


def _ends(node: Node) -> Iterator[str]:
    return filter(None, (*node.inputs, *node.outputs))


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


def _is_constant(scope: Scope, name: str, wanted: object, known: Known) -> bool:
    """Return whether a tensor is a small constant with an element."""
    verdict = known.get((scope, name))
    if verdict is None:
        verdict = known[scope, name] = any(_is(value, wanted) for value in _elements(scope, name))
    return verdict


def _elements(scope: Scope, name: str) -> list[object]:
    definition = scope.resolve(name)
    if definition is None:
        return []
    tensor = definition.scope.initializer(name)
    if tensor is None and definition.node is not None and definition.node.op_type == "Constant":
        tensor = definition.node.tensor("value")
    if tensor is None or tensor.element_count > _MOST:
        return []
    try:
        return tensor.listed()
    except DldError:
        return []
