"""Inner tensors as outputs: real networks and builds with TensorRT-RTX, on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.accuracy.runs import BuiltRunner, BuiltSide
from dld_tui.backends.tensorrt.library import Library, find_library
from dld_tui.backends.tensorrt.outputs import NO_TENSOR, SHAPE, mark_outputs, reasons_against
from dld_tui.core.model.document.document import Document
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models
from tests.support.rtx import needs_rtx, own_library

pytestmark = needs_rtx

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
shapes (float[N, 4] x) => (float[K] y)
<int64[1] flat = {-1}>
{
  c = Constant<value = float[4] {1, 2, 3, 4}>()
  a = Add(x, c)
  r = Relu(a)
  size = Shape(r)
  whole = ReduceProd<keepdims = 1>(size)
  z = Reshape(r, whole)
  y = Sigmoid(z)
}
"""
INNER = ("c", "a", "r", "size", "whole", "z", "ghost")


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    with own_library():
        yield find_library("tensorrt_rtx")


def side(library: Library, folder: Path, stack: contextlib.ExitStack) -> BuiltSide:
    path = models.write(folder, TEXT)
    document = stack.enter_context(contextlib.closing(Document.open(path)))
    return BuiltSide(document, library, BuildSettings(path, folder / "x.engine"))


def test_what_the_parser_does_not_keep_has_a_reason(library: Library, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        one = side(library, tmp_path, stack)
        found = reasons_against(library, one.document, one.settings, INNER)
    assert found == {"c": NO_TENSOR, "size": SHAPE, "whole": SHAPE, "ghost": NO_TENSOR}


def test_the_engine_gets_the_outputs(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def watched(made: Any, names: Any) -> None:
        mark_outputs(made, names)
        network = made.network
        seen.append([network.get_output(at).name for at in range(network.num_outputs)])

    monkeypatch.setattr("dld_tui.backends.accuracy.runs.mark_outputs", watched)
    feeds = [{"x": np.zeros((size, 4), np.float32)} for size in (2, 5)]
    with contextlib.ExitStack() as stack:
        one = side(library, tmp_path, stack)
        runner = stack.enter_context(BuiltRunner(one, tensors=True))
        stages = [event.stage for event in runner.prepare(["a", "z"], feeds)]  # type: ignore[union-attr]
        assert not runner.refused
        (engine,) = runner.folder.iterdir()
        assert engine.stat().st_size > 1000
        assert not list(runner.prepare(["a", "z"], feeds)), "it is built already"
    assert any(stage.startswith("Building") for stage in stages), stages
    assert seen == [["y", "a", "z"]]
    assert not runner.folder.exists()
