"""What is required of a model by ``dld.toml`` beside it, and the last known verdict on that.

The table ``requirements`` has an entry by the name of each model's file: a list of requirements, or
a table with the list ``require`` and the model ``reference`` that accuracy is required against::

    [requirements]
    "model.onnx" = ["p95 <= 35 ms", "size <= 20 MB"]

    [requirements."model_int8.onnx"]
    require = ["snr >= 30 dB"]
    reference = "model.onnx"
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.settings.toml_files import parse_document
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.compare.requirements import RequirementsResult

FILE = "dld.toml"
_TABLE, _REQUIRE, _REFERENCE = "requirements", "require", "reference"
VERDICT_STYLES = {"PASS": "good", "FAIL": "bad", "UNDECIDED": "warn"}
_SECTION = "verdicts"
"""Of the state: the verdicts by the path of the model."""
_MOST_MODELS = 200


@dataclass(frozen=True)
class KeptRequirements:
    """What is required of a model."""

    texts: tuple[str, ...] = ()
    """Untrusted text."""
    reference: Path | None = None
    """The model that accuracy is required against."""


def kept_requirements(model: Path) -> KeptRequirements:
    """Return what the file beside a model requires of it; nothing where there is no such file.

    Raises:
        InputError: The file cannot be read, or its entry is not of the form above.
    """
    path = model.absolute().parent / FILE
    document = parse_document(path)
    if document is None:
        return KeptRequirements()
    data: Any = document.unwrap()
    models = data.get(_TABLE, {})
    entry = models.get(model.name, {}) if isinstance(models, Mapping) else None
    if not isinstance(entry, Mapping):
        entry = {_REQUIRE: entry}
    texts, reference = entry.get(_REQUIRE, []), entry.get(_REFERENCE)
    is_list = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    is_known = not {*entry} - {_REQUIRE, _REFERENCE} and isinstance(reference, str | None)
    if not (is_list and is_known):
        raise InputError(
            f"the requirements of {visible(model.name)} are not a list of texts", where=str(path),
            hint=f'Write [{_TABLE}] and "{visible(model.name)}" = ["p95 <= 35 ms"]',
        )  # fmt: skip
    beside = None if reference is None else path.parent / reference
    return KeptRequirements(tuple(texts), beside)


@dataclass(frozen=True)
class RequirementState:
    """A requirement of a model, and what was last found of it."""

    requirement: str
    """Fit for a terminal, as all texts here."""
    outcome: str = ""
    """PASS, FAIL or UNDECIDED; empty where it was not judged."""
    measured: str = ""
    """The value with its interval, or why there is none."""
    judged: float | None = None
    """Seconds since the epoch."""
    is_old: bool = False
    """Whether the model was written since."""

    @property
    def text(self) -> str:
        """What was found, in a few words."""
        if self.judged is None:
            return "not checked"
        day = time.strftime("%Y-%m-%d", time.localtime(self.judged))
        old = ", before the model changed" if self.is_old else ""
        return f"{self.outcome}, {self.measured} ({day}{old})"

    def to_json(self) -> JSON:
        """Return the entry of ``dld inspect --json``."""
        return {
            "requirement": self.requirement, "outcome": self.outcome or None,
            "measured": self.measured, "judged": self.judged, "is_old": self.is_old,
        }  # fmt: skip


def requirement_states(model: Path) -> list[RequirementState]:
    """Return what the file beside a model requires, each with the last known verdict.

    Raises:
        InputError: As :func:`kept_requirements`.
    """
    texts = [shown_requirement(text) for text in kept_requirements(model).texts]
    return _with_verdicts(model, texts) if texts else []


def keep_verdict(model: Path, result: RequirementsResult) -> None:
    """Remember the verdicts on a model of this machine; never raises.

    Verdicts on other requirements of the same file as it is now stay.
    """
    from dld_tui.core.settings.state import State

    state = State()
    known = state.get(_SECTION, "models")
    stamp, path = _stamp(model), os.path.abspath(model)
    former = known.pop(path, None)
    entry: dict[str, JSON] = {}
    if isinstance(former, dict) and former.get("stamp") == stamp:
        verdicts = former.get("verdicts")
        entry = dict(verdicts) if isinstance(verdicts, dict) else {}
    for one in result.judged:
        shown = visible(one.shown or one.problem)
        entry[one.requirement] = [one.outcome.value, shown, time.time()]
    known[path] = {"stamp": stamp, "verdicts": entry}
    state.put(_SECTION, "models", dict(list(known.items())[-_MOST_MODELS:]))


def _with_verdicts(model: Path, texts: list[str]) -> list[RequirementState]:
    from dld_tui.core.settings.state import State

    entry = State().get(_SECTION, "models").get(os.path.abspath(model))
    verdicts = entry.get("verdicts") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(verdicts, dict):
        return [RequirementState(text) for text in texts]
    is_old = entry.get("stamp") != _stamp(model)
    states = []
    for text in texts:
        match verdicts.get(text):
            case [str(outcome), str(measured), float(judged)]:
                verdict = visible(outcome), visible(measured), judged, is_old
                states.append(RequirementState(text, *verdict))
            case _:
                states.append(RequirementState(text))
    return states


def shown_requirement(text: str) -> str:
    """Return a requirement as it is shown and as its verdict is kept. Fit for a terminal."""
    return visible(" ".join(text.split()))


def _stamp(model: Path) -> list[JSON]:
    """Return what changes when the model is written."""
    try:
        status = os.stat(model)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]
