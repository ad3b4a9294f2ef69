"""One session serves all trials, and computes what a copy for each would."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.model.document import Document
from tests.support.precision_models import WIDTH, write_attention

pytest.importorskip("onnxruntime")

from dld_tui.backends.accuracy import precision_trials
from dld_tui.backends.accuracy.precision_trials import SwitchedModel
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, TensorSession
from dld_tui.core.conversion.retyping import in_lower_precision, switchable

SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)
X = np.linspace(0, 1, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture
def document(tmp_path: Path) -> Generator[Document, None, None]:
    write_attention(tmp_path / "model.onnx")
    with contextlib.closing(Document.open(tmp_path / "model.onnx")) as opened:
        yield opened


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The outputs of each session that is made."""
    made: list[list[str]] = []
    real = TensorRunner.session

    def session(self: TensorRunner, names: Any, given: Any = None) -> TensorSession:
        made.append([*names])
        return real(self, names, given)

    monkeypatch.setattr(TensorRunner, "session", session)
    return made


def switched(document: Document, precision: str) -> SwitchedModel:
    return SwitchedModel(switchable(document, precision), None, SETTINGS, ["y"], ["x"])


def check(document: Document, model: SwitchedModel) -> None:
    nodes = model.nodes
    for kept in ([], nodes[::2], nodes[3:4], nodes, nodes[1::2]):
        (found,) = model.each(set(kept), [{"x": X}])
        copy = in_lower_precision(document, "fp16", kept, rounded=True).document
        with contextlib.closing(copy), TensorRunner(copy, SETTINGS) as runner:
            np.testing.assert_array_equal(found["y"], runner.values(["y"], {"x": X})["y"])


def test_trials_need_no_more_sessions(document: Document, sessions: list[list[str]]) -> None:
    with contextlib.closing(switched(document, "fp16")) as model:
        next(model.each((), [{"x": X}]))
        first = len(sessions)
        assert sessions[-1] == ["y"]
        assert sum(map(len, sessions[:-1])) == 8, "each weight once, the scale for each block"
        for kept in (model.nodes[::2], model.nodes[:5], model.nodes):
            next(model.each(kept, [{"x": X}]))
        assert len(sessions) == first


def test_it_computes_what_copies_compute(document: Document) -> None:
    with contextlib.closing(switched(document, "fp16")) as model:
        check(document, model)


def test_weights_that_are_not_kept_are_rounded_again(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision_trials, "_KEPT_BYTES", 1)
    monkeypatch.setattr(precision_trials, "_TOGETHER", 3)
    with contextlib.closing(switched(document, "bf16")) as model:
        (exact,) = model.each(model.nodes, [{"x": X}])
        (rounded,) = model.each((), [{"x": X}])
        (again,) = model.each(model.nodes, [{"x": X}])
    np.testing.assert_array_equal(exact["y"], again["y"])
    assert exact["y"] is not None
    assert rounded["y"] is not None
    assert not np.array_equal(exact["y"], rounded["y"])
