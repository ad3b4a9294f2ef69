"""What only a CUDA GPU can show; the same as scripts/gpu_check.py checks, on a small model."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile.onnxruntime import Request, run
from dld_tui.core.events import Finished
from dld_tui.core.report.report import Report
from tests.support import models


def why_not() -> str:
    """Return why there is no CUDA run here; empty where there is one."""
    for module in ("onnxruntime", "cupti", "pynvml"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    from dld_tui.backends.onnxruntime import runtime

    return "" if "CUDA" in runtime.providers() else "ONNX Runtime has no CUDA here"


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]


def test_every_kernel_is_given_to_its_node(tmp_path: Path) -> None:
    model, output = models.write(tmp_path, models.CHAIN), tmp_path / "r.dldprof"
    settings: dict[str, Any] = {"shape": ("x:4096x4",), "iterations": 50, "layer_passes": 20}
    *_, last = run(Request(model, provider="CUDA", output=output, **settings))

    assert isinstance(last, Finished)
    with Report.open(output) as report:
        sums: Any = report.properties["gpu_check"]
        assert sums["attributed"] > 0
        assert sums["unattributed"] == 0
        assert sums["attributed_us"] + sums["outside_us"] == pytest.approx(sums["kernel_us"])
        assert sum(layer.gpu_time_ms is not None for layer in report.layers) > 0
        assert any(counter.samples for counter in report.counters)
        assert report.environment["gpu_driver"]
