"""The advanced filter and its dialog: conditions on operators, attributes, names and types.

::

    kernel_shape = [3, 3]     group > 1          mode != 'linear'      strides contains 2
    name contains attn        domain = com.microsoft                   inputs >= 3
    has dilations             not has bias       dtype = float16       output contains logits
    precision = fp16          (the TensorRT precision that a layer is set to)

Conditions are joined by ``and``. An attribute that is not set counts with its operator's default,
except for ``has``. ``@name`` is the attribute called ``name`` and not the node's name.
"""

from __future__ import annotations

import asyncio
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.model.rewrite.query import Completion
from dld_tui.core.model.tensors.literals import (
    LiteralError,
    infer_kind,
    parse_literal,
    round_to_float32,
)
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.forms.text_field import query_field
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Piece, Rows, operator_style
from dld_tui.widgets.parameters.descriptions import default_of
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import ScopeOwner
    from dld_tui.core.model.document.transactions import DocumentChange
    from dld_tui.core.model.rewrite.matcher import LiveHits
    from dld_tui.core.model.rewrite.pattern import Pattern
    from dld_tui.core.model.rewrite.query import Query


DefaultOf: TypeAlias = "Callable[[Node, str], Any]"
"""Returns the default of a node's attribute as a plain value, or None when it has none."""

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_CONDITION = re.compile(
    r"(?P<subject>@?[\w.:/-]+)\s*(?P<operator>==|!=|>=|<=|=|>|<|\bcontains\b)\s*(?P<value>.+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_HAS = re.compile(r"(?P<negated>not\s+)?has\s+@?(?P<subject>[\w.:/-]+)\Z", re.IGNORECASE)
_TOKEN = re.compile(
    r"'(?:\\.|[^\\'])*'|\"(?:\\.|[^\\\"])*\"|\[|\]|\band\b|.", re.IGNORECASE | re.DOTALL
)


_ONLY_IN_QUERIES = re.compile(r"\b(?:where|or|is)\b|\b(?:in|out)\s*[.\[]|[%(]", re.IGNORECASE)
"""What a text has that no condition of this grammar has."""

_IS_PATTERN = re.compile(r"\s*(?:\w+\s*:\s*)?&?(?:[_A-Z]|[\w.]+\.[A-Z])(?:(?!\bwhere\b).)*[({]")
"""How a pattern begins: with an operator that has inputs, or its label."""


@dataclass(frozen=True)
class Condition:
    """One condition on a node."""

    text: str
    """As it was typed."""
    subject: str
    operator: str
    """``=``, ``!=``, ``>``, ``>=``, ``<``, ``<=``, ``contains``, ``has`` or ``not has``."""
    value: Any = None

    @property
    def needs_types(self) -> bool:
        """Whether it asks for types, of which shape inference may tell later."""
        return self.subject.lower() in ("dtype", "shape")

    def holds(self, node: Node, default_of: DefaultOf | None = None) -> bool:
        """Return whether a node meets it."""
        if self.operator in ("has", "not has"):
            return (node.attribute(self.subject) is not None) is (self.operator == "has")
        candidates = _values(node, self.subject, default_of)
        if self.operator == "!=":
            return not any(_compares("=", candidate, self.value) for candidate in candidates)
        return any(_compares(self.operator, found, self.value) for found in candidates)


@dataclass(frozen=True)
class QueryCondition:
    """A query of ``dld find`` as a condition."""

    text: str
    """As it was typed."""
    query: Query

    @property
    def needs_types(self) -> bool:
        """Whether it asks for types."""
        return self.query.needs_types

    def holds(self, node: Node, default_of: DefaultOf | None = None) -> bool:
        """Return whether a node meets it; a field that there is not is met by none."""
        try:
            return self.query(node)
        except UsageError:
            return False


@dataclass(eq=False)
class PatternCondition:
    """A pattern as a condition: a node meets it that is part of one of its hits."""

    text: str
    """As it was typed."""
    pattern: Pattern
    _live: LiveHits | None = None

    @property
    def needs_types(self) -> bool:
        """Whether it asks for types."""
        return self.pattern.needs_types

    def prepare(self, document: ScopeOwner) -> Iterator[None]:
        """Search the document; yields between steps."""
        from dld_tui.core.model.rewrite.matcher import LiveHits

        live = LiveHits(document, self.pattern)
        yield from live.search()
        self._live = live

    def follow(self, change: DocumentChange) -> set[Node]:
        """Take in an edit; return nodes that may meet it now, or did before, and others."""
        return self._live.update(change) if self._live is not None else set()

    def holds(self, node: Node, default_of: DefaultOf | None = None) -> bool:
        """Return whether a node meets it."""
        if self._live is None or self._live.document is not node.scope.document:
            for _ in self.prepare(node.scope.document):
                pass
        return self._live is not None and node in self._live


@dataclass(frozen=True)
class NodeFilter:
    """What a node must be to be shown."""

    types: frozenset[tuple[str, str]] = frozenset()
    """(domain, operator type) of those to show; all when empty."""
    conditions: tuple[AnyCondition, ...] = ()
    default_of: DefaultOf | None = None

    @property
    def active(self) -> int:
        """The number of filters that are on: one for the types, one for each condition."""
        return bool(self.types) + len(self.conditions)

    @property
    def text(self) -> str:
        return " and ".join(condition.text for condition in self.conditions)

    @property
    def needs_types(self) -> bool:
        """Whether it has to be asked again where other types are known."""
        return any(condition.needs_types for condition in self.conditions)

    def prepare(self, document: ScopeOwner) -> Iterator[None]:
        """Work out what patterns find, before nodes are asked about; yields between steps."""
        for condition in self.conditions:
            if isinstance(condition, PatternCondition):
                yield from condition.prepare(document)

    def follow(self, change: DocumentChange) -> set[Node]:
        """Take in an edit; return nodes, apart from those that it changes, to ask about again."""
        reached: set[Node] = set()
        for condition in self.conditions:
            if isinstance(condition, PatternCondition):
                reached |= condition.follow(change)
        return reached

    def __call__(self, node: Node) -> bool:
        """Return whether a node meets every filter."""
        if self.types and (node.domain, node.op_type) not in self.types:
            return False
        return all(condition.holds(node, self.default_of) for condition in self.conditions)


AnyCondition: TypeAlias = "Condition | QueryCondition | PatternCondition"


def parse_conditions(text: str) -> tuple[AnyCondition, ...]:
    """Return the conditions of a text; empty for an empty one.

    Raises:
        UsageError: A condition is malformed; says which.
    """
    parts = [part.strip() for part in _split(text)]
    if parts == [""]:
        return ()
    if _ONLY_IN_QUERIES.search(text) is not None:
        conditions = _query(text) or _pattern(text)
        if conditions is not None:
            return (conditions,)
    return tuple(_parse(part) for part in parts)


def _query(text: str) -> QueryCondition | None:
    """Return what a query of ``dld find`` asks for, with or without its operator."""
    from dld_tui.core.model.rewrite.query import parse_query

    for whole in (text, f"* where {text}"):
        try:
            query = parse_query(whole)
        except UsageError:
            continue
        if query.condition is not None:
            return QueryCondition(text, query)
    return None


def _pattern(text: str) -> PatternCondition | None:
    """Return a pattern; None where a text is none and does not begin like one."""
    from dld_tui.core.model.rewrite.pattern import parse_pattern

    try:
        return PatternCondition(text, parse_pattern(text))
    except UsageError:
        if _IS_PATTERN.match(text) is not None:
            raise
        return None


def _split(text: str) -> Iterator[str]:
    """Cut at each ``and`` that is in no string and in no brackets."""
    part, depth = "", 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        depth += (token == "[") - (token == "]")
        if token.lower() == "and" and depth <= 0:
            yield part
            part = ""
        else:
            part += token
    yield part


def _parse(text: str) -> Condition:
    has = _HAS.match(text)
    if has is not None:
        return Condition(text, has["subject"], "not has" if has["negated"] else "has")
    match = _CONDITION.match(text)
    if match is None:
        raise UsageError(
            f"{clip(visible(text), 40)!r} is no condition" if text else "a condition is missing",
            hint="Write for example: group > 1 and has dilations",
        )
    sign = match["operator"].lower()
    return Condition(text, match["subject"], sign, _value(match["value"].strip(), sign))


def _value(text: str, sign: str) -> Any:
    """Return what a node's value is compared with; a word without quotes is a string."""
    quoted = text[:1] in ("'", '"')
    value: Any
    try:
        value = parse_literal(text, infer_kind(text))
    except LiteralError:
        if quoted or text.startswith("["):
            raise
        value = text
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, list):
        value = [_plain(item) for item in value]
    if sign not in ("=", "==", "!=", "contains") and not isinstance(value, int | float):
        raise UsageError(f"{sign} needs a number, not {clip(visible(text), 40)!r}")
    return value


def _values(node: Node, subject: str, default_of: DefaultOf | None) -> tuple[Any, ...]:
    """Return what a subject stands for at a node; several for names of inputs and outputs."""
    special = _SPECIAL.get(subject.lower())
    if special is not None:
        return special(node)
    name = subject.removeprefix("@")
    attribute = node.attribute(name)
    if attribute is not None:
        return (_plain(attribute.value),)
    default = default_of(node, name) if default_of is not None else None
    return () if default is None else (_plain(default),)


def _output_type(node: Node) -> Any:
    first = next(filter(None, node.outputs), None)
    return node.scope.value_type(first) if first is not None else None


def _dtype(node: Node) -> tuple[Any, ...]:
    output_type = _output_type(node)
    return (output_type.dtype,) if output_type is not None and output_type.dtype else ()


def _shape(node: Node) -> tuple[Any, ...]:
    output_type = _output_type(node)
    return (
        (list(output_type.dims),)
        if output_type is not None and output_type.dims is not None
        else ()
    )


_SPECIAL: dict[str, Callable[[Node], tuple[Any, ...]]] = {
    "name": lambda node: (node.name,),
    "type": lambda node: (node.op_type,),
    "domain": lambda node: (node.domain or "ai.onnx",),
    "input": lambda node: node.inputs,
    "output": lambda node: node.outputs,
    "inputs": lambda node: (len(node.inputs),),
    "outputs": lambda node: (len(node.outputs),),
    "dtype": _dtype,
    "precision": lambda node: (precision_of(node),),
    "shape": _shape,
}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _compares(sign: str, value: Any, wanted: Any) -> bool:
    if sign == "contains":
        return _contains(value, wanted)
    compare = _OPERATORS[sign]
    if isinstance(value, list) and not isinstance(wanted, list):
        # strides > 1: any of them; strides = 1: all of them.
        results = [_compares(sign, item, wanted) for item in value]
        return bool(results) and (all(results) if compare is operator.eq else any(results))
    if compare is operator.eq:
        return _equal(value, wanted)
    return _is_number(value) and compare(value, wanted)


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_equal, value, wanted))
    if isinstance(value, str) or isinstance(wanted, str):
        return str(value) == str(wanted)
    if not (_is_number(value) and _is_number(wanted)):
        return False
    return bool(value == wanted or _as_float32(wanted) == value)


def _as_float32(value: float) -> float | None:
    try:
        return round_to_float32(value)
    except OverflowError:
        return None


def _contains(values: Any, wanted: Any) -> bool:
    if isinstance(values, list):
        wanted_items = wanted if isinstance(wanted, list) else [wanted]
        return all(any(_equal(item, each) for item in values) for each in wanted_items)
    return isinstance(values, str) and str(wanted).lower() in values.lower()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


_SLICE_S = 0.015
_EXAMPLES = "group > 1 and name contains attn   or   Mul(x, Sigmoid(x))"


class TypeList(LineView):
    """Operator types with counts; marking one chooses it."""

    HELP = "Space selects an operator type, Tab goes to the conditions, Enter filters."

    def __init__(
        self, counts: Sequence[tuple[tuple[str, str], int]], chosen: Iterable[Hashable]
    ) -> None:
        super().__init__(gutter=False, id="filter-types")
        self.counts = counts
        self.lines = _TypeLines(self)
        self.marks = set(chosen)


class _TypeLines:
    """One line a type: a box, the type, its domain, how many nodes."""

    def __init__(self, view: TypeList) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view.counts)

    def key(self, index: int) -> tuple[str, str]:
        return self._view.counts[index][0]

    def text(self, index: int) -> str:
        return visible(self.key(index)[1])

    def line(self, index: int, width: int) -> Sequence[Piece]:
        (domain, op_type), count = self._view.counts[index]
        shown = glyphs.current()
        box = shown.on if (domain, op_type) in self._view.marks else shown.off
        number = f"{count:,}"
        room = max(0, width - len(box) - len(number) - 3)
        name = clip(visible(op_type), room)
        room -= cell_width(name)
        return [
            (f"{box} ", "key"),
            (name, operator_style(op_type, domain)),
            (fit(f"  {visible(domain)}", room), "faint"),
            (f" {number} ", "dim"),
        ]


class FilterDialog(Dialog[NodeFilter]):
    """Gives the filter that was put together, or None when nothing is to change.

    Args:
        nodes: All nodes that could be shown.
        counts: How many there are of each (domain, operator type).
        present: The filter that is on.
        live: Is told the filter as it stands, while it is typed.
    """

    TITLE_TEXT = "Filter"
    KEYS = "Enter filter  Space choose  Tab next  ^X clear  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "filter", show=False),
        Binding("ctrl+x", "clear", "clear", show=False, priority=True),
    ]

    def __init__(
        self,
        nodes: Sequence[Node],
        counts: Mapping[tuple[str, str], int],
        present: NodeFilter | None,
        live: Callable[[NodeFilter], None] | None = None,
    ) -> None:
        super().__init__()
        self.live = live
        self.nodes = nodes
        self.present = present or NodeFilter()
        self._counts = sorted(counts.items(), key=lambda item: (-item[1], item[0][1].lower()))

    def body(self) -> Iterable[Widget]:
        """Return the list of types, the conditions, and how many nodes fit."""
        yield Rows([[("Operator types", "strong"), ("  none chosen: all", "dim")]])
        types = TypeList(self._counts, self.present.types)
        types.styles.height = max(3, min(len(self._counts), self.app.size.height - 17))
        yield types
        yield Rows([[("Conditions", "strong"), ("  joined by and", "dim")]])
        yield query_field(self.present.text, _EXAMPLES, Completion(self.nodes))
        yield Rows([[], []], id="filter-answer")

    def on_mount(self) -> None:
        """Show how many nodes match."""
        self.query_one(TypeList).focus()
        self._count()

    @property
    def types(self) -> frozenset[tuple[str, str]]:
        """The types that are chosen."""
        return frozenset(self.query_one(TypeList).marks)  # type: ignore[arg-type]

    def chosen(self) -> NodeFilter:
        """Return the filter as it stands.

        Raises:
            UsageError: A condition is malformed.
        """
        conditions = parse_conditions(self.query_one(Input).value)
        return NodeFilter(self.types, conditions, default_of)

    @on(LineView.MarksChanged)
    @on(Input.Changed)
    def something_changed(self) -> None:
        """Count again."""
        self._count()

    def _count(self) -> None:
        try:
            chosen = self.chosen()
        except UsageError as error:
            self._answer(error)
            return

        self.tasks.start(self._count_fitting(chosen), "count", replace=True)

    async def _count_fitting(self, chosen: NodeFilter) -> None:
        """Count in slices between which keys are answered."""
        await asyncio.sleep(0.05)
        fitting, deadline = 0, monotonic() + _SLICE_S
        for _ in chosen.prepare(self.nodes[0].scope.document) if self.nodes else ():
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        for node in self.nodes:
            fitting += chosen(node)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        shown = f"{fitting:,} of {len(self.nodes):,} nodes"
        answer = self.query_one("#filter-answer", Rows)
        answer.set_rows([[(shown, "strong" if fitting else "warn")], []])
        if self.live is not None:
            self.live(chosen)

    def _answer(self, error: UsageError) -> None:
        mark = glyphs.current().error
        hint = [[(f"  {visible(error.hint)}", "dim")]] if error.hint else [[]]
        rows = [[(f"{mark} {visible(error.message)}", "bad")], *hint]
        self.query_one("#filter-answer", Rows).set_rows(rows)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Filter."""
        event.stop()
        self.action_apply()

    @on(LineView.Activated)
    def type_activated(self, event: LineView.Activated) -> None:
        """Filter."""
        event.stop()
        self.action_apply()

    def action_apply(self) -> None:
        try:
            self.dismiss(self.chosen())
        except UsageError as error:
            self._answer(error)

    def action_clear(self) -> None:
        self.query_one(TypeList).set_marks(set())
        self.query_one(Input).value = ""
