"""Operators to choose from: groups, fuzzy search, rows, JSON documents and documentation pages."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import attribute_type, text_of, texts_of
from dld_tui.core.model.document.local_functions import (
    FunctionAttribute,
    function_attributes,
    operator_of_text,
)
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.opset_imports import versions_by_domain
from dld_tui.core.model.document.scope import Scope, ScopeOwner
from dld_tui.core.model.operators.attribute_words import integer_word
from dld_tui.core.model.operators.categories import CATEGORIES, category_of
from dld_tui.core.model.operators.registry import (
    history_of,
    known_domains,
    newest_opset,
    operators,
    schema_for,
    versions_of,
)
from dld_tui.core.model.operators.schema import (
    AttributeSchema,
    AttributeValue,
    Formal,
    OperatorSchema,
    wrapped,
)
from dld_tui.core.model.tensors.literals import format_literal
from dld_tui.core.model.tensors.value_types import shown, types_text
from dld_tui.core.tables.table import NOTE, PLACE, Column, Table
from dld_tui.core.text import clip, visible
from dld_tui.core.text.fuzzy import score
from dld_tui.core.types import JSON, is_array, plain_domain

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
    """One operator of the palette. Names of functions and custom ones are untrusted text."""

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
        """One line of documentation. Untrusted text for functions."""
        if self.origin is Origin.CUSTOM and self.uses:
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
        invents: A search for a name that no operator has also finds a new custom operator.
    """

    def __init__(
        self,
        imports: Mapping[str, int],
        *,
        functions: Iterable[OperatorSchema] = (),
        custom: Iterable[OperatorSchema] = (),
        uses: Mapping[tuple[str, str], int] | None = None,
        invents: bool = False,
    ) -> None:
        self.imports = dict(imports)
        self._invents = invents
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
        listed = [item for *_, item in sorted(scored, key=lambda row: row[:3])]
        return [*listed, *self._invented(text, any_found=bool(listed))]

    def _invented(self, text: str, *, any_found: bool) -> list[PaletteOperator]:
        """Return a new custom operator of this name, such as ``trt.EfficientNMS_TRT``."""
        domain, name = operator_of_text(text)
        if not (self._invents and name.isidentifier()) or " " in domain:
            return []
        if self.operator(name, domain) is not None or (any_found and not domain):
            return []
        schema = _invented_schema(domain, name)
        return [PaletteOperator(name, domain, schema, Origin.CUSTOM, domain in self.imports)]

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
    """Return a domain for people: ``ai.onnx`` for the nameless one. Untrusted text."""
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


Uses = Mapping["tuple[str, str]", int]


def operator_palette(scope: Scope, uses: Uses | None = None) -> OperatorPalette:
    """Return the operators that can be added to a scope of a document.

    Args:
        scope: The scope; a function has its own imports.
        uses: How many nodes call an operator, by (domain, name), where that is known already.
    """
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
        versions_by_domain(scope), functions=functions, custom=custom, uses=counts, invents=True
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


def _invented_schema(domain: str, name: str) -> OperatorSchema:
    return OperatorSchema(
        name=name,
        domain=domain,
        since_version=1,
        deprecated=False,
        inputs=(Formal("input", "", (), "", "variadic", 0, homogeneous=False),),
        outputs=(Formal("output", "", (), "", "variadic", homogeneous=False),),
        attributes=(),
        type_constraints=(),
        markdown="New custom operator: any inputs, outputs and attributes.",
        max_inputs=None,
        max_outputs=None,
    )


Line: TypeAlias = "tuple[str, str]"
"""(role, text): ``title``, ``note``, ``head``, ``term``, ``text`` or ``warning``."""

_INDENT = "  "
_DEFAULT_CELLS = 40


def operator_page(schema: OperatorSchema, width: int) -> list[Line]:
    """Return the documentation of an operator in lines of at most `width` columns.

    Preformatted parts of the documentation are not wrapped. Local functions and custom operators
    have pages too; their texts have been made visible.
    """
    lines = _head(schema)
    for line in schema.doc_lines(width):
        lines.append(("text", visible(line)))
    lines += _formals("Inputs", schema.inputs, width)
    lines += _formals("Outputs", schema.outputs, width)
    lines += _attributes(schema.attributes, schema, width)
    lines += _constraints(schema, width)
    return lines + _history(schema, width)


def _head(schema: OperatorSchema) -> list[Line]:
    details = [
        domain_title(schema.domain),
        f"since version {schema.since_version}",
        schema.category,
    ]
    lines: list[Line] = [
        ("title", visible(schema.name)),
        ("note", visible(" · ".join(details))),
    ]
    if schema.deprecated:
        lines.append(("warning", "Deprecated: use another operator in new models."))
    return [*lines, ("text", "")]


def _formals(title: str, formals: Sequence[Formal], width: int) -> list[Line]:
    if not formals:
        return []
    lines = _section(title)
    for formal in formals:
        types = formal.type_name if formal.type_name not in formal.types else ""
        about = shown(formal.types[0]) if formal.types and not types else types
        notes = [visible(about), "" if formal.option == "single" else formal.option]
        head = f"{visible(formal.name)}  {', '.join(filter(None, notes))}"
        lines.append(("term", (_INDENT + head).rstrip()))
        lines += _paragraphs(formal.description, width)
    return lines


def _attributes(
    attributes: Sequence[AttributeSchema], schema: OperatorSchema, width: int
) -> list[Line]:
    if not attributes:
        return []
    lines = _section("Attributes")
    for item in attributes:
        note = ", required" if item.required else _default(item, schema)
        lines.append(("term", f"{_INDENT}{visible(item.name)}  {item.kind}{note}"))
        lines += _paragraphs(item.description, width)
    return lines


def _default(item: AttributeSchema, schema: OperatorSchema) -> str:
    default = item.default
    if default is None:
        return ""
    word = integer_word(item.name, default, schema) if isinstance(default, int) else None
    text = word or format_literal(default, item.kind)
    return f", default {clip(visible(text), _DEFAULT_CELLS)}"


def _constraints(schema: OperatorSchema, width: int) -> list[Line]:
    if not schema.type_constraints:
        return []
    lines = _section("Types")
    for item in schema.type_constraints:
        lines.append(("term", f"{_INDENT}{item.name}"))
        lines += _paragraphs(types_text(item.types, most=len(item.types)), width)
        lines += _paragraphs(item.description, width)
    return lines


def _history(schema: OperatorSchema, width: int) -> list[Line]:
    history = history_of(schema.name, schema.domain)
    if not history:
        return []
    lines = _section("Versions")
    for version, changes in history:
        mark = "  (this one)" if version == schema.since_version and len(history) > 1 else ""
        lines.append(("term", f"{_INDENT}{version}{mark}"))
        lines += _wrapped("; ".join(changes), width)
    return lines


def _section(title: str) -> list[Line]:
    return [("text", ""), ("head", title)]


def _paragraphs(markdown: str, width: int) -> Iterable[Line]:
    room = max(20, width - 2 * len(_INDENT))
    for line in wrapped(markdown, room):
        yield "text", 2 * _INDENT + visible(line) if line else ""


def _wrapped(text: str, width: int) -> Iterable[Line]:
    room = max(20, width - 2 * len(_INDENT))
    for line in textwrap.wrap(visible(text), room):
        yield "text", 2 * _INDENT + line


def all_operators(domain: str | None = None, opset: int | None = None) -> list[OperatorSchema]:
    """Return the operators of one operator set or of all, as a version of ai.onnx has them.

    Args:
        domain: The operator set, ``ai.onnx`` or ``""`` being the nameless one; None for all.
        opset: The version of that set; without one, of ai.onnx. None for the newest.

    Raises:
        UsageError: There is no such operator set, or no such version of it.
    """
    imports = newest_opsets()
    wanted = None if domain is None else _known(domain)
    if wanted is not None:
        imports = {wanted: imports[wanted]}
    if opset is not None:
        at = wanted or ""
        if opset > imports[at]:
            raise UsageError(
                f"--opset is {opset}; the newest of {domain_title(at)} is {imports[at]}"
            )
        imports[at] = opset
    return operators(imports)


def find(name: str, domain: str | None = None, opset: int | None = None) -> list[OperatorSchema]:
    """Return the operators of a name, one a domain; the case of letters does not matter.

    Raises:
        UsageError: There is none; says which may have been meant.
    """
    known = all_operators(domain, opset)
    schemas = [schema for schema in known if schema.name.lower() == name.lower()]
    if schemas:
        return schemas
    newer = schema_for(name, _known(domain or ""), None)
    if newer is not None:
        raise UsageError(f"there is no {name} in opset {opset}")
    names = {schema.name.lower(): schema.name for schema in known}
    close = get_close_matches(name.lower(), list(names), n=1)
    meant = f"; did you mean {names[close[0]]}?" if close else ""
    raise UsageError(f"there is no operator {visible(name)!r}{meant}")


@dataclass(frozen=True)
class ListedOperator:
    """The entry of an operator in a list, as JSON has it."""

    name: str
    domain: str
    since_version: int
    category: str
    deprecated: bool
    summary: str

    @classmethod
    def of(cls, schema: OperatorSchema) -> ListedOperator:
        """Return the entry of an operator."""
        return cls(
            schema.name, domain_title(schema.domain), schema.since_version, schema.category,
            schema.deprecated, schema.summary,
        )  # fmt: skip


def operator_table(schemas: Sequence[OperatorSchema]) -> Table[OperatorSchema]:
    """Return operators as a table."""
    return Table(
        (
            Column("name", "operator", lambda schema: schema.name),
            Column("domain", "domain", lambda schema: domain_title(schema.domain)),
            Column("since_version", "since", lambda schema: schema.since_version, PLACE),
            Column("category", "category", lambda schema: schema.category),
            Column("summary", "does",
                   lambda schema: ("deprecated: " if schema.deprecated else "") + schema.summary,
                   NOTE),
        ),
        schemas,
    )  # fmt: skip


def document(schema: OperatorSchema) -> JSON:
    """Return everything that is known of an operator, in JSON."""
    history = history_of(schema.name, schema.domain)
    return {
        **encode(ListedOperator.of(schema)),
        "doc": schema.doc,
        "inputs": [_formal(formal) for formal in schema.inputs],
        "outputs": [_formal(formal) for formal in schema.outputs],
        "attributes": [_attribute(item) for item in schema.attributes],
        "types": {item.name: list[JSON](item.types) for item in schema.type_constraints},
        "versions": [
            {"version": version, "changes": list[JSON](changes)} for version, changes in history
        ],
    }


def text(schema: OperatorSchema, width: int) -> list[str]:
    """Return the documentation in lines of `width` columns."""
    return [line for _, line in operator_page(schema, width)]


def _known(domain: str) -> str:
    plain = plain_domain(domain)
    known = newest_opsets()
    if plain not in known:
        names = ", ".join(map(domain_title, known))
        raise UsageError(f"--domain is {visible(domain)!r}; known are {names}")
    return plain


def _formal(formal: Formal) -> JSON:
    return {
        "name": formal.name,
        "option": formal.option,
        "type": formal.type_name,
        "types": list[JSON](formal.types),
        "description": formal.description,
    }


def _attribute(item: AttributeSchema) -> JSON:
    return {
        "name": item.name,
        "kind": item.kind,
        "required": item.required,
        "default": _plain(item.default),
        "description": item.description,
    }


def _plain(value: AttributeValue) -> JSON:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if is_array(value):
        listed: JSON = value.tolist()
        return listed
    return value
