"""What a library does not have is greyed and refused, with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dld_tui.core.errors import UsageError
from dld_tui.core.tensorrt.availability import (
    FLAGS,
    MEMBERS,
    library_reasons,
    reasons,
    require_available,
)
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support.recorded import Recorded

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


RTX = replace(WEAK, name="tensorrt_rtx", module="tensorrt_rtx", version="1.6", has=WEAK.has | {
    "IBuilderConfig.build_route",
})  # fmt: skip
ALL = replace(
    WEAK, version="10.16", flags=frozenset(FLAGS.values()),
    has=frozenset({*(name for names in MEMBERS.values() for name in names),
                   "HardwareCompatibilityLevel.AMPERE_PLUS", "PreviewFeature.A_1"}),
)  # fmt: skip
LIBRARIES = {
    "weak": WEAK, "strong": STRONG, "RTX": RTX, "all": ALL,
    "all, strongly typed": replace(ALL, world="strong", version="11.4.1"),
    "11.0": replace(ALL, world="strong", version="11.0"),
    "11.4.0 without DLA": replace(STRONG, module="tensorrt", version="11.4.0"),
    "nothing": LibraryCapabilities("t", "tensorrt"),
    "not installed": LibraryCapabilities("tensorrt", "tensorrt", why="not installed"),
}  # fmt: skip
GIVEN: tuple[dict[str, Any], ...] = (
    {}, *({name: True} for name in ("bf16", "fp16", "int8", "fp8", "int4", "gpu_fallback",
                                    "weight_streaming", "no_timing_cache", "adjust_for_dla",
                                    "exclude_lean_runtime", "placeholder_ranges",
                                    "editable_timing_cache")),
    *({"typing": typing} for typing in ("strong", "obey", "prefer")),
    {"bf16": True, "tiling_level": 3, "gpu_fallback": True},
    {"gpu_fallback": True, "dla_core": 0}, {"gpu_fallback": True, "layer_device": ("a:DLA",)},
    {"dla_uint8": True, "report_dla": True}, {"dla_uint8": True, "dla_core": 1},
    {"exclude_lean_runtime": True, "version_compatible": True},
    {"typing": "strong", "fp16": True, "int8": True},
    {"typing": "strong", "weight_streaming": True},
    {"placeholder_ranges": True, "int8": True},
    {"placeholder_ranges": True, "int8": True, "calibration_cache": Path("c")},
    {"placeholder_ranges": True, "int8": True, "calibration_inputs": Path("c")},
    {"editable_timing_cache": True, "no_timing_cache": True},
    {"no_timing_cache": True, "timing_cache": Path("t")}, {"timing_cache": Path("t")},
    {"hardware_compatible": "ampere_plus"}, {"hardware_compatible": "same_compute_capability"},
    {"tactic_sources": ("+NONSENSE", "-CUDNN", "NONE")}, {"preview_features": ("+a_1", "-b_2")},
    {"refit": "strip"}, {"refit": "all"}, {"compute_capability": ("9.9", "8.9", "Current")},
    {"layer_device": ("a:GPU", "b:dla", "c:TPU")}, {"layer_precision": ("a:fp16",)},
    {"layer_precision": ("fp16",)}, {"layer_output_type": ("a",)}, {"tactic_replay": Path("r")},
)  # fmt: skip


def test_what_libraries_lack_is_greyed_and_refused_with_the_reason(recorded: Recorded) -> None:
    texts = {}
    for title, library in LIBRARIES.items():
        lines = [f"{name}: {why}" for name, why in reasons(library).items()]
        for values in GIVEN:
            try:
                require_available(BuildSettings(Path("m.onnx"), **values), library)
            except UsageError as error:
                lines.append(f"{values}: {error}")
        texts[title] = "\n".join(lines)
    recorded("whole_greying", texts)
    assert set(reasons(STRONG)) <= set(BuildSettings.__dataclass_fields__)
    assert library_reasons({}, STRONG) == reasons(STRONG)
    assert library_reasons({}, None) == {}


def test_a_reason_makes_it_unusable() -> None:
    facts = LibraryCapabilities("tensorrt", "tensorrt", why="not installed")
    assert not facts.usable
    assert facts.title == "TensorRT"
    assert facts.version_numbers == ()
    assert LibraryCapabilities("x", "x", "10.1rc").version_numbers == ()
