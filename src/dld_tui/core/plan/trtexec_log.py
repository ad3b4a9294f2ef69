"""What a log of trtexec says: options, device, performance, warnings, layers, layer times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dld_tui.core import fmt
from dld_tui.core.plan.json_text import number_of, objects_of
from dld_tui.core.plan.layers import LAYER_START, layer_of_line
from dld_tui.core.types import JSON

_BANNER = re.compile(
    r"^&&&& (RUNNING|PASSED|FAILED|WAIVED) (\S+)(?: \[([^\]]*)\])?(?: \[[^\]]*\])* ?#? ?(.*)$"
)
_STAMP = re.compile(r"^\[[\d/]+-[\d:]+\] ((?:\[[A-Za-z]+\] )*(?:\[[A-Za-z]+\])?) ?(.*)$")
_SECTION = re.compile(r"^=== (.*?) ===$")
_VERSION = re.compile(r"TensorRT v(\d{4,6})")
_PLAIN_VERSION = re.compile(r"^TensorRT version: ?(\S+)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PROFILE = re.compile(r"^Profile \((\d+) iterations ?\)")
_FIGURE = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_LIKE_A_FIGURE = re.compile(r"[-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf)", re.IGNORECASE)
_TIME = re.compile(r"\s*(\d+\.?\d*(?:[eE][-+]?\d+)?) ms\s*")
_RATE = re.compile(r"(\d+\.?\d*(?:[eE][-+]?\d+)?) (?:qps|s)")
_PERCENTILE = re.compile(r"percentile\((\d{1,3}(?:\.\d{1,6})?)%\)")
_BUILD_TIME = re.compile(r"Engine built in (\d+(?:\.\d+)? sec)\.?")
_ENGINE_BYTES = re.compile(r"(?:Loaded engine size: |Created engine with size: )([\d.]+) MiB")
_PEAK = re.compile(
    r"Peak memory usage of TRT CPU/GPU memory allocators: (CPU \d+ MiB, GPU \d+ MiB)"
)
_FIGURES = ("timeMs", "averageMs", "medianMs", "percentage")
"""The columns of the profile's table; 8.0 to 8.2 have no median."""
_TABLE_TITLES = ("Engine Layer Information:", "Layer Information:", "Layers:")
_TACTIC = re.compile(
    r"(?:^(?P<layer>.{1,4000}?)(?: \(\w{1,40}\))? Set )?Tactic Name: (?P<name>\S{1,400})"
    r" Tactic: (?P<value>-?\w{1,20})\b"
)
_BOUND = re.compile(
    r"(?P<mode>Input|Output) binding for (?P<name>.{1,4000}) with dimensions \S+ .*is created"
)
_MOST_MESSAGES = 200
_MOST_TACTICS = 1_000_000
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


@dataclass
class Tactics:
    """Names of tactics by their values, which the builder tells as it tries them."""

    of_layer: dict[tuple[str, str], str] = field(default_factory=dict)
    """By layer and value."""
    by_value: dict[str, str] = field(default_factory=dict)
    """By value alone, for kernels, whose values are hashes; empty where names differ."""

    def add(self, layer: str, value: str, name: str) -> None:
        """Remember the name of a tactic, and the layer that it was tried for where that is told."""
        key = _tactic_key(value)
        if key is None or len(self.of_layer) + len(self.by_value) > _MOST_TACTICS:
            return
        if layer:
            self.of_layer[layer, key] = name
        if len(key) > _SHORT_TACTIC:
            self.by_value[key] = name if self.by_value.get(key, name) == name else ""

    def name(self, layer: str, value: str) -> str:
        """Return the name of the tactic that a layer uses; empty when the log does not tell it."""
        key = _tactic_key(value)
        if key is None:
            return ""
        return self.of_layer.get((layer, key)) or self.by_value.get(key, "")


_ROUNDING_MS, _ROUNDING = 0.005, 1e-4
"""How far the sum of rows may be from their total: each is written with two digits."""
_SHORT_TACTIC = 8
"""Digits of small values: these number the tactics of one kind of layer only."""


def _tactic_key(value: str) -> str | None:
    """Return a value as hexadecimal digits: before 8.4 it is a signed decimal number."""
    try:
        return f"{int(value, 16 if value.lower().startswith('0x') else 10) % (1 << 64):x}"
    except ValueError:
        return None


@dataclass
class TrtexecLog:
    """One run in a log. Texts are foreign."""

    command: str = ""
    """The command line that reproduces the run; empty when the log has none."""
    version: str = ""
    """Of TensorRT, e.g. ``8.4.1``."""
    status: str = ""
    """``PASSED`` or ``FAILED``; empty when the log ends before."""
    sections: dict[str, dict[str, JSON]] = field(default_factory=dict)
    """By the names of :data:`SECTIONS`; numbers are read as TREx's metadata has them."""
    percentiles: tuple[float, ...] = ()
    """Which percentiles follow min, max, mean and median in the performance summary."""
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    layers: list[JSON] = field(default_factory=list)
    bindings: list[JSON] = field(default_factory=list)
    profile: list[JSON] = field(default_factory=list)
    """Rows as ``--exportProfile`` writes them, the count first."""
    facts: dict[str, str] = field(default_factory=dict)
    tactics: Tactics = field(default_factory=Tactics)
    """Names of tactics, which a verbose build tells and its table of layers does not."""
    modes: dict[str, str] = field(default_factory=dict)
    """``input`` or ``output`` by the name of a binding."""
    doubts: list[str] = field(default_factory=list)
    """What cannot be true or is not whole, a sentence each."""
    runs: int = 0
    """How many runs the log has; this is the last."""
    is_trtexec: bool = True

    @property
    def metadata(self) -> Mapping[str, JSON]:
        """What TREx's metadata files would say."""
        return {name: dict(values) for name, values in self.sections.items() if values}


def read_log(text: str) -> TrtexecLog:
    """Return what a log says of its last run."""
    reader = _Reader()
    for line in text.splitlines():
        reader.line(line.rstrip())
    return reader.finished()


class _Reader:
    def __init__(self) -> None:
        self.log = TrtexecLog(is_trtexec=False)
        self._runs = 0
        self._section = ""
        self._seen: set[str] = set()
        self._name_first = False
        self._figures: tuple[str, ...] = _FIGURES
        self._total_ms: float | None = None
        """What the last row of the layers' times says, where the table is whole."""
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
        bound = _BOUND.match(text) if "binding for " in text else None
        if bound is not None:
            self.log.modes[bound["name"]] = bound["mode"].lower()
            return
        if "[W]" in marks or "[E]" in marks or "[F]" in marks:
            self._message(text, self.log.warnings if "[W]" in marks else self.log.errors)
            return
        found = _SECTION.match(text.strip())
        if found:
            self._open(found[1].strip())
        elif "[TRT]" in marks:
            self._section = "layers" if self._section == "layers" else ""
            tactic = _TACTIC.search(text) if "Tactic Name: " in text else None
            if tactic is not None:
                self.log.tactics.add(tactic["layer"] or "", tactic["value"], tactic["name"])
                return
            self._fact(text)
            self._body(text)
        else:
            self._body(text)

    def finished(self) -> TrtexecLog:
        self.log.runs = self._runs
        if len(self.log.profile) > 1:
            self.log.doubts += self._of_total()
        return self.log

    def _banner(self, banner: re.Match[str]) -> None:
        state, _, version, command = banner.groups()
        self._section = ""
        if state == "RUNNING":
            self._runs += 1
            self._seen.clear()
            self._has_total = False
            self.log = TrtexecLog(command=command.strip(), version=version_text(version or ""))
        else:
            self.log.status = state

    def _message(self, text: str, to: list[str]) -> None:
        text = text.strip()
        if text.startswith(("* ", "  ")) or not text:
            text = text[2:]
        if text and text not in self._seen and len(to) < _MOST_MESSAGES:
            self._seen.add(text)
            to.append(text)

    def _open(self, title: str) -> None:
        profile = _PROFILE.match(title)
        if profile:
            self._section = "profile"
            self._has_total = False
            self.log.profile = [{"count": int(profile[1][:18])}]
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
        if not self._section:
            self._fact(text)

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
        found = [known.get(name) for name in names]
        least, greatest = found[:2]
        if least is None or greatest is None:
            return [None] * len(found)
        return [at if at is not None and least <= at <= greatest else None for at in found]

    def _profile_row(self, text: str) -> None:
        if len(text) > _LONGEST_ROW:
            return
        words = text.split()
        if not words:
            self._section = ""
            return
        if len(self.log.profile) == 1 and "Layer" in words and not _FIGURE.fullmatch(words[0]):
            self._name_first = words[0] == "Layer"
            self._figures = _FIGURES if "Median" in text else _FIGURES[:2] + _FIGURES[3:]
            return
        count = len(self._figures)
        # Names have spaces of their own, so only the figures are split off.
        if self._name_first:
            name, *figures = text.strip().rsplit(None, count)
        else:
            *figures, name = text.strip().split(None, count)
        if words[0 if self._name_first else -1] == "Total" and len(words) <= count + 1:
            self._has_total = True
            first = words[1 if self._name_first else 0]
            self._total_ms = float(first) if _FIGURE.fullmatch(first) else None
            return
        if len(figures) == count and all(map(_FIGURE.fullmatch, figures)):
            row: dict[str, JSON] = {"name": name.strip()}
            row.update(zip(self._figures, map(float, figures), strict=True))
        else:
            row = {"name": self._name_of(text.strip()), "averageMs": None}
        self.log.profile.append(row)

    def _name_of(self, text: str) -> str:
        """Return the name in a row of which a figure is missing or is none."""
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
        times = [found for row in rows if (found := number_of(row.get("timeMs"))) is not None]
        if len(times) < len(rows):
            return []  # told of these rows already
        whole, told = sum(times), self._total_ms
        if told is not None and abs(whole - told) <= _ROUNDING_MS * len(rows) + _ROUNDING * whole:
            return []
        return [
            f"the rows of layer times sum to {fmt.milliseconds(whole)} ms and their total is"
            f" {fmt.milliseconds(told)} ms: rows are missing, repeated or changed"
        ]

    def _fact(self, text: str) -> None:
        plain = _PLAIN_VERSION.match(text)
        if plain:
            told = plain[1]
            self.log.version = version_text(f"TensorRT v{told}") if told.isdigit() else told
        size = _ENGINE_BYTES.search(text)
        if size:
            self.log.facts["engine size"] = f"{size[1]} MiB"
        if "Peak memory usage of TRT CPU/GPU memory allocators: " in text:
            peak = _PEAK.search(text)
            self._known("build peak", peak[1] if peak else None, "the peak memory of the build")
        if text.startswith("Engine built in "):
            built = _BUILD_TIME.fullmatch(text)
            self._known("build time", built[1] if built else None, "the time of the build")

    def _known(self, name: str, value: str | None, what: str) -> None:
        if value is not None:
            self.log.facts[name] = value
        elif (doubt := f"{what} is no sound figure in the log: left out") not in self.log.doubts:
            self.log.doubts.append(doubt)


def _time(text: str) -> float | None:
    found = _TIME.fullmatch(text)
    return float(found[1]) if found else None


def _number(text: str) -> float | None:
    found = _NUMBER.search(text)
    return float(found[0]) if found else None


def version_text(text: str) -> str:
    """Return the version in ``TensorRT v8401``, e.g. ``8.4.1``; empty when there is none."""
    found = _VERSION.search(text)
    if found is None:
        return ""
    number = int(found[1])
    # Four digits until 9, then two for each part.
    major, rest = divmod(number, 1000 if number < 10_000 else 10_000)
    return f"{major}.{rest // 100}.{rest % 100}"
