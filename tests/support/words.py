"""Words that CONTRIBUTING.md replaces by others, where a text can be told without its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


def wrong(text: str) -> Iterator[str]:
    """Yield what is wrong with the words of a text."""
    for pattern, instead in _PATTERNS.items():
        for found in pattern.finditer(text):
            yield f"{found[0]!r}: say {instead} (CONTRIBUTING.md, Words)"


def is_sentence(text: str) -> bool:
    """Tell whether a string of a program is words for people, not a name, JSON or a pattern."""
    return len(text.split()) > 1 and text[:2] != '{"' and not re.search(r"\\[dwsSn(.]|\(\?", text)
