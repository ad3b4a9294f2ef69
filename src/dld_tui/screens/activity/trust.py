"""The question before an engine is loaded: it can hold code that runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dld_tui.core.tensorrt.settings import ENGINE_SUFFIXES
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog

TRUST = "trust"
"""The setting, and the answer."""
_PATH_CELLS = 60


def untrusted_engine(values: Mapping[str, JSON]) -> str:
    """Return the engines that a form would load without trust, as text; empty when none."""
    if values.get(TRUST) is not False:
        return ""
    found = []
    for name in ("engine", "model", "against"):
        path = values.get(name)
        if not isinstance(path, str) or not path.strip():
            continue
        if name == "engine" or Path(path).suffix.lower() in ENGINE_SUFFIXES:
            found.append(path)
    return " and ".join(found)


def trust_dialog(engine: str) -> ChoiceDialog:
    """Return the question; its answer is :data:`TRUST` or None."""
    name = clip(visible(engine), _PATH_CELLS, keep="middle")
    return ChoiceDialog(
        "Load the engine?",
        f"{name} can hold code that runs when it is loaded. Load it only if you trust who made it.",
        [Choice("l", "load it", TRUST)],
    )
