"""All operators that can be added to a model: grouped, and found by fuzzy search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from dld_tui.core.document.local_functions import FunctionAttribute, function_attributes
from dld_tui.core.document.node import Node, attribute_type
from dld_tui.core.document.scope import Scope, ScopeOwner
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import text_of, texts_of
from dld_tui.core.operators.categories import CATEGORIES, category_of
from dld_tui.core.operators.registry import (
    known_domains,
    newest_opset,
    operators,
    schema_for,
    versions_of,
)
from dld_tui.core.operators.schema import AttributeSchema, Formal, OperatorSchema
from dld_tui.core.text.fuzzy import score

_USED = 12
"""What an operator that the model uses is worth more: about one letter at a word's beginning."""
_DEPRECATED = -40
_NEWER = 2
_LEAST_PART = 3
"""Letters from which a word is looked for in category and domain, too."""


class Grouping(Enum):
    """How the operators are listed."""

    NAME = "name"
    COLLECTION = "collection"
    CATEGORY = "category"
    VERSION = "version"
    """The opset that brought the present signature, the newest first."""

    @property
    def following(self) -> Grouping:
        """The next one, after the last the first."""
        all_of_them = list(Grouping)
        return all_of_them[(all_of_them.index(self) + 1) % len(all_of_them)]


class Origin(Enum):
    """Where an operator is known from."""

    SCHEMA = "schema"
    FUNCTION = "function"
    """A local function of the model."""
    CUSTOM = "custom"
    """Only seen in the model: no schema is known."""


@dataclass(frozen=True)
class PaletteOperator:
    """One operator of the palette. Names of functions and custom ones are foreign text."""

    name: str
    domain: str
    """The operator set, ``""`` for ai.onnx."""
    schema: OperatorSchema
    """For a custom operator: the signature of its nodes in the model."""
    origin: Origin = Origin.SCHEMA
    imported: bool = True
    """False when the model does not import its operator set."""
    too_new: int | None = None
    """The opset that the model would have to import; None when no other import is needed."""
    uses: int = 0
    """Nodes of the model that call it."""

    @property
    def key(self) -> tuple[str, str]:
        """Its domain and name."""
        return self.domain, self.name

    @property
    def collection(self) -> str:
        """The domain for people."""
        return domain_title(self.domain)

    @property
    def category(self) -> str:
        """One of ``CATEGORIES``."""
        return "custom" if self.origin is not Origin.SCHEMA else category_of(self.name, self.domain)

    @cached_property
    def place(self) -> str:
        """Category and domain in lower case, for search."""
        return f"{self.category} {self.collection}".lower()

    @property
    def deprecated(self) -> bool:
        """Whether its operator set advises against it."""
        return self.schema.deprecated

    @property
    def available(self) -> bool:
        """Whether the model can take it without another import."""
        return self.imported and self.too_new is None

    @cached_property
    def summary(self) -> str:
        """One line of documentation. Foreign text for functions."""
        if self.origin is Origin.CUSTOM:
            return "Custom operator of this model."
        text = self.schema.summary
        return text or ("Local function." if self.origin is Origin.FUNCTION else "")


class OperatorPalette:
    """The operators for a model, or all that are known when there is none.

    Args:
        imports: Operator set versions by domain, ``""`` being ai.onnx.
        functions: Signatures of the model's local functions.
        custom: Signatures of operators that are only known from the model's nodes.
        uses: How many nodes call an operator, by (domain, name).
    """

    def __init__(
        self,
        imports: Mapping[str, int],
        *,
        functions: Iterable[OperatorSchema] = (),
        custom: Iterable[OperatorSchema] = (),
        uses: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        self.imports = dict(imports)
        self._uses = dict(uses or {})
        entries: dict[tuple[str, str], PaletteOperator] = {}
        # A local function stands in front of an operator of the same name.
        for schema in functions:
            self._enter(entries, schema, Origin.FUNCTION)
        for schema in operators(self._known_imports()):
            self._enter(entries, schema, Origin.SCHEMA)
        for schema in operators(newest_opsets()):
            is_imported = schema.domain in self.imports
            newer = versions_of(schema.name, schema.domain)[0] if is_imported else None
            self._enter(entries, schema, Origin.SCHEMA, imported=is_imported, too_new=newer)
        for schema in custom:
            self._enter(entries, schema, Origin.CUSTOM)
        self.operators = sorted(entries.values(), key=lambda item: (item.name.lower(), item.domain))
        """All of them by name, whether available or not."""

    def _known_imports(self) -> dict[str, int]:
        known = known_domains()
        return {domain: version for domain, version in self.imports.items() if domain in known}

    def _enter(
        self,
        entries: dict[tuple[str, str], PaletteOperator],
        schema: OperatorSchema,
        origin: Origin,
        *,
        imported: bool = True,
        too_new: int | None = None,
    ) -> None:
        key = (schema.domain, schema.name)
        if key not in entries:
            entries[key] = PaletteOperator(
                schema.name, schema.domain, schema, origin, imported, too_new,
                self._uses.get(key, 0),
            )  # fmt: skip

    def operator(self, name: str, domain: str = "") -> PaletteOperator | None:
        """Return one operator, or None."""
        return next((item for item in self.operators if item.key == (domain, name)), None)

    def search(self, text: str) -> list[PaletteOperator]:
        """Return the operators that fit a text: those that can be added first, the best first."""
        words = text.split()
        if not words:
            return sorted(self.operators, key=_rank)
        scored = []
        for item in self.operators:
            points = _points(item, words)
            if points is not None:
                scored.append((_rank(item), -points, len(item.name), item))
        return [item for *_, item in sorted(scored, key=lambda row: row[:3])]

    def grouped(
        self, grouping: Grouping, chosen: Sequence[PaletteOperator] | None = None
    ) -> list[tuple[str, list[PaletteOperator]]]:
        """Return (title, operators) by group; what must be imported first is in groups at the end.

        Args:
            grouping: How to group those that can be added.
            chosen: The operators to group, in their order; by default all.
        """
        groups: dict[str, list[PaletteOperator]] = {}
        items = self.operators if chosen is None else chosen
        for title in _titles(grouping, items):
            groups[title] = []
        others: dict[str, list[PaletteOperator]] = {}
        for item in items:
            if item.available:
                groups.setdefault(_group_of(item, grouping), []).append(item)
            else:
                others.setdefault(_other_group(item), []).append(item)
        ordered = sorted(others.items(), key=lambda group: group[0])
        return [(title, items) for title, items in (*groups.items(), *ordered) if items]


def newest_opsets() -> dict[str, int]:
    """Return the newest version of every operator set that is known here, by domain."""
    return {domain: newest_opset(domain) or 1 for domain in known_domains()}


def warm_up() -> None:
    """Read all schemas once, so that a palette is there in a few milliseconds."""
    operators(newest_opsets())


def domain_title(domain: str) -> str:
    """Return a domain for people: ``ai.onnx`` for the nameless one. Foreign text."""
    return domain or "ai.onnx"


def _points(item: PaletteOperator, words: Sequence[str]) -> int | None:
    """Return how well an operator fits: each word its name, or a part of its category or domain."""
    total = _USED * bool(item.uses) + _DEPRECATED * item.deprecated
    for word in words:
        name_score = score(word, item.name)
        if name_score is None and not (len(word) >= _LEAST_PART and word.lower() in item.place):
            return None
        total += name_score or 0
    return total


def _rank(item: PaletteOperator) -> int:
    return 0 if item.available else 1 if item.too_new is None else _NEWER


def _titles(grouping: Grouping, items: Iterable[PaletteOperator]) -> Iterable[str]:
    """Return the groups in their order; others follow as they come."""
    if grouping is Grouping.VERSION:
        pairs = {(item.collection, -item.schema.since_version): item for item in items}
        return [_group_of(pairs[pair], grouping) for pair in sorted(pairs)]
    if grouping is Grouping.CATEGORY:
        return CATEGORIES
    return ("ai.onnx",) if grouping is Grouping.COLLECTION else ()


def _group_of(item: PaletteOperator, grouping: Grouping) -> str:
    if grouping is Grouping.NAME:
        return ""
    if grouping is Grouping.CATEGORY:
        return item.category
    if grouping is Grouping.VERSION:
        return f"{item.collection} {item.schema.since_version}"
    return "local functions" if item.origin is Origin.FUNCTION else item.collection


def _other_group(item: PaletteOperator) -> str:
    if item.too_new is not None:
        return f"newer opset of {item.collection}"
    return f"not imported: {item.collection}"


# --- the palette of a document --------------------------------------------------------------------

Uses = Mapping["tuple[str, str]", int]


def operator_palette(scope: Scope, uses: Uses | None = None) -> OperatorPalette:
    """Return the operators that can be added to a scope of a document.

    Args:
        scope: The scope; a function has its own imports.
        uses: How many nodes call an operator, by (domain, name), where that is known already.
    """
    from dld_tui.core.document.edits.imports import versions_by_domain  # lazy: loads all edits

    document = scope.document
    counts = used_operators(document) if uses is None else uses
    functions = [function_schema(function) for function in document.functions]
    known = {(schema.domain, schema.name) for schema in functions}
    unknown = {
        key for key in counts
        if key not in known and schema_for(key[1], key[0], None) is None and key[1]
    }  # fmt: skip
    custom = _observed(document, unknown) if unknown else []
    return OperatorPalette(
        versions_by_domain(scope), functions=functions, custom=custom, uses=counts
    )


def used_operators(document: ScopeOwner) -> Counter[tuple[str, str]]:
    """Return how many nodes call each operator, by (domain, name), in all scopes."""
    counts: Counter[tuple[str, str]] = Counter()
    for scope in document.scopes():
        counts.update((node.domain, node.op_type) for node in scope.nodes)
    return counts


def function_schema(function: Scope) -> OperatorSchema:
    """Return the signature of a local function; its values may have any type."""
    proto = function.proto
    assert isinstance(proto, onnx.FunctionProto)
    attributes = [_parameter(item) for item in function_attributes(function)]
    inputs, outputs = texts_of(proto.input), texts_of(proto.output)
    return OperatorSchema(
        name=text_of(proto.name),
        domain=text_of(proto.domain),
        since_version=1,
        deprecated=False,
        # Like optional inputs of an operator, those of a function may be left out.
        inputs=tuple(Formal(name, "", (), "", "optional") for name in inputs),
        outputs=tuple(Formal(name, "", (), "") for name in outputs),
        attributes=tuple(sorted(attributes, key=lambda item: not item.required)),
        type_constraints=(),
        markdown=text_of(proto.doc_string),
        min_inputs=0,
        max_inputs=len(inputs),
        min_outputs=0,
        max_outputs=len(outputs),
    )


def _parameter(item: FunctionAttribute) -> AttributeSchema:
    about = "" if item.default is None else f"By default {item.default}."
    return AttributeSchema(item.name, item.kind or "undefined", item.default is None, None, about)


def _kind(proto: onnx.AttributeProto) -> str:
    return onnx.AttributeProto.AttributeType.Name(attribute_type(proto)).lower()


def _observed(document: ScopeOwner, wanted: set[tuple[str, str]]) -> list[OperatorSchema]:
    """Return signatures that fit the nodes of unknown operators."""
    calls: dict[tuple[str, str], list[Node]] = {}
    for scope in document.scopes():
        for node in scope.nodes:
            key = (node.domain, node.op_type)
            if key in wanted:
                calls.setdefault(key, []).append(node)
    return [_observed_schema(nodes) for nodes in calls.values()]


def _observed_schema(nodes: list[Node]) -> OperatorSchema:
    first = nodes[0]
    inputs = max(len(node.inputs) for node in nodes)
    outputs = max(len(node.outputs) for node in nodes)
    attributes = {
        text_of(proto.name): _kind(proto) for node in nodes for proto in node.proto.attribute
    }
    return OperatorSchema(
        name=first.op_type,
        domain=first.domain,
        since_version=1,
        deprecated=False,
        inputs=tuple(Formal(f"input {at}", "", (), "", "optional") for at in range(inputs)),
        outputs=tuple(Formal(f"output {at}", "", (), "") for at in range(outputs)),
        attributes=tuple(
            AttributeSchema(name, kind, False, None, "")
            for name, kind in sorted(attributes.items())
        ),
        type_constraints=(),
        markdown="Custom operator: its signature is that of its nodes in this model.",
        max_inputs=None,
        max_outputs=outputs,
    )
