"""The advanced filter: operator types, and conditions on attributes, names, links and types.

::

    kernel_shape = [3, 3]     group > 1          mode != 'linear'      strides contains 2
    name contains attn        domain = com.microsoft                   inputs >= 3
    has dilations             not has bias       dtype = float16       output contains logits
    precision = fp16          (the TensorRT precision that a layer is set to)

Conditions are joined by ``and``. An attribute that is not set counts with its operator's default,
except for ``has``. ``@name`` is the attribute called ``name`` and not the node's name.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core.document.literals import LiteralError, infer_kind, parse_literal, round_to_float32
from dld_tui.core.document.metadata import precision_of
from dld_tui.core.errors import UsageError
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.rewrite.matcher import LiveHits
    from dld_tui.core.document.rewrite.pattern import Pattern
    from dld_tui.core.document.rewrite.query import Query
    from dld_tui.core.document.scope import ScopeOwner
    from dld_tui.core.document.transactions import Change

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
        from dld_tui.core.document.rewrite.matcher import LiveHits

        live = LiveHits(document, self.pattern)
        yield from live.search()
        self._live = live

    def follow(self, change: Change) -> set[Node]:
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

    def follow(self, change: Change) -> set[Node]:
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
    from dld_tui.core.document.rewrite.query import parse_query

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
    from dld_tui.core.document.rewrite.pattern import parse_pattern

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
