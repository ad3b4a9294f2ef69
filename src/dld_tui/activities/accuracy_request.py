"""The settings of a comparison of two runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.accuracy.engine_settings import EngineSettings
from dld_tui.core.accuracy.tolerance import about_atol, about_rtol, about_tolerance
from dld_tui.core.inputs.shapes import about_inputs, about_seed, about_shape
from dld_tui.core.params import param

_LEVELS = ("disabled", "basic", "extended", "layout", "all")


@dataclass(frozen=True)
class ComparisonSettings:
    """What to compare with what, and how near it has to be."""

    model: Path = param(
        label="Model",
        help="The ONNX model that is the reference, or a TensorRT engine.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    against: Path | None = param(
        None,
        label="Against",
        help="The model, or the TensorRT engine, to compare with it; by default the same model, run"
        " in another way.",
        spellings=("--against",),
        kind="file",
        metavar="MODEL_B",
        empty="the same model",
    )
    tensors: bool = param(
        False,
        label="All tensors",
        help="Compare every tensor of the main graph, not the outputs only.",
        spellings=("--tensors",),
    )
    round: str = param(
        "none",
        label="Round to",
        help="Round what the other model's nodes take and make to this precision.",
        choices=("none", "fp16", "bf16"),
        spellings=("--round",),
    )
    backend: str = param(
        "onnxruntime",
        label="Run by",
        help="What runs the reference; TensorRT builds an engine of it.",
        choices=("onnxruntime", "tensorrt"),
        words=(("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--backend",),
    )
    against_backend: str = param(
        "same",
        label="Other run by",
        help="What runs the other; the settings of TensorRT are for its engine.",
        choices=("same", "onnxruntime", "tensorrt"),
        words=(("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--against-backend",),
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="Execution provider of the reference, with ONNX Runtime.",
        spellings=("--provider",),
        metavar="NAME",
    )
    against_provider: str = param(
        "",
        label="Other provider",
        help="Execution provider of the other run; by default the same.",
        spellings=("--against-provider",),
        metavar="NAME",
        empty="the same",
    )
    optimization: str = param(
        "usual",
        label="Optimization",
        help="Graph optimization of the reference; usual is all, and disabled with --tensors.",
        choices=("usual", *_LEVELS),
        spellings=("--optimization",),
    )
    against_optimization: str = param(
        "same",
        label="Other optimiz.",
        help="Graph optimization of the other run.",
        choices=("same", *_LEVELS),
        spellings=("--against-optimization",),
    )
    tolerance: tuple[str, ...] = param((), **about_tolerance())
    atol: float | None = param(
        None,
        **about_atol(
            help="Absolute tolerance; by default 1e-5, and 1e-2 where a run may have fewer digits"
            " than fp32: fp16, bf16, TF32, a prebuilt engine."
        ),
        empty="1e-5, or 1e-2 below fp32",
    )
    rtol: float | None = param(
        None,
        **about_rtol(help="Relative tolerance; by default as --atol.", empty="as the absolute one"),
    )
    inputs: Path | None = param(None, **about_inputs())
    shape: tuple[str, ...] = param((), **about_shape())
    seed: int = param(0, **about_seed())
    sets: int = param(
        1,
        label="Sets",
        help="How many random sets of inputs; of each tensor the worst is told.",
        spellings=("--sets",),
        minimum=1,
        maximum=1000,
    )
    memory_budget: float = param(
        100.0,
        label="Memory budget",
        help="How much of the tensors' values is kept at a time.",
        unit="MiB",
        spellings=("--memory-budget",),
        minimum=1,
    )


# The fields of the last base come first.
@dataclass(frozen=True)
class Request(EngineSettings, ComparisonSettings):
    """What to compare with what, how near it has to be, and how engines are built."""
