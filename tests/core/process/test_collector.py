"""What is left out of collections is freed all the same, once nobody refers to it."""

from __future__ import annotations

import gc
import weakref

import pytest

from dld_tui.core.process import collector
from dld_tui.core.process.collector import collect, freeze


@pytest.fixture(autouse=True)
def frozen_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it freeze for real, which it may not in other tests."""
    monkeypatch.setattr(collector, "gc", gc)


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


def test_frozen_rings_do_not_add_up() -> None:
    refs = [_frozen_ring() for _ in range(100)]
    assert sum(ref() is not None for ref in refs) < 25
