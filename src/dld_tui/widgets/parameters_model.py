"""What the parameters pane says of a node: header, links, attributes, defaults, documentation.

No widget in here: rows are data. Folded sections are not worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document.calls import function_of
from dld_tui.core.operators import plain_text
from dld_tui.core.operators.registry import schema_for
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.literal_preview import attribute_text, value_text
from dld_tui.widgets.operator_style import operator_style
from dld_tui.widgets.parameter_links import (
    describe_source,
    formal_name,
    initializer_of,
    metadata_rows,
    node_link,
    place_text,
    tensor_text,
    wrap_text,
)
from dld_tui.widgets.parameter_rows import ParameterRow, section, wrapped
from dld_tui.widgets.value_types import shown_type

if TYPE_CHECKING:
    from dld_tui.core.document.node import Attribute, Node
    from dld_tui.core.document.scope import Scope
    from dld_tui.core.document.tensor import Tensor
    from dld_tui.core.operators.schema import AttributeSchema, Formal, OperatorSchema

MAX_LINKS = 40
"""Consumers of one value that are listed without unfolding."""


class NodeRows:
    """Builds the rows of one node.

    Args:
        node: The node.
        folds: What the user folded (False) and unfolded (True), by fold key.
        tensor_rows: Returns the rows of an unfolded tensor.
        width: Cells for wrapped text.
    """

    def __init__(
        self,
        node: Node,
        folds: Mapping[Hashable, bool],
        tensor_rows: Callable[[Hashable, Tensor], list[ParameterRow]],
        width: int,
    ) -> None:
        self.node = node
        self.scope: Scope = node.scope
        self.schema = node_schema(node)
        self._folds = folds
        self._tensor_rows = tensor_rows
        self._width = max(20, width - 4)

    def rows(self) -> list[ParameterRow]:
        """Return all rows from top to bottom."""
        return [
            *self._header(),
            *self._inputs(),
            *self._outputs(),
            *self._attributes(),
            *self._defaults(),
            *self._metadata(),
            *self._documentation(),
        ]

    def _unfolded(self, key: Hashable, default: bool = False) -> bool:
        return self._folds.get(key, default)

    # --- what it is -----------------------------------------------------------------------------

    def _header(self) -> Iterator[ParameterRow]:
        node, scope = self.node, self.scope
        name = node.name
        yield ParameterRow(
            ("title",),
            visible(node.op_type),
            visible(name) or f"{glyphs.current().missing} no name",
            label_style=f"strong {operator_style(node.op_type, node.domain)}",
            value_style="strong" if name else "faint",
            name_of="node",
            copied=name or node.ref,
        )
        at, count = scope.index_of(node) + 1, len(scope.nodes)
        version = scope.document.opset_imports.get(node.domain)
        domain = visible(node.domain) or "ai.onnx"
        known = "" if version is None else f" {version}"
        place = place_text(scope)
        yield ParameterRow(
            ("place",),
            value=f"{domain}{known} {glyphs.current().dot} {place}",
            value_style="dim",
            right=f"node {at:,} of {count:,}",
            keep="start",
        )
        body = function_of(node)
        if body is not None:
            yield ParameterRow(
                ("body",),
                "body",
                fmt.plural(len(body.nodes), "node"),
                glyph=glyphs.current().right,
                value_style="link",
                scope=body,
            )

    # --- links ----------------------------------------------------------------------------------

    def _inputs(self) -> Iterator[ParameterRow]:
        inputs = self.node.inputs
        # Those left out at the end have a row too, so that something can be connected there.
        formals = self.schema.inputs[len(inputs) :] if self.schema is not None else ()
        left_out = sum(formal.option != "variadic" for formal in formals)
        if not inputs and not left_out:
            return
        yield section("Inputs", len(inputs) if len(inputs) > 3 else None)
        for index, name in enumerate((*inputs, *[""] * left_out)):
            formal = self.schema.input(index) if self.schema is not None else None
            label = formal_name(formal, index)
            yield from self._input(index, label, name, formal)

    def _input(
        self, index: int, label: str, name: str, formal: Formal | None
    ) -> Iterator[ParameterRow]:
        key = ("input", index)
        if not name:
            needed = formal is not None and formal.option == "single"
            text, style = ("nothing connected", "warn") if needed else ("left out", "faint")
            yield ParameterRow(key, label, f"{fmt.UNKNOWN} {text}", value_style=style)
            return
        found = self.scope.resolve(name)
        row = ParameterRow(key, label, copied=name, name_of="value")
        row.right = shown_type(self.scope, name)
        describe_source(row, self.scope, name, found)
        yield row
        tensor = initializer_of(found, name)
        if tensor is not None:
            row.tensor, row.fold_key, row.unfolded = tensor, key, self._unfolded(key)
            row.extra = row.extra or tensor_text(tensor)
            if row.unfolded:
                yield from self._tensor_rows(key, tensor)

    def _outputs(self) -> Iterator[ParameterRow]:
        outputs = self.node.outputs
        if not outputs:
            return
        yield section("Outputs", len(outputs) if len(outputs) > 3 else None)
        for index, name in enumerate(outputs):
            formal = self.schema.output(index) if self.schema is not None else None
            label = formal_name(formal, index)
            if not name:
                key = ("output", index)
                yield ParameterRow(key, label, f"{fmt.UNKNOWN} left out", value_style="faint")
                continue
            yield from self._output(index, label, name)

    def _output(self, index: int, label: str, name: str) -> Iterator[ParameterRow]:
        key = ("output", index)
        is_result = name in self.scope.outputs
        row = ParameterRow(
            key,
            label,
            visible(name),
            shown_type(self.scope, name),
            value_style="io" if is_result else "",
            copied=name,
            name_of="value",
        )
        users = list(dict.fromkeys(use.node for use in self.scope.users(name)))
        if is_result:
            row.extra = "graph output"
        elif not users:
            row.extra = "not used"
        shown = users
        if len(users) > MAX_LINKS:
            row.fold_key, row.unfolded = key, self._unfolded(key)
            row.extra = f"{len(users):,} uses"
            shown = users if row.unfolded else users[: MAX_LINKS // 8]
        yield row
        for user in shown:
            yield self._use((*key, user), user)

    def _use(self, key: Hashable, user: Node) -> ParameterRow:
        row = node_link(key, user, glyphs.current().right)
        row.indent = 1
        if user.scope is not self.scope:
            row.extra = f"in {place_text(user.scope)}"
        return row

    # --- attributes -----------------------------------------------------------------------------

    def _attributes(self) -> Iterator[ParameterRow]:
        attributes = self.node.attributes()
        yield section("Attributes", len(attributes) if len(attributes) > 3 else None)
        for attribute in attributes:
            yield from self._attribute(attribute)
        present = {attribute.name for attribute in attributes}
        missing = [item for item in self._known_attributes() if item.required]
        for item in missing:
            if item.name not in present:
                yield ParameterRow(
                    ("attribute", item.name),
                    item.name,
                    "not set, but required",
                    item.kind,
                    glyph=glyphs.current().warning,
                    value_style="warn",
                    attribute=item.name,
                )
        if not attributes and not missing:
            yield ParameterRow(("none",), value="none set", value_style="faint")

    def _attribute(self, attribute: Attribute) -> Iterator[ParameterRow]:
        name, kind = attribute.name, attribute.kind
        key = ("attribute", name)
        row = ParameterRow(
            key,
            visible(name),
            attribute_text(attribute),
            kind,
            label_style="key",
            keep="start",
            attribute=name,
            copied=name,
        )
        if attribute.reference is not None:
            row.value_style = "link"
        if kind in ("graph", "graphs"):
            yield from self._bodies(row, name)
            return
        yield row
        if kind == "tensor":
            tensor: Tensor = attribute.value
            is_value = self.node.op_type == "Constant"
            row.tensor, row.fold_key = tensor, key
            row.unfolded = self._unfolded(key, is_value)
            if row.unfolded:
                yield from self._tensor_rows(key, tensor)

    def _bodies(self, row: ParameterRow, name: str) -> Iterator[ParameterRow]:
        for body in self.node.children.get(name, ()):
            key = ("attribute", name, body.position)
            yield ParameterRow(
                key,
                row.label if not body.position else "",
                fmt.plural(len(body.nodes), "node"),
                row.right,
                glyph=glyphs.current().right,
                label_style="key",
                value_style="link",
                scope=body,
                copied=name,
            )

    def _known_attributes(self) -> list[AttributeSchema]:
        return list(self.schema.attributes) if self.schema is not None else []

    def _defaults(self) -> Iterator[ParameterRow]:
        left_out = [
            item
            for item in self._known_attributes()
            if not item.required and self.node.attribute(item.name) is None
        ]
        if not left_out:
            return
        heading = section("Defaults", len(left_out), unfolded=self._unfolded(DEFAULTS))
        yield heading
        if not heading.unfolded:
            return
        for item in left_out:
            text = value_text(item.default, item.kind)
            yield ParameterRow(
                ("attribute", item.name),
                item.name,
                text if item.default is not None else f"{fmt.UNKNOWN} not set",
                item.kind,
                value_style="dim",
                keep="start",
                attribute=item.name,
                copied=item.name,
            )

    # --- the rest -------------------------------------------------------------------------------

    def _metadata(self) -> Iterator[ParameterRow]:
        metadata = self.node.metadata
        if metadata:
            yield section("Metadata", len(metadata) if len(metadata) > 3 else None)
            yield from metadata_rows(metadata)
        text = self.node.doc_string
        if text:
            yield section("Doc string")
            yield from wrapped("doc_string", wrap_text(text, self._width))

    def _documentation(self) -> Iterator[ParameterRow]:
        heading = section("Documentation", unfolded=self._unfolded(DOCUMENTATION))
        if self.schema is None:
            heading.unfolded = None
            heading.value, heading.value_style = "unknown operator", "faint"
            yield heading
            return
        heading.right = f"since {self.schema.since_version}"
        yield heading
        if heading.unfolded:
            yield from wrapped("documentation", self.schema.doc_lines(self._width))
            yield from self._signature(self.schema)

    def _signature(self, schema: OperatorSchema) -> Iterator[ParameterRow]:
        """Yield what each input, output and attribute is for."""
        described = [
            *(("input", item.name, item.description) for item in schema.inputs),
            *(("output", item.name, item.description) for item in schema.outputs),
            *(("attribute", item.name, item.description) for item in schema.attributes),
        ]
        for what, name, description in described:
            key = ("signature", what, name)
            yield ParameterRow(key, name, right=what, label_style="key", indent=1)
            lines = plain_text.wrapped(description, self._width - 2)
            yield from wrapped((*key, "text"), lines, indent=2)


DEFAULTS: Hashable = ("section", "Defaults")
DOCUMENTATION: Hashable = ("section", "Documentation")


def node_schema(node: Node) -> OperatorSchema | None:
    """Return the schema of a node's operator in the version that the model imports."""
    versions = node.scope.document.opset_imports
    return schema_for(node.op_type, node.domain, versions.get(node.domain))


def default_of(node: Node, attribute: str) -> object:
    """Return the default of a node's attribute, or None."""
    schema = node_schema(node)
    known = schema.attribute(attribute) if schema is not None else None
    return known.default if known is not None else None
