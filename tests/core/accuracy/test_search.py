"""What a search for the nodes that must stay in fp32 costs, in words."""

from __future__ import annotations

from dataclasses import replace

from dld_tui.core.accuracy.search import SearchEstimate, cost_text


def test_the_cost_is_told_in_trials_and_time() -> None:
    estimate = SearchEstimate(300, "trial", 0.05, (1, 62), 0, 20, (0.05, 3.1))
    assert "about 20 more (1.0 s) for each node" in cost_text(estimate)
    text = cost_text(replace(estimate, ranking_trials=318, trial="build"))
    assert "A build takes 50 ms" in text
    assert "up to 318 to rank them (15.9 s)" in text
