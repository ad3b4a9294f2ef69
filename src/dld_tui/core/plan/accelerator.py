"""An engine by device: what a deep learning accelerator (DLA) runs, and what the GPU has to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dld_tui.core import fmt
from dld_tui.core.plan.lint import is_reformat
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.report.groups import DLA, DLA_TRANSFER, DLA_WAIT
from dld_tui.core.tables.table import FINE_MS, PERCENT, Column, Table

PART, TRANSFER, WAIT, FELL_BACK, OTHER = "part", "transfer", "wait", "fell back", "GPU's own"
_ROLES = {DLA: PART, DLA_TRANSFER: TRANSFER, DLA_WAIT: WAIT}
_REASONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<why>Input tensor has less than 4 dimensions) for (?P<name>.+?)\. At least one",
        r"(?P<name>.+?): (?P<why>DLA (?:cores do|only|does|supports).*)",
        r"(?!Layer ')(?P<name>.+?): (?P<why>.+ (?:not supported for|on) DLA.*)",
        r"Layer '(?P<name>.+?)' \((?P<kind>\w+)\): Unsupported on DLA",
        r"Default DLA is enabled but layer (?P<name>.+?) is not (?:supported|running) on DLA",
        r"Validation failed for DLA layer: (?P<name>.+?)\. Switching",
    )
)
"""What TensorRT 5 to 10 say of layers that fall back, the most telling first."""
_GENERAL = "the log gives no reason"
_LONGEST = 500
"""Characters of a message that are looked at: a hostile one is not searched for ever."""
_JOINS = re.compile(r" \+ | \|\| |, ")
_NODE = re.compile(r"\[ONNX Layer: ([^\]|\x1e\x1f]+)")


@dataclass(frozen=True)
class Placed:
    """A layer and where it runs. Texts are foreign."""

    name: str
    device: str
    """``DLA`` or ``GPU``."""
    role: str
    why: str
    """Why it is not on the DLA; empty where nothing tells."""
    layer: EngineLayer | None
    """None for what fell back and is no layer of its own in the engine."""


def fallback_reasons(messages: Iterable[str]) -> dict[str, str]:
    """Return why layers fell back to the GPU, by the name that the log has.

    Args:
        messages: Warnings and errors of a build log. Foreign text.
    """
    found: dict[str, tuple[int, str]] = {}
    for message in messages:
        text = message.removeprefix("[TRT]").strip()[:_LONGEST]
        if "DLA" not in text:
            continue
        for rank, pattern in enumerate(_REASONS):
            match = pattern.match(text)
            if match is None:
                continue
            said = match.groupdict()
            kind = said.get("kind")
            why = f"{kind} is not supported" if kind else (said.get("why") or _GENERAL).rstrip(". ")
            if rank < found.get(match["name"], (len(_REASONS), ""))[0]:
                found[match["name"]] = (rank, why)
            break
    return {name: why for name, (_, why) in found.items()}


def placed_layers(plan: EnginePlan) -> list[Placed]:
    """Return the layers by device; empty for an engine that has nothing to do with a DLA."""
    messages = [*plan.log.warnings, *plan.log.errors] if plan.log is not None else []
    reasons = fallback_reasons(messages)
    roles = {layer.index: _role(layer) for layer in plan.layers}
    if not any(roles.values()) and not reasons:
        return []
    found, told = [], set[str]()
    for layer in plan.layers:
        names = [name for name in _names(layer) if name in reasons]
        told.update(names)
        role, why = roles[layer.index], "; ".join(dict.fromkeys(reasons[name] for name in names))
        if role:
            found.append(Placed(layer.name, "DLA" if role == PART else "GPU", role, "", layer))
        else:
            kind = FELL_BACK if names else OTHER
            found.append(Placed(layer.name, "GPU", kind, why, layer))
    missing = (name for name in reasons if name not in told)
    return [*found, *(Placed(name, "GPU", FELL_BACK, reasons[name], None) for name in missing)]


def _role(layer: EngineLayer) -> str:
    if is_reformat(layer):
        return ""
    return _ROLES.get(layer.kind) or _ROLES.get(layer.type, "")


def _names(layer: EngineLayer) -> Iterator[str]:
    yield layer.name
    yield from _JOINS.split(layer.name[:8000])
    yield from (match.strip() for match in _NODE.findall(layer.metadata[:8000]))


def placed_table(plan: EnginePlan) -> Table[Placed]:
    """Return the layers by device as a table."""

    def time(one: Placed) -> float | None:
        return None if one.layer is None else one.layer.time_ms

    def percent(one: Placed) -> float | None:
        return None if one.layer is None else one.layer.percent

    columns: tuple[Column[Placed], ...] = (
        Column("name", "layer", lambda one: one.name, least=28, keep="end", pinned=True),
        Column("device", "device", lambda one: one.device, width=6),
        Column("role", "what", lambda one: one.role, width=9),
        Column("time_ms", "time ms", time, FINE_MS, 9, heat=True),
        Column("percent", "%", percent, PERCENT, 6),
        Column("why", "why not the DLA", lambda one: one.why, priority=10),
    )
    return Table(columns, placed_layers(plan))


def accelerator_line(plan: EnginePlan) -> str:
    """Return the time of each role, as ``2 parts 1.20 ms, 1 wait 0.3 ms``; empty without a DLA."""
    sums: dict[str, list[float | None]] = {}
    for one in placed_layers(plan):
        sums.setdefault(one.role, []).append(None if one.layer is None else one.layer.time_ms)
    return ", ".join(_counted(role, sums[role]) for role in (PART, TRANSFER, WAIT, FELL_BACK)
                     if role in sums)  # fmt: skip


def _counted(role: str, times: list[float | None]) -> str:
    known = [time for time in times if time is not None]
    count = f"{len(times):,} {role}" if role == FELL_BACK else fmt.plural(len(times), role)
    return f"{count} {fmt.milliseconds(sum(known))} ms" if known else count
