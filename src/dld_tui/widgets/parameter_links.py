"""Rows about links: where an input comes from, who uses an output."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.literal_preview import attribute_text
from dld_tui.widgets.parameter_rows import ParameterRow
from dld_tui.widgets.tensor_preview import value_text
from dld_tui.widgets.wrap import wrap

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Definition, Scope
    from dld_tui.core.operators.schema import Formal

_MAX_INLINE = 8
"""Values of the largest tensor that is shown in a row."""
_MAX_TEXT = 20_000
"""Characters of a doc string that are shown."""


def scope_chain(scope: Scope) -> list[Scope]:
    """Return the scopes from the outermost one to this one."""
    chain = [scope]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    return chain[::-1]


def place_text(scope: Scope) -> str:
    """Return where a scope is, e.g. ``main › If_0 › then_branch``: visible text."""
    parts = []
    for step in scope_chain(scope):
        if step.owner is not None:
            parts.append(visible(step.owner.ref))
        parts.append(visible(step.title))
    return f" {glyphs.current().crumb} ".join(parts)


def formal_name(formal: Formal | None, index: int) -> str:
    """Return the label of an actual input or output; variadic ones are numbered."""
    if formal is None:
        return f"#{index}"
    return f"{formal.name} {index}" if formal.option == "variadic" else formal.name


def initializer_of(definition: Definition | None, name: str) -> Tensor | None:
    """Return the dense initializer that a definition is, or None."""
    if definition is None or definition.kind != "initializer":
        return None
    return definition.scope.initializer(name)


def describe_source(row: ParameterRow, scope: Scope, name: str, found: Definition | None) -> None:
    """Fill in where the value `name`, used in `scope`, comes from."""
    shown = glyphs.current()
    if found is None:
        row.glyph, row.value, row.value_style = shown.error, visible(name), "bad"
        row.extra = "nothing makes this value"
        return
    if found.kind == "node" and found.node is not None:
        _link_to(row, found.node, shown.left)
        row.extra = constant_text(found.node) or visible(name)
    else:
        row.glyph = shown.dot
        row.value = visible(name)
        row.value_style = "io" if found.kind == "input" else ""
        row.extra = "graph input" if found.kind == "input" else ""
    if found.scope is not scope:
        row.glyph = shown.up
        row.extra = f"from {visible(found.scope.title)}" + (f"  {row.extra}" if row.extra else "")


def constant_text(node: Node) -> str:
    """Return a short value of a Constant node, e.g. ``= [1, -1]``; empty for other nodes."""
    if node.op_type != "Constant" or node.domain:
        return ""
    for attribute in node.attributes():
        if attribute.kind == "tensor":
            return tensor_text(attribute.value)
        if attribute.name.startswith("value"):
            return f"= {attribute_text(attribute)}"
    return ""


def tensor_text(tensor: Tensor) -> str:
    """Return the values of a small tensor that is in the model file; else an empty text."""
    if tensor.is_external or tensor.element_count > _MAX_INLINE or tensor.dtype == "undefined":
        return ""
    try:
        values = [value_text(value) for value in tensor.read().tolist()]
    except DldError:
        return ""
    return f"= {values[0]}" if values and not tensor.shape else f"= [{', '.join(values)}]"


def node_link(key: Hashable, node: Node, glyph: str) -> ParameterRow:
    """Return a row that leads to a node."""
    row = ParameterRow(key)
    _link_to(row, node, glyph)
    return row


def _link_to(row: ParameterRow, node: Node, glyph: str) -> None:
    label = visible(node.name or next(filter(None, node.outputs), ""))
    row.glyph, row.value = glyph, f"{visible(node.op_type)}  {label}"
    row.value_style, row.node = "link", node
    row.keep = "middle"
    row.copied = row.copied or node.name or node.ref


def metadata_rows(metadata: Mapping[str, str]) -> Iterator[ParameterRow]:
    """Yield a row for each entry of ``metadata_props``."""
    for key, value in metadata.items():
        yield ParameterRow(
            ("metadata", key),
            visible(key),
            visible(value[:_MAX_TEXT]),
            keep="start",
            copied=value,
        )


def wrap_text(text: str, width: int) -> list[str]:
    """Return foreign text as visible lines of at most `width` cells, its own line breaks kept."""
    lines = wrap(text[:_MAX_TEXT], max(10, width))
    return lines if len(text) <= _MAX_TEXT else [*lines, f"… {len(text):,} characters"]
