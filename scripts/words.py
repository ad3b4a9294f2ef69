"""Words that no text has: CONTRIBUTING.md replaces them, or they say nothing to a reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

PRIVATE = re.compile(
    r"\b(prec(?!-)|roof|arena|joined to ONNX|races?|claimed gain|by its place|focus 2)\b"
    r"|^Way$|^own$|node_…"
)
"""Words of the workshop."""
NO_TEXTS = {
    ("dld_tui.activities.registry", "arena"),
    ("dld_tui.backends.onnxruntime.arena", "arena"),
    ("dld_tui.core.tune.journal", "race"),
    ("dld_tui.activities.convert.fp16", "own"),
    ("dld_tui.screens.results.report", "what may help, recommendations, hints, make faster"),
}
"""(Module, string) of a word to search for, a name in files, and a spelling of an option."""
OF_OTHERS = ("dld_tui.backends.onnxruntime.runtime",)
"""Modules that look for words in what ONNX Runtime says."""

INSTEAD = {
    r"[Oo]ps?": "operator or node",
    r"[Nn]ested graphs?": "subgraph",
    r"(?:[Ss]ymbolic|[Ff]ree|[Oo]pen) dim\w*": "dynamic dimension",
    r"[Bb]lobs?|[Pp]ayloads?": "initializer, weights or tensor data",
    r"[Ss]et-ups?": "session, or candidate",
    r"times as fast": "a speedup, as 1.25×",
    r"[Nn]earness": "error",
    r"[Rr]emarks?|[Cc]omplaints?": "finding or note",
    r"[Hh]ints?": "advice",
}
_PATTERNS = {
    re.compile(rf"(?<![-\w.{{])(?:{words})(?![-\w]|\.\w)"): put for words, put in INSTEAD.items()
}


def texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the strings among the nodes of a module that are no docstrings."""
    documented = set()
    strings = []
    for node in nodes:
        if isinstance(node, ast.Expr):
            documented.add(id(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(node)
    yield from (str(node.value) for node in strings if id(node) not in documented)


def wrong(text: str) -> Iterator[str]:
    """Yield what is wrong with the words of a text."""
    for pattern, instead in _PATTERNS.items():
        for found in pattern.finditer(text):
            yield f"{found[0]!r}: say {instead} (CONTRIBUTING.md, Words)"


def is_sentence(text: str) -> bool:
    """Tell whether a string of a program is words for people, not a name, JSON or a pattern."""
    return len(text.split()) > 1 and text[:2] != '{"' and not re.search(r"\\[dwsSn(.]|\(\?", text)
