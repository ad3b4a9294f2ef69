"""What opens when a job that was started from a form has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dld_tui.activities.build_tensorrt import Result as Built
from dld_tui.activities.refit_engine import Result as Refitted
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.shell.page import Page

View: TypeAlias = "Page | Path | str | None"
"""A page, a file to open, a text to show, or nothing."""

_FILES = ("report", "output", "path")


def opened_file(result: Any, values: Mapping[str, JSON]) -> View:
    """Return the file that an activity wrote."""
    fields = result if isinstance(result, Mapping) else vars(result)
    return next((Path(fields[key]) for key in _FILES if fields.get(key)), None)


def built_engine(result: Built, values: Mapping[str, JSON]) -> View:
    """Return the layers of an engine where that was asked for, else that it is built."""
    if values.get("open_metadata") and result.layer_info is not None:
        return result.layer_info
    problem = result.layer_info_problem
    more = f"; its layers are not written: {problem}" if problem else ""
    return visible(f"{result.engine} is built{more}")


def refitted_engine(result: Refitted, values: Mapping[str, JSON]) -> View:
    """Return that an engine has its new weights."""
    return visible(f"{result.engine} is built")
