"""The result of a comparison, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from dld_tui.core.codec import encode
from dld_tui.core.compare.diff.tensors import TensorDifference, WeightNoise
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.types import JSON

STATUSES = ("added", "removed", "changed", "renamed", "moved")
KINDS = ("model", "graph", "function", "input", "output", "node", "initializer", "value", "order")


@dataclass(frozen=True, slots=True)
class Field:
    """One differing field of an item that both models have. Untrusted text."""

    name: str
    """``op_type``, ``attribute alpha``, ``input 2``, ``shape``, ``metadata author`` …"""
    old: str | None
    """None if the old model lacks it."""
    new: str | None
    is_name: bool = False
    """Whether only a name differs: of the item, or of a value that it produces."""

    def to_json(self) -> JSON:
        """Return the entry of ``dld diff --json``."""
        return {"field": self.name, "old": self.old, "new": self.new}


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One item that differs. Untrusted text."""

    kind: str
    """One of :data:`KINDS`."""
    status: str
    """One of :data:`STATUSES`; ``renamed`` when nothing but names differs."""
    old: str | None
    """How the old model calls it: a name, or the ref of a node; None when it is added."""
    new: str | None
    """How the new model calls it; None when it is removed."""
    about: str = ""
    """The item: a node with its inputs and outputs, a type and shape."""
    fields: tuple[Field, ...] = ()
    difference: TensorDifference | None = None
    """How far the values of an initializer are apart, when they were compared and differ."""
    old_node: Node | None = None
    new_node: Node | None = None
    new_place: tuple[str, ...] | None = None
    """Where a moved node is now: the path of a scope of the new model."""

    @property
    def name(self) -> str:
        """The display name: the new one, or that of a removed item."""
        return self.new if self.new is not None else self.old or ""


@dataclass(slots=True)
class ScopeDiff:
    """What differs in one scope that both models have, and how its nodes belong together."""

    old: Scope
    new: Scope
    old_path: tuple[str, ...]
    new_path: tuple[str, ...]
    partners: list[int]
    """For each node of the old scope its index in the new one, or -1."""
    changes: list[ModelChange] = field(default_factory=list)


@dataclass(slots=True)
class ModelDiff:
    """All that differs between two models."""

    old: str
    """The path or title of the old model. Untrusted text."""
    new: str
    changes: list[ModelChange] = field(default_factory=list)
    """Of the model as a whole: versions, producer, operator sets, metadata, functions."""
    scopes: list[ScopeDiff] = field(default_factory=list)
    """Every scope that both have: the main graph, subgraphs depth first, then functions."""
    weights: list[WeightNoise] = field(default_factory=list)
    """Weights that one of the models has in few bits, and how far off they are."""
    notes: list[str] = field(default_factory=list)
    """What could not be compared, and why."""

    @property
    def same(self) -> bool:
        """True when the compared parts are equal."""
        return not self.changes and not any(scope.changes for scope in self.scopes)

    def all_changes(self) -> Iterator[tuple[ScopeDiff | None, ModelChange]]:
        """Yield every change with its scope, None for those of the model as a whole."""
        for change in self.changes:
            yield None, change
        for scope in self.scopes:
            for change in scope.changes:
                yield scope, change

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how many items of each kind have each status, in the order of the tables."""
        counts = Counter((change.kind, change.status) for _, change in self.all_changes())
        return {
            kind: {status: counts[kind, status] for status in STATUSES if (kind, status) in counts}
            for kind in KINDS
            if any(kind == key for key, _ in counts)
        }

    def to_json(self) -> JSON:
        """Return the document of ``dld diff --json``. Fields may be added, never renamed."""
        counts: dict[str, JSON] = {
            kind: dict(by_status) for kind, by_status in self.counts().items()
        }
        return {
            "old": self.old,
            "new": self.new,
            "same": self.same,
            "counts": counts,
            "changes": [_json(scope, change) for scope, change in self.all_changes()],
            "weights": [encode(weight) for weight in self.weights],
            "notes": list(self.notes),
        }


def _json(scope: ScopeDiff | None, change: ModelChange) -> JSON:
    entry: dict[str, JSON] = {
        "kind": change.kind,
        "status": change.status,
        "scope": list(scope.old_path if change.new is None else scope.new_path) if scope else None,
        "old": change.old,
        "new": change.new,
        "about": change.about,
        "fields": [field.to_json() for field in change.fields],
    }
    if change.new_place is not None:
        entry["new_scope"] = list(change.new_place)
    if change.difference is not None:
        entry["difference"] = encode(change.difference)
    return entry


def node_pairs(diff: ModelDiff) -> list[tuple[Node, Node]]:
    """Return the nodes of both models that belong together: (old, new)."""
    pairs = []
    for scope in diff.scopes:
        old, new = list(scope.old.nodes), list(scope.new.nodes)
        pairs += [(old[at], new[index]) for at, index in enumerate(scope.partners) if index >= 0]
        for change in scope.changes:
            if change.status == "moved" and change.old_node and change.new_node:
                pairs.append((change.old_node, change.new_node))
    return pairs
