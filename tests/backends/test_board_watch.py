from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias
from unittest.mock import Mock

import pytest

from dld_tui.activities.profile.onnxruntime import Request, run
from dld_tui.backends.machine.board_watch import (
    BoardWatch,
    NoValueError,
    find_sensors,
    read_number,
    total_rails,
)
from dld_tui.backends.machine.jetson import Jetson
from dld_tui.core.compare.comparison import subject_of
from dld_tui.core.compare.conditions import doubts, fairness_warnings
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Log, Metric
from dld_tui.core.report.measured_figures import measured_figures
from dld_tui.core.report.report import Report
from dld_tui.core.report.store import ReportWriter
from tests.support import jetson_sysfs, models
from tests.support.jetson_boards import answers, put
from tests.support.jetson_sysfs import Files

Boards: TypeAlias = Callable[..., Jetson]


@pytest.fixture
def board(tmp_path: Path) -> Boards:
    def make(files: Files, mode: str = "15W\n0") -> Jetson:
        root = tmp_path / "board"
        put(root, "proc/device-tree/model", "NVIDIA Jetson Orin Nano Developer Kit\0")
        for name, text in files.items():
            put(root, name, text + "\n")
        return Jetson(root, answers(f"NV Power Mode: {mode}\n"))

    return make


def watched(
    watch: BoardWatch, tmp_path: Path, until: Callable[[], bool]
) -> tuple[Report, list[Metric | Log]]:
    writer = ReportWriter.create(
        tmp_path / "r.dldprof", network="n", backend="b", execution_provider="CPU", device="d",
        model={}, settings={}, environment=dict(watch.start()),
    )  # fmt: skip
    begin, said = time.time_ns(), list[Metric | Log]()
    for _ in range(500):
        said += watch.metrics()
        if until():
            break
        time.sleep(0.01)
    assert until()
    watch.measured((begin, time.time_ns()), 0.25)
    watch.close()
    watch.write(writer, begin)
    watch.write(writer, begin)
    return Report.open(writer.finish()), said


def quick(board: Jetson, **settings: float) -> BoardWatch:
    return BoardWatch(board, interval_s=0.01, **settings)  # type: ignore[arg-type]


def rounds(watch: BoardWatch, count: int) -> Callable[[], bool]:
    """Return whether each track that says something has so many samples."""
    return lambda: (
        min(filter(None, (len(one.samples) for one in watch._tracks)), default=0) >= count
    )


def test_tracks_energy_mode_and_what_is_silent(board: Boards, tmp_path: Path) -> None:
    watch = quick(board(jetson_sysfs.ORIN_NANO))
    report, said = watched(watch, tmp_path, rounds(watch, 3))
    with report:
        tracks = {one.title: one for one in report.counters}
        assert tracks["VDD_IN"].samples >= 3
        assert tracks["VDD_IN"].highest == pytest.approx(7.0)
        assert tracks["VDD_IN"].unit == "W"
        assert tracks["cv0 temp"].absent == "it says nothing"
        environment = report.environment
        assert environment["jetson_power_mode"] == "15W"
        assert environment["jetson_throttling"] == "none"  # two events were before the run
        assert environment["jetson_CPU_0_3_mhz"] == 1344.0
        assert environment["jetson_VDD_IN_power_w"] == pytest.approx(7.0)
        assert not report.notes
        assert report.properties["board_power_w"] == pytest.approx(7.0)
        assert report.properties["energy_per_inference_j"] == pytest.approx(7.0 * 0.25)
        assert report.properties["energy_rails"] == "VDD_IN"
        facts = {one.name: one for one in measured_figures(report)}
        assert "7 W of VDD_IN" in facts["energy"].text
        assert (facts["power mode"].text, facts["power mode"].is_doubtful) == ("15W", False)
    metrics = {one.name: one.value for one in said if isinstance(one, Metric)}
    assert metrics["power"] == pytest.approx(7.0)
    assert metrics["hottest"] == 48.281
    assert metrics["CPU"] == 1344.0


def test_what_slows_the_board_down_is_told_at_once_and_in_the_report(
    board: Boards, tmp_path: Path
) -> None:
    jetson = board(jetson_sysfs.ORIN_NANO)
    watch = quick(jetson)

    def hot() -> bool:
        if rounds(watch, 1)():
            put(jetson.root, "sys/class/thermal/cooling_device1/cur_state", "1\n")
            put(jetson.root, "sys/class/hwmon/hwmon3/oc3_event_cnt", "5\n")
        return (watch.throttling() or []) == ["over-current oc3 (3 times)", "cpu-throttle-alert"]

    report, said = watched(watch, tmp_path, hot)
    told = [one.text for one in said if isinstance(one, Log)]
    assert set(told) <= {
        "The board slows down: cpu-throttle-alert",
        "The board slows down: over-current oc3 (3 times)",
    }
    with report:
        (note,) = [one for one in report.notes if one.kind == "warning"]
        assert note.text.endswith("over-current oc3 (3 times), cpu-throttle-alert.")
        assert any("clocks were held back" in line for line in doubts([subject_of(report)]))
        facts = {one.name: one for one in measured_figures(report)}
        assert facts["power mode"].text.startswith("15W, slowed down by over-current oc3")
        assert facts["power mode"].is_doubtful


def test_sensors_that_vanish_say_nan_or_block(board: Boards, tmp_path: Path) -> None:
    jetson = board(jetson_sysfs.ORIN_NANO)
    put(jetson.root, "sys/class/thermal/thermal_zone3/temp", "nan\n")
    blocked = jetson.root / "sys/class/thermal/thermal_zone1/temp"
    blocked.unlink()
    os.mkfifo(blocked)  # opening it waits for a writer
    gone = jetson.root / "sys/class/hwmon/hwmon1/curr1_input"
    watch = quick(jetson, patience_s=0.05)

    def over() -> bool:
        if rounds(watch, 2)() and gone.exists():
            gone.unlink()
        tracks = {one.sensor.spec.title: one for one in watch._tracks}
        ended, lasting = tracks["VDD_IN"], tracks["VDD_SOC"]
        goes_on = len(lasting.samples) > len(ended.samples)
        return ended.problem != "" and tracks["gpu temp"].problem != "" and goes_on

    report, _ = watched(watch, tmp_path, over)
    with report:
        assert [note.text for note in report.notes] == ["Sensor VDD_IN stopped: it is not there."]
        tracks = {one.title: one for one in report.counters}
        assert tracks["VDD_SOC"].samples > tracks["VDD_IN"].samples > 0
        assert {one.title: one.absent for one in tracks.values() if one.absent} == {
            "gpu temp": "it does not answer",
            "soc0 temp": "it says nan",
            "cv0 temp": "it says nothing",
        }
    for thread in threading.enumerate():  # the one that is left to the sensor
        if thread.name == "board-watch":
            os.close(os.open(blocked, os.O_RDWR | os.O_NONBLOCK))
            thread.join(5)


@pytest.mark.broad
def test_a_run_on_the_cpu_of_a_board_and_two_power_modes(
    board: Boards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    reports: list[Report] = []
    for mode in ("15W\n0", "MAXN_SUPER\n2"):
        jetson = board(jetson_sysfs.ORIN_NANO, mode)
        monkeypatch.setattr(
            "dld_tui.backends.machine.board_watch.Jetson", lambda jetson=jetson: jetson
        )
        output = tmp_path / f"{len(reports)}.dldprof"
        events = list(
            run(Request(models.write(tmp_path, models.CHAIN), iterations=20, output=output))
        )
        assert any(isinstance(event, Metric) and event.name == "power" for event in events)
        reports.append(Report.open(output))
    with reports[0], reports[1]:
        for report in reports:
            energy_j, watts = (
                float(str(report.properties[name]))
                for name in ("energy_per_inference_j", "board_power_w")
            )
            assert watts == pytest.approx(7.0)
            mean_s = sum(report.latencies) / len(report.latencies) / 1000
            assert energy_j == pytest.approx(7.0 * mean_s)
            assert "VDD_IN" in {one.title for one in report.counters}
        lines = fairness_warnings([subject_of(report) for report in reports])
        assert "Different power modes: 15W / MAXN_SUPER. Differences are of the mode, too." in lines


@pytest.mark.broad
def test_the_clocks_of_a_board_are_given_back_when_a_run_fails(
    board: Boards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    jetson = board(jetson_sysfs.ORIN_NANO)
    for name in ("jetson", "board_watch"):
        monkeypatch.setattr(f"dld_tui.backends.machine.{name}.Jetson", lambda: jetson)
    done: list[str] = []

    class Lock:
        problem = "the clocks may still be locked"

        def __init__(self, device: str) -> None:
            done.append(device)

        def release(self) -> None:
            done.append("released")

    monkeypatch.setattr("dld_tui.backends.machine.board_watch.ClockLock", Lock)
    model = models.write(tmp_path, models.CHAIN.replace("Relu", "NoSuchOperator"))
    with pytest.raises(ActivityError):
        list(run(Request(model, lock_clocks=True)))
    assert done == ["jetson", "released"]
    model = models.write(tmp_path, models.CHAIN)
    output = tmp_path / "r.dldprof"
    list(run(Request(model, iterations=3, lock_clocks=True, output=output)))
    assert done[2:] == ["jetson", "released"]
    with Report.open(output) as report:
        assert report.environment["jetson_clocks_locked"] is True
        assert "The clocks: the clocks may still be locked." in {one.text for one in report.notes}


def test_a_sensor_that_answers_while_the_meter_is_read(board: Boards) -> None:
    watch = BoardWatch(board(jetson_sysfs.ORIN_NANO), interval_s=60)
    watch.start()
    clock = next(one for one in watch._tracks if one.sensor.spec.title == "GPU clock")
    later = [*clock.samples]
    clock.samples.clear()
    said = watch.metrics()
    assert next(said) == Metric("GPU load", 45.6, "%")
    clock.samples += later
    assert Metric("GPU", 624.75, "MHz") in list(said)
    watch.close()


def test_what_an_orin_nano_tells(board: Boards) -> None:
    found = find_sensors(board(jetson_sysfs.ORIN_NANO))
    assert {
        one.spec.title: one.read()
        for one in found
        if one.kind not in ("events", "state") and "cv0" not in one.label
    } == {
        "GPU load": 45.6, "GPU clock": 624.75, "EMC clock": 2133.0,
        "CPU 0-3": 1344.0, "CPU 4,5": 729.6,
        "cpu temp": 48.281, "gpu temp": 47.343, "soc0 temp": 46.0, "tj temp": 48.281,
        "VDD_IN": 7.0, "VDD_CPU_GPU_CV": 2.0, "VDD_SOC": 1.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("files", "power", "total", "temperatures"),
    [
        (jetson_sysfs.AGX_ORIN, {"VDD_GPU_SOC": 6.0, "VDD_CPU_CV": 2.0, "VIN_SYS_5V0": 4.0,
                                 "VDDQ_VDD2_1V8AO": 1.0}, 12.0, []),
        # A constant and a mean are no temperatures.
        (jetson_sysfs.XAVIER_JETPACK_4, {"GPU": 1.5, "SYS5V": 2.0}, 3.5, ["AO"]),
        (jetson_sysfs.THOR, {"VIN": 31.0, "VDD_GPU": 6.0, "VDD_CPU_SOC_MSS": 8.4}, 31.0, []),
    ],
)  # fmt: skip
def test_rails_of_other_boards(
    board: Boards, files: Files, power: dict[str, float], total: float, temperatures: list[str]
) -> None:
    sensors = find_sensors(board(files))
    found = {one.label: one.read() for one in sensors if one.kind == "power"}
    assert found == pytest.approx(power)
    assert sum(found[name] for name in total_rails(list(found))) == pytest.approx(total)
    assert [one.label for one in sensors if one.kind == "temperature"] == temperatures


def test_a_container_without_sysfs_is_two_lines_and_another_machine_none(
    board: Boards, tmp_path: Path
) -> None:
    for root, notes in (
        (board({}).root, [
            "No sensor of the board is visible: its sysfs is missing, as in a container.",
            "The power mode is not known: nvpmodel does not report it.",
        ]),
        (tmp_path / "nothing", []),
    ):  # fmt: skip
        report, said = watched(BoardWatch(Jetson(root, answers())), tmp_path, lambda: True)
        with report:
            assert [note.text for note in report.notes] == notes
            assert not report.counters
            assert notes or report.environment == {}
        assert said == []
        (tmp_path / "r.dldprof").unlink()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied"), "permission denied"),
        (OSError(5, "Input/output error"), "input/output error"),
        (FileNotFoundError(2, "No such file or directory"), "it is not there"),
    ],
)
def test_a_sensor_that_cannot_be_read_says_why(
    monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
) -> None:
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=error))
    with pytest.raises(NoValueError, match=f"^{said}$"):
        read_number(Path("temp"))
