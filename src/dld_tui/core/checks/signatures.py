"""Signatures of operators, from their schemas or from local functions.

The tables of operators are loaded where they are used: `dld inspect` compares no calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.core.checks import repairs
from dld_tui.core.checks.findings import Level, Repair, name_of
from dld_tui.core.dataclass import dataclass
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document import Document, Scope
from dld_tui.core.model.document.local_functions import key_of
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    from dld_tui.core.model.operators.schema import Formal, OperatorSchema

Key = tuple[str, str]
"""The domain, ``""`` for ai.onnx, and the name of an operator."""

Form = tuple[Key, Sequence[bytes], tuple[str | None, ...], tuple[str | None, ...]]
"""A call but for names: operator, serialised attributes, and the types of inputs and outputs, None
where one is not known and ``""`` where a value is left out."""

UNLIMITED = 2**31 - 1
_FILLED_IN = ("", "ai.onnx.ml", "com.microsoft")
"""Operator sets that ONNX Runtime takes in their newest version where a model imports others."""


@dataclass(frozen=True)
class FormalTypes:
    """One formal input or output."""

    types: frozenset[str]
    variable: str
    """The type variable that all of its values and of others share; empty for none."""
    required: bool
    optional: bool


@dataclass(frozen=True)
class Signature:
    """What a call of one operator must look like."""

    title: str
    """The operator's name for messages."""
    problem: tuple[str, str] | None = None
    """A rule and a message when the operator itself is the fault."""
    repair: Repair | None = None
    """Of the problem."""
    level: Level | None = None
    """Of the problem, where it is not that of the rule."""
    checked: bool = True
    """False when nothing more is known of it."""
    least_inputs: int = 0
    most_inputs: int = UNLIMITED
    least_outputs: int = 0
    most_outputs: int = UNLIMITED
    inputs: tuple[FormalTypes, ...] = ()
    outputs: tuple[FormalTypes, ...] = ()
    variadic_input: FormalTypes | None = None
    variadic_output: FormalTypes | None = None
    attributes: dict[str, int] | None = None
    """AttributeProto types by name, 0 for any; None when all are allowed."""
    required: tuple[str, ...] = ()
    missing_attribute: Level | None = None
    """The level of a missing one, where it is not that of the rule."""


class Root:
    """The main graph or a local function: a scope with its own operator set imports."""

    def __init__(
        self,
        scope: Scope,
        functions: dict[Key, Scope],
        *,
        called: Container[Key] = (),
        operators: bool = True,
    ) -> None:
        self.scope = scope
        self.operators = operators
        """Whether calls are compared with what operators take."""
        self.functions = functions
        self.calls: Counter[Key] = Counter()
        """How many nodes call each operator."""
        self.entries = import_entries(scope)
        self.imports: dict[str, int] = dict(self.entries)
        # ONNX Runtime takes a function's nodes in the versions of the model that calls it.
        is_called = scope.is_function and function_key(scope) in called
        self._main_imports = dict(import_entries(scope.document.main)) if is_called else {}
        self.parameters: frozenset[str] = parameters_of(scope)
        self._signatures: dict[Key, Signature] = {}
        self.fine: set[Form] = set()
        """Forms of calls that there is nothing to say about: most nodes have one of a few."""

    def signature(self, key: Key) -> Signature:
        """Return what calls of an operator from here must look like."""
        signature = self._signatures.get(key)
        if signature is None:
            signature = self._signatures[key] = self._make(key)
        return signature

    def _make(self, key: Key) -> Signature:
        domain, op_type = key
        if not self.operators:
            return Signature(name_of(op_type), checked=False)
        from dld_tui.core.model.operators.registry import known_domains, newest_opset, schema_for

        title = name_of(op_type)
        function = self.functions.get(key)
        if domain not in self.imports and self.imports:
            message = f"Operator set {name_of(domain or 'ai.onnx')} is not imported"
            repair = self._import_repair(key)
            newest = newest_opset(domain) if domain in _FILLED_IN else None
            schema = schema_for(op_type, domain, newest) if newest is not None else None
            if schema is None or self.scope.is_function:
                return Signature(title, ("opset-import", message), repair, checked=False)
            message += ": ONNX Runtime takes the newest version that it knows"
            known = _signature(schema, title, ("opset-import", message))
            return replace(known, repair=repair, level="warning")
        if function is not None:
            return _function_signature(function, title)
        version = self.imports.get(domain)
        if domain not in known_domains() or version is None:
            return Signature(title, checked=False)
        schema = self._schema(key, version)
        if schema is not None:
            version = self._main_imports.get(domain, version)
            schema = self._schema(key, version)
        if schema is None:
            if schema_for(op_type, domain, None) is not None:
                message = f"Operator {title} does not exist in opset {version}"
            else:
                message = f"Unknown operator {title}"
            return Signature(title, ("unknown-operator", message), checked=False)
        problem = None
        if schema.deprecated:
            message = f"Operator {title} is deprecated in opset {version}"
            problem = ("deprecated-operator", message)
        return _signature(schema, title, problem)

    def _schema(self, key: Key, version: int) -> OperatorSchema | None:
        from dld_tui.core.model.operators.registry import schema_for, standard_schema

        domain, op_type = key
        schema = schema_for(op_type, domain, version)
        # Such as LayerNormalization before 17.
        return standard_schema(op_type, version) if schema is None and not domain else schema

    def _import_repair(self, key: Key) -> Repair | None:
        """Return the import to add, where only one version can be meant."""
        from dld_tui.core.model.operators.registry import newest_opset

        domain = key[0]
        if self.scope.is_function:
            return None
        if key not in self.functions and newest_opset(domain) != 1:
            return None
        return repairs.set_opset(domain, 1)


def import_entries(scope: Scope) -> list[tuple[str, int]]:
    """Return the records of the operator set imports of the main graph or a function."""
    owner = scope.proto if isinstance(scope.proto, onnx.FunctionProto) else scope.document.model
    if not len(owner.opset_import) and owner is scope.document.model:
        return list(scope.document.opset_imports.items())  # what old files mean
    return [(plain_domain(text_of(e.domain)), int(e.version)) for e in owner.opset_import]


def parameters_of(scope: Scope) -> frozenset[str]:
    """Return the names of the attributes that a function takes."""
    if not isinstance(scope.proto, onnx.FunctionProto):
        return frozenset()
    names = [text_of(name) for name in scope.proto.attribute]
    return frozenset(names + [text_of(a.name) for a in scope.proto.attribute_proto])


def functions_of(document: Document) -> dict[Key, Scope]:
    """Return the local functions by what calls them; the first of those with the same name."""
    scopes: dict[Key, Scope] = {}
    for scope in document.functions:
        scopes.setdefault(function_key(scope), scope)
    return scopes


def called_operators(document: Document) -> set[Key]:
    """Return the operators that nodes of a model call, bodies and local functions included."""
    return {(plain_domain(node.domain), node.op_type)
            for scope in document.scopes() for node in scope.nodes}  # fmt: skip


def function_key(scope: Scope) -> Key:
    """Return what calls a function."""
    return key_of(scope)[:2]


def _signature(schema: OperatorSchema, title: str, problem: tuple[str, str] | None) -> Signature:
    variables = frozenset(constraint.name for constraint in schema.type_constraints)
    inputs, more_inputs = _taken(schema.inputs, variables)
    outputs, more_outputs = _taken(schema.outputs, variables)
    return Signature(
        title,
        problem,
        least_inputs=schema.min_inputs,
        most_inputs=UNLIMITED if schema.max_inputs is None else schema.max_inputs,
        least_outputs=schema.min_outputs,
        most_outputs=UNLIMITED if schema.max_outputs is None else schema.max_outputs,
        inputs=inputs,
        outputs=outputs,
        variadic_input=more_inputs,
        variadic_output=more_outputs,
        attributes={a.name: _attribute_number(a.kind) for a in schema.attributes},
        required=tuple(a.name for a in schema.attributes if a.required),
    )


def _function_signature(scope: Scope, title: str) -> Signature:
    proto = scope.proto
    assert isinstance(proto, onnx.FunctionProto)
    kinds = {text_of(a.name): int(a.type) for a in proto.attribute_proto}
    required = tuple(text_of(name) for name in proto.attribute)
    return Signature(
        title,
        most_inputs=len(proto.input),
        least_outputs=len(proto.output),
        most_outputs=len(proto.output),
        attributes={**dict.fromkeys(required, 0), **kinds},
        required=required,
        missing_attribute="warning",  # nodes inside then take the default of their operator
    )


def _taken(
    formals: Iterable[Formal], variables: frozenset[str]
) -> tuple[tuple[FormalTypes, ...], FormalTypes | None]:
    every = [_formal(formal, variables) for formal in formals]
    listed = list(formals)
    more = every[-1] if listed and listed[-1].option == "variadic" else None
    return tuple(every), more


def _formal(formal: Formal, variables: frozenset[str]) -> FormalTypes:
    shared = formal.type_name in variables
    if formal.option == "variadic" and not formal.homogeneous:
        shared = False
    return FormalTypes(
        types=frozenset(formal.types),
        variable=formal.type_name if shared else "",
        required=formal.option == "single",
        optional=formal.option == "optional",
    )


def _attribute_number(kind: str) -> int:
    return int(onnx.AttributeProto.AttributeType.Value(kind.upper()))
