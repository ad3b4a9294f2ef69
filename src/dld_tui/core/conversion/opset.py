"""Another version of the ai.onnx operators for a whole model.

Each node goes from one version of its operator to the next, up or down, until it is in the wanted
one (:mod:`.opset_steps`). What cannot be written there is replaced by the definition that onnx has
of its operator, whose nodes go the same way. Payloads may be cut out of the model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, defs, helper

from dld_tui.core.conversion.opset_steps.rules import DOWN, UP
from dld_tui.core.conversion.opset_steps.step import (
    Array,
    OpsetStep,
    UnwritableError,
    Values,
    widen,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError
from dld_tui.core.files.proto_fields import operator_key, set_items, text_of
from dld_tui.core.model.document.inlining import inline_local_functions
from dld_tui.core.model.document.locations import Body, bodies, bodies_of, scope_at
from dld_tui.core.model.document.opset_imports import least_ir_of, raise_ir_version
from dld_tui.core.model.operators import native
from dld_tui.core.model.operators.registry import OLDEST_OPSET
from dld_tui.core.model.shapes.inference import import_used
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.model.tensors.value_types import (
    dtype_number,
    dtype_of,
    shown,
    tensor_type,
    type_of_value,
    type_proto_of,
)
from dld_tui.core.text import clip, visible
from dld_tui.core.types import FLOATS

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.shapes.evaluation import Evaluation
    from dld_tui.core.model.tensors.tensor import Tensor

_DEFAULT = ("", "ai.onnx")
_OF_EVERY_VERSION = ("LayerNormalization", "SimplifiedLayerNormalization")
"""Operators that ONNX Runtime has in each version, and writes into models of old ones."""
_MOST_ROUNDS = 8
"""Definitions within definitions."""


class ConversionError(ActivityError):
    """A model cannot be converted; the message says why in one line."""


@dataclass(kw_only=True)
class OpsetChanges:
    """What a conversion did. Counts are of nodes, by operator."""

    from_: int
    to: int
    changed: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    initializers: int = 0
    """Added initializers."""
    unconverted: list[str] = field(default_factory=list)
    """What could not be converted, one sentence each. Untrusted text."""


def known_versions() -> range:
    """Return the versions of the ai.onnx operators that the installed onnx package knows."""
    return range(1, int(onnx.defs.onnx_opset_version()) + 1)


def convert_opset(model: onnx.ModelProto, version: int) -> OpsetChanges:
    """Convert a model in place; it is unchanged when this fails.

    Args:
        model: The model; payloads may be cut out of it.
        version: The version of the ai.onnx operators to convert to.

    Raises:
        ConversionError: It cannot be converted; the message names the operator and node.
    """
    known = known_versions()
    if version not in known:
        raise ConversionError(f"opset {version} is not known: choose 1 to {known[-1]}")
    work = onnx.ModelProto()
    work.CopyFrom(model)
    import_used(work)
    before = _version_of(work.opset_import)
    if before is None:
        raise ConversionError("the model imports no ai.onnx operators: there is nothing to convert")
    if version < min(before, OLDEST_OPSET):
        raise ConversionError(
            f"opset {version} is too old: operators before opset {OLDEST_OPSET} work differently"
        )
    report = OpsetChanges(from_=before, to=version)
    if before == version:
        return report
    origins: dict[str, _Origin] = {}
    for _ in range(_MOST_ROUNDS):
        attempt = _Attempt(work, version)
        if not attempt.refused:
            break
        if not attempt.replace(origins):
            raise ConversionError(attempt.reason(origins))
        work = attempt.original
    else:
        raise ConversionError(attempt.reason(origins))
    report.unconverted = attempt.unconverted
    for name in ("changed", "added", "removed"):
        setattr(report, name, getattr(attempt, name))
    if origins:
        counts = [Counter(_operators(one)) for one in (model, attempt.model)]
        report.added = counts[1] - counts[0]
        report.removed = counts[0] - counts[1]
    work = attempt.model
    needed = helper.find_min_ir_version_for(list(work.opset_import), ignore_unknown=True)
    raise_ir_version(work, needed)
    if version < before:  # runtimes that have no newer opset have no newer format either
        work.ir_version = min(work.ir_version, max(needed, least_ir_of(work)))
    model.CopyFrom(work)
    return report


def _operators(model: onnx.ModelProto) -> Iterator[str]:
    for _, body in bodies(model):
        for node in body.node:
            yield text_of(node.op_type)


def _version_of(imports: Iterable[onnx.OperatorSetIdProto]) -> int | None:
    return next((int(entry.version) for entry in imports if entry.domain in _DEFAULT), None)


@cache
def _histories() -> Mapping[str, Mapping[int, defs.OpSchema]]:
    """Return the schemas of each operator by version."""
    histories: dict[str, dict[int, defs.OpSchema]] = defaultdict(dict)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            histories[schema.name][schema.since_version] = schema
    return histories


def _schema(op_type: str, version: int, *, is_old: bool = False) -> defs.OpSchema | None:
    """Return the schema of an operator in a version; a deprecated one only where it is left."""
    history = _histories().get(op_type, {})
    since = max((one for one in history if one <= version), default=None)
    if since is None or (history[since].deprecated and not is_old):
        return None
    return history[since]


def _next(op_type: str, at: int, target: int) -> tuple[int, int] | None:
    """Return in which version the next step changes an operator, and where it leads to."""
    history = _histories().get(op_type, {})
    if op_type in _OF_EVERY_VERSION and _schema(op_type, at) is None:
        return None
    if not any(since <= at for since in history):
        when = f" in opset {at}" if history else ""
        raise UnwritableError(f"{visible(op_type)} is not an operator of ai.onnx{when}")
    if target > at:
        since = min((one for one in history if at < one <= target), default=None)
        return None if since is None else (since, since)
    since = max(one for one in history if one <= at)
    return None if since <= target else (since, since - 1)


def _title(node: onnx.NodeProto) -> str:
    """Return ``: node NAME`` for a message."""
    name = text_of(node.name) or f">{text_of(next(iter(node.output), ''))}"
    return f": node {clip(visible(name), 120, keep='middle')}"


class _Known:
    """Types, shapes and constants of a model; looked for when a rule asks for the first time."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model

    @cached_property
    def document(self) -> Document:
        """A copy with inferred types."""
        from dld_tui.core.model.document.document import Document
        from dld_tui.core.model.shapes.inference import infer_types, store_types

        copy, typed = onnx.ModelProto(), onnx.ModelProto()
        copy.CopyFrom(self._model)
        typed.CopyFrom(self._model)
        document = Document(copy)
        try:
            store_types(document, infer_types(typed, None)[0])
        except DldError:
            pass  # what the file declares may be enough
        return document

    @cached_property
    def shapes(self) -> Evaluation:
        """What the rules of shapes find in it."""
        from dld_tui.core.model.shapes.evaluation import Evaluation
        from dld_tui.core.model.shapes.size import size_of

        main = self.document.main
        inputs = {}
        for name in main.inputs:
            if main.initializer(name) is not None and not main.is_default(name):
                continue
            kind = main.value_type(name)
            dims = None if kind is None or kind.dims is None else tuple(map(size_of, kind.dims))
            inputs[name] = Value(dims)
        return Evaluation(self.document, inputs, named=True)


class _LocalValues(Values):
    """What is known of values where the nodes of a graph or function are."""

    def __init__(self, known: _Known, place: Sequence[int | str], names: _Names) -> None:
        super().__init__()
        self._known, self._place, self._names = known, place, names

    @cached_property
    def scope(self) -> Scope | None:
        """The graph or function."""
        return scope_at(self._known.document, self._place)

    def _home(self, name: str) -> Scope | None:
        """Return where a value is made: what captures it may never run."""
        definition = None if self.scope is None else self.scope.resolve(name)
        return self.scope if definition is None else definition.scope

    def value(self, name: str) -> Value:
        scope = self._home(name)
        if name in self.made or scope is None:
            return super().value(name)
        found = self._known.shapes.value(scope, name)
        if found.dims is None:
            kind = scope.value_type(name)
            if kind is not None and kind.dims is not None and not kind.container:
                from dld_tui.core.model.shapes.size import size_of

                return Value(tuple(map(size_of, kind.dims)))
        return found

    def array(self, name: str) -> Array | None:
        if name in self.arrays:
            return self.arrays[name]
        scope = self._home(name)
        if name in self.made or scope is None:
            return None
        value = self._known.shapes.value(scope, name)
        found = value.array()
        if found is not None:
            if any(not isinstance(item, (int, float, bool, str, bytes)) for item in found.flat):
                return None
            dtype = self.dtype(name)
            return found.astype(np.float64 if dtype in FLOATS else object if dtype == "string"
                                else np.int64)  # fmt: skip
        return None if value.tensor is None else self._read(value.tensor)

    def _read(self, tensor: Tensor) -> Array | None:
        try:
            return np.asarray(tensor.read())
        except (DldError, ValueError):
            return None

    def dtype(self, name: str) -> str | None:
        if name in self.made:
            return self.made[name][1]
        kind = None if self.scope is None else self.scope.value_type(name)
        return None if kind is None or kind.container else kind.dtype

    def type_name(self, name: str) -> str | None:
        if name in self.made:
            number = dtype_number(self.made[name][1] or "")
            return None if number is None else tensor_type(number)
        return None if self.scope is None else type_of_value(self.scope.value_type(name))

    def type_proto(self, name: str) -> onnx.TypeProto:
        """Return the type of a value; empty where it is not known."""
        kind = None if self.scope is None or not name else self.scope.value_type(name)
        found = None if kind is None else type_proto_of(kind)
        return onnx.TypeProto() if found is None else found

    def is_used(self, name: str) -> bool:
        scope = self.scope
        if scope is None or name in self.made:  # something reads what a step makes
            return True
        return name in scope.outputs or bool(scope.users(name))

    def new(self, like: str) -> str:
        return self._names.new(like)


class _Names:
    """Makes names for new nodes and values that the model does not have."""

    def __init__(self, model: onnx.ModelProto, version: int) -> None:
        self._prefix = f"opset{version}_"
        self._taken: set[str] = set()
        for _, body in bodies(model):
            for node in body.node:
                self._taken.update((text_of(node.name), *map(text_of, node.output)))
            if isinstance(body, onnx.FunctionProto):
                self._taken.update(map(text_of, body.input))
            else:
                self._taken.update(text_of(record.name) for record in body.input)
                self._taken.update(text_of(record.name) for record in body.initializer)
        self._next = 0

    def new(self, like: str) -> str:
        """Return a new name."""
        while True:
            name = f"{self._prefix}{like.removeprefix(self._prefix)}_{self._next}"
            self._next += 1
            if name not in self._taken:
                return name


@dataclass
class _Refusal:
    place: list[int | str]
    index: int
    node: onnx.NodeProto
    reason: str
    version: int
    """Which the node is written in."""


@dataclass(frozen=True)
class _Origin:
    """A node that nodes of a definition stand for."""

    op_type: str
    title: str
    reason: str | None
    """Why it does not come through itself; None where the version has no such operator."""


class _Attempt:
    """A model whose nodes went to another version, and those that did not come through."""

    def __init__(self, model: onnx.ModelProto, version: int) -> None:
        self.original, self._version = model, version
        self._left: frozenset[int] = frozenset()
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.changed: Counter[str] = Counter()
        self.added: Counter[str] = Counter()
        self.removed: Counter[str] = Counter()
        self.refused: list[_Refusal] = []
        self.unconverted: list[str] = []
        self._known, self._names = _Known(model), _Names(model, version)
        self._values: dict[str, _LocalValues] = {}
        uncalled = _uncalled(model)
        main = _version_of(model.opset_import) or version
        for place, body in reversed(list(bodies(self.model))):  # the inner ones first
            number = int(place[1]) if place[:1] == ["function"] else None
            before: int | None = main
            if number is not None:
                before = _version_of(model.functions[number].opset_import)
            if before is None or before == version:
                continue
            refused = self._body(place, body, before)
            if number is not None and number in uncalled and refused:
                self._leave(number, refused[0], before)
            else:
                self.refused += refused
        _set_version(self.model.opset_import, version)
        for number, function in enumerate(self.model.functions):
            if number not in self._left:
                _set_version(function.opset_import, version)

    def _leave(self, number: int, refusal: _Refusal, before: int) -> None:
        """Leave a function as it is that nothing calls."""
        function = self.original.functions[number]
        self.model.functions[number].CopyFrom(function)
        self._left |= {number}
        title = f"{text_of(function.domain)}:{text_of(function.name)}"
        why = refusal.reason + _title(refusal.node)
        self.unconverted.append(f"function {title} stays at opset {before}: {why}")

    def _values_at(self, place: Sequence[int | str]) -> _LocalValues:
        return self._values.setdefault(str(place), _LocalValues(self._known, place, self._names))

    def _body(self, place: list[int | str], body: Body, before: int) -> list[_Refusal]:
        values = self._values_at(place)
        nodes: list[onnx.NodeProto] = []
        refused = []
        is_changed = False
        for index, node in enumerate(body.node):
            if node.domain not in _DEFAULT:
                nodes.append(node)
                continue
            try:
                converted = self._node(node, values, before)
            except UnwritableError as error:
                refused.append(_Refusal(place, index, node, str(error), before))
                continue
            is_changed |= converted != [node]
            nodes += converted
        if is_changed and not refused:
            set_items(body.node, nodes)
        return refused

    def _node(
        self, node: onnx.NodeProto, values: _LocalValues, before: int
    ) -> list[onnx.NodeProto]:
        if _is_same(text_of(node.op_type), before, self._version):
            return [node]
        moved = onnx.NodeProto()
        moved.CopyFrom(node)
        converted = _moved(moved, values, before, self._version)
        own = next((one for one in converted if one is moved), None)
        if own is None:
            self.removed[text_of(node.op_type)] += 1
        elif own != node:
            self.changed[text_of(own.op_type)] += 1
        for one in converted:
            if one is not moved:
                self.added[text_of(one.op_type)] += 1
                if not one.name:
                    one.name = self._names.new(text_of(one.op_type))
                if node.domain:
                    one.domain = node.domain
        return converted

    def reason(self, origins: Mapping[str, _Origin]) -> str:
        """Return why the first node does not come through, and which it is."""
        first = min(self.refused, key=lambda one: (len(one.place), one.index))
        origin = origins.get(text_of(first.node.name))
        if origin is None:
            return first.reason + _title(first.node)
        if origin.reason is not None:
            return origin.reason + origin.title
        return f"{first.reason}, in the definition of {origin.op_type}{origin.title}"

    def replace(self, origins: dict[str, _Origin]) -> bool:
        """Write definitions in the original in place of nodes that were refused.

        Args:
            origins: Gets the nodes that added ones stand for, by the names of these.

        Returns:
            Whether there is one for each; else nothing is changed.
        """
        calls = []
        for refusal in self.refused:
            values = self._values_at(refusal.place)
            types = [values.type_proto(text_of(name)) for name in refusal.node.input]
            calls.append((_with_defaults(refusal.node, refusal.version), refusal.version, types))
        definitions = native.definitions(calls)
        is_function = any(refusal.place[:1] == ["function"] for refusal in self.refused)
        if is_function and any(
            definition is None and refusal.place[:1] == ["function"]
            for refusal, definition in zip(self.refused, definitions, strict=True)
        ):  # what they need may be known where the functions are called
            self.original = inline_local_functions(self.original)
            return True
        if any(definition is None for definition in definitions):
            self.refused = [
                refusal
                for refusal, definition in zip(self.refused, definitions, strict=True)
                if definition is None
            ]
            return False
        places: dict[str, dict[int, list[onnx.NodeProto]]] = defaultdict(dict)
        for refusal, (call, _, _), definition in zip(self.refused, calls, definitions, strict=True):
            assert definition is not None
            values = self._values_at(refusal.place)
            try:
                nodes = self._defined(call, definition, values, refusal.version)
            except UnwritableError:
                self.refused = [refusal]
                return False
            origin = text_of(refusal.node.name)
            op_type = text_of(refusal.node.op_type)
            is_there = _schema(op_type, self._version) is not None
            mine = _Origin(op_type, _title(refusal.node), refusal.reason if is_there else None)
            for node in _with_inner(nodes):
                node.name = self._names.new(text_of(node.op_type))
                origins[node.name] = origins.get(origin, mine)
            places[str(refusal.place)][refusal.index] = nodes
        for place, body in reversed(list(bodies(self.original))):
            expanded = places.get(str(place))
            if expanded:
                nodes = []
                for index, node in enumerate(body.node):
                    nodes += expanded.get(index, [node])
                set_items(body.node, nodes)
        return True

    def _defined(
        self, call: onnx.NodeProto, definition: onnx.FunctionProto, values: _LocalValues, at: int
    ) -> list[onnx.NodeProto]:
        """Return the nodes of a definition with the names and attributes of a call."""
        names: dict[str, str] = {"": ""}
        for side, actual in ((definition.input, call.input), (definition.output, call.output)):
            for number, name in enumerate(side):
                given = text_of(actual[number]) if number < len(actual) else ""
                if given or side is definition.input:
                    names[text_of(name)] = given
        attributes = {text_of(a.name): a for a in call.attribute}
        own = _version_of(definition.opset_import) or at
        nodes: list[onnx.NodeProto] = []
        for node in definition.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            _bind(copy, names, attributes, self._names)
            if call.op_type == "AffineGrid" and copy.op_type == "Range":
                nodes += self._scalars(copy)
            nodes += _moved(copy, values, own, at) if own != at else [copy]
        return nodes

    def _scalars(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Let Range take scalars, which onnx's definition of AffineGrid gives as lists of one.

        ONNX Runtime refuses it where it finds that out.
        """
        shape = self._names.new("scalar")
        empty = helper.make_tensor("", TensorProto.INT64, [0], [])
        added = [helper.make_node("Constant", [], [shape], value=empty)]
        for at, name in enumerate(list(map(text_of, node.input))):
            node.input[at] = self._names.new(name)
            added.append(helper.make_node("Reshape", [name, shape], [node.input[at]]))
        return added


def _with_inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for graph in bodies_of(node):
            yield from _with_inner(graph.node)


def _bind(
    node: onnx.NodeProto, names: dict[str, str],
    attributes: Mapping[str, onnx.AttributeProto], new: _Names,
) -> None:  # fmt: skip
    """Give a node of a definition the names and attributes of a call, subgraphs included."""
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            given = attributes.get(text_of(attribute.ref_attr_name))
            if given is None:
                continue
            name = attribute.name
            attribute.CopyFrom(given)
            attribute.name = name
        kept.append(attribute)
    set_items(node.attribute, kept)
    for field_names in (node.input, node.output):
        for at, name in enumerate(map(text_of, field_names)):
            if name not in names:
                names[name] = new.new(name)
            field_names[at] = names[name]
    for graph in bodies_of(node):
        own = [*graph.input, *graph.output]
        for record in own:
            name = text_of(record.name)
            if name not in names:
                names[name] = new.new(name)
        for inner in graph.node:
            _bind(inner, names, attributes, new)
        for record in own:
            record.name = names[text_of(record.name)]


def _with_defaults(node: onnx.NodeProto, version: int) -> onnx.NodeProto:
    """Return a copy that says all attributes: a definition has no defaults of its own."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    schema = _schema(text_of(node.op_type), version)
    known = {text_of(attribute.name) for attribute in node.attribute}
    for name, attribute in schema.attributes.items() if schema is not None else ():
        value = attribute.default_value
        if name not in known and value.type != AttributeProto.UNDEFINED:
            copy.attribute.append(value)
    return copy


def _uncalled(model: onnx.ModelProto) -> set[int]:
    """Return the numbers of the functions that nothing calls."""
    called = {operator_key(node) for _, body in bodies(model) for node in body.node}
    return {
        number
        for number, function in enumerate(model.functions)
        if operator_key(function) not in called
    }


def _set_version(imports: Iterable[onnx.OperatorSetIdProto], version: int) -> None:
    for entry in imports:
        if entry.domain in _DEFAULT:
            entry.version = version


def _is_same(op_type: str, before: int, version: int) -> bool:
    first, second = _schema(op_type, before), _schema(op_type, version)
    if first is None and op_type in _OF_EVERY_VERSION:
        return True
    return first is not None and second is not None and (
        first.since_version == second.since_version
    )  # fmt: skip


def _moved(
    node: onnx.NodeProto, values: _LocalValues, at: int, target: int
) -> list[onnx.NodeProto]:
    """Return what a node becomes in another version: itself, changed, and nodes around it.

    Raises:
        UnwritableError: It cannot be written there.
    """
    done: list[onnx.NodeProto] = []
    waiting = [(node, at)]
    used: set[str] = set()
    while waiting:  # from the last one, so that what uses a constant is known
        one, here = waiting.pop()
        if one is not node and one.op_type == "Constant" and text_of(one.output[0]) not in used:
            continue
        while (next_version := _next(text_of(one.op_type), here, target)) is not None:
            since, here = next_version
            step = _apply_step(one, values, since, here, target)
            if step.before or step.after:
                waiting += [(n, here) for n in (*step.before, one, *step.after)]
                break
        else:
            done.append(one)
            used.update(map(text_of, one.input))
    return done[::-1]


def _apply_step(
    node: onnx.NodeProto, values: _LocalValues, since: int, at: int, target: int
) -> OpsetStep:
    op_type = text_of(node.op_type)
    is_up = since == at
    step = OpsetStep(node, values, since, at, target)
    old = _schema(op_type, at if not is_up else since - 1, is_old=is_up)
    new = _schema(op_type, since)
    if any(text_of(attribute.name) == "consumed_inputs" for attribute in node.attribute):
        step.take("consumed_inputs")  # a hint for an optimiser of 2017
    rule = (UP if is_up else DOWN).get((op_type, since))
    into = new if is_up else old
    if rule is None and into is None:
        when = f"does not exist in opset {target}"
        raise UnwritableError(f"{op_type} {when}")
    if rule is not None:
        rule(step)
    if text_of(node.op_type) != op_type:
        return step
    source = old if is_up else new
    if source is None or into is None:
        raise UnwritableError(f"{op_type} does not exist in opset {target}")
    if not is_up:
        _types(step, values, into)
    _attributes(step, source, into)
    _counts(step, into)
    return step


def _attributes(step: OpsetStep, source: defs.OpSchema, into: defs.OpSchema) -> None:
    """Drop attributes that say nothing more, and write defaults that are others now."""
    node = step.node
    known = {text_of(attribute.name) for attribute in node.attribute}
    for attribute in list(node.attribute):
        name = text_of(attribute.name)
        if name in into.attributes:
            continue
        own = source.attributes.get(name)
        if attribute.ref_attr_name:
            raise UnwritableError(
                f"attribute {visible(name)} of {step.op_type} is a parameter of a function"
            )
        if own is not None and _has_value(attribute, own.default_value):
            node.attribute.remove(attribute)
            continue
        when = f"before opset {step.since}"
        if own is None:
            when = f"in opset {source.since_version}"
        elif step.since == step.at:
            when = f"from opset {step.since} on"
        raise UnwritableError(f"{step.op_type} has no attribute {visible(name)} {when}")
    for name, own in source.attributes.items():
        theirs = into.attributes.get(name)
        default = own.default_value
        if name in known or theirs is None or default.type == AttributeProto.UNDEFINED:
            continue
        if theirs.default_value != default:
            node.attribute.append(default)
    present = {text_of(attribute.name) for attribute in node.attribute}
    for name, theirs in into.attributes.items():
        if theirs.required and name not in present:
            raise UnwritableError(f"{step.op_type} has no attribute {name}, which it needs")


def _has_value(attribute: onnx.AttributeProto, default: onnx.AttributeProto) -> bool:
    if default.type == AttributeProto.UNDEFINED:
        return False
    values = map(helper.get_attribute_value, (attribute, default))
    return bool(next(values) == next(values))


def _counts(step: OpsetStep, into: defs.OpSchema) -> None:
    when = f"before opset {step.since}" if step.since != step.at else f"in opset {step.at}"
    for side, names, least, most, formal in (
        ("inputs", step.node.input, into.min_input, into.max_input, into.inputs),
        ("outputs", step.node.output, into.min_output, into.max_output, into.outputs),
    ):
        count = len(names)
        while count and not names[count - 1]:
            count -= 1
        if not least <= count <= most:
            raise UnwritableError(f"{step.op_type} does not take {count} {side} {when}")
        for name, parameter in zip(names, formal, strict=False):
            is_single = parameter.option == defs.OpSchema.FormalParameterOption.Single
            if not name and is_single and side == "inputs":
                raise UnwritableError(f"{step.op_type} needs {parameter.name} {when}")


def _types(step: OpsetStep, values: _LocalValues, into: defs.OpSchema) -> None:
    """Refuse types that the older version does not take, or compute in wider ones."""
    allowed = {one.type_param_str: one.allowed_type_strs for one in into.type_constraints}
    for side, names, formal in (
        ("inputs", step.node.input, into.inputs),
        ("outputs", step.node.output, into.outputs),
    ):
        for number, name in enumerate(list(map(text_of, names))):
            if not name or not formal or number >= len(names) or names[number] != name:
                continue
            kind = values.type_name(name)
            parameter = formal[min(number, len(formal) - 1)]
            fitting = allowed.get(parameter.type_str, [parameter.type_str])
            if kind is None or kind in fitting:
                continue
            places = {
                "inputs": _places(step.node.input, into.inputs, parameter.type_str),
                "outputs": _places(step.node.output, into.outputs, parameter.type_str),
            }
            types = [one for one in map(dtype_of, fitting) if one is not None]
            if side == "outputs" or not widen(step, places, types):
                raise UnwritableError(
                    f"{step.op_type} takes no {shown(kind)} before opset {step.since}"
                )


def _places(
    names: Sequence[str], formal: Sequence[defs.OpSchema.FormalParameter], type_str: str
) -> list[int]:
    """Return the numbers of the inputs or outputs that have a type."""
    return [
        number
        for number in range(len(names))
        if formal and formal[min(number, len(formal) - 1)].type_str == type_str
    ]


__all__ = ["ConversionError", "OpsetChanges", "convert_opset", "known_versions"]
