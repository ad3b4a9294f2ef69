"""How the time of a pass is distributed over layers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dld_tui.core.report.moments import Stretch, moments_of


@pytest.mark.parametrize("seed", range(20))
def test_each_moment_is_of_what_runs_or_starts_next(seed: int) -> None:
    """Against a walk through the pass, microsecond by microsecond."""
    draw = random.Random(seed)
    spans: list[Stretch] = []
    for track in range(draw.randint(1, 3)):
        at = 0
        while at < 80:
            start, took = at + draw.randint(0, 5), draw.randint(0, 12)
            outer = draw.choice([None, *range(5)])
            spans.append(Stretch(outer, start, start + took, track))
            if took > 4:  # as the body of a loop
                spans.append(Stretch(draw.randrange(5), start + 1, start + took - 1, track))
            at = start + took
    length = 100
    running, waiting, other = [0.0] * 5, [0.0] * 5, 0.0
    pending = 0
    for us in range(length):
        starting = [one for one in spans if one.start_us == us]
        if pending and starting:
            # What is listed first of what starts then; the longest, as the outer one of a track.
            first = min(starting, key=lambda one: -one.end_us)
            if first.layer is None:
                other += pending
            else:
                waiting[first.layer] += pending
            pending = 0
        inner: dict[object, Stretch] = {}
        for one in spans:
            if one.start_us <= us < one.end_us:
                known = inner.get(one.track)
                if known is None or one.start_us > known.start_us:
                    inner[one.track] = one
        for one in inner.values():
            if one.layer is None:
                other += 1 / len(inner)
            else:
                running[one.layer] += 1 / len(inner)
        pending += not inner
    other += pending
    found = moments_of(spans, length, 5)
    np.testing.assert_allclose(found.running_ms, np.array(running) / 1000, atol=1e-12)
    np.testing.assert_allclose(found.waiting_ms, np.array(waiting) / 1000, atol=1e-12)
    assert found.other_ms == pytest.approx(other / 1000)
    assert found.running_ms.sum() + found.waiting_ms.sum() + found.other_ms == pytest.approx(0.1)


def test_what_ends_before_it_starts_takes_no_time() -> None:
    moments = moments_of([Stretch(0, 5.0, 2.0, 1), Stretch(1, 6.0, 9.0, 1)], 10.0, 2)
    assert moments.running_ms.tolist() == pytest.approx([0.0, 0.003])
    assert moments.waiting_ms.tolist() == pytest.approx([0.005, 0.001])
    assert moments.other_ms == pytest.approx(0.001)
