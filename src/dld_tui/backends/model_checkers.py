"""Checks of model files by the onnx package and by Polygraphy, run in processes of their own."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

from dld_tui.core.dataclass import dataclass

COMPLAINS = 3
"""The exit status if the model is not valid; the second argument then holds the message."""


def check_with_onnx() -> None:
    """Check the model of the first argument; write a complaint to the file of the second one."""
    import onnx

    model, report = sys.argv[1:3]
    try:
        onnx.checker.check_model(model, full_check=True)
    # The seam: C++ errors of several classes without a common base.
    except Exception as error:  # noqa: BLE001
        with open(report, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(str(error))
        sys.exit(COMPLAINS)


_OF_INFERENCE = re.compile(r"InferenceError\]")
_VERDICT = "FAILED | Runtime"
"""In the line that Polygraphy ends with, which does not say why."""


def is_of_inference(message: str) -> bool:
    """Return whether a complaint of onnx is of its shape inference."""
    return _OF_INFERENCE.search(message) is not None


def last_words(output: str) -> str:
    """Return the last line that a check printed, but for the verdict; empty without one."""
    lines = [line for line in output.splitlines() if line.strip() and _VERDICT not in line]
    return lines[-1] if lines else ""


_LINT_NEEDS = ("polygraphy", "onnx_graphsurgeon", "onnxruntime")


@dataclass(frozen=True)
class LintEntry:
    """A finding of the lint. All of it is untrusted text."""

    level: str
    """``exception``, ``warning`` or ``info``."""
    source: str
    """Its source, e.g. ``onnx_checker`` or ``onnxruntime``."""
    message: str
    nodes: tuple[str, ...]


def missing_for_lint() -> list[str]:
    """Return the modules that the lint needs and that are not installed."""
    return [name for name in _LINT_NEEDS if importlib.util.find_spec(name) is None]


def read_lint_report(path: Path) -> list[LintEntry] | None:
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


def lint_with_polygraphy() -> None:
    """Lint the model of the first argument; write the report to the second one.

    What follows are shapes of inputs, as ``NAME:[1,3]``.
    """
    from polygraphy.tools import main as polygraphy

    model, report, *shapes = sys.argv[1:]
    shape_options = ["--input-shapes", *shapes] if shapes else []
    sys.argv = ["polygraphy"]
    sys.exit(polygraphy(["check", "lint", model, "-o", report, *shape_options]))
