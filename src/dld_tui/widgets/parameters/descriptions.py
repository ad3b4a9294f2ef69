"""Rows of the parameters pane: how they look, and those of a node and its links or a scope.

No widget in here: rows are data. Folded sections are not worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.compare.requirement_files import VERDICT_STYLES, requirement_states
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import function_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.parts.ep_context import context_of
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import aliases_in, with_aliases
from dld_tui.core.process.paths import short
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.lists.styled import Piece, operator_style, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Attribute, Node
    from dld_tui.core.model.document.scope import Definition, Scope
    from dld_tui.core.model.document.summary import ModelSummary
    from dld_tui.core.model.operators.schema import AttributeSchema, Formal, OperatorSchema
    from dld_tui.core.model.tensors.tensor import Tensor


_LABEL_CELLS = 22
_LEAST_LABEL = 9
_RIGHT_SHARE = 0.45
"""The type at the right takes at most this share of a row."""


@dataclass(slots=True)
class ParameterRow:
    """What one row says, and what the keys do there. All texts are visible text."""

    key: Hashable
    label: str = ""
    value: str = ""
    right: str = ""
    glyph: str = ""
    """One cell before the value: where it comes from or goes to."""
    label_style: str = "dim"
    value_style: str = ""
    right_style: str = "dim"
    extra: str = ""
    """More about the value, shown dim behind it where there is room."""
    indent: int = 0
    unfolded: bool | None = None
    """Whether the rows below are shown; None when there are none."""
    fold_key: Hashable = None
    """What folding the row folds."""
    keep: str = "end"
    """The part of a long value that stays."""
    node: Node | None = None
    """Enter goes to this node."""
    scope: Scope | None = None
    """Enter opens this scope."""
    attribute: str = ""
    """`e` edits this attribute, and reverting removes it."""
    name_of: str = ""
    """What `r` renames: ``node`` or ``value``."""
    copied: str = ""
    """What `y` copies: the name in full. Untrusted text."""
    tensor: Tensor | None = None

    def text(self) -> str:
        return " ".join(filter(None, (self.label, self.value, self.extra, self.right)))


def row_pieces(row: ParameterRow, width: int, label_cells: int) -> Sequence[Piece]:
    """Return the pieces of a row for `width` cells."""
    lead = "  " * row.indent
    if row.unfolded is not None:
        shown = glyphs.current()
        lead += (shown.unfolded if row.unfolded else shown.folded) + " "
    elif (row.value or row.glyph or row.right) and row.fold_key is None:
        lead += "  "
    pieces = [(clip(lead, width), "dim")]
    room = width - cell_width(lead)
    right = clip(row.right, int(width * _RIGHT_SHARE), keep="middle")
    room -= cell_width(right) + bool(right)
    if row.label:
        alone = not (row.value or row.glyph)
        label = clip(row.label, room) if alone else fit(row.label, min(label_cells, room))
        pieces.append((label, row.label_style))
        room -= cell_width(label)
    if room > 1 and (row.value or row.glyph):
        gap = " " if row.label else ""
        glyph = f"{row.glyph} " if row.glyph else ""
        pieces.append((gap + glyph, "dim"))
        room -= cell_width(gap + glyph)
        value = clip(row.value, room, keep=row.keep)
        pieces.append((value, row.value_style))
        room -= cell_width(value)
        if row.extra and room > 12:
            extra = "  " + clip(row.extra, room - 2, keep="end")
            pieces.append((extra, "faint"))
            room -= cell_width(extra)
    if right:
        pieces.append((" " * (max(0, room) + 1) + right, row.right_style))
    return pieces


class ParameterLines:
    """The line source of the parameters pane."""

    def __init__(self, rows: Sequence[ParameterRow]) -> None:
        self.rows = rows
        labelled = (row for row in rows if row.value and row.label_style != "strong")
        self._longest = max((cell_width(row.label) for row in labelled), default=0)

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, index: int, width: int) -> Sequence[Piece]:
        label_cells = min(self._longest, _LABEL_CELLS, max(_LEAST_LABEL, width // 4))
        return row_pieces(self.rows[index], width, label_cells)

    def key(self, index: int) -> Hashable:
        return self.rows[index].key

    def text(self, index: int) -> str:
        return self.rows[index].text()


REQUIRED = "required"
"""The first part of the key of a row of requirements."""
DOC_STRING = "doc_string"
"""The key of the rows of a doc string, and of their heading."""


def section(
    title: str,
    count: int | None = None,
    *,
    unfolded: bool | None = None,
    key: Hashable = None,
) -> ParameterRow:
    """Return a heading; it folds when `unfolded` is given. Its title is its key unless given."""
    return ParameterRow(
        ("section", key or title),
        title,
        right="" if count is None else f"{count:,}",
        label_style="strong",
        unfolded=unfolded,
        fold_key=("section", key or title),
    )


def wrapped(key: Hashable, lines: Sequence[str], indent: int = 1) -> list[ParameterRow]:
    """Return rows of running text."""
    return [
        ParameterRow((key, at), label=visible(line), label_style="", indent=indent)
        for at, line in enumerate(lines)
    ]


def shown_type(scope: Scope, name: str, unknown: str = "") -> str:
    """Return for example ``f32[N,3,224,224]``, or ``~f32[N,3]`` for a type that may be wrong.

    Args:
        scope: Where the value is seen.
        name: The value.
        unknown: The text when nothing is known of it.
    """
    value_type, is_stale = scope.document.shown_types.of(scope, name)
    if value_type is None:
        return unknown
    return stale_mark(is_stale) + visible(value_type.short)


def stale_mark(is_stale: bool) -> str:
    """Return the glyph before a type that may be wrong since an edit; else nothing."""
    return glyphs.current().stale if is_stale else ""


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


def describe_source(
    row: ParameterRow, scope: Scope, name: str, definition: Definition | None
) -> None:
    """Fill in where the value `name`, used in `scope`, comes from."""
    shown = glyphs.current()
    if definition is None:
        row.glyph, row.value, row.value_style = shown.error, visible(name), "bad"
        row.extra = "no node produces this value"
        return
    if definition.kind == "node" and definition.node is not None:
        _link_to(row, definition.node, shown.left)
        row.extra = constant_text(definition.node) or visible(name)
    else:
        row.glyph = shown.dot
        row.value = visible(name)
        row.value_style = "io" if definition.kind == "input" else ""
        row.extra = "graph input" if definition.kind == "input" else ""
    if definition.scope is not scope:
        row.glyph = shown.up
        row.extra = f"from {visible(definition.scope.title)}" + (
            f"  {row.extra}" if row.extra else ""
        )


def constant_text(node: Node) -> str:
    """Return a short value of a Constant node, e.g. ``= [1, -1]``; empty for other nodes."""
    from dld_tui.widgets.parameters.edit_bar import attribute_text

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
    from dld_tui.widgets.parameters.edit_bar import value_text

    if tensor.is_external or tensor.element_count > _MAX_INLINE or tensor.dtype == "undefined":
        return ""
    try:
        values = [value_text(value) for value in tensor.listed()]
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
    """Return untrusted text as visible lines of at most `width` cells, its own line breaks kept."""
    lines = wrap(text[:_MAX_TEXT], max(10, width))
    return lines if len(text) <= _MAX_TEXT else [*lines, f"… {len(text):,} characters"]


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
        from dld_tui.core.model.document.operator_matching import schema_of

        self.node = node
        self.scope: Scope = node.scope
        self.schema = schema_of(node)
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
                ("function",),
                "function",
                fmt.plural(len(body.nodes), "node"),
                glyph=glyphs.current().right,
                value_style="link",
                scope=body,
            )

        if node.op_type == "EPContext" and isinstance(scope.document, Document):
            holds = context_of(scope.document, node).holds
            yield from wrapped(("holds",), wrap_text(f"holds {holds}", self._width))

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
            text, style = ("nothing connected", "warn") if needed else ("omitted", "faint")
            yield ParameterRow(key, label, f"{fmt.UNKNOWN} {text}", value_style=style)
            return
        definition = self.scope.resolve(name)
        row = ParameterRow(key, label, copied=name, name_of="value")
        row.right = self._type(name)
        describe_source(row, self.scope, name, definition)
        yield row
        tensor = initializer_of(definition, name)
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
                yield ParameterRow(key, label, f"{fmt.UNKNOWN} omitted", value_style="faint")
                continue
            yield from self._output(index, label, name)

    def _type(self, name: str) -> str:
        """Return the type of a value, with short names for long dimensions."""
        aliases = self.scope.document.shown_types.aliases(self.scope)
        return visible(with_aliases(shown_type(self.scope, name), aliases))

    def _output(self, index: int, label: str, name: str) -> Iterator[ParameterRow]:
        key = ("output", index)
        is_result = name in self.scope.outputs
        row = ParameterRow(
            key,
            label,
            visible(name),
            self._type(name),
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
        from dld_tui.widgets.parameters.edit_bar import attribute_text

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
        from dld_tui.core.model.operators.attribute_words import integer_word
        from dld_tui.widgets.parameters.edit_bar import literal_text

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
            word = None
            if item.kind == "int" and isinstance(item.default, int):
                word = integer_word(item.name, item.default, self.schema)
            text = word or literal_text(item.default, item.kind)
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

    def _metadata(self) -> Iterator[ParameterRow]:
        metadata = self.node.metadata
        if metadata:
            yield section("Metadata", len(metadata) if len(metadata) > 3 else None)
            yield from metadata_rows(metadata)
        text = self.node.doc_string
        if text:
            yield section("Doc string", key=DOC_STRING)
            yield from wrapped(DOC_STRING, wrap_text(text, self._width))

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
        from dld_tui.core.model.operators.schema import wrapped as wrapped_text

        described = [
            *(("input", item.name, item.description) for item in schema.inputs),
            *(("output", item.name, item.description) for item in schema.outputs),
            *(("attribute", item.name, item.description) for item in schema.attributes),
        ]
        for role, name, description in described:
            key = ("signature", role, name)
            yield ParameterRow(key, name, right=role, label_style="key", indent=1)
            lines = wrapped_text(description, self._width - 2)
            yield from wrapped((*key, "text"), lines, indent=2)


DEFAULTS: Hashable = ("section", "Defaults")
DOCUMENTATION: Hashable = ("section", "Documentation")


def default_of(node: Node, attribute: str) -> object:
    """Return the default of a node's attribute, or None."""
    from dld_tui.core.model.document.operator_matching import schema_of

    schema = schema_of(node)
    known = schema.attribute(attribute) if schema is not None else None
    return known.default if known is not None else None


INITIALIZERS: Hashable = ("section", "Initializers")
CAPTURED: Hashable = ("section", "Captured values")
_MANY = 30
"""A list no longer than this is unfolded from the start."""


class ScopeRows:
    """Builds the rows of one scope.

    Args:
        scope: The scope.
        summary: The model's figures, when they are known.
        folds: What the user folded (False) and unfolded (True), by fold key.
        tensor_rows: Returns the rows of an unfolded tensor.
        width: Cells for wrapped text.
    """

    def __init__(
        self,
        scope: Scope,
        summary: ModelSummary | None,
        folds: Mapping[Hashable, bool],
        tensor_rows: Callable[[Hashable, Tensor], list[ParameterRow]],
        width: int,
    ) -> None:
        self.scope = scope
        self._summary = summary
        self._folds = folds
        self._tensor_rows = tensor_rows
        self._width = max(20, width - 4)

    def rows(self) -> list[ParameterRow]:
        """Return all rows from top to bottom."""
        is_main = self.scope.kind == "graph"
        return [
            *self._header(),
            *self._terminals("Inputs", self._plain_inputs()),
            *self._terminals("Outputs", self.scope.outputs, is_input=False),
            *self._dimensions(),
            *self._defaulted(),
            *self._captured(),
            *(self._function() if self.scope.is_function else ()),
            *(self._model() if is_main else ()),
            *(self._requirements() if is_main else ()),
            *self._initializers(),
            *self._texts(),
        ]

    def _unfolded(self, key: Hashable, default: bool = False) -> bool:
        return self._folds.get(key, default)

    def _header(self) -> Iterator[ParameterRow]:
        scope = self.scope
        name = text_of(scope.proto.name)
        yield ParameterRow(
            ("title",), visible(scope.title), visible(name), label_style="strong", copied=name
        )
        yield ParameterRow(
            ("place",),
            value=self._place(),
            value_style="dim",
            right=fmt.plural(len(scope.nodes), "node"),
            keep="start",
        )
        if scope.owner is not None:
            yield node_link(("owner",), scope.owner, glyphs.current().left)

    def _place(self) -> str:
        path = self.scope.document.path
        if self.scope.kind == "graph" and path is not None:
            return visible(short(path))
        return place_text(self.scope)

    def _plain_inputs(self) -> tuple[str, ...]:
        known = self.scope.named("initializer")
        return tuple(name for name in self.scope.inputs if name not in known)

    def _terminals(
        self, title: str, names: tuple[str, ...], *, is_input: bool = True
    ) -> Iterator[ParameterRow]:
        if not names:
            return
        key = ("section", title)
        unfolded = self._unfolded(key, len(names) <= _MANY)
        yield section(title, len(names), unfolded=unfolded if len(names) > 3 else None)
        for index, name in enumerate(names) if unfolded else ():
            yield self._terminal((title, index), name, is_input=is_input)

    def _defaulted(self) -> Iterator[ParameterRow]:
        """Yield the inputs that have an initializer: old models list all of their weights."""
        known = self.scope.named("initializer")
        yield from self._terminals(
            "Inputs with a default", tuple(name for name in self.scope.inputs if name in known)
        )

    def _terminal(self, key: Hashable, name: str, *, is_input: bool) -> ParameterRow:
        scope, shown = self.scope, glyphs.current()
        node = next(iter(scope.consumers(name)), None) if is_input else scope.producer(name)
        glyph = shown.right if is_input else shown.left
        return ParameterRow(
            key,
            value=visible(name),
            right=visible(with_aliases(shown_type(scope, name, fmt.UNKNOWN), aliases_in(scope))),
            glyph=glyph if node is not None else "",
            value_style="io",
            node=node,
            copied=name,
            name_of="value",
        )

    def _dimensions(self) -> Iterator[ParameterRow]:
        """Yield the short names that long dimensions have everywhere else."""
        aliases = aliases_in(self.scope)
        if aliases:
            yield section("Dimensions")
        for name, alias in aliases.items():
            yield ParameterRow(("dimension", name), visible(alias), visible(name), copied=name)

    def _captured(self) -> Iterator[ParameterRow]:
        if self.scope.kind != "subgraph":
            return
        captured = self.scope.captured()
        if not captured:
            return
        unfolded = self._unfolded(CAPTURED, len(captured) <= _MANY)
        yield section("Captured values", len(captured), unfolded=unfolded)
        for name, definition in captured.items() if unfolded else ():
            right = shown_type(self.scope, name)
            row = ParameterRow(
                ("captured", name), value=visible(name), right=right, glyph=glyphs.current().up,
                copied=name, name_of="value", indent=0,
            )  # fmt: skip
            if definition is None:
                row.value_style, row.extra = "bad", "no node produces this value"
            else:
                row.node, row.extra = definition.node, f"from {visible(definition.scope.title)}"
                row.value_style = "link" if definition.node is not None else ""
            yield row

    def _function(self) -> Iterator[ParameterRow]:
        from dld_tui.core.model.document.local_functions import function_attributes

        declared = function_attributes(self.scope)
        if declared:
            yield section("Attributes", len(declared))
        for item in declared:
            yield ParameterRow(
                ("declared", item.name),
                visible(item.name),
                visible(item.text.removeprefix(item.name).removeprefix(": ")),
                right=fmt.plural(item.uses, "use"),
                copied=item.name,
            )

    def _model(self) -> Iterator[ParameterRow]:
        document, summary = self.scope.document, self._summary
        model = document.model
        yield section("Model")
        opsets = ", ".join(
            f"{visible(domain) or 'ai.onnx'} {version}"
            for domain, version in document.opset_imports.items()
        )
        yield _fact("opset", opsets or f"{fmt.UNKNOWN} none imported")
        yield _fact("IR version", str(model.ir_version or fmt.UNKNOWN), field="ir_version")
        producer = f"{text_of(model.producer_name)} {text_of(model.producer_version)}".strip()
        yield _fact("producer", visible(producer) or fmt.UNKNOWN, field="producer_name")
        if summary is not None:
            yield _fact("nodes", f"{summary.nodes_total:,} in all scopes")
            yield _fact("weights", summary.parameters_text)
        if document.functions:
            yield _fact("functions", fmt.count(len(document.functions)))
        for function in document.functions[:_MANY]:
            yield ParameterRow(
                ("function", function.path),
                value=visible(function.title),
                right=fmt.plural(len(function.nodes), "node"),
                glyph=glyphs.current().right,
                value_style="link",
                scope=function,
                indent=1,
            )

    def _requirements(self) -> Iterator[ParameterRow]:
        """Yield what the file beside the model requires of it, with the last known verdicts."""
        path = self.scope.document.path
        try:
            states = requirement_states(path) if path is not None else []
        except DldError as error:
            yield section("Requirements")
            yield ParameterRow((REQUIRED, ""), value=visible(error.message), value_style="bad")
            return
        if not states:
            return
        yield section("Requirements", len(states))
        for one in states:
            yield ParameterRow(
                (REQUIRED, one.requirement), one.requirement, one.text,
                value_style=VERDICT_STYLES.get(one.outcome, "dim") if not one.is_old else "dim",
                keep="start", copied=one.requirement,
            )  # fmt: skip
        yield ParameterRow(
            (REQUIRED, ""), value=hint("{model.gate} checks them"), value_style="dim"
        )

    def _initializers(self) -> Iterator[ParameterRow]:
        records = self.scope.records.get("initializer", [])
        if not records:
            return
        unfolded = self._unfolded(INITIALIZERS)
        yield section("Initializers", len(records), unfolded=unfolded)
        if not unfolded:
            return
        for index, tensor in enumerate(self.scope.initializers):
            key = ("initializer", index)
            kind = tensor.dtype + visible(fmt.shape(tensor.shape))
            row = ParameterRow(
                key,
                value=visible(tensor.name),
                right=f"{kind}  {fmt.size(tensor.nbytes)}",
                copied=tensor.name,
                name_of="value",
                tensor=tensor,
                fold_key=key,
                unfolded=self._unfolded(key),
            )
            yield row
            if row.unfolded:
                yield from self._tensor_rows(key, tensor)

    def _texts(self) -> Iterator[ParameterRow]:
        scope = self.scope
        messages = [scope.proto]
        if scope.kind == "graph":
            messages.append(scope.document.model)  # type: ignore[arg-type]
        for message in messages:
            metadata = {text_of(e.key): text_of(e.value) for e in message.metadata_props}
            if metadata:
                yield section("Metadata", len(metadata))
                yield from metadata_rows(metadata)
            text = text_of(message.doc_string)
            if text:
                yield section("Doc string", key=DOC_STRING)
                yield from wrapped(DOC_STRING, wrap_text(text, self._width))


def _fact(name: str, value: str, *, field: str = "") -> ParameterRow:
    """Return a row about the model; `field` is the one that the metadata page edits."""
    key = ("field", field) if field else ("detail", name)
    return ParameterRow(key, name, value, keep="start", copied=value)
