"""Pasting copied nodes, in the same document or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import set_text, set_texts, text_of, texts_of
from dld_tui.core.model.document.edit_registry import edit
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.node import constant_node
from dld_tui.core.model.document.opset_imports import copy_functions, import_opsets, imports_of
from dld_tui.core.model.document.parts.extraction import is_constant
from dld_tui.core.model.document.parts.fragment import (
    inner_names,
    read_fragment,
    rename_inside,
    rename_links,
    same_values,
)
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.transactions import Splice, Transaction
from dld_tui.core.model.document.traversal import outer_node, upstream_of
from dld_tui.core.model.edits.initializers import enter_initializer
from dld_tui.core.model.edits.renaming import require_visible
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import value_type_of
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


@edit
def paste_nodes(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    fragment: JSON,
    connect: Mapping[str, str] | None = None,
    index: int | None = None,
) -> str:
    """Add copied nodes, with the initializers, operator sets and functions that they need.

    Names that are taken get a number. An input from outside keeps its name where that is a value
    here; else it is left out if it is optional, and without a source if it is not.

    Args:
        scope: The path of the scope.
        fragment: The nodes; see :mod:`dld_tui.core.model.document.parts.fragment`.
        connect: Values to take instead, by the name of the input from outside.
        index: The place of the first node; by default after all others, or before the first one
            that uses an output of a pasted one.
    """
    home = document.scope_at(scope)
    model, constants, shared = read_fragment(document, fragment)
    if index is not None and not 0 <= index <= len(home.nodes):
        raise EditError(f"there is no place {index} among {len(home.nodes)} nodes")
    import_opsets(document, transaction, home, model)
    copy_functions(document, transaction, home, model)
    return _Paste(document, transaction, home, model, constants, shared).run(connect or {}, index)


class _Paste:
    """One paste: first all names are chosen, then the records are added."""

    def __init__(
        self,
        document: Document,
        transaction: Transaction,
        home: Scope,
        model: onnx.ModelProto,
        constants: int,
        shared: set[str],
    ) -> None:
        self._document = document
        self._transaction = transaction
        self._home = home
        self._graph = model.graph
        self._constants = list(model.graph.node[:constants])
        self._nodes = list(model.graph.node[constants:])
        self._shared = shared
        self._below = [scope for child in _children(home) for scope in child.walk()]
        self._names: dict[str, str] = {}
        input_names = {text_of(info.name) for info in model.graph.input}
        self._reserved = input_names | inner_names(model.graph.node)
        self._lost: set[str] = set()
        """Values from outside that are not here."""
        self._waiting = len(home.nodes)
        """The place of the first node that waits for a value that is pasted."""

    def run(self, connect: Mapping[str, str], index: int | None) -> str:
        self._connect(connect)
        stored = self._choose_initializers()
        constants = [node for node in self._constants if not self._has_constant(node)]
        self._avoid_inner_names()
        for node in constants:
            self._name_outputs(node, fresh=True)
        ancestors = self._ancestors()
        for node in self._nodes:
            self._name_outputs(node, ancestors=ancestors)
        pasted = [*constants, *self._nodes]
        lost = self._drop_optional()
        for node in pasted:
            rename_links(node, self._names)
        self._name_nodes(pasted)
        self._add(stored, pasted, self._waiting if index is None else index)
        self._declare_types()
        subject_text = fmt.plural(len(self._nodes), "node")
        return f"paste {subject_text}" + (
            f", {fmt.plural(lost, 'input')} without a source" if lost else ""
        )

    def _connect(self, connect: Mapping[str, str]) -> None:
        input_names = [text_of(info.name) for info in self._graph.input]
        for name, value in connect.items():
            if name not in input_names:
                raise EditError(f"the nodes take no value {quoted(name)} from outside")
            if not isinstance(value, str) or not value:
                raise EditError(f"{quoted(name)} needs the name of a value")
            require_visible(self._home, value)
            self._names[name] = value
        self._lost = {
            name
            for name in input_names
            if name not in self._names and self._home.resolve(name) is None
        }

    def _drop_optional(self) -> int:
        """Leave out optional inputs that have no source here; return how many others there are."""
        imports = imports_of(self._home)
        lost = 0
        for node in self._nodes if self._lost else ():
            inputs = list(texts_of(node.input))
            domain = text_of(node.domain)
            schema = schema_for(text_of(node.op_type), domain, imports.get(domain))
            for place, name in enumerate(inputs):
                if name not in self._lost:
                    continue
                formal = schema.input(place) if schema is not None else None
                if formal is not None and formal.option == "optional":
                    inputs[place] = ""
                else:
                    lost += 1
            while inputs and not inputs[-1] and node.input[-1] in self._lost:
                inputs.pop()
            set_texts(node, "input", inputs)
        return lost

    def _ancestors(self) -> set[Any]:
        """Return the nodes that pasted ones are computed from, as long as they may matter."""
        waits = any(self._users(name) for node in self._nodes for name in texts_of(node.output))
        if not waits:
            return set()
        sources = []
        for info in self._graph.input:
            name = text_of(info.name)
            definition = self._home.resolve(self._names.get(name, name))
            if definition is not None and definition.node is not None:
                sources.append(definition.node)
        return upstream_of(node for node in sources if node.scope is self._home)

    def _choose_initializers(self) -> list[tuple[str, Any]]:
        """Name the initializers and return those to add; the same ones are shared."""
        chosen: list[tuple[str, Any]] = []
        for list_name in ("initializer", "sparse_initializer"):
            for record in getattr(self._graph, list_name):
                name = record_name(list_name, record)
                if name in self._shared:
                    self._require_shared(name, record)
                elif not self._has(list_name, name, record):
                    self._names[name] = self._free(name)
                    tensor = record.values if list_name == "sparse_initializer" else record
                    set_text(tensor, "name", self._names[name])
                    chosen.append((list_name, record))
        return chosen

    def _require_shared(self, name: str, record: onnx.TensorProto) -> None:
        definition = self._home.resolve(name)
        present = definition.scope.initializer(name) if definition is not None else None
        same = present is not None and (present.proto.data_type, list(present.proto.dims)) == (
            record.data_type, list(record.dims),
        )  # fmt: skip
        if not same:
            raise EditError(
                f"the nodes use the initializer {quoted(name)}, which is not here or has another "
                "type or shape",
                hint="Copy them from the model that has it",
            )

    def _has(self, list_name: str, name: str, record: Any) -> bool:
        definition = self._home.resolve(name)
        if definition is None or definition.kind != "initializer":
            return False
        present = definition.scope.named(list_name).first(name)
        if present is None:
            return False
        if list_name == "sparse_initializer":
            return bool(present == record)
        return same_values(Tensor(present, self._document), Tensor(record, self._document))

    def _has_constant(self, node: onnx.NodeProto) -> bool:
        definition = self._home.resolve(texts_of(node.output)[0])
        present = definition.node if definition is not None else None
        return (
            present is not None
            and is_constant(present)
            and list(present.proto.attribute) == list(node.attribute)
        )

    def _name_outputs(
        self, node: onnx.NodeProto, *, fresh: bool = False, ancestors: set[Any] | None = None
    ) -> None:
        for name in texts_of(node.output):
            if not name:
                continue
            users = self._users(name)
            closes_a_cycle = ancestors is not None and not ancestors.isdisjoint(users)
            if name in self._reserved or closes_a_cycle or (fresh and users) or self._taken(name):
                self._names[name] = self._free(name)
                continue
            self._reserved.add(name)
            if users:  # what was cut is linked again when it is pasted
                first = min(self._home.index_of(user) for user in users)
                self._waiting = min(self._waiting, first)

    def _users(self, name: str) -> list[Any]:
        """Return the nodes of the scope that use a value, themselves or inside."""
        if name not in self._home.links.consumers and not self._below:
            return []
        return [outer_node(self._home, use.node) for use in self._home.users(name)]

    def _taken(self, name: str) -> bool:
        if self._home.resolve(name) is not None:
            return True
        return any(scope.definition(name) is not None for scope in self._below)

    def _free(self, wanted: str) -> str:
        name = unused_name(
            wanted,
            lambda name: name in self._reserved or bool(self._taken(name) or self._users(name)),
        )
        self._reserved.add(name)
        return name

    def _avoid_inner_names(self) -> None:
        """Rename what subgraphs define where the name means something here."""
        inner = inner_names((*self._constants, *self._nodes))
        clashing = sorted(name for name in inner if self._home.resolve(name) is not None)
        if clashing:
            rename_inside(self._nodes, {name: self._free(name) for name in clashing})

    def _name_nodes(self, nodes: Sequence[onnx.NodeProto]) -> None:
        used: set[str] = set()
        for node in nodes:
            wanted = text_of(node.name)
            if not wanted:
                continue
            name = unused_name(
                wanted, lambda name: name in used or bool(self._home.nodes_named(name))
            )
            if name != wanted:
                set_text(node, "name", name)
            used.add(name)

    def _add(
        self, stored: Sequence[tuple[str, Any]], nodes: Sequence[onnx.NodeProto], index: int
    ) -> None:
        home = self._home
        added = list(nodes)
        for list_name, record in stored:
            if home.is_function:  # it has no initializers
                added.insert(0, constant_node(record_name(list_name, record), record))
                continue
            enter_initializer(self._transaction, home, list_name, record)
        for record in self._graph.quantization_annotation:
            name = text_of(record.tensor_name)
            if "quantization_annotation" in home.records and self._names.get(name, name):
                set_text(record, "tensor_name", self._names.get(name, name))
                for entry in record.quant_parameter_tensor_names:
                    value = text_of(entry.value)
                    set_text(entry, "value", self._names.get(value, value))
                self._transaction.append(home, "quantization_annotation", record)
        inserted = [home.new_node(proto) for proto in added]
        if inserted:
            self._transaction.do(Splice(home, "node", index, [], inserted))

    def _declare_types(self) -> None:
        """Bring the types of values along, unless something of another type goes in."""
        for info in self._graph.input:
            name = text_of(info.name)
            here = self._home.value_type(self._names.get(name, name))
            there = value_type_of(info.type) if info.HasField("type") else None
            if here is not None and there is not None and here != there:
                return
        outputs = set(self._home.outputs)
        infos = []
        for info in self._graph.value_info:
            name = text_of(info.name)
            name = self._names.get(name, name)
            if name not in outputs and name not in self._home.named("value_info"):
                set_text(info, "name", name)
                infos.append(info)
        if infos:
            self._transaction.append(self._home, "value_info", *infos)


def _children(scope: Scope) -> list[Scope]:
    return [child for node in scope.control_flow for child in node.subgraphs()]
