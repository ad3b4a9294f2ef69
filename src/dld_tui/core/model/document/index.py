"""Where each value of a scope comes from and where it is used, kept up to date by edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.columns import MARK
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.node import SomeLinks, links_of, texts_of_nodes
from dld_tui.core.process.interpreter import collector_paused

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node, NodeTexts
    from dld_tui.core.model.document.scope import Scope

T = TypeVar("T")


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


NAME_FIELD = {"quantization_annotation": "tensor_name"}
"""The field with the value's name, where it is not ``name``."""
_DRIFT = 100
"""How far edits may have moved a node before the whole list is searched."""


def record_name(list_name: str, record: Any) -> str:
    """Return the name of the value that a record of a graph's list is about."""
    if list_name == "sparse_initializer":
        record = record.values
    return text_of(getattr(record, NAME_FIELD.get(list_name, "name")))


def _table() -> dict[str, Any]:
    """Return an empty dict for many names that stores the hash of each name.

    CPython stores no hashes in a dict whose keys have all been str. A lookup then reads the hash
    from each name that it collides with, and growth reads it from all names. With 50,000 names
    these are cache misses, and the tables take a third longer to build.
    """
    table: dict[Any, Any] = {None: None}
    del table[None]
    return table


def place_of(nodes: list[Node], node: Node, drift: int = 0) -> int:
    """Return the place of a node in a list, looking first near where it was the last time.

    Args:
        nodes: The list.
        node: One of them.
        drift: By how much the node that was looked for before had moved. Who goes through the list
            and inserts finds each one there, not by a search of the whole list.

    Raises:
        ValueError: It is not in the list.
    """
    guess = node.place
    if guess < len(nodes) and nodes[guess] is node:
        return guess
    for center in dict.fromkeys((guess + drift, guess)):
        try:
            node.place = nodes.index(node, max(0, center - _DRIFT), max(0, center + _DRIFT))
        except ValueError:
            continue
        return node.place
    node.place = nodes.index(node)
    return node.place


class NodeIndex:
    """Nodes of a scope by one of their texts: ``name`` or ``op_type``.

    Args:
        field: Which text.
        texts: The text of each node, if it has been read already.
    """

    def __init__(
        self, field: str, nodes: Iterable[Node], texts: Sequence[str] | None = None
    ) -> None:
        self._field = field
        self._found: dict[str, Node | dict[Node, None]] = {}
        """One node as itself: most names are unique, and a dict takes five times the room."""
        nodes = list(nodes)
        if texts is None:
            texts = texts_of_nodes(nodes, field)
        if len(set(texts)) == len(nodes):
            self._found.update(zip(texts, nodes, strict=True))
        else:
            for text, node in zip(texts, nodes, strict=True):
                self._enter(text, node)

    def add(self, node: Node) -> None:
        """Enter a node under its present text."""
        self._enter(getattr(node, self._field), node)

    def _enter(self, text: str, node: Node) -> None:
        nodes = self._found.get(text)
        if nodes is None:
            self._found[text] = node
        elif isinstance(nodes, dict):
            nodes[node] = None
        else:
            self._found[text] = {nodes: None, node: None}

    def remove(self, node: Node) -> None:
        """Take out a node that is entered under its present text."""
        text = getattr(node, self._field)
        nodes = self._found[text]
        if isinstance(nodes, dict):
            del nodes[node]
        elif nodes is not node:
            raise KeyError(text)
        if nodes is node or not nodes:
            del self._found[text]

    def get(self, text: str) -> tuple[Node, ...]:
        """Return the nodes with a text, in the order in which they were entered."""
        nodes = self._found.get(text)
        if nodes is None:
            return ()
        return tuple(nodes) if isinstance(nodes, dict) else (nodes,)

    def shared(self) -> list[str]:
        """Return the texts that several nodes have."""
        return [text for text, nodes in self._found.items() if isinstance(nodes, dict)]


class NameIndex:
    """Records of one list by name; several records may have the same name in a broken model."""

    def __init__(self, list_name: str, records: Iterable[Any]) -> None:
        self._list_name = list_name
        self._by_name: dict[str, list[Any]] = {}
        for record in records:
            self.add(record)

    def add(self, record: Any) -> None:
        """Enter a record under its present name."""
        self._by_name.setdefault(record_name(self._list_name, record), []).append(record)

    def remove(self, record: Any) -> None:
        """Take out a record that is entered under its present name."""
        name = record_name(self._list_name, record)
        left = [other for other in self._by_name[name] if other is not record]
        if left:
            self._by_name[name] = left
        else:
            del self._by_name[name]

    def first(self, name: str) -> Any | None:
        """Return the first record of a name, or None."""
        records = self._by_name.get(name)
        return records[0] if records else None

    def all(self, name: str) -> list[Any]:
        """Return every record of a name."""
        return self._by_name.get(name, [])

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Any:
        return iter(self._by_name)


def enter_links(
    table: dict[str, Sequence[T]], alone: Sequence[tuple[T]], names: Sequence[Sequence[str]]
) -> None:
    """Enter nodes under the names of values that they are linked to.

    Args:
        table: What uses or makes each value, once for each link. Most values have one producer and
            one consumer: their entry is the tuple of `alone`, others have a list.
        alone: A tuple of each node, or of what stands for it.
        names: The values of each node; an empty name is no value.
    """
    for owner, own in zip(alone, names, strict=True):
        for name in own:
            if name in table:
                entry = table[name]
                if entry.__class__ is list:
                    entry.append(owner[0])
                else:
                    table[name] = [*entry, owner[0]]
            elif name:
                table[name] = owner


class LinkIndex:
    """Producers and consumers of the values of one scope, by name, whoever defines them.

    Args:
        nodes: The nodes of the scope.
        texts: Their links, if they have been read already.
    """

    def __init__(self, nodes: Sequence[Node], texts: NodeTexts | None = None) -> None:
        self.producers: dict[str, Sequence[Node]] = _table()
        """Nodes with the value as an output; more than one only in a broken model."""
        self.consumers: dict[str, Sequence[Node]] = _table()
        """Nodes with the value as an input, once for each input."""
        with collector_paused():
            for links in (texts,) if texts is not None else links_of(nodes):
                # Most values have one producer and one consumer: each node has one tuple for these,
                # as a list for each value would take a tenth of the memory of a large model.
                alone = list(zip(links.nodes, strict=True))
                if isinstance(links, SomeLinks):
                    self._build_producers(alone, links.outputs)
                    self._build_marked(self.consumers, alone, links.inputs)
                else:
                    enter_links(self.producers, alone, links.outputs)
                    enter_links(self.consumers, alone, links.inputs)
            self.producers.pop("", None)
            self.consumers.pop("", None)

    def _build_producers(self, alone: list[tuple[Node]], outputs: list[str]) -> None:
        names_of_nodes = outputs[::2]
        if len(outputs) != 2 * len(alone) or outputs[1::2].count(MARK) != len(alone):
            self._build_marked(self.producers, alone, outputs)
            return
        # Mostly each node has one output, which is no other's.
        firsts = list(map(self.producers.setdefault, names_of_nodes, alone))
        if firsts != alone:
            for name, first, node in zip(names_of_nodes, firsts, alone, strict=True):
                if first is not node:
                    self._enter(self.producers, name, node[0])

    @staticmethod
    def _build_marked(
        table: dict[str, Sequence[Node]], alone: Sequence[tuple[Node]], names: Sequence[str]
    ) -> None:
        # The same as `enter_links` where a mark stands after the names of each node.
        rest = iter(names)
        for node in alone:
            for name in rest:
                if name == MARK:
                    break
                if name in table:
                    entry = table[name]
                    if entry.__class__ is list:
                        entry.append(node[0])
                    else:
                        table[name] = [*entry, node[0]]
                else:
                    table[name] = node

    def add(self, node: Node) -> None:
        """Enter the links of a node."""
        proto = node.proto
        for name in proto.input:
            if name:
                self._enter(self.consumers, name, node)
        for name in proto.output:
            if name:
                self._enter(self.producers, name, node)

    def remove(self, node: Node) -> None:
        """Remove the present links of a node."""
        for name in node.inputs:
            if name:
                self._take(self.consumers, name, node)
        for name in node.outputs:
            if name:
                self._take(self.producers, name, node)

    @staticmethod
    def _enter(table: dict[str, Sequence[Node]], name: str | bytes, node: Node) -> None:
        key: str = name if name.__class__ is str else text_of(name)
        entry = table.get(key)
        if isinstance(entry, list):
            entry.append(node)
        else:
            table[key] = [*(entry or ()), node]

    @staticmethod
    def _take(table: dict[str, Sequence[Node]], name: str, node: Node) -> None:
        entry = table[name]
        # One entry for each use: a node that uses a value twice is in the list twice.
        if isinstance(entry, list):
            entry.remove(node)
        elif entry != (node,):
            raise ValueError(f"{node} is not entered under {name!r}")
        else:
            entry = ()
        if not entry:
            del table[name]
