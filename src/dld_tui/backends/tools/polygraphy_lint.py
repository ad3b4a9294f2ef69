"""Polygraphy's lint on a file, run by :mod:`.process`; Polygraphy may be absent."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path

INSTALL = "pip install 'dld-tui[polygraphy]'"
_NEEDED = ("polygraphy", "onnx_graphsurgeon", "onnxruntime")


@dataclass(frozen=True)
class LintEntry:
    """A finding of the lint. All of it is foreign text."""

    level: str
    """``exception``, ``warning`` or ``info``."""
    source: str
    """Its source, e.g. ``onnx_checker`` or ``onnxruntime``."""
    message: str
    nodes: tuple[str, ...]


def missing() -> list[str]:
    """Return the modules that the lint needs and that are not installed."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def read_report(path: Path) -> list[LintEntry] | None:
    """Return the entries of a report; None without a complete report."""
    try:
        entries = json.loads(path.read_bytes())["lint_entries"]
        return [
            LintEntry(
                str(entry["level"]),
                str(entry["source"]),
                str(entry["message"]),
                tuple(str(name) for name in entry.get("nodes", ())),
            )
            for entry in entries
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def main() -> None:
    """Lint the model of the first argument; write the report to the second one.

    What follows are shapes of inputs, as ``NAME:[1,3]``.
    """
    from polygraphy.tools import main as polygraphy

    model, report, *shapes = sys.argv[1:]
    given = ["--input-shapes", *shapes] if shapes else []
    sys.argv = ["polygraphy"]
    sys.exit(polygraphy(["check", "lint", model, "-o", report, *given]))
