"""Changes to how Python runs: what is frozen is freed all the same, once nobody refers to it."""

from __future__ import annotations

import gc
import hashlib
import subprocess
import sys
import weakref
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.process import interpreter
from dld_tui.core.process.interpreter import (
    collect,
    collector_paused,
    freeze,
    pause,
    resume,
)


@pytest.fixture(autouse=True)
def frozen_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it freeze for real, which it may not in other tests."""
    monkeypatch.setattr(interpreter, "gc", gc)


class _Ring:
    def __init__(self) -> None:
        self.itself = self


def _frozen_ring() -> weakref.ref[_Ring]:
    ring = _Ring()
    freeze()
    return weakref.ref(ring)


def test_what_was_frozen_is_freed() -> None:
    ref = _frozen_ring()
    gc.collect()
    assert ref() is not None
    collect()
    assert ref() is None


class _Collector(list[str]):
    """Takes note of the calls of gc."""

    is_on = True

    def __getattr__(self, name: str) -> Callable[[], bool]:
        def call() -> bool:
            self.append(name)
            self.is_on = {"enable": True, "disable": False}.get(name, self.is_on)
            return self.is_on

        return call


def test_when_what_is_collected_and_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each twentieth time everything is collected, else garbage that is frozen would add up."""
    calls = _Collector()
    monkeypatch.setattr(interpreter, "gc", calls)
    monkeypatch.setattr(interpreter, "_frozen", [0])
    told = []
    steps = (collector_paused, pause, collector_paused, resume, resume, collector_paused, collect)
    for step in (*steps, *[freeze] * 20, resume):
        calls.clear()
        if (pausing := step()) is not None:
            with pausing, collector_paused():
                calls.append("…")
        told.append(" ".join(calls))
    assert told == [
        "isenabled disable isenabled disable … freeze unfreeze enable", "disable",
        "isenabled disable isenabled disable …", "isenabled freeze enable", "isenabled",
        "isenabled disable isenabled disable … enable", "unfreeze collect freeze",
        *["freeze"] * 18, "unfreeze collect freeze", "freeze", "isenabled",
    ]  # fmt: skip


_WITHOUT_TLS = """
import sys
from dld_tui.core.process.interpreter import import_asyncio_without_tls
import_asyncio_without_tls()
assert "asyncio" in sys.modules and "ssl" not in sys.modules
import ssl
assert sys.modules["asyncio.sslproto"].ssl is None
del sys.modules["asyncio"]
import_asyncio_without_tls()
assert sys.modules["ssl"] is ssl and "asyncio" not in sys.modules
"""


def test_asyncio_is_imported_without_tls_unless_that_is_there() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_TLS], check=True)


@given(st.binary(max_size=200))
def test_sha256_without_openssl_is_that_of_openssl(data: bytes) -> None:
    assert interpreter.sha256_without_openssl(data) == hashlib.sha256(data).hexdigest()


def test_threads_take_short_turns() -> None:
    before = sys.getswitchinterval()
    try:
        interpreter.take_short_turns()
        assert sys.getswitchinterval() == pytest.approx(0.0005)
    finally:
        sys.setswitchinterval(before)
