"""The attributes that many nodes share, by operator type, and what is to become of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dld_tui.core.document.edits.attributes import SETTABLE_KINDS
from dld_tui.core.document.literals import LiteralError, format_literal
from dld_tui.core.document.node import Attribute
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.types import JSON
from dld_tui.widgets.literal_preview import attribute_text, editable_text
from dld_tui.widgets.parameters_model import node_schema

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node

MIXED = "(mixed)"
UNSET = "(not set)"


@dataclass
class SharedAttribute:
    """One attribute of nodes of one operator type."""

    name: str
    kind: str
    set_in: int = 0
    """How many of the nodes have it set."""
    sample: Attribute | None = None
    """The one of the first node that has it."""
    mixed: bool = False
    """Whether the nodes have different values, or only some have it set."""
    default: str = ""
    """Literal of the operator's default, empty when it has none."""
    typed: str | None = None
    """The literal to set; None leaves the attribute as it is."""
    value: JSON = None
    """The value of `typed`, as ``set_attribute`` takes it."""
    removed: bool = False
    """Whether it is to be removed, so that the default holds."""

    @property
    def changed(self) -> bool:
        """Whether something is to become of it."""
        return self.removed or self.typed is not None

    @property
    def text(self) -> str:
        """What is shown of its value as it is. Escaped."""
        if self.mixed:
            return MIXED
        if self.sample is None:
            return self.default or UNSET
        return attribute_text(self.sample)

    @property
    def literal(self) -> str:
        """What editing begins with."""
        if self.typed is not None:
            return self.typed
        if self.mixed:
            return ""
        if self.sample is None:
            return self.default
        return editable_text(self.sample) or ""

    @property
    def dtype(self) -> str | None:
        """The element type of a tensor."""
        if self.kind != "tensor" or self.sample is None:
            return None
        dtype: str = self.sample.value.dtype
        return dtype


@dataclass
class TypeGroup:
    """The nodes of one operator type."""

    domain: str
    op_type: str
    nodes: list[Node] = field(default_factory=list)
    attributes: list[SharedAttribute] = field(default_factory=list)


def groups_of(nodes: Iterable[Node]) -> list[TypeGroup]:
    """Return what nodes share, the type with the most nodes first."""
    groups: dict[tuple[str, str], TypeGroup] = {}
    for node in nodes:
        key = (node.domain, node.op_type)
        groups.setdefault(key, TypeGroup(*key)).nodes.append(node)
    ordered = sorted(groups.values(), key=lambda group: (-len(group.nodes), group.op_type))
    for group in ordered:
        group.attributes = _shared(group.nodes)
    return ordered


def changes_of(groups: Sequence[TypeGroup]) -> list[JSON]:
    """Return the argument of the edit ``set_attributes``."""
    changes: list[JSON] = []
    for group in groups:
        attributes: dict[str, JSON] = {
            item.name: None if item.removed else {"kind": item.kind, "value": item.value}
            for item in group.attributes
            if item.changed
        }
        if attributes:
            nodes: list[JSON] = [[list(node.scope.path), node.ref] for node in group.nodes]
            changes.append({"nodes": nodes, "attributes": attributes})
    return changes


def _shared(nodes: Sequence[Node]) -> list[SharedAttribute]:
    found: dict[str, SharedAttribute] = {}
    first: dict[str, bytes] = {}
    schema = node_schema(nodes[0])
    for known in schema.attributes if schema is not None else ():
        if known.kind in SETTABLE_KINDS:
            default = _default_text(known.default, known.kind)
            found[known.name] = SharedAttribute(known.name, known.kind, default=default)
    for node in nodes:
        for proto in node.proto.attribute:
            name = text_of(proto.name)
            item = found.get(name)
            if item is None:
                kind = Attribute(node, proto).kind
                if kind not in SETTABLE_KINDS:
                    continue
                item = found[name] = SharedAttribute(name, kind)
            item.set_in += 1
            data = proto.SerializeToString()
            if item.sample is None:
                item.sample, first[name] = Attribute(node, proto), data
            elif data != first[name]:
                item.mixed = True
    for item in found.values():
        item.mixed |= 0 < item.set_in < len(nodes)
    return list(found.values())


def _default_text(default: object, kind: str) -> str:
    if default is None:
        return ""
    try:
        return format_literal(default, kind)
    except (LiteralError, TypeError):
        return ""
