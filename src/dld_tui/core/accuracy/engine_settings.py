"""The engine settings of a comparison, and which of them apply to its two sides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.params import Setting, like, settings_of
from dld_tui.core.tensorrt.availability import reasons
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.tensorrt.run_settings import RunSettings
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.types import ENGINE_SUFFIXES, JSON

PAGE = "TensorRT"
LOADING = ("library", "device", "plugins", "trust")
"""Settings that also matter for an engine that is built already."""
_PRECISION = (
    "typing", "fp16", "bf16", "int8", "fp8", "int4", "layer_precision", "calibration_cache",
    "calibration_inputs",
)  # fmt: skip
_LOW = ("fp16", "bf16", "int8", "fp8", "int4", "tf32", "layer_precision")
_BUILD = {setting.name for setting in settings_of(BuildSettings)}


@dataclass(frozen=True)
class EngineSettings:
    """How TensorRT builds and runs the engines of a comparison."""

    library: str = like(BuildSettings, "library", page=PAGE)
    trust: bool = like(RunSettings, "trust", page=PAGE)
    device: str = like(BuildSettings, "device", page=PAGE)
    plugins: tuple[str, ...] = like(BuildSettings, "plugins", page=PAGE)
    typing: str = like(BuildSettings, "typing", page=PAGE)
    tf32: bool = like(BuildSettings, "tf32", page=PAGE)
    fp16: bool = like(BuildSettings, "fp16", page=PAGE)
    bf16: bool = like(BuildSettings, "bf16", page=PAGE)
    int8: bool = like(BuildSettings, "int8", page=PAGE)
    fp8: bool = like(BuildSettings, "fp8", page=PAGE)
    int4: bool = like(BuildSettings, "int4", page=PAGE)
    layer_precision: tuple[str, ...] = like(BuildSettings, "layer_precision", page=PAGE)
    calibration_cache: Path | None = like(BuildSettings, "calibration_cache", page=PAGE)
    calibration_inputs: Path | None = like(BuildSettings, "calibration_inputs", page=PAGE)
    strict_nans: bool = like(BuildSettings, "strict_nans", page=PAGE)
    optimization_level: int | None = like(BuildSettings, "optimization_level", page=PAGE)
    sparsity: str = like(BuildSettings, "sparsity", page=PAGE)
    tactic_sources: tuple[str, ...] = like(BuildSettings, "tactic_sources", page=PAGE)
    native_instance_norm: bool = like(BuildSettings, "native_instance_norm", page=PAGE)
    workspace: float | None = like(BuildSettings, "workspace", page=PAGE)
    timing_cache: Path | None = like(BuildSettings, "timing_cache", page=PAGE)
    no_timing_cache: bool = like(BuildSettings, "no_timing_cache", page=PAGE)
    min_shapes: tuple[str, ...] = like(BuildSettings, "min_shapes", page=PAGE)
    opt_shapes: tuple[str, ...] = like(BuildSettings, "opt_shapes", page=PAGE)
    max_shapes: tuple[str, ...] = like(BuildSettings, "max_shapes", page=PAGE)

    @property
    def engine_options(self) -> list[str]:
        """The options of these settings that are not at their defaults."""
        return [self._option(setting) for setting in self._given()]

    @property
    def build_options(self) -> list[str]:
        """Those of them that are of no use to an engine that is built already."""
        return [self._option(setting) for setting in self._given() if setting.name not in LOADING]

    def _option(self, setting: Setting) -> str:
        flag = setting.param.spellings[0]
        return f"--no-{flag[2:]}" if getattr(self, setting.name) is False else flag

    def _given(self) -> list[Setting]:
        settings = settings_of(EngineSettings)
        return [setting for setting in settings if getattr(self, setting.name) != setting.default]

    def build_settings(self, model: Path, output: Path, *, plain: bool = False) -> BuildSettings:
        """Return the settings of a build.

        Args:
            output: Where the engine goes.
            plain: Leave the precisions at their defaults.

        Raises:
            UsageError: A value cannot be read.
        """
        names = {setting.name for setting in settings_of(EngineSettings)} & _BUILD
        left_out = _PRECISION if plain else ()
        values = {name: getattr(self, name) for name in names if name not in left_out}
        return BuildSettings(model=model, output=output, **values)


def settings_text(settings: BuildSettings) -> str:
    """Return the settings that differ from the defaults, as ``fp16, optimization-level 5``.

    Values may be untrusted text.
    """
    parts = []
    for setting in settings_of(EngineSettings):
        if setting.name not in _BUILD or setting.name in LOADING:
            continue
        value = getattr(settings, setting.name)
        if value == setting.default:
            continue
        name = setting.param.spellings[0][2:]
        if isinstance(value, bool):
            parts.append(name if value else f"no {name}")
        else:
            shown = " ".join(value) if isinstance(value, tuple) else str(value)
            parts.append(f"{name} {shown}")
    return ", ".join(parts)


def is_low(settings: BuildSettings) -> bool:
    """Return whether a build may compute with fewer digits than float32 has.

    TF32, which is the default, has as many as float16.
    """
    return any(bool(getattr(settings, name)) for name in _LOW)


TENSORRT = "tensorrt"
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
    """Return whether a form's values need TensorRT."""
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


def disabled_settings(
    values: Mapping[str, JSON], capabilities: LibraryCapabilities | None
) -> dict[str, str]:
    """Return why settings of a comparison, or of a precision search, are disabled, by name.

    The texts are short: they appear next to the fields of a form. They are empty for what the
    other values leave without an effect.

    Args:
        values: The values of the form.
        capabilities: Those of the library that runs the engines; None while unknown.
    """
    mine, theirs = _run_by(values)
    engines = is_engine(_path(values, "model")), is_engine(_path(values, "against"))
    is_search = "against_backend" not in values
    disabled: dict[str, str] = {}
    if is_search:
        disabled |= dict.fromkeys(_SEARCHED, "")
    elif mine == TENSORRT:
        disabled |= dict.fromkeys(("provider", "optimization"), "")
    if theirs == TENSORRT:
        disabled |= dict.fromkeys(
            ("against_provider", "against_optimization", "provider_option"), ""
        )
    if engines[0]:
        disabled |= {"backend": "", "tensors": ""}
    if engines[1]:
        disabled |= {"against_backend": "", "round": ""}
    if not any(engines):
        disabled["trust"] = ""
    if _path(values, "inputs") is not None:
        disabled |= dict.fromkeys(("shape", "seed", "sets"), "")
    names = [setting.name for setting in settings_of(EngineSettings) if setting.name != "trust"]
    if TENSORRT not in (mine, theirs):
        return disabled | dict.fromkeys(names, "")
    sides = zip((mine, theirs), engines, strict=True)
    if not any(side == TENSORRT and not is_there for side, is_there in sides):
        return disabled | {name: "" for name in names if name not in LOADING}
    lacking = {} if capabilities is None else reasons(capabilities)
    return disabled | {name: why for name, why in lacking.items() if name in names}


def engine_reasons(
    values: Mapping[str, JSON], capabilities: LibraryCapabilities | None
) -> dict[str, str]:
    """Return why engine settings of a form that has a runtime are disabled, by name.

    They are of no use but to TensorRT, and engines that are built here are trusted.
    """
    names = {setting.name for setting in settings_of(EngineSettings)}
    if values.get("runtime") != TENSORRT:
        return dict.fromkeys(names, "")
    lacking = {} if capabilities is None else reasons(capabilities)
    return {"trust": "", **{name: why for name, why in lacking.items() if name in names}}


def comparison_reasons(
    values: Mapping[str, JSON], capabilities: LibraryCapabilities | None
) -> dict[str, str]:
    """Return :func:`disabled_settings`, and as that of ``""`` why nothing can be compared yet."""
    disabled = disabled_settings(values, capabilities)
    return disabled if has_two_runs(values) else disabled | {"": _NOTHING}


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
