from __future__ import annotations

import pytest

from dld_tui.targets.base import LineCutter, describe_end, log_text


@pytest.mark.parametrize("step", [1, 2, 3, 100])
def test_lines_come_whole_however_the_bytes_are_cut(step: int) -> None:
    data = b"one\n\ntwo\nthree"
    cutter = LineCutter(100)
    lines = [line for at in range(0, len(data), step) for line in cutter.feed(data[at : at + step])]

    assert lines == [b"one", b"", b"two"]
    assert list(cutter.rest()) == [b"three"]
    assert list(cutter.rest()) == []


def test_a_long_line_keeps_its_start_and_costs_no_memory() -> None:
    cutter = LineCutter(10)
    assert list(cutter.feed(b"0123456789ab")) == []
    for _ in range(100):
        assert list(cutter.feed(b"x" * 1000)) == []
    assert len(cutter._line) == 10
    assert list(cutter.feed(b"\n0123456789\n")) == [b"0123456789", b"0123456789"]


UNUSED = (
    b"2026-11-22 01:50:23.7 [W:onnxruntime:, graph.cc:5777 CleanUnusedInitializersAndNodeArgs]"
    b" Removing initializer 'gpu_0/queue_0'. It is not used by any node and should be removed from"
    b" the model."
)
HARMLESS = (
    b"2026-11-22 00:40:44.5 [W:onnxruntime:Default, onnxruntime_pybind_state.cc:856 operator()]"
    b" No registered plugin EP device found for 'CUDAExecutionProvider' with device_id=0"
)


@pytest.mark.parametrize(
    ("line", "text", "level"),
    [
        (b"plain", "plain", "info"),
        (b"dos\r", "dos", "info"),
        (b" 1%\r 50%\r100%", "100%", "info"),
        (b"\xff", "\udcff", "info"),
        (b"\x1b[1;31m[E:onnxruntime:, a.cc:1] bad\x1b[m", "[E:onnxruntime:, a.cc:1] bad", "error"),
        (b"[10:00:00] [W] [TRT] slow", "[10:00:00] [W] [TRT] slow", "warning"),
        (b"[V] chatty", "[V] chatty", "debug"),
        (HARMLESS, "", "debug"),
        (UNUSED, "", "debug"),
        (HARMLESS.replace(b"No registered", b"A registered"),
         HARMLESS.decode().replace("No registered", "A registered"), "warning"),
        (b"\x1b[2J other control goes, too", " other control goes, too", "info"),
    ],
)  # fmt: skip
def test_log_text(line: bytes, text: str, level: str) -> None:
    assert log_text(line) == (text, level)


def test_log_text_is_cut() -> None:
    assert log_text(b"x" * 20, limit=5) == ("xxxxx…", "info")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (0, "exit status 0"),
        (-9, "killed (SIGKILL)"),
        (-11, "crashed (SIGSEGV)"),
        (-1, "ended by SIGHUP"),
        (-200, "signal 200"),
        (None, "does not end"),
    ],
)
def test_describe_end(code: int | None, says: str) -> None:
    assert says in describe_end(code)[0]


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("/v/site-packages/onnxruntime/capi/session.py", "ONNX Runtime crashed (SIGSEGV)"),
        ("/v/site-packages/numpy/core.py", "the worker process crashed (SIGSEGV)"),
        ("/src/dld_tui/activities/worker.py", "the worker process crashed (SIGSEGV)"),
    ],
)
def test_the_library_that_crashed_is_named(file: str, says: str) -> None:
    log = f"""Fatal Python error: Segmentation fault
Thread 0x1 (most recent call first):
  File "/v/site-packages/onnx/checker.py", line 64 in _listen
Current thread 0x2 (most recent call first):
  File "{file}", line 395 in run
  File "/v/site-packages/onnxruntime/other.py", line 1 in f"""
    assert describe_end(-11, log)[0] == says
