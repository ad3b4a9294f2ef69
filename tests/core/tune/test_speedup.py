"""Speedups as figures and titles."""

from __future__ import annotations

from dld_tui.core.tune.result import Speedup


def test_a_wide_interval_claims_its_least_and_no_median() -> None:
    """On a busy machine a confirmation left 1.21 to 262.73, with a median of 12.64."""
    wide, narrow = Speedup(12.64, 1.21, 262.73), Speedup(1.25, 1.2, 1.31)
    assert wide.text == "at least 1.21× (1.21 to 262.73)"
    assert (wide.title, wide.claim) == ("at least 1.21×", "at least 1.21×")
    assert (narrow.text, narrow.title) == ("1.25× (1.20 to 1.31)", "1.25× (at least 1.20×)")
