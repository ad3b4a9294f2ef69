from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from dld_tui.backends.onnxruntime import limits, runtime, session
from dld_tui.backends.onnxruntime import session as session_module
from dld_tui.backends.onnxruntime.limits import time_limit
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.errors import (
    ActivityError,
    InputError,
    SaveError,
    TimeLimitError,
    UnavailableError,
)
from dld_tui.core.files import writer
from dld_tui.core.model.inputs.fills import random_inputs
from tests.support import models
from tests.support.models import ENDLESS

pytest.importorskip("onnxruntime")

TYPES = (
    *("float", "double", "float16", "bfloat16", "float8e4m3fn", "float8e5m2"),
    *("int8", "uint8", "int32", "int64", "bool", "string"),
)
QUIET = SessionSettings(quiet=True)


def session_of(folder: Path, text: str, settings: SessionSettings = QUIET) -> Session:
    return Session(models.write(folder, text), settings)


def one_node(node: str, x: str = "float[N, 2]", y: str = "float[N, 2]") -> str:
    return f'<ir_version: 10, opset_import: ["" : 21]> g ({x} x) => ({y} y) {{ {node} }}'


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_of_random_input_is_taken(tmp_path: Path, dtype: str) -> None:
    kind = f"{dtype}[N]"
    # bfloat16 outputs have no NumPy form: the shape shows that the input arrived.
    session = session_of(tmp_path, one_node("y = Shape(x)", kind, "int64[1]"))
    values = random_inputs(session.inputs, {"x": (3,)}, 0)

    assert session.run(session.feed(values))[0].tolist() == [3]


def test_a_provider_that_does_not_start_is_not_replaced_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "find_provider", lambda name: name)
    with (
        pytest.warns(UserWarning, match="not in available provider names"),
        pytest.raises(UnavailableError, match=r"Teapot provider does not start.*fell back to CPU"),
    ):
        session_of(tmp_path, models.CHAIN, SessionSettings(providers=("Teapot",), quiet=True))


WEIGHTS = f"""<ir_version: 10, opset_import: ["" : 18]>
    g (float[N, 1000] x) => (float[N, 1000] y) <float[1000] w = {{{", ".join(["0.5"] * 1000)}}}>
    {{ a = Add(x, w) y = Mul(a, w) }}"""


@pytest.mark.usefixtures("replaces_all")
def test_an_optimised_model_never_lies_there_without_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    placed: list[Path] = []

    def place_one(written: Path, target: Path) -> list[str]:
        if placed:
            raise OSError(errno.ENOSPC, "No space left on device")
        placed.append(target)
        return writer.put_in_place(written, target)

    target = tmp_path / "optimised" / "o.onnx"
    target.parent.mkdir()
    model = models.write(tmp_path, WEIGHTS)
    with monkeypatch.context() as full:
        full.setattr(session_module, "put_in_place", place_one)
        with pytest.raises(SaveError, match="No space left"):
            session_module.save_optimized_model(model, QUIET, target, 2**31)
    assert os.listdir(target.parent) == ["o.weights"]
    capfd.readouterr()
    assert session_module.save_optimized_model(model, SessionSettings(), target, 2**31) == []
    assert "".join(capfd.readouterr()) == ""
    assert sorted(os.listdir(target.parent)) == ["o.onnx", "o.weights"]


@pytest.mark.parametrize("way", ["run", "run_with_ort_values", "run_with_iobinding"])
def test_timers_go_round_the_feeds_and_stop_at_their_time(tmp_path: Path, way: str) -> None:
    session = session_of(tmp_path, models.CHAIN)
    feeds = [session.feed({"x": np.full((1, 4), number, np.float32)}) for number in range(3)]
    bound = session.bind(feeds)
    seen: list[int] = []

    def note(*given: Any) -> None:
        feed = given[-2]
        if isinstance(feed, dict):
            value = feed["x"].numpy() if way == "run_with_ort_values" else feed["x"]
            seen.append(int(value[0, 0]))
        else:
            seen.append([one.binding for one in bound].index(feed))

    session.is_readable = way == "run"
    session._session = SimpleNamespace(**{way: note})
    durations = array("q", bytes(8 * 10))
    is_bound = way == "run_with_iobinding"
    time_calls = session.bound_timer(bound) if is_bound else session.timer(feeds)
    begin = time.perf_counter_ns()
    assert time_calls(4, durations, 4, begin + 10**12) == 4
    assert sum(durations) <= time.perf_counter_ns() - begin
    assert seen == [1, 2, 0, 1]
    assert all(duration > 0 for duration in durations[:4])
    assert not any(durations[4:])
    assert time_calls(0, durations, 10, 0) == 1


def test_outputs_that_numpy_has_no_type_for_are_run_and_timed(tmp_path: Path) -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 18]>
    halves (float[N, 4] x) => (bfloat16[N, 4] y, float[N, 4] a)
    { a = Relu(x) y = Cast <to = 16> (a) }
    """
    session = Session(models.write(tmp_path, text), SessionSettings(quiet=True))
    assert not session.is_readable
    feed = session.feed({"x": np.ones((2, 4), np.float32)})
    session.try_once(feed)
    durations = array("q", [0, 0, 0])
    begin = time.perf_counter_ns()
    assert session.timer([feed])(0, durations, 3, 2**62) == 3
    assert min(durations) > 0
    assert sum(durations) <= time.perf_counter_ns() - begin
    (bound,) = session.bind([feed])
    session.run_bound(bound)
    copies = bound.time_copies(2)
    assert (copies.input_bytes, copies.output_bytes) == (32, 32), "the readable output alone"


def test_the_newest_opset_is_what_onnxruntime_itself_calls_supported() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 999]>\ng (float[1] x) => (float[1] y) { y = Relu(x) }'
    )
    with pytest.raises(Exception, match=r"till opset \d+") as refused:
        runtime.load().InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
    supported = re.search(r"till opset (\d+)", str(refused.value))
    assert supported is not None
    assert runtime.newest_opset() == min(int(supported[1]), onnx.defs.onnx_opset_version())


@pytest.mark.parametrize("way", ["run", "timer", "bound", "unread"])
def test_a_pass_stops_at_the_time_limit(tmp_path: Path, way: str) -> None:
    session = session_of(tmp_path, ENDLESS)
    feed = session.feed({"x": np.ones(4, np.float32)})
    durations = array("q", [0])
    ways: dict[str, Callable[[], Any]] = {
        "run": lambda: session.run(feed),
        "unread": lambda: session.run_unread(feed),
        "timer": lambda: session.timer([feed])(0, durations, 1, 0),
        "bound": lambda: session.bound_timer(session.bind([feed]))(0, durations, 1, 0),
    }
    begin = time.monotonic()
    with time_limit(begin + 0.3), pytest.raises(TimeLimitError):
        ways[way]()
    assert time.monotonic() - begin < 5


def test_a_time_limit_ends_with_its_block(tmp_path: Path) -> None:
    """The shorter of two counts, and after it the session runs as before."""
    session = session_of(tmp_path, models.CHAIN)
    feed = session.feed({"x": np.zeros((2, 4), np.float32)})
    now = time.monotonic()
    with time_limit(now + 1000):
        with time_limit(now - 1):
            for begin in (lambda: session.run(feed), lambda: session_of(tmp_path, models.CHAIN)):
                with pytest.raises(TimeLimitError):
                    begin()
        with time_limit(now + 2000):
            assert limits._limits[-1].end == now + 1000
        assert session.run(feed)
    assert session.run(feed)
    assert limits._limits == []


def test_a_session_that_does_not_stop_is_left_and_waited_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, creates = threading.Event(), runtime.load().InferenceSession

    def create(*arguments: Any, **settings: Any) -> Any:
        ends.wait(60)
        return creates(*arguments, **settings)

    monkeypatch.setattr(runtime.load(), "InferenceSession", create)
    monkeypatch.setattr(limits, "_STOP_S", 0.1)
    begin = time.monotonic()
    with time_limit(begin + 0.2), pytest.raises(TimeLimitError):
        session_of(tmp_path, models.CHAIN)
    assert time.monotonic() - begin < 10
    (thread,) = limits._abandoned
    with time_limit(time.monotonic() + 0.1):  # no longer than its own time
        assert limits._abandoned == [thread]
    ends.set()
    with time_limit(time.monotonic() + 60):
        assert limits._abandoned == []
        assert session_of(tmp_path, models.CHAIN).outputs == ["y"]


def test_what_a_provider_writes_to_the_working_folder_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models.write(tmp_path, models.CHAIN, "chain.onnx")
    (tmp_path / "backend.so").touch()
    honest, folders = runtime.load().InferenceSession, list[Path]()

    def create(*arguments: Any, **settings: Any) -> Any:
        folders.append(Path.cwd())
        Path("part.dlc").touch()
        return honest(*arguments, **settings)

    monkeypatch.setattr(runtime.load(), "InferenceSession", create)
    monkeypatch.setattr(session, "_FILE_WRITERS", ("CPU",))
    Session(Path("chain.onnx"), SessionSettings())
    assert {path.name for path in tmp_path.iterdir()} == {"chain.onnx", "backend.so"}
    assert Path.cwd() == tmp_path
    assert folders != [tmp_path]
    assert not folders[0].exists()
    given = SessionSettings(provider_options={"QNN": {"path": "backend.so", "mode": "burst"}})
    found = session._absolute(given).provider_options["QNN"]
    assert found == {"path": str(tmp_path / "backend.so"), "mode": "burst"}


def test_dims_without_a_size_or_a_name_are_unknown(tmp_path: Path) -> None:
    session = session_of(tmp_path, one_node("y = Relu(x)", "float[?, 3, M]", "float[?, 3, M]"))
    assert session.inputs[0].dims == (None, 3, "M")


@pytest.mark.parametrize(
    ("node", "kind", "operator"),
    [("y = NoSuchOp(x)", "float[N]", "NoSuchOp"), ("y = Relu(x)", "string[N]", "Relu"),
     ("y = Relu(x)", "int16[N]", "Relu")],
)  # fmt: skip
def test_what_cannot_run_names_its_node(
    tmp_path: Path, node: str, kind: str, operator: str
) -> None:
    with pytest.raises(ActivityError) as caught:
        session_of(tmp_path, one_node(f"[odd] {node}", kind, kind).replace("21", "17"))
    assert caught.value.status == 5
    assert f"node 'odd' ({operator})" in str(caught.value.where)


def test_a_run_that_fails_names_its_node_within_a_limit_too(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[N, M] x) => (float[K] y) <int64[1] s = {7}> { [shaper] y = Reshape(x, s) }"""
    session = session_of(tmp_path, text)
    for limit in (contextlib.nullcontext(), time_limit(time.monotonic() + 1000)):
        said = r"node 'shaper' \(Reshape\): .* cannot run it"
        with limit, pytest.raises(ActivityError, match=said) as caught:
            session.run(session.feed({"x": np.ones((1, 1), np.float32)}))
        assert not isinstance(caught.value, TimeLimitError)
    with pytest.raises(ActivityError, match="missing from input feed"):
        session.run({})


def test_unreadable_files_are_input_errors(tmp_path: Path) -> None:
    (tmp_path / "torn.onnx").write_bytes(b"\xff" * 50)
    for name in ("torn.onnx", "absent.onnx"):
        with pytest.raises(InputError, match=name):
            Session(tmp_path / name, QUIET)


def test_providers_by_any_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "CPU" in runtime.providers()
    for name in ("CPU", "cpu", "CPUExecutionProvider"):
        assert runtime.find_provider(name) == "CPU"
    with pytest.raises(UnavailableError, match=r"has no Teapot provider; it has .*CPU") as caught:
        runtime.find_provider("Teapot")
    assert caught.value.hint is None
    if "CUDA" in runtime.providers():
        return
    for machine, version, said in (
        ("x86_64", sys.version_info, r"onnxruntime-gpu>="),
        ("aarch64", (3, 10), "build for JetPack 6"),
    ):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        monkeypatch.setattr("sys.version_info", version)
        with pytest.raises(UnavailableError, match=said):
            runtime.find_provider("CUDA")


def test_a_missing_and_a_broken_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('libcudart.so.13: not found')")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        for module, said in (
            ({"onnxruntime": None}, r"install 'onnxruntime>="), ({}, "cannot be loaded: libcudart"),
        ):  # fmt: skip
            monkeypatch.delitem(sys.modules, "onnxruntime")
            sys.modules.update(module)  # type: ignore[arg-type]
            runtime.load.cache_clear()
            with pytest.raises(UnavailableError, match=said) as caught:
                runtime.load()
            assert caught.value.status == 4
    finally:
        monkeypatch.undo()
        runtime.load.cache_clear()
