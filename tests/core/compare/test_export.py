"""What is said of a difference and its noise."""

from __future__ import annotations

from dld_tui.core.compare.matching import METHOD
from dld_tui.core.compare.records import Cell, Interval
from dld_tui.core.compare.rows import verdict

SURE = Cell(1.5, (0,), 0.5, 1.5, Interval(0.4, 0.6))
NOISE = Cell(1.01, (0,), 0.01, 1.01, Interval(-0.02, 0.04))


def test_verdicts() -> None:
    assert verdict(SURE) == (
        "+0.500 ms (1.50×), more than the noise within the runs (95 % interval +0.400 to +0.600 ms)"
    )
    assert "within noise" in verdict(NOISE)
    # An interval of the row alone leaves out 0, and the ranks of all rows tell nothing.
    ranked = Cell(1.5, (0,), 0.5, 1.5, Interval(0.4, 0.6), is_discovery=False)
    assert ranked.noise
    assert "within noise by the rank test, though not by its interval" in verdict(ranked)
    assert "larger than its ± can be noise" in METHOD
    assert "too few passes" in verdict(Cell(2.0, (0,), 1.0, 2.0))
