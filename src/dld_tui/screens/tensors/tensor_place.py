"""Where a tensor is in a model: an initializer, or an attribute of a node."""

from __future__ import annotations

from dataclasses import dataclass

from dld_tui.core.document import Node, Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.model import is_alive


@dataclass(frozen=True)
class TensorPlace:
    """An initializer by name, or a tensor attribute of a node."""

    scope: Scope
    name: str = ""
    """The initializer's name. Foreign text."""
    node: Node | None = None
    attribute: str = ""

    @property
    def tensor(self) -> Tensor | None:
        """The tensor as it is now; None when it is gone."""
        if self.node is None:
            return self.scope.initializer(self.name) if is_alive(self.scope) else None
        if not is_alive(self.node):
            return None
        attribute = self.node.attribute(self.attribute)
        if attribute is None or attribute.kind != "tensor":
            return None
        value = attribute.value
        return value if isinstance(value, Tensor) else None

    @property
    def address(self) -> JSON:
        """How edits name it."""
        if self.node is None:
            return {"initializer": self.name}
        return {"node": self.node.ref, "attribute": self.attribute}

    @property
    def path(self) -> list[JSON]:
        """The path of its scope, for edits."""
        return list(self.scope.path)

    @property
    def title(self) -> str:
        """Its name for people."""
        if self.node is None:
            return visible(self.name) or "(no name)"
        return visible(f"{self.node.name or self.node.ref} · {self.attribute}")
