from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dld_tui.core.machine import environment as module
from dld_tui.core.machine.environment import cpu_name, environment, package_version, waited_percent


def test_the_facts_of_this_machine_are_json_and_say_the_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = environment(["numpy", "no-such-distribution"])

    assert json.loads(json.dumps(facts)) == facts
    assert {"cpu", "cpu_threads", "os", "python", "machine", "numpy"} <= facts.keys()
    assert "no-such-distribution" not in facts
    assert None not in facts.values()
    assert package_version("no-such-distribution") is None
    assert package_version("numpy")
    monkeypatch.setattr(module, "_read", lambda path: None)
    assert "other_busy_threads" not in module.CpuWatch().environment()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the /sys/devices/system/cpu of a machine of two cores with two threads each."""
    for number in range(4):
        cpu = tmp_path / f"cpu{number}"
        (cpu / "topology").mkdir(parents=True)
        (cpu / "topology/physical_package_id").write_text("0\n")
        (cpu / "topology/core_id").write_text(f"{number // 2}\n")
        (cpu / "cpufreq").mkdir()
        (cpu / "cpufreq/scaling_governor").write_text("powersave\n" if number else "performance\n")
        (cpu / "cpufreq/scaling_cur_freq").write_text(f"{1_000_000 + number * 1000}\n")
        (cpu / "cpufreq/cpuinfo_max_freq").write_text("3500000\n")
    (tmp_path / "intel_pstate").mkdir()
    (tmp_path / "intel_pstate/no_turbo").write_text("1\n")
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    monkeypatch.setattr(module, "_CPU_ROOT", tmp_path)
    monkeypatch.setattr(module, "_CGROUP_LIMIT", tmp_path / "cpu.max")
    return tmp_path


def test_clocks_cores_and_limits(machine: Path) -> None:
    facts = environment()

    assert facts["cpu_cores"] == 2
    assert facts["cpu_governor"] == "performance, powersave"
    assert facts["cpu_mhz"] == 1003
    assert facts["cpu_mhz_max"] == 3500
    assert facts["cpu_boost"] is False
    assert facts["cpu_limit"] == 1.5


@pytest.mark.parametrize("text", ["max 100000\n", "", "x y\n", "100 0\n"])
def test_no_limit(machine: Path, text: str) -> None:
    (machine / "cpu.max").write_text(text)

    assert "cpu_limit" not in environment()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"model name": "Fast One"}, "Fast One"),
        ({"CPU implementer": "0x41", "CPU part": "0xd42"}, "Cortex-A78AE"),
        ({"CPU implementer": "0x41", "CPU part": "0xfff"}, "Arm processor"),
    ],
)
def test_names_of_processors(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], name: str
) -> None:
    monkeypatch.setattr(module, "_cpu_fields", lambda: fields)

    assert cpu_name() == name


def test_others_on_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four processors this process may use two; what the others do is not its concern."""
    ticks = os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 10})
    seconds = iter([(96, 10.0, 5.0), (108, 16.0, 8.0)])

    def at(now: tuple[float, float, float]) -> None:
        busy, clock, own = now
        share = {"cpu1": busy / 4, "cpu10": 3 * busy / 4, "cpu0": 77 * clock, "cpu11": 9 * clock}
        share = {"cpu": sum(share.values()), **share}
        parts = {name: int(each * ticks / 6) for name, each in share.items()}
        # user, nice, system, idle, wait, interrupts, soft ones, stolen; two are in the first.
        lines = [f"{name} {n} {n} {n} 500 9 {n} {n} {n} 77 77" for name, n in parts.items()]
        monkeypatch.setattr(module, "_read", lambda path: "\n".join([*lines, "intr 1 2"]))
        monkeypatch.setattr(f"{module.__name__}.time.monotonic", lambda: clock)
        monkeypatch.setattr(module, "_own_seconds", lambda: own)

    at(next(seconds))
    watch = module.CpuWatch()
    at(next(seconds))
    assert watch.environment()["other_busy_threads"] == 1.5  # 12 s of work, 3 of them ours, in 6 s


@pytest.mark.parametrize(
    ("text", "percent"),
    [("300 100 7", 25.0), ("0 0 0", 0.0), ("", 0.0), ("5", 0.0), ("a b c", 0.0), (None, 0.0)],
)
def test_the_share_of_waiting_is_that_of_the_scheduler(
    monkeypatch: pytest.MonkeyPatch, text: str | None, percent: float
) -> None:
    monkeypatch.setattr(module, "_read", lambda path: text)
    assert waited_percent() == percent
