"""Sessions that ask for denormal numbers to be zero, beside others: their outputs tell."""

from __future__ import annotations

import ctypes
import itertools
import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dld_tui.backends.onnxruntime import session
from dld_tui.backends.onnxruntime.session import DENORMALS_ENTRY, Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="ONNX Runtime ignores the entry on other processors",
)
_SIZE = 200_000
"""So many that several threads share the work."""
_SMALL = np.full(_SIZE, 1e-20, np.float32)
"""Their squares are denormal."""


def _squares(path: Path) -> Path:
    """Write a model that squares."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [_SIZE]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "x"], ["y"])], "squares", ends[:1], ends[1:]
    )
    imports = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), path)
    return path


def _session(model: Path, threads: int, *, zero: bool) -> Session:
    return Session(
        model, SessionSettings(threads=threads, config={DENORMALS_ENTRY: str(int(zero))})
    )


def _shares_of_zeros(sessions: list[Session]) -> list[float]:
    return [float((one.run({"x": _SMALL})[0] == 0).mean()) for one in sessions]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", list(itertools.product((False, True), repeat=3)))
def test_each_session_computes_as_it_asks_for_whatever_was_made_before(
    tmp_path: Path, order: tuple[bool, ...], threads: int
) -> None:
    model = _squares(tmp_path / "squares.onnx")
    sessions = [_session(model, threads, zero=zero) for zero in order]

    assert _shares_of_zeros(sessions) == [float(zero) for zero in order]
    assert float((_SMALL * _SMALL)[0]) > 0, "and what NumPy computes afterwards is as it was"


@pytest.mark.parametrize(
    ("system", "machine", "libc", "loaded"),
    [
        ("linux", "x86_64", "glibc", ["libm.so.6"]), ("linux", "x86_64", "musl", [None]),
        ("linux", "aarch64", "glibc", []), ("darwin", "x86_64", "", []),
    ],
)  # fmt: skip
def test_the_library_of_the_floating_point_environment(
    system: str, machine: str, libc: str, loaded: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    made = SimpleNamespace(fesetenv=len)

    def load(name: str | None) -> object:
        asked.append(name)
        return made

    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: (libc, ""))
    monkeypatch.setattr(ctypes, "CDLL", load)
    assert session._library.__wrapped__() is (made if loaded else None)
    assert asked == loaded
    del made.fesetenv
    assert session._library.__wrapped__() is None
