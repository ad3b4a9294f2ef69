"""How much a finding of an engine plan could save, against sums by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dld_tui.core.tensorrt.plan.export import finding_json
from dld_tui.core.tensorrt.plan.gains import GainRange, gain_text
from dld_tui.core.tensorrt.plan.layer_work import macs, peaks_of
from dld_tui.core.tensorrt.plan.lint import PlanFinding, findings, grouped
from tests.core.tensorrt.plan.test_lint import FAST, SLOW, statistics, timing
from tests.support.plans import layer, plan

SHARE = "the share of these layers"
A100 = {"Name": "NVIDIA A100-SXM4-80GB"}


def by_rule(*layers: Any, **fields: Any) -> dict[str, PlanFinding]:
    return {finding.rule: finding for finding in findings(plan(layers, **fields))}


def test_a_layer_that_becomes_free_saves_its_share() -> None:
    found = by_rule(
        layer(0, of="int8", dims=(1, 64, 8, 8), tactic=SLOW, percent=30.0, time_ms=0.3),
        layer(1, type="Pooling", of="fp16", percent=70.0, time_ms=0.7),
    )
    assert found["conv-off-tensor-cores"].gain == GainRange(
        (0.0, 30.0), "the share of these layers"
    )
    assert found["long-layer"].gain == GainRange((0.0, 70.0), "the share of these layers")


def test_without_times_there_is_no_range() -> None:
    found = by_rule(layer(0, of="int8", dims=(1, 64, 8, 8), tactic=SLOW))
    assert found["conv-off-tensor-cores"].gain is None
    data = finding_json(found["conv-off-tensor-cores"])
    assert isinstance(data, dict)
    assert (data["gain_percent"], data["gain_from"]) == (None, None)


def test_a_layer_that_stays_saves_what_it_takes_beyond_its_roofline() -> None:
    odd = layer(
        0, of="fp16", dims=(1, 36, 56, 56), tactic=FAST, percent=40.0, time_ms=0.4,
        attributes={"Kernel": [3, 3], "OutMaps": 36, "Groups": 1},
    )  # fmt: skip
    rest = layer(1, type="Pooling", of="fp16", percent=60.0, time_ms=0.6)
    other = layer(2, type="Pooling", of="fp16", percent=1.0, time_ms=0.01)
    gain = by_rule(rest, odd, other, device=A100)["conv-channels-unaligned"].gain
    assert gain is not None
    peaks, count = peaks_of(A100), macs(odd)
    assert peaks is not None
    assert count is not None
    assert odd.footprint is not None
    ideal_s = max(2 * count / 312e12, odd.footprint / peaks.bandwidth)
    expected = 40.0 * (1 - 1000 * ideal_s / 0.4)
    assert gain.percent == pytest.approx((0.0, expected))
    assert "roofline" in gain.source
    # Of an unknown device no roofline is known: the share bounds it.
    share = by_rule(rest, odd, other)["conv-channels-unaligned"].gain
    assert share == GainRange((0.0, 40.0), SHARE)


def test_layers_in_fp32_are_bounded_by_their_roofline_in_half_of_the_bytes() -> None:
    full = layer(
        0, of="fp32", dims=(1, 64, 56, 56), percent=90.0, time_ms=0.9,
        attributes={"Kernel": [3, 3], "OutMaps": 64, "Groups": 1},
    )  # fmt: skip
    gain = by_rule(full, device=A100, total_ms=1.0)["runs-in-fp32"].gain
    assert gain is not None
    peaks, count = peaks_of(A100), macs(full)
    assert peaks is not None
    assert count is not None
    assert full.footprint is not None
    ideal_s = max(2 * count / 312e12, full.footprint / 2 / peaks.bandwidth)
    assert gain.percent == pytest.approx((0.0, 90.0 * (1 - 1000 * ideal_s / 0.9)))
    assert gain.source.endswith("roofline in fp16")


def test_what_only_concerns_the_measurement_saves_nothing() -> None:
    layers = [layer(at, type="Pooling", of="fp16", percent=1.0, time_ms=2.0, median_ms=1.0)
              for at in range(3)]  # fmt: skip
    assert by_rule(*layers)["mean-above-median"].gain is None


def test_launches_and_copies_are_bounded_by_the_times_of_inferences() -> None:
    times = timing(compute=statistics(1.0), enqueue=statistics(4.0))
    found = by_rule(timing=times)["launch-bound"].gain
    assert found is not None
    assert found.percent == (0.0, 75.0)
    assert found.source == "the time on the GPU against that of an inference"
    half = layer(0, type="Pooling", of="fp16", percent=4.0, time_ms=0.5)
    with_layers = by_rule(half, timing=times, total_ms=0.5)["launch-bound"].gain
    assert with_layers is not None
    assert with_layers.percent == (0.0, 87.5)
    copies = timing(compute=statistics(1.0), h2d=statistics(2.0), d2h=statistics(1.0))
    ranges = {rule: finding.gain for rule, finding in by_rule(timing=copies).items()}
    assert {rule: gain.percent for rule, gain in ranges.items() if gain} == {
        "h2d-bound": (0.0, 50.0), "d2h-bound": (0.0, 25.0)
    }  # fmt: skip


def test_a_group_counts_each_layer_once_and_says_from_what() -> None:
    layers = [layer(at, of="int8", dims=(1, 64, 8, 8), tactic=SLOW, percent=3.0, time_ms=0.03)
              for at in range(3)]  # fmt: skip
    whole = plan(layers)
    (group,) = (one for one in grouped(whole, findings(whole)) if one.rule.startswith("conv-off"))
    assert group.gain is not None
    assert gain_text(group.gain) == "saves 0 to 9.0 % of the time (the share of these layers)"
    assert json.dumps([finding_json(finding) for finding in group.findings])
