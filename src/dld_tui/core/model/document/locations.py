"""Where a graph or node is in a model, by position or by a message of the onnx package.

A place is JSON data: ``[]`` is the main graph; ``[3, "body", 0]`` is the first graph of the
attribute ``body`` of node 3 of it; steps of three follow each other to any depth. Places of local
functions begin with ``"function", NUMBER``. They hold for as long as the document is not edited.

Names may be missing and need not be unique, so a model that is handed to onnx gets a label as the
name of each node; a label in a message then says which node it is, and is shown as its real name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope

Place: TypeAlias = list[int | str]
Body: TypeAlias = "onnx.GraphProto | onnx.FunctionProto"
_FUNCTION = "function"


def bodies(model: onnx.ModelProto) -> Iterator[tuple[Place, Body]]:
    """Yield every graph of a model with its place: the main one, those below it, functions."""
    yield from _below([], model.graph)
    for number, function in enumerate(model.functions):
        yield from _below([_FUNCTION, number], function)


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that are attributes of a node."""
    for _, graph in placed_bodies(node):
        yield graph


def nested_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of graphs in them."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if node.attribute:
            for graph in bodies_of(node):
                waiting.extend(graph.node)


def weight_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names of the initializers of a graph, sparse ones included."""
    sparse = (tensor.values for tensor in graph.sparse_initializer)
    return {text_of(tensor.name) for tensor in (*graph.initializer, *sparse)}


def names_used(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the names that nodes and graphs in them read, and those that these graphs return."""
    names: set[str] = set()
    for node in nested_nodes(nodes):
        names.update(map(text_of, node.input))
        if node.attribute:
            for graph in bodies_of(node):
                names.update(text_of(info.name) for info in graph.output)
    names.discard("")
    return names


def placed_bodies(node: onnx.NodeProto) -> Iterator[tuple[tuple[str, int], onnx.GraphProto]]:
    """Yield the same with the name of the attribute and the graph's number in it."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield (text_of(attribute.name), 0), attribute.g
        for number, graph in enumerate(attribute.graphs):
            yield (text_of(attribute.name), number), graph


def _below(place: Place, body: Body) -> Iterator[tuple[Place, Body]]:
    waiting = [(place, body)]
    while waiting:
        place, body = waiting.pop()
        yield place, body
        for index, node in enumerate(body.node):
            if node.attribute:  # a generator takes as long as all else of a node without any
                for step, graph in placed_bodies(node):
                    waiting.append(([*place, index, *step], graph))


def scope_at(document: Document, place: Sequence[int | str]) -> Scope | None:
    """Return the scope at a location; None when it does not exist (any more)."""
    steps = list(place)
    try:
        if steps[:1] == [_FUNCTION]:
            scope = document.functions[_number(steps[1])]
            del steps[:2]
        else:
            scope = document.main
        for at in range(0, len(steps), 3):
            index, attribute, number = steps[at : at + 3]
            node = scope.nodes[_number(index)]
            scope = node.children[str(attribute)][_number(number)]
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    return scope


def _number(step: int | str) -> int:
    if isinstance(step, str):
        raise TypeError(f"{step!r} is not a position")
    return step


def place_of(scope: Scope) -> Place:
    """Return the place of a scope."""
    steps: Place = []
    while (owner := scope.owner) is not None:
        scopes = ((name, at, one) for name, every in owner.children.items()
                  for at, one in enumerate(every))  # fmt: skip
        step = next((name, at) for name, at, one in scopes if one is scope)
        scope = owner.scope
        steps = [scope.nodes.index(owner), *step, *steps]
    if scope.is_function:
        return [_FUNCTION, scope.document.functions.index(scope), *steps]
    return steps


def node_at(document: Document, place: Sequence[int | str], index: int | None) -> Node | None:
    """Return a node by the place of its scope and its position there, None when it is gone."""
    scope = scope_at(document, place)
    if scope is None or index is None or not 0 <= index < len(scope.nodes):
        return None
    return scope.nodes[index]


_LABEL = r"<n(\d+)>"
_ENTRY = r"\(op_type:[^\n]*?, node name: <n(\d+)>\): "
_KIND = r"\[\w+Error\] ?"
_SUMMARY = "Inference error(s):"
_CONSEQUENCE = "expected to have type but instead is null"
"""Of a node with an input that nothing makes, or whose own node is in error."""
_CONTEXT = "==> Context:"
_DECLARED = "existing shape differ"
_LONGEST = 400
"""Characters of a message; the texts of onnx may hold a whole model."""


@dataclass(frozen=True)
class LocatedMessage:
    """What onnx says, and of which node: fit to be sent to another process."""

    message: str
    """Fit for a terminal."""
    place: Place | None = None
    """The place of the scope; None when no node is named."""
    index: int | None = None
    """The node's position there."""
    is_of_declared_shape: bool = False
    """It is about a declared shape that differs from the inferred one."""

    def told_of(self, document: Document) -> str:
        """Return the message with the node of a document in front of it."""
        scope = None if self.place is None else scope_at(document, self.place)
        if scope is None or self.index is None:
            return self.message
        return f"{visible(scope.nodes[self.index].ref)}: {self.message}"


def label_number(name: str) -> int | None:
    """Return the number of a label: nodes of the main graph are counted first; None of a name."""
    match = re.fullmatch(_LABEL, name)
    return None if match is None else int(match.group(1))


class Labels:
    """Gives every node of a model, at all levels, a label as its name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._nodes: list[tuple[Place, int, str, str]] = []
        self._first_outputs: list[str] = []
        for place, body in bodies(model):
            for index, node in enumerate(body.node):
                self._nodes.append((place, index, text_of(node.name), text_of(node.op_type)))
                self._first_outputs.append(text_of(node.output[0]) if node.output else "")
                node.name = label(len(self._nodes) - 1)

    @classmethod
    def of_file(cls, path: Path, *, repeated: bool = False) -> Labels:
        """Give the nodes in the file of a model labels as their names.

        Args:
            path: The file, which is written.
            repeated: Whether nodes of a graph with the same name get the same label.

        Raises:
            InputError: It cannot be read.
        """
        from google.protobuf.message import DecodeError

        try:
            model = onnx.ModelProto.FromString(path.read_bytes())
            labels = cls(model)
            if repeated:
                labels.repeat(model)
            path.write_bytes(model.SerializeToString())
        except (OSError, DecodeError) as error:
            raise InputError(f"cannot be read: {error}", where=str(path)) from None
        return labels

    def repeat(self, model: onnx.ModelProto) -> bool:
        """Give nodes of a graph with the same name the same label; return whether there are any."""
        found = False
        for _, body in bodies(model):
            first: dict[str, str] = {}
            for node in body.node:
                number = label_number(text_of(node.name))
                name = "" if number is None else self._nodes[number][2]
                if name and (known := first.setdefault(name, text_of(node.name))) != node.name:
                    node.name = known
                    found = True
        return found

    def find(self, name: str) -> tuple[Place, int, str] | None:
        """Return place, position and real name of the node with a label, None for other names."""
        number = label_number(name)
        return None if number is None else self._nodes[number][:3]

    def place_in(self, name: str) -> tuple[Place, int] | None:
        """Return place and position of the node whose label is in a name, None when there is none.

        Where functions are inlined, the names of nodes get something before or after them.
        """
        labels = re.findall(_LABEL, name)
        if not labels or int(labels[-1]) >= len(self._nodes):
            return None
        return self._nodes[int(labels[-1])][:2]

    def message(self, name: str, text: str) -> LocatedMessage:
        """Return a message on the node whose label is in a name."""
        labels = re.findall(_LABEL, name)
        return self._message(text, int(labels[-1]) if labels else None)

    def messages(self, text: str, *named: str) -> list[LocatedMessage]:
        """Return a message of onnx as one message for each node that it mentions.

        Args:
            text: The message.
            named: Labels of nodes that it is about when it names none itself.
        """
        entries = list(re.finditer(_ENTRY, text))
        messages = []
        ends = [*(entry.start() for entry in entries[1:]), len(text)]
        for entry, end in zip(entries, ends, strict=False):
            message = text[entry.end() : end]
            # An entry may only lead to those of a subgraph, or follow from another one.
            if _SUMMARY not in message and _CONSEQUENCE not in message:
                messages.append(self._message(message, int(entry.group(1))))
        if entries:
            return messages
        message, _, context = text.partition(_CONTEXT)  # which is of the outermost node
        for place in (message, " ".join(named), context):
            if labels := re.findall(_LABEL, place):
                return [self._message(message, int(labels[-1]))]
        return [self._message(text, None)]

    def located(self, text: str, place: tuple[Place, int] | None) -> LocatedMessage:
        """Return a message about a node, with the names of nodes in the place of labels."""
        number = None
        if place is not None:
            number = next((at for at, node in enumerate(self._nodes) if node[:2] == place), None)
        return self._message(text, number)

    def _message(self, text: str, number: int | None) -> LocatedMessage:
        shown_text = re.sub(_LABEL, lambda match: self._shown(int(match.group(1))), text)
        shown_text = visible(" ".join(re.sub(_KIND, "", shown_text).split()))
        message = clip(shown_text, _LONGEST, keep="start")
        if number is None or number >= len(self._nodes):
            return LocatedMessage(message, is_of_declared_shape=_DECLARED in text)
        place, index, _, op_type = self._nodes[number]
        text = f"{visible(op_type)}: {message}"
        return LocatedMessage(text, place, index, _DECLARED in text)

    def _shown(self, number: int) -> str:
        if number >= len(self._nodes):
            return "?"
        _, index, name, op_type = self._nodes[number]
        if name:
            return name
        output = self._first_outputs[number]
        return f"{f'>{output}' if output else f'#{index}'} ({op_type})"


def label(number: int) -> str:
    """Return the label of a node."""
    return f"<n{number}>"
