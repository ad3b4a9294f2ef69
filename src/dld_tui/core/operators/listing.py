"""Operators as rows, as JSON documents, and as documentation pages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from dld_tui.core.codec import encode
from dld_tui.core.document.literals import format_literal
from dld_tui.core.document.types.value_types import shown, types_text
from dld_tui.core.errors import UsageError
from dld_tui.core.operators.palette import domain_title, newest_opsets
from dld_tui.core.operators.registry import history_of, operators, schema_for
from dld_tui.core.operators.schema import (
    AttributeSchema,
    AttributeValue,
    Formal,
    OperatorSchema,
    wrapped,
)
from dld_tui.core.tables.table import NOTE, PLACE, Column, Table
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, is_array, plain_domain

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
    lines += _attributes(schema.attributes, width)
    lines += _constraints(schema, width)
    return lines + _history(schema, width)


def _head(schema: OperatorSchema) -> list[Line]:
    facts = [domain_title(schema.domain), f"since version {schema.since_version}", schema.category]
    lines: list[Line] = [
        ("title", visible(schema.name)),
        ("note", visible(" · ".join(facts))),
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


def _attributes(attributes: Sequence[AttributeSchema], width: int) -> list[Line]:
    if not attributes:
        return []
    lines = _section("Attributes")
    for item in attributes:
        note = ", required" if item.required else _default(item)
        lines.append(("term", f"{_INDENT}{visible(item.name)}  {item.kind}{note}"))
        lines += _paragraphs(item.description, width)
    return lines


def _default(item: AttributeSchema) -> str:
    if item.default is None:
        return ""
    return f", default {clip(visible(format_literal(item.default, item.kind)), _DEFAULT_CELLS)}"


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
