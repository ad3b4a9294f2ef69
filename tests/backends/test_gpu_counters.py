from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.backends.machine.capture import HardwareSampler
from dld_tui.core.errors import UnavailableError
from tests.support import gpu

PEAK = ".avg.pct_of_peak_sustained_elapsed"
NAMES = [
    "sm__cycles_active",
    "dram__throughput",
    "sm__pipe_tensor_cycles_active",
    "pcie__throughput",
]


def sampler(
    accepts: list[str],
    base: list[str] | None = None,
    rounds: tuple[int, ...] = (3,),
    refuses: Exception | None = None,
) -> tuple[HardwareSampler, Any]:
    class Collector(gpu.FakeCollector):
        alive = 0

    Collector.accepts = frozenset(name + PEAK for name in accepts)
    Collector.rounds, Collector.refuses = rounds, refuses
    host = gpu.fake_host(NAMES if base is None else base)
    modules = (SimpleNamespace(Collector=Collector), host)
    return HardwareSampler(0, 10.0, 100, modules), Collector


def test_samples_of_all_rows() -> None:
    found, collector = sampler(NAMES)
    found.start()
    series = found.stop()

    assert [one.spec.title for one in series] == ["SM active", "DRAM", "Tensor Core", "PCIe"]
    assert series[0].samples == [(1050, 0.0), (1150, 10.0), (1250, 20.0)]  # at the middle
    assert series[3].samples[0] == (1050, 3.0)
    assert {one.absent for one in series} == {None}
    assert collector.alive == 0


def test_only_what_comes_in_one_go_is_kept() -> None:
    """A second call gives samples without times and values (CUPTI 13.4, H200)."""
    found, _ = sampler(NAMES, rounds=(3, 2))
    found.start()

    assert {len(one.samples) for one in found.stop()} == {3}


def test_a_sample_without_a_start_is_left_out() -> None:
    found, collector = sampler(NAMES)
    collector.first_start = 0
    found.start()

    assert {len(one.samples) for one in found.stop()} == {2}


def test_rows_that_a_chip_cannot_count_together_are_given_up_and_named() -> None:
    found, collector = sampler(NAMES[:2])
    assert [spec.title for spec in found.specs] == ["SM active", "DRAM"]
    found.start()
    series = found.stop()

    assert [one.spec.title for one in series if one.samples] == ["SM active", "DRAM"]
    absent = {one.spec.title: one.absent for one in series if not one.samples}
    assert absent == dict.fromkeys(
        ("PCIe", "Tensor Core"), "this GPU does not count it together with the other rows"
    )
    assert collector.alive == 0


def test_a_counter_that_the_chip_has_not_is_named() -> None:
    found, _ = sampler(NAMES, base=[name for name in NAMES if "pcie" not in name])

    assert [(one.spec.title, one.absent) for one in found.absent] == [
        ("PCIe", "this GPU has no such counter")
    ]
    assert len(found.specs) == 3


def test_no_sample_is_said_and_not_drawn() -> None:
    found, _ = sampler(NAMES, rounds=(0,))
    found.start()

    assert {one.absent for one in found.stop()} == {"the GPU returned no sample"}


def test_nothing_that_can_be_counted() -> None:
    with pytest.raises(UnavailableError, match="cannot sample its counters: not in one pass"):
        sampler([])


def test_no_permission_says_what_would_give_it() -> None:
    with pytest.raises(UnavailableError, match="not permitted") as caught:
        sampler(NAMES, refuses=PermissionError("no"))
    assert "root" in str(caught.value.hint)
