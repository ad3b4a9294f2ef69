"""Which packages an activity needs on a target, and which of them may be installed there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Need:
    """A module that an activity imports."""

    module: str
    packages: tuple[str, ...]
    """What may bring it; the first is the one that is installed."""
    oldest: str = ""
    """The oldest version that serves."""
    optional: bool = False
    """Whether the activity also works without, if not as well."""
    fix: str = ""
    """What a person has to do, for what is not installed by us."""

    @property
    def requirement(self) -> str:
        """What is given to pip."""
        return f"{self.packages[0]}>={self.oldest}" if self.oldest else self.packages[0]

    def serves(self, version: str) -> bool:
        """Tell whether a version is new enough; one that does not say is."""
        return not version or _numbers(version) >= _numbers(self.oldest)


@dataclass(frozen=True)
class Needs:
    """What an activity needs, and the kind of environment that holds it."""

    modules: tuple[Need, ...]
    flavour: str
    """``cpu``, ``gpu`` or ``rtx``: onnxruntime and onnxruntime-gpu share one module."""

    def key(self, python: str) -> str:
        """Return the name of the note that all of it is there."""
        text = "\n".join([python, self.flavour, *(need.requirement for need in self.modules)])
        return hashlib.sha256(text.encode()).hexdigest()[:24]


_NUMPY = Need("numpy", ("numpy",), "2.2")
_ONNX = Need("onnx", ("onnx",), "1.19")
_PROTOBUF = Need("google.protobuf", ("protobuf",), "4.25")
_BASE = (_NUMPY, _ONNX, _PROTOBUF)
_ORT_CPU = Need("onnxruntime", ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino"), "1.23")
_ORT_GPU = Need("onnxruntime", ("onnxruntime-gpu",), "1.23")
_CUPTI = Need("cupti", ("cupti-python",), "13.0", optional=True)
_CUPTI_LIBRARY = Need("nvidia.cuda_cupti", ("nvidia-cuda-cupti",), "13.0", optional=True)
_NVML = Need("pynvml", ("nvidia-ml-py",), "13", optional=True)
_TENSORRT = Need(
    "tensorrt",
    ("tensorrt",),
    "10",
    fix="Install NVIDIA's there: sudo apt install python3-libnvinfer, or pip install tensorrt",
)
_RTX = Need("tensorrt_rtx", ("tensorrt-rtx-cu13",), "1.1")
_POLYGRAPHY = Need("polygraphy", ("polygraphy",), "0.53", optional=True)
_TENSORRT_ACTIVITIES = ("build_tensorrt", "profile_tensorrt", "refit_engine")
_NOTHING = ("doctor", "tensorrt_libraries")


def needs_of(activity_id: str, request: Mapping[str, JSON]) -> Needs:
    """Return what an activity needs for a request."""
    if activity_id in _NOTHING:
        return Needs((), "")
    if activity_id == "profile_onnxruntime":
        providers = str(request.get("provider", "")).lower()
        if any(name in providers for name in ("cuda", "tensorrt", "nv")):
            return Needs((*_BASE, _ORT_GPU, _CUPTI, _CUPTI_LIBRARY, _NVML), "gpu")
        return Needs((*_BASE, _ORT_CPU), "cpu")
    if activity_id in _TENSORRT_ACTIVITIES:
        if request.get("library") == "tensorrt_rtx":
            return Needs((*_BASE, _RTX, _CUPTI, _CUPTI_LIBRARY, _NVML), "rtx")
        return Needs((*_BASE, _TENSORRT, _CUPTI, _CUPTI_LIBRARY, _NVML), "gpu")
    if activity_id == "check_full" and request.get("polygraphy"):
        return Needs((*_BASE, _ORT_CPU, _POLYGRAPHY), "cpu")
    return Needs(_BASE, "cpu")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
