"""Questions about a whole model that are answered without an object for each of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from dld_tui.core.files.columns import NodesApart, nodes_apart
from dld_tui.core.files.kinds import message_kind

_LARGE = 256 << 10
"""Bytes of a model from which on reading its nodes when they are touched is worth what it takes."""


class NodeParts(NamedTuple):
    """What nodes of the main graph, or of functions, may have; most models have none of it.

    Asked for in each node, a field that is not there costs protobuf 0.4 µs and 360 bytes for good.
    """

    bodies: bool = True
    """Graphs as attributes."""
    metadata: bool = True
    """``metadata_props``."""


class ModelParts:
    """A serialised ModelProto, about which such questions are asked."""

    def __init__(self, model: bytes) -> None:
        self.model = model

    @cached_property
    def apart(self) -> NodesApart:
        """The model without the nodes of its main graph, and these: none of a small model."""
        found = nodes_apart(self.model) if len(self.model) >= _LARGE else None
        return found or NodesApart(self.model, [])

    def has_long_piece(self, length: int) -> bool:
        """Return whether a node, weight or function is of so many bytes, or more.

        Where none is, no payload in it is. A model that protobuf does not read counts as one, too:
        who looks at it in detail can say why.

        Args:
            length: In bytes.
        """
        from google.protobuf.message import DecodeError

        if any(nodes.longest >= length for nodes in self.apart.nodes):
            return True
        try:
            pieces = message_kind("Pieces").FromString(self.apart.rest)
        except DecodeError:
            return True
        graph = pieces.graph
        lists: tuple[Sequence[bytes], ...] = (
            graph.node, graph.initializer, graph.sparse, pieces.function, pieces.training
        )  # fmt: skip
        return any(max(map(len, one), default=0) >= length for one in lists)

    def nodes(self, *, only_apart: bool = False) -> NodeParts:
        """Return what the nodes have, of a model that protobuf reads.

        Args:
            only_apart: There are none but those that stand apart: the rest need not be looked at.
        """
        nodes = []
        if not only_apart:
            found = message_kind("Rare").FromString(self.apart.rest)
            nodes = [found.graph.node, found.function.node]
        return NodeParts(
            any(node.attribute.HasField("body") or node.attribute.bodies for node in nodes)
            or any(nodes.has_bodies for nodes in self.apart.nodes),
            any(node.metadata_props for node in nodes)
            or any(nodes.has_metadata for nodes in self.apart.nodes),
        )
