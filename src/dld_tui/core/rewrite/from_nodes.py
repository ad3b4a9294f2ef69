"""The pattern that some nodes are: where is the same again?"""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.document.node import Attribute, Node
from dld_tui.core.document.traversal import places, terminals
from dld_tui.core.errors import UsageError
from dld_tui.core.rewrite.matcher import Ends

_PLAIN = ("int", "ints", "float", "floats", "string")
_MOST_VALUES = 8


def pattern_of(nodes: Sequence[Node]) -> str:
    """Return the text of a pattern that finds nodes of one scope, and others that are linked so.

    Weights are inputs, as others have others. Attributes must be the same; large ones, tensors and
    bodies are left out.

    Raises:
        UsageError: There are none, they are of several scopes, or nothing uses what they make.
    """
    if not nodes:
        raise UsageError("there are no nodes to make a pattern of")
    scope = nodes[0].scope
    if any(node.scope is not scope for node in nodes):
        raise UsageError("the nodes are in several graphs", hint="Mark those of one graph")
    place = places(scope, list(nodes))
    ordered = sorted(place, key=place.__getitem__)
    taken, given = terminals(scope, ordered)
    names: dict[str, str] = {}
    for value in taken:
        names[value] = f"x{len(names) + 1}"
    made = [name for node in ordered for name in node.outputs if name]
    for at, value in enumerate(made, 1):
        names[value] = f"v{at}"
    captured = set(names) - {name for node in ordered for name in (*node.inputs, *node.outputs)}
    ends = Ends(scope)
    lines = []
    for node in ordered:
        outputs = list(node.outputs)
        while len(outputs) > 1 and not (outputs[-1] and ends.is_used_beside(outputs[-1], ())):
            outputs.pop()
        left = ", ".join(names.get(name, '""') for name in outputs)
        inputs = ", ".join(names.get(name, '""') for name in node.inputs)
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        lines.append(f"{left} = {operator}{_attributes(node)}({inputs})")
    heads = ", ".join(names[name] for name in taken if name not in captured)
    results = ", ".join(names[name] for name in given if name)
    if not results:
        raise UsageError("these nodes make nothing")
    return f"({heads}) => ({results}) {{ {'; '.join(lines)} }}"


def _attributes(node: Node) -> str:
    found = [text for one in node.attributes() if (text := _attribute(one))]
    return f" <{', '.join(found)}> " if found else ""


def _attribute(attribute: Attribute) -> str:
    if attribute.kind not in _PLAIN or attribute.reference or not attribute.name.isidentifier():
        return ""
    value = attribute.value
    if isinstance(value, list) and len(value) > _MOST_VALUES:
        return ""
    if isinstance(value, bytes):
        text = value.decode("utf-8", "surrogateescape")
        return f"{attribute.name} = '{text}'" if text.isidentifier() else ""
    return f"{attribute.name} = {value!r}"
