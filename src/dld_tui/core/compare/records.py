"""The subjects, rows and cells of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.records import Layer
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Subject:
    """What is compared: a profile report, or anything else with timed layers."""

    title: str
    """A short name: untrusted text."""
    path: str
    layers: Sequence[Layer]
    """With the ONNX nodes that each computes; ``layers[i].index == i``."""
    times: FloatArray | None = None
    """Milliseconds ``float64[layers, passes]``, NaN where a layer did not run."""
    gpu_times: FloatArray | None = None
    """The same for the kernels on a GPU; None when they were not recorded."""
    latencies_ms: Sequence[float] = ()
    """Inferences of a latency loop; empty without one."""
    first_tokens_ms: Sequence[float] = ()
    """Of a decoder, the time to the first token in each repetition; empty where unknown."""
    prompt: int | None = None
    """Of a decoder, the tokens of the prompt that latencies and the first token are of."""
    profiled_ms: Sequence[float] = ()
    """Passes with profiling on, in order; empty when the layers were not timed by pass."""
    properties: Mapping[str, JSON] = field(default_factory=dict)
    """``network``, ``backend``, ``execution_provider``, ``device``, ``created``, ``status``."""
    model: Mapping[str, JSON] = field(default_factory=dict)
    """Of the model file: ``path``, ``sha256``, ``bytes``."""
    settings: Mapping[str, JSON] = field(default_factory=dict)
    """The request that was run."""
    environment: Mapping[str, JSON] = field(default_factory=dict)
    """Versions, clocks and so on."""


KIND = "layer_times"
"""The property that says that the times of layers are ``means`` over the passes, as in engines."""
PER_ITEM = "per_item"
"""The property that times were divided by this batch."""
MEANS = "means"


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a difference, in milliseconds."""

    low_ms: float
    high_ms: float

    @property
    def has_zero(self) -> bool:
        """Whether there may be no difference at all."""
        return self.low_ms <= 0.0 <= self.high_ms


@dataclass(frozen=True)
class Cell:
    """One row in one report."""

    time_ms: float | None
    """Median time per pass; None when the report has nothing of the row."""
    layers: tuple[int, ...] = ()
    """The layers (`Layer.index`) that the time is of."""
    delta_ms: float | None = None
    """Relative to the base; missing times count as 0. None in the base, or if both are missing."""
    ratio: float | None = None
    """Against the base; None in the base or when one of the times is missing or 0."""
    interval: Interval | None = None
    """Of `delta_ms`; None in the base, and with too few passes."""
    share_percent: float | None = None
    """The part of `delta_ms` in all that became faster or slower, rows added up without sign."""
    untimed: bool = False
    """The report has no times at all, so nothing is missing of this row when it has layers."""
    p_value: float | None = None
    """How likely such a difference is when nothing changed; None without an interval."""
    is_discovery: bool = True
    """The p-value holds among those of all rows that were tested together."""

    @property
    def is_there(self) -> bool:
        """Whether the report has layers of the row that ran, if there are times."""
        return self.time_ms is not None or (self.untimed and bool(self.layers))

    @property
    def noise(self) -> bool | None:
        """Whether the difference may be noise: None when unknown.

        By the interval of the row, and by its p-value among all rows of the table.
        """
        if self.interval is None:
            return None
        return self.interval.has_zero or not self.is_discovery


@dataclass(frozen=True)
class ComparisonRow:
    """One line of a comparison."""

    key: str
    """Layer, node, operator, …: untrusted text."""
    cells: tuple[Cell, ...]
    """One a report, in order."""
    match: str = ""
    """How layers were matched: ``node``, ``name``, ``order``, or empty: in one report only, or
    grouped by a key that all reports share."""
    estimate: bool = False
    """The time of layers made of several nodes had to be shared between them."""
    name: str = ""
    """What people know `key` by: its ONNX nodes, fit for a terminal; empty where it is the same."""

    @property
    def title(self) -> str:
        """What to call it on a screen, fit for a terminal."""
        return self.name or visible(self.key)

    @property
    def layer(self) -> tuple[int, int] | None:
        """The first (report, layer) that the row is of: the same whichever report is the base."""
        members = (
            (report, cell.layers[0]) for report, cell in enumerate(self.cells) if cell.layers
        )
        return next(members, None)

    def state(self, index: int, base: int) -> str:
        """Return ``added`` or ``removed`` when a report or the base has nothing of this row."""
        here, there = self.cells[index].is_there, self.cells[base].is_there
        if here == there:
            return ""
        return "added" if here else "removed"


@dataclass(frozen=True)
class Difference:
    """A setting or a value of the environment that is not the same in all reports."""

    section: str
    """``report``, ``settings`` or ``environment``."""
    name: str
    values: tuple[str, ...]
    """One a report, as text: foreign."""


def label(index: int) -> str:
    """Return the short name of a report in tables: A, B, … Z, 27, 28, …."""
    return chr(ord("A") + index) if index < 26 else str(index + 1)
