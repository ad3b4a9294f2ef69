"""Which packages an activity needs on a target, and which of them may be installed there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dld_tui.core.accuracy.greying import needs_tensorrt
from dld_tui.core.tensorrt.facts import AUTO
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
    otherwise: Needs | None = None
    """What serves as well, where something is missing that a person has to install."""

    def key(self, python: str) -> str:
        """Return the name of the note that all of it is there."""
        words = [_NOTES, python, self.flavour, *(need.requirement for need in self.modules)]
        if self.otherwise is not None:
            words.append(self.otherwise.key(python))
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:24]


_NOTES = "2"
"""The version of the rules by which notes are made; a note of other rules does not count."""
_NUMPY = Need("numpy", ("numpy",), "2.2")
_ONNX = Need("onnx", ("onnx",), "1.19")
_PROTOBUF = Need("google.protobuf", ("protobuf",), "4.25")
_BASE = (_NUMPY, _ONNX, _PROTOBUF)
_ORT_CPU = Need("onnxruntime", ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino"), "1.23")
_ORT_GPU = Need("onnxruntime", ("onnxruntime-gpu",), "1.23")
_CUPTI = Need("cupti", ("cupti-python",), "13.0", optional=True)
_CUPTI_LIBRARY = Need("nvidia.cuda_cupti", ("nvidia-cuda-cupti",), "13.0", optional=True)
_NVML = Need("pynvml", ("nvidia-ml-py",), "13", optional=True)
_GPU_TOOLS = (_CUPTI, _CUPTI_LIBRARY, _NVML)
_TENSORRT = Need(
    "tensorrt",
    ("tensorrt",),
    "10",
    fix="Install NVIDIA's there: sudo apt install python3-libnvinfer, or pip install tensorrt",
)
_RTX = Need("tensorrt_rtx", ("tensorrt-rtx-cu13",), "1.1")
_POLYGRAPHY = Need("polygraphy", ("polygraphy",), "0.53")
_LINT = replace(_POLYGRAPHY, optional=True)
_SURGEON = Need("onnx_graphsurgeon", ("onnx-graphsurgeon",), "0.6")
_FLOAT16 = Need("onnxconverter_common", ("onnxconverter-common",))
_ON_CUDA = ("cuda", "tensorrt", "nv")
"""Parts of the names of the providers that onnxruntime-gpu has."""


def needs_of(activity_id: str, request: Mapping[str, JSON]) -> Needs:
    """Return what an activity needs for a request; what the request does not say is the default."""
    return NEEDS.get(activity_id, _document)(request)


def _nothing(request: Mapping[str, JSON]) -> Needs:
    return Needs((), "")


def _document(request: Mapping[str, JSON]) -> Needs:
    return Needs(_BASE, "cpu")


def _onnxruntime(request: Mapping[str, JSON]) -> Needs:
    """Return what sessions with the providers of a request need."""
    providers = f"{request.get('provider', '')},{request.get('against_provider', '')}".lower()
    if any(name in providers for name in _ON_CUDA):
        return Needs((*_BASE, _ORT_GPU), "gpu")
    return Needs((*_BASE, _ORT_CPU), "cpu")


def _profile_onnxruntime(request: Mapping[str, JSON]) -> Needs:
    needs = _onnxruntime(request)
    return replace(needs, modules=(*needs.modules, *(_GPU_TOOLS if needs.flavour == "gpu" else ())))


def _tensorrt(request: Mapping[str, JSON], more: tuple[Need, ...] = ()) -> Needs:
    """Return what the library of a request needs, and more; a folder of a library needs no module.

    A request for any library is for TensorRT where it is there, else for TensorRT-RTX, which can be
    installed without the system's help.
    """
    library = request.get("library") or AUTO
    rtx = Needs((*_BASE, _RTX, *more), "rtx")
    if library == "tensorrt_rtx":
        return rtx
    if library == AUTO:
        return Needs((*_BASE, _TENSORRT, *more), "gpu", otherwise=rtx)
    return Needs((*_BASE, *([_TENSORRT] if library == "tensorrt" else []), *more), "gpu")


def _tensorrt_measured(request: Mapping[str, JSON]) -> Needs:
    return _tensorrt(request, _GPU_TOOLS)


def _both(request: Mapping[str, JSON]) -> Needs:
    """Return what TensorRT needs, and what computes the values that are right."""
    with_cuda = _onnxruntime(request).flavour == "gpu"
    return _tensorrt(request, (_ORT_GPU if with_cuda else _ORT_CPU,))


def _accuracy(request: Mapping[str, JSON]) -> Needs:
    return _both(request) if needs_tensorrt(request) else _onnxruntime(request)


def _search(request: Mapping[str, JSON]) -> Needs:
    return _both(request) if request.get("backend") == "tensorrt" else _onnxruntime(request)


def _convert_fp16(request: Mapping[str, JSON]) -> Needs:
    by_polygraphy = request.get("library") == "polygraphy"
    more = (_POLYGRAPHY, _SURGEON, _FLOAT16) if by_polygraphy else ()
    return Needs((*_BASE, _ORT_CPU, *more), "cpu")


def _sanitize(request: Mapping[str, JSON]) -> Needs:
    return Needs((*_BASE, _ORT_CPU, _POLYGRAPHY, _SURGEON), "cpu")


def _check_full(request: Mapping[str, JSON]) -> Needs:
    return Needs((*_BASE, _ORT_CPU, _LINT) if request.get("polygraphy") else _BASE, "cpu")


NEEDS: Mapping[str, Callable[[Mapping[str, JSON]], Needs]] = {
    "profile_onnxruntime": _profile_onnxruntime,
    "build_tensorrt": _tensorrt_measured,
    "profile_tensorrt": _tensorrt_measured,
    "refit_engine": _tensorrt_measured,
    "accuracy": _accuracy,
    "search_precision": _search,
    "isolate_tactic": _both,
    "infer_shapes": _document,
    "check_full": _check_full,
    "check_sound": _document,
    "convert_opset": _document,
    "convert_fp16": _convert_fp16,
    "convert_bf16": _onnxruntime,
    "convert_shape": _onnxruntime,
    "convert_sanitize": _sanitize,
    "convert_precisions": _onnxruntime,
    "convert_tensors": _onnxruntime,
    "convert_external": _document,
    "convert_inline": _document,
    "convert_strip": _document,
    "convert_restore": _document,
    "convert_quantize": _onnxruntime,
    "run_tool": _document,
    "tensorrt_libraries": _nothing,
    "doctor": _nothing,
}
"""Of every activity. One that is not here needs what opens a model."""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
