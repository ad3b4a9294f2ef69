"""The one declaration of what can be set for a build, and for a measurement, with TensorRT.

The fields are in ``settings_*.py``, one class a page of the form. Values given in the ways of
trtexec and Polygraphy become the plain form when a request is made, so that its users see one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.errors import UsageError
from dld_tui.core.tensorrt.settings_builder import MemorySettings, OptimizerSettings, RefitSettings
from dld_tui.core.tensorrt.settings_measure import MeasureSettings
from dld_tui.core.tensorrt.settings_model import CommonSettings, DeviceSettings, ProfileSettings
from dld_tui.core.tensorrt.settings_tactics import PrecisionSettings, TacticSettings
from dld_tui.core.tensorrt.shape_texts import plain_texts, split_profile
from dld_tui.core.tensorrt.values import device_text, mebibytes, split_items

__all__ = ["SHAPES", "BuildSettings", "MeasureSettings"]

SHAPES = ("min_shapes", "opt_shapes", "max_shapes")
_LISTS = (
    "input_formats",
    "output_formats",
    "layer_precision",
    "layer_output_type",
    "layer_device",
    "tactic_sources",
    "memory_pools",
    "preview_features",
    "compute_capability",
)
"""Settings whose items may be separated by commas in one text, as trtexec takes them."""


# The fields of the last base come first.
@dataclass(frozen=True)
class BuildSettings(
    DeviceSettings,
    RefitSettings,
    MemorySettings,
    OptimizerSettings,
    TacticSettings,
    ProfileSettings,
    PrecisionSettings,
    CommonSettings,
):
    """All settings of a build."""

    def __post_init__(self) -> None:
        """Bring the values to their plain form.

        Raises:
            UsageError: A size, a list or a device cannot be read.
        """
        for name in _LISTS:
            texts: tuple[str, ...] = getattr(self, name)
            items = tuple(item for text in texts for item in split_items(text))
            object.__setattr__(self, name, items)
        for name in SHAPES:
            flag = f"--{name.replace('_', '-')}"
            object.__setattr__(self, name, plain_texts(getattr(self, name), flag))
        object.__setattr__(self, "device", device_text(self.device))
        sources = tuple(source.upper() for source in self.tactic_sources)
        object.__setattr__(self, "tactic_sources", sources)
        self._take_workspace()

    def _take_workspace(self) -> None:
        others = []
        for pool in self.memory_pools:
            name, colon, size = pool.partition(":")
            if not colon or not name:
                raise UsageError(f"--memory-pool {pool!r} is not a pool", hint="Write POOL:SIZE")
            if name.strip().lower() == "workspace":
                object.__setattr__(self, "workspace", mebibytes(size))
            else:
                mebibytes(size)
                others.append(pool)
        object.__setattr__(self, "memory_pools", tuple(others))

    @property
    def shape_profiles(self) -> list[dict[str, tuple[str, ...]]]:
        """The shapes of the command by setting, one dictionary a profile."""
        profiles: dict[int, dict[str, tuple[str, ...]]] = {}
        for name in SHAPES:
            for text in getattr(self, name):
                number, shape = split_profile(text)
                found = profiles.setdefault(number or 0, {})
                found[name] = (*found.get(name, ()), shape)
        return [profiles.get(number, {}) for number in range(max(profiles, default=-1) + 1)]

    @property
    def engine_path(self) -> Path:
        """Where the engine goes."""
        return self.output or Path(f"{self.model.stem}.engine")

    @property
    def layer_info_path(self) -> Path:
        """Where the layers of the engine go."""
        return self.layer_info or self.engine_path.with_suffix(".trt.json")
