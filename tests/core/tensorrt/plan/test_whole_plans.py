"""Whole pages, tables, drawings and documents of engines: whole_plans.txt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from dld_tui.core.tables.html_page import SCRIPT, STYLE, digest
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.export import plan_json, plan_model
from dld_tui.core.tensorrt.plan.gains import gain_text
from dld_tui.core.tensorrt.plan.graph import layer_notes, layer_tips, plan_content
from dld_tui.core.tensorrt.plan.html import plan_page
from dld_tui.core.tensorrt.plan.layer_records import layer_records, shown_names
from dld_tui.core.tensorrt.plan.lint import findings, grouped
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import layer_devices, summary_lines, summary_of
from dld_tui.core.tensorrt.plan.tables import VIEWS, finding_table, group_table, make_table
from tests.support.engine_files import write_engine
from tests.support.model_lines import model_text
from tests.support.recorded import Recorded, table_text
from tests.support.transcript_files import FILES

TAG = re.compile(
    r"\n?(?=<(?:section|tr|rect|polygon|polyline|circle|li|p|div|svg|line|h1|g|text)[ >])"
)
NUMBER = re.compile(r"-?\d+\.\d{7,}")


def said(plan: EnginePlan) -> Iterator[str]:
    nodes = map_plan(plan)
    found = findings(plan, nodes)
    yield from summary_lines(plan)
    yield repr(summary_of(plan))
    yield from (f"{one}" for one in found)
    yield from (f"{one.hazards} {one.mitigations} {one.gain and gain_text(one.gain)}"
                for one in grouped(plan, found))  # fmt: skip
    yield from (f"{at}: {one}" for at, one in nodes.items())
    yield from (f"{one}" for one in layer_devices(plan))
    yield table_text(finding_table(plan, found, shown_names(plan, layer_records(plan, nodes))))
    for view in VIEWS:
        if view not in ("summary", "findings"):
            yield table_text(make_table(plan, view))
    yield table_text(group_table(plan, "type"))
    for layer in plan.layers:
        yield f"{layer.name}: {layer_tips(layer)} {layer_notes(layer)}"
    for colour in ("type", "precision"):
        yield f"{plan_content(plan, colour)}"
    yield model_text(plan_model(plan, nodes))
    yield json.dumps(plan_json(plan, found, nodes), indent=1)


def page(plan: EnginePlan) -> str:
    nodes = map_plan(plan)
    made = plan_page(plan, findings(plan, nodes), nodes)
    made = made.replace(STYLE, "STYLE").replace(SCRIPT, "SCRIPT")
    made = made.replace(digest(STYLE), "STYLE").replace(digest(SCRIPT), "SCRIPT")
    return TAG.sub("\n", made)


def test_whole_plans(recorded: Recorded, tmp_path: Path) -> None:
    paths = {"tiny": write_engine(tmp_path, timing=True)}
    for name, more in (("hostile", {"hostile": True}), ("names only", {"names_only": True})):
        (tmp_path / name).mkdir()
        paths[name] = write_engine(tmp_path / name, **more)
    for name in ("net", "slow"):
        paths[name] = tmp_path / f"{name}.graph.json"
        FILES[paths[name].name](paths[name])
    texts = {}
    for name, path in paths.items():
        plan = open_plan(path)
        if name != "hostile":
            texts[name] = "\n".join(said(plan))
        if name != "names only":
            texts[f"{name}, page"] = page(plan)
    recorded("whole_plans", {
        name: NUMBER.sub(lambda number: f"{float(number[0]):.7g}", text)
        .replace(str(tmp_path), "FOLDER").replace("\x1b", "ESC")
        for name, text in texts.items()
    })  # fmt: skip
