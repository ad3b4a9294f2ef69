"""Which nodes of a model a provider takes by its published table.

Local functions must be inlined before, and types inferred.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from dld_tui.core.errors import DldError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.inlining import defined_model, plain_call
from dld_tui.core.model.operators import native
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.model.operators.provider_tables import (
    Call,
    Cause,
    Operand,
    ProviderTable,
    Support,
    Verdict,
    fits,
    judge,
)
from dld_tui.core.model.operators.registry import OLDEST_OPSET, newest_opset, schema_for
from dld_tui.core.model.tensors.value_types import GENERATED, ValueType, type_proto_of
from dld_tui.core.process.child import CrashError, LimitError, RefusedError
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.operators.schema import Formal

_FEW = 16
"""Elements of constants whose values a table looks at."""
_OF_OPERATOR = (Cause.OPERATOR, Cause.VERSION, Cause.TYPE)
_SMALL = 100
"""Elements of weights that count as small."""
_NARROW = (
    "float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "float4e2m1",
)  # fmt: skip
"""Types that ONNX Runtime moves to no CPU."""
_CONTAINERS = {"sequence": "seq", "optional": "optional"}


class TableReader:
    """Compares a model with tables.

    Args:
        document: The model, with types and without local functions.
        model: Its file as commands name it.
    """

    def __init__(self, document: Document, model: str) -> None:
        self.document = document
        self._model = shlex.quote(model)
        self._constants = _constants(document)
        self._calls: dict[Node, Call] = {}
        self._definitions: dict[tuple[bytes, ...], list[Call] | None] = {}
        self.nodes = _computing(document, self._constants)
        """All nodes of the main graph and of subgraphs that compute something of inputs: ONNX
        Runtime computes the others when it loads a model."""

    def verdicts(self, table: ProviderTable) -> dict[Node, Verdict]:
        """Return what a table says of each node."""
        verdicts: dict[Node, Verdict] = {}
        for node in reversed(self.nodes):  # those of subgraphs before their node
            verdict = judge(table, self._call(node))
            if not table.bodies and node.scope.owner is not None:
                verdict = Verdict(Support.NOT, Cause.BODY, "subgraphs are left to the CPU")
            elif verdict.support is Support.NOT and verdict.cause in _OF_OPERATOR:
                verdict = self._by_definition(table, node) or verdict
            elif table.whole_bodies and (inner := self._left_in(node, verdicts)) is not None:
                reason = f"its subgraph has {inner.op_type}: {verdicts[inner].reason}"
                verdict = Verdict(Support.NOT, Cause.BODY, reason)
            verdicts[node] = verdict
        if table.host:
            for scope in self.document.scopes():
                self._leave_to_host(table, scope, verdicts)
        return {node: verdicts[node] for node in self.nodes}

    def _leave_to_host(
        self, table: ProviderTable, scope: Scope, verdicts: dict[Node, Verdict]
    ) -> None:
        """Take away nodes that ONNX Runtime leaves to the CPU although the provider has kernels.

        They need nothing but tensors that a kernel made in host memory, inputs of the graph and
        small weights (``GetCpuPreferredNodes`` of ONNX Runtime).
        """
        on_host: set[str] = set()
        for node in scope.nodes:
            if node not in verdicts:
                continue
            inputs, outputs = table.host.get(_name_of(node), ((), ()))
            follows = any(name in on_host for name in node.inputs)
            if verdicts[node].support is Support.NOT:
                on_host.update(node.outputs if follows else ())
            elif follows and all(
                self._may_be_on_host(scope, name, at in inputs, on_host)
                for at, name in enumerate(node.inputs) if name
            ):  # fmt: skip
                verdicts[node] = Verdict(Support.NOT, Cause.HOST, "shapes are left to the CPU")
                on_host.update(node.outputs)
            else:
                on_host.update(node.outputs[at] for at in outputs if at < len(node.outputs))

    def _may_be_on_host(self, scope: Scope, name: str, is_given: bool, on_host: set[str]) -> bool:
        """Return whether an input allows a node on the CPU; `is_given` there by the kernel."""
        kind = scope.value_type(name)
        if kind is not None and kind.dtype in _NARROW:
            return False
        if (scope, name) in self._constants or self._is_small(scope, name) or name in scope.inputs:
            return True
        return name in on_host and not is_given

    @staticmethod
    def _is_small(scope: Scope, name: str) -> bool:
        definition = scope.resolve(name)
        tensor = None if definition is None else definition.scope.initializer(name)
        return tensor is not None and tensor.element_count <= _SMALL

    def _left_in(self, node: Node, verdicts: Mapping[Node, Verdict]) -> Node | None:
        """Return the first node of the subgraphs of a node that is not taken."""
        inner = (n for body in node.subgraphs() for scope in body.walk() for n in scope.nodes)
        return next(
            (n for n in inner if n in verdicts and verdicts[n].support is Support.NOT), None
        )

    def _call(self, node: Node) -> Call:
        call = self._calls.get(node)
        if call is None:
            call = call_of(node, self.document.opset_imports, self._constants)
            self._calls[node] = call
        return call

    def _by_definition(self, table: ProviderTable, node: Node) -> Verdict | None:
        """Return the verdict on the definition of an operator, which ONNX Runtime puts in place.

        None where it has none, or nothing of it is taken.
        """
        calls = self._defined(node)
        if not calls:
            return None
        verdicts = [judge(table, call) for call in calls]
        left = next((at for at, one in enumerate(verdicts) if one.support is Support.NOT), None)
        text = f"as its definition of {len(calls)} nodes"
        if left is None:
            return Verdict(Support.TAKEN, reason=text)
        if all(one.support is Support.NOT for one in verdicts):
            return None
        reason = f"{text}, without {calls[left].name}: {verdicts[left].reason}"
        return Verdict(Support.PARTLY, verdicts[left].cause, reason)

    def _defined(self, node: Node) -> list[Call] | None:
        version = self.document.opset_imports.get("")
        if (
            plain_domain(node.domain)
            or version is None
            or schema_for(node.op_type, "", version) is None
        ):
            return None
        types = [_type_proto(node.scope, name) for name in node.inputs]
        call = plain_call(node.proto, version)
        key = (call.SerializeToString(), *(kind.SerializeToString() for kind in types))
        if key not in self._definitions:
            self._definitions[key] = self._calls_of(call, version, types)
        return self._definitions[key]

    @staticmethod
    def _calls_of(
        call: onnx.NodeProto, version: int, types: Sequence[onnx.TypeProto]
    ) -> list[Call] | None:
        try:
            definition = native.definitions([(call, version, types)])[0]
            if definition is None:
                return None
            inner = Document(defined_model(definition, call, version, types))
        except (RefusedError, LimitError, CrashError):
            return None
        constants = _constants(inner)
        return [
            call_of(one, inner.opset_imports, constants) for one in _computing(inner, constants)
        ]

    def change(self, table: ProviderTable, node: Node, verdict: Verdict) -> str:
        """Return what would help a node to be taken; empty if nothing is known."""
        if verdict.cause is Cause.VERSION and (version := self._opset_for(table, node)):
            return f"dld convert opset {self._model} --to {version} -o OUT"
        if verdict.cause is Cause.TYPE and verdict.support is Support.NOT:
            return self._type_change(node, verdict)
        if verdict.cause is Cause.SHAPE or (verdict.cause is Cause.CONSTANT and self._sizes()):
            sizes = self._sizes()
            return f"dld convert shape {self._model} {sizes} -o OUT" if sizes else ""
        return ""

    def _opset_for(self, table: ProviderTable, node: Node) -> int | None:
        """Return the nearest version of ai.onnx in which a provider has a kernel of an operator."""
        domain = plain_domain(node.domain)
        now, newest = self.document.opset_imports.get("", 0), newest_opset()
        if domain or table.kernels is None or newest is None:
            return None
        rows = table.kernels.get(node.op_type, ())
        versions = range(OLDEST_OPSET, newest + 1)
        for version in sorted(versions, key=lambda version: abs(version - now)):
            schema = schema_for(node.op_type, domain, version)
            since = None if schema is None or schema.deprecated else schema.since_version
            if any(fits(since, start, end) for start, end, _ in rows):
                return version
        return None

    def _type_change(self, node: Node, verdict: Verdict) -> str:
        kinds = (node.scope.value_type(name) for name in node.inputs if name)
        is_single = any(kind is not None and kind.dtype == "float32" for kind in kinds)
        if is_single and "float16" in verdict.dtypes and "float32" not in verdict.dtypes:
            return f"dld convert fp16 {self._model} -o OUT"
        if "float32" in verdict.dtypes:
            return "cast its input to float32"
        return ""

    def _sizes(self) -> str:
        """Return the options that fix the dynamic dimensions of the inputs."""
        main = self.document.main
        names: dict[str, None] = {}
        for name in main.inputs:
            kind = None if main.is_weight(name) else main.value_type(name)
            for axis, dim in enumerate((kind and kind.dims) or ()):
                if not isinstance(dim, int):
                    is_named = dim is not None and not GENERATED.fullmatch(dim)
                    names[f"{dim}" if is_named else f"{name}:{axis}"] = None
        return " ".join(f"--dim {shlex.quote(f'{name}=1')}" for name in names)


def _constants(document: Document) -> set[tuple[Scope, str]]:
    """Return the values that are the same in each run: stored, or computed from such."""
    constants: set[tuple[Scope, str]] = set()
    for scope in document.scopes():
        for list_name in ("initializer", "sparse_initializer"):
            names = scope.named(list_name) if list_name in scope.records else ()
            constants.update((scope, name) for name in names if not scope.is_default(name))
        for node in scope.nodes:
            if node.op_type in RANDOM_OPERATORS or node.children or not node.outputs:
                continue
            if all(_is_constant(scope, name, constants) for name in node.inputs if name):
                constants.update((scope, name) for name in node.outputs if name)
    return constants


def _computing(document: Document, constants: set[tuple[Scope, str]]) -> list[Node]:
    """Return the nodes whose outputs depend on inputs, or on chance."""
    return [
        node
        for scope in document.scopes()
        for node in scope.nodes
        if not all((scope, name) in constants for name in node.outputs if name)
    ]


def _is_constant(scope: Scope, name: str, constants: set[tuple[Scope, str]]) -> bool:
    definition = scope.resolve(name)
    return definition is not None and (definition.scope, name) in constants


def call_of(node: Node, imports: Mapping[str, int], constants: set[tuple[Scope, str]]) -> Call:
    """Return a node as tables see it."""
    domain = plain_domain(node.domain)
    schema = schema_for(node.op_type, domain, imports.get(domain, imports.get("ai.onnx")))
    defaults: dict[str, Any] = {}
    if schema is not None:
        defaults = {attribute.name: attribute.default for attribute in schema.attributes}

    def attribute(name: str) -> Any:
        given = node.attribute(name)
        value = defaults.get(name) if given is None or given.blob is not None else given.value
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def operands(names: Sequence[str], formals: Sequence[Formal]) -> Iterator[Operand]:
        for at, name in enumerate(names):
            if name:
                formal = formals[min(at, len(formals) - 1)] if formals else None
                yield _operand(node.scope, name, formal, constants)

    return Call(
        _name_of(node),
        None if schema is None else schema.since_version,
        [*operands(node.inputs, () if schema is None else schema.inputs)],
        [*operands(node.outputs, () if schema is None else schema.outputs)],
        attribute,
    )


def _name_of(node: Node) -> str:
    """Return the operator of a node as tables name it."""
    domain = plain_domain(node.domain)
    return f"{domain}:{node.op_type}" if domain else node.op_type


def _operand(
    scope: Scope, name: str, formal: Formal | None, constants: set[tuple[Scope, str]]
) -> Operand:
    kind = scope.value_type(name)

    def values() -> Sequence[float] | None:
        definition = scope.resolve(name)
        if definition is None:
            return None
        maker = definition.node
        tensor = (
            definition.scope.initializer(name)
            if maker is None
            else maker.tensor("value") if maker.op_type == "Constant" else None
        )  # fmt: skip
        if tensor is None or tensor.element_count > _FEW:
            return None
        try:
            return tuple(float(value) for value in tensor.read().reshape(-1))
        except (DldError, ValueError):
            return None

    return Operand(
        name if formal is None else formal.name, "" if formal is None else formal.type_name,
        None if kind is None else _spelled(kind), None if kind is None else kind.dims,
        _is_constant(scope, name, constants), values,
    )  # fmt: skip


def _spelled(kind: ValueType) -> str | None:
    """Return a type as the tables spell it; None if it is unknown, or one they do not spell."""
    if kind.dtype is None or kind.container not in ("", *_CONTAINERS):
        return None
    return f"{_CONTAINERS[kind.container]}({kind.dtype})" if kind.container else kind.dtype


def _type_proto(scope: Scope, name: str) -> onnx.TypeProto:
    kind = scope.value_type(name) if name else None
    return (kind and type_proto_of(kind)) or onnx.TypeProto()


def partitions(nodes: Iterable[Node], taken: set[Node]) -> int:
    """Return the fewest groups in which a provider can run its nodes, each without a switch.

    Nodes run as soon as what they need is there, those of the side that is running first.
    """
    order = list(nodes)
    producers = {name: node for node in order for name in node.outputs if name}
    waits = {node: _needs(node, producers) for node in order}
    users: dict[Node, list[Node]] = {}
    for node, needed in waits.items():
        for other in needed:
            users.setdefault(other, []).append(node)
    ready: dict[bool, list[Node]] = {True: [], False: []}
    for node in order:
        if not waits[node]:
            ready[node in taken].append(node)
    groups, side = 0, False
    while ready[True] or ready[False]:
        if not ready[side]:
            side = not side
            groups += side
        while ready[side]:
            done = ready[side].pop()
            for user in users.get(done, ()):
                waits[user].discard(done)
                if not waits[user]:
                    ready[user in taken].append(user)
    return groups


def _needs(node: Node, producers: Mapping[str, Node]) -> set[Node]:
    names = {name for name in node.inputs if name}
    for body in node.subgraphs():
        names.update(body.captured())
    return {producers[name] for name in names if name in producers and producers[name] is not node}
