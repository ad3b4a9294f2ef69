"""What only a GPU with TensorRT can show. Skipped with the reason where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile.tensorrt import Request, run
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Finished
from dld_tui.core.report.report import open_report
from tests.support.engines import write_model


def why_not() -> str:
    """Return why no engine can be run here; empty where one can."""
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


pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def needs_an_engine_that_runs() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.mark.parametrize("graph", [False, True])
def test_a_small_model_is_measured(tmp_path: Path, graph: bool) -> None:
    model, report = write_model(tmp_path / "small.onnx"), tmp_path / "small.dldprof"
    settings: dict[str, Any] = {"iterations": 50, "duration": 0.0, "use_cuda_graph": graph}
    *_, last = run(Request(model=model, report=report, **settings))

    assert isinstance(last, Finished)
    with open_report(report) as opened:
        assert len(opened.latencies) == 50
        assert opened.settings["cuda_graph_used"] is graph
        assert opened.layers
        assert any(layer.nodes for layer in opened.layers)
        phases: Any = opened.properties["phases_ms"]
        assert 0 < phases["compute"]["median"] < 100
