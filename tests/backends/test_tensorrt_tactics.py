"""Replaying and recording tactics in a build, and editing timing caches, with the fake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.backends.tensorrt.library import use
from dld_tui.backends.tensorrt.tactics import CacheEditor
from dld_tui.core.errors import ActivityError, InputError
from dld_tui.core.tensorrt.availability import refused
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.tactics import Tactic, parse_replay, replay_text
from tests.support.engines import write_model
from tests.support.fake_builds import fake_build
from tests.support.fake_tensorrt import STRONGLY_TYPED, fake_tensorrt
from tests.support.fake_tensorrt_tactics import Tactics, key_of, simulate

pytestmark = pytest.mark.usefixtures("replaces_all")


@pytest.fixture
def trt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))
    return fake_tensorrt()


@pytest.fixture
def tactics(trt: Any) -> Tactics:
    return simulate(trt)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "small.onnx")


def test_what_was_recorded_is_replayed(trt: Any, tactics: Tactics, model: Path) -> None:
    file = model.with_suffix(".json")
    tactics.fastest = [{"first": 103}, {"last": 102}]
    fake_build(trt, model, save_tactics=file)
    kept = parse_replay(file.read_text(), "")
    assert kept["first"].tactic == 103
    assert [form.dtype for form in kept["first"].inputs] == ["FLOAT", "FLOAT"]
    built, _, _ = fake_build(trt, model, tactic_replay=file)
    assert tactics.taken[0] == tactics.taken[1]
    assert built.remarks == []

    file.write_text(replay_text({"first": kept["first"]}))
    built, _, _ = fake_build(trt, model, tactic_replay=file)
    assert tactics.taken[-1]["first"] == 103
    assert "not in the tactic replay" in built.remarks[0]


def test_a_replay_that_does_not_fit_builds_nothing(trt: Any, tactics: Tactics, model: Path) -> None:
    file = model.with_suffix(".json")
    fake_build(trt, model, save_tactics=file)
    model.with_suffix(".engine").unlink()
    tactics.without = {"last": (101,)}
    with pytest.raises(ActivityError, match="does not offer the tactic of the replay for last"):
        fake_build(trt, model, tactic_replay=file)
    assert not model.with_suffix(".engine").exists()
    with pytest.raises(InputError, match="cannot be read"):
        fake_build(trt, model, tactic_replay=model.parent / "none")


def test_a_cache_is_edited_and_kept_to(trt: Any, tactics: Tactics, model: Path) -> None:
    cache, edited = model.with_suffix(".timing"), model.with_suffix(".edited")
    fake_build(trt, model, timing_cache=cache, editable_timing_cache=True)
    editor = CacheEditor(use(trt))
    assert editor.entries(cache)[key_of("last")] == Tactic(101)
    other = {key_of("last"): Tactic(103), key_of("unknown"): Tactic(1)}
    assert editor.edit(cache, other, edited) == [key_of("unknown")]
    fake_build(trt, model, timing_cache=edited, editable_timing_cache=True)
    assert tactics.taken[-1]["last"] == 103
    fake_build(trt, model, timing_cache=edited)
    assert tactics.taken[-1]["last"] == 101, "only with the flag"
    edited.write_bytes(b"{")
    with pytest.raises(InputError, match="not a timing cache of TensorRT"):
        editor.entries(edited)


def test_what_a_library_lacks_is_refused() -> None:
    new = use(fake_tensorrt(STRONGLY_TYPED)).capabilities
    problems = refused(BuildSettings(Path("m.onnx"), tactic_replay=Path("r")), new)
    assert any("use an edited timing cache" in problem for problem in problems)
    assert not refused(BuildSettings(Path("m.onnx"), editable_timing_cache=True), new)
    rtx = pytest.importorskip("tensorrt_rtx")
    problems = refused(
        BuildSettings(Path("m.onnx"), editable_timing_cache=True), use(rtx).capabilities
    )
    assert any("its timing cache does nothing" in problem for problem in problems)
