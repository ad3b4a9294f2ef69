"""What only a GPU can show; skipped with the reason where there is none."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile import onnxruntime, tensorrt
from dld_tui.core.errors import UnavailableError
from dld_tui.core.report.report import open_report
from tests.support import models
from tests.support.activities import finished
from tests.support.engines import write_model

pytestmark = pytest.mark.gpu


def why_no_cuda() -> str:
    for module in ("onnxruntime", "cupti", "pynvml"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    from dld_tui.backends.onnxruntime import runtime

    return "" if "CUDA" in runtime.providers() else "ONNX Runtime has no CUDA here"


def why_no_engine_runs() -> str:
    from dld_tui.backends.tensorrt.cuda import Cuda
    from dld_tui.backends.tensorrt.library import find_library

    try:
        cuda = Cuda()
        number = str(cuda.environment()["gpu_compute_capability"])
        cuda.close()
        capabilities = find_library().capabilities
    except UnavailableError as error:
        return error.message
    if capabilities.compute_capabilities and number not in capabilities.compute_capabilities:
        return f"{capabilities.title} does not run on compute capability {number}"
    return capabilities.no_driver


def test_every_kernel_is_given_to_its_node(tmp_path: Path) -> None:
    """The same as scripts/gpu_check.py checks, on a small model."""
    if reason := why_no_cuda():
        pytest.skip(reason)
    model, output = models.write(tmp_path, models.CHAIN), tmp_path / "r.dldprof"
    settings: dict[str, Any] = {"shape": ("x:4096x4",), "iterations": 50, "layer_passes": 20}
    request = onnxruntime.Request(model, provider="CUDA", output=output, **settings)
    finished(onnxruntime.run(request))
    with open_report(output) as report:
        sums: Any = report.properties["gpu_check"]
        assert sums["attributed"] > 0
        assert sums["unattributed"] == 0
        assert sums["attributed_us"] + sums["outside_us"] == pytest.approx(sums["kernel_us"])
        assert sum(layer.gpu_time_ms is not None for layer in report.layers) > 0
        assert any(counter.samples for counter in report.counters)
        assert report.environment["gpu_driver"]


@pytest.mark.parametrize("graph", [False, True])
def test_a_small_engine_is_measured(tmp_path: Path, graph: bool) -> None:
    if reason := why_no_engine_runs():
        pytest.skip(reason)
    model, output = write_model(tmp_path / "small.onnx"), tmp_path / "small.dldprof"
    settings: dict[str, Any] = {"iterations": 50, "duration": 0.0, "use_cuda_graph": graph}
    finished(tensorrt.run(tensorrt.Request(model=model, report=output, **settings)))
    with open_report(output) as report:
        assert len(report.latencies) == 50
        assert report.settings["cuda_graph_used"] is graph
        assert report.layers
        assert any(layer.nodes for layer in report.layers)
        phases: Any = report.properties["phases_ms"]
        assert 0 < phases["compute"]["median"] < 100
