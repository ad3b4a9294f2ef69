"""Sensors of a Jetson during a run: tracks, a live meter, and causes of slowdowns.

Layouts of sysfs: NVIDIA's Jetson Linux Developer Guide, R32 to R38, chapters on power management
(``ina3221`` under ``hwmon``, ``soctherm_oc``, thermal zones and cooling devices), and the kernel's
``Documentation/hwmon/ina3221.rst`` and ``ina238.rst``.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path

from dld_tui.backends.machine.clock_guard import BOARD, ClockLock
from dld_tui.backends.machine.jetson import Jetson
from dld_tui.backends.machine.meters import Energy, Window, energy_of_rails
from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Log, Metric
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report.gpu_kernels import CounterSpec, Sample
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.statistics import median
from dld_tui.core.text import clip, visible
from dld_tui.core.types import PlainValues

_INTERVAL_S = 0.2
_PATIENCE_S = 1.0
"""The time after which a sensor without an answer is given up."""
_NAME = 24
_TOTALS = ("VDD_IN", "VIN", "POM_5V_IN", "5V_IN")
"""Rails that feed all others: of Orin Nano and NX, Xavier NX, Thor, Nano."""
_FED_BY_ANOTHER = ("VDDQ_VDD2_1V8AO",)
"""Of an AGX Orin; it hangs on VIN_SYS_5V0."""
_FAN = re.compile("fan", re.IGNORECASE)


class NoValueError(Exception):
    """A sensor says nothing; the text says why."""


@dataclass(frozen=True)
class Sensor:
    """A sensor."""

    kind: str
    """``load``, ``clock``, ``temperature``, ``power``, ``events`` or ``state``."""
    label: str
    """Its own name, e.g. ``VDD_IN``. Visible text."""
    spec: CounterSpec
    read: Callable[[], float]
    """Raises `NoValueError`."""


def read_number(path: Path) -> float:
    """Return the number in a file of sysfs.

    Raises:
        NoValueError: It has none.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()[:40]
        number = float(text)
    except FileNotFoundError:
        raise NoValueError("it is not there") from None
    except OSError as error:
        raise NoValueError((error.strerror or str(error)).lower()) from None
    except ValueError:
        number, text = math.nan, text or "nothing"
    if not math.isfinite(number):
        raise NoValueError(f"it says {visible(text)}")
    return number


def _scaled(path: Path, scale: float) -> Callable[[], float]:
    return lambda: read_number(path) / scale


def _watts(volts: Path, amperes: Path) -> Callable[[], float]:
    """Return what multiplies millivolts and milliamperes."""
    return lambda: read_number(volts) * read_number(amperes) / 1e6


def find_sensors(board: Jetson, *, gpu: bool = True) -> list[Sensor]:
    """Return the sensors of a board, by the names of its folders; no value is read yet.

    Args:
        gpu: Include load and clock of the GPU.
    """
    sys = board.root / "sys"
    sensors = [
        *(_gpu_sensors(board) if gpu else ()),
        *_rails(sys),
        *_clocks(sys),
        *_temperatures(sys),
        *_limits(sys),
    ]
    alike: dict[str, Sensor] = {}
    for sensor in sensors:  # a folder may be reached on two ways
        alike.setdefault(sensor.spec.title, sensor)
    return list(alike.values())


def _label(folder: Path, name: str) -> str:
    try:
        text = (folder / name).read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""
    return clip(visible(text.strip().strip("\0")), _NAME, keep="end")


def _sensor(
    kind: str, label: str, path: Path, spec: tuple[str, str, float | None], scale: float
) -> Sensor:
    title, unit, maximum = spec
    row = CounterSpec(f"{path.parent.name}/{path.name}", f"{label} {title}".strip(), unit, maximum)
    return Sensor(kind, label, row, _scaled(path, scale))


def _gpu_sensors(board: Jetson) -> Iterator[Sensor]:
    if board.load_file is not None:
        yield _sensor("load", "GPU", board.load_file, ("load", "%", 100.0), 10)
    if board.clock_file is not None:
        yield _sensor("clock", "GPU", board.clock_file, ("clock", "MHz", None), 1e6)


def _clocks(sys: Path) -> Iterator[Sensor]:
    for name in ("kernel/debug/bpmp/debug/clk/emc/rate", "kernel/debug/clk/emc/clk_rate"):
        if _is_readable(sys / name):  # root alone may
            yield _sensor("clock", "EMC", sys / name, ("clock", "MHz", None), 1e6)
            break
    for policy in sorted((sys / "devices/system/cpu/cpufreq").glob("policy*"), key=_number_of):
        path = policy / "scaling_cur_freq"
        if path.exists():
            cores = "CPU " + (_label(policy, "related_cpus").replace(" ", ",") or policy.name[6:])
            yield _sensor("clock", _range(cores), path, ("", "MHz", None), 1e3)


def _is_readable(path: Path) -> bool:
    try:
        return os.access(path, os.R_OK)
    except OSError:
        return False


def _range(cores: str) -> str:
    numbers = re.findall(r"\d+", cores)
    if len(numbers) > 2 and [int(n) for n in numbers] == [
        *range(int(numbers[0]), int(numbers[-1]) + 1)
    ]:
        return f"CPU {numbers[0]}-{numbers[-1]}"
    return cores


def _number_of(path: Path) -> tuple[int, str]:
    digits = re.search(r"\d+$", path.name)
    return (int(digits[0]) if digits else -1, path.name)


def _temperatures(sys: Path) -> Iterator[Sensor]:
    for zone in sorted((sys / "class/thermal").glob("thermal_zone*"), key=_number_of):
        name = _label(zone, "type")
        label = re.sub(r"[-_]?therm(al)?$", "", name, flags=re.IGNORECASE) or name or zone.name
        if "PMIC" in name.upper() or _FAN.search(name):  # a constant; a mean of the others
            continue
        yield _sensor("temperature", label, zone / "temp", ("temp", "°C", None), 1e3)


def _rails(sys: Path) -> Iterator[Sensor]:
    spec = ("", "W", None)
    for chip in sorted((sys / "class/hwmon").glob("hwmon*"), key=_number_of):
        name = _label(chip, "name")
        if not name.startswith("ina"):
            continue
        for path in sorted(chip.glob("in*_label")):
            label, number = _label(chip, path.name), path.name[2 : -len("_label")]
            amperes = chip / f"curr{number}_input"
            if label not in ("", "NC") and amperes.exists():  # shunt voltages have no current
                row = CounterSpec(f"{name}/in{number}", label, "W", None)
                yield Sensor("power", label, row, _watts(chip / f"in{number}_input", amperes))
        if not any(chip.glob("in*_label")) and (chip / "power1_input").exists():
            label = _label(chip, "power1_label") or _label(chip, "label") or "VIN"
            yield _sensor("power", label, chip / "power1_input", spec, 1e6)
    for path in sorted((sys / "bus/i2c/drivers").glob("ina3221x/*/iio:device*/rail_name_*")):
        label, number = _label(path.parent, path.name), path.name.removeprefix("rail_name_")
        if label not in ("", "NC"):
            power = path.with_name(f"in_power{number}_input")
            yield _sensor("power", label, power, spec, 1e3)


def _limits(sys: Path) -> Iterator[Sensor]:
    for chip in sorted((sys / "class/hwmon").glob("hwmon*"), key=_number_of):
        if _label(chip, "name").startswith("soctherm"):
            for path in sorted(chip.glob("oc*_event_cnt")):
                label = f"over-current {path.name.split('_')[0]}"
                yield _sensor("events", label, path, ("", "events", None), 1)
    for device in sorted((sys / "class/thermal").glob("cooling_device*"), key=_number_of):
        label = _label(device, "type")
        if label and not _FAN.search(label):
            yield _sensor("state", label, device / "cur_state", ("", "", None), 1)


def total_rails(labels: Sequence[str]) -> list[str]:
    """Return the rails that add up to the board's power: one that feeds all, or all unfed ones."""
    for name in _TOTALS:
        if name in labels:
            return [name]
    return [label for label in labels if label not in _FED_BY_ANOTHER]


@dataclass
class _Track:
    sensor: Sensor
    samples: list[Sample] = field(default_factory=list)
    problem: str = ""
    """Why there are no newer values; empty while there are."""
    given_up: bool = False

    @property
    def now(self) -> float:
        """The newest value, which must exist."""
        return self.samples[-1][1]


class BoardWatch:
    """Reads the sensors of a Jetson, five times per second, on a thread.

    A sensor that does not answer is given up: the thread stays with it, and another one reads
    the rest. On other machines, nothing happens.

    Args:
        lock_clocks: Hold the clocks at the maximum of the power mode until the end.
        gpu: Include load and clock of the GPU, if nothing else records them.
        interval_s: The time between two rounds.
        patience_s: The longest wait for a sensor.
    """

    def __init__(
        self,
        board: Jetson | None = None,
        *,
        lock_clocks: bool = False,
        gpu: bool = True,
        interval_s: float = _INTERVAL_S,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._board = board or Jetson()
        self._gpu, self._interval_s, self._patience_s = gpu, interval_s, patience_s
        self._tracks: list[_Track] = []
        self._over = threading.Event()
        self._asked = threading.Event()
        """Every sensor was read once."""
        self._generation = 0
        self._asking: tuple[_Track, float] | None = None
        self._window: Window | None = None
        self._pass_s = 0.0
        self._told: set[str] = set()
        self._lock_clocks = lock_clocks
        self._lock: ClockLock | None = None
        self._notes: list[Note] = []
        self._is_written = False

    def start(self) -> PlainValues:
        """Begin, and return what the board is, its power mode and its clocks."""
        if self._board.board is None:
            return {}
        machine: PlainValues = {}
        if self._lock_clocks:
            machine["jetson_clocks_locked"] = self._locked()
        machine |= self._board.environment()
        self._tracks = [_Track(sensor) for sensor in find_sensors(self._board, gpu=self._gpu)]
        if self._tracks:
            self._ask_on()
            self._asked.wait(self._patience_s)  # the shortest run has a value of each
        return machine

    def _locked(self) -> bool:
        try:
            self._lock = ClockLock(BOARD)
        except UnavailableError as error:
            self._notes.append(
                Note(NoteKind.WARNING, f"{error.message[0].upper()}{error.message[1:]}.")
            )
        return self._lock is not None

    def _ask_on(self) -> None:
        self._generation += 1
        self._asking = None
        threading.Thread(
            target=self._run, args=(self._generation,), name="board-watch", daemon=True
        ).start()

    def _run(self, generation: int) -> None:
        while True:
            self._round(generation)
            if self._over.wait(self._interval_s) or generation != self._generation:
                return

    def _round(self, generation: int) -> None:
        for track in self._tracks:
            if track.given_up:
                continue
            self._asking = (track, time.monotonic())
            try:
                value = track.sensor.read()
            except NoValueError as error:
                problem = str(error)
            else:
                problem = ""
            if generation != self._generation:
                return  # given up meanwhile
            track.problem = problem
            if not problem:
                track.samples.append((time.time_ns(), value))
        self._asking = None
        self._asked.set()

    def _look_after(self) -> None:
        """Give up the sensor that does not answer, and ask the others."""
        asking = self._asking
        if asking is not None and time.monotonic() - asking[1] > self._patience_s:
            track, _ = asking
            track.problem, track.given_up = "it does not answer", True
            self._ask_on()

    def metrics(self) -> Iterator[Metric | Log]:
        """Yield what the live meter says now, and what begins to slow the board down."""
        self._look_after()
        for track in self._of("load"):
            yield Metric("GPU load", track.now, "%")
        watts = self._power()
        if watts is not None:
            yield Metric("power", watts, "W")
        hottest = self._of("temperature")
        if hottest:
            yield Metric("hottest", max(track.now for track in hottest), "°C")
        for label in ("GPU", "EMC", "CPU"):
            clocks = [track for track in self._of("clock") if track.sensor.label.startswith(label)]
            if clocks:
                yield Metric(label, max(track.now for track in clocks), "MHz")
        slowed = self.throttling() or []
        for cause in [name for name in slowed if name.split(" (")[0] not in self._told]:
            self._told.add(cause.split(" (")[0])
            yield Log(f"The board slows down: {cause}", NoteKind.WARNING)

    def _live(self) -> list[_Track]:
        return [track for track in self._tracks if track.samples and not track.problem]

    def _of(self, kind: str) -> list[_Track]:
        return [track for track in self._live() if track.sensor.kind == kind]

    def _power(self) -> float | None:
        rails = {track.sensor.label: track.now for track in self._of("power")}
        return sum(rails[name] for name in total_rails(list(rails))) if rails else None

    def measured(self, window: Window, seconds: float) -> None:
        """Say between which times the passes ran whose energy is wanted, and how long one took."""
        self._window, self._pass_s = window, seconds

    def close(self) -> None:
        """Stop asking and give the clocks back; safe to call again."""
        self._look_after()
        self._over.set()
        if self._lock is not None:
            self._lock.release()
            if self._lock.problem:
                self._notes.append(Note(NoteKind.WARNING, f"The clocks: {self._lock.problem}."))
            self._lock = None

    def write(self, writer: ReportWriter, origin_ns: int | None) -> None:
        """Write tracks, energy, what slowed the board down, and which sensor fell silent.

        Does so once, after :meth:`close`.

        Args:
            origin_ns: The zero of its clock; None for the first of the passes.
        """
        if self._board.board is None or self._is_written:
            return
        self._is_written = True
        if origin_ns is None:
            origin_ns = self._window[0] if self._window is not None else time.time_ns()
        for note in [*self._notes, *self._remarks()]:
            writer.note(note.text, note.kind)
        for track in self._tracks:
            if track.sensor.kind in ("events", "state"):
                continue
            _write_series(writer, track, origin_ns)
        writer.add_environment(self.environment())
        for name, value in (encode(self.energy()) or {}).items():
            writer.set_property(name, value)

    def environment(self) -> PlainValues:
        """Return clocks, temperatures, power and throttling in the time of the passes."""
        machine: PlainValues = {}
        for track in self._tracks:
            values = [value for _, value in self._inside(track)]
            kind, label = track.sensor.kind, re.sub(r"\W+", "_", track.sensor.label)
            if not values or label == "GPU":
                continue
            if kind == "clock":
                machine[f"jetson_{label}_mhz"] = median(values)
            elif kind == "temperature":
                machine[f"jetson_{label}_temperature_c"] = max(values)
            elif kind == "power":
                machine[f"jetson_{label}_power_w"] = sum(values) / len(values)
        throttling = self.throttling()
        if throttling is not None:
            machine["jetson_throttling"] = ", ".join(throttling) or "none"
        return machine

    def _inside(self, track: _Track) -> list[Sample]:
        """Return the samples of the time of the passes, or all when none was taken then."""
        if self._window is None:
            return track.samples
        begin, end = self._window
        return [sample for sample in track.samples if begin <= sample[0] <= end] or track.samples

    def throttling(self) -> list[str] | None:
        """Return what throttled the board; None if unknown."""
        watched = [track for track in self._tracks if track.sensor.kind in ("events", "state")]
        if not any(track.samples for track in watched):
            return None
        causes = []
        for track in watched:
            values = [value for _, value in track.samples]
            if track.sensor.kind == "state" and any(value > 0 for value in values):
                causes.append(track.sensor.label)
            elif track.sensor.kind == "events" and values and values[-1] > values[0]:
                causes.append(f"{track.sensor.label} ({values[-1] - values[0]:.0f} times)")
        return causes

    def energy(self) -> Energy | None:
        """Return the joules per pass, the mean power in watts, and the measured rails."""
        rails = {
            track.sensor.label: track.samples
            for track in self._tracks
            if track.sensor.kind == "power" and track.samples
        }
        if self._window is None or not self._pass_s or not rails:
            return None
        whole = {name: rails[name] for name in total_rails(list(rails))}
        return energy_of_rails(whole, self._window, self._pass_s)

    def _remarks(self) -> Iterator[Note]:
        if not self._tracks:
            yield Note(
                NoteKind.INFO,
                "No sensor of the board is visible: its sysfs is missing, as in a container.",
            )
        if self._board.power_mode() is None:
            yield Note(NoteKind.INFO, "The power mode is not known: nvpmodel does not report it.")
        slowed = self.throttling()
        if slowed:
            yield Note(
                NoteKind.WARNING, f"The board slowed down during the run: {', '.join(slowed)}."
            )
        for track in self._tracks:
            if track.problem and track.samples:  # without any, its row says so
                yield Note(
                    NoteKind.INFO, f"Sensor {track.sensor.spec.title} stopped: {track.problem}."
                )


def _write_series(writer: ReportWriter, track: _Track, origin_ns: int) -> None:
    spec = track.sensor.spec
    if not track.samples:
        why = track.problem or "no sample arrived during the run"
        writer.add_absent_counter(spec.title, why, name=spec.name, source="sysfs")
        return
    number = writer.add_counter(spec.name, spec.title, spec.unit, spec.maximum, "sysfs")
    rows = (((when - origin_ns) / 1000, value) for when, value in track.samples)
    writer.add_counter_samples(number, rows)
