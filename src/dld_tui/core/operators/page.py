"""The documentation page of an operator: lines of text with a role each, for any output."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dld_tui.core.document.literals import format_literal
from dld_tui.core.document.type_names import shown, types_text
from dld_tui.core.operators import plain_text
from dld_tui.core.operators.history import history_of
from dld_tui.core.operators.palette import domain_title
from dld_tui.core.operators.schema import AttributeSchema, Formal, OperatorSchema
from dld_tui.core.text import clip, visible

Line: TypeAlias = "tuple[str, str]"
"""(role, text): ``title``, ``note``, ``head``, ``term``, ``text`` or ``warning``."""

_INDENT = "  "
_DEFAULT_CELLS = 40


def operator_page(schema: OperatorSchema, width: int, *, history: bool = True) -> list[Line]:
    """Return the documentation of an operator in lines of at most `width` columns.

    Preformatted parts of the documentation are not wrapped. Local functions and custom operators
    have pages too; their texts have been made visible.

    Args:
        schema: The operator.
        width: Columns.
        history: Tell what changed from version to version.
    """
    lines = _head(schema)
    for line in schema.doc_lines(width):
        lines.append(("text", visible(line)))
    lines += _formals("Inputs", schema.inputs, width)
    lines += _formals("Outputs", schema.outputs, width)
    lines += _attributes(schema.attributes, width)
    lines += _constraints(schema, width)
    if history:
        lines += _history(schema, width)
    return lines


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
    for line in plain_text.wrapped(markdown, room):
        yield "text", 2 * _INDENT + visible(line) if line else ""


def _wrapped(text: str, width: int) -> Iterable[Line]:
    room = max(20, width - 2 * len(_INDENT))
    for line in textwrap.wrap(visible(text), room):
        yield "text", 2 * _INDENT + line
