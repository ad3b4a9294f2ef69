"""The list of activities, as strings; loading one imports its module.

A new activity is one module here with a ``Request`` dataclass and a ``run`` generator, and one row
in :data:`ACTIVITIES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.events import Event


@dataclass(frozen=True)
class ActivityInfo:
    """What can be said of an activity without importing it."""

    id: str
    title: str
    help: str
    """One sentence."""
    module: str
    offered: bool = True
    """False for helpers of the program that no menu lists."""


@dataclass(frozen=True)
class Activity:
    """An activity that was imported."""

    info: ActivityInfo
    request: Any
    """The class of its requests, whose fields are made with :func:`dld_tui.core.params.param`."""
    run: Callable[[Any], Iterator[Event]]
    """A generator of events; it ends with one ``Finished`` or raises a ``DldError``."""


ACTIVITIES: tuple[ActivityInfo, ...] = (
    ActivityInfo(
        "profile_onnxruntime",
        "Profile with ONNX Runtime",
        "Measure the latency of a model and of each of its layers with ONNX Runtime.",
        "dld_tui.activities.profile_onnxruntime",
    ),
    ActivityInfo(
        "build_tensorrt",
        "Build a TensorRT engine",
        "Build an engine of a model with TensorRT or TensorRT-RTX.",
        "dld_tui.activities.build_tensorrt",
    ),
    ActivityInfo(
        "profile_tensorrt",
        "Profile with TensorRT",
        "Build or load an engine, and measure its latency and each of its layers.",
        "dld_tui.activities.profile_tensorrt",
    ),
    ActivityInfo(
        "refit_engine",
        "Refit an engine",
        "Put the weights of a model into an engine that was built for it.",
        "dld_tui.activities.refit_engine",
    ),
    ActivityInfo(
        "infer_shapes",
        "Infer shapes",
        "Infer the types and shapes of all values of a model.",
        "dld_tui.activities.infer_shapes",
        offered=False,
    ),
    ActivityInfo(
        "check_full",
        "Full check",
        "Check a model with onnx's full checker and Polygraphy's lint.",
        "dld_tui.activities.check_full",
        offered=False,
    ),
    ActivityInfo(
        "convert_opset",
        "Convert the opset",
        "Convert a model to another version of the ai.onnx operators.",
        "dld_tui.activities.convert_opset",
        offered=False,
    ),
    ActivityInfo(
        "tensorrt_libraries",
        "TensorRT libraries",
        "Say which TensorRT libraries there are and what each has.",
        "dld_tui.activities.tensorrt_libraries",
        offered=False,
    ),
    ActivityInfo(
        "doctor",
        "Doctor",
        "Say which libraries, GPUs and folders work.",
        "dld_tui.activities.doctor",
        offered=False,
    ),
)


def find(activity_id: str) -> ActivityInfo:
    """Return the row of an activity.

    Raises:
        UsageError: There is no activity of this name.
    """
    for info in ACTIVITIES:
        if info.id == activity_id:
            return info
    known = ", ".join(info.id for info in ACTIVITIES)
    raise UsageError(f"there is no activity {activity_id!r}", hint=f"Known activities: {known}")


def load(activity_id: str) -> Activity:
    """Import an activity.

    Raises:
        UsageError: There is no activity of this name.
        UnavailableError: Its module cannot be imported here; the message says why.
    """
    info = find(activity_id)
    try:
        module = importlib.import_module(info.module)
    except ImportError as error:
        raise UnavailableError(f"unavailable: {error}", where=info.title) from error
    return Activity(info, module.Request, module.run)


def why_unavailable(info: ActivityInfo) -> str | None:
    """Return why an activity cannot be loaded here, or None when it can."""
    try:
        load(info.id)
    except UnavailableError as error:
        return error.message
    return None
