"""The content of a trtexec log: options, device, performance, warnings, layers, layer times."""

from __future__ import annotations

import copy
import math
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CorruptFileError
from dld_tui.core.files.log_text import unwrapped
from dld_tui.core.foreign import number_of, objects_of, text_of, time_of
from dld_tui.core.report.formats.trtexec_files import InferenceRows, LayerRows
from dld_tui.core.report.records import LayerInformation
from dld_tui.core.statistics import share_percent, trtexec_summary
from dld_tui.core.tensorrt.plan.engine_plan import (
    EngineLayer,
    TimeStatistics,
    TimingSummary,
    TrtexecLog,
)
from dld_tui.core.tensorrt.plan.json_text import lists_of, parsed
from dld_tui.core.tensorrt.plan.layers import LAYER_START, layer_of_line
from dld_tui.core.text import shortened
from dld_tui.core.types import JSON, Foreign

_IS_BOUND, _HAS_TACTIC, _IS_BUILT = "binding for ", "Tactic Name: ", "Engine built in "
_HAS_PEAK = "Peak memory usage of TRT CPU/GPU memory allocators: "

_BANNER = re.compile(
    r"^&&&& (RUNNING|PASSED|FAILED|WAIVED) (\S+)(?: \[([^\]]*)\])?(?: \[[^\]]*\])* ?#? ?(.*)$"
)
_STAMP = re.compile(r"^\[[\d/]+-[\d:]+\] ((?:\[[A-Za-z]+\] )*(?:\[[A-Za-z]+\])?) ?(.*)$")
_SECTION = re.compile(r"^=== (.*?) ===$")
_VERSION = re.compile(r"TensorRT v(\d{4,6})")
_PLAIN_VERSION = re.compile(r"^TensorRT version: ?(\S+)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PROFILE = re.compile(r"^Profile \((\d+) iterations ?\)")
_PROFILE_TITLES = re.compile(r"\s*(?:Layer\s+Time ?\(ms\)\s|Time ?\(ms\)\s.*\sLayer$)")
"""The row with the titles of the columns."""
_FIGURE = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_LIKE_A_FIGURE = re.compile(r"[-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf)", re.IGNORECASE)
_TIME = re.compile(r"\s*(\d+\.?\d*(?:[eE][-+]?\d+)?) ms\s*")
_RATE = re.compile(r"(\d+\.?\d*(?:[eE][-+]?\d+)?) (?:qps|s)")
_PERCENTILE = re.compile(r"percentile\((\d{1,3}(?:\.\d{1,6})?)%\)")
_LOADS = re.compile(r"(?:^|\s)--load-?[eE]ngine(?:=|\s)")
_IS_LOADED = "Engine loaded in "
_BUILD_TIME = re.compile(r"Engine built in (\d+(?:\.\d+)? sec)\.?")
_ENGINE_BYTES = re.compile(r"(?:Loaded engine size: |Created engine with size: )([\d.]+) MiB")
_PEAK = re.compile(
    r"Peak memory usage of TRT CPU/GPU memory allocators: (CPU \d+ MiB, GPU \d+ MiB)"
)
_FIGURES = ("timeMs", "averageMs", "medianMs", "percentage")
"""The columns of the profile's table; 8.0 to 8.2 have no median."""
_WITHOUT_MEDIAN = _FIGURES[:2] + _FIGURES[3:]
_TABLE_TITLES = ("Engine Layer Information:", "Layer Information:", "Layers:")
_TACTIC = re.compile(
    r"(?:^(?P<layer>.{1,4000}?)(?: \(\w{1,40}\))? Set )?Tactic Name: (?P<name>\S{1,400})"
    r" Tactic: (?P<value>-?\w{1,20})\b"
)
_BOUND = re.compile(
    r"(?P<mode>Input|Output) binding for (?P<name>.{1,4000}) with dimensions \S+ .*is created"
)
_MOST_MESSAGES = 200
_LONGEST_ROW = 8_000

SECTIONS = {
    "Model Options": "model_options",
    "Build Options": "build_options",
    "System Options": "system_options",
    "Inference Options": "inference_options",
    "Reporting Options": "reporting_options",
    "Device Information": "device_information",
    "Performance summary": "performance_summary",
}
"""Titles in the log, and what TREx's metadata calls them."""
_PLAIN_NUMBERS = ("Throughput", "Total Host Walltime", "Total GPU Compute Time")
_STATISTICS = ("min", "max", "mean", "median")
_LISTS = (
    "Latency", "End-to-End Host Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time",
    "D2H Latency",
)  # fmt: skip
_DEVICE_NUMBERS = (
    "Compute Clock Rate", "Memory Bus Width", "Memory Clock Rate", "Compute Capability", "SMs",
    "Application Compute Clock Rate", "Application Memory Clock Rate",
)  # fmt: skip


_ROUNDING_MS, _ROUNDING = 0.005, 1e-4
"""How far the sum of rows may be from their total: each is written with two digits."""
_AVERAGE_ROUNDING_MS = 0.00005
"""Averages are written with four digits."""


def read_log(text: str) -> TrtexecLog:
    """Return the content of a log's last run, or of a table of layer times alone."""
    reader = _Reader()
    for line in unwrapped(text).splitlines():
        reader.line(line.rstrip())
    return reader.finished()


class _Reader:
    def __init__(self) -> None:
        self.log = TrtexecLog(is_trtexec=False)
        self._runs = 0
        self._section = ""
        self._rows: list[str] = []
        """Lines that may be rows of a table of layer times whose beginning is missing."""
        self._seen: set[str] = set()
        self._is_loaded = False
        self._name_first = False
        self._figures: tuple[str, ...] = _FIGURES
        self._total_ms: float | None = None
        """What the last row of the layers' times says, where the table is whole."""
        self._average_ms: float | None = None
        self._has_total = False

    def line(self, line: str) -> None:
        banner = _BANNER.match(line)
        if banner:
            self._banner(banner)
            return
        stamp = _STAMP.match(line)
        if stamp is None:
            self._body(line)
            return
        marks, text = stamp.groups()
        if self._section == "bindings":
            self._section = ""
        bound = _BOUND.match(text) if _IS_BOUND in text else None
        if bound is not None:
            self.log.modes[bound["name"]] = bound["mode"].lower()
            return
        if "[W]" in marks or "[E]" in marks or "[F]" in marks:
            self._message(text, self.log.warnings if "[W]" in marks else self.log.errors)
            return
        match = _SECTION.match(text.strip())
        if match:
            self._open(match[1].strip())
        elif "[TRT]" in marks:
            self._section = "layers" if self._section == "layers" else ""
            tactic = _TACTIC.search(text) if _HAS_TACTIC in text else None
            if tactic is not None:
                self.log.tactics.add(tactic["layer"] or "", tactic["value"], tactic["name"])
                return
            self._fact(text)
            self._body(text)
        else:
            self._body(text)

    def finished(self) -> TrtexecLog:
        self.log.runs = self._runs
        self.log.is_loaded = _LOADS.search(self.log.command) is not None or self._is_loaded
        if self.log.is_loaded or loads_engine(self.log.sections):
            self.log.is_loaded = True
            for name in OF_BUILD:
                self.log.sections.pop(name, None)
        if len(self.log.profile) > 1:
            self.log.doubts += self._of_total()
        if self.log.profile[:1] == [{}]:
            passes = self._passes_of_total()
            self.log.profile[:1] = [] if passes is None else [{"count": passes}]
        return self.log

    def _passes_of_total(self) -> int | None:
        """Return how many passes a sum and its average are of; None if that is left open."""
        if self._total_ms is None or not self._average_ms:
            return None
        passes = self._total_ms / self._average_ms
        digits = _ROUNDING_MS / self._average_ms + passes * _AVERAGE_ROUNDING_MS / self._average_ms
        is_one_number = digits < 0.5 and abs(passes - round(passes)) <= digits
        return round(passes) if is_one_number else None

    def _banner(self, banner: re.Match[str]) -> None:
        state, _, version, command = banner.groups()
        self._section = ""
        if state == "RUNNING":
            self._runs += 1
            self._seen.clear()
            self._is_loaded = False
            self._has_total = False
            self.log = TrtexecLog(command=command.strip(), version=version_text(version or ""))
        else:
            self.log.status = state

    def _message(self, text: str, to: list[str]) -> None:
        text = text.strip().removeprefix("* ")
        if text and text not in self._seen and len(to) < _MOST_MESSAGES:
            self._seen.add(text)
            to.append(text)

    def _open(self, title: str) -> None:
        profile = _PROFILE.match(title)
        if profile:
            self._begin_profile({"count": int(profile[1][:18])})
        else:
            self._section = SECTIONS.get(title, "")

    def _body(self, text: str) -> None:
        if LAYER_START.match(text):
            if self._section != "layers":
                self.log.layers = []
                self._section = "layers"
            layer = layer_of_line(text)
            if layer is not None:
                self.log.layers.append(layer)
        elif text.strip() in _TABLE_TITLES:
            self._section = ""
        elif text.strip() == "Bindings:":
            self._section = "bindings"
            self.log.bindings = []
        elif self._section == "bindings":
            if text.strip():
                self.log.bindings.append(text.strip())
            else:
                self._section = ""
        elif self._section == "profile":
            self._profile_row(text)
        elif self._section in SECTIONS.values():
            self._option(text)
        elif _PROFILE_TITLES.match(text):
            self._begin_profile({})
            self._profile_row(text)
        else:
            self._take_row(text)
        if not self._section:
            self._fact(text)

    def _begin_profile(self, head: dict[str, JSON]) -> None:
        self._section = "profile"
        self._has_total = False
        self.log.profile = [head]

    def _take_row(self, text: str) -> None:
        """Keep a line that may be a row, and read all of these at the row of their sum."""
        words = text.split()
        has_figures = len(words) >= len(_FIGURES) and (
            _LIKE_A_FIGURE.fullmatch(words[0]) or _LIKE_A_FIGURE.fullmatch(words[-1])
        )
        if len(text) > _LONGEST_ROW or not has_figures:
            self._rows.clear()
            return
        for name_first, figures in ((True, words[1:]), (False, words[:-1])):
            name = words[0] if name_first else words[-1]
            is_sum = (
                name == "Total" and figures[-1] == "100.0" and all(map(_FIGURE.fullmatch, figures))
            )
            if is_sum and self._rows and len(figures) in (len(_FIGURES) - 1, len(_FIGURES)):
                self._name_first = name_first
                self._figures = _FIGURES if len(figures) == len(_FIGURES) else _WITHOUT_MEDIAN
                self._begin_profile({})
                for row in (*self._rows, text):
                    self._profile_row(row)
                self._section = ""
                self._rows.clear()
                return
        self._rows.append(text)

    def _option(self, text: str) -> None:
        key, colon, value = text.partition(":")
        if not colon or text.startswith("Note:"):
            plain = _PLAIN_VERSION.match(text)
            if not text.strip() or plain:
                self._section = ""
            return
        if _PLAIN_VERSION.match(text):
            self._section = ""
            self._fact(text)
            return
        values = self.log.sections.setdefault(self._section, {})
        values[key.strip()] = self._typed(key.strip(), value.strip())

    def _typed(self, key: str, value: str) -> JSON:
        if self._section == "performance_summary":
            if key in _PLAIN_NUMBERS:
                rate = _RATE.fullmatch(value)
                return number_of(float(rate[1])) if rate else None
            if key in _LISTS:
                return self._statistics(value)
        if self._section == "device_information" and key in _DEVICE_NUMBERS:
            return _number(value)
        return value

    def _statistics(self, text: str) -> list[JSON]:
        """Return min, max, mean, median and percentiles, None for those that are not sound."""
        known: dict[str, float | None] = {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            name = name.strip()
            known[name] = _time(value) if name not in known else None
        percents = {float(at[1]): name for name in known if (at := _PERCENTILE.fullmatch(name))}
        if not self.log.percentiles:
            self.log.percentiles = tuple(percents)
        names = [*_STATISTICS, *(percents.get(at, "") for at in self.log.percentiles)]
        statistics = [known.get(name) for name in names]
        least, greatest = statistics[:2]
        if least is None or greatest is None:
            return [None] * len(statistics)
        return [at if at is not None and least <= at <= greatest else None for at in statistics]

    def _profile_row(self, text: str) -> None:
        if len(text) > _LONGEST_ROW:
            return
        words = text.split()
        if not words:
            self._section = ""
            return
        if len(self.log.profile) == 1 and "Layer" in words and not _FIGURE.fullmatch(words[0]):
            self._name_first = words[0] == "Layer"
            self._figures = _FIGURES if "Median" in text else _WITHOUT_MEDIAN
            return
        count = len(self._figures)
        # Names have spaces of their own, so only the figures are split off.
        if self._name_first:
            name, *figures = text.strip().rsplit(None, count)
        else:
            *figures, name = text.strip().split(None, count)
        if words[0 if self._name_first else -1] == "Total" and len(words) <= count + 1:
            self._has_total = True
            sums = words[1:3] if self._name_first else words[:2]
            self._total_ms, self._average_ms = (
                float(word) if _FIGURE.fullmatch(word) else None for word in (*sums, "", "")[:2]
            )
            return
        if len(figures) == count and all(map(_FIGURE.fullmatch, figures)):
            row: dict[str, JSON] = {"name": name.strip()}
            row.update(zip(self._figures, map(float, figures), strict=True))
        else:
            row = {"name": self._name_of(text.strip()), "averageMs": None}
        self.log.profile.append(row)

    def _name_of(self, text: str) -> str:
        """Return the name in a row with a missing or invalid figure."""
        for left in range(len(self._figures)):
            head, _, rest = text.rpartition(" ") if self._name_first else text.partition(" ")
            figure, name = (rest, head) if self._name_first else (head, rest)
            last = left == len(self._figures) - 1
            if not name or (last and not _LIKE_A_FIGURE.fullmatch(figure)):
                break
            text = name.strip()
        return text

    def _of_total(self) -> list[str]:
        """Return whether the rows of the layers' times are those that their sum is of."""
        if not self._has_total:
            return ["the table of layer times has no total: it was cut"]
        rows = objects_of(self.log.profile[1:])
        times = [ms for row in rows if (ms := number_of(row.get("timeMs"))) is not None]
        if len(times) < len(rows):
            return []  # told of these rows already
        whole, printed = sum(times), self._total_ms
        if (
            printed is not None
            and abs(whole - printed) <= _ROUNDING_MS * len(rows) + _ROUNDING * whole
        ):
            return []
        return [
            f"the rows of layer times sum to {fmt.milliseconds(whole)} ms and their total is"
            f" {fmt.milliseconds(printed)} ms: rows are missing, repeated or changed"
        ]

    def _fact(self, text: str) -> None:
        plain = _PLAIN_VERSION.match(text)
        if plain:
            version = plain[1]
            self.log.version = (
                version_text(f"TensorRT v{version}") if version.isdigit() else version
            )
        size = _ENGINE_BYTES.search(text)
        if size:
            self.log.figures["engine size"] = f"{size[1]} MiB"
        if _HAS_PEAK in text:
            peak = _PEAK.search(text)
            self._known("build peak", peak[1] if peak else None, "the peak memory of the build")
        self._is_loaded |= text.startswith(_IS_LOADED)
        if text.startswith(_IS_BUILT):
            built = _BUILD_TIME.fullmatch(text)
            self._known("build time", built[1] if built else None, "the time of the build")

    def _known(self, name: str, value: str | None, title: str) -> None:
        if value is not None:
            self.log.figures[name] = value
        elif (
            doubt := f"{title} is not a valid number in the log: left out"
        ) not in self.log.doubts:
            self.log.doubts.append(doubt)


OF_BUILD = ("build_options", "model_options")
"""What trtexec prints of the build, though it loads an engine: its defaults."""


def loads_engine(sections: Mapping[str, JSON]) -> bool:
    """Return whether the options of a run, by the names of TREx, say that it loaded an engine."""
    options = sections.get("build_options")
    return isinstance(options, dict) and bool(text_of(options.get("Load engine")).strip())


def _time(text: str) -> float | None:
    match = _TIME.fullmatch(text)
    return float(match[1]) if match else None


def _number(text: str) -> float | None:
    match = _NUMBER.search(text)
    return float(match[0]) if match else None


def version_text(text: str) -> str:
    """Return the version in ``TensorRT v8401``, e.g. ``8.4.1``; empty if there is none."""
    match = _VERSION.search(text)
    if match is None:
        return ""
    number = int(match[1])
    # Four digits until 9, then two for each part.
    major, rest = divmod(number, 1000 if number < 10_000 else 10_000)
    return f"{major}.{rest // 100}.{rest % 100}"


_PROFILE_MARK = re.compile(r" \[profile \d+\]")
_NAMED = 3
"""How many names a note gives."""


@dataclass
class JoinedProfile:
    """Layers with their times."""

    layers: tuple[EngineLayer, ...]
    total_ms: float | None
    matched: int
    """How many layers have a row."""
    left: int
    """How many rows fit no layer."""
    notes: list[str]


def profile_of_rows(raw_rows: Iterable[Mapping[str, JSON]], notes: Sequence[str] = ()) -> LayerRows:
    """Return a profile from its rows, which may be damaged.

    A count in the middle of them begins another run: the last run counts.
    """
    profile = LayerRows()
    for raw in raw_rows:
        profile.add(raw)
    if profile.unsound:
        rows = fmt.plural(profile.unsound, "row")
        profile.notes.append(f"{rows} of the profile without a valid time: shown as unknown")
    if profile.contradictory:
        rows = fmt.plural(profile.contradictory, "row")
        profile.notes.append(
            f"{rows} of the profile whose mean and total contradict each other: shown as unknown"
        )
    profile.notes += profile.repeated_note()
    if profile.runs > 1:
        profile.notes.append(f"the profile is of {profile.runs} runs: the last is shown")
    profile.notes += notes
    if profile.passes == 0:
        profile.notes.append("the profile is of 0 passes")
    return profile


def join_profile(layers: Sequence[EngineLayer], profile: LayerRows) -> JoinedProfile:
    """Return the layers with the times of a profile.

    Names repeat, so the second layer of a name gets the second row of that name. A mark
    ``[profile N]`` may be on one side only.
    """
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for place, row in enumerate(profile.rows):
        waiting[row.name].append(place)
    rows: dict[int, int] = {}
    for place, layer in enumerate(layers):
        if waiting.get(layer.name):
            rows[place] = waiting[layer.name].popleft()
    _join_unmarked(layers, profile, waiting, rows)
    means = [profile.rows[row].information.average_ms for row in rows.values()]
    known = [mean for mean in means if mean is not None]
    total = math.fsum(known) if known else None
    joined = tuple(
        _timed(layer, profile.rows[rows[place]].information, total) if place in rows else layer
        for place, layer in enumerate(layers)
    )
    notes = profile.notes + _mismatches(layers, profile, set(rows), set(rows.values()))
    return JoinedProfile(joined, total, len(rows), len(profile.rows) - len(rows), notes)


def _join_unmarked(
    layers: Sequence[EngineLayer],
    profile: LayerRows,
    waiting: dict[str, deque[int]],
    rows: dict[int, int],
) -> None:
    plain: dict[str, deque[int]] = defaultdict(deque)
    for name, places in waiting.items():
        plain[_PROFILE_MARK.sub("", name)].extend(places)
    if not any(plain.values()):
        return
    for place, layer in enumerate(layers):
        name = _PROFILE_MARK.sub("", layer.name)
        marked = name != layer.name
        if place in rows or not plain.get(name):
            continue
        # Two different marks are two different profiles.
        if marked and profile.rows[plain[name][0]].name != name:
            continue
        rows[place] = plain[name].popleft()


def _timed(layer: EngineLayer, information: LayerInformation, total: float | None) -> EngineLayer:
    mean = information.average_ms
    percent = share_percent(mean, total)
    # dataclasses.replace would set each of the twenty fields, which takes ten times as long.
    timed = copy.copy(layer)
    vars(timed).update(time_ms=mean, median_ms=information.median_ms, percent=percent)
    return timed


def _mismatches(
    layers: Sequence[EngineLayer],
    profile: LayerRows,
    placed: set[int],
    used: set[int],
) -> list[str]:
    if not profile.rows:
        return ["the profile has no layer"]
    if layers and not placed:
        return ["the profile names none of the layers: it is of another engine"]
    notes = []
    missing = [
        layer.name
        for place, layer in enumerate(layers)
        if place not in placed and "Constant" not in (layer.type, layer.subtype)
    ]  # a constant is never run
    if missing:
        notes.append(
            f"{fmt.plural(len(missing), 'layer')} without a row in the profile: {_names(missing)}"
        )
    unmatched = [row for place, row in enumerate(profile.rows) if place not in used]
    if unmatched:
        lost = sum(row.information.average_ms or 0.0 for row in unmatched)
        notes.append(
            f"{fmt.plural(len(unmatched), 'row')} of the profile, {fmt.milliseconds(lost)} ms,"
            f" fit no layer: {_names([row.name for row in unmatched])}"
        )
    return notes


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(shortened(name) for name in names[:_NAMED])
    return shown + (", …" if len(names) > _NAMED else "")


@dataclass(frozen=True)
class RowFile:
    """The objects of a list in a file: rows of a profile, or of a timing file."""

    rows: Sequence[Foreign]
    ends_early: bool = False
    """The file was cut, or the writer killed."""
    runs: int = 1
    """The number of consecutive lists, which several runs into one file leave; the rows
    are those of the last complete one."""

    def notes(self, noun: str) -> list[str]:
        """Return notes about the file, one sentence each."""
        notes = []
        if self.ends_early and self.runs == 1:
            notes.append(f"the {noun} ends early: it was cut")
        if self.runs > 1:
            last = "the last complete one" if self.ends_early else "the last"
            notes.append(f"the {noun} is of {self.runs} runs: {last} is shown")
        return notes


def rows_of_file(text: str, where: str) -> RowFile:
    """Return the objects of a list, or of the last of several lists.

    Raises:
        CorruptFileError: It is not a list of objects.
    """
    try:
        value = parsed(text, where)
    except CorruptFileError as error:
        if not text.lstrip().startswith("["):
            raise
        lists, ends_early = lists_of(text)
        runs = [rows for rows in map(objects_of, lists) if rows]
        if len(runs) + ends_early > 1 and runs:
            return RowFile(runs[-1], ends_early, len(runs) + ends_early)
        # trtexec writes a row a line, so a killed run leaves whole ones.
        rows = runs[0] if runs else _whole_rows(text, where)
        if not rows:
            raise error
        return RowFile(rows, not runs)
    rows = objects_of(value)
    if not isinstance(value, list) or (value and not rows):
        raise CorruptFileError("is not a list of times", where=where)
    return RowFile(rows)


def _whole_rows(text: str, where: str) -> list[Foreign]:
    rows: list[JSON] = []
    for line in text.splitlines():
        piece = line.strip().lstrip("[,").rstrip("],").strip()
        if piece.startswith("{"):
            try:
                rows.append(parsed(piece, where))
            except CorruptFileError:
                continue
    return objects_of(rows)


_NAMES = {
    "latency": "Latency",
    "compute": "GPU Compute Time",
    "h2d": "H2D Latency",
    "d2h": "D2H Latency",
    "enqueue": "Enqueue Time",
}
"""Our names of the times, and those of the performance summary."""
_PERCENTILES: Mapping[int, tuple[float, ...]] = {5: (99,), 6: (95, 99), 7: (90, 95, 99)}
"""Which percentiles follow min, max, mean and median, by the length of the list."""

_SAME = 1e-3


def timing_of_rows(
    rows: Sequence[Mapping[str, JSON]], warm_up: float | None = None
) -> tuple[TimingSummary | None, list[str]]:
    """Return the times of a timing file's rows (None without valid ones), and notes.

    Args:
        rows: One per inference.
        warm_up: Inferences whose compute starts before this many milliseconds are left out, as
            in trtexec's own summary; None if unknown.
    """
    read = InferenceRows(warm_up)
    taken = [inference for row in rows if (inference := read.take(row)) is not None] or read.warm
    notes = [*read.warm_up_notes(), *read.doubts()]
    if not taken:
        return None, [*notes, "the timing file has no inference"]
    h2d, compute, d2h = zip(
        *((took for _, took in inference.phases) for inference in taken), strict=True
    )
    copied = [
        all(copies) for copies in zip(*(inference.copies for inference in taken), strict=True)
    ]
    series: dict[str, Sequence[float]] = {
        "latency": [inference.latency_ms for inference in taken],
        "compute": compute,
        "h2d": h2d if copied[0] else (),
        "d2h": d2h if copied[1] else (),
        "enqueue": [
            inference.enqueue_ms for inference in taken if inference.enqueue_ms is not None
        ],
    }
    starts = [inference.start_ms for inference in taken if inference.start_ms is not None]
    span = max(inference.end_ms for inference in taken) - min(starts) if starts else 0.0
    whole = span > 0 and len(starts) == len(taken) and not read.bad
    summary = _summary(
        {name: _statistics(values) for name, values in series.items()},
        # Left-out rows may be of one inference or of several.
        1000 * len(taken) / span if whole else None,
        "timing file",
    )
    known = {name: tuple(values) for name, values in series.items() if values}
    return replace(summary, series=known), notes


def _summary(
    statistics: Mapping[str, TimeStatistics | None], throughput: float | None, source: str
) -> TimingSummary:
    return TimingSummary(
        latency=statistics["latency"],
        compute=statistics["compute"],
        h2d=statistics["h2d"],
        d2h=statistics["d2h"],
        enqueue=statistics["enqueue"],
        throughput=throughput,
        source=source,
    )


def _statistics(values: Sequence[float]) -> TimeStatistics | None:
    summary = trtexec_summary(values)
    if summary is None:
        return None
    names = (one.name for one in fields(TimeStatistics))
    return TimeStatistics(**{name: getattr(summary, name) for name in names})


def timing_of_summary(
    summary: JSON, percentiles: tuple[float, ...] = (), source: str = "metadata"
) -> TimingSummary | None:
    """Return the times of a performance summary as TREx keeps it; None when it has none.

    Args:
        summary: Lists of min, max, mean, median and percentiles by name.
        percentiles: Which these are; by the length of the list when empty.
        source: See :class:`TimingSummary`.
    """
    if not isinstance(summary, dict):
        return None
    statistics = {name: _listed(summary.get(title), percentiles) for name, title in _NAMES.items()}
    if not any(statistics.values()):
        return None
    return _summary(statistics, _rate(summary.get("Throughput")), source)


def summary_doubts(summary: JSON, percentiles: tuple[float, ...] = ()) -> list[str]:
    """Return which figures of a performance summary are left out, because they cannot be true."""
    if not isinstance(summary, dict):
        return []
    bad = [
        title
        for title in _NAMES.values()
        if title in summary and _listed(summary[title], percentiles) is None
    ]
    if "Throughput" in summary and _rate(summary["Throughput"]) is None:
        bad.append("Throughput")
    if not bad:
        return []
    return [f"no valid numbers in the performance summary: {', '.join(bad)}"]


def _rate(value: JSON) -> float | None:
    rate = number_of(value)
    return rate if rate is not None and rate > 0 else None


def agree(computed: TimingSummary, printed: TimingSummary) -> bool:
    """Return whether a timing file and a summary are of the same run."""
    here, there = computed.compute, printed.compute
    if here is None or there is None:
        return False
    return all(
        math.isclose(value, other, rel_tol=_SAME)
        for value, other in ((here.median, there.median), (here.mean, there.mean))
    )


def with_summary(computed: TimingSummary, printed: TimingSummary) -> TimingSummary:
    """Return a timing file's times with what trtexec's own summary of the same run says better.

    Its throughput is by the wall clock. Its times to enqueue are exact, while the file has but
    their begin and end, in six digits.
    """
    if not agree(computed, printed):
        return computed
    return replace(
        computed,
        throughput=printed.throughput or computed.throughput,
        enqueue=printed.enqueue or computed.enqueue,
    )


def _listed(value: JSON, percentiles: tuple[float, ...]) -> TimeStatistics | None:
    if not isinstance(value, list) or len(value) < 4:
        return None
    numbers = [time_of(item) for item in value]
    least, greatest, mean, median = numbers[:4]
    if least is None or greatest is None or mean is None or median is None:
        return None
    known = [number for number in numbers if number is not None]
    if not all(least <= number <= greatest for number in known):
        return None
    names = percentiles or _PERCENTILES.get(len(numbers), ())
    named = dict(zip(names, numbers[4:], strict=False))
    at: Callable[[float], float | None] = named.get
    return TimeStatistics(least, greatest, mean, median, p90=at(90), p95=at(95), p99=at(99))


_CUDA_GRAPH = "cuda graph"


def is_cuda_graph_option(name: str) -> bool:
    """Return whether an option in trtexec's words is that of CUDA graphs."""
    return _CUDA_GRAPH in name.lower()
