"""Queries over nodes: ``Conv where group > 1 and out.shape[1] % 8 != 0``.

::

    Conv                         Conv|Gemm where not has dilations
    * where in[1] is constant    com.microsoft.Attention where num_heads = 12

A name that is no field of a node is an attribute, with its operator's default; ``@name`` always is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.errors import UsageError
from dld_tui.core.rewrite.expression import Expression, read_expression
from dld_tui.core.rewrite.functions import FUNCTIONS, TYPED, UNKNOWN
from dld_tui.core.rewrite.text import Reader
from dld_tui.core.rewrite.views import NODE_FIELDS, NodeView
from dld_tui.core.types import plain_domain

_KIND = re.compile(r"\*|_(?!\w)|[A-Za-z_][\w.]*(?:\s*\|\s*[A-Za-z_][\w.]*)*")
KNOWN = frozenset(NODE_FIELDS) | frozenset(FUNCTIONS)


def parse_kinds(text: str) -> frozenset[tuple[str, str]]:
    """Return the (domain, operator) pairs of ``Conv|com.microsoft.Gelu``; empty for any."""
    if text in ("*", "_"):
        return frozenset()
    found = []
    for part in text.split("|"):
        domain, _, name = part.strip().rpartition(".")
        found.append((plain_domain(domain), name))
    return frozenset(found)


@dataclass(frozen=True)
class Query:
    """Which nodes are wanted."""

    text: str
    kinds: frozenset[tuple[str, str]]
    """Domain and operator; empty for all."""
    condition: Expression | None

    def __call__(self, node: Node) -> bool:
        """Return whether a node is wanted."""
        if self.kinds and (node.domain, node.op_type) not in self.kinds:
            return False
        return self.condition is None or self.condition.holds(NodeView(node).field)

    def nodes(self, document: Document) -> Iterator[Node]:
        """Yield the nodes of a model that are wanted, those of bodies and functions included."""
        for scope in document.scopes():
            if not self.kinds:
                yield from filter(self, scope.nodes)
                continue
            names = {name for _, name in self.kinds}
            found = [node for name in names for node in scope.nodes_of_type(name) if self(node)]
            yield from sorted(found, key=scope.index_of) if len(names) > 1 else found

    @property
    def needs_types(self) -> bool:
        """Whether it asks for types, which shape inference may have to find."""
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
    found = []
    for text in texts:
        reader = Reader(text)
        while not reader.is_done:
            found.append(read_expression(reader, KNOWN))
            reader.take(",")
    return found


def shown_value(value: Any) -> Any:
    """Return the value of a column as JSON has it; None for what is not known."""
    from dld_tui.core.rewrite.expression import plain, truth

    value = plain(value)
    if value is UNKNOWN or truth(value) is UNKNOWN:
        return None
    if hasattr(value, "tolist"):
        return value.tolist() if value.size <= 16 else f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return [shown_value(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
