"""Sensors of Jetson boards, and all that a watch tells: board_sensors.txt, board_watch.txt."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import ClassVar, TypeAlias
from unittest.mock import Mock

import pytest

from dld_tui.backends.machine.board_watch import (
    BoardWatch,
    NoValueError,
    find_sensors,
    read_number,
    total_rails,
)
from dld_tui.backends.machine.jetson import Jetson
from dld_tui.backends.machine.meters import Energy
from dld_tui.core.compare.comparison import subject_of
from dld_tui.core.compare.conditions import doubts
from dld_tui.core.errors import UnavailableError
from dld_tui.core.report.measured_figures import measured_figures
from dld_tui.core.report.report import Report
from tests.support import jetson_sysfs
from tests.support.jetson_boards import answers, put
from tests.support.jetson_sysfs import Files
from tests.support.profiles import start_report
from tests.support.recorded import Recorded, settled

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


ODD: Files = {
    # One core; cores that do not follow each other; a cluster that names none.
    **jetson_sysfs.clusters({"0": "1000000", "10 12 14": "2000000", "2 3 4": "x" * 50}),
    "sys/devices/system/cpu/cpufreq/policy7/scaling_cur_freq": "3000000",
    "sys/devices/system/cpu/cpufreq/policy8/related_cpus": "8",
    **jetson_sysfs.zones({"therm": "1000", "A Very Long Name Of A Zone-therm": "nan",
                          "\x1b[1m_thermal": "-2000", "pmic": "3", "FAN": "4"}),
    "sys/class/thermal/thermal_zone10/temp": "5000",
    **jetson_sysfs.cooling({"": "1", "Tboard_fan": "1", "late": "inf"}),
    **jetson_sysfs.ina3221(9, {"": (1, 1), "VDD_IN": (5000, 1000), "VDD_A": (5000, 2000)}),
    # The same sensor on another way is left out.
    **jetson_sysfs.ina3221(10, {"VDD_IN": (1, 1)}),
    "sys/class/hwmon/hwmon11/name": "ina238", "sys/class/hwmon/hwmon11/power1_input": "2000000",
    "sys/class/hwmon/hwmon11/power1_label": "CHIP", "sys/class/hwmon/hwmon11/label": "DEVICE",
    "sys/class/hwmon/hwmon12/name": "ina238", "sys/class/hwmon/hwmon12/power1_input": "",
    "sys/class/hwmon/hwmon12/label": "DEVICE", "sys/class/hwmon/hwmon13/name": "ina219",
    "sys/class/hwmon/hwmon2/name": "other", "sys/class/hwmon/hwmon14/name": "other",
    "sys/class/hwmon/hwmon14/power1_input": "1",
    "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/rail_name_0": "NC",
    "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/rail_name_1": "",
    "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/rail_name_2": "5V_IN",
    **jetson_sysfs.over_current(15, 1, 0),
    "sys/kernel/debug/clk/emc/clk_rate": "1600000000",
}  # fmt: skip


def test_the_sensors_of_each_board(board: Boards, recorded: Recorded, tmp_path: Path) -> None:
    found = {}
    for name, files in (
        ("Orin Nano", jetson_sysfs.ORIN_NANO), ("AGX Orin", jetson_sysfs.AGX_ORIN),
        ("AGX Xavier, JetPack 4", jetson_sysfs.XAVIER_JETPACK_4), ("Thor", jetson_sysfs.THOR),
        ("odd", ODD), ("none", {}),
    ):  # fmt: skip
        shutil.rmtree(tmp_path / "board", ignore_errors=True)
        jetson = board(files)
        lines = []
        for one in find_sensors(jetson):
            try:
                value = f"{one.read():g}"
            except NoValueError as error:
                value = str(error)
            spec = one.spec
            lines.append(
                f"{one.kind} | {one.label} | {spec.title} | {spec.name} | {value} {spec.unit}"
                f" of {spec.maximum}"
            )
        powers = [one.label for one in find_sensors(jetson, gpu=False) if one.kind == "power"]
        lines.append(f"power of the board: {total_rails(powers)}")
        found[name] = "\n".join(lines)
    recorded("board_sensors", found)


class Lock:
    """Clocks that are held; the release may have a problem."""

    problem: str | None = None
    done: ClassVar[list[str]] = []

    def __init__(self, device: str) -> None:
        self.done.append(device)

    def release(self) -> None:
        self.done.append("released")


def test_all_that_a_watch_tells(
    board: Boards, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds are made one by one, a second after another."""
    clock = itertools.count(10**15, 10**9)
    monkeypatch.setattr(BoardWatch, "_ask_on", lambda self: self._round(self._generation))
    monkeypatch.setattr("dld_tui.backends.machine.board_watch.ClockLock", Lock)
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    found: dict[str, str] = {}

    def watched(
        name: str, jetson: Jetson, *changes: Mapping[str, str | None], measured: bool = True,
        known: bool = True, **settings: bool,
    ) -> None:  # fmt: skip
        """Make a round after each change of files, of which the second half is measured."""
        watch = BoardWatch(jetson, **settings)
        begin = next(clock)
        machine = watch.start()
        lines = [f"start {machine}"]
        for number, change in enumerate(changes):
            for file, text in change.items():
                (jetson.root / file).unlink(missing_ok=True)
                if text is not None:
                    put(jetson.root, file, text)
            if number == len(changes) // 2:
                begin = next(clock)
            watch._round(0)
            lines += [f"{one}" for one in watch.metrics()]
        if measured:
            watch.measured((begin, next(clock)), 0.25)
        watch.close()
        watch.close()
        lines.append(f"{watch.throttling()} {watch.energy()}")
        writer = start_report(tmp_path / "r.dldprof", environment=machine)
        watch.write(writer, begin if known else None)
        watch.write(writer, begin if known else None)
        with Report.open(writer.finish()) as report:
            lines += [f"{one.kind}: {one.text}" for one in report.notes]
            lines += [f"{one.name}: {one.text} {one.is_doubtful}" for one in
                      measured_figures(report)]  # fmt: skip
            lines += doubts([subject_of(report)])
            lines.append(json.dumps(dict(report.environment), indent=1))
            lines += [f"{one.name}: {report.properties.get(one.name)}" for one in fields(Energy)]
            lines += [
                f"{one.title} | {one.name} | {one.source} | {one.absent or one.samples} |"
                f" {one.highest} {one.unit} of {one.maximum} | {one.first_us:g} to {one.last_us:g}"
                for one in report.counters
            ]
        (tmp_path / "r.dldprof").unlink()
        lines.append(f"clocks {Lock.done}")
        Lock.done.clear()
        found[name] = settled("\n".join(lines), tmp_path)

    zone, chip = "sys/class/thermal/thermal_zone3/temp", "sys/class/hwmon/hwmon1/"
    throttle = "sys/class/thermal/cooling_device1/cur_state"
    events = "sys/class/hwmon/hwmon3/oc3_event_cnt"
    rounds: tuple[Mapping[str, str | None], ...] = (
        {}, {zone: "nan", throttle: "1"}, {events: "5", chip + "curr1_input": "2800"},
        {throttle: "0", zone: "46500", chip + "curr2_input": None, events: "6"},
    )  # fmt: skip
    watched("an Orin Nano that slows down", board(jetson_sysfs.ORIN_NANO), *rounds)
    shutil.rmtree(tmp_path / "board")
    quiet: tuple[Mapping[str, str | None], ...] = ({}, {chip + "curr1_input": "700"})
    orin = board(jetson_sysfs.ORIN_NANO)
    watched("without its GPU, its clocks held", orin, *quiet, gpu=False, lock_clocks=True)
    monkeypatch.setattr(Lock, "problem", "the clocks may still be locked")
    watched("nothing measured", orin, {}, measured=False, known=False, lock_clocks=True)

    def refuse(device: str) -> Lock:
        raise UnavailableError("the clocks could not be locked: no rights")

    monkeypatch.setattr("dld_tui.backends.machine.board_watch.ClockLock", refuse)
    shutil.rmtree(tmp_path / "board")
    watched("several rails", board(jetson_sysfs.AGX_ORIN, "odd"), {}, {}, known=False,
            lock_clocks=True)  # fmt: skip
    shutil.rmtree(tmp_path / "board")
    container = board({})
    container.tool = answers()
    watched("a container without sysfs", container, lock_clocks=True)
    watched("another machine", Jetson(tmp_path / "nothing", answers()), lock_clocks=True)
    recorded("board_watch", found)


def test_a_sensor_that_does_not_answer_is_given_up(board: Boards) -> None:
    jetson = board(jetson_sysfs.ORIN_NANO)
    blocked = jetson.root / "sys/class/thermal/thermal_zone1/temp"
    blocked.unlink()
    os.mkfifo(blocked)  # opening it waits for a writer
    watch = BoardWatch(jetson, interval_s=0.01, patience_s=0.05)
    watch.start()
    tracks = {one.sensor.spec.title: one for one in watch._tracks}
    for _ in range(500):
        list(watch.metrics())
        if tracks["gpu temp"].problem and len(tracks["VDD_SOC"].samples) > 2:
            break
        time.sleep(0.01)
    watch.close()
    assert {title: one.problem for title, one in tracks.items() if one.problem} == {
        "gpu temp": "it does not answer", "cv0 temp": "it says nothing"
    }  # fmt: skip
    assert len(tracks["VDD_SOC"].samples) > 2
    for thread in threading.enumerate():  # the one that is left to the sensor
        if thread.name == "board-watch":
            os.close(os.open(blocked, os.O_RDWR | os.O_NONBLOCK))
            thread.join(5)


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
