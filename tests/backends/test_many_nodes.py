"""Sessions of very many nodes: without what takes ONNX Runtime long, and with word of the wait."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from threading import Event as Flag
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest

from dld_tui.core.codec import encode
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.model.document import Document
from tests.support import models

pytest.importorskip("onnxruntime")

from dld_tui.activities.convert import fp16
from dld_tui.backends.conversion import verification
from dld_tui.backends.onnxruntime import runtime, session, tensors
from dld_tui.backends.onnxruntime.session import Session, seconds_loading
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, has_many_nodes, settings_for_copies

EQUAL = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y)
{
    a = Sigmoid (x)
    b = Sigmoid (x)
    c = Add (a, b)
    d = Exp (z)
    e = Add (c, d)
    f = Relu (e)
    g1 = Mul (f, a)
    h = Sub (g1, b)
    y = Tanh (h)
}
"""


def test_a_session_that_took_long_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, ...]] = []
    real = tensors.TensorSession.__init__

    def counted(self: Any, model: Any, view: Path, names: Any, *more: Any) -> None:
        made.append((*names,))
        real(self, model, view, names, *more)

    monkeypatch.setattr(tensors.TensorSession, "__init__", counted)
    feeds = {name: np.ones((3, 4), np.float32) for name in "xz"}
    found = []
    with closing(Document.open(models.write(tmp_path, EQUAL))) as document:
        for many, sessions in ((1_000, [("y",), ("y",), ("a",), ("y",), ("y",)]),
                               (1, [("y",), ("a",), ("y",), ("y",)])):  # fmt: skip
            made.clear()
            monkeypatch.setattr(tensors, "MANY_NODES", many)
            with TensorRunner(document, SessionSettings(quiet=True)) as runner:
                assert [spec.name for spec in runner.inputs] == ["x", "z"]
                values = [runner.values(["y"], feeds)["y"], runner.values(["a"], feeds)["a"]]
                values.append(runner.values(["y"], feeds)["y"])
                # Inner tensors that are given make another session.
                values.append(runner.values(["y"], {**feeds, "h": feeds["x"]})["y"])
            assert made == sessions
            found.append(values)
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    assert np.allclose(found[0][3].astype(np.float64), np.tanh(1))  # type: ignore[union-attr]


def test_a_wait_for_a_session_says_so_and_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Flag()
    monkeypatch.setattr(session, "_EVERY_S", 0.01)
    real = runtime.load().InferenceSession

    class Slow(real):  # type: ignore[misc, valid-type]
        def __init__(self, *of: object, **more: object) -> None:
            assert told.wait(60)
            super().__init__(*of, **more)

    monkeypatch.setattr(runtime.load(), "InferenceSession", Slow)
    path = models.write(tmp_path, models.CHAIN)
    steps = session.with_loading_progress(
        "Trying", lambda: Session(path, SessionSettings(quiet=True)).outputs
    )
    seen: list[Event] = []
    made: list[list[str]] = []

    def steps_of() -> Generator[Event]:
        made.append((yield from steps))

    for event in steps_of():
        seen.append(event)
        if len(seen) == 3:
            told.set()
    assert made == [["y"]]
    assert seen[0] == Progress(0, None, stage="Trying")
    for event in seen[1:]:
        assert isinstance(event, Progress)
        assert event.unit == "s"
        assert event.stage == "Trying: ONNX Runtime loads the model"
    assert seconds_loading() is None


def halved(path: Path, target: Path, **settings: Any) -> dict[str, Any]:
    """Convert to float16 and return the result."""
    *_, last = fp16.run(fp16.Request(path, output=target, **settings))
    assert isinstance(last, Finished)
    return cast("dict[str, Any]", encode(last.result))


def test_results_say_how_they_were_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = models.write(tmp_path, models.CHAIN)
    plain = halved(path, tmp_path / "plain.onnx")
    assert not any("CommonSub" in note for note in plain["notes"])
    monkeypatch.setattr(tensors, "MANY_NODES", 2)
    many = halved(path, tmp_path / "many.onnx")
    assert sum("CommonSub" in note for note in many["notes"]) == 1
    assert many["values"]["is_good"]
    assert many["values"]["outputs"] == plain["values"]["outputs"]


def test_very_many_nodes_in_16_bits_are_rounded_in_float32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_MANY_NARROW_NODES", 2)
    path = models.write(tmp_path, models.CHAIN)
    result = halved(path, tmp_path / "half.onnx", measure=True)
    assert sum("and rounded" in note and "minutes" in note for note in result["notes"]) == 1
    assert result["latency_ms"] is None
    assert result["values"]["is_good"]
    monkeypatch.setattr(verification, "_MANY_NARROW_NODES", 1_000)
    loaded = halved(path, tmp_path / "other.onnx", measure=True)
    assert loaded["latency_ms"] is not None
    assert loaded["values"]["outputs"] == result["values"]["outputs"]


def test_a_call_that_fails_is_heard_of() -> None:
    steps = session.with_loading_progress("Trying", Mock(side_effect=LookupError("no")))
    next(steps)
    with pytest.raises(LookupError, match="no"):
        next(steps)


def test_a_job_that_is_given_up_waits_for_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_EVERY_S", 0.01)
    monkeypatch.setattr(session, "seconds_loading", lambda: 7.2)
    goes_on, done = Flag(), Flag()

    def call() -> None:
        assert goes_on.wait(60)
        done.set()

    steps = session.with_loading_progress("Trying", call)
    next(steps)
    assert next(steps) == Progress(7, None, "s", "Trying: ONNX Runtime loads the model")
    goes_on.set()
    steps.close()
    assert done.is_set()


CALLS = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[N] x) => (float[N] y) { a = own.Twice (x) b = own.Twice (a) y = Relu (b) }
<domain: "own", opset_import: ["" : 21]>
Twice (x) => (y) { two = Constant <value_float = 2.0> () y = Mul (x, two) }"""


def test_many_nodes_as_they_are_run_leave_out_what_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = SessionSettings()
    with closing(Document.open(models.write(tmp_path, CALLS))) as document:
        # Three of the graph, and two calls of two nodes.
        assert has_many_nodes(document, 7)
        assert not has_many_nodes(document, 8)
        assert settings_for_copies(plain, document) == plain
        monkeypatch.setattr(tensors, "MANY_NODES", 7)
        spared = settings_for_copies(plain, document)
    assert not spared.reuse_memory
    assert spared.left_out == ("CommonSubexpressionElimination",)
