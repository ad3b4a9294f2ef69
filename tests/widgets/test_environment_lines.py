from __future__ import annotations

from pathlib import Path

from dld_tui.core.report.report import Report
from dld_tui.core.types import JSON
from dld_tui.widgets.results.report_views import device_rows, environment_lines
from tests.support.gpu_reports import make_gpu_report


def test_the_gpu_comes_first_with_units_and_what_changed_in_the_run(tmp_path: Path) -> None:
    with Report.open(make_gpu_report(tmp_path / "g.dldprof")) as report:
        lines = environment_lines(report, None)
    texts = ["".join(text for text, _ in line).strip() for line in lines]
    assert texts.index("GPU, clocks and power") < texts.index("Environment")
    assert texts.index("python  3.11") > texts.index("Environment")
    found = {line.split("  ")[0]: line for line in texts}
    assert "1,980 MHz, after the run 1,755 MHz" in found["sm"]
    assert "151 GB" in found["memory"]
    assert "31 °C" in found["temperature"]
    assert not any("after" in name for name in found)


def test_throttling_and_floating_clocks_are_warnings() -> None:
    facts: dict[str, JSON] = {
        "gpu_clocks_locked": False,
        "gpu_throttling": "none",
        "gpu_throttling_after": "power cap",
        "gpu_power_w": 650.25,
        "jetson_power_mode": "MAXN\x1b[2J",
    }
    rows = {name: (text, style) for name, text, style in device_rows(facts)}
    assert rows["clocks locked"] == ("no", "warn")
    assert rows["throttling"] == ("none, after the run power cap", "warn")
    assert rows["power"] == ("650.2 W", "")
    assert rows["jetson power mode"] == ("MAXN\\x1b[2J", "")
    moved: dict[str, JSON] = {
        "gpu_sm_mhz": 1980.0,
        "gpu_sm_mhz_lowest": 1755.0,
        "gpu_sm_mhz_highest": 1980.0,
    }
    assert device_rows(moved) == [("sm", "1,980 MHz (1,755 MHz to 1,980 MHz)", "")]
    calm: dict[str, JSON] = {"gpu_throttling": "none", "gpu_clocks_locked": 1590}
    assert {style for _, _, style in device_rows(calm)} == {""}
