"""Nodes as the explorer lists them: entries, and the branches that they are grouped in."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.model.document.node import Node, NodeTexts
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.text import visible

_DIGITS = re.compile(r"\d+")
_NUMBER_WIDTH = 9
_MAX_SORTED = 512
"""Longer names are compared by so many of their first characters."""


class View(Enum):
    """How the explorer arranges the nodes; the value is its title."""

    TREE = "By scope"
    TYPE = "By type"
    NAME = "By name"
    FILE = "File order"


class Sort(Enum):
    """The order among siblings; the value is its title."""

    FILE = "file order"
    NAME = "name"
    TYPE = "type"
    FIGURE = "figure"
    """Of the column that there is while the colours of the graph are figures; the largest first."""


class ExplorerEntry:
    """One node, with the texts that showing, searching and sorting need."""

    __slots__ = (
        "_haystack", "_sort_name", "bodies", "constant", "kind", "label", "named", "node",
        "op_type", "output", "precision",
    )  # fmt: skip

    def __init__(self, node: Node) -> None:
        self.node = node
        self.refresh()

    def refresh(self) -> None:
        """Read the node's texts again."""
        node = self.node
        self._take(node.name, node.outputs, _Operator((node.domain, node.op_type)))

    def _take(self, name: str, outputs: Sequence[str], operator: _Operator) -> None:
        node = self.node
        self.named = bool(name)
        """False when the label is an output's name because the node has none."""
        self.output = outputs[0] if outputs and outputs[0] else next(filter(None, outputs), "")
        """What it makes first. Untrusted text."""
        self.label = visible(name or self.output)
        self.kind = operator.kind
        """Operator set and type, as the filter wants them. Untrusted text."""
        self.op_type = operator.shown
        self.constant = operator.is_constant
        self.bodies = len(node.children)
        """How many attributes hold subgraphs."""
        self.precision = precision_of(node) if node.scope.annotated else ""
        """The TensorRT precision that it is set to. Untrusted text."""
        # Last: a thread that works them out from the old label looks at the label afterwards.
        self._haystack: str | None = None
        self._sort_name: str | None = None

    @classmethod
    def of_texts(cls, texts: NodeTexts) -> list[ExplorerEntry]:
        """Return the entries of nodes whose texts have been read."""
        operators = {kind: _Operator(kind) for kind in set(texts.kinds)}
        entries: list[ExplorerEntry] = []
        for node, name, outputs, kind in zip(
            texts.nodes, texts.names, texts.outputs, texts.kinds, strict=True
        ):
            entry = cls.__new__(cls)
            entry.node = node
            entry._take(name, outputs, operators[kind])
            entries.append(entry)
        return entries

    @property
    def haystack(self) -> str:
        """What a search looks at, in lower case."""
        haystack = self._haystack
        if haystack is None:
            label, (domain, _) = self.label, self.kind
            haystack = f"{visible(domain).lower()}.{self.op_type.lower()} {label.lower()}"
            self._haystack = haystack
            if self.label is not label:  # renamed meanwhile
                self._haystack = None
        return haystack

    @property
    def sort_name(self) -> str:
        """By what it is sorted: numbers in it by their value."""
        sort_name = self._sort_name
        if sort_name is None:
            label = self.label
            sort_name = self._sort_name = _DIGITS.sub(_padded, label.lower()[:_MAX_SORTED])
            if self.label is not label:
                self._sort_name = None
        return sort_name

    def prepare(self) -> None:
        """Work out now what a search and a sort will ask for."""
        _ = self.haystack, self.sort_name

    @property
    def key(self) -> Hashable:
        """What identifies its row across rebuilds."""
        return self.node

    @property
    def label_key(self) -> tuple[str, str]:
        """By type, then by name."""
        return (self.op_type.lower(), self.sort_name)


class _Operator:
    """What entries of one operator share."""

    __slots__ = ("is_constant", "kind", "shown")

    def __init__(self, kind: tuple[str, str]) -> None:
        self.kind = kind
        self.shown = visible(kind[1])
        self.is_constant = kind == ("", "Constant")


def _padded(match: re.Match[str]) -> str:
    return match.group().zfill(_NUMBER_WIDTH)


class Branch:
    """A row that unfolds: a scope, the nodes of one type, a folder of the name tree; or a note."""

    __slots__ = ("count", "domain", "key", "kind", "label", "members", "scope", "start")

    def __init__(
        self,
        kind: str,
        key: Hashable,
        label: str,
        count: int,
        *,
        members: list[ExplorerEntry] | None = None,
        scope: Scope | None = None,
        start: int = 0,
        domain: str = "",
    ) -> None:
        self.kind = kind
        """``scope``, ``type``, ``folder`` or ``note`` (a line that only informs)."""
        self.key = key
        self.label = label
        self.count = count
        """Nodes below that the filter lets through."""
        self.members = members or []
        """The nodes of a type or folder; a scope's are worked out when it unfolds."""
        self.scope = scope
        """The scope it is or is a part of; None for a note."""
        self.start = start
        """How many characters of its members' labels a folder and those above it stand for."""
        self.domain = domain
        """The operator set of a type."""

    @classmethod
    def of_scope(cls, scope: Scope, count: int) -> Branch:
        """Return the row of a scope."""
        return cls("scope", ("scope", scope), visible(scope.title), count, scope=scope)


Item: TypeAlias = "ExplorerEntry | Branch"


class Rows:
    """What the explorer shows, from top to bottom.

    Three lists and not one of tuples: with 50,000 of those the garbage collector would step in.
    """

    __slots__ = ("depths", "items", "starts")

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.depths: list[int] = []
        self.starts: list[int] = []
        """How many characters of each label the folders above already say."""

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: Item, depth: int, start: int) -> None:
        """Append one row."""
        self.items.append(item)
        self.depths.append(depth)
        self.starts.append(start)

    def extend(self, items: Sequence[Item], depth: int, start: int) -> None:
        """Append rows of the same depth."""
        self.items.extend(items)
        self.depths.extend([depth] * len(items))
        self.starts.extend([start] * len(items))


def group_by_type(
    scope: Scope, entries: Sequence[ExplorerEntry], *, largest_first: bool
) -> list[Branch]:
    """Return a branch for each operator type, in alphabetical order or the largest first."""
    groups: dict[tuple[str, str], list[ExplorerEntry]] = {}
    for entry in entries:
        members = groups.get(entry.kind)
        if members is None:
            groups[entry.kind] = [entry]
        else:
            members.append(entry)
    kinds = sorted(groups, key=lambda kind: (kind[1].lower(), kind))
    if largest_first:
        kinds.sort(key=lambda kind: -len(groups[kind]))
    return [_type_branch(scope, kind, groups[kind]) for kind in kinds]


def _type_branch(scope: Scope, kind: tuple[str, str], members: list[ExplorerEntry]) -> Branch:
    domain, op_type = kind
    key = ("type", scope, *kind)
    label = visible(op_type)
    return Branch("type", key, label, len(members), members=members, scope=scope, domain=domain)


def name_separator(entries: Sequence[ExplorerEntry]) -> str:
    """Return what separates the parts of these names: ``/``, or ``.`` where no name has one."""
    return "/" if any(entry.label.find("/", 1) > 0 for entry in entries) else "."


def split_names(
    scope: Scope, entries: Sequence[ExplorerEntry], start: int, separator: str
) -> list[Item]:
    """Return the folders and nodes right below a prefix, in order of appearance.

    Args:
        scope: Whose nodes they are.
        entries: Nodes whose labels have the first `start` characters in common.
        start: Length of the prefix, its separator included.
        separator: What separates the parts of a name.
    """
    if len(entries) > 1 and _common_folder(entries, start, separator):
        return [_folder(scope, list(entries), start, separator)]
    folders: dict[str, list[ExplorerEntry]] = {}
    slots: list[ExplorerEntry | str] = []
    same = ""
    members: list[ExplorerEntry] = []
    for entry in entries:
        label = entry.label
        if same and label.startswith(same, start):
            members.append(entry)  # most nodes are in the folder of the node before
            continue
        cut = label.find(separator, start + 1)
        if cut < 0:
            slots.append(entry)
            continue
        part = label[start:cut]
        if part not in folders:
            folders[part] = []
            slots.append(part)
        same, members = part + separator, folders[part]
        members.append(entry)
    if not folders:
        return list(entries)
    items: list[Item] = []
    for slot in slots:
        if isinstance(slot, ExplorerEntry):
            items.append(slot)
        elif len(folders[slot]) == 1:  # a folder of one node is that node
            items.append(folders[slot][0])
        else:
            items.append(_folder(scope, folders[slot], start, separator))
    return items


def _common_folder(entries: Sequence[ExplorerEntry], start: int, separator: str) -> bool:
    """Return whether all nodes are in one folder right below the prefix."""
    first, last = entries[0].label, entries[-1].label
    cut = first.find(separator, start + 1)
    if cut < 0 or not last.startswith(first[start : cut + 1], start):
        return False
    prefix = first[start : cut + 1]
    return all(entry.label.startswith(prefix, start) for entry in entries)


def _folder(scope: Scope, members: list[ExplorerEntry], start: int, separator: str) -> Branch:
    """Return one folder row; a folder that holds only one folder shares its row."""
    labels = [member.label for member in members]
    first = min(labels)
    stop = first.rfind(separator, 0, _common_length(first, max(labels))) + 1
    label = first[start : stop - 1]
    key = ("folder", scope, first[:stop])
    return Branch("folder", key, label, len(members), members=members, scope=scope, start=stop)


def _common_length(first: str, second: str) -> int:
    """Return how many characters two texts begin with in common."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def is_function(item: Item) -> bool:
    """Return whether an item is the row of a local function."""
    return isinstance(item, Branch) and item.scope is not None and item.scope.is_function


def scopes_within(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and all those inside it, in file order; no nesting is too deep for it."""
    pending = [scope]
    while pending:
        inner = pending.pop()
        yield inner
        pending.extend(reversed(inner.children()))
