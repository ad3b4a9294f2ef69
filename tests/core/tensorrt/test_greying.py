"""What a library does not have is greyed and refused, with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.codec import decode, encode
from dld_tui.core.tensorrt.availability import reasons, refused
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.tensorrt.settings import BuildSettings

WEAK = LibraryCapabilities(
    "tensorrt",
    "tensorrt",
    "10.13.0",
    world="weak",
    flags=frozenset(("TF32", "FP16", "INT8", "REFIT", "GPU_FALLBACK", "WEIGHT_STREAMING")),
    tactic_sources=frozenset(("CUBLAS", "CUDNN")),
    has=frozenset(
        (
            "IBuilderConfig.builder_optimization_level",
            "IBuilderConfig.set_tactic_sources",
            "IBuilderConfig.hardware_compatibility_level",
            "HardwareCompatibilityLevel.AMPERE_PLUS",
            "IBuilderConfig.set_compute_capability",
            "IBuilderConfig.DLA_core",
            "NetworkDefinitionCreationFlag.STRONGLY_TYPED",
        )
    ),
    compute_capabilities=("8.9",),
)
STRONG = LibraryCapabilities(
    "x", "tensorrt_rtx", "1.7", world="strong", flags=frozenset(("TF32", "FP16"))
)


def settings(**values: object) -> BuildSettings:
    return BuildSettings(Path("m.onnx"), **values)  # type: ignore[arg-type]


def test_what_a_library_lacks_is_greyed_with_the_reason() -> None:
    found = reasons(WEAK)
    assert not {"fp16", "int8", "tf32", "optimization_level", "typing"} & set(found)
    assert found["bf16"] == "TensorRT 10.13.0 has no such flag"
    assert found["tiling_level"] == "TensorRT 10.13.0 cannot do this"
    found = reasons(STRONG)
    assert found["fp16"] == found["int8"] == "types come from the model"
    assert found["calibration_cache"] == "nothing is calibrated"
    assert found["typing"] == "always strongly typed"
    assert "layer_precision" not in found
    assert "tf32" not in found
    assert reasons(LibraryCapabilities("tensorrt", "tensorrt", why="not installed")) == {}


def test_every_reason_is_of_a_setting() -> None:
    names = {field for field in BuildSettings.__dataclass_fields__}
    assert set(reasons(STRONG)) <= names
    assert set(reasons(LibraryCapabilities("t", "tensorrt"))) <= names


def test_defaults_are_never_refused_and_all_that_is_wrong_at_once() -> None:
    assert refused(settings(), WEAK) == []
    assert refused(settings(), STRONG) == []
    assert refused(settings(), LibraryCapabilities("t", "tensorrt")) == []
    assert len(refused(settings(bf16=True, tiling_level=3, gpu_fallback=True), WEAK)) == 3


@pytest.mark.parametrize("typing", ["strong", "obey"])
def test_what_is_done_anyway_is_not_refused(typing: str) -> None:
    assert refused(settings(typing=typing), STRONG) == []


@pytest.mark.parametrize(
    ("values", "facts", "reason"),
    [
        ({"bf16": True}, WEAK, "--bf16 cannot be used: TensorRT 10.13.0 has no such flag"),
        ({"fp16": True}, STRONG, "--fp16 cannot be used: types come from the model: use dld"),
        ({"int8": True}, STRONG, "quantize it beforehand"),
        ({"typing": "prefer"}, STRONG, "--typing cannot be used"),
        ({"hardware_compatible": "same_compute_capability"}, WEAK, "lacks it"),
        ({"tactic_sources": ("+NONSENSE",)}, WEAK, "has CUBLAS, CUDNN"),
        ({"refit": "strip"}, WEAK, "cannot leave weights out"),
        ({"compute_capability": ("9.9",)}, WEAK, "builds for 8.9"),
        ({"gpu_fallback": True}, WEAK, "is for --dla-core"),
        ({"weight_streaming": True}, WEAK, "needs --typing strong"),
        ({"typing": "strong", "fp16": True}, WEAK, "cannot be used with --typing strong"),
    ],
)
def test_what_cannot_be_done_is_refused(
    values: dict[str, object], facts: LibraryCapabilities, reason: str
) -> None:
    problems = refused(settings(**values), facts)
    assert len(problems) == 1
    assert reason in problems[0]


def test_what_rtx_takes_and_does_not_heed_is_refused() -> None:
    """Its config has the attribute, and an engine is the same with it and without."""
    rtx = replace(WEAK, name="tensorrt_rtx", module="tensorrt_rtx", has=WEAK.has | {
        "HardwareCompatibilityLevel.AMPERE_PLUS", "IBuilderConfig.hardware_compatibility_level",
    })  # fmt: skip
    assert "hardware_compatible" in reasons(rtx)
    (problem,) = refused(settings(hardware_compatible="ampere_plus"), rtx)
    assert problem.startswith("--hardware-compatible cannot be used: TensorRT-RTX")
    assert "--compute-capability" in problem
    assert refused(settings(), rtx) == []


def test_facts_come_back_from_json() -> None:
    facts = LibraryCapabilities(
        "/opt/trt",
        "tensorrt",
        "10.13.0.35",
        "/opt/trt/tensorrt",
        "weak",
        frozenset({"FP16", "TF32"}),
        frozenset({"WORKSPACE"}),
        frozenset({"CUBLAS"}),
        frozenset({"ILayer.precision"}),
        ("8.9",),
        no_driver="there is no NVIDIA driver",
        extra={"parser": 3},
    )
    assert decode(LibraryCapabilities, json.loads(json.dumps(encode(facts)))) == facts
    assert facts.usable
    assert facts.title == "TensorRT 10.13.0.35"
    assert facts.version_numbers == (10, 13, 0, 35)


def test_a_reason_makes_it_unusable() -> None:
    facts = LibraryCapabilities("tensorrt", "tensorrt", why="not installed")
    assert not facts.usable
    assert facts.title == "TensorRT"
    assert facts.version_numbers == ()
    assert LibraryCapabilities("x", "x", "10.1rc").version_numbers == ()
