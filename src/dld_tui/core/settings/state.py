"""State that is kept between runs: recent files, pane layouts, form fields.

Small JSON files in the state folder, replaced as a whole, so that readers never see partial ones.
They are read again before each change: two running programs lose at most one entry. Nothing here
raises errors: a file that cannot be read counts as empty, and one that cannot be written is
skipped.

The declaration of a setting tells its kind (:attr:`~dld_tui.core.params.Setting.of_model`).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.params import FORMER_IDS, Setting, current_id
from dld_tui.core.process import paths
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class RecentFile:
    """A file that was opened."""

    path: str
    kind: str
    """A name of ``FileKind``."""
    opened: float
    """Seconds since the epoch."""


class State:
    """The remembered things of one user."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = paths.state_dir() if folder is None else folder

    def recent(self) -> list[RecentFile]:
        """Return the recent files, the newest first; a file may no longer be there."""
        files = []
        entries = self._read("recent").get("files")
        for entry in entries if isinstance(entries, list) else []:
            try:
                file: Any = entry
                files.append(
                    RecentFile(str(file["path"]), str(file["kind"]), float(file["opened"]))
                )
            except (TypeError, KeyError, ValueError):
                continue
        return files

    def opened(self, path: Path | str, kind: str, *, keep: int = 20) -> None:
        """Put a file first in the recent ones, of which the newest `keep` remain."""
        text = os.path.abspath(path)
        rest = [file for file in self.recent() if file.path != text]
        files = [RecentFile(text, kind, time.time()), *rest][:keep]
        self._write("recent", {"files": [asdict(file) for file in files]})

    def forget(self, path: str) -> None:
        """Take a file from the recent ones."""
        files = [file for file in self.recent() if file.path != path]
        self._write("recent", {"files": [asdict(file) for file in files]})

    def get(self, section: str, key: str) -> dict[str, JSON]:
        """Return the value of a key of ``layouts``, ``forms``, …; empty if there is none."""
        value = self._read(section).get(key)
        return value if isinstance(value, dict) else {}

    def put(self, section: str, key: str, value: Mapping[str, JSON]) -> None:
        """Remember a value, or forget it when it is empty."""
        data = self._read(section)
        data.pop(key, None)
        if value:
            data[key] = dict(value)
        self._write(section, data)

    def _read(self, name: str) -> dict[str, JSON]:
        try:
            data = json.loads((self.folder / f"{name}.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(data, dict):
            return {}
        if name in _OF_ACTIVITIES:  # today's name wins if an older version of the program ran since
            former = {key: data.pop(key) for key in [*data] if key in FORMER_IDS}
            return {current_id(key): value for key, value in former.items()} | data
        return data

    def _write(self, name: str, data: Mapping[str, JSON]) -> None:
        from dld_tui.core.files.writer import write_text

        # A full or read-only home must not disturb the user's work; an agent may not write there.
        with contextlib.suppress(OSError, DldError):
            paths.ensure(self.folder)
            text = json.dumps(data, indent=1)
            write_text(self.folder / f"{name}.json", text, overwrite=True, durable=False)


HABITS = "forms"
"""The section of the state with the habits of each activity, and its last model."""
OF_MODELS = "model_forms"
"""The section with the settings of each activity that belong to a model, by the model's path."""
PRESETS = "presets"
"""The section with the settings that were saved under a name, by activity."""
_OF_ACTIVITIES = (HABITS, OF_MODELS, PRESETS)
_MODEL = "model"
_MOST_MODELS = 30


def recall(
    state: State, activity: str, settings: Sequence[Setting], model: JSON = None
) -> dict[str, JSON]:
    """Return what to fill a form with.

    Args:
        state: Where it is remembered.
        activity: Whose form it is.
        settings: Of the activity.
        model: The path of the model; by default the one of the last time.
    """
    last = state.get(HABITS, activity)
    model = last.get(_MODEL) if model is None else model
    own = state.get(OF_MODELS, activity).get(_identity(model))
    known = {setting.name: setting for setting in settings}
    values = {n: v for n, v in last.items() if n in known and not known[n].of_model}
    if isinstance(own, dict):
        values |= {n: v for n, v in own.items() if n in known and known[n].of_model}
    if _MODEL in known and model is not None:
        values[_MODEL] = model
    return values


def keep(
    state: State, activity: str, settings: Sequence[Setting], values: Mapping[str, JSON]
) -> None:
    """Remember the values of a form; those of a model that is no file are forgotten."""
    given = {setting.name: setting for setting in settings if values.get(setting.name) is not None}
    habits = {name: values[name] for name, setting in given.items() if not setting.of_model}
    model = values.get(_MODEL)
    state.put(HABITS, activity, habits | ({_MODEL: model} if model else {}))
    identity = _identity(model)
    if not identity:
        return
    models = state.get(OF_MODELS, activity)
    models.pop(identity, None)
    models[identity] = {
        name: values[name] for name, setting in given.items() if setting.of_model and name != _MODEL
    }
    state.put(OF_MODELS, activity, dict(list(models.items())[-_MOST_MODELS:]))


def _identity(model: JSON) -> str:
    """Return the key of a model; empty for what is no file."""
    if not isinstance(model, str) or not model or "\0" in model or not os.path.exists(model):
        return ""
    return os.path.realpath(model)
