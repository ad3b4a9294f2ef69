from __future__ import annotations

import math
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from dld_tui.activities.convert import opset
from dld_tui.activities.profile.onnxruntime import Request
from dld_tui.core.errors import CancelledError, InputError, TimeLimitError, UsageError
from dld_tui.core.events import Cancelled, Log, Progress
from dld_tui.core.notes import NoteKind
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.targets import registry
from dld_tui.targets.process import LocalTarget
from dld_tui.targets.registry import named, requests_for
from tests.support.jobs import wait_until


@pytest.mark.parametrize("name", [None, "local"])
def test_this_machine(name: str | None) -> None:
    assert registry.get(name).name == "local"
    assert "local" in registry.names()


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(UsageError, match=r"'orin'.*Known targets: local"):
        registry.get("orin")


def test_saved_connections_are_targets() -> None:
    saved_targets.save(Connection("orin", "orin.lan"))
    assert registry.names() == ["local", "orin"]
    assert registry.get("orin").name == "orin"
    saved_targets.store_path().write_text("[orin")
    assert registry.names() == ["local"]
    with pytest.raises(InputError, match="TOML"):
        registry.get("orin")


@pytest.mark.broad
def test_a_job_that_does_not_end_is_killed_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a native call that loads a model: it hears no request to stop, and no SIGTERM."""
    script = """if 1:
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print('{"event": "progress", "done": 0, "total": null, "stage": "Loading"}', flush=True)
        time.sleep(600)
    """
    target = LocalTarget([sys.executable, "-c", script])
    monkeypatch.setattr(registry, "get", lambda name=None: target)
    begin = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"stopped after 1\.0 s at “Loading”"):
        registry.result_of("time_pair", {}, dict, limit_s=1.0, target=None)
    assert time.monotonic() - begin < 5


@dataclass(frozen=True)
class Told:
    ms: float


@pytest.mark.parametrize("limit_s", [600.0, math.inf])
def test_a_job_that_ends_before_its_limit(limit_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(event: str) -> Told:
        target = LocalTarget([sys.executable, "-S", "-c", f"print({event!r})"])
        monkeypatch.setattr(registry, "get", lambda name=None: target)
        return registry.result_of("time_pair", {}, Told, limit_s, target=None)

    assert ended('{"event": "finished", "result": {"ms": 1.5}}') == Told(1.5)
    with pytest.raises(CancelledError):
        ended('{"event": "cancelled"}')
    running = threading.enumerate
    wait_until(lambda: not any(isinstance(one, threading.Timer) for one in running()), "no timer")


def test_each_target_gets_a_report_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net-box.dldprof").touch()
    plain = requests_for("p", Request(Path("sub/net.onnx")), ["box", "local"])
    assert [request.output for request in plain] == [
        Path("net-box-2.dldprof"), Path("net-local.dldprof"),
    ]  # fmt: skip
    given = Request(Path("net.onnx"), Path("out/r.dldprof"))
    assert [request.output for request in requests_for("p", given, ["a"])] == [
        Path("out/r-a.dldprof")
    ]


def test_what_cannot_run_on_several_targets() -> None:
    with pytest.raises(UsageError, match="twice"):
        requests_for("p", Request(Path("net.onnx")), ["a", "a"])
    convert = opset.Request(Path("a.onnx"), Path("b.onnx"), 20)
    with pytest.raises(UsageError, match="only one --target"):
        requests_for("convert_opset", convert, ["a", "b"])


def test_events_say_which_target_they_are_of() -> None:
    assert named(Log("x", NoteKind.ERROR), "box") == Log("box: x", NoteKind.ERROR)
    assert named(Progress(1, 2, "", "Measuring"), "box").stage == "box: Measuring"  # type: ignore[union-attr]
    assert named(Cancelled(), "box") == Cancelled()
