"""Dialogs about nodes: attributes of many at once, parts written as models, find and rewrite."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.node import Attribute
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.edits.attributes import SETTABLE_KINDS, set_attributes
from dld_tui.core.model.operators.attribute_words import integer_word
from dld_tui.core.model.tensors.literals import LiteralError, format_literal
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.types import JSON
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.forms.path_input import PathInput
from dld_tui.widgets.forms.text_field import query_field, text_field
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Piece, Rows, operator_style
from dld_tui.widgets.parameters.edit_bar import attribute_text, edit_value, editable_text
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.model.document import Scope
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.parts.extraction import Extraction
    from dld_tui.core.model.operators.schema import AttributeSchema, OperatorSchema
    from dld_tui.core.model.rewrite.query import Completion
    from dld_tui.core.model.rewrite.rule import Rule


MIXED = "(mixed)"
UNSET = "(not set)"


@dataclass
class SharedAttribute:
    """One attribute of nodes of one operator type."""

    name: str
    kind: str
    set_in: int = 0
    """How many of the nodes have it set."""
    sample: Attribute | None = None
    """The one of the first node that has it."""
    mixed: bool = False
    """Whether the nodes have different values, or only some have it set."""
    default: str = ""
    """Literal of the operator's default, empty when it has none."""
    typed: str | None = None
    """The literal to set; None leaves the attribute as it is."""
    value: JSON = None
    """The value of `typed`, as ``set_attribute`` takes it."""
    removed: bool = False
    """Whether it is to be removed, so that the default holds."""
    schema: OperatorSchema | None = None
    """The operator."""

    @property
    def changed(self) -> bool:
        """Whether something is to become of it."""
        return self.removed or self.typed is not None

    @property
    def text(self) -> str:
        if self.mixed:
            return MIXED
        if self.sample is None:
            return self.default or UNSET
        return attribute_text(self.sample)

    @property
    def literal(self) -> str:
        """What editing begins with."""
        if self.typed is not None:
            return self.typed
        if self.mixed:
            return ""
        if self.sample is None:
            return self.default
        return editable_text(self.sample) or ""

    @property
    def dtype(self) -> str | None:
        """The element type of a tensor."""
        if self.kind != "tensor" or self.sample is None:
            return None
        dtype: str = self.sample.value.dtype
        return dtype


@dataclass
class TypeGroup:
    """The nodes of one operator type."""

    domain: str
    op_type: str
    nodes: list[Node] = field(default_factory=list)
    attributes: list[SharedAttribute] = field(default_factory=list)


def groups_of(nodes: Iterable[Node]) -> list[TypeGroup]:
    """Return what nodes share, the type with the most nodes first."""
    groups: dict[tuple[str, str], TypeGroup] = {}
    for node in nodes:
        key = (node.domain, node.op_type)
        groups.setdefault(key, TypeGroup(*key)).nodes.append(node)
    ordered = sorted(groups.values(), key=lambda group: (-len(group.nodes), group.op_type))
    for group in ordered:
        group.attributes = _shared(group.nodes)
    return ordered


def edit_of(groups: Sequence[TypeGroup]) -> Edit | None:
    """Return the edit that sets what was typed; None if nothing was."""
    changes: list[Mapping[str, JSON]] = []
    for group in groups:
        attributes: dict[str, JSON] = {
            item.name: None if item.removed else {"kind": item.kind, "value": item.value}
            for item in group.attributes
            if item.changed
        }
        if attributes:
            nodes: list[JSON] = [[list(node.scope.path), node.ref] for node in group.nodes]
            changes.append({"nodes": nodes, "attributes": attributes})
    return set_attributes(changes=changes) if changes else None


def _shared(nodes: Sequence[Node]) -> list[SharedAttribute]:
    from dld_tui.core.model.document.operator_matching import schema_of

    shared: dict[str, SharedAttribute] = {}
    first: dict[str, bytes] = {}
    schema = schema_of(nodes[0])
    for known in schema.attributes if schema is not None else ():
        if known.kind in SETTABLE_KINDS:
            default = _default_text(known, schema)
            shared[known.name] = SharedAttribute(
                known.name, known.kind, default=default, schema=schema
            )
    for node in nodes:
        for proto in node.proto.attribute:
            name = text_of(proto.name)
            item = shared.get(name)
            if item is None:
                kind = Attribute(node, proto).kind
                if kind not in SETTABLE_KINDS:
                    continue
                item = shared[name] = SharedAttribute(name, kind, schema=schema)
            item.set_in += 1
            data = proto.SerializeToString()
            if item.sample is None:
                item.sample, first[name] = Attribute(node, proto), data
            elif data != first[name]:
                item.mixed = True
    for item in shared.values():
        item.mixed |= 0 < item.set_in < len(nodes)
    return list(shared.values())


def _default_text(item: AttributeSchema, schema: OperatorSchema | None) -> str:
    default = item.default
    if default is None:
        return ""
    if isinstance(default, int) and (word := integer_word(item.name, default, schema)):
        return word
    try:
        return format_literal(default, item.kind)
    except (LiteralError, TypeError):
        return ""


_MOST_ROWS = 14
_NAME_WIDTH = 22


class _Rows:
    """A row for each operator type and, below it, one for each attribute."""

    def __init__(self, groups: Sequence[TypeGroup]) -> None:
        self.rows: list[tuple[TypeGroup, SharedAttribute | None]] = []
        for group in groups:
            self.rows.append((group, None))
            self.rows += ((group, item) for item in group.attributes)

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> Hashable:
        group, item = self.rows[index]
        return (group.domain, group.op_type, item.name if item is not None else None)

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.line(index, 1000)).rstrip()

    def line(self, index: int, width: int) -> Sequence[Piece]:
        group, item = self.rows[index]
        if item is None:
            count = fmt.plural(len(group.nodes), "node")
            none = "" if group.attributes else "  no editable attributes"
            style = operator_style(group.op_type, group.domain)
            return [(visible(group.op_type), style), (f"  {count}{none}", "dim")]
        name = fit(clip(visible(item.name), _NAME_WIDTH, keep="middle"), _NAME_WIDTH)
        room = max(8, width - cell_width(name) - 5)
        shown = glyphs.current()
        if item.removed:
            return [(f" {shown.dirty} ", "accent"), (name, ""), ("  default", "accent")]
        if item.typed is not None:
            return [
                (f" {shown.dirty} ", "accent"),
                (name, ""),
                (f"  {clip(visible(item.typed), room)}", "accent"),
            ]
        quiet = item.mixed or item.sample is None
        return [
            ("   ", ""),
            (name, ""),
            (f"  {clip(item.text, room)}", "dim" if quiet else "number"),
        ]


class BatchDialog(Dialog[Edit]):
    """Gives the edit ``set_attributes``, or None.

    Args:
        groups: What the nodes share; what is typed is noted in it.
    """

    TITLE_TEXT = "Attributes"
    KEYS = "Enter edit  Del default  F5 set all  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5,ctrl+s", "apply", "set all", show=False, priority=True),
        Binding("backslash,delete", "default", "default", show=False),
    ]

    def __init__(self, groups: Sequence[TypeGroup]) -> None:
        super().__init__()
        self.groups = groups
        self._lines = _Rows(groups)
        self._edited: SharedAttribute | None = None

    def body(self) -> Iterable[Widget]:
        view = LineView(self._lines, id="batch-rows")
        room = max(3, self.app.size.height - 12)
        view.styles.height = min(len(self._lines), _MOST_ROWS, room)
        yield view
        yield Rows([[]], id="batch-label")
        field = text_field("", id="batch-field")
        field.disabled = True
        yield field
        yield Rows([[]], id="problem")

    def on_mount(self) -> None:
        """Put the cursor on the first attribute."""
        view = self.query_one(LineView)
        view.focus()
        view.cursor = 1
        self._say("")

    @property
    def _item(self) -> SharedAttribute | None:
        return self._lines.rows[self.query_one(LineView).cursor][1]

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Edit the value of the attribute at the cursor."""
        event.stop()
        item = self._item
        if item is None:
            return
        self._edited = item
        field = self.query_one("#batch-field", Input)
        field.disabled = False
        field.value = item.literal
        field.cursor_position = len(field.value)
        field.focus()
        label = f"{clip(visible(item.name), 40, keep='middle')} ({item.kind})"
        self.query_one("#batch-label", Rows).set_rows([[(label, "strong")]])
        self._say("")

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Note what was typed, unless it is no value."""
        event.stop()
        item = self._edited
        if item is None:
            return
        try:
            item.value = edit_value(
                event.value, item.kind, item.dtype, name=item.name, schema=item.schema
            )
        except DldError as error:
            self._say(error.message)
            return
        item.typed, item.removed = event.value, False
        self._leave_field()

    def action_default(self) -> None:
        """Let the attribute at the cursor have the operator's default; once more: leave it."""
        item = self._item
        if item is None or self._edited is not None:
            return
        if item.changed:
            item.typed, item.removed = None, False
        elif item.set_in:
            item.removed = True
        self._changed()

    def action_apply(self) -> None:
        edit = edit_of(self.groups)
        if edit is not None:
            self.dismiss(edit)
        else:
            self._say("No changes yet: Enter edits a value")

    def go_back(self) -> None:
        """Leave the field, or else the dialog."""
        if self._edited is not None:
            self._leave_field()
        else:
            super().go_back()

    def _leave_field(self) -> None:
        self._edited = None
        field = self.query_one("#batch-field", Input)
        field.value = ""
        self.query_one("#batch-label", Rows).set_rows([[]])
        self.query_one(LineView).focus()
        field.disabled = True
        self._changed()

    def _changed(self) -> None:
        self.query_one(LineView).invalidate()
        self._say("")

    def _say(self, problem: str) -> None:
        if problem:
            row = [(f"{glyphs.current().error} {visible(problem)}", "bad")]
        else:
            count = sum(item.changed for group in self.groups for item in group.attributes)
            row = [(f"{fmt.plural(count, 'attribute')} to set" if count else "", "dim")]
        self.query_one("#problem", Rows).set_rows([row])


_MOST_LISTED = 4
"""Inputs, and outputs, that are listed."""
_OTHER_ROWS = 18
"""Rows of a dialog beside those that list inputs and outputs."""


class ExtractDialog(Dialog[Path]):
    """Gives the path to write to, or None.

    Args:
        extraction: What would be written.
        start: The path to begin with.
    """

    TITLE_TEXT = "Extract to a model"
    KEYS = "Tab complete  Enter write  Esc close"

    def __init__(self, extraction: Extraction, start: str) -> None:
        super().__init__()
        self._extraction = extraction
        self._start = start

    def body(self) -> Iterable[Widget]:
        main = self._extraction.document.main
        stored = main.initializers
        size = fmt.size(sum(tensor.nbytes or 0 for tensor in stored))
        weights = f", {fmt.plural(len(stored), 'initializer')} of {size}" if stored else ""
        rows: list[list[Piece]] = [[(f"{fmt.plural(len(main.nodes), 'node')}{weights}", "strong")]]
        most = max(1, min(_MOST_LISTED, (self.app.size.height - _OTHER_ROWS) // 2))
        rows += self._listed("input", main, main.inputs, most)
        rows += self._listed("output", main, main.outputs, most)
        if self._extraction.untyped:
            count = fmt.plural(len(self._extraction.untyped), "type")
            rows.append([(f"{count} unknown: declare them later, or run shape inference", "warn")])
        rows += [[(visible(remark), "warn")] for remark in self._extraction.remarks[:2]]
        yield Rows([*rows, []])
        yield PathInput(self._start, "path of the model", rows=4)

    def _listed(
        self, title: str, scope: Scope, names: Sequence[str], most: int
    ) -> list[list[Piece]]:
        rows: list[list[Piece]] = []
        for name in names[:most]:
            known = scope.value_type(name)
            kind = visible(known.short) if known is not None else "?"
            room = max(8, self.text_width - len(kind) - 12)
            shown = clip(visible(name), room, keep="middle")
            rows.append([(f"{title:<8}", "dim"), (shown, "io"), (f"  {kind}", "type")])
        if len(names) > most:
            rows.append([(f"{'':<8}and {fmt.plural(len(names) - most, f'more {title}')}", "dim")])
        if not names:
            rows.append([(f"no {title}s", "dim")])
        return rows

    def on_path_input_chosen(self, event: PathInput.Chosen) -> None:
        """Give the path."""
        event.stop()
        self.dismiss(event.path)


_WAIT_S = 0.15
_LINES = 12

Look: TypeAlias = "Callable[[str], Awaitable[tuple[str, Sequence[str]]]]"


class RewriteDialog(Dialog[str]):
    """Gives the text when Enter is pressed.

    Args:
        value: The text to begin with.
        look: Returns a line of how many there are, and lines of what would change, for a text,
            which may be empty; not fit for a terminal. May raise a :class:`DldError` that says
            what is wrong with it. It is stopped where another text is typed meanwhile.
        completion: How words go on.
        rules: Returns the rules that have names.
    """

    TITLE_TEXT = "Find and rewrite"
    KEYS = "Enter mark, or rewrite with =>  F2 rules  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "apply", show=False),
        Binding("f2", "rules", "rules", show=False, priority=True),
    ]

    def __init__(
        self, value: str, look: Look, completion: Completion, rules: Callable[[], Sequence[Rule]]
    ) -> None:
        super().__init__()
        self.rules = rules
        self.completion = completion
        self.value = value
        self.look = look

    def body(self) -> Iterable[Widget]:
        example = "Mul(x, Sigmoid(x))   or   Identity(x) => x   or   gelu"
        yield query_field(self.value, example, self.completion)
        yield Rows([[] for _ in range(_LINES + 1)], id="rewrite-answer")

    def on_mount(self) -> None:
        """Show the matches of the initial text."""
        self.query_one(Input).focus()
        self.changed()

    @on(Input.Changed)
    def changed(self) -> None:
        """Look again when nothing was typed for a moment."""
        self.tasks.start(self._look(self.query_one(Input).value), "count", replace=True)

    async def _look(self, text: str) -> None:
        await asyncio.sleep(_WAIT_S)
        rows: list[list[Piece]]
        try:
            head, lines = await self.look(text)
        except DldError as error:
            mark = glyphs.current().error
            rows = [[(f"{mark} {clip(visible(str(error)), self.text_width - 2)}", "bad")]]
        else:
            rows = [[(visible(head), "strong")]]
            for line in lines[:_LINES]:
                style = {"-": "bad", "+": "good"}.get(line[:1], "")
                rows.append([(clip(visible(line), self.text_width), style)])
        rows += [[] for _ in range(_LINES + 1 - len(rows))]
        self.query_one("#rewrite-answer", Rows).set_rows(rows)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Give the text."""
        event.stop()
        self.action_apply()

    @task()
    async def action_rules(self) -> None:
        """Choose a rule from a list of what each does."""
        items = [
            PickItem(
                rule.name,
                [(f"{rule.name:<24}", "strong"), (visible(f" {rule.about}"), "dim")],
                f"{rule.name} {rule.about}",
            )
            for rule in self.rules()
        ]
        pick = PickDialog("Rules", lambda: items, placeholder="name or what it does")
        if name := await self.tasks.ask(pick):
            field = self.query_one(Input)
            field.value = str(name)
            field.cursor_position = len(field.value)

    def action_apply(self) -> None:
        text = self.query_one(Input).value.strip()
        if text:
            self.dismiss(text)
