"""ONNX nodes as engine layers name them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from dld_tui.core.plan.mapping_metadata import Entry
from dld_tui.core.plan.mapping_names import (
    is_helper,
    looks_like_tensor,
    looks_like_weights,
    softer,
)

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.plan.mapping_model import ModelNames

NODE_OF = "node_of_"
"""What the parser calls a node without a name, followed by its first output."""


@dataclass(frozen=True)
class NodeRef:
    """An ONNX node that a layer computes. Foreign text."""

    name: str
    """`Node.name`; for a node without one, ``node_of_`` and its first output."""
    scope: tuple[str, ...] = ()
    """`Scope.path` of the graph, subgraph or function body that holds it."""
    op_type: str = ""
    """Empty when the model is not known."""
    ref: str = ""
    """`Node.ref` in its scope; the name when the model is not known."""
    calls: tuple[str, ...] = ()
    """The nodes that call the local functions it is in, the outermost first."""
    node: Node | None = field(default=None, compare=False, repr=False)
    """The node itself, when the model is known."""

    @property
    def label(self) -> str:
        """The name after the calls or the scope that it is in."""
        return " › ".join((*(self.calls or self.scope), self.name))


How: TypeAlias = Literal["metadata", "name", "range", "join", "myelin", "none"]
"""What the nodes of a layer were told from: its metadata; its name, that of one node; a range or a
join in its name; nothing, as its name was made by the compiler of fused parts, or means nothing."""

Sureness: TypeAlias = Literal["exact", "likely", "guess", "none"]
"""``exact``: named so. ``likely``: found by a rule, or some names are not in the model. ``guess``:
several nodes go by the name, or a range without a path. ``none``: no node is known."""


@dataclass(frozen=True)
class LayerNodes:
    """The ONNX nodes of one engine layer."""

    nodes: tuple[NodeRef, ...] = ()
    how: How = "none"
    confidence: Sureness = "none"
    inserted: bool = False
    """TensorRT put this layer in for the nodes: a copy to another format, type or device."""
    truncated: bool = False
    """The metadata was cut, so there may be more nodes."""
    missing: tuple[str, ...] = ()
    """Names that the model does not have. Foreign text."""


@dataclass(frozen=True)
class Found:
    """What a part of a layer's name stands for."""

    nodes: tuple[NodeRef, ...] = ()
    sure: bool = True
    """The name is exactly that of the node, and of no other."""
    aside: bool = False
    """It is not the node itself but what TensorRT put beside it."""
    explained: bool = True
    """False when nothing is known of this text."""


HELPER = Found()
UNKNOWN = Found(explained=False)


class TextNames:
    """Names without a model: each is taken for a node unless it is known to be none."""

    longest = 0
    document: Document | None = None

    def known(self, text: str) -> bool:
        """Tell whether a text is the name of a node: nobody knows."""
        return False

    def find(self, text: str) -> Found:
        """Return what a part of a layer's name stands for."""
        if is_helper(text) or looks_like_weights(text) or looks_like_tensor(text):
            return HELPER
        for name, aside in softer(text)[:1]:
            if aside:
                return HELPER if is_helper(name) else Found((NodeRef(name, ref=name),), False, True)
            if text[len(name) :].startswith(("_myl", "_OutputLayer", "_clone_")):
                return Found((NodeRef(name, ref=name),), False)
        return Found((NodeRef(text, ref=text),), False)

    def told(self, entry: Entry) -> Found:
        """Return the node that metadata names."""
        calls = tuple(frame.call for frame in reversed(entry.frames) if frame.call)
        return Found((NodeRef(entry.name, ref=entry.name, calls=calls),))

    def binding(self, name: str) -> Found:
        """Return the nodes at an input or output of the network: unknown."""
        return HELPER

    def between(self, first: str, last: str) -> tuple[tuple[NodeRef, ...], bool]:
        """Return the two ends of a range, as what is between them is not known."""
        ends = (self.find(first), self.find(last))
        return tuple(dict.fromkeys(ref for end in ends for ref in end.nodes)), False


def names_of(document: Document | None) -> TextNames | ModelNames:
    """Return the names to resolve the parts of layers with."""
    if document is None:
        return TextNames()
    from dld_tui.core.plan.mapping_model import ModelNames  # needs onnx, which names alone do not

    return ModelNames(document)
