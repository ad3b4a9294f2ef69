"""The rows behind the explorer: the nodes of a scope by type, by name, as a tree, in file order.

No widget in here. Fifty thousand nodes are indexed once; folders are split only when they unfold,
and what a key press needs (filter, unfold, one edit) takes a few milliseconds.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from time import sleep
from typing import Any, NamedTuple, TypeAlias

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node, NodeTexts
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.text import cell_width
from dld_tui.widgets.explorer.branches import (
    Branch,
    ExplorerEntry,
    Item,
    Rows,
    Sort,
    View,
    group_by_type,
    is_function,
    name_separator,
    scopes_within,
    split_names,
)

_SIZES = re.compile(r"(?=.*(?:^|x)[\d?]+(?:x|$))[\w?]+(x[\w?]+)+")
"""Dimensions, one of them a number."""

Found: TypeAlias = "dict[str, dict[Node, bool]]"
"""By word whether a node has it."""
Siblings: TypeAlias = "tuple[list[Item], int]"
"""Items below one branch, and how many characters of their labels the folders above already say."""


NOTHING: Hashable = ("note", "nothing")
"""The key of the row shown when no node matches the filter."""
_TURN = 1_000  # nodes that are worked on at a time
_SMALL = 60  # a scope with no more nodes than this starts out unfolded
_FEW_MATCHES = 400  # a filter that leaves no more nodes unfolds every branch that holds one

_SORT_KEYS: dict[Sort, Callable[[ExplorerEntry], str | tuple[str, str]]] = {
    Sort.NAME: attrgetter("sort_name"),
    Sort.TYPE: attrgetter("label_key"),
}


def deep_words(text: str) -> list[str]:
    """Return the words of a search, in lower case, that can be a shape or a value."""
    words = text.lower().split()
    return [word for word in words if "[" in word or "=" in word or _SIZES.fullmatch(word)]


class Figures(NamedTuple):
    """A figure of nodes, such as their operations."""

    title: str
    values: Mapping[Node, float]
    shown: Callable[[float], str]
    """Returns one as text."""


class ExplorerModel:
    """Arranges the nodes of one root scope and of everything inside it.

    Args:
        document: What is shown.
        root: The scope to show; the main graph when None.
    """

    def __init__(self, document: Document, root: Scope | None = None) -> None:
        self.document = document
        self.root: Scope = root or document.main
        self.view = View.TREE
        self.sort = Sort.FILE
        self.descending = False
        """Whether that order is reversed."""
        self.text = ""
        self.found: Found = {}
        """What is known of the words of the last search that can be shapes or values."""
        self.condition: Callable[[Node], bool] | None = None
        self.show_constants = False
        self.exceptions: set[Node] = set()
        """Constants that are shown where the others are hidden, or the other way round."""
        self.total = 0  # nodes at and below the root
        self.shown = 0  # those that the filter lets through
        self.hidden_constants = 0
        self.longest_type = 0  # cells of the longest operator type that has been seen
        self.has_precisions = False  # whether a node with a TensorRT precision has been seen
        self.figures: Figures | None = None
        self._entries: dict[Scope, list[ExplorerEntry]] = {}
        self._by_node: dict[Node, ExplorerEntry] = {}
        self._verdicts: dict[Node, bool] = {}
        self._kept: set[Node] = set()
        """Nodes that were shown when they were edited: they stay until another filter is set."""
        self.unfolded: dict[Hashable, bool] = {}
        self._unfolded_in_filter: dict[Hashable, bool] = {}
        self._matching: dict[Scope, list[ExplorerEntry]] = {}
        self._with_holders: dict[Scope, list[ExplorerEntry]] = {}
        self._counts: dict[Scope, int] = {}
        self._sorted: dict[tuple[Scope, Sort], list[ExplorerEntry]] = {}
        self._separators: dict[Scope, str] = {}
        self._siblings: dict[tuple[Hashable, View, Sort, bool], Siblings] = {}
        self._rows: dict[tuple[View, Sort, bool], Rows] = {}
        self._stale = True

    def index(self, texts: Iterable[tuple[Scope, NodeTexts]] | None = None) -> None:
        """Take in the nodes of all scopes, whose texts may have been read already."""
        if texts is None:
            texts = ((scope, scope.texts()) for scope in self.document.scopes())
        for scope, read in texts:
            self._enter(scope, ExplorerEntry.of_texts(read))

    def entries(self, scope: Scope) -> list[ExplorerEntry]:
        """Return the entries of a scope's own nodes, in the order of the file."""
        known = self._entries.get(scope)
        if known is None:
            known = [ExplorerEntry(node) for node in scope.nodes]
            self._enter(scope, known)
        return known

    def _enter(self, scope: Scope, entries: list[ExplorerEntry]) -> None:
        self._by_node.update(zip(map(attrgetter("node"), entries), entries, strict=True))
        self._measure(entries)
        self._entries[scope] = entries

    def prepare(self) -> None:
        """Work out what the first search and sort will need; on a thread, in short turns."""
        for number, entry in enumerate(list(self._by_node.values())):
            entry.prepare()
            if number % _TURN == 0:
                sleep(0.001)  # this thread holds the interpreter otherwise

    def count_kinds(self) -> Counter[tuple[str, str]]:
        """Return how many nodes there are of each (domain, operator type) in the document."""
        counts: Counter[tuple[str, str]] = Counter()
        for scope in self.document.scopes():
            counts.update(map(attrgetter("kind"), self.entries(scope)))
        return counts

    def entry(self, node: Node) -> ExplorerEntry:
        """Return the entry of a node of the document."""
        if node not in self._by_node:
            self.entries(node.scope)
        return self._by_node[node]

    def _measure(self, entries: Collection[ExplorerEntry]) -> None:
        self.has_precisions |= any(map(attrgetter("precision"), entries))
        widths = map(cell_width, {entry.op_type for entry in entries})
        self.longest_type = max(self.longest_type, *widths, 0)

    def refresh(self, nodes: Iterable[Node] = (), scopes: Iterable[Scope] = ()) -> bool:
        """Take in an edit: `nodes` were changed in place, `scopes` have other nodes than before.

        Returns:
            False when the rows are the same as before and need only be drawn again.
        """
        for node in nodes:
            entry = self._by_node.get(node)
            if entry is None:
                continue
            passed = self.condition is None or self._verdicts.get(node, False)
            if (self.text or self.condition is not None) and passed and self.holds_text(entry):
                self._kept.add(node)
            for verdicts in self.found.values():
                verdicts.pop(node, None)
            self._stale |= self.condition is not None and self._verdicts.pop(node, None) is not None
            before = (entry.label, entry.op_type, entry.bodies)
            entry.refresh()
            self._measure((entry,))
            self._stale |= before != (entry.label, entry.op_type, entry.bodies)
        for scope in scopes:
            self._separators.pop(scope, None)
            if self._entries.pop(scope, None) is not None:
                self._entries[scope] = [self._known(node) for node in scope.nodes]
            self._sorted.clear()
            self._stale = True
        if self._stale:
            # Nearly sorted lists: sorting them again takes a pass, creating them a sort.
            for (_, sort), entries in self._sorted.items():
                if sort in _SORT_KEYS:
                    entries.sort(key=_SORT_KEYS[sort])
        return self._stale

    def doubt(self, nodes: Iterable[Node]) -> None:
        """Ask the condition about nodes again, although they were not changed themselves."""
        for node in nodes:
            self._stale |= self._verdicts.pop(node, None) is not None

    def _known(self, node: Node) -> ExplorerEntry:
        entry = self._by_node.get(node)
        if entry is None:
            entry = self._by_node[node] = ExplorerEntry(node)
            self._measure((entry,))
        return entry

    @property
    def filtering(self) -> bool:
        """Whether a filter is on; hiding the constants is none."""
        return bool(self.text.strip()) or self.condition is not None

    def set_root(self, scope: Scope) -> None:
        """Show another scope."""
        self.root = scope
        self._stale = True

    def set_text(self, text: str, found: Found | None = None) -> None:
        """Keep the nodes that have every word of `text`, in any case.

        Args:
            text: Words of their type or name, shapes and values (:mod:`.deep_words`).
            found: What :meth:`look` has found out of the latter.
        """
        if text != self.text:
            self._kept.clear()
            self._unfolded_in_filter.clear()
        self.text = text
        self.found = self.found if found is None else found
        self._stale = True

    def set_condition(
        self, condition: Callable[[Node], bool] | None, verdicts: dict[Node, bool] | None = None
    ) -> None:
        """Keep the nodes that meet a condition.

        Args:
            condition: Called once for each node that is not in `verdicts`.
            verdicts: What it says of nodes, where somebody has worked it out already.
        """
        self.condition = condition
        self._verdicts = dict(verdicts or {})
        self._kept.clear()
        self._unfolded_in_filter.clear()
        self._stale = True

    def set_show_constants(self, shown: bool) -> None:
        """Show or hide all Constant nodes."""
        self.show_constants = shown
        self.exceptions.clear()
        self._stale = True

    def set_constants(self, nodes: Iterable[Node], shown: bool) -> None:
        """Show or hide some constants, whatever is done with the others."""
        if shown == self.show_constants:
            self.exceptions.difference_update(nodes)
        else:
            self.exceptions.update(nodes)
        self._stale = True

    def shows_constant(self, node: Node) -> bool:
        """Return whether a node is shown if it is a constant."""
        return self.show_constants != (node in self.exceptions)

    def rows(self) -> Rows:
        """Return the rows from top to bottom; what is folded is left out. Do not change them."""
        self._update()
        listed = (self.view, self.sort, self.descending)
        if (known := self._rows.get(listed)) is not None:
            return known
        out = self._rows[listed] = Rows()
        for scope in self.tops():
            if scope is self.root or not self.filtering or self._counts[scope]:
                self._emit(Branch.of_scope(scope, self._counts[scope]), 0, 0, out)
        if self.filtering and not self.shown:
            out.add(Branch("note", NOTHING, "No node matches the filter. Esc clears it.", 0), 0, 0)
        if self.hidden_constants:
            out.add(Branch("note", ("note",), "Constant", self.hidden_constants), 0, 0)
        return out

    def is_unfolded(self, item: Item) -> bool:
        """Return whether the rows below an item are shown."""
        memory = self._unfolded_in_filter if self.filtering else self.unfolded
        known = memory.get(item.key)
        if known is not None:
            return known
        if self.filtering and self.shown <= _FEW_MATCHES:
            return True
        if isinstance(item, ExplorerEntry):
            return self.total <= _SMALL
        if item.key == ("scope", self.root):
            return True
        if item.kind == "scope" and is_function(item):
            return False
        return item.count == self.shown or self.total <= _SMALL

    def can_unfold(self, item: Item) -> bool:
        """Return whether there is anything below an item."""
        if isinstance(item, Branch):
            return item.kind != "note" and item.count > 0
        return self.nested and item.bodies > 0

    def set_unfolded(self, item: Item, unfolded: bool) -> None:
        """Fold or unfold an item."""
        memory = self._unfolded_in_filter if self.filtering else self.unfolded
        memory[item.key] = unfolded
        self._rows.clear()

    def children(self, item: Item) -> Siblings:
        """Return the items right below an item."""
        self._update()
        place = (item.key, self.view, self.sort, self.descending)
        known = self._siblings.get(place)
        if known is None:
            known = self._siblings[place] = self._arrange(item)
        return known

    def _emit(self, item: Item, depth: int, start: int, out: Rows) -> None:
        out.add(item, depth, start)
        if not (self.can_unfold(item) and self.is_unfolded(item)):
            return
        items, skipped = self.children(item)
        first = 0
        for at, child in enumerate(items):
            if isinstance(child, Branch) or child.bodies:
                out.extend(items[first:at], depth + 1, skipped)
                self._emit(child, depth + 1, skipped, out)
                first = at + 1
        out.extend(items[first:], depth + 1, skipped)

    @property
    def nested(self) -> bool:
        """Whether subgraphs are branches; else their nodes are among the others."""
        return self.view in (View.TREE, View.FILE)

    def tops(self) -> list[Scope]:
        """Return the scopes at depth 0: the root, and the functions below the main graph."""
        functions = self.document.functions if self.root is self.document.main else []
        return [self.root, *functions]

    def passes(self, node: Node) -> bool:
        """Return whether the filter lets a node through."""
        self._update()
        entry = self.entry(node)
        return any(entry is shown for shown in self._matching.get(node.scope, ()))

    def branch_of(self, scope: Scope) -> Branch:
        """Return the row of a scope."""
        self._update()
        return Branch.of_scope(scope, self._counts.get(scope, 0))

    def is_match(self, entry: ExplorerEntry) -> bool:
        """Return whether an entry is shown for itself and not only for what is in it."""
        if entry.node in self._kept:
            return True
        return self.holds_text(entry) and (self.condition is None or self._verdict(entry.node))

    def holds_text(self, entry: ExplorerEntry) -> bool:
        """Return whether an entry has all words of the filter."""
        return self.holds(entry, self.text.lower().split(), deep_words(self.text))

    def holds(self, entry: ExplorerEntry, words: Sequence[str], deep: Sequence[str]) -> bool:
        """Return whether an entry has every word; those in `deep` can be shapes or values."""
        # Not all(): this runs for every node of a search, and a generator costs three times more.
        for word in words:
            if not (self._holds_deep(entry, word) if word in deep else word in entry.haystack):
                return False
        return True

    def _holds_deep(self, entry: ExplorerEntry, word: str) -> bool:
        verdicts = self.found.setdefault(word, {})
        if entry.node not in verdicts:
            for _ in self._look_at([entry], word, verdicts):
                pass
        return verdicts[entry.node]

    def look(self, text: str, found: Found) -> Iterator[None]:
        """Find out which nodes have the words of a text that can be shapes or values.

        Args:
            text: The words.
            found: Takes what is found; what is there already is not looked for again.

        Yields:
            After each node: that of all of a large model takes seconds.
        """
        for word in deep_words(text):
            scopes = self.document.scopes()
            entries = (entry for scope in scopes for entry in self.entries(scope))
            yield from self._look_at(entries, word, found.setdefault(word, {}))

    @staticmethod
    def _look_at(
        entries: Iterable[ExplorerEntry], word: str, verdicts: dict[Node, bool]
    ) -> Iterator[None]:
        from dld_tui.widgets.explorer.deep_words import holds_deep

        known: dict[tuple[Scope, str], bool] = {}
        for entry in entries:
            if entry.node not in verdicts:
                verdict = word in entry.haystack or holds_deep(entry.node, word, known)
                verdicts[entry.node] = verdict
                yield

    def _update(self) -> None:
        if not self._stale:
            return
        for known in (self._siblings, self._rows, self._matching, self._with_holders, self._counts):
            known.clear()
        self.total = self.hidden_constants = 0
        for scope in self.tops():
            self._filter(scope)
        self.shown = sum(self._counts[scope] for scope in self.tops())
        self._stale = False

    def _filter(self, top: Scope) -> None:
        """Work out what is shown of a scope and of those inside it: the inner ones first."""
        for scope in reversed(list(scopes_within(top))):
            children = scope.children()
            matching = self._matches(self.entries(scope))
            self._matching[scope] = self._with_holders[scope] = matching
            self._counts[scope] = len(matching) + sum(self._counts[child] for child in children)
            holders = {child.owner for child in children if self._counts[child]}
            missing = holders.difference(entry.node for entry in matching) if holders else ()
            if missing:
                shown_nodes = {entry.node for entry in matching} | holders
                everything = self.entries(scope)
                self._with_holders[scope] = [
                    entry for entry in everything if entry.node in shown_nodes
                ]

    def _matches(self, entries: list[ExplorerEntry]) -> list[ExplorerEntry]:
        self.total += len(entries)
        if self.exceptions or not self.show_constants:
            shows = self.shows_constant
            kept = [entry for entry in entries if not entry.constant or shows(entry.node)]
            self.hidden_constants += len(entries) - len(kept)
            entries = kept
        deep = deep_words(self.text)
        for word in self.text.lower().split():
            if word in deep:
                holds = self._holds_deep
                entries = [e for e in entries if holds(e, word) or e.node in self._kept]
                continue
            entries = [e for e in entries if word in e.haystack or e.node in self._kept]
        if self.condition is not None:
            known = self._verdicts.get
            entries = [
                entry
                for entry in entries
                if (verdict := known(entry.node)) or (verdict is None and self._verdict(entry.node))
            ]
        return entries

    def _verdict(self, node: Node) -> bool:
        verdict = self._verdicts.get(node)
        if verdict is None:
            passes = self.condition is None or node in self._kept or self.condition(node)
            verdict = self._verdicts[node] = passes
        return verdict

    def set_figures(self, figures: Figures | None) -> None:
        """Take the figures of the nodes for the column, and for sorting by it."""
        self.figures = figures
        if self.sort is Sort.FIGURE:
            self._sorted.clear()
            self._siblings.clear()
            self._rows.clear()

    def _sort_key(self, sort: Sort) -> Callable[[ExplorerEntry], Any] | None:
        """Return by what entries are sorted; None for the order of the file."""
        if sort is not Sort.FIGURE:
            return _SORT_KEYS.get(sort)
        if self.figures is None:
            return None
        values = self.figures.values
        return lambda entry: -values.get(entry.node, 0.0)

    def _arrange(self, item: Item) -> Siblings:
        if isinstance(item, ExplorerEntry):
            return [
                Branch.of_scope(scope, self._counts.get(scope, 0))
                for scope in item.node.subgraphs()
                if not self.filtering or self._counts.get(scope)
            ], 0
        if item.scope is None or item.kind == "type":
            return list(item.members), 0
        if item.kind == "folder":
            return self._split(item.scope, item.members, item.start), item.start
        return self._arrange_scope(item.scope), 0

    def _arrange_scope(self, scope: Scope) -> list[Item]:
        if self.nested:
            entries = self._with_holders.get(scope, [])
            key = self._sort_key(self.sort)
            if key is not None:
                entries = sorted(entries, key=key)
            if self.descending:
                entries = entries[::-1]
            if self.view is View.TREE:
                return self._split(scope, entries, 0)
            return list(entries)
        entries = self._flattened(scope)
        if self.descending:
            entries = entries[::-1]
        if self.view is View.NAME:
            return list(entries)
        groups = group_by_type(scope, entries, largest_first=self.sort is Sort.TYPE)
        return list(groups[::-1] if self.descending else groups)

    def _split(self, scope: Scope, entries: list[ExplorerEntry], start: int) -> list[Item]:
        """Return folders and nodes below a prefix; folders count what is in subgraphs, too."""
        items = split_names(scope, entries, start, self._separator(scope))
        if scope.control_flow:
            for item in items:
                if isinstance(item, Branch):
                    bodies = (entry.node.subgraphs() for entry in item.members if entry.bodies)
                    item.count += sum(self._counts.get(b, 0) for body in bodies for b in body)
        return items

    def _flattened(self, scope: Scope) -> list[ExplorerEntry]:
        """Return what is shown of a scope and of all inside it, in one order."""
        scopes = list(scopes_within(scope))
        sort = Sort.NAME if self.view is View.NAME else self.sort
        everything = self._sorted.get((scope, sort))
        if everything is None:
            everything = [entry for inner in scopes for entry in self.entries(inner)]
            key = self._sort_key(sort)
            if key is not None:
                everything.sort(key=key)
            self._sorted[scope, sort] = everything
        shown = {id(entry) for inner in scopes for entry in self._matching.get(inner, ())}
        if len(shown) == len(everything):
            return everything
        return [entry for entry in everything if id(entry) in shown]

    def _separator(self, scope: Scope) -> str:
        separator = self._separators.get(scope)
        if separator is None:
            separator = self._separators[scope] = name_separator(self.entries(scope))
        return separator


def next_match(model: ExplorerModel, rows: Rows, cursor: int, step: int, text: str) -> Node | None:
    """Return the next node whose type or name holds every word of `text`; folded ones count.

    Args:
        model: What is searched.
        rows: What its :meth:`~ExplorerModel.rows` returned last.
        cursor: The row to start from; the search wraps around.
        step: 1 for downwards, -1 for upwards.
        text: Words.
    """
    words, deep = text.lower().split(), deep_words(text)
    if not words or not rows.items:
        return None
    first = 0 if step > 0 else 1  # what is folded in the cursor's row comes after it
    for offset in range(first, len(rows) + 1):
        item = rows.items[(cursor + step * offset) % len(rows)]
        matches: list[ExplorerEntry] = []
        if offset and isinstance(item, ExplorerEntry) and model.holds(item, words, deep):
            matches.append(item)
        if model.can_unfold(item) and not model.is_unfolded(item):
            matches += [e for e in below(model, item) if model.holds(e, words, deep)]
        if matches:
            return matches[0 if step > 0 else -1].node
    return None


def below(model: ExplorerModel, item: Item) -> Iterator[ExplorerEntry]:
    """Yield every node below an item, in the order of the rows."""
    pending = [item]
    while pending:
        inner = pending.pop()
        if inner is not item and isinstance(inner, ExplorerEntry):
            yield inner
        if model.can_unfold(inner):
            pending.extend(reversed(model.children(inner)[0]))


def reveal(model: ExplorerModel, node: Node) -> bool:
    """Unfold what hides a node; False when a filter, or another root, leaves it out."""
    tops = model.tops()
    holders = [node]
    while holders[-1].scope not in tops:
        owner = holders[-1].scope.owner
        if owner is None:
            return False
        holders.append(owner)
    if not model.passes(node):
        return False
    if model.nested:
        for inner in reversed(holders):
            _unfold_to(model, model.entry(inner), inner.scope)
    else:
        _unfold_to(model, model.entry(node), holders[-1].scope)
    return True


def _unfold_to(model: ExplorerModel, entry: ExplorerEntry, scope: Scope) -> None:
    """Unfold a scope, its holder, and the folders or the type that an entry is in."""
    if scope.owner is not None:
        model.set_unfolded(model.entry(scope.owner), True)
    branch: Branch | None = model.branch_of(scope)
    while branch is not None:
        model.set_unfolded(branch, True)
        branches = (item for item in model.children(branch)[0] if isinstance(item, Branch))
        branch = next((b for b in branches if any(e is entry for e in b.members)), None)


def unfold_to_fill(model: ExplorerModel, room: int) -> bool:
    """Unfold branches, the outer ones first, while no more than `room` rows show.

    Returns:
        Whether there are other rows now.
    """
    rows = model.rows()
    used = before = len(rows)
    if used >= room:
        return False
    pending = deque(item for item in rows.items if not is_function(item))
    while pending and used < room:
        item = pending.popleft()
        if not model.can_unfold(item) or model.is_unfolded(item):
            continue
        items = model.children(item)[0]
        if used + len(items) <= room:
            model.set_unfolded(item, True)
            used += len(items)
            pending.extend(items)
    return used != before


def set_all_unfolded(model: ExplorerModel, unfolded: bool) -> None:
    """Unfold or fold every branch and body that is listed, those within folded ones, too."""
    pending = deque(model.rows().items)
    done: set[Hashable] = set()
    while pending:
        item = pending.popleft()
        if item.key in done or not model.can_unfold(item):
            continue
        done.add(item.key)
        model.set_unfolded(item, unfolded)
        pending.extend(model.children(item)[0])


def all_nodes(model: ExplorerModel) -> Iterator[Node]:
    """Yield every node of the document, in all scopes."""
    for scope in model.document.scopes():
        yield from scope.nodes


def matching_nodes(model: ExplorerModel) -> Iterator[Node]:
    """Yield the nodes at and below the root that the filters let through, folded ones too."""
    whole = model.root is model.document.main
    for scope in model.document.scopes() if whole else model.root.walk():
        for entry in model.entries(scope):
            if (not entry.constant or model.shows_constant(entry.node)) and model.is_match(entry):
                yield entry.node


def model_anew(old: ExplorerModel) -> ExplorerModel:
    """Return the rows of the same scope, listed, folded and filtered as before.

    No node is read yet. What is folded is told by names: scopes and nodes are others now.
    """
    new = ExplorerModel(old.document, old.root)
    new.view, new.sort, new.descending = old.view, old.sort, old.descending
    new.set_show_constants(old.show_constants)
    new.exceptions.update(_exceptions(old))
    if not deep_words(old.text):  # else it has to be looked for again
        new.set_text(old.text)
    new.set_condition(old.condition)
    new.unfolded.update(_folds(old))
    return new


def _exceptions(old: ExplorerModel) -> Iterator[Node]:
    """Yield the nodes that are there now for the constants that were shown or hidden alone."""
    main = old.document.main
    present = _present(old.document, main)
    for node in old.exceptions:
        known = _key_now(node, main, present)
        if isinstance(known, Node):
            yield known


def _present(document: Document, main: Scope) -> dict[tuple[Hashable, ...], Scope]:
    """Return the scopes by their places."""
    places = ((_place(scope, main), scope) for scope in document.scopes())
    return {place: scope for place, scope in places if place is not None}


def _folds(old: ExplorerModel) -> Iterator[tuple[Hashable, bool]]:
    """Yield what is folded and unfolded, by the keys of what is there now."""
    main = old.document.main
    present = _present(old.document, main)
    for key, unfolded in old.unfolded.items():
        known = _key_now(key, main, present)
        if known is not None:
            yield known, unfolded


def _key_now(
    key: Hashable, main: Scope, present: Mapping[tuple[Hashable, ...], Scope]
) -> Hashable | None:
    if isinstance(key, Node):
        place = _place(key.scope, main)
        scope = present.get(place) if place is not None else None
        same = scope.nodes_named(key.name) if scope is not None and key.name else []
        return same[0] if len(same) == 1 else None
    if isinstance(key, tuple) and len(key) > 1 and isinstance(key[1], Scope):
        place = _place(key[1], main)
        scope = present.get(place) if place is not None else None
        return None if scope is None else (key[0], scope, *key[2:])
    return key


def _place(scope: Scope, main: Scope) -> tuple[Hashable, ...] | None:
    """Return where a scope is, or was, by the names of nodes; None when one has no name."""
    if scope is main:
        return ()
    if scope.owner is None:
        return (scope.step,)
    outer = _place(scope.owner.scope, main)
    if outer is None or not scope.owner.name:
        return None
    return (*outer, (scope.owner.name, scope.attribute, scope.position))
