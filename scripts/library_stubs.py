"""Writes the signatures of the library's commands for editors and type checkers.

``python -m scripts.library_stubs`` after a setting has changed; a test compares.
"""

from __future__ import annotations

import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.api import commands

STUBS = Path(commands.__file__).with_suffix(".pyi")
_HEADER = '''"""Written by scripts/library_stubs.py from the requests of the activities."""

from collections.abc import Mapping, Sequence
from inspect import Signature
from pathlib import Path
from typing import Any, Literal

from dld_tui.activities.registry import Activity
from dld_tui.api.requests import Progress
from dld_tui.core.model.document import Document
'''


def stubs() -> str:
    """Return the text of the stubs."""
    homes: dict[str, set[str]] = {}
    modules: set[str] = set()
    functions = []
    for name, activity_id in sorted(commands.activities().items()):
        activity = registry.load(activity_id)
        kinds = typing.get_args(activity.result) or (activity.result,)
        if commands.returned(activity) == "Report":
            homes.setdefault("dld_tui.api.reports", set()).add("Report")
        else:
            for kind in kinds:
                if kind.__name__ == "Result":
                    modules.add(kind.__module__)
                else:
                    homes.setdefault(kind.__module__, set()).add(kind.__name__)
        parameters = list(map(_parameter, commands.signature_of(activity).parameters.values()))
        keyword = next(
            at for at, p in enumerate(commands.signature_of(activity).parameters.values())
            if p.kind is p.KEYWORD_ONLY
        )  # fmt: skip
        parameters.insert(keyword, "*")
        functions.append(
            f"def {name}({', '.join(parameters)}) -> {commands.returned(activity)}: ..."
        )
    imports = [f"import {module}" for module in modules]
    imports += [f"from {home} import {', '.join(sorted(names))}" for home, names in homes.items()]
    tail = [
        "def activities() -> dict[str, str]: ...",
        "def documentation(activity: Activity) -> str: ...",
        "def returned(activity: Activity) -> str: ...",
        "def signature_of(activity: Activity) -> Signature: ...",
    ]
    text = "\n".join([_HEADER, *imports, "", *functions, *tail])
    return _formatted(text)


def _parameter(parameter: Any) -> str:
    text = f"{parameter.name}: {parameter.annotation}"
    return text if parameter.default is parameter.empty else f"{text} = ..."


def _formatted(text: str) -> str:
    for command in (["check", "--select=I,F401", "--fix-only", "-q"], ["format", "-q"]):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, f"--stdin-filename={STUBS}", "-"],
            input=text, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    return text


if __name__ == "__main__":
    STUBS.write_text(stubs(), encoding="utf-8")
    print(f"{STUBS}: {len(commands.activities())} functions")
