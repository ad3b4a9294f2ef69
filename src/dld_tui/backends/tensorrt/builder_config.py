"""From settings to TensorRT's builder configuration.

What the library does not have was refused before (:mod:`dld_tui.core.tensorrt.availability`);
what is left at its default is not touched, so that an older library never hears of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.network import Network, layers, matching_entries, node_names
from dld_tui.core.document.metadata import Profile
from dld_tui.core.errors import UsageError
from dld_tui.core.tensorrt.build_routes import Knobs, parse_routes, read_knobs, route_text
from dld_tui.core.tensorrt.facts import LibraryFacts
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.trtexec_arguments import mebibytes, named_value
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt

_POOLS = {
    "dlasram": "DLA_MANAGED_SRAM",
    "dlalocaldram": "DLA_LOCAL_DRAM",
    "dlaglobaldram": "DLA_GLOBAL_DRAM",
    "tacticdram": "TACTIC_DRAM",
    "tacticsharedmem": "TACTIC_SHARED_MEMORY",
}
"""trtexec's names of memory pools, in lower case."""
_VERBOSITY = {"layer_names": "LAYER_NAMES_ONLY", "detailed": "DETAILED", "none": "NONE"}
_MIB = 1 << 20
_INPUT_RANGE, _OUTPUT_RANGE = 2.0, 4.0
"""As trtexec has them; a concatenation has that of outputs throughout, a pooling that of inputs."""


def configure(
    builder: trt.Builder,
    network: Network,
    settings: BuildSettings,
    profiles: Sequence[Profile],
    library: Library,
) -> trt.IBuilderConfig:
    """Return the configuration of a build, without what the build itself needs.

    Raises:
        UsageError: The library does not have what is asked for.
    """
    if settings.sparsity == "force":
        raise UsageError(
            "--sparsity force: weights are not changed here",
            hint="Prune a copy with polygraphy surgeon prune, and build it with --sparsity enable",
        )
    config = builder.create_builder_config()
    facts = library.facts
    _set_flags(config, network, settings, facts)
    _set_numbers(config, settings, facts)
    _set_pools(config, settings, facts)
    _set_sources(config, settings, facts)
    _set_devices(config, network, settings, facts)
    _set_capabilities(config, settings, facts)
    _set_route(config, settings, facts)
    if settings.placeholder_ranges:
        _set_ranges(network)
    if settings.verbosity != "layer_names":
        kind = _member("ProfilingVerbosity", _VERBOSITY[settings.verbosity], facts)
        config.profiling_verbosity = kind
    if settings.dynamic_plugins:
        config.plugins_to_serialize = list(settings.dynamic_plugins)
    for profile in profiles:
        _add_profile(builder, config, network.network, profile)
    return config


def _member(kind: str, name: str, facts: LibraryFacts) -> Any:
    """Return a member of an enumeration.

    Raises:
        UsageError: The library does not have it.
    """
    member = getattr(getattr(trt, kind, None), name, None)
    if member is None:
        raise UsageError(f"{facts.title} has no {kind} {name}")
    return member


# --- flags ----------------------------------------------------------------------------------------


def flag_names(settings: BuildSettings, strong: bool, flags: frozenset[str]) -> list[str]:
    """Return the builder flags that settings ask for, in a fixed order.

    Args:
        settings: Of the build.
        strong: Whether the network is strongly typed: then no flag allows a type.
        flags: What the library has, for what has other names in other versions.
    """
    types = {
        "FP16": settings.fp16,
        "BF16": settings.bf16,
        "INT8": settings.int8,
        "FP8": settings.fp8,
        "INT4": settings.int4,
        "OBEY_PRECISION_CONSTRAINTS": settings.typing == "obey",
        "PREFER_PRECISION_CONSTRAINTS": settings.typing == "prefer",
    }
    strip = settings.refit == "strip"
    wanted = {
        **({} if strong else types),
        "SPARSE_WEIGHTS": settings.sparsity != "disable",
        "REFIT": settings.refit == "refit",
        "STRIP_PLAN" if "STRIP_PLAN" in flags else "WEIGHTLESS": strip,
        "REFIT_IDENTICAL" if "REFIT_IDENTICAL" in flags else "REFIT": strip,
        "VERSION_COMPATIBLE": settings.version_compatible,
        "EXCLUDE_LEAN_RUNTIME": settings.exclude_lean_runtime,
        "GPU_FALLBACK": settings.gpu_fallback,
        "WEIGHT_STREAMING": settings.weight_streaming,
        "STRICT_NANS": settings.strict_nans,
        "DIRECT_IO": settings.direct_io,
        "ERROR_ON_TIMING_CACHE_MISS": settings.error_on_cache_miss,
        "EDITABLE_TIMING_CACHE": settings.editable_timing_cache,
        "DISABLE_TIMING_CACHE": settings.no_timing_cache,
        "DISABLE_COMPILATION_CACHE": settings.no_compilation_cache,
        "DISTRIBUTIVE_INDEPENDENCE": settings.distributive_independence,
    }
    if settings.refit == "refit":
        wanted["REFIT"] = True
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _set_flags(
    config: trt.IBuilderConfig, network: Network, settings: BuildSettings, facts: LibraryFacts
) -> None:
    for name in flag_names(settings, network.strong, facts.flags):
        if name == "DISABLE_TIMING_CACHE" and name not in facts.flags:
            continue  # there is nothing to disable
        config.set_flag(_member("BuilderFlag", name, facts))
    if not settings.tf32 and "TF32" in facts.flags:
        config.clear_flag(trt.BuilderFlag.TF32)


# --- numbers, memory, tactics ---------------------------------------------------------------------


def _set_numbers(config: trt.IBuilderConfig, settings: BuildSettings, facts: LibraryFacts) -> None:
    values = {
        "builder_optimization_level": settings.optimization_level,
        "max_aux_streams": settings.max_aux_streams,
        "avg_timing_iterations": settings.avg_timing,
        "max_num_tactics": settings.max_tactics,
        "l2_limit_for_tiling": settings.l2_limit,
    }
    for name, value in values.items():
        if value is not None:
            _set(config, name, value, facts)
    if settings.tiling_level is not None:
        level = ("NONE", "FAST", "MODERATE", "FULL")[settings.tiling_level]
        kind = _member("TilingOptimizationLevel", level, facts)
        _set(config, "tiling_optimization_level", kind, facts)
    if settings.hardware_compatible != "none":
        name = settings.hardware_compatible.upper()
        kind = _member("HardwareCompatibilityLevel", name, facts)
        _set(config, "hardware_compatibility_level", kind, facts)
    if settings.runtime_platform != "same_as_build":
        kind = _member("RuntimePlatform", settings.runtime_platform.upper(), facts)
        _set(config, "runtime_platform", kind, facts)


def _set(config: trt.IBuilderConfig, name: str, value: Any, facts: LibraryFacts) -> None:
    if f"IBuilderConfig.{name}" not in facts.has:
        raise UsageError(f"{facts.title} has no {name.replace('_', ' ')}")
    setattr(config, name, value)


def _set_pools(config: trt.IBuilderConfig, settings: BuildSettings, facts: LibraryFacts) -> None:
    if settings.workspace is not None:
        kind = _member("MemoryPoolType", "WORKSPACE", facts)
        config.set_memory_pool_limit(kind, int(settings.workspace * _MIB))
    for item in settings.memory_pools:
        name, size = named_value(item)
        pool = _POOLS.get(name.lower(), name.upper())
        if pool not in facts.pools:
            raise UsageError(
                f"{facts.title} has no memory pool {visible(name)}",
                hint=f"Known: {', '.join(sorted(facts.pools))}",
            )
        limit = int(mebibytes(size) * _MIB)
        config.set_memory_pool_limit(_member("MemoryPoolType", pool, facts), limit)


def tactic_mask(default: int, sources: Iterable[str], numbers: dict[str, int]) -> int:
    """Return the mask of tactic sources.

    Args:
        default: The library's own.
        sources: ``+NAME`` and ``-NAME`` change the default, ``NAME`` alone starts from none.
        numbers: The sources that the library has.

    Raises:
        UsageError: It does not have one.
    """
    items = [item.strip().upper() for item in sources]
    plain = [item for item in items if item[:1] not in "+-"]
    mask = 0 if plain else default
    for item in items:
        name = item.lstrip("+-")
        if name == "NONE":
            continue
        if name not in numbers:
            known = ", ".join(sorted(numbers)) or "none"
            raise UsageError(f"unknown tactic source {visible(name)}", hint=f"Known: {known}")
        bit = 1 << numbers[name]
        mask = mask & ~bit if item.startswith("-") else mask | bit
    return mask


def _set_sources(config: trt.IBuilderConfig, settings: BuildSettings, facts: LibraryFacts) -> None:
    if settings.tactic_sources:
        numbers = {name: int(getattr(trt.TacticSource, name)) for name in facts.tactic_sources}
        default = config.get_tactic_sources()
        config.set_tactic_sources(tactic_mask(default, settings.tactic_sources, numbers))
    for item in settings.preview_features:
        name = item.lstrip("+-").upper()
        kind = _member("PreviewFeature", name, facts)
        config.set_preview_feature(kind, not item.startswith("-"))


def _set_route(config: trt.IBuilderConfig, settings: BuildSettings, facts: LibraryFacts) -> None:
    if not settings.build_route:
        return
    knobs = known_knobs(config, facts)
    fixed = {name: values[0] for name, values in parse_routes(settings.build_route, knobs).items()}
    _set(config, "build_route", route_text(fixed), facts)


def known_knobs(config: trt.IBuilderConfig, facts: LibraryFacts) -> Knobs:
    """Return the knobs of a library's compiler.

    Raises:
        UsageError: It has none.
    """
    text = getattr(config, "all_build_routes", "")
    knobs = read_knobs(text)
    if not knobs.knobs:
        raise UsageError(
            f"{facts.title} has no knobs for build routes",
            hint="TensorRT 11.1 and later have them, but not on Windows, nor TensorRT-RTX",
        )
    return knobs


def _set_ranges(network: Network) -> None:
    """Give each tensor that has no range the one that trtexec would make up."""
    count = 0
    for layer in layers(network.network):
        ends = [
            *(
                (layer.get_input(at), _INPUT_RANGE, "CONCATENATION")
                for at in range(layer.num_inputs)
            ),
            *((layer.get_output(at), _OUTPUT_RANGE, "POOLING") for at in range(layer.num_outputs)),
        ]
        for tensor, limit, turned in ends:
            if tensor is not None and tensor.dynamic_range is None:
                limit = _INPUT_RANGE + _OUTPUT_RANGE - limit if layer.type.name == turned else limit
                tensor.set_dynamic_range(-limit, limit)
                count += 1
    network.remarks.append(
        f"{count} tensors have made-up ranges: time this engine, but do not use its results"
    )


# --- devices --------------------------------------------------------------------------------------


def _set_devices(
    config: trt.IBuilderConfig, network: Network, settings: BuildSettings, facts: LibraryFacts
) -> None:
    if settings.dla_core is not None:
        cores = network.builder.num_DLA_cores
        if settings.dla_core >= cores:
            here = "no DLA core" if not cores else f"DLA cores 0 to {cores - 1}"
            raise UsageError(f"there is no DLA core {settings.dla_core}: the device has {here}")
        config.default_device_type = trt.DeviceType.DLA
        config.DLA_core = settings.dla_core
        if network.strong and not _has_types(network.network, ("HALF", "INT8")):
            network.remarks.append(
                "no tensor of the model is float16 or int8, and the DLA computes in these only:"
                " convert it first, with dld convert fp16 or quantize"
            )
    devices = dict(named_value(item) for item in settings.layer_device)
    missing = set(devices)
    for layer in layers(network.network) if devices else ():
        for name, device in matching_entries(devices, node_names(layer, network.functions)):
            missing.discard(name)
            config.set_device_type(layer, _member("DeviceType", device.upper(), facts))
    for name in sorted(missing):
        network.remarks.append(
            f"no layer has the name '{clip(visible(name), 60)}': its device is not set"
        )


def _has_types(network: trt.INetworkDefinition, names: Sequence[str]) -> bool:
    return any(
        layer.get_output(at).dtype.name in names
        for layer in layers(network)
        for at in range(layer.num_outputs)
    )


def _set_capabilities(
    config: trt.IBuilderConfig, settings: BuildSettings, facts: LibraryFacts
) -> None:
    if not settings.compute_capability:
        return
    if "IBuilderConfig.set_compute_capability" not in facts.has:
        raise UsageError(f"{facts.title} builds only for the device that it runs on")
    kinds = []
    for text in settings.compute_capability:
        if text.lower() != "current" and text not in facts.compute_capabilities:
            known = ", ".join(facts.compute_capabilities)
            raise UsageError(
                f"{facts.title} does not build for compute capability {visible(text)}",
                hint=f"It builds for {known}",
            )
        name = "CURRENT" if text.lower() == "current" else f"SM{text.replace('.', '')}"
        kinds.append(_member("ComputeCapability", name, facts))
    target: Any = config  # TensorRT-RTX alone has these
    target.num_compute_capabilities = len(kinds)
    for index, kind in enumerate(kinds):
        target.set_compute_capability(kind, index)


# --- optimization profiles ------------------------------------------------------------------------


def _add_profile(
    builder: trt.Builder,
    config: trt.IBuilderConfig,
    network: trt.INetworkDefinition,
    profile: Profile,
) -> None:
    added = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        limits = profile.get(tensor.name)
        if limits is None:
            continue
        if tensor.is_shape_tensor:
            added.set_shape_input(tensor.name, list(limits.min), list(limits.opt), list(limits.max))
        else:
            shapes: Any = (limits.min, limits.opt, limits.max)  # tuples become Dims
            added.set_shape(tensor.name, *shapes)
    if config.add_optimization_profile(added) < 0:
        names = ", ".join(clip(visible(name), 40) for name in profile)
        raise UsageError(f"the library rejects the optimization profile of {names}")
