"""Which provider ONNX Runtime assigns each node of a model to, asked in a fork within limits.

The model is a view (:mod:`dld_tui.core.files.model_set`) whose nodes have labels as names. Nodes
keep their names only where nothing is optimized, so that is how it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import onnx

from dld_tui.backends.onnxruntime.runtime import find_fault
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.startup import node_placements
from dld_tui.backends.onnxruntime.verdict import external_bytes
from dld_tui.core.errors import ActivityError, DldError
from dld_tui.core.model.operators.native import trial_limits
from dld_tui.core.process.child import CrashError, LimitError, Limits, RefusedError, compute

_BUILDERS = ("Tensorrt", "NvTensorRTRTX")
"""Providers that build engines, as fast as they can for this."""
_FAST = {"Tensorrt": {"trt_builder_optimization_level": "0"}}
_BUILD_S = 120.0


def assignment(
    view: Path, provider: str, options: Mapping[str, str], libraries: Sequence[Path]
) -> dict[str, tuple[str, str]]:
    """Return provider and reason for each node by its name; the CPU is behind the provider.

    Args:
        view: The file.
        provider: Its short name.
        options: Of the provider.
        libraries: Of plug-in providers.

    Raises:
        ActivityError: There is no answer; says why.
    """
    weight_bytes = external_bytes(onnx.ModelProto.FromString(view.read_bytes()))
    limits = trial_limits(view.stat().st_size, weight_bytes)
    if provider in _BUILDERS:
        limits = Limits(limits.seconds + _BUILD_S, 1 << 45)  # CUDA reserves address space
    settings = SessionSettings(
        providers=tuple(dict.fromkeys((provider, "CPU"))),
        provider_options={provider: {**_FAST.get(provider, {}), **options}},
        optimization_level="disabled",
        provider_libraries=tuple(libraries),
        config={"session.disable_prepacking": "1"},
        quiet=True,
    )
    try:
        data = json.loads(compute(partial(_answer, view, settings), limits))
    except LimitError as error:
        what = "memory" if error.what == "memory" else f"time ({limits.seconds:.0f} s)"
        raise ActivityError(f"no session within the limit of {what}") from None
    except CrashError as error:
        raise ActivityError(f"ONNX Runtime ended ({error})") from None
    except RefusedError as error:
        raise ActivityError(find_fault(str(error))) from None
    if "fault" in data:
        raise ActivityError(str(data["fault"]))
    nodes: list[tuple[str, str, str]] = data["nodes"]
    if not nodes:
        raise ActivityError("this ONNX Runtime does not report assignments; 1.24 and later do")
    return {name: (owner, reason) for name, owner, reason in nodes}


def _answer(view: Path, settings: SessionSettings) -> bytes:
    try:
        placed = node_placements(view, settings)
    except DldError as error:
        return json.dumps({"fault": error.message}).encode()
    return json.dumps({"nodes": [(n.node, n.provider, n.reason) for n in placed]}).encode()
