"""Where values come from, and where they are used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a value comes from."""

    scope: Scope
    kind: str
    """``node``, ``input`` or ``initializer``."""
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """One input of one node."""

    node: Node
    index: int
