"""One of two scopes that are compared, as plain lists that are quick to walk."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dld_tui.core.diff.attributes import attribute_key
from dld_tui.core.document.index import record_name
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.values import value_type_of
from dld_tui.core.document.wiretext import text_of, texts_of

Place = tuple[int, int]
"""A node by its index and the number of one of its inputs or outputs."""


class Side:
    """The nodes and values of a scope, and what they were matched with in the other scope."""

    def __init__(self, scope: Scope, parent: Side | None) -> None:
        self.scope = scope
        self.parent = parent
        self.path = scope.path
        self.nodes = scope.nodes
        self.names: list[str] = []
        self.operators: list[str] = []
        """``domain.op_type``, with the overload where there is one."""
        self.ins: list[tuple[str, ...]] = []
        self.outs: list[tuple[str, ...]] = []
        self._read_nodes()
        self.producers: dict[str, Place] = {}
        """Which output of which node makes a value; the first one in a broken model."""
        for index, outputs in enumerate(self.outs):
            for number, name in enumerate(outputs):
                if name:
                    self.producers.setdefault(name, (index, number))
        self.inputs = list(dict.fromkeys(scope.inputs))
        self.outputs = list(dict.fromkeys(scope.outputs))
        self.initializers: dict[str, Any] = {}
        """TensorProto or SparseTensorProto by name."""
        for field in ("initializer", "sparse_initializer"):
            for record in scope.records.get(field, ()):
                self.initializers.setdefault(record_name(field, record), record)
        self.leaves = {*self.inputs, *self.initializers}
        self.partners = [-1] * len(self.nodes)
        """For each node the index of the one it was matched with, or -1."""
        self.values: dict[str, str] = {}
        """For each matched value its name in the other scope."""
        self._consumers: dict[str, list[Place]] | None = None
        self._types: dict[str, Any] | None = None
        self._keys: list[str] | None = None
        self._name_counts: Counter[str] | None = None
        self._attributes: dict[int, tuple[Any, ...]] = {}

    def _read_nodes(self) -> None:
        names, operators, ins, outs = self.names, self.operators, self.ins, self.outs
        spelled: dict[tuple[str, str, str], str] = {}
        for node in self.nodes:
            proto = node.proto
            names.append(text_of(proto.name))
            operator = (proto.domain, proto.op_type, proto.overload)
            text = spelled.get(operator)
            if text is None:
                domain = f"{node.domain}." if node.domain else ""
                overload = f":{node.overload}" if node.overload else ""
                text = spelled[operator] = f"{domain}{node.op_type}{overload}"
            operators.append(text)
            ins.append(_texts(proto.input))
            outs.append(_texts(proto.output))

    # --- names ----------------------------------------------------------------------------------

    @property
    def keys(self) -> list[str]:
        """For each node its name where that is unique, else ``>FIRST_OUTPUT``, else nothing."""
        if self._keys is None:
            counts = self.name_counts
            self._keys = [
                name
                if name and counts[name] == 1
                else next((f">{output}" for output in outputs if output), "")
                for name, outputs in zip(self.names, self.outs, strict=True)
            ]
        return self._keys

    @property
    def name_counts(self) -> Counter[str]:
        """How many nodes have each name."""
        if self._name_counts is None:
            self._name_counts = Counter(self.names)
        return self._name_counts

    def ref(self, index: int) -> str:
        """Return the ref of a node, as :meth:`Scope.ref_of` does without its index."""
        name = self.names[index]
        if name and name[0] not in ">#" and self.name_counts[name] == 1:
            return name
        for number, output in enumerate(self.outs[index]):
            if output and self.producers.get(output) == (index, number):
                return f">{output}"
        return f"#{index}"

    # --- values ---------------------------------------------------------------------------------

    @property
    def consumers(self) -> dict[str, list[Place]]:
        """Every use of each value as a node's input in this very scope."""
        if self._consumers is None:
            found: dict[str, list[Place]] = {}
            for index, inputs in enumerate(self.ins):
                for number, name in enumerate(inputs):
                    if name:
                        entry = found.get(name)
                        if entry is None:
                            found[name] = [(index, number)]
                        else:
                            entry.append((index, number))
            self._consumers = found
        return self._consumers

    def defines(self, name: str) -> bool:
        """Return whether a value is made in this very scope."""
        return name in self.producers or name in self.leaves

    def counterpart(self, name: str) -> tuple[int, str] | None:
        """Return how many scopes outwards the matched value is, and its name there; or None."""
        side: Side | None = self
        level = 0
        while side is not None:
            if side.defines(name):
                found = side.values.get(name)
                return None if found is None else (level, found)
            side = side.parent
            level += 1
        return None

    def home(self, name: str) -> tuple[int, str] | None:
        """Return how many scopes outwards a value is defined, and its name; None for nowhere."""
        side: Side | None = self
        level = 0
        while side is not None:
            if side.defines(name):
                return level, name
            side = side.parent
            level += 1
        return None

    @property
    def types(self) -> dict[str, Any]:
        """The TypeProto that the file declares for each value."""
        if self._types is None:
            self._types = {
                record_name(field, record): record.type
                for field in ("value_info", "output", "input")
                for record in self.scope.records.get(field, ())
                if record.HasField("type")
            }
        return self._types

    def type_text(self, name: str) -> str:
        """Return the declared type of a value, or nothing. Foreign text."""
        proto = self.types.get(name)
        found = value_type_of(proto) if proto is not None else None
        return found.text if found is not None else ""

    def tensor(self, name: str) -> Tensor | None:
        """Return a dense initializer by name."""
        record = self.initializers.get(name)
        if record is None or not hasattr(record, "data_type"):
            return None
        return Tensor(record, self.scope.document)

    def tensor_kind(self, name: str) -> tuple[int, ...] | None:
        """Return element type and shape of a dense initializer as numbers, None for others."""
        record = self.initializers.get(name)
        if record is None or not hasattr(record, "data_type"):
            return None
        return (record.data_type, *record.dims)

    # --- attributes -----------------------------------------------------------------------------

    def attributes(self, index: int) -> tuple[Any, ...]:
        """Return what is equal for two nodes whose attributes are; payloads count by length."""
        found = self._attributes.get(index)
        if found is None:
            found = self._attributes[index] = attribute_key(self.nodes[index])
        return found


def _texts(names: Any) -> tuple[str, ...]:
    found = tuple(names)
    return texts_of(found) if bytes in map(type, found) else found
