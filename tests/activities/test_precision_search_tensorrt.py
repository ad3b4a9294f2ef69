"""A precision search whose trials are engines, with the fakes of TensorRT and CUDA; no GPU."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.activities.accuracy.search import Request, run
from dld_tui.backends.tensorrt import builder
from dld_tui.backends.tensorrt import library as tensorrt_library
from dld_tui.backends.tensorrt.library import Library, use
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, UnavailableError
from dld_tui.core.events import Event, Progress
from tests.support import models
from tests.support.activities import finished
from tests.support.conversions import OVERFLOWS
from tests.support.fake_machine import install
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED
from tests.support.jobs import texts

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx.reference")
BOTH = pytest.mark.parametrize("version", [WEAKLY_TYPED, STRONGLY_TYPED], ids=["weak", "strong"])


class World:
    """A fake library, and a model two of whose nodes cannot be in fp16."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str):
        self.trt = install(monkeypatch, version)
        if version == WEAKLY_TYPED:
            self.trt.fake.values = self.value
        self.model = models.write(folder, OVERFLOWS)
        monkeypatch.setenv("NV_DLD_CACHE_DIR", str(folder / "cache"))

    def value(self, name: str, exact: Any) -> Any:
        """Return what an engine gives: it does not lower the layers itself, as casts do."""
        network, _ = self.trt.fake.builds[-1]
        halves = {
            layer.name
            for layer in (network.get_layer(at) for at in range(network.num_layers))
            if layer.precision_is_set and layer.precision == self.trt.DataType.HALF
        }
        return np.full_like(exact, np.nan) if halves & {"bigger", "down"} else exact

    def events(self, **settings: Any) -> Generator[Event, None, None]:
        steps = run(Request(self.model, backend="tensorrt", shape=("x:1x4",), **settings))
        assert isinstance(steps, Generator)
        return steps

    def search(self, **settings: Any) -> dict[str, Any]:
        result: dict[str, Any] = encode(finished(self.events(**settings)))
        return result

    @property
    def builds(self) -> int:
        return len(self.trt.fake.builds)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> World:
    version = getattr(request.node, "callspec", None)
    version = version.params["version"] if version else WEAKLY_TYPED
    return World(tmp_path, monkeypatch, version)


def names(result: dict[str, Any]) -> set[str]:
    return {one["node"] for one in result["kept"]}


@BOTH
def test_the_nodes_around_what_overflows_are_kept_and_nothing_is_built_twice(
    world: World, version: str
) -> None:
    whole = world.search()
    assert names(whole) == {"bigger", "down"}
    assert (whole["minimal"], whole["lowered"], whole["backend"]) == (True, 4, "tensorrt")
    assert whole["trials"] == world.builds <= 7, "the likely ones are tried first"
    assert whole["errors"]["y"]["special"] == 0
    assert world.trt.fake.cuda.live == 0
    _, config = world.trt.fake.builds[-1]
    flags = {flag.name for flag in config._flags}
    assert {"FP16", "PREFER_PRECISION_CONSTRAINTS"} <= flags or version == STRONGLY_TYPED

    before = world.builds
    steps = world.events(again=True)
    for event in steps:
        stage = event.stage if isinstance(event, Progress) else ""
        if stage.startswith("Trial 4: ") and "in fp32" in stage:
            break
    steps.close()
    assert world.builds - before == 3
    result = world.search()
    assert names(result) == names(whole)
    assert result["trials"] == whole["trials"] - 3


def test_the_cost_is_said_in_builds(world: World) -> None:
    said = texts(list(world.events(estimate_only=True)))
    assert world.builds == 1
    assert any(text.startswith("6 nodes can be lowered. A build and run takes") for text in said)
    assert not any("rank" in text for text in said)


def test_an_engine_that_is_not_built_is_not_good(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, made = "dld_tui.backends.accuracy.precision_trials.build", []

    def fails_sometimes(*given: Any, **more: Any) -> Any:
        made.append(given)
        if len(made) in (1, 3):
            raise ActivityError("no implementation")
        return (yield from builder.build(*given, **more))

    monkeypatch.setattr(build, fails_sometimes)
    result = world.search()
    assert names(result) >= {"bigger", "down"}
    assert result["minimal"]

    def fails(*given: Any, **more: Any) -> Any:
        yield from ()
        raise ActivityError("no implementation")

    monkeypatch.setattr(build, fails)
    with pytest.raises(ActivityError, match="it cannot be run with all nodes in fp32"):
        world.search(again=True)


def test_what_cannot_be_done_is_refused_in_one_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = replace(use(world.trt).capabilities, no_driver="there is no driver")
    monkeypatch.setattr(tensorrt_library, "find_library", lambda choice: Library(world.trt, facts))
    with pytest.raises(UnavailableError, match="cannot run engines here: there is no driver"):
        world.search()
    assert world.builds == 0
