"""Dialogs that add and connect nodes: which operator, what feeds it, which value or node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.errors import DldError
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_listing import (
    Grouping,
    OperatorPalette,
    Origin,
    PaletteOperator,
    domain_title,
)
from dld_tui.core.model.document.operator_matching import mismatch
from dld_tui.core.model.document.opset_imports import versions_by_domain
from dld_tui.core.model.document.scope import Definition, Scope, visible_values
from dld_tui.core.model.edits.wiring import NodeWiring, Setting, parse_initializer
from dld_tui.core.model.operators.attribute_words import (
    attribute_words,
    integer_word,
    integer_words,
)
from dld_tui.core.model.operators.schema import AttributeSchema, Formal
from dld_tui.core.model.tensors.literals import LISTS, format_literal
from dld_tui.core.model.tensors.value_types import ValueType, shown, types_text
from dld_tui.core.text import cell_width, clip, fit, quoted, visible
from dld_tui.core.text.fuzzy import FuzzyIndex
from dld_tui.widgets.dialogs.dialogs import Dialog, DialogBox, PromptDialog
from dld_tui.widgets.dialogs.operator_browser import OperatorBrowser
from dld_tui.widgets.dialogs.search import SearchDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, operator_style
from dld_tui.widgets.parameters.edit_bar import edit_value
from dld_tui.widgets.parameters.terminals import Terminal, terminals_of
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import host

_LABEL = 24
_ADD = "add"


class WiringDialog(Dialog[NodeWiring]):
    """Gives the wiring when everything that must be chosen has been, or None."""

    KEYS = "Enter change  a new  d clear  F5 add  Esc close"
    WIDTH = 112
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "add", show=False),
        Binding("delete,d", "clear", show=False),
        Binding("a", "new", show=False),
    ]

    def __init__(self, wiring: NodeWiring) -> None:
        super().__init__()
        self.wiring = wiring
        self.TITLE_TEXT = f"Add {visible(wiring.operator.name)}"

    def body(self) -> Iterable[Widget]:
        about = clip(self._about(), self.text_width)
        yield Rows([[(about, "dim")], []])
        yield LineView()

    def _about(self) -> str:
        item = self.wiring.operator
        parts = [domain_title(item.domain)]
        if self.wiring.opset is not None:
            parts[0] = f"imports {parts[0]} {self.wiring.opset}"
        return visible(" · ".join(part for part in (*parts, item.summary) if part))

    def on_mount(self) -> None:
        """Begin at what is missing, or at the row that adds the node."""
        self.query_one(DialogBox).styles.width = self.text_width + 4
        self.show_rows()
        self._go_to_missing()
        # A function may do without some inputs, but most want all of them.
        if self.wiring.operator.origin is Origin.FUNCTION and "" in self.wiring.inputs:
            self.view.cursor = 1 + self.wiring.inputs.index("")

    @property
    def view(self) -> LineView:
        """The rows."""
        return self.query_one(LineView)

    def show_rows(self) -> None:
        """Draw the choices as they are."""
        rows: list[list[Piece]] = [self._add_row()]
        keys: list[tuple[str, int | str]] = [(_ADD, 0)]
        for at in range(self.wiring.slots):
            rows.append(self._input_row(at))
            keys.append(("input", at))
        if self.wiring.source in self.wiring.inputs and self.wiring.users:
            rows.append(self._users_row())
            keys.append(("users", 0))
        for item in self.wiring.settable:
            rows.append(self._attribute_row(item))
            keys.append(("attribute", item.name))
        for name in self.wiring.bodies:
            rows.append(
                [
                    (fit(visible(name), _LABEL - 1) + " ", ""),
                    (hint("a new subgraph; {go.body} opens it"), "dim"),
                ]
            )
            keys.append(("body", name))
        least, most = self.wiring.output_limits
        if most > least:
            text = f"{self.wiring.outputs}"
            rows.append([(fit("outputs", _LABEL), ""), (text, ""), (f"  {least} to {most}", "dim")])
            keys.append(("outputs", 0))
        name = visible(self.wiring.name)
        rows.append([(fit("name", _LABEL), ""), (name or "generated", "" if name else "faint")])
        keys.append(("name", 0))
        self.view.styles.height = min(len(rows), max(6, self.app.size.height - 9))
        self.view.set_lines(ListSource(rows, keys))

    def _add_row(self) -> list[Piece]:
        missing = self.wiring.missing()
        if not missing:
            return [(f"{glyphs.current().good} Add the node", "good strong")]
        text = visible(", ".join(missing))
        return [(clip(f"Still to choose: {text}", self.text_width - 2), "warn")]

    def _input_row(self, at: int) -> list[Piece]:
        formal, value = self.wiring.formal(at), self.wiring.value(at)
        label = fit(_label(formal, at), _LABEL - 1) + " "
        required = self.wiring.is_required(at)
        if not value:
            need = "required" if required else "omitted"
            wanted = f"  {_types_of(formal)}"
            return [(label, "strong" if required else ""), (need, "warn" if required else "faint"),
                    (clip(wanted, self.text_width - _LABEL - 12), "dim")]  # fmt: skip
        known = self.wiring.value_type(value)
        kind = visible(known.short) if known is not None else fmt.UNKNOWN
        room = self.text_width - _LABEL - 4
        name = clip(visible(value), room // 2, keep="middle")
        pieces = [(label, "strong" if required else ""), (f"{name}  ", "io")]
        why_not = self.wiring.why_not(at, value)
        if why_not:
            return [*pieces, (f"{glyphs.current().error} {clip(why_not, room // 2)}", "bad")]
        created = self.wiring.created.get(value)
        return [
            *pieces,
            (kind, "type"),
            (f"  new: {created.fill['kind']}" if created else "", "good"),
        ]

    def _users_row(self) -> list[Piece]:
        box = glyphs.current().on if self.wiring.inserts else glyphs.current().off
        users = fmt.plural(self.wiring.users, "user")
        text = f" its output goes to {users} of {quoted(self.wiring.source)}"
        return [(fit("insert on the link", _LABEL), ""), (box, "accent"), (text, "dim")]

    def _attribute_row(self, item: AttributeSchema) -> list[Piece]:
        label = (fit(visible(item.name), _LABEL - 1) + " ", "strong" if item.required else "")
        setting = self.wiring.attributes.get(item.name)
        if setting is not None:
            return [label, (clip(visible(setting.text), self.text_width - _LABEL - 4), "number")]
        if item.required:
            return [label, ("required", "warn"), (f"  {item.kind}", "dim")]
        default = _default_text(item)
        return [label, (default or "not set", "faint"), (f"  {item.kind}", "dim")]

    def _go_to_missing(self) -> None:
        lines = self.view.lines
        for at in range(1, len(lines)):
            kind, which = self._key(at)
            if kind == "input" and isinstance(which, int):
                wanting = self.wiring.is_required(which) and not self.wiring.value(which)
            elif kind == "attribute":
                item = self.wiring.operator.schema.attribute(str(which))
                wanting = item is not None and item.required and which not in self.wiring.attributes
            else:
                wanting = False
            if wanting:
                self.view.cursor = at
                return
        self.view.cursor = 0

    def _key(self, at: int) -> tuple[str, int | str]:
        key = self.view.lines.key(at)
        assert isinstance(key, tuple)
        return key

    def changed(self) -> None:
        """Draw the rows again, and go on to what is missing."""
        self.show_rows()
        if self.wiring.missing():
            self._go_to_missing()
        else:
            self.view.cursor = 0

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Change the row, or add the node."""
        event.stop()
        kind, which = self._key(event.index)
        if kind == _ADD:
            self.action_add()
        elif kind == "input" and isinstance(which, int):
            self._choose_input(which)
        elif kind == "attribute":
            self._ask_attribute(str(which))
        elif kind == "users":
            self.wiring.inserts = not self.wiring.inserts
            self.show_rows()
        elif kind == "outputs":
            self._ask_outputs()
        elif kind == "name":
            self._ask_name()

    def action_add(self) -> None:
        if not self.wiring.missing():
            self.dismiss(self.wiring)
            return
        self._go_to_missing()

    def action_clear(self) -> None:
        kind, which = self._key(self.view.cursor)
        if kind == "input" and isinstance(which, int):
            self.wiring.connect(which, "")
        elif kind == "attribute":
            self.wiring.attributes.pop(str(which), None)
        elif kind == "name":
            self.wiring.name = ""
        self.show_rows()

    def action_new(self) -> None:
        kind, at = self._key(self.view.cursor)
        if kind != "input" or not isinstance(at, int) or self.wiring.scope.is_function:
            self.notify("Go to an input; functions have no initializers", timeout=3)
            return

        def read(text: str) -> Callable[[], None]:
            initializer = parse_initializer(text)
            return lambda: self.wiring.create(at, initializer)

        label = _label(self.wiring.formal(at), at)
        message = "Type, then zeros, normal, uniform or numbers"
        text = self.wiring.likely_initializer(at)
        self._ask(f"New initializer for {label}", message, text, read)

    def _choose_input(self, at: int) -> None:
        def chosen(value: str | None) -> None:
            if value is not None:
                self.wiring.connect(at, value)
                self.changed()

        picker = ValuePicker(
            self.wiring.scope,
            title=f"Input {_label(self.wiring.formal(at), at)}",
            wanted=lambda known: self.wiring.why_not_type(at, known),
            first=[self.wiring.source] if self.wiring.source else [],
            empty_label="" if self.wiring.is_required(at) else "leave it out",
        )
        self.app.push_screen(picker, chosen)

    def _ask_attribute(self, name: str) -> None:
        schema = self.wiring.operator.schema
        item = schema.attribute(name)
        if item is None:
            return

        def read(text: str) -> Callable[[], None]:
            value = edit_value(text, item.kind, name=name, schema=schema)
            setting = Setting(item.kind, value, text)
            return lambda: self.wiring.attributes.update({name: setting})

        present = self.wiring.attributes.get(name)
        text = present.text if present is not None else _default_text(item)
        if present is None and isinstance(item.default, int):
            text = integer_word(name, item.default, schema) or text
        title = f"{visible(name)} ({item.kind})"
        operator = self.wiring.operator
        version = versions_by_domain(self.wiring.scope).get(operator.domain)
        words = attribute_words(operator.name, operator.domain, name, version)
        choices = {
            "string": [format_literal(word.encode(), "string") for word in words],
            "int": tuple(integer_words(name, schema)),
        }
        self._ask(
            title,
            item.description,
            text,
            read,
            choices=choices.get(item.kind, ()),
            list_kind=item.kind if item.kind in LISTS else "",
        )

    def _ask_outputs(self) -> None:
        least, most = self.wiring.output_limits

        def read(text: str) -> Callable[[], None]:
            if not text.strip().isdecimal() or not least <= int(text) <= most:
                raise DldError(f"a number from {least} to {most}")
            return lambda: setattr(self.wiring, "outputs", int(text))

        self._ask("Outputs", f"How many, {least} to {most}", str(self.wiring.outputs), read)

    def _ask_name(self) -> None:
        scope = self.wiring.scope

        def read(text: str) -> Callable[[], None]:
            if text and scope.nodes_named(text):
                raise DldError("another node already has this name")
            return lambda: setattr(self.wiring, "name", text)

        self._ask("Name of the node", "", self.wiring.name, read)

    def _ask(
        self,
        title: str,
        message: str,
        value: str,
        read: Callable[[str], Callable[[], None]],
        choices: Sequence[str] = (),
        list_kind: str = "",
    ) -> None:
        """Ask for a text; `read` returns what takes it over, or raises what is wrong with it."""

        def check(text: str) -> str | None:
            try:
                read(text)
            except DldError as error:
                return visible(error.message)
            return None

        def answered(text: str | None) -> None:
            if text is not None:
                read(text)()
                self.changed()

        first = message.strip().partition("\n")[0]
        dialog = PromptDialog(
            title, first, value, check=check, choices=choices, list_kind=list_kind
        )
        self.app.push_screen(dialog, answered)


def _label(formal: Formal | None, at: int) -> str:
    if formal is None:
        return f"input {at}"
    name = f"{formal.name} {at}" if formal.option == "variadic" else formal.name
    return visible(name)


def _types_of(formal: Formal | None) -> str:
    if formal is None or not formal.types:
        return ""
    if len(formal.types) == 1:
        return shown(formal.types[0])
    return types_text(formal.types, most=4)


def _default_text(item: AttributeSchema) -> str:
    return "" if item.default is None else visible(format_literal(item.default, item.kind))


_ADD_WIDTH = 150
_STATE = ("layouts", "operators")


class AddNode(Dialog[PaletteOperator]):
    """Gives the operator to add, or None."""

    TITLE_TEXT = "Add an operator"
    KEYS = "Enter add  Tab group  Shift ↑↓ read  Esc close"

    def __init__(self, palette: OperatorPalette, title: str = "") -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title) or self.TITLE_TEXT
        self.palette = palette

    def body(self) -> Iterable[Widget]:
        browser = OperatorBrowser(self.palette, remembered_grouping(self))
        browser.styles.height = max(8, int(self.app.size.height * 0.9) - 4)
        yield browser

    def on_mount(self) -> None:
        """Take the room there is."""
        self.query_one(DialogBox).styles.width = min(_ADD_WIDTH, self.app.size.width - 2)

    def on_operator_browser_chosen(self, event: OperatorBrowser.Chosen) -> None:
        """Give the operator, or show why the model cannot use it."""
        event.stop()
        item = event.operator
        if item.too_new is not None:
            present = self.palette.imports.get(item.domain)
            self.notify(
                f"{visible(item.name)} needs opset {item.too_new}; {present} is imported",
                severity="warning",
                timeout=4,
                markup=False,
            )
        else:
            self.dismiss(item)

    def on_operator_browser_grouped(self, event: OperatorBrowser.Grouped) -> None:
        """Keep how operators are listed."""
        event.stop()
        remember_grouping(self, event.grouping)


def remembered_grouping(node: Widget) -> Grouping:
    """Return how operators were listed the last time."""
    name = host(node).state.get(*_STATE).get("grouping")
    return next((item for item in Grouping if item.value == name), Grouping.CATEGORY)


def remember_grouping(node: Widget, grouping: Grouping) -> None:
    """Keep how operators are listed for the next time."""
    host(node).state.put(*_STATE, {"grouping": grouping.value})


Wanted = Callable[["ValueType | None"], "str | None"]
"""Returns why a value of a type does not fit, or None when it does."""

_AT_ONCE = 1000
"""Values that are there when the dialog opens."""
_SORTED_BY_FIT = 100
"""Rows at the top among which those that fit stand first."""
_LEAVE_EMPTY: tuple[str, Definition | None] = ("", None)


class ValuePicker(SearchDialog[str]):
    """Gives the name of the chosen value, ``""`` for the row `empty_label`, or None.

    Values are collected in slices between key presses, so that a model with 50,000 of them opens
    the dialog at once.

    Args:
        scope: Where the value is to be used; the values of the scopes around it are offered too.
        title: What is asked: untrusted text.
        wanted: Returns why a type does not fit, None when it does. Such values are greyed and come
            last, but can be chosen.
        exclude: Names that are not offered.
        first: Names that stand first until something is typed, such as those near the cursor.
        empty_label: A first row that gives ``""``, e.g. ``leave empty``.
    """

    KEYS = "Enter choose  Esc close"
    PLACEHOLDER = "name, type or producer"
    EMPTY = "no value fits"
    WIDTH = 120

    def __init__(
        self,
        scope: Scope,
        *,
        title: str,
        wanted: Wanted | None = None,
        exclude: Collection[str] = (),
        first: Sequence[str] = (),
        empty_label: str = "",
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self.scope = scope
        self.wanted = wanted
        self.empty_label = empty_label
        self.complete = False
        """Whether all values have been collected."""
        self._exclude = exclude
        self._values: list[tuple[str, Definition | None]] = []
        self._index = FuzzyIndex()
        self._waiting = self._offered(first)
        if empty_label:
            self._add([_LEAVE_EMPTY])
        self.collect(_AT_ONCE)

    def _offered(self, first: Sequence[str]) -> Iterator[tuple[str, Definition | None]]:
        leading = {name: self.scope.resolve(name) for name in first if name not in self._exclude}
        yield from ((name, operator) for name, operator in leading.items() if operator is not None)
        for name, definition in visible_values(self.scope):
            if name not in self._exclude and leading.get(name) is None:
                yield name, definition

    def collect(self, most: int) -> None:
        """Take up to `most` more in."""
        values = list(islice(self._waiting, most))
        self.complete = len(values) < most
        self._add(values)

    def _add(self, values: Sequence[tuple[str, Definition | None]]) -> None:
        self._values += values
        self._index.extend(self._searched(name, about) for name, about in values)

    def _searched(self, name: str, definition: Definition | None) -> str:
        if definition is None:
            return self.empty_label
        known = definition.scope.value_type(name)
        dtype = known.dtype if known is not None and known.dtype else ""
        return f"{name} {_maker(definition)} {dtype}"

    def found(self, text: str) -> ValueRows:
        """Return the values that fit a text, the best first."""
        order = self._index.search(text)
        if self.wanted is not None:
            top = list(order[:_SORTED_BY_FIT])
            top.sort(key=lambda at: self.why_not(at) is not None)
            order = [*top, *order[_SORTED_BY_FIT:]]
        return ValueRows(self, order)

    def value(self, at: int) -> tuple[str, Definition | None]:
        """Return the name and the definition of a value, by its place among those collected."""
        return self._values[at]

    def why_not(self, at: int) -> str | None:
        """Return why a value does not fit, or None."""
        name, definition = self._values[at]
        if definition is None or self.wanted is None:
            return None
        return self.wanted(definition.scope.value_type(name))

    def choose(self, index: int) -> None:
        """Give the name of the value."""
        self.dismiss(self.value(self.rows.order[index])[0])

    @property
    def rows(self) -> ValueRows:
        """What is listed."""
        lines = self.view.lines
        assert isinstance(lines, ValueRows)
        return lines


class ValueRows:
    """The rows of a picker, made when they are seen."""

    def __init__(self, picker: ValuePicker, order: Sequence[int]) -> None:
        self.picker = picker
        self.order = order

    def __len__(self) -> int:
        return len(self.order)

    def key(self, index: int) -> Hashable:
        return self.picker.value(self.order[index])[0]

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.line(index, 120))

    def line(self, index: int, width: int) -> list[Piece]:
        at = self.order[index]
        name, definition = self.picker.value(at)
        if definition is None:
            return [(self.picker.empty_label, "accent")]
        known = definition.scope.value_type(name)
        kind = visible(known.short) if known is not None else fmt.UNKNOWN
        why_not = self.picker.why_not(at)
        kind_cells = min(28, max(14, width // 4))
        tail_cells = min(34, max(14, width // 4))
        room = max(8, width - kind_cells - tail_cells - 2)
        place = fit(visible(name), room, keep="middle")
        shape = f" {fit(kind, kind_cells)} "
        if why_not:
            mark = glyphs.current().error
            return [(place + shape, "faint"), (fit(f"{mark} {why_not}", tail_cells), "faint")]
        tail = fit(visible(_maker(definition)), tail_cells)
        return [(place, ""), (shape, "type"), (tail, _style(definition))]


def _maker(definition: Definition) -> str:
    return definition.node.op_type if definition.node is not None else definition.kind


def _style(definition: Definition) -> str:
    node = definition.node
    if node is not None:
        return operator_style(node.op_type, node.domain)
    return "io" if definition.kind == "input" else "op-data"


_TERMINALS_AT_ONCE = 1000
"""Nodes that are there when the dialog opens."""
_LABEL_CELLS = 20


class TerminalPicker(SearchDialog[Terminal]):
    """Gives one of the terminals of a node, or None.

    Args:
        node: The node.
        title: What is asked: untrusted text.
        side: ``input`` or ``output`` for one side only.
        value_type: Inputs that do not take a value of this type are greyed; they can be chosen.
    """

    PLACEHOLDER = "name of an input or output"
    EMPTY = "no such input or output"
    WIDTH = 96

    def __init__(
        self,
        node: Node,
        *,
        title: str,
        side: str = "",
        value_type: ValueType | None = None,
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self.terminals = [t for t in terminals_of(node) if side in ("", t.side)]
        self._value_type = value_type
        self._shown: Sequence[Terminal] = self.terminals

    def found(self, text: str) -> ListSource:
        """Return the terminals whose name or value holds every word."""
        words = text.lower().split()
        self._shown = [
            terminal
            for terminal in self.terminals
            if all(word in f"{terminal.label} {visible(terminal.value)}".lower() for word in words)
        ]
        if self._value_type is not None:
            self._shown = sorted(self._shown, key=lambda item: self.why_not(item) is not None)
        width = self.text_width - 2
        return ListSource([self._row(terminal, width) for terminal in self._shown])

    def why_not(self, terminal: Terminal) -> str | None:
        """Return why the value does not fit a terminal, or None."""
        if terminal.node is None or terminal.side != "input":
            return None
        return mismatch(terminal.node, terminal.index, self._value_type)

    def _row(self, terminal: Terminal, width: int) -> list[Piece]:
        shown = glyphs.current()
        mark = shown.left if terminal.side == "input" else shown.right
        label = fit(terminal.label, _LABEL_CELLS)
        why_not = self.why_not(terminal)
        room = width - cell_width(label) - 3
        known = terminal.scope.value_type(terminal.value) if terminal.value else None
        kind = visible(known.short) if known is not None else ""
        if why_not:
            return [(f"{label} {mark} ", "faint"), (fit(f"{shown.error} {why_not}", room), "faint")]
        value = visible(terminal.value) or f"{shown.missing} nothing connected"
        style = "" if terminal.value else "faint"
        cells = max(0, room - cell_width(kind) - 1)
        return [
            (f"{label} ", "key"),
            (f"{mark} ", "dim"),
            (fit(value, cells, keep="middle"), style),
            (f" {kind}", "type"),
        ]

    def choose(self, index: int) -> None:
        """Give the terminal."""
        self.dismiss(self._shown[index])


class NodePicker(SearchDialog[Node]):
    """Gives a node of a scope, or of a subgraph in it, or None.

    Nodes are collected in slices between key presses, so that a model with 50,000 of them opens the
    dialog at once.

    Args:
        scope: Where to look.
        title: What is asked: untrusted text.
        first: Nodes that stand first until something is typed.
        exclude: A node that is not offered.
    """

    PLACEHOLDER = "name or operator of a node"
    EMPTY = "no such node"
    WIDTH = 96

    def __init__(
        self,
        scope: Scope,
        *,
        title: str,
        first: Sequence[Node] = (),
        exclude: Node | None = None,
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self.scope = scope
        self.nodes: list[Node] = []
        self.complete = False
        """Whether all nodes have been collected."""
        self._index = FuzzyIndex()
        self._waiting = _offered(scope, first, exclude)
        self.collect(_TERMINALS_AT_ONCE)

    def collect(self, most: int) -> None:
        """Take up to `most` more in."""
        nodes = list(islice(self._waiting, most))
        self.complete = len(nodes) < most
        self.nodes += nodes
        self._index.extend(f"{node.name or next(iter(node.outputs), '')} {node.op_type}"
                           for node in nodes)  # fmt: skip

    def found(self, text: str) -> NodeRows:
        """Return the nodes that fit a text, the best first."""
        return NodeRows(
            self.scope, [self.nodes[at] for at in self._index.search(text)[:_TERMINALS_AT_ONCE]]
        )

    def choose(self, index: int) -> None:
        """Give the node."""
        lines = self.view.lines
        assert isinstance(lines, NodeRows)
        self.dismiss(lines.nodes[index])


def _offered(scope: Scope, first: Sequence[Node], exclude: Node | None) -> Iterator[Node]:
    leading = dict.fromkeys(node for node in first if node is not exclude)
    yield from leading
    for home in scope.walk():
        for node in home.nodes:
            if node not in leading and node is not exclude:
                yield node


class NodeRows:
    """Rows of nodes, made when they are seen."""

    def __init__(self, scope: Scope, nodes: Sequence[Node]) -> None:
        self.scope = scope
        self.nodes = nodes

    def __len__(self) -> int:
        return len(self.nodes)

    def key(self, index: int) -> Hashable:
        return self.nodes[index]

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.line(index, 120))

    def line(self, index: int, width: int) -> list[Piece]:
        node = self.nodes[index]
        kind = fit(visible(node.op_type), min(18, width // 3))
        place = "" if node.scope is self.scope else f" in {visible(node.scope.title)}"
        label = visible(node.name or next(filter(None, node.outputs), ""))
        room = max(4, width - cell_width(kind) - 1 - cell_width(place))
        style = operator_style(node.op_type, node.domain)
        return [(kind, style), (" " + fit(label, room, keep="middle"), ""), (place, "faint")]
