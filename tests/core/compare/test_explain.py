"""Where the time went, in sentences."""

from __future__ import annotations

import random
import re

from dld_tui.core.compare.comparison import Comparison
from tests.support.compared import noisy, subject, timed


def test_a_row_whose_noise_reaches_the_common_factor_follows_it() -> None:
    """Its own ratio is too low or too high, and the interval of it is not."""

    def uneven(low: float, high: float, slow: int) -> list[float]:
        times = [*noisy(0.02 * low, 5, 50 - slow), *noisy(0.02 * high, 6, slow)]
        random.Random(1).shuffle(times)
        return times

    short = {"low": uneven(2, 5, 40), "high": uneven(4, 9, 44), "far": uneven(1, 2, 40)}
    base = [timed(f"x{at}", noisy(1.0, at)) for at in range(15)]
    base += [timed(name, noisy(0.02, at)) for at, name in enumerate(short, 16)]
    slow = [timed(f"x{at}", noisy(3.5 + 0.1 * at, 50 + at)) for at in range(15)]
    slow += [timed(name, times) for name, times in short.items()]
    found = Comparison([subject(*base), subject(*slow)])
    follows = {row.key: found.follows(row, 1) for row in found.rows()}
    assert [name for name, does in follows.items() if not does] == ["far"]


def test_no_difference_is_told_without_a_word_on_its_certainty() -> None:
    """A plain oracle over drawn reports: where samples are alike, no sentence claims more."""
    claims = re.compile(r"[-+]\d+\.\d+ ms|\d\.\d+×|faster|slower|speedup")
    hedges = ("noise", "not certain", "only in", "Only in", "cannot be told")
    for seed in range(20):
        rows = [timed(f"x{at}", noisy(1.0 + at, 100 * seed + at), [f"x{at}"], precision="fp16")
                for at in range(4)]  # fmt: skip
        again = [timed(f"x{at}", noisy(1.0 + at, 100 * seed + 50 + at), [f"x{at}"],
                       precision="fp32") for at in range(4)]  # fmt: skip
        pair = [subject(*own, latencies=noisy(10.0, seed * 7 + at))
                for at, own in enumerate((rows, again))]  # fmt: skip
        told = Comparison(pair).explanation()
        if any(cell.noise is False for row in Comparison(pair).rows() for cell in row.cells):
            continue  # a false alarm of the 5 %
        for line in told:
            assert not claims.search(line) or any(word in line for word in hedges), line
