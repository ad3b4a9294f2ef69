"""Where the time went, in sentences."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.export import compare_table, comparison_json
from dld_tui.core.compare.records import Subject
from tests.support.compared import noisy, subject, timed


def lines(*subjects: Subject) -> str:
    return "\n".join(Comparison(subjects).explanation())


def plain(factor: float = 1.0, seed: int = 1, **more: Any) -> Subject:
    conv = timed("conv", noisy(2.0 * factor, seed), ["c"], **more)
    add = timed("add", noisy(0.5, seed + 1), ["a"], "Add")
    latencies = noisy(2.5 + 2 * (factor - 1), seed + 2)
    return subject(conv, add, latencies=latencies, model={"sha256": "0"})


def test_a_slower_layer_is_named_with_its_share() -> None:
    text = lines(plain(), plain(1.5, 10))
    assert "more than the noise within the runs (95 % interval" in text
    assert "1 of 2 rows changed by more than noise, 1 did not." in text
    assert "That row makes 99 %" in text  # nearly all that moved
    assert "ms  c  1.49×" in text  # its ONNX node
    assert "No setting and nothing recorded of the machine differs" in text
    assert "is not in the layers" not in text
    assert "busy" not in text
    same = lines(plain(), plain())
    assert "within noise" in same
    assert "No setting" not in same
    empty = subject(by_pass=False)
    assert "no latency was measured in both" in lines(empty, empty)
    evil = subject(timed("\x1b[31mred", noisy(1.0, 1)))
    assert "\x1b" not in lines(evil, subject(timed("other", noisy(9.0, 2))))


def test_fallback_and_precision() -> None:
    cpu, cuda = "CPUExecutionProvider", "MyExecutionProvider"
    text = lines(plain(provider=cuda), plain(3.0, 9, provider=cpu))
    assert f"Fallback in B: 1 row runs on {cpu} in B, on {cuda} in A (+3.740 ms)" in text
    half = lines(plain(precision="float32"), plain(0.5, 9, precision="float16"))
    assert "1 row runs in float16 in B, in float32 in A (-0.96" in half


def test_delays_by_other_programs_are_in_no_layer() -> None:
    """Each pass another layer is delayed: none takes longer undisturbed, and every pass does."""
    count = 12
    calm = [timed(f"x{n}", noisy(1.0, n), [f"x{n}"]) for n in range(count)]
    delayed = []
    for n in range(count):
        times = list(noisy(1.0, 40 + n))
        times[n::count] = [time + 8.0 for time in times[n::count]]
        delayed.append(timed(f"x{n}", times, [f"x{n}"]))
    text = lines(subject(*calm), subject(*delayed))
    assert "is not in the layers (time between them, delays by other programs" in text


def test_a_machine_four_times_slower_is_one_finding() -> None:
    """And a row that does not follow it is another: here it takes twelve times as long."""
    factors = [3.5 + 0.1 * at for at in range(15)] + [12.0]
    base = [timed(f"x{at}", noisy(1.0, at), [f"x{at}"]) for at in range(16)]
    slow = [timed(f"x{at}", noisy(factor, 50 + at), [f"x{at}"])
            for at, factor in enumerate(factors)]  # fmt: skip
    comparison = Comparison([subject(*base), subject(*slow)])
    text = "\n".join(comparison.explanation())
    assert re.search(
        r"All but 1 of 16 rows take 3\.[45]\d?× to [45][.\d]*× the time of A in B", text
    )
    assert "is of the machine" in text
    told = "1 of 16 rows changed by more than noise and otherwise than by the common factor"
    assert told in text
    assert "The largest row that does not follow it:" in text
    found = {row.key for row in comparison.rows() if comparison.is_change(row, 1)}
    assert found == {"x15"}
    document: Any = comparison_json(comparison)
    assert [row["follows_factor"][1] for row in document["rows"]].count(True) == 15
    assert document["common_factors"][1]["ratio"] == pytest.approx(4.2, rel=0.03)
    table = compare_table(comparison, "layer", comparison.rows(), "text")
    notes = [column.shown_text(row) for column in table.columns if column.key == "remark"
             for row in table.rows]  # fmt: skip
    assert sorted(notes) == ["", *["common"] * 15]


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


def test_a_setting_may_be_the_common_cause() -> None:
    def run(factor: float, threads: int) -> Subject:
        rows = [timed(f"x{at}", noisy(factor, at), [f"x{at}"]) for at in range(9)]
        return subject(*rows, settings={"threads": threads}, model={"sha256": "0"})

    assert "or of what differs (threads)" in lines(run(1.0, 8), run(5.0, 1))
    assert "common factor" not in lines(run(1.0, 8), run(1.01, 1))


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


def test_a_busy_machine_makes_no_difference_certain() -> None:
    busy = {"cpu_threads": 2, "other_busy_threads": 1.7}
    assert "not certain, since the machine was busy while B was measured" in lines(
        plain(), subject(timed("conv", noisy(3.0, 9), ["c"]), latencies=noisy(3.5, 4),
                         model={"sha256": "0"}, environment=busy),
    )  # fmt: skip
