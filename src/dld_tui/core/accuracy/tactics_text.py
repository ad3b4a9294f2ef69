"""The result of a search for wrong tactics in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.accuracy.tactics import FOUND, NONE_BAD, NONE_GOOD
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import NOTE
from dld_tui.core.tensorrt.tactics import REPLAY


def cost_text(estimate: Mapping[str, Any]) -> str:
    """Return what a search would cost, in one sentence."""
    least, most = estimate["builds"]
    shortest, longest = (fmt.duration(seconds) for seconds in estimate["seconds"])
    return (
        f"{fmt.plural(estimate['layers'], 'layer')} can have other tactics; a build with its runs"
        f" takes {fmt.duration(estimate['build_seconds'])}: up to {least} ({shortest}) to find a"
        f" wrong result, up to {most} ({longest}) to find its tactics"
    )


def verdict_text(data: Mapping[str, Any]) -> str:
    """Return how a search ended, in one sentence."""
    verdict = data["verdict"]
    if verdict is None:
        return cost_text(data["estimate"])
    builds = fmt.plural(data["builds"], "build")
    if verdict == FOUND:
        count = len(data["culprits"])
        return f"{fmt.plural(count, 'tactic')} {'makes' if count == 1 else 'make'} the result wrong"
    if verdict == NONE_BAD:
        same = "" if data["variants"] > 1 else "; all took the same tactics: --vary tries others"
        return f"No wrong result in {builds}{same}"
    if verdict == NONE_GOOD:
        return (
            f"No right result in {builds}, with other tactics neither: look at the precisions"
            " (dld accuracy --search) and the tolerances"
        )
    return "The same tactics gave a right and a wrong result: they alone are not to blame"


def counts_text(data: Mapping[str, Any]) -> str:
    """Return how many builds there were, and how they ended. Foreign text."""
    return (
        f"{fmt.plural(data['builds'], 'build')} with {data['library']} in"
        f" {fmt.duration(data['seconds'])}: {data['good']} right, {data['bad']} wrong,"
        f" {data['failed']} failed; {fmt.plural(data['variants'], 'choice')} of tactics"
    )


def avoiding_command(data: Mapping[str, Any], model: Path) -> str:
    """Return the command that builds without the tactics; empty without a result. Foreign text."""
    if not data.get("avoid"):
        return ""
    file = shlex.quote(str(data["avoid"]))
    flags = f"--timing-cache {file} --editable-timing-cache"
    if data["way"] == REPLAY:
        flags = f"--tactic-replay {file}"
    options = f" {data['options']}" if data["options"] else ""
    return f"dld build {shlex.quote(str(model))}{options} {flags}"


def tactic_table(data: Mapping[str, Any]) -> Table[Mapping[str, Any]]:
    """Return the tactics that are to blame as a table, or those of wrong builds only."""
    rows: list[Mapping[str, Any]] = data["culprits"] or [
        {"title": one["title"], "tactic": tactic, "instead": None, "confirmed": None}
        for one in data["suspects"]
        for tactic in one["tactics"]
    ]
    alone = {True: "wrong", False: "not built", None: ""}
    return Table(
        (
            Column("layer", "layer", itemgetter("title"), least=16, keep="end"),
            Column("tactic", "wrong tactic", lambda one: one["tactic"]["shown"], width=30,
                   keep="end", style="type"),
            Column("instead", "right one", lambda one: (one["instead"] or {}).get("shown", ""),
                   NOTE, 24, priority=1, keep="end"),
            Column("alone", "alone", lambda one: alone[one["confirmed"]], NOTE, 9, priority=2,
                   style="dim"),
        ),
        rows,
    )  # fmt: skip
