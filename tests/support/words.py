"""Words that CONTRIBUTING.md replaces by others, where a text can be told without its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator

INSTEAD = {
    r"ops?": "operator or node",
    r"nested graphs?": "subgraph",
    r"symbolic dim\w*|free dim\w*|open dim\w*": "dynamic dimension",
    r"blobs?|payloads?": "initializer or weights",
    r"set-ups?": "session, or candidate",
    r"times as fast": "a speedup, as 1.25×",
    r"nearness": "error",
    r"remarks?|complaints?": "finding or note",
    r"hints?": "advice",
}
_PATTERNS = {
    re.compile(rf"(?<![-\w])(?:{words})(?![-\w])", re.IGNORECASE): put
    for words, put in INSTEAD.items()
}


def wrong(text: str) -> Iterator[str]:
    """Yield what is wrong with the words of a text."""
    for pattern, instead in _PATTERNS.items():
        for found in pattern.finditer(text):
            yield f"{found[0]!r}: say {instead} (CONTRIBUTING.md, Words)"
