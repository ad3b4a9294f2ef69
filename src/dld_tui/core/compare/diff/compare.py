"""The comparison of two documents: scope by scope, each pair of items by the matches found."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.compare.diff.attributes import nodes_text
from dld_tui.core.compare.diff.items import (
    ItemComparison,
    NodeComparison,
    model_changes,
    scope_changes,
    signature,
)
from dld_tui.core.compare.diff.matching import match_scopes, out_of_order
from dld_tui.core.compare.diff.model_diff import Change, ModelDiff, ScopeDiff
from dld_tui.core.compare.diff.side import Side
from dld_tui.core.compare.diff.tensors import Meter, digest, payload_bytes, weight_noise
from dld_tui.core.document.document import Document
from dld_tui.core.document.scope import Scope
from dld_tui.core.errors import InputError
from dld_tui.core.machine.collector import collector_paused
from dld_tui.core.types import CancelCheck, ProgressCallback


def diff_documents(
    old: Document,
    new: Document,
    *,
    weights: bool = True,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> ModelDiff:
    """Return the differences of two models.

    The order of initializers, attributes and declared types has no meaning and is not compared, nor
    is the place and encoding of a tensor's values in the file.

    Args:
        old: The old document.
        new: The new document.
        weights: False leaves the values of initializers out.
        progress: Called with bytes of weights compared and bytes in all.
        cancelled: Asked at intervals.

    Raises:
        CancelledError: `cancelled` returned True.
    """
    meter = Meter(progress, cancelled)
    with collector_paused():
        return _Comparison(old, new, weights, meter).run()


class _Comparison:
    def __init__(self, old: Document, new: Document, weights: bool, meter: Meter) -> None:
        self.old = old
        self.new = new
        self.weights = weights
        self.meter = meter
        self.found = ModelDiff(_place(old), _place(new))
        self._digests: dict[int, str | None] = {}
        self._unmatched: tuple[list[_Loose], list[_Loose]] = ([], [])
        if weights:
            meter.total = payload_bytes(new)

    def run(self) -> ModelDiff:
        diff = self.found
        diff.changes += model_changes(self.old, self.new)
        self._scopes(self.old.main, self.new.main, None, None)
        functions = {scope.step: scope for scope in self.new.functions}
        for scope in self.old.functions:
            other = functions.pop(scope.step, None)
            if other is not None:
                self._scopes(scope, other, None, None)
            else:
                diff.changes.append(_function(scope, "removed"))
        diff.changes += [_function(scope, "added") for scope in functions.values()]
        self._find_moved()
        if self.weights:
            for noise in weight_noise(self.old, self.new):
                self.meter.check()
                if isinstance(noise, str):
                    diff.notes.append(noise)
                else:
                    diff.weights.append(noise)
        return diff

    # --- scopes ---------------------------------------------------------------------------------

    def _scopes(
        self, old: Scope, new: Scope, old_parent: Side | None, new_parent: Side | None
    ) -> None:
        self.meter.check()
        sides = Side(old, old_parent), Side(new, new_parent)
        matches, initializers = match_scopes(*sides, self._digest)
        result = ScopeDiff(old, new, sides[0].path, sides[1].path, sides[0].partners)
        self.found.scopes.append(result)
        notes = self.found.notes
        nodes = NodeComparison(*sides, self.meter, notes)
        items = ItemComparison(nodes, self.weights, self.meter, notes)
        result.changes += scope_changes(*sides)
        result.changes += items.terminals("input", matches.inputs)
        result.changes += items.terminals("output", matches.outputs)
        self._nodes(nodes, result)
        result.changes += items.initializers(initializers)
        result.changes += items.values()
        for index, partner in enumerate(sides[0].partners):
            if partner >= 0 and sides[0].nodes[index].children:
                self._children(sides, index, partner)

    def _children(self, sides: tuple[Side, Side], index: int, partner: int) -> None:
        mine, theirs = sides[0].nodes[index].children, sides[1].nodes[partner].children
        for attribute, scopes in mine.items():
            others = theirs.get(attribute, [])
            if len(scopes) == len(others):
                for scope, other in zip(scopes, others, strict=True):
                    self._scopes(scope, other, *sides)

    def _nodes(self, comparison: NodeComparison, result: ScopeDiff) -> None:
        old, new = comparison.old, comparison.new
        changes = result.changes
        removed = [index for index, partner in enumerate(old.partners) if partner < 0]
        at = 0
        for index, partner in enumerate(new.partners):
            if partner < 0:
                self._unmatched[1].append(_Loose(new, index, result, len(changes)))
                changes.append(_only(new, index, "added"))
                continue
            while at < len(removed) and removed[at] < partner:
                self._remove(old, removed[at], result)
                at += 1
            change = comparison.change(partner, index)
            if change is not None:
                changes.append(change)
        for index in removed[at:]:
            self._remove(old, index, result)
        moved = out_of_order([partner for partner in old.partners if partner >= 0])
        if moved:
            about = (
                f"{fmt.count(moved)} of {nodes_text(len(old.nodes))} stand elsewhere in the file"
            )
            changes.append(Change("order", "changed", "nodes", "nodes", about))

    def _remove(self, old: Side, index: int, result: ScopeDiff) -> None:
        self._unmatched[0].append(_Loose(old, index, result, len(result.changes)))
        result.changes.append(_only(old, index, "removed"))

    # --- what left its scope --------------------------------------------------------------------

    def _find_moved(self) -> None:
        """Turn nodes that are gone here and new there into moved ones."""
        if len(self.found.scopes) < 2:
            return
        mine, theirs = (_by_identity(loose) for loose in self._unmatched)
        gone: dict[int, set[int]] = {}
        for key, removed in mine.items():
            other = theirs.get(key)
            if removed is None or other is None:
                continue
            removed.result.changes[removed.at] = Change(
                "node",
                "moved",
                removed.side.ref(removed.index),
                other.side.ref(other.index),
                signature(other.side, other.index),
                old_node=removed.side.nodes[removed.index],
                new_node=other.side.nodes[other.index],
                new_place=other.side.path,
            )
            gone.setdefault(id(other.result), set()).add(other.at)
        for result in self.found.scopes:
            places = gone.get(id(result))
            if places:
                result.changes = [
                    change for at, change in enumerate(result.changes) if at not in places
                ]

    # --- values ---------------------------------------------------------------------------------

    def _digest(self, side: Side, name: str) -> str | None:
        tensor = side.tensor(name)
        if tensor is None or not self.weights:
            return None
        key = id(tensor.proto)
        if key not in self._digests:
            try:
                self._digests[key] = digest(tensor, self.meter)
            except InputError:
                self._digests[key] = None  # said when the values themselves are compared
        return self._digests[key]


class _Loose:
    """A node without a partner, and where its change is."""

    __slots__ = ("at", "index", "result", "side")

    def __init__(self, side: Side, index: int, result: ScopeDiff, at: int) -> None:
        self.side = side
        self.index = index
        self.result = result
        self.at = at


def _by_identity(loose: list[_Loose]) -> dict[tuple[object, ...], _Loose | None]:
    """Return the nodes by name, operator and attributes; None where several are alike."""
    by_key: dict[tuple[object, ...], _Loose | None] = {}
    for item in loose:
        name = item.side.names[item.index]
        if name:
            key = (name, item.side.operators[item.index], item.side.attributes(item.index))
            by_key[key] = None if key in by_key else item
    return by_key


def _only(side: Side, index: int, status: str) -> Change:
    node = side.nodes[index]
    ref, is_old = side.ref(index), status == "removed"
    return Change(
        "node",
        status,
        ref if is_old else None,
        None if is_old else ref,
        signature(side, index),
        old_node=node if is_old else None,
        new_node=None if is_old else node,
    )


def _function(scope: Scope, status: str) -> Change:
    name = scope.step.removeprefix("function ")
    nodes = sum(len(inner.nodes) for inner in scope.walk())
    old, new = (name, None) if status == "removed" else (None, name)
    return Change("function", status, old, new, nodes_text(nodes))


def _place(document: Document) -> str:
    path: Path | None = document.path
    return str(path) if path is not None else document.title
