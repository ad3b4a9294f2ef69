"""What a job says that got no more memory within the limits of trials."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from dld_tui.backends.onnxruntime import limits
from dld_tui.backends.onnxruntime.limits import limit_trials, memory_error, naming
from dld_tui.backends.processes import MOST_LOAD
from dld_tui.core.errors import ActivityError
from dld_tui.core.model.document.document import Document
from dld_tui.core.process.child import Limits, compute
from tests.support import models
from tests.support.bombs import write_bomb

_ANY = Limits(60, 4 << 30)
HEAD = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y)'


def _error(path: Path) -> ActivityError:
    with contextlib.closing(Document.open(path)) as document:
        limit_trials(document)
    return memory_error("the job")


@pytest.mark.parametrize(
    ("name", "where"),
    [("MatMul of made constants", "node >b (MatMul)"), ("deep branches", "the job")],
)
def test_it_names_the_node_that_shapes_tell_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str
) -> None:
    path = write_bomb(tmp_path, name)
    monkeypatch.setattr(limits, "is_child", lambda: True)  # so that there are limits
    told = compute(lambda: str(_error(path)).encode(), _ANY).decode()
    assert where in told
    assert "it takes over" in told
    assert "DLD_INFERENCE_LIMIT" in told


def test_inputs_of_given_and_unknown_sizes_need_memory(tmp_path: Path) -> None:
    with contextlib.closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        assert limits._input_bytes(document, {}) == 16
        assert limits._input_bytes(document, {"x": (3, 4)}) == 48


def test_a_trial_goes_on_where_a_loaded_machine_did_not_let_it_compute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = {"monotonic": 100.0, "process_time": 5.0}
    for name in clock:
        monkeypatch.setattr(time, name, lambda name=name: clock[name])
    limit = limits._TimeLimit(110.0, 10.0)
    clock.update(monotonic=110.0, process_time=9.0)
    assert limit.is_prolonged()
    assert limit.end == 116.0, "the six seconds that it did not get"
    clock.update(monotonic=100.0 + 10.0 * MOST_LOAD + 0.5)
    assert not limit.is_prolonged(), "the machine is too busy"
    clock.update(monotonic=116.0, process_time=15.0)
    assert not limit.is_prolonged(), "it had its time"
    assert limit.end == 116.0
    assert not limits._TimeLimit(110.0).is_prolonged()
    stopped = limits._TimeLimit(110.0, 1000.0)
    stopped.has_stopped = True
    assert not stopped.is_prolonged()


@pytest.mark.parametrize(
    ("where", "named", "unnamed"),
    [
        (None, "{path}", None),
        ("it: a node (Abs)", "it: node >y (Abs)", "it: a node (Abs)"),
        ("it: a node (Neg)", "it: a node (Neg)", "it: a node (Neg)"),
        ("it: a node (Relu)", "it: a node (Relu)", "it: a node (Relu)"),
        ("it: node b", "it: node b", "it: node b"),
    ],
)
def test_an_error_names_a_node_without_a_name_where_it_is_the_only_one(
    tmp_path: Path, where: str | None, named: str, unnamed: str | None
) -> None:
    text = f"{HEAD} {{ a = Neg (x) b = Neg (a) [c] c = Relu (b) y = Abs (c) }}"
    path = models.write(tmp_path, text)
    with contextlib.closing(Document.open(path)) as document:
        for known, told in ((document, named.format(path=path)), (None, unnamed)):
            with pytest.raises(ActivityError) as caught, naming(known):
                raise ActivityError("odd", where=where)
            assert caught.value.where == told
