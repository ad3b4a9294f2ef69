"""Files of engines that are damaged in drawn ways: no figure of one page contradicts another.

A figure that cannot be known is missing. Nothing here is computed by code of the product.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.report.groups import group_layers
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import GROUPINGS, groups
from tests.oracles.plans.test_plan_screens import check_screens
from tests.oracles.test_html_figures import check_plan
from tests.support.tiers import first

DATA = Path(__file__).parent / "data"
NAME = "qat-residual-qgap"
VALUES: tuple[Any, ...] = (None, -1.0, 0, "3 ms", 1e300, [], {}, True, "NaN", 12.5, 1e-9)
DLA = ("{a,b}", "{a,b} output reformatter 0", "x from nvm", "data to nvm", "y finish")


def damaged(rows: list[Any], dice: random.Random) -> list[Any]:
    """Return objects of which some have other values, lack one, are there twice or are renamed."""
    changed: list[Any] = []
    for row in json.loads(json.dumps(rows)):
        roll = dice.random()
        if isinstance(row, dict) and roll < 0.2:
            row[dice.choice(list(row))] = dice.choice(VALUES)
        elif isinstance(row, dict) and roll < 0.25:
            row.pop(dice.choice(list(row)))
        elif isinstance(row, dict) and roll < 0.28:
            row["name" if "name" in row else "Name"] = dice.choice(DLA)
        elif roll < 0.31:
            continue
        changed += [row] * (2 if 0.31 < roll < 0.34 else 1)
    return changed


def usable(row: Any) -> float:
    """Return the time of a row of a profile that could be true; 0 for others."""
    value: Any = row.get("averageMs") if isinstance(row, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    return float(value) if math.isfinite(value) and value >= 0 else 0.0


@pytest.mark.parametrize("seed", first(4, range(12)))
def test_no_two_figures_of_a_damaged_engine_contradict_each_other(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    whole = json.loads((DATA / f"{NAME}.graph.json").read_text())
    rows = json.loads((DATA / f"{NAME}.profile.json").read_text())
    if seed % 3:
        whole["Layers"] = damaged(whole["Layers"], dice)
    rows = [*rows[:1], *damaged(rows[1:], dice)] if seed % 3 != 1 else rows
    (tmp_path / "e.graph.json").write_text(json.dumps(whole))
    (tmp_path / "e.profile.json").write_text(json.dumps(rows))
    source = DATA / f"{NAME}.profile.metadata.json"
    (tmp_path / "e.profile.metadata.json").write_text(source.read_text())
    try:
        plan = open_plan(tmp_path / "e.graph.json")
    except InputError:
        return  # nothing is told of it
    consistent(plan, sum(map(usable, rows)))
    check_plan(tmp_path / "e.graph.json")
    check_screens(tmp_path / "e.graph.json")


@pytest.mark.models
def test_no_two_figures_of_the_engines_at_hand_contradict_each_other(engines: Path) -> None:
    """Files and logs of TensorRT 7, 8 and 10."""
    timed = 0
    for path in sorted(path for path in engines.rglob("*") if path.is_file()):
        if "timing" in path.name or "metadata" in path.name:
            continue
        with contextlib.suppress(InputError):
            plan = open_plan(path)
            consistent(plan, math.inf)
            check_screens(path)
            timed += plan.total_ms is not None
    assert timed >= 30


def consistent(plan: EnginePlan, most_ms: float) -> None:
    """Compare the figures of a page with each other; all layers take at most so long."""
    mapping = map_plan(plan)
    document: Any = plan_json(plan, findings(plan, mapping), mapping)
    json.dumps(document, allow_nan=False)
    layers = document["layers"]
    times = [layer["time_ms"] for layer in layers if layer["time_ms"] is not None]
    total = document["summary"]["total_ms"]
    assert (total is None) == (not times)
    if total is not None:
        assert sum(times) == pytest.approx(total)
        assert total <= most_ms * (1 + 1e-9) + 1e-9
        percents = [layer["percent"] for layer in layers if layer["percent"] is not None]
        assert not total or sum(percents) == pytest.approx(100)
        for by in GROUPINGS:
            found = groups(plan, by)
            assert sum(group.time_ms or 0.0 for group in found) == pytest.approx(total), by
            assert sum(group.count for group in found) == len(layers)
        shared = group_layers(layer_records(plan, mapping), "node")
        assert sum(node.time_ms for node in shared) == pytest.approx(total)
    for layer in layers:
        parts = (layer["io_bytes"], layer["weights_bytes"], layer["unread_bytes"])
        if layer["footprint"] is not None:
            assert layer["footprint"] == parts[0] + parts[1] - parts[2] >= 0
        assert layer["efficiency"] is None or 0 <= layer["efficiency"] <= 1.05
        assert layer["main_node"] is None or layer["main_node"] in layer["nodes"]
    for found in document["findings"]:
        share, gain = found["percent"], found["gain_percent"]
        assert share is None or 0 <= share <= 100 + 1e-6
        assert gain is None or (
            0 == gain[0] <= gain[1] and (share is None or gain[1] <= share + 1e-6)
        )
