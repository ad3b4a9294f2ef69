"""What runs the sides of a comparison, and which settings are of no use then; for searches, too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dld_tui.core.accuracy.engine_settings import LOADING, EngineSettings
from dld_tui.core.params import settings_of
from dld_tui.core.tensorrt.facts import LibraryFacts
from dld_tui.core.tensorrt.greying import reasons
from dld_tui.core.tensorrt.settings_run import ENGINE_SUFFIXES
from dld_tui.core.types import JSON

TENSORRT = "tensorrt"
_ORT_ONLY = "for ONNX Runtime only"
_BUILT = "the engine is built already"
_NO_ENGINE = "not run by TensorRT"
_RUN_BY = "an engine is run by TensorRT"
_DATA = "the input data say it"
_NO_FILE = "no engine file is given"
_NOTHING = "Nothing to compare with yet: fill in Against, Round to or another Other …"

_SEARCHED = ("fp16", "bf16")
"""Precisions that a search gives to the layers."""


def is_engine(path: Path | str | None) -> bool:
    """Return whether a file is an engine of TensorRT, by its name."""
    return path is not None and Path(path).suffix.lower() in ENGINE_SUFFIXES


def run_by(
    model: Path | str | None, against: Path | str | None, backend: str, against_backend: str
) -> tuple[str, str]:
    """Return what runs the reference, and what runs the other: an engine needs TensorRT."""
    same = backend if against_backend == "same" else against_backend
    return (
        TENSORRT if is_engine(model) else backend,
        TENSORRT if is_engine(against) else same,
    )


def needs_tensorrt(values: Mapping[str, JSON]) -> bool:
    """Return whether TensorRT has to be there for what a form says."""
    return TENSORRT in _run_by(values)


def has_two_runs(values: Mapping[str, JSON]) -> bool:
    """Return whether a form says what the reference is compared with.

    Not all of two builds of one model is looked at: the activity does that.
    """
    if _path(values, "against") is not None or values.get("round") not in (None, "none"):
        return True
    mine, theirs = _run_by(values)
    if mine != theirs or mine == TENSORRT:
        return True
    provider = values.get("against_provider")
    level = values.get("against_optimization")
    return provider not in (None, "", values.get("provider")) or level not in (None, "same")


def greyed(values: Mapping[str, JSON], facts: LibraryFacts | None) -> dict[str, str]:
    """Return why settings of a comparison, or of a precision search, cannot be used, by name.

    The texts are short: they stand beside the fields of a form.

    Args:
        values: What the form says now.
        facts: The library that runs the engines; None while that is not known.
    """
    mine, theirs = _run_by(values)
    engines = is_engine(_path(values, "model")), is_engine(_path(values, "against"))
    is_search = "against_backend" not in values
    found: dict[str, str] = {}
    if is_search:
        found |= dict.fromkeys(_SEARCHED, "the search chooses them")
    elif mine == TENSORRT:
        found |= dict.fromkeys(("provider", "optimization"), _ORT_ONLY)
    if theirs == TENSORRT:
        found |= dict.fromkeys(("against_provider", "against_optimization"), _ORT_ONLY)
    if engines[0]:
        found |= {"backend": _RUN_BY, "tensors": "an engine has outputs only"}
    if engines[1]:
        found |= {"against_backend": _RUN_BY, "round": _BUILT}
    if not any(engines):
        found["trust"] = _NO_FILE
    if _path(values, "inputs") is not None:
        found |= dict.fromkeys(("shape", "seed", "sets"), _DATA)
    names = [setting.name for setting in settings_of(EngineSettings) if setting.name != "trust"]
    if TENSORRT not in (mine, theirs):
        return found | dict.fromkeys(names, _NO_ENGINE)
    sides = zip((mine, theirs), engines, strict=True)
    if not any(side == TENSORRT and not is_there for side, is_there in sides):
        return found | {name: _BUILT for name in names if name not in LOADING}
    lacking = {} if facts is None else reasons(facts)
    return found | {name: why for name, why in lacking.items() if name in names}


def comparison_reasons(values: Mapping[str, JSON], facts: LibraryFacts | None) -> dict[str, str]:
    """Return :func:`greyed`, and as that of ``""`` why nothing can be compared yet."""
    found = greyed(values, facts)
    return found if has_two_runs(values) else found | {"": _NOTHING}


def _run_by(values: Mapping[str, JSON]) -> tuple[str, str]:
    return run_by(
        _path(values, "model"),
        _path(values, "against"),
        str(values.get("backend") or "onnxruntime"),
        str(values.get("against_backend") or "same"),
    )


def _path(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return value.strip() if isinstance(value, str) and value.strip() else None
