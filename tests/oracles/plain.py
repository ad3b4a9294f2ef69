"""Figures computed a second time: slowly, plainly, and without any code of the product.

Read are the rows of a report's SQLite file, or what another program wrote. Nothing here imports the
product, so a mistake in it is not repeated here.
"""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
HOLDERS = ("If", "Loop", "Scan")
PROFILES = (
    "silero_if.ort1.31.1.json",
    "minilm_int8.ort1.31.1.json",
    "light_shufflenet.ort1.0.0.json",
)
"""Real profiles of ONNX Runtime."""


def unpack(name: str, folder: Path) -> Path:
    """Unpack a file of `DATA` into a folder."""
    target = folder / name
    target.write_bytes(gzip.decompress((DATA / f"{name}.gz").read_bytes()))
    return target


def near(text: str, value: float, about: float = 0.0) -> bool:
    """Return whether a printed figure is a value, rounded to its decimals."""
    decimals = len(text.partition(".")[2])
    return abs(float(text.replace(",", "")) - value) <= 0.5001 * 0.1**decimals + about + 1e-9


def check_numbers(value: Any) -> None:
    """Check that nothing is negative or no number, and no share above the whole."""
    if isinstance(value, dict):
        for key, item in value.items():
            assert not (key == "percent" and item is not None and not 0 <= item <= 100.0001)
            check_numbers(item)
    elif isinstance(value, list):
        for item in value:
            check_numbers(item)
    elif isinstance(value, float):
        assert math.isfinite(value)
        assert value >= 0


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Run SQL on a report."""
    database = sqlite3.connect(path)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


class StoredReport:
    """What the rows of a report say: dictionaries and loops only."""

    def __init__(self, path: Path) -> None:
        self.latencies = [
            ms for (ms,) in rows(path, "SELECT ms FROM latencies") if ms is not None and ms >= 0
        ]
        self.lengths: dict[int, float] = {}
        for number, duration, state in rows(path, "SELECT pass, duration_us, state FROM passes"):
            if state == "measured" and duration is not None and duration >= 0:
                self.lengths[number] = duration / 1000
        self.types: dict[int, str] = dict(rows(path, "SELECT id, type FROM layers"))
        self.names: dict[int, str] = dict(rows(path, "SELECT id, name FROM layers"))
        self.times: dict[int, dict[int, float]] = {number: {} for number in self.lengths}
        wrong = set()
        for number, layer, own in rows(path, "SELECT pass, layer, self_us FROM samples"):
            if number not in self.lengths:
                continue
            if own is None or own < 0:
                wrong.add(number)
                continue
            self.times[number][layer] = self.times[number].get(layer, 0.0) + own / 1000
        for number in wrong:
            del self.times[number]
        self.times = {number: found for number, found in self.times.items() if found}

    def total_ms(self) -> float:
        """Return what all layers take."""
        return sum(self.layer_ms().values())

    def between_ms(self) -> float:
        """Return what is between the layers: the mean of the least quarter of passes."""
        rests = [self.lengths[number] - sum(found.values()) for number, found in self.times.items()]
        return least_quarter([max(rest, 0.0) for rest in rests])

    def covered_percent(self) -> float | None:
        """Return the layers' part of them and what is between; None of passes of no length."""
        whole = self.total_ms() + self.between_ms()
        return 100 * self.total_ms() / whole if whole > 0 else None

    def layer_ms(self) -> dict[int, float]:
        """Return the mean of each layer's fastest quarter, by how often it ran."""
        series = defaultdict(list)
        for found in self.times.values():
            for layer, time in found.items():
                series[layer].append(time)
        return {
            layer: least_quarter(values) * len(values) / len(self.times)
            for layer, values in series.items()
        }

    def type_ms(self) -> dict[str, float]:
        """Return what the layers of a type take together."""
        sums: dict[str, float] = defaultdict(float)
        for layer, time in self.layer_ms().items():
            sums[self.types[layer]] += time
        return dict(sums)


def least_quarter(values: list[float]) -> float:
    """Return the mean of the smallest values, a quarter of them rounded up."""
    fewest = sorted(values)[: -(-len(values) // 4)]
    return sum(fewest) / len(fewest)


class RawProfile:
    """What ONNX Runtime's profile says, read as one JSON document."""

    def __init__(self, path: Path) -> None:
        events = json.loads(path.read_text())
        self.passes: list[tuple[float, list[tuple[str, str, float]]]] = []
        """(length, [(name, type, own time)]) of each run, milliseconds."""
        runs = [event for event in events if event["name"] == "model_run"]
        kernels = [event for event in events if event["name"].endswith("_kernel_time")]
        for run in runs:
            begin, end = run["ts"], run["ts"] + run["dur"]
            inside = [one for one in kernels if begin <= one["ts"] and self._end(one) <= end + 1]
            layers = [
                (one["name"], one["args"]["op_name"], self._own_us(one, inside) / 1000)
                for one in inside
            ]
            self.passes.append((run["dur"] / 1000, layers))

    @staticmethod
    def _end(event: dict[str, Any]) -> int:
        return int(event["ts"] + event["dur"])

    def _own_us(self, event: dict[str, Any], others: list[dict[str, Any]]) -> float:
        """Return the duration without what ran directly inside."""
        if event["args"]["op_name"] not in HOLDERS:
            return float(event["dur"])
        held = [one for one in others if self._holds(event, one)]
        direct = [one for one in held if not any(self._holds(middle, one) for middle in held)]
        return max(0.0, float(event["dur"]) - sum(float(one["dur"]) for one in direct))

    def _holds(self, outer: dict[str, Any], inner: dict[str, Any]) -> bool:
        """Tell whether an event ran inside another; written are they in the order of their ends."""
        if outer is inner or outer["args"]["op_name"] not in HOLDERS:
            return False
        same = outer["tid"] == inner["tid"] and outer["ts"] <= inner["ts"]
        shorter = (inner["dur"], inner["ts"]) != (outer["dur"], outer["ts"])
        return same and shorter and self._end(inner) <= self._end(outer) + 1


def trtexec_percentile(ordered: list[float], percent: int) -> float:
    """Return trtexec's percentile: how many of the N largest are dropped, by whole numbers."""
    import numpy as np  # single precision as C++ has it

    dropped = int(
        (np.float32(1) - np.float32(percent) / np.float32(100)) * np.float32(len(ordered))
    )
    return ordered[max(len(ordered) - 1 - dropped, 0)]


def rank_p(first: list[float], second: list[float]) -> float:
    """Return how likely two samples so far apart are if nothing changed: Mann-Whitney's U."""
    many, other = len(first), len(second)
    above = sum((b > a) + (a == b) / 2 for a in first for b in second)
    ties = [(first + second).count(value) for value in set(first + second)]
    whole = many + other
    tied = sum(count**3 - count for count in ties) / (whole * (whole - 1))
    spread = math.sqrt(many * other / 12 * (whole + 1 - tied))
    if not spread:
        return 1.0
    away = max(abs(above - many * other / 2) - 0.5, 0.0)
    return math.erfc(away / spread / math.sqrt(2))


def kept_tests(chances: list[float], false_part: float = 0.05) -> list[bool]:
    """Return which of several tests hold together: Benjamini and Hochberg."""
    ranked = sorted(chances)
    holding = [p for rank, p in enumerate(ranked, 1) if p <= false_part * rank / len(ranked)]
    return [bool(holding) and p <= holding[-1] for p in chances]


def sign_interval(values: list[float]) -> tuple[float, float]:
    """Return the values of a sample between which its true median is in 95 % of samples."""
    ordered, count = sorted(values), len(values)
    rank = 0
    while 2 * sum(math.comb(count, at) for at in range(rank + 2)) <= 0.05 * 2**count:
        rank += 1
    return ordered[rank], ordered[count - 1 - rank]
