"""Where the time went, in sentences."""

from __future__ import annotations

from typing import Any

from dld_tui.core.compare.comparison import Comparison
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
    assert "ms  c  1.47×" in text  # its ONNX node


def test_runs_that_differ_without_a_reason() -> None:
    text = lines(plain(), plain(1.5, 10))
    assert "No setting and nothing recorded of the machine differs" in text
    same = lines(plain(), plain())
    assert "within noise" in same
    assert "No setting" not in same


def test_fusion_is_explained() -> None:
    apart = subject(
        timed("conv", noisy(1.0, 1), ["c"]),
        timed("relu", noisy(0.5, 2), ["r"], "Relu"),
    )
    fused = subject(timed("conv_nchwc", noisy(0.9, 3), ["c", "r"], "FusedConv"))
    text = lines(apart, fused)
    assert "Fused in B, not in A: 1 layer of B does the work of 2 of A (-0.6" in text
    assert "  FusedConv (conv_nchwc)  =  Conv + Relu" in text
    assert "A 2 layers, B 1" in text
    assert "Fused in A, not in B: 1 layer of A does the work of 2 of B (+0.6" in lines(fused, apart)


def test_layers_of_one_report_only() -> None:
    reorder = [timed(f"r{n}", noisy(0.1, n), [], "ReorderOutput") for n in range(3)]
    more = subject(timed("conv", noisy(1.0, 1), ["c"]), *reorder)
    bare = subject(timed("conv", noisy(1.0, 5), ["c"]))
    text = lines(bare, more)
    assert "Only in B: 3 layers, 0.299 ms" in text
    assert "(3 ReorderOutput); all convert a layout, type or device." in text
    assert "Only in A: 3 layers" in lines(more, bare)


def test_fallback_and_precision() -> None:
    cpu, cuda = "CPUExecutionProvider", "MyExecutionProvider"
    text = lines(plain(provider=cuda), plain(3.0, 9, provider=cpu))
    assert f"Fallback in B: 1 row runs on {cpu} in B, on {cuda} in A (+3.978 ms)" in text
    half = lines(plain(precision="float32"), plain(0.5, 9, precision="float16"))
    assert "1 row runs in float16 in B, in float32 in A (-1" in half


def test_time_outside_the_layers_is_said() -> None:
    slow = plain()
    fast = subject(
        timed("conv", noisy(1.0, 10), ["c"]),
        timed("add", noisy(0.5, 11), ["a"], "Add"),
        latencies=noisy(2.4, 12, spread=0.001),
    )
    assert "is not in the layers" in lines(slow, fast)


def test_delays_that_no_row_tells() -> None:
    """Each pass another layer is delayed, so no median moves and every pass does."""
    count = 12
    calm = [timed(f"x{n}", noisy(1.0, n), [f"x{n}"]) for n in range(count)]
    delayed = []
    for n in range(count):
        times = list(noisy(1.0, 40 + n))
        times[n::count] = [time + 8.0 for time in times[n::count]]
        delayed.append(timed(f"x{n}", times, [f"x{n}"]))
    text = lines(subject(*calm), subject(*delayed))
    assert "no row tells it" in text
    assert "no row tells it" not in lines(plain(), plain(1.5, 10))


def test_too_few_passes_still_name_the_largest_change() -> None:
    first, second = subject(timed("x", [1.0, 1.0])), subject(timed("x", [3.0, 3.0]))
    text = lines(first, second)
    assert "too few passes to tell" in text
    assert "0 of 1 row changed by more than noise, 0 did not, 1 cannot be told." in text
    assert "+2.000 ms  x  3.00×" in text


def test_averages_are_ranked_with_what_is_in_one_only() -> None:
    first = subject(timed("x", 1.0), timed("gone", 0.1), by_pass=False)
    text = lines(first, subject(timed("x", 3.0), by_pass=False))
    assert text.index("+2.000 ms  x  3.00×") < text.index("-0.100 ms  gone  only in A")


def test_nothing_measured() -> None:
    empty = subject(by_pass=False)
    assert "no latency was measured in both" in lines(empty, empty)


def test_foreign_names_are_made_visible() -> None:
    evil = subject(timed("\x1b[31mred", noisy(1.0, 1)))
    assert "\x1b" not in lines(evil, subject(timed("other", noisy(9.0, 2))))


def test_three_reports_are_explained_one_by_one() -> None:
    found = Comparison([plain(), plain(2.0, 9), plain(3.0, 19)]).explanation()
    starts = [line for line in found if " takes " in line]
    assert [line[0] for line in starts] == ["B", "C"]
