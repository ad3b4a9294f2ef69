from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile.onnxruntime import Request, run
from dld_tui.core.codec import encode
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Log
from dld_tui.core.report.report import Report
from tests.support import models

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def quick(model: Path, **more: Any) -> Request:
    return Request(model, **{"iterations": 5, "warm_up": 1, "threads": 1, **more})


def profile(request: Request) -> tuple[Finished, list[Event]]:
    *events, last = run(request)
    assert isinstance(last, Finished)
    return last, events


def test_a_free_dimension_gets_its_size(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    finished, _ = profile(quick(model, dim=("N=6",)))

    with Report.open(str(encode(finished.result)["report"])) as report:
        assert report.layers[0].input_dims[0] == (6, 4)
        assert report.settings["dim"] == ["N=6"]
    with pytest.raises(UsageError) as caught:
        list(run(quick(model, dim=("M=6",))))
    assert caught.value.hint == "Dynamic dimensions: N"


def test_io_binding_times_the_copies_on_their_own(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    finished, _ = profile(quick(model, io_binding=True, layer_passes=2))

    with Report.open(str(encode(finished.result)["report"])) as report:
        copies: Any = report.facts["copies"]
        assert copies["input_bytes"] == copies["output_bytes"] == 16
        assert len(report.latencies) == 5
        assert report.layers
        assert any("latency is without copies" in note.text for note in report.notes)


def test_the_optimised_model_is_saved_and_opens(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    target = folder / "optimised.onnx"
    finished, _ = profile(quick(model, optimized_model=target, optimization_level="basic"))

    assert encode(finished.result)["optimized_model"] == str(target)
    with Report.open(str(encode(finished.result)["report"])) as report:
        assert report.facts["optimized_model"] == str(target)
    profile(quick(target))
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".dldprof") == [
        "model.onnx",
        "optimised.onnx",
    ]


def test_an_optimised_model_that_cannot_be_written_fails_nothing(folder: Path) -> None:
    target = folder / "nowhere" / "optimised.onnx"
    finished, events = profile(quick(models.write(folder, models.CHAIN), optimized_model=target))

    assert "optimized_model" not in encode(finished.result)
    assert any("was not saved" in event.text for event in events if isinstance(event, Log))


def test_the_peak_of_memory_is_recorded(folder: Path) -> None:
    finished, _ = profile(quick(models.write(folder, models.CHAIN)))

    with Report.open(str(encode(finished.result)["report"])) as report:
        assert 10**7 < report.facts["peak_memory_bytes"] < 10**11  # type: ignore[operator]
        assert "gpu_memory_bytes" not in report.facts
