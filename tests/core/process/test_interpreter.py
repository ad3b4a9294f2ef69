"""Changes to how Python runs: what is frozen is freed all the same, once nobody refers to it."""

from __future__ import annotations

import gc
import hashlib
import sys
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.process import interpreter
from dld_tui.core.process.interpreter import collect, freeze


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


@pytest.mark.broad
def test_frozen_rings_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_EVERY", 5)
    refs = [_frozen_ring() for _ in range(11)]
    assert sum(ref() is not None for ref in refs) < 6


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
