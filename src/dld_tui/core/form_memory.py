"""What forms were filled with the last time: habits for every model, the rest for its model alone.

Which setting is of which kind its declaration says (:attr:`.Setting.of_model`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from dld_tui.core.params import Setting
from dld_tui.core.state import State
from dld_tui.core.types import JSON

HABITS = "forms"
"""The section of the state with the habits of each activity, and its last model."""
OF_MODELS = "model_forms"
"""The section with the settings of each activity that belong to a model, by the model's path."""
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
    """Remember what a form was filled with; settings of a model that is no file are forgotten."""
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
    """Return what a model is remembered by; an empty text for what is no file."""
    if not isinstance(model, str) or not model or "\0" in model or not os.path.exists(model):
        return ""
    return os.path.realpath(model)
