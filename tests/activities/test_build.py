from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.activities.build import Request, run
from dld_tui.backends.tensorrt.library import probe
from dld_tui.core.errors import ActivityError, CancelledError, UnavailableError, UsageError
from dld_tui.core.events import Log, Progress
from dld_tui.core.files.recognise import engine_header
from dld_tui.core.model.document.metadata import PRECISION_KEY
from dld_tui.targets.process import LocalTarget
from tests.support import models
from tests.support.rtx import build, needs_rtx, own_library

pytestmark = [*needs_rtx, pytest.mark.usefixtures("replaces_all")]

FIXED = models.CHAIN.replace("[N, 4]", "[2, 4]")


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


def weighted(folder: Path, blocks: int = 2, size: int = 64) -> Path:
    """Write a model of matrix products with weights."""
    weights = ", ".join(f"float[{size}, {size}] w{at}" for at in range(blocks))
    nodes = " ".join(
        f"[mm{at}] m{at} = MatMul (t{at}, w{at}) [tanh{at}] t{at + 1} = Tanh (m{at})"
        for at in range(blocks)
    )
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    weighted (float[4, {size}] t0) => (float[4, {size}] t{blocks}) <{weights}> {{ {nodes} }}"""
    return models.write_weighted(folder, text, "weighted.onnx")


def test_a_fixed_model(tmp_path: Path) -> None:
    model = models.write(tmp_path, FIXED)
    engine = tmp_path / "out" / "m.engine"
    engine.parent.mkdir()
    result, events = build(model, engine)
    assert result["engine"] == str(engine)
    header = engine_header(engine.read_bytes()[:36])
    assert header is not None
    assert header.product == "TensorRT-RTX"
    assert result["bytes"] == engine.stat().st_size
    record = json.loads((tmp_path / "out" / "m.build.json").read_bytes())
    assert record["library"]["name"] == "tensorrt_rtx"
    assert record["strongly_typed"] is True
    assert record["model"]["nodes"] == 4
    assert record["settings"]["model"] == str(model)
    assert record["profiles"] == []
    assert record["environment"]["tensorrt-rtx-cu13"]
    assert record["log_tail"]
    assert "[V]" in (tmp_path / "out" / "m.build.log").read_text()
    assert any(isinstance(event, Log) and "Building with" in event.text for event in events)
    if result["layer_info"] is None:
        assert "driver" in str(result["layer_info_problem"])
        assert not (tmp_path / "out" / "m.trt.json").exists()
    else:
        assert json.loads((tmp_path / "out" / "m.trt.json").read_bytes())


def test_profiles_of_the_command_and_of_the_model(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    engine = tmp_path / "m.engine"
    shapes = {"min": ("x:1x4", "x:16x4"), "opt": ("x:2x4", "x:24x4"), "max": ("x:8x4", "x:32x4")}
    build(path, engine, **{f"{name}_shapes": given for name, given in shapes.items()})
    record = json.loads((tmp_path / "m.build.json").read_bytes())
    assert [profile["x"]["max"] for profile in record["profiles"]] == [[8, 4], [32, 4]]

    model = onnx.load(path)
    found = {"x": {"min": [1, 4], "opt": [3, 4], "max": [5, 4]}}
    model.metadata_props.add(key="dld.profiles", value=json.dumps([found]))
    path.write_bytes(model.SerializeToString())
    build(path, engine)
    assert json.loads((tmp_path / "m.build.json").read_bytes())["profiles"] == [found]

    other: Any
    other, _ = build(models.write(tmp_path, models.CHAIN, "other.onnx"), engine)
    assert other["guess"][0]["shape"] == [1, 4]
    assert other["guess"][0]["why"] == "batch 1 by its name N"


def test_weights_may_be_left_out(tmp_path: Path) -> None:
    path = weighted(tmp_path, blocks=2, size=256)
    full, _ = build(path, tmp_path / "full.engine")
    engine = tmp_path / "stripped.engine"
    with own_library():
        has_driver = not probe("tensorrt_rtx").no_driver
    if not has_driver:  # TensorRT-RTX builds engines that can be refitted on a GPU only
        with pytest.raises(UnavailableError, match="needs an NVIDIA driver and GPU"):
            build(path, engine, refit="strip")
        assert not engine.exists()
        return
    stripped, _ = build(path, engine, refit="strip")
    assert int(str(full["bytes"])) - int(str(stripped["bytes"])) > 2 * 256 * 256 * 4 // 2


def test_compute_capabilities(tmp_path: Path) -> None:
    path = weighted(tmp_path)
    one, _ = build(path, tmp_path / "one.engine", compute_capability=("8.9",))
    two, _ = build(path, tmp_path / "two.engine", compute_capability=("8.9,12.0",))
    assert int(str(two["bytes"])) > int(str(one["bytes"]))
    with pytest.raises(UsageError, match=r"9\.0"):
        build(path, tmp_path / "no.engine", compute_capability=("9.0",))
    assert not (tmp_path / "no.engine").exists()


def test_precisions_in_the_model_become_casts(tmp_path: Path) -> None:
    path = weighted(tmp_path)
    model = onnx.load(path)
    model.graph.node[2].metadata_props.add(key=PRECISION_KEY, value="fp16")
    path.write_bytes(model.SerializeToString())
    before = path.read_bytes()
    result, events = build(path, tmp_path / "m.engine")
    assert result["bytes"]
    record = json.loads((tmp_path / "m.build.json").read_bytes())
    assert record["retyping"]["casts"] >= 2
    assert any(isinstance(event, Log) and "cast" in event.text for event in events)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".dld-view-*"))


def test_external_data(tmp_path: Path) -> None:
    path = weighted(tmp_path)
    onnx.save(
        onnx.load(path), tmp_path / "e.onnx", save_as_external_data=True, location="e.data",
        size_threshold=0,
    )  # fmt: skip
    path.unlink()
    result, _ = build(tmp_path / "e.onnx", tmp_path / "e.engine")
    assert result["bytes"]
    (tmp_path / "e.data").unlink()
    with pytest.raises(ActivityError, match="initializer 'w0' cannot be read"):
        build(tmp_path / "e.onnx", tmp_path / "e.engine")


def test_an_unknown_operator_names_its_node(tmp_path: Path) -> None:
    text = FIXED.replace("[third] c = Mul(b, b)", "[third] c = moon.Lander(b)").replace(
        '"" : 18', '"" : 18, "moon" : 1'
    )
    path = models.write(tmp_path, text)
    with pytest.raises(ActivityError, match="unknown operator or plugin Lander") as caught:
        build(path, tmp_path / "m.engine")
    error = caught.value
    assert (error.where or "").endswith(": node 'third' (Lander, number 2)")
    assert error.finding is not None
    assert (error.finding.scope, error.finding.node) == ((), "third")
    assert not (tmp_path / "m.engine").exists()
    assert "Lander" in (tmp_path / "m.build.log").read_text()


def test_an_unknown_operator_inside_a_branch(tmp_path: Path) -> None:
    text = models.PLAIN_BRANCHES.replace("[N, 4]", "[2, 4]").replace(
        "[inner] h = Neg(a)", "[inner] h = moon.Lander(a)"
    )
    path = models.write(tmp_path, text.replace('"" : 18', '"" : 18, "moon" : 1'))
    with pytest.raises(ActivityError, match="unknown operator or plugin Lander") as caught:
        build(path, tmp_path / "m.engine")
    assert caught.value.finding is not None
    assert caught.value.finding.scope == ("choose:then_branch",)
    assert caught.value.finding.node == "inner"


def test_hostile_names(tmp_path: Path) -> None:
    model = models.parse(FIXED)
    for number, node in enumerate(model.graph.node):
        node.name = f"\x1b]0;t\x07[{number}] + {{x}} | ../..\n%s"
    path = tmp_path / "m\x1b[1m.onnx"
    path.write_bytes(model.SerializeToString())
    result, events = build(path, tmp_path / "e\x1b[1m.engine")
    assert result["bytes"]
    said = "".join(event.text for event in events if isinstance(event, Log))
    assert "\x1b" not in said


def test_phases_come_as_a_tree(tmp_path: Path) -> None:
    _, events = build(weighted(tmp_path, blocks=60, size=96), tmp_path / "m.engine")
    trees = [event for event in events if isinstance(event, Progress) and event.phases]
    assert trees
    assert all(event.total and 0 <= event.done <= event.total for event in trees)


def test_closing_it_in_the_middle_stops_the_build(tmp_path: Path) -> None:
    engine = tmp_path / "m.engine"
    path = weighted(tmp_path, blocks=300, size=64)
    with own_library(), contextlib.closing(run(Request(path, engine, "tensorrt_rtx"))) as events:  # type: ignore[type-var]
        for event in events:
            if isinstance(event, Progress) and event.unit == "steps":
                break
        else:
            pytest.fail("the build told of no phase")
    assert not engine.exists()
    assert not (tmp_path / "m.build.json").exists()
    assert "cancel" in (tmp_path / "m.build.log").read_text().lower()


def test_a_worker_stops_when_it_is_asked(tmp_path: Path) -> None:
    path = weighted(tmp_path, blocks=300, size=64)
    engine = tmp_path / "m.engine"
    request = {"model": str(path), "output": str(engine), "library": "tensorrt_rtx"}
    with LocalTarget().start("build", request) as job:

        def stop(event: object) -> None:
            if isinstance(event, Progress) and event.unit == "steps":
                job.cancel()

        with pytest.raises(CancelledError):
            job.result(stop)
    assert not engine.exists()


def test_an_engine_that_was_there_stays_when_a_build_fails(tmp_path: Path) -> None:
    engine = tmp_path / "m.engine"
    engine.write_bytes(b"old")
    path = models.write(tmp_path, FIXED.replace("Sigmoid(c)", "NonMaxSuppression(c)"))
    with pytest.raises(ActivityError):
        build(path, engine)
    assert engine.read_bytes() == b"old"
