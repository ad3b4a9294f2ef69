"""What replaces one hit of a rewrite rule, worked out before anything is changed."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from dld_tui.core.errors import EditError
from dld_tui.core.files.proto_fields import set_text, set_texts, text_of, texts_of
from dld_tui.core.model.document.node import Node, constant_node, node_proto
from dld_tui.core.model.document.operator_matching import schema_in
from dld_tui.core.model.document.opset_imports import (
    ensure_import,
    ensure_known_import,
    versions_by_domain,
)
from dld_tui.core.model.document.scope import unused_name
from dld_tui.core.model.document.transactions import SetLinks, Splice, Transaction
from dld_tui.core.model.document.traversal import sources
from dld_tui.core.model.edits.attributes import attribute_proto
from dld_tui.core.model.edits.functions import enter_function, new_function, require_new_function
from dld_tui.core.model.edits.initializers import enter_initializer
from dld_tui.core.model.edits.nodes import remove_records, require_convex
from dld_tui.core.model.edits.renaming import is_taken, rename_everywhere
from dld_tui.core.model.edits.subgraphs import whole_node
from dld_tui.core.model.edits.tensors import put_payload
from dld_tui.core.model.operators.attribute_words import integer_text
from dld_tui.core.model.operators.categories import BROADCASTING
from dld_tui.core.model.operators.registry import known_versions, schema_for
from dld_tui.core.model.operators.schema import Formal, OperatorSchema
from dld_tui.core.model.rewrite.expression import UNKNOWN, is_number, plain
from dld_tui.core.model.rewrite.matcher import Ends, Hit
from dld_tui.core.model.rewrite.pattern import (
    Argument,
    Call,
    ComputedConstant,
    Literal,
    OmittedInput,
    Variable,
)
from dld_tui.core.model.rewrite.rule import Action, Rewrite
from dld_tui.core.model.rewrite.views import ValueView, made_dtype
from dld_tui.core.model.tensors.value_types import dtype_name, dtype_number
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


class RewriteRefusal(Exception):
    """Why a hit cannot be replaced."""


def line_of(node: Node) -> str:
    """Return a node as a line: its operator, inputs and outputs. Untrusted text."""
    return _line(node.proto)


def _line(proto: onnx.NodeProto) -> str:
    domain, op_type = text_of(proto.domain), text_of(proto.op_type)
    operator = f"{domain}.{op_type}" if domain else op_type
    return f"{', '.join(texts_of(proto.output))} = {operator}({', '.join(texts_of(proto.input))})"


def _takes(formal: Formal, dtype: str) -> bool:
    """Return whether an input of an operator may have an element type."""
    return dtype_number(dtype) in map(dtype_number, formal.types)


def _are_alike(schema: OperatorSchema | None, place: int, other: int) -> bool:
    """Return whether the schema says that two inputs of an operator have the same element type."""
    if schema is None:
        return True
    first, second = schema.input(place), schema.input(other)
    return first is None or second is None or first.type_name == second.type_name


class HitReplacement:
    """What replaces one hit, worked out before anything is changed."""

    def __init__(
        self,
        document: Document,
        hit: Hit,
        rewrite_rule: Rewrite,
        functions: dict[bytes, str],
        local: set[tuple[str, str]],
        ends: Ends,
    ) -> None:
        self._document = document
        self._hit = hit
        self._home = hit.scope
        self._one = rewrite_rule
        self._functions = functions
        self._local = local
        self._protos: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._imports: dict[str, None] = {}
        self._function: tuple[onnx.FunctionProto, tuple[str, str, str]] | None = None
        self._passed: list[tuple[str, str]] = []
        """Values of which the users get another one: which, and what instead."""
        self._given: set[str] = set()
        self._dtypes: dict[str, Any] = {}
        """Element types of new values, UNKNOWN where the operator does not tell."""
        self._constants: dict[str, np.ndarray[Any, Any]] = {}
        """New constants by their names."""
        body = hit.pattern.body
        self._outputs = [hit.values[name] for name in body.outputs]
        self._removed = self._removable(ends)
        removed = [line_of(node) for node in self._removed]
        kept = set(hit.nodes) - set(self._removed)
        if any(out in self._outputs for node in kept for out in node.outputs):
            raise RewriteRefusal("a node that stays produces a replaced value")
        self._late = self._behind(kept)
        if len(self._outputs) > 1 or self._late:
            if any(name in self._outputs for node in self._late for name in node.inputs):
                raise RewriteRefusal("a node that stays uses a replaced value")
            try:
                require_convex(self._home, hit.nodes, self._outputs)
            except EditError as error:
                raise RewriteRefusal(error.message) from None
        if rewrite_rule.action is not None:
            self._plan_action(rewrite_rule.action)
        else:
            if rewrite_rule.replacement is not None and rewrite_rule.replacement.calls:
                self._require_rank()
            self._plan_replacement()
        self.lines = removed, [_line(proto) for proto in self._protos]
        """Of the nodes that go, and of those that come."""
        removed_values = [name for node in self._removed for name in node.outputs if name]
        used = [name for node in self._removed for name in node.inputs if name]
        # A constant that replaces what only others used that went before has no use either.
        self.gone = [*removed_values, *used, *(text_of(tensor.name) for tensor in self._weights)]

    def _removable(self, ends: Ends) -> list[Node]:
        """Return the nodes that go: all but those that others, or one that stays, need."""
        hit = self._hit
        outputs, body = set(self._outputs), self._one.replacement
        removed = list(hit.nodes)
        named = () if body is None else [i for call in body.calls for i in call.inputs]
        consumed = {
            hit.values.get(item.name)
            for item in (*named, *(() if body is None else body.results))
            if isinstance(item, Variable)
        }
        while True:
            needed = [
                node
                for node in removed
                if any(
                    name
                    and name not in outputs
                    and (name in consumed or ends.is_used_beside(name, removed))
                    for name in node.outputs
                )
            ]
            if not needed:
                place = {node: at for at, node in enumerate(hit.nodes)}
                return sorted(removed, key=lambda n: (self._home.index_of(n), place[n]))
            removed = [node for node in removed if node not in needed]

    def _behind(self, kept: set[Node]) -> list[Node]:
        """Return the nodes that stay and come after the last one that goes."""
        if not self._removed:
            return []
        last = self._home.index_of(self._removed[-1])
        return [node for node in kept if self._home.index_of(node) > last]

    def _plan_action(self, action: Action) -> None:
        body, values = self._hit.pattern.body, self._hit.values
        if action.kind == "delete":
            for name in self._outputs:
                if self._home.is_used(name):
                    raise RewriteRefusal(f"{quoted(name)} is used: no node would produce it")
            return
        if action.kind == "bypass":
            first = next((values[name] for name in body.inputs if values.get(name)), "")
            if len(self._outputs) != 1 or not first:
                raise RewriteRefusal("no input can replace its one output")
            self._require_same_type(first, self._outputs[0])
            self._pass_on(self._outputs[0], first)
            return
        domain, _, name = action.name.rpartition(".")
        inputs = [values.get(name, "") for name in body.inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        if action.kind == "function":
            inputs = list(dict.fromkeys(inputs))
            name = self._function_name(domain, name, inputs)
        self._imports[domain] = None
        self._require_operator(domain, name)
        self._protos.append(node_proto(name, inputs, self._outputs, domain=domain))

    def _require_same_type(self, first: str, second: str) -> None:
        here, there = self._home.value_type(first), self._home.value_type(second)
        if here is None or there is None:
            return
        if here.dtype != there.dtype or (
            here.dims is not None and there.dims is not None and len(here.dims) != len(there.dims)
        ):
            raise RewriteRefusal(
                f"{quoted(first)} is {here.text}, what it would stand for {there.text}"
            )

    def _plan_replacement(self) -> None:
        body = self._one.replacement
        assert body is not None
        names: dict[str, str] = {}
        used_names: set[str] = set()
        results = {
            item.name: actual
            for item, actual in reversed(list(zip(body.results, self._outputs, strict=True)))
            if isinstance(item, Variable)
        }
        outputs = {name for call in body.calls for name in call.outputs if name}
        for call in body.calls:
            for name in call.outputs:
                if name:
                    wanted = f"{self._outputs[0]}_{call.title.rpartition('.')[2]}".strip("_")
                    names[name] = results.get(name) or self._free(wanted, used_names)
        for call in body.calls:
            self._protos.append(self._proto(call, names))
        for item, actual in zip(body.results, self._outputs, strict=True):
            if isinstance(item, Variable) and item.name in outputs:
                if names[item.name] != actual:
                    self._pass_on(actual, names[item.name])
                continue
            self._pass_on(actual, self._argument(item, names, None, []))

    def _pass_on(self, value: str, instead: str) -> None:
        if not instead:
            raise RewriteRefusal("what would take its place is left out here")
        is_copy = [node.op_type for node in self._removed] == ["Identity"]
        if is_copy and self._needs_copy(value, instead):
            raise RewriteRefusal("it is between what another graph gives and an output")
        self._passed.append((value, instead))

    def _free(self, wanted: str, used_names: set[str]) -> str:
        name = unused_name(
            wanted or "value",
            lambda name: name in used_names or name in self._given or is_taken(self._home, name),
        )
        used_names.add(name)
        self._given.add(name)
        return name

    def _proto(self, call: Call, names: Mapping[str, str]) -> onnx.NodeProto:
        outputs = [names.get(name, "") for name in call.outputs]
        if call.kinds:
            ((domain, op_type),) = call.kinds
            self._imports[domain] = None
            self._require_operator(domain, op_type)
            proto = node_proto(op_type, (), outputs, domain=domain)
        else:
            calls = self._hit.pattern.body.calls
            at = next((at for at, other in enumerate(calls) if other.label == call.label), None)
            if at is None:
                raise RewriteRefusal(f"{call.label}, whose operator it copies, is not in this hit")
            proto = whole_node(self._hit.nodes[at])
            domain, op_type = self._hit.nodes[at].domain, self._hit.nodes[at].op_type
            set_texts(proto, "output", outputs)
        schema = schema_in(op_type, domain, self._home)
        more = self._give_attributes(proto, call, schema)
        inputs: list[str] = []
        for place, item in enumerate(call.inputs):
            formal = schema.input(place) if schema is not None else None
            siblings = [
                names.get(other.name) or self._hit.values.get(other.name, "")
                for at, other in enumerate(call.inputs)
                if isinstance(other, Variable) and _are_alike(schema, place, at)
            ]
            inputs.append(self._argument(item, names, formal, siblings))
        for place, name in more.items():
            inputs += [""] * (place + 1 - len(inputs))
            inputs[place] = name
        while inputs and not inputs[-1]:
            inputs.pop()
        set_texts(proto, "input", inputs)
        is_new = all((node.domain, node.op_type) != (domain, op_type) for node in self._hit.nodes)
        if is_new or (op_type == "Reshape" and not domain and self._is_open(inputs)):
            self._require_elements()
        if schema is not None:
            self._require_inputs(schema, inputs)
            self._require_types(op_type, schema, inputs)
            to = next((item.i for item in proto.attribute if item.name == "to"), 0)
            for at, name in enumerate(outputs):
                dtype = made_dtype(schema, at, inputs, self._dtype, to if op_type == "Cast" else 0)
                self._dtypes[name] = dtype
        return proto

    def _require_inputs(self, schema: OperatorSchema, inputs: Sequence[str]) -> None:
        """Refuse an operator that takes other inputs in this version than in the rule's."""
        most = len(inputs) if schema.max_inputs is None else schema.max_inputs
        needed = [at for at, one in enumerate(schema.inputs) if one.option == "single"]
        is_complete = all(at < len(inputs) and inputs[at] for at in needed)
        if not is_complete or not schema.min_inputs <= len(inputs) <= most:
            version = versions_by_domain(self._home).get(schema.domain)
            raise RewriteRefusal(f"{schema.name} takes other inputs in opset {version}")

    def _require_types(self, op_type: str, schema: OperatorSchema, inputs: Sequence[str]) -> None:
        """Refuse an operator that does not take the element types that it would get."""
        for place, name in enumerate(inputs):
            formal = schema.input(place) if name else None
            dtype = self._dtype(name) if formal is not None else UNKNOWN
            if formal is not None and isinstance(dtype, str) and not _takes(formal, dtype):
                raise RewriteRefusal(f"{op_type} does not take {dtype}")

    def _is_open(self, inputs: Sequence[str]) -> bool:
        """Return whether a Reshape copies a size and leaves one open."""
        shape = self._constants.get(inputs[1])
        return shape is not None and {0, -1} <= {*shape.flat}

    def _require_elements(self) -> None:
        """Refuse another operator, or an open size, where there are no elements.

        Kernels of fused operators do not take that, and the open size cannot be worked out.
        """
        views = [ValueView(self._home, name) for name in self._hit.values.values() if name]
        if any(view.dims is not UNKNOWN and 0 in view.dims for view in views):
            raise RewriteRefusal("a size is 0")

    def _dtype(self, name: str) -> Any:
        """Return the element type of a value, of a new one too; UNKNOWN where it is not known."""
        if name in self._dtypes:
            return self._dtypes[name]
        known = self._home.value_type(name)
        is_tensor = known is None or not known.container
        return ValueView(self._home, name).dtype if is_tensor else UNKNOWN

    def _require_rank(self) -> None:
        """Refuse a constant of one element that would add dimensions to the replaced value.

        What takes its place has those of the data.
        """
        for node in self._removed:
            if node.domain or node.op_type not in BROADCASTING:
                continue
            views = [ValueView(self._home, name) for name in node.inputs]
            ranks = [view.field("rank") for view in views]
            for at, (view, rank) in enumerate(zip(views, ranks, strict=True)):
                others = [other_rank for other, other_rank in enumerate(ranks) if other != at]
                # Most scalars that are stored as lists of one meet data of a dimension or more.
                most = 1 if not others or UNKNOWN in others else max(others)
                if rank is not UNKNOWN and rank > most and view.constant() is not None:
                    raise RewriteRefusal(f"{quoted(view.name)} has more dimensions than its data")

    def _require_operator(self, domain: str, op_type: str) -> None:
        version = versions_by_domain(self._home).get(domain)
        if (domain, op_type) in self._local or version is None:
            return
        if schema_for(op_type, domain, version) is None and known_versions(domain):
            newest = schema_for(op_type, domain, None)
            if newest is not None:
                raise RewriteRefusal(
                    f"{op_type} is there from opset {newest.since_version} on, this is {version}"
                )
            if not domain:
                raise EditError(f"there is no operator {quoted(op_type)}")

    def _give_attributes(
        self, proto: onnx.NodeProto, call: Call, schema: OperatorSchema | None
    ) -> dict[int, str]:
        """Set the attributes; return, by their places, inputs that some have become."""
        more: dict[int, str] = {}
        for name, expression in call.attributes:
            assert not isinstance(expression, str)
            value = plain(expression.value(self._hit.name))
            if value is UNKNOWN:
                raise RewriteRefusal(f"the value of the attribute {name} is not known")
            if value is None:
                continue
            formals = schema.inputs if schema is not None else ()
            place = next((at for at, formal in enumerate(formals) if formal.name == name), None)
            if place is not None and schema is not None and schema.attribute(name) is None:
                more[place] = self._constant(np.asarray(value), formals[place], [])
                continue
            if schema is not None and schema.attribute(name) is None:
                version = versions_by_domain(self._home).get(schema.domain)
                raise RewriteRefusal(f"{schema.name} has no attribute {name} in opset {version}")
            for old in [item for item in proto.attribute if item.name == name]:
                proto.attribute.remove(old)
            kind, ready = typed_attribute(name, value, schema)
            try:
                proto.attribute.append(attribute_proto(name, kind, ready, schema))
            except EditError as error:
                raise RewriteRefusal(f"{name}: {error.message}") from None
        return more

    def _argument(
        self,
        item: Argument,
        names: Mapping[str, str],
        formal: Formal | None,
        siblings: Sequence[str],
    ) -> str:
        if isinstance(item, OmittedInput):
            return ""
        if isinstance(item, Variable):
            return names.get(item.name) or self._hit.values.get(item.name, "")
        if isinstance(item, Literal):
            return self._constant(np.asarray(item.value), formal, siblings)
        assert isinstance(item, ComputedConstant)
        value = item.expression.value(self._hit.name)
        if isinstance(value, ValueView):
            return value.name
        value = plain(value)
        if value is UNKNOWN or value is None:
            raise RewriteRefusal(f"{item.expression.text} is not known")
        array = np.asarray(value)
        like = next(
            (
                np.asarray(view.value).dtype
                for name in sorted(item.expression.names)
                if isinstance(view := self._hit.name(name), ValueView)
                and isinstance(view.value, np.ndarray)
            ),
            None,
        )
        if like is not None and array.dtype.kind == "f" and array.dtype != like:
            array = array.astype(like)
        if array.dtype.kind == "f" and not np.isfinite(array.astype(float)).all():
            raise RewriteRefusal(f"{item.expression.text} is not finite")
        # What a function made of tensors has its element type; numbers alone become double.
        is_typed = like is not None or (isinstance(value, np.ndarray) and value.dtype != np.double)
        return self._constant(array, formal, siblings, exact=is_typed)

    def _constant(
        self,
        array: np.ndarray[Any, Any],
        formal: Formal | None,
        siblings: Sequence[str],
        *,
        exact: bool = False,
    ) -> str:
        """Enter a constant and return its name."""
        if not exact:
            dtype = self._wanted_type(array, formal, siblings)
            try:
                array = array.astype(onnx.helper.tensor_dtype_to_np_dtype(dtype_number(dtype) or 1))
            except (TypeError, ValueError, OverflowError):
                raise RewriteRefusal(f"a value does not fit {dtype or 'float32'}") from None
        else:
            number = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            dtype = dtype_name(number)
        name = self._free(f"{self._outputs[0]}_constant", set())
        proto = onnx.TensorProto(data_type=dtype_number(dtype) or 1)
        set_text(proto, "name", name)
        proto.dims.extend(array.shape)
        put_payload(self._document, proto, array.tobytes())
        self._weights.append(proto)
        self._dtypes[name], self._constants[name] = dtype, array
        return name

    def _wanted_type(
        self, array: np.ndarray[Any, Any], formal: Formal | None, siblings: Sequence[str]
    ) -> str:
        """Return the element type of a literal: the only one allowed, or that of its neighbour."""
        if formal is not None and len(formal.types) == 1:
            number = dtype_number(formal.types[0])
            if number:
                return dtype_name(number)
        for name in filter(None, siblings):
            known = self._dtype(name)
            if isinstance(known, str) and (formal is None or _takes(formal, known)):
                return known
        for name in self._outputs:
            known = ValueView(self._home, name).field("dtype")
            if isinstance(known, str) and array.dtype.kind == "f":
                return known
        return "float32" if array.dtype.kind == "f" else "int64"

    def _function_name(self, domain: str, name: str, inputs: list[str]) -> str:
        """Return the function that these nodes are, which is made where there is none yet."""
        hit = self._hit
        if any(node.children for node in self._removed):
            raise RewriteRefusal("it has bodies, which may use values from outside")
        if len(self._removed) != len(hit.nodes):
            raise RewriteRefusal("some of its nodes have other uses")
        renamed = {actual: f"v_{at}" for at, actual in enumerate(hit.values.values()) if actual}
        versions = versions_by_domain(self._home)
        domains = {node.domain for node in self._removed} | {""}
        proto = new_function((domain, "", ""), {d: v for d, v in versions.items() if d in domains})
        for node in self._removed:
            copy = whole_node(node)
            for value in (*node.inputs, *node.outputs):
                if value and value not in renamed:
                    renamed[value] = f"v_{len(renamed)}"
                    constant = self._constant_node(value, renamed[value])
                    if constant is not None:
                        proto.node.append(constant)
            set_texts(copy, "input", [renamed.get(value, "") for value in node.inputs])
            set_texts(copy, "output", [renamed.get(value, "") for value in node.outputs])
            set_text(copy, "name", "")
            proto.node.append(copy)
        set_texts(proto, "input", [renamed[value] for value in inputs if value])
        set_texts(proto, "output", [renamed[value] for value in self._outputs])
        if "" in inputs:
            raise RewriteRefusal("an optional input is left out, which a function cannot say")
        content = proto.SerializeToString(deterministic=True)
        known = self._functions.get(content)
        if known is not None:
            return known
        free = unused_name(name, lambda name: (domain, name) in self._local)
        key = (domain, free, "")
        try:
            require_new_function(self._document, key, unused=True)
        except EditError as error:
            raise RewriteRefusal(error.message) from None
        set_text(proto, "name", free)
        self._function = (proto, key)
        self._functions[content] = free
        self._local.add((domain, free))
        return free

    def _constant_node(self, value: str, name: str) -> onnx.NodeProto | None:
        view = ValueView(self._home, value)
        definition = self._home.resolve(value)
        if definition is None or (definition.node in self._hit.nodes):
            return None
        array = view.value
        if not isinstance(array, np.ndarray):
            raise RewriteRefusal(
                f"{quoted(value)} comes from outside and is not an input of the pattern"
            )
        return constant_node(name, onnx.numpy_helper.from_array(array))

    def carry_out(self, transaction: Transaction) -> list[Node]:
        """Make the change and return the new nodes."""
        home = self._home
        if self._function is not None:
            enter_function(self._document, transaction, *self._function)
        for domain in self._imports:
            ensure_known_import(transaction, home, domain)
            ensure_import(transaction, home, domain, 1)
        protos = self._enter_weights(transaction)
        self._name()
        added = [home.new_node(proto) for proto in (*protos, *self._protos)]
        self._replace(transaction, added)
        for value, instead in self._passed:
            self._hand_over(transaction, value, instead, added)
        return added

    def _name(self) -> None:
        """Name new nodes after the nodes whose outputs they produce."""
        base = self._hit.last.name
        going, used_names = set(self._removed), {""}
        for proto in reversed(self._protos):
            if not base:
                set_text(proto, "name", None)
                continue
            name = unused_name(
                base if len(used_names) == 1 else f"{base}/{text_of(proto.op_type)}",
                lambda name: (
                    name in used_names
                    or any(node not in going for node in self._home.nodes_named(name))
                ),
            )
            used_names.add(name)
            set_text(proto, "name", name)

    def _enter_weights(self, transaction: Transaction) -> list[onnx.NodeProto]:
        if not self._home.is_function:
            for tensor in self._weights:
                enter_initializer(transaction, self._home, "initializer", tensor)
            return []
        return [constant_node(text_of(tensor.name), tensor) for tensor in self._weights]

    def _replace(self, transaction: Transaction, added: list[Node]) -> None:
        """Put the new nodes behind the last matched one, and what uses them behind them."""
        home = self._home
        removed = self._removed
        if not removed:
            place = home.index_of(self._hit.last) + 1
            transaction.do(Splice(home, "node", place, [], added))
            return
        first = home.index_of(removed[0])
        last = max(home.index_of(node) for node in (removed[-1], *self._late))
        span = home.nodes[first : last + 1]
        inside = set(removed)
        replaced = {node for node in removed if any(o in self._outputs for o in node.outputs)}
        after: dict[Node, None] = {}
        before: list[Node] = []
        for node in span:
            if node in inside:
                continue
            late = (len(self._outputs) > 1 or bool(self._late)) and any(
                source in replaced or source in after for source in sources(home, node)
            )
            if late:
                after[node] = None
            else:
                before.append(node)
        transaction.do(Splice(home, "node", first, span, [*before, *added, *after]))

    def _needs_copy(self, value: str, instead: str) -> bool:
        """Return whether only a copy can replace a value: both it and the other are outputs."""
        home = self._home
        bodies = [s for s in home.reach(value) if s is not home and value in s.outputs]
        if value not in home.outputs and not bodies:
            return False
        definition = home.definition(instead)
        is_free = definition is None or definition.kind == "node"
        is_made = any(instead in proto.output for proto in self._protos)
        inner = [s for s in home.reach(instead) if instead in s.outputs]
        return bool(bodies or inner or not is_free or (definition is None and not is_made))

    def _hand_over(
        self, transaction: Transaction, value: str, instead: str, added: list[Node]
    ) -> None:
        """Give the users of a value another one."""
        home = self._home
        is_output = any(value in scope.outputs for scope in home.reach(value))
        if not is_output:
            for node in dict.fromkeys(use.node for use in home.users(value)):
                links = tuple(instead if name == value else name for name in node.inputs)
                transaction.do(SetLinks(node.scope, node, "input", links))
            return
        if not self._needs_copy(value, instead):
            rename_everywhere(transaction, home, instead, value)
            records = [r for n in ("value_info",) for r in home.named(n).all(value)]
            remove_records(transaction, home, "value_info", records)
            return
        node = home.new_node(node_proto("Identity", [instead], [value]))
        place = max([home.index_of(other) + 1 for other in self._makers(instead)], default=0)
        transaction.do(Splice(home, "node", place, [], [node]))
        added.append(node)

    def _makers(self, value: str) -> list[Node]:
        return list(self._home.links.producers.get(value, ()))


def typed_attribute(name: str, value: Any, schema: OperatorSchema | None) -> tuple[str, JSON]:
    """Return the kind and the value of an attribute for :func:`.attributes.set_attribute`."""
    known = schema.attribute(name) if schema is not None else None
    if known is not None and known.kind == "tensor":
        array = np.asarray(value)
        if array.dtype.kind not in "biufcV":
            raise RewriteRefusal(f"{name} takes numbers")
        if array.dtype == np.double and not isinstance(value, np.ndarray):
            array = array.astype(np.float32)
        raw = base64.b64encode(array.tobytes()).decode("ascii")
        dtype = dtype_name(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
        return "tensor", {"dtype": dtype, "dims": list(array.shape), "raw": raw}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, str) and known is not None and known.kind == "int":
        text = integer_text(name, value, schema)
        value = int(text) if text.isdecimal() else value
    items = value if isinstance(value, list) else [value]
    if known is not None:
        kind = known.kind
    elif all(isinstance(item, str) for item in items) and items:
        kind = "string"
    elif any(isinstance(item, float) for item in items):
        kind = "float"
    else:
        kind = "int"
    if known is None and isinstance(value, list):
        kind += "s"
    if kind.endswith("s") and not isinstance(value, list):
        value = items = [value]
    if not kind.endswith("s") and isinstance(value, list):
        if len(value) != 1:
            raise RewriteRefusal(f"{name} takes one value, not {len(value)}")
        value = value[0]
    try:
        if kind.startswith("float"):
            value = [float(i) for i in items] if kind == "floats" else float(value)
        elif kind.startswith("int"):
            whole = [int(item) for item in items if is_number(item) and int(item) == item]
            if len(whole) != len(items):
                raise RewriteRefusal(f"{name} takes whole numbers")
            value = whole if kind == "ints" else whole[0]
    except (TypeError, ValueError):
        raise RewriteRefusal(f"{name} takes another kind of value") from None
    return kind, value
