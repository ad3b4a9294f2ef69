"""The settings that a TensorRT library lacks, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.params import settings_of
from dld_tui.core.tensorrt.capabilities import STRONG, LibraryCapabilities
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.tactics import CACHE, reason_against
from dld_tui.core.tensorrt.trtexec_arguments import named_value
from dld_tui.core.types import JSON

TYPES = ("fp16", "bf16", "int8", "fp8", "int4")
FLAGS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name.upper() for name in TYPES},
        "tf32": "TF32",
        "sparsity": "SPARSE_WEIGHTS",
        "refit": "REFIT",
        "version_compatible": "VERSION_COMPATIBLE",
        "exclude_lean_runtime": "EXCLUDE_LEAN_RUNTIME",
        "gpu_fallback": "GPU_FALLBACK",
        "weight_streaming": "WEIGHT_STREAMING",
        "strict_nans": "STRICT_NANS",
        "direct_io": "DIRECT_IO",
        "error_on_cache_miss": "ERROR_ON_TIMING_CACHE_MISS",
        "editable_timing_cache": "EDITABLE_TIMING_CACHE",
        "no_timing_cache": "DISABLE_TIMING_CACHE",
        "no_compilation_cache": "DISABLE_COMPILATION_CACHE",
        "distributive_independence": "DISTRIBUTIVE_INDEPENDENCE",
    }
)
"""The builder flag of a setting."""
MEMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "verbosity": ("IBuilderConfig.profiling_verbosity",),
        "dynamic_plugins": ("IBuilderConfig.plugins_to_serialize",),
        "layer_output_type": ("ILayer.set_output_type",),
        "optimization_level": ("IBuilderConfig.builder_optimization_level",),
        "max_aux_streams": ("IBuilderConfig.max_aux_streams",),
        "avg_timing": ("IBuilderConfig.avg_timing_iterations",),
        "max_tactics": ("IBuilderConfig.max_num_tactics",),
        "tiling_level": ("IBuilderConfig.tiling_optimization_level",),
        "l2_limit": ("IBuilderConfig.l2_limit_for_tiling",),
        "timing_cache": ("IBuilderConfig.create_timing_cache",),
        "workspace": ("IBuilderConfig.set_memory_pool_limit",),
        "memory_pools": ("IBuilderConfig.set_memory_pool_limit",),
        "tactic_sources": ("IBuilderConfig.set_tactic_sources",),
        "preview_features": ("IBuilderConfig.set_preview_feature",),
        "tactic_replay": ("IBuilderConfig.algorithm_selector",),
        "save_tactics": ("IBuilderConfig.algorithm_selector",),
        "native_instance_norm": ("OnnxParserFlag.NATIVE_INSTANCENORM",),
        "plugin_override": ("OnnxParserFlag.ENABLE_PLUGIN_OVERRIDE",),
        "adjust_for_dla": ("OnnxParserFlag.ADJUST_FOR_DLA",),
        "report_dla": ("OnnxParserFlag.REPORT_CAPABILITY_DLA",),
        "dla_uint8": ("OnnxParserFlag.ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA",),
        "build_route": ("IBuilderConfig.build_route",),
        "placeholder_ranges": ("ITensor.set_dynamic_range",),
        "hardware_compatible": ("IBuilderConfig.hardware_compatibility_level",),
        "compute_capability": ("IBuilderConfig.set_compute_capability",),
        "runtime_platform": ("IBuilderConfig.runtime_platform",),
        "dla_core": ("IBuilderConfig.DLA_core",),
        "layer_device": ("IBuilderConfig.set_device_type",),
        "calibration_cache": ("IBuilderConfig.int8_calibrator", "IInt8EntropyCalibrator2"),
        "calibration_inputs": ("IBuilderConfig.int8_calibrator", "IInt8EntropyCalibrator2"),
    }
)
"""Members of the library of which a setting needs one; the first is what it sets."""
_RTX = "tensorrt_rtx"
_DLA_AGAIN = (11, 4, 1)
"""The version that brought the accelerators back on Linux, with JetPack 7.2.2 (NVIDIA, Working with
DLA, 11.4.1)."""
_FOR_DLA = ("adjust_for_dla", "report_dla", "dla_uint8")
_CALIBRATION = ("calibration_cache", "calibration_inputs", "placeholder_ranges")
_GRAPH = "types come from the model"
_TYPED = "always strongly typed"
_NO_CALIBRATION = "nothing is calibrated"
_INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "fp16": "use dld convert fp16, or layer precisions",
        "bf16": "use layer precisions",
        "layer_output_type": "put Cast nodes into it",
        "tactic_replay": "use an edited timing cache, with --editable-timing-cache",
        "save_tactics": "the timing cache has them",
        **dict.fromkeys(("int8", "fp8", "int4", *_CALIBRATION), "quantize it beforehand"),
    }
)
"""What to do where types come from the model."""


def member_of(setting: str) -> str:
    """Return the name of the member that a setting sets, without its class."""
    return MEMBERS[setting][0].partition(".")[2]


def reasons(capabilities: LibraryCapabilities) -> dict[str, str]:
    """Return why settings are not available with a library, by field name; empty if unusable.

    The texts are short: they appear next to the fields of a form.
    """
    if not capabilities.usable:
        return {}
    by_setting = _typing_reasons() if capabilities.world == STRONG else {}
    name = capabilities.title
    for setting, flag in FLAGS.items():
        if flag not in capabilities.flags:
            by_setting.setdefault(setting, f"{name} has no such flag")
    for setting, members in MEMBERS.items():
        if not any(member in capabilities.has for member in members):
            by_setting.setdefault(setting, f"{name} cannot do this")
    if capabilities.module == _RTX:
        by_setting["hardware_compatible"] = "TensorRT-RTX ignores it"
        by_setting["build_route"] = "TensorRT-RTX has no knobs"  # though 1.6 on have the property
    if capabilities.module == "tensorrt" and (11,) <= capabilities.version_numbers < _DLA_AGAIN:
        by_setting.setdefault("dla_core", "none in 11.0 to 11.4.0; 11.4.1 has it on AGX Orin")
    if "dla_core" in by_setting:
        by_setting |= dict.fromkeys(
            ("gpu_fallback", "layer_device", *_FOR_DLA), by_setting["dla_core"]
        )
    if problem := reason_against(CACHE, capabilities):
        by_setting["editable_timing_cache"] = problem
    if not capabilities.tactic_sources:
        by_setting.setdefault("tactic_sources", f"{name} has only one")
    return by_setting


def library_reasons(
    values: Mapping[str, JSON], capabilities: LibraryCapabilities | None
) -> dict[str, str]:
    """Return why settings of a build cannot be used, by field name; none while nothing is known."""
    return reasons(capabilities) if capabilities is not None else {}


def _typing_reasons() -> dict[str, str]:
    """Return what strong typing takes away."""
    types = dict.fromkeys((*TYPES, "layer_output_type"), _GRAPH)
    return {"typing": _TYPED, **types, **dict.fromkeys(_CALIBRATION, _NO_CALIBRATION)}


ON_A_TARGET = "Run it on a target that has a GPU, with --target NAME"


def refused(settings: BuildSettings, capabilities: LibraryCapabilities) -> list[str]:
    """Return requested settings that are not available, as one sentence each with the option.

    Settings at their default value are ignored.
    """
    problems = []
    why = reasons(capabilities)
    for setting in settings_of(BuildSettings):
        name, value = setting.name, getattr(settings, setting.name)
        if name in why and value != setting.default and not _is_harmless(name, value):
            instead = _INSTEAD.get(name) if capabilities.world == STRONG else None
            if name == "hardware_compatible":
                instead = "name the GPUs with --compute-capability"
            reason = f"{why[name]}: {instead}" if instead else why[name]
            problems.append(f"{_flag(setting.param.spellings)} cannot be used: {reason}")
    for check in _CHECKS:
        problems += check(settings, capabilities)
    return problems


def require_available(settings: BuildSettings, capabilities: LibraryCapabilities) -> None:
    """Refuse settings of a build that a library cannot carry out.

    Raises:
        UsageError: Says which, and why.
    """
    if problems := refused(settings, capabilities):
        raise UsageError(f"{capabilities.title}: {'; '.join(problems)}")


def require_driver(capabilities: LibraryCapabilities, hint: str = ON_A_TARGET) -> None:
    """Refuse a library that cannot run engines.

    Raises:
        UnavailableError: There is no driver.
    """
    if capabilities.no_driver:
        message = f"{capabilities.title} cannot run engines here: {capabilities.no_driver}"
        raise UnavailableError(message, hint=hint)


def _is_harmless(name: str, value: Any) -> bool:
    """Return whether a setting that a library lacks equals what the library does anyway."""
    # A strongly typed library obeys the precisions of layers by casts.
    return name == "no_timing_cache" or (name == "typing" and value in ("strong", "obey"))


def _flag(spellings: tuple[str, ...]) -> str:
    return spellings[0] if spellings else "this setting"


def _choices(settings: BuildSettings, capabilities: LibraryCapabilities) -> Iterable[str]:
    level = settings.hardware_compatible.upper()
    if level != "NONE" and f"HardwareCompatibilityLevel.{level}" not in capabilities.has:
        yield f"--hardware-compatible {settings.hardware_compatible}: {capabilities.title} lacks it"
    strongly = settings.typing == "strong" and capabilities.world != STRONG
    if strongly and "NetworkDefinitionCreationFlag.STRONGLY_TYPED" not in capabilities.has:
        yield f"--typing strong: {capabilities.title} lacks it"
    if settings.refit == "strip" and not capabilities.flags & {"STRIP_PLAN", "WEIGHTLESS"}:
        yield f"--refit-mode strip: {capabilities.title} cannot leave weights out"
    for text in settings.compute_capability:
        known = capabilities.compute_capabilities
        if known and text.lower() != "current" and text not in known:
            yield f"--compute-capability {text}: {capabilities.title} builds for {', '.join(known)}"


def _lists(settings: BuildSettings, capabilities: LibraryCapabilities) -> Iterable[str]:
    known = {*capabilities.tactic_sources, "NONE"}
    for source in settings.tactic_sources if capabilities.tactic_sources else ():
        if source.lstrip("+-") not in known:
            listed = ", ".join(sorted(capabilities.tactic_sources))
            yield f"--tactic-source {source}: {capabilities.title} has {listed}"
    for item in settings.preview_features:
        name = item.lstrip("+-").upper()
        if f"PreviewFeature.{name}" not in capabilities.has:
            yield f"--preview-feature {item}: {capabilities.title} has no preview feature {name}"


def _together(settings: BuildSettings, capabilities: LibraryCapabilities) -> Iterable[str]:
    if settings.gpu_fallback and settings.dla_core is None and not settings.layer_device:
        yield "--gpu-fallback is for --dla-core"
    for name in _FOR_DLA:
        if getattr(settings, name) and settings.dla_core is None:
            yield f"--{name.replace('_', '-')} is for --dla-core"
    if settings.exclude_lean_runtime and not settings.version_compatible:
        yield "--exclude-lean-runtime is for --version-compatible"
    weak = capabilities.world != STRONG
    if weak and settings.weight_streaming and settings.typing != "strong":
        yield "--weight-streaming needs --typing strong"
    if weak and settings.typing == "strong":
        asked = [name for name in TYPES if getattr(settings, name)]
        if asked:
            flags = ", ".join(f"--{name}" for name in asked)
            yield f"{flags} cannot be used with --typing strong: types come from the model"
    if settings.placeholder_ranges and not settings.int8:
        yield "--placeholder-ranges is for --int8"
    if settings.placeholder_ranges and (settings.calibration_cache or settings.calibration_inputs):
        yield "--placeholder-ranges is for builds without calibration"
    if settings.editable_timing_cache and settings.no_timing_cache:
        yield "--editable-timing-cache and --no-timing-cache are both given"
    if settings.no_timing_cache and settings.timing_cache is not None:
        yield "--timing-cache and --no-timing-cache are both given"


def _names(settings: BuildSettings, capabilities: LibraryCapabilities) -> Iterable[str]:
    for item in (*settings.layer_precision, *settings.layer_output_type):
        named_value(item)
    for item in settings.layer_device:
        _, device = named_value(item)
        if device.upper() not in ("GPU", "DLA"):
            yield f"--layer-device {item!r}: write NAME:GPU or NAME:DLA"


_CHECKS: tuple[Callable[[BuildSettings, LibraryCapabilities], Iterable[str]], ...] = (
    _choices,
    _lists,
    _together,
    _names,
)
