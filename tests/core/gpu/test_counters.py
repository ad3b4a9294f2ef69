from __future__ import annotations

import pytest

from dld_tui.core.report.gpu_kernels import (
    HARDWARE_ROWS,
    CounterSpec,
    HardwareRow,
    SamplingPlan,
    plan_sampling,
)


def test_a_row_takes_the_best_name_that_the_chip_has() -> None:
    row = HardwareRow("DRAM", ("dram__throughput", "fbpa__throughput"))
    peak = ".avg.pct_of_peak_sustained_elapsed"

    assert row.spec({"fbpa__throughput", "dram__throughput"}) == CounterSpec(
        f"dram__throughput{peak}", "DRAM", "%", 100.0
    )
    assert row.spec({"fbpa__throughput"}) == CounterSpec(f"fbpa__throughput{peak}", "DRAM")
    assert row.spec({"gr__cycles_active"}) is None


def test_the_rows_are_the_four_that_were_seen_to_work_together() -> None:
    assert [(row.title, row.names[0]) for row in HARDWARE_ROWS] == [
        ("SM active", "sm__cycles_active"),
        ("DRAM", "dram__throughput"),
        ("Tensor Core", "sm__pipe_tensor_cycles_active"),
        ("PCIe", "pcie__throughput"),
    ]


@pytest.mark.parametrize(
    ("pass_ms", "passes", "plan"),
    [
        (2.0, 50, SamplingPlan(50, 10.0, 10_000)),
        (100.0, 50, SamplingPlan(1, 10.0, 10_000)),  # fewer passes
        (4_000.0, 50, SamplingPlan(1, 400.0, 10_000)),  # one pass, less often
        (0.001, 3, SamplingPlan(3, 10.0, 3)),
    ],
)
def test_what_fits(pass_ms: float, passes: int, plan: SamplingPlan) -> None:
    assert plan_sampling(pass_ms, passes, 10.0) == plan
