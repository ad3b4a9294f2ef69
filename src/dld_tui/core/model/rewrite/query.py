"""Queries over nodes: ``Conv where group > 1 and out.shape[1] % 8 != 0``.

::

    Conv                         Conv|Gemm where not has dilations
    * where in[1] is constant    com.microsoft.Attention where num_heads = 12

A name that is no field of a node is an attribute, with its operator's default; ``@name`` always is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_matching import schema_of
from dld_tui.core.model.operators.attribute_words import Coded
from dld_tui.core.model.rewrite.expression import (
    FUNCTIONS,
    TYPED,
    UNKNOWN,
    Expression,
    Reader,
    read_expression,
)
from dld_tui.core.model.rewrite.views import NODE_FIELDS, VALUE_FIELDS, NodeView
from dld_tui.core.text import visible
from dld_tui.core.types import plain_domain

_KIND = re.compile(r"\*|_(?!\w)|[A-Za-z_][\w.]*(?:\s*\|\s*[A-Za-z_][\w.]*)*")
KNOWN = frozenset(NODE_FIELDS) | frozenset(FUNCTIONS)


def parse_kinds(text: str) -> frozenset[tuple[str, str]]:
    """Return the (domain, operator) pairs of ``Conv|com.microsoft.Gelu``; empty for any."""
    if text in ("*", "_"):
        return frozenset()
    kinds = []
    for part in text.split("|"):
        domain, _, name = part.strip().rpartition(".")
        kinds.append((plain_domain(domain), name))
    return frozenset(kinds)


@dataclass(frozen=True)
class Query:
    """A query over nodes."""

    text: str
    kinds: frozenset[tuple[str, str]]
    """Domain and operator; empty for all."""
    condition: Expression | None

    def __call__(self, node: Node) -> bool:
        """Return whether a node matches."""
        if self.kinds and (node.domain, node.op_type) not in self.kinds:
            return False
        return self.condition is None or self.condition.holds(NodeView(node).field)

    def nodes(self, document: Document) -> Iterator[Node]:
        """Yield the matching nodes of a model, those of bodies and functions included."""
        for scope in document.scopes():
            if not self.kinds:
                yield from filter(self, scope.nodes)
                continue
            names = {name for _, name in self.kinds}
            nodes = [node for name in names for node in scope.nodes_of_type(name) if self(node)]
            yield from sorted(nodes, key=scope.index_of) if len(names) > 1 else nodes

    @property
    def needs_types(self) -> bool:
        """Whether it reads types, for which shape inference may have to run."""
        words = set(re.findall(r"\w+", self.condition.text)) if self.condition else set()
        return bool(words & TYPED)


def parse_query(text: str) -> Query:
    """Return the query of a text.

    Raises:
        UsageError: It is none; says where.
    """
    reader = Reader(text)
    match = reader.match(_KIND)
    if match is None:
        raise UsageError(
            "a query begins with an operator, or * for any",
            hint="Write for example: Conv where group > 1",
        )
    reader.at = match.end()
    condition = None
    if reader.take("where"):
        condition = read_expression(reader, KNOWN)
    reader.end()
    return Query(text.strip(), parse_kinds(match.group()), condition)


def parse_columns(texts: tuple[str, ...]) -> list[Expression]:
    """Return the expressions of columns that are shown beside each node.

    Raises:
        UsageError: One is none.
    """
    expressions = []
    for text in texts:
        reader = Reader(text)
        while not reader.is_done:
            expressions.append(read_expression(reader, KNOWN))
            reader.take(",")
    return expressions


def shown_value(value: Any) -> Any:
    """Return the value of a column for JSON; None where it is unknown."""
    from dld_tui.core.model.rewrite.expression import plain, truth

    value = plain(value)
    if value is UNKNOWN or truth(value) is UNKNOWN:
        return None
    if isinstance(value, Coded):
        return value.word
    if hasattr(value, "tolist"):
        return value.tolist() if value.size <= 16 else f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return [shown_value(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


_WORD = re.compile(r"@?[A-Za-z_][\w/.:-]*\Z")
_OPERATOR_PLACE = re.compile(r"(?:\A|[(|,&;{=]|=>)\s*&?\s*\Z")
_NAME_PLACE = re.compile(r"\bname\s*(?:=|==|!=|\bcontains\b)\s*['\"]?\Z", re.IGNORECASE)
_FIELD_PLACE = re.compile(r"(?:\bin|\bout|\]|\b[a-z]\w*)\.\Z")
_KEYWORDS = ("where", "and", "or", "not", "has", "contains", "constant", "present")


class Completion:
    """Completes words of a query from the language and from a model.

    Args:
        nodes: The nodes of the model, in bodies and functions too.
        names: What else a text may begin with, such as names of rules.
    """

    def __init__(self, nodes: Iterable[Node], names: Sequence[str] = ()) -> None:
        self._nodes = list(nodes)
        self._starts = tuple(names)
        self._operators: list[str] | None = None
        self._attributes: list[str] = []
        self._names: list[str] = []

    def complete(self, text: str) -> str | None:
        """Return a text with its last word completed; None where there is nothing to add."""
        match = _WORD.search(text)
        if match is None:
            return None
        if self._operators is None:
            self._learn()
        start, word = text[: match.start()], match.group()
        field = word.rpartition(".")[2]
        dotted = text[: len(text) - len(field)]
        if _NAME_PLACE.search(start):
            at = bisect_left(self._names, word)
            candidate = self._names[at] if at < len(self._names) else ""
            return start + candidate if candidate.startswith(word) and candidate != word else None
        is_domain = any(name.startswith(word) for name in self._operators or ())
        if _FIELD_PLACE.search(dotted) and field and not is_domain:
            return _completed(dotted, field, (sorted(VALUE_FIELDS),))
        return _completed(start, word, self._lists(start))

    def _lists(self, start: str) -> tuple[Sequence[str], ...]:
        operators = self._operators or []
        plain: list[str] = [*sorted(NODE_FIELDS), *_KEYWORDS]
        functions = [f"{name}(" for name in FUNCTIONS]
        if _OPERATOR_PLACE.search(start):
            starts = self._starts if not start.strip() else ()
            return starts, operators, plain, self._attributes, functions
        return plain, self._attributes, functions, operators

    def _learn(self) -> None:
        kinds: dict[tuple[str, str], Node] = {}
        counts: Counter[tuple[str, str]] = Counter()
        attributes: dict[str, None] = {}
        for node in self._nodes:
            key = node.domain, node.op_type
            counts[key] += 1
            kinds.setdefault(key, node)
        for node in kinds.values():
            schema = schema_of(node)
            attributes.update(dict.fromkeys(a.name for a in node.attributes()))
            if schema is not None:
                attributes.update(dict.fromkeys(a.name for a in schema.attributes))
        shown = (f"{domain}.{op_type}" if domain else op_type
                 for (domain, op_type), _ in counts.most_common())  # fmt: skip
        self._operators = [name for name in shown if visible(name) == name]
        self._attributes = sorted(name for name in attributes if name.isidentifier())
        names = {node.name for node in self._nodes if node.name}
        self._names = sorted(name for name in names if visible(name) == name)


def _completed(start: str, word: str, lists: Iterable[Sequence[str]]) -> str | None:
    """Return the completion of a word from the first list with one; matching case comes first."""
    at = "@" if word.startswith("@") else ""
    word = word.removeprefix("@")
    known = [item for words in lists for item in words]
    for fold in (str, str.lower):
        for item in known:
            if len(item) > len(word) and fold(item).startswith(fold(word)):
                return f"{start}{at}{item}"
        if word in known:
            return None
    return None
