"""Completing the word that is being typed in a query, a condition or a pattern."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from dld_tui.core.document.node import Node
from dld_tui.core.rewrite.functions import FUNCTIONS
from dld_tui.core.rewrite.views import NODE_FIELDS, VALUE_FIELDS, schema_of
from dld_tui.core.text import visible

_WORD = re.compile(r"@?[A-Za-z_][\w/.:-]*\Z")
_OPERATOR_PLACE = re.compile(r"(?:\A|[(|,&;{=]|=>)\s*&?\s*\Z")
_NAME_PLACE = re.compile(r"\bname\s*(?:=|==|!=|\bcontains\b)\s*['\"]?\Z", re.IGNORECASE)
_FIELD_PLACE = re.compile(r"(?:\bin|\bout|\]|\b[a-z]\w*)\.\Z")
_KEYWORDS = ("where", "and", "or", "not", "has", "contains", "constant", "present")


class Completion:
    """What words of a model, and of the language, a text may go on with.

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
            found = self._names[at] if at < len(self._names) else ""
            return start + found if found.startswith(word) and found != word else None
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
    """Return what the first list has that begins so; letters of the same case come first."""
    at = "@" if word.startswith("@") else ""
    word = word.removeprefix("@")
    known = [item for each in lists for item in each]
    for fold in (str, str.lower):
        for item in known:
            if len(item) > len(word) and fold(item).startswith(fold(word)):
                return f"{start}{at}{item}"
        if word in known:
            return None
    return None
