"""What the model of a report was fed with: shapes and values, and why, where they were guessed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.reader import Report

INPUTS = "inputs"
"""The fact of a report that has :meth:`.inputs.guess.Guess.to_json`; here, as that needs onnx."""
_MOST_LINES = 4
_NAME = 60


@dataclass(frozen=True)
class ReportInput:
    """One input. All texts are foreign."""

    name: str
    shape: tuple[int, ...]
    why: str = ""
    """Where the sizes that the model leaves open come from; empty when nothing was guessed."""
    values: str = ""
    values_reason: str = ""

    @property
    def shape_text(self) -> str:
        """The shape, as ``1x3x224x224``."""
        return "x".join(map(str, self.shape)) or "scalar"

    def to_json(self) -> dict[str, JSON]:
        """Return it as JSON data."""
        return {
            "name": self.name, "shape": [*self.shape], "guessed": bool(self.why), "why": self.why,
            "values": self.values, "values_reason": self.values_reason,
        }  # fmt: skip


def report_inputs(report: Report) -> list[ReportInput]:
    """Return the inputs; of a report without reasons the shapes alone."""
    stored = report.facts.get(INPUTS)
    if isinstance(stored, list):
        return [found for one in stored if (found := _stored(one)) is not None]
    given = report.settings.get("input_shapes")
    if not isinstance(given, dict):
        return []
    shapes = ((name, _shape(dims)) for name, dims in given.items())
    return [ReportInput(name, shape) for name, shape in shapes if shape is not None]


def _stored(value: JSON) -> ReportInput | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    shape = _shape(value.get("shape"))
    if shape is None:
        return None
    why, values, reason = (
        text if isinstance(text := value.get(key), str) else ""
        for key in ("why", "values", "values_reason")
    )
    return ReportInput(str(value["name"]), shape, why, values, reason)


def _shape(value: JSON) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(isinstance(dim, int) for dim in value):
        return None
    return tuple(dim for dim in value if isinstance(dim, int))


def input_lines(report: Report) -> Iterator[str]:
    """Yield what is to be read of the inputs, for people; those that are alike in one line."""
    alike: dict[tuple[tuple[int, ...], str], list[ReportInput]] = {}
    for one in report_inputs(report):
        alike.setdefault((one.shape, one.why), []).append(one)
    for same in [*alike.values()][:_MOST_LINES]:
        first = same[0]
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        values = "" if more else first.values
        if first.why:
            why = f" (guessed: {first.why}{f'; {values}' if values else ''})"
        else:
            why = f" ({values})" if values else ""
        yield f"{clip(visible(first.name), _NAME, keep='middle')}{more} {first.shape_text}" + (
            visible(why)
        )
    if len(alike) > _MOST_LINES:
        yield f"and {len(alike) - _MOST_LINES} more shapes"
