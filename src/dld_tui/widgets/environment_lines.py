"""The environment of a report as lines: the GPU first, then versions, settings, the model."""

from __future__ import annotations

from dld_tui.core import fmt
from dld_tui.core.report.measured_facts import measured_facts
from dld_tui.core.report.model import Report
from dld_tui.core.text import fit, visible
from dld_tui.core.types import JSON
from dld_tui.widgets import glyphs
from dld_tui.widgets.blocks import Line

_DEVICE = ("gpu", "jetson")
"""What the names of facts about a GPU and its clocks begin with."""
_AFTER = "_after"
"""The end of the name of a state that was taken again after the run."""
_BESIDE = (_AFTER, "_lowest", "_highest")
"""What is shown beside the value that it belongs to."""
_UNITS = (("_mhz", "MHz"), ("_w", "W"), ("_c", "°C"))
_NAME_CELLS = 28


def environment_lines(report: Report, model_problem: str | None) -> list[Line]:
    """Return settings, environment, model and notes as lines of name and value."""
    lines: list[Line] = []
    shown = glyphs.current()
    if report.notes:
        lines.append([("Notes", "strong")])
        for note in report.notes:
            warning = note.level == "warning"
            mark = shown.warning if warning else shown.info
            lines.append([(f" {mark} ", "warn" if warning else "info"), (visible(note.text), "")])
        lines.append([])
    if model_problem is not None:
        text = f" {shown.warning} {model_problem}; the figures are kept, links may not fit"
        lines += [[(text, "warn")], []]
    device = device_rows(report.environment)
    if device:
        width = min(max(len(name) for name, _, _ in device), _NAME_CELLS)
        lines.append([("GPU, clocks and power", "strong")])
        for name, value, style in device:
            lines.append([(" " + fit(name, width, keep="end") + "  ", "dim"), (value, style)])
        lines.append([])
    measured = measured_facts(report)
    if measured:
        width = min(max(len(fact.name) for fact in measured), _NAME_CELLS)
        lines.append([("Also measured", "strong")])
        for fact in measured:
            style = "warn" if fact.is_doubtful else ""
            lines.append([(" " + fit(fact.name, width) + "  ", "dim"), (fact.text, style)])
        lines.append([])
    rest = {key: value for key, value in report.environment.items() if not _is_device(key)}
    for title, facts in (
        ("Environment", rest),
        ("Settings", report.settings),
        ("Model", report.model),
    ):
        rows = list(flat(facts))
        if not rows:
            continue
        width = min(max(len(name) for name, _ in rows), _NAME_CELLS)
        lines.append([(title, "strong")])
        for name, value in rows:
            lines.append([(" " + fit(name, width, keep="end") + "  ", "dim"), (value, "")])
        lines.append([])
    return lines[:-1]


def device_rows(facts: dict[str, JSON]) -> list[tuple[str, str, str]]:
    """Return (name, value with its unit, style) of what is known of a GPU and its clocks.

    The range of a clock that moved is shown beside its median; and what was taken again after the
    run beside the first value when it differs, in older reports.
    """
    rows = []
    for key, value in facts.items():
        beside = next((key[: -len(end)] for end in _BESIDE if key.endswith(end)), None)
        if not _is_device(key) or beside in facts:
            continue
        text = _measured(key, value)
        lowest, highest = facts.get(f"{key}_lowest"), facts.get(f"{key}_highest")
        if lowest is not None and highest is not None:
            text += f" ({_measured(key, lowest)} to {_measured(key, highest)})"
        after = facts.get(f"{key}{_AFTER}")
        later = text if after is None else _measured(key, after)
        if later != text:
            text = f"{text}, after the run {later}"
        warning = _is_warning(key, value) or (after is not None and _is_warning(key, after))
        rows.append((_device_name(key), text, "warn" if warning else ""))
    return rows


def _is_device(key: str) -> bool:
    return key in _DEVICE or key.startswith(tuple(f"{word}_" for word in _DEVICE))


def _device_name(key: str) -> str:
    name = key.removeprefix("gpu_")
    for ending, _ in (*_UNITS, ("_bytes", "")):
        name = name.removesuffix(ending)
    return visible(name.replace("_", " "))


def _measured(key: str, value: JSON) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if key.endswith("_bytes"):
            return fmt.size(int(value))
        unit = next((unit for ending, unit in _UNITS if key.endswith(ending)), "")
        return f"{value:,.4g} {unit}".rstrip() if value < 1e4 else f"{value:,.0f} {unit}".rstrip()
    return _text(value)


def _is_warning(key: str, value: JSON) -> bool:
    """Return whether a fact makes figures hard to compare: throttling, clocks that float."""
    if "throttling" in key:
        return value not in (None, "none", "", False, [])
    return key.endswith("clocks_locked") and value is False


def flat(facts: dict[str, JSON], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested facts as (name, text) with visible text; lists on one line."""
    rows: list[tuple[str, str]] = []
    for name, value in facts.items():
        label = f"{prefix}{visible(str(name))}"
        if isinstance(value, dict) and value:
            rows += flat(value, f"{label}.")
        else:
            rows.append((label, _text(value)))
    return rows


def _text(value: JSON) -> str:
    if value is None or value == {}:
        return fmt.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value) or fmt.UNKNOWN
    return visible(str(value))
