from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.core.machine import environment as module
from dld_tui.core.machine.environment import (
    environment,
    package_version,
    peak_memory,
    waited_percent,
)


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


CPU_INFO = "processor : 0\nmodel name\t: Fast   One\ncpu MHz : 1234.5\nmodel name : Second\nflags\n"
ARM_INFO = "processor : 0\nCPU implementer : 0x41\nCPU part : {}\n"
STATUS = "VmPeak:\t 99 kB\nVmHWM:\t 2048 kB\nVmRSS: 5 kB\n"


@pytest.mark.parametrize(
    ("proc", "left_out", "changes", "facts"),
    [
        ({"cpuinfo": CPU_INFO, "status": STATUS}, ("boost",), {},
         {"cpu": "Fast One", "cpu_cores": 2, "cpu_threads": 3, "cpu_limit": 1.5,
          "cpu_governor": "performance, powersave", "cpu_mhz": 1003, "cpu_mhz_max": 3500,
          "cpu_boost": False, "load_average": [0.12, 1.0, 2.0], "memory_bytes": 12288,
          "os": "Some Linux", "kernel": "Linux 6.1", "machine": "x86_64", "python": "3.10.1",
          "peak": 2048 * 1024}),
        ({"cpuinfo": CPU_INFO}, ("no_turbo", "scaling_cur_freq", "scaling_governor", "cpu.max"),
         {"boost": "1"},
         {"cpu": "Fast One", "cpu_cores": 2, "cpu_threads": 3, "cpu_mhz": 1234.5,
          "cpu_mhz_max": 3500, "cpu_boost": True, "peak": None}),
        ({"cpuinfo": ARM_INFO.format("0xd42"), "status": "VmHWM: some kB"},
         ("no_turbo", "core_id", "cpuinfo_max_freq"),
         {"boost": "0", "scaling_governor": "schedutil"},
         {"cpu": "Cortex-A78AE", "cpu_threads": 3, "cpu_limit": 1.5, "cpu_boost": False,
          "cpu_governor": "schedutil", "cpu_mhz": 1003, "peak": None}),
        ({"cpuinfo": ARM_INFO.format("0xfff")},
         ("boost", "physical_package_id", "scaling_cur_freq"),
         {"no_turbo": "0", "cpuinfo_max_freq": "fast", "cpu.max": "7 0"},
         {"cpu": "Arm processor", "cpu_threads": 3, "cpu_governor": "performance, powersave",
          "cpu_boost": True, "peak": None}),
        ({"cpuinfo": "Hardware : Board\nModel : Pi"}, ("no_turbo", "boost", "cpu.max"), {},
         {"cpu": "Pi", "cpu_cores": 2, "cpu_threads": 3, "cpu_mhz": 1003, "cpu_mhz_max": 3500,
          "cpu_governor": "performance, powersave", "peak": None}),
        ({}, ("no_turbo", "boost", "cpu.max"), {},
         {"cpu": "x86_64", "cpu_cores": 2, "cpu_threads": 3, "cpu_mhz": 1003, "cpu_mhz_max": 3500,
          "cpu_governor": "performance, powersave", "peak": None}),
    ],
    ids=["Intel", "AMD", "Jetson", "Arm", "Pi", "unknown"],
)  # fmt: skip
def test_whole_machines(
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    proc: dict[str, str],
    left_out: tuple[str, ...],
    changes: dict[str, str],
    facts: dict[str, Any],
) -> None:
    """The shared facts are those of the first one."""
    (machine / "cpufreq").mkdir()
    for name, text in changes.items():
        for path in [*machine.rglob(name)] or [machine / "cpufreq" / name]:
            path.write_text(text)
    for name in left_out:
        for path in machine.rglob(name):
            path.unlink()
    read = module._read
    monkeypatch.setattr(
        module, "_read",
        lambda path: proc.get(path.name) if path.parts[1] == "proc" else read(path),
    )  # fmt: skip
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 3}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 5} if not process else {})
    monkeypatch.setattr(os, "getloadavg", lambda: (0.123, 1.0, 2.0))
    for name, value in (
        ("system", "Linux"), ("release", "6.1"), ("machine", "x86_64"), ("processor", ""),
        ("python_version", "3.10.1"), ("freedesktop_os_release", {"PRETTY_NAME": "Some Linux"}),
    ):  # fmt: skip
        monkeypatch.setattr(f"platform.{name}", lambda value=value: value)
    shared = ("load_average", "memory_bytes", "os", "kernel", "machine", "python")
    found = {**environment(), "peak": peak_memory()}
    for name in shared:
        if name not in facts:
            del found[name]
    assert found == facts


def test_the_seconds_of_this_process_are_those_of_its_children_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = SimpleNamespace(user=1.0, system=20.0, children_user=300.0, children_system=4000.0)
    monkeypatch.setattr(os, "times", lambda: used)
    assert module._own_seconds() == 4321.0


@pytest.mark.parametrize("text", ["max 100000\n", "", "x y\n", "100 0\n"])
def test_no_limit(machine: Path, text: str) -> None:
    (machine / "cpu.max").write_text(text)

    assert "cpu_limit" not in environment()


@pytest.mark.parametrize(
    ("text", "percent"),
    [("300 100 7", 25.0), ("0 0 0", 0.0), ("", 0.0), ("5", 0.0), ("a b c", 0.0), (None, 0.0)],
)
def test_the_share_of_waiting_is_that_of_the_scheduler(
    monkeypatch: pytest.MonkeyPatch, text: str | None, percent: float
) -> None:
    monkeypatch.setattr(module, "_read", lambda path: text)
    assert waited_percent() == percent
