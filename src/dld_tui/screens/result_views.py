"""What opens when a job that was started from a form has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.shell.page import Page

View: TypeAlias = "Page | Path | str | None"
"""A page, a file to open, a text to show, or nothing."""

_FILES = ("report", "output", "path")


def opened_file(result: Mapping[str, JSON], values: Mapping[str, JSON]) -> View:
    """Return the file that an activity wrote."""
    return next((Path(path) for key in _FILES if isinstance(path := result.get(key), str)), None)


def built_engine(result: Mapping[str, JSON], values: Mapping[str, JSON]) -> View:
    """Return the layers of an engine where that was asked for, else that it is built."""
    layers, problem = result.get("layer_info"), result.get("layer_info_problem")
    if values.get("open_metadata") and isinstance(layers, str):
        return Path(layers)
    more = f"; its layers are not written: {problem}" if problem else ""
    return visible(f"{result['engine']} is built{more}")
