"""The list of activities, as strings; loading one imports its module.

A new activity is one module here with a ``Request`` dataclass and a ``run`` generator, and one row
in :data:`ACTIVITIES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.events import Event
from dld_tui.core.params import RequestData, from_json, to_json
from dld_tui.core.types import JSON


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
        "accuracy",
        "Compare accuracy",
        "Say whether two models, or two ways to run one, give the same results.",
        "dld_tui.activities.accuracy",
    ),
    ActivityInfo(
        "search_precision",
        "Search the precision",
        "Find the fewest nodes that must stay in fp32 when a model runs in fp16 or bf16.",
        "dld_tui.activities.search_precision",
    ),
    ActivityInfo(
        "isolate_tactic",
        "Isolate a tactic",
        "Find the TensorRT tactics that make a model's results wrong.",
        "dld_tui.activities.isolate_tactic",
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
        "check_sound",
        "Check a result",
        "Say whether the result of a conversion has errors that the model has not.",
        "dld_tui.activities.check_sound",
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
        "convert_shape",
        "Change dimensions",
        "Make dimensions dynamic or fixed, with the constants that hold their size.",
        "dld_tui.activities.convert_shape",
        offered=False,
    ),
    ActivityInfo(
        "run_tool",
        "Custom tool",
        "Run a program of the user on a model.",
        "dld_tui.activities.run_tool",
        offered=False,
    ),
    ActivityInfo(
        "convert_fp16",
        "Convert to float16",
        "Convert a model to float16; the result is tried before it is written.",
        "dld_tui.activities.convert_fp16",
        offered=False,
    ),
    ActivityInfo(
        "convert_bf16",
        "Convert to bfloat16",
        "Convert a model to bfloat16; its values are compared before it is written.",
        "dld_tui.activities.convert_bf16",
        offered=False,
    ),
    ActivityInfo(
        "convert_sanitize",
        "Sanitize",
        "Make a model as small as Polygraphy, onnxslim and onnxsim can; it computes the same.",
        "dld_tui.activities.convert_sanitize",
        offered=False,
    ),
    ActivityInfo(
        "convert_precisions",
        "Cast to layer precisions",
        "Add the casts that give layers the precisions that they are set to.",
        "dld_tui.activities.convert_precisions",
        offered=False,
    ),
    ActivityInfo(
        "convert_tensors",
        "Convert tensors",
        "Convert weights and constants to another element type.",
        "dld_tui.activities.convert_tensors",
        offered=False,
    ),
    ActivityInfo(
        "convert_external",
        "Weights to a data file",
        "Move the weights of a model to a file beside it.",
        "dld_tui.activities.convert_external",
        offered=False,
    ),
    ActivityInfo(
        "convert_inline",
        "Weights into the model",
        "Move the weights of data files into the model.",
        "dld_tui.activities.convert_inline",
        offered=False,
    ),
    ActivityInfo(
        "convert_strip",
        "Strip weights",
        "Take the weights out of a model, and keep their hashes.",
        "dld_tui.activities.convert_strip",
        offered=False,
    ),
    ActivityInfo(
        "convert_restore",
        "Restore weights",
        "Give a stripped model its weights again.",
        "dld_tui.activities.convert_restore",
        offered=False,
    ),
    ActivityInfo(
        "convert_quantize",
        "Quantize",
        "Quantize a model with ONNX Runtime, with calibration inputs or dynamically.",
        "dld_tui.activities.convert_quantize",
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


def request_data(activity_id: str, values: Mapping[str, JSON]) -> RequestData:
    """Return the values of a form as a request, which a target on another machine needs.

    Raises:
        UsageError: There is no such activity, or a value cannot be used.
        UnavailableError: The activity cannot be imported here.
    """
    return to_json(from_json(load(activity_id).request, dict(values)))


def why_unavailable(info: ActivityInfo) -> str | None:
    """Return why an activity cannot be loaded here, or None when it can."""
    try:
        load(info.id)
    except UnavailableError as error:
        return error.message
    return None
