"""Tasks of the plan benchmark: opening an engine plan and finding what is wrong in it."""

from __future__ import annotations

import json
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

_BATCH, _CHANNELS, _SIZE = 8, 64, 56


def write_plan(folder: Path, layers: int) -> tuple[Path, Path]:
    """Write layer information and a profile as trtexec does; returns their paths."""
    infos: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = [{"count": 100}]
    for index in range(layers):
        node = f"/model/layers.{index // 10}/block{index % 10}"
        name = f"{node}/Conv + {node}/Relu"
        infos.append(_layer(index, name, node))
        rows.append(
            {
                "name": name, "timeMs": 1.5, "averageMs": 0.015 + index % 7 / 1000,
                "medianMs": 0.0149, "percentage": 100 / layers,
            }
        )  # fmt: skip
    graph, profile = folder / "net.graph.json", folder / "net.profile.json"
    document = {"Layers": infos, "Bindings": ["t0", f"t{layers}"]}
    graph.write_text(json.dumps(document, indent=1))
    profile.write_text("[\n" + "\n, ".join(json.dumps(row) for row in rows) + "\n]\n")
    return graph, profile


def _layer(index: int, name: str, node: str) -> dict[str, Any]:
    generated = index % 10 >= 6
    return {
        "Name": name,
        "LayerType": "kgen" if generated else "CaskConvolution",
        "Inputs": [_tensor(index)],
        "Outputs": [_tensor(index + 1)],
        **({} if generated else {"ParameterType": "Convolution"}),
        "Kernel": [3, 3], "PaddingMode": "kEXPLICIT_ROUND_DOWN", "PrePadding": [1, 1],
        "PostPadding": [1, 1], "Stride": [1, 1], "Dilation": [1, 1], "OutMaps": _CHANNELS,
        "Groups": 1, "Weights": {"Type": "Half", "Count": 36864},
        "Bias": {"Type": "Half", "Count": 64}, "HasBias": 1, "Activation": "RELU",
        "TacticName": "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc",
        "TacticValue": "0x5b8bf1b8028629d9", "StreamId": 0,
        "Metadata": f"[ONNX Layer: {node}/Conv]\x1e[ONNX Layer: {node}/Relu]",
    }  # fmt: skip


def _tensor(index: int) -> dict[str, Any]:
    return {
        "Name": f"t{index}", "Location": "Device",
        "Dimensions": [_BATCH, _CHANNELS, _SIZE, _SIZE],
        "Format/Datatype": "Channel major FP16 format where channel % 8 == 0",
    }  # fmt: skip


def plan_open(graph: str) -> dict[str, float]:
    """Open a plan with its profile, map its layers by name, and lint it; in processor time."""
    from dld_tui.core.tables.table import json_of
    from dld_tui.core.tensorrt.plan.lint import findings
    from dld_tui.core.tensorrt.plan.mapping import map_plan
    from dld_tui.core.tensorrt.plan.reader import open_plan
    from dld_tui.core.tensorrt.plan.tables import make_table

    start = time.process_time()
    plan = open_plan(graph)
    opened = time.process_time()
    mapping = map_plan(plan)
    mapped = time.process_time()
    found = findings(plan, mapping)
    linted = time.process_time()
    tables = [json_of(make_table(plan, view)) for view in ("layers", "convolutions", "memory")]
    done = time.process_time()
    assert plan.total_ms
    assert len(tables[0]) == len(plan.layers)
    return {
        "open_ms": (opened - start) * 1000,
        "map_ms": (mapped - opened) * 1000,
        "lint_ms": (linted - mapped) * 1000,
        "tables_ms": (done - linted) * 1000,
        "findings": len(found),
    }


def plan_html(graph: str) -> dict[str, float]:
    """Write the page of a plan; in processor time."""
    from dld_tui.core.tensorrt.plan.html import plan_page
    from dld_tui.core.tensorrt.plan.lint import findings
    from dld_tui.core.tensorrt.plan.mapping import map_plan
    from dld_tui.core.tensorrt.plan.reader import open_plan

    plan = open_plan(graph)
    mapping = map_plan(plan)
    found = findings(plan, mapping)
    start = time.process_time()
    page = plan_page(plan, found, mapping)
    assert len(page) > 1000
    return {"html_ms": (time.process_time() - start) * 1000}


def json_plan_open(graph: str, profile: str) -> dict[str, float]:
    """Do the least that any reader has to: load both files and put a row a layer together."""
    start = time.process_time()
    with open(graph, encoding="utf-8") as file:
        layers = json.load(file)["Layers"]
    with open(profile, encoding="utf-8") as file:
        times = json.load(file)[1:]
    waiting: dict[str, deque[float]] = defaultdict(deque)
    for row in times:
        waiting[row["name"]].append(row["averageMs"])
    rows = []
    for layer in layers:
        moved = 0
        for tensor in layer["Inputs"] + layer["Outputs"]:
            size = 2 if "FP16" in tensor["Format/Datatype"] else 4
            for dim in tensor["Dimensions"]:
                size *= dim
            moved += size
        weights = 2 * layer["Weights"]["Count"]
        name = layer["Name"]
        kind = layer.get("ParameterType", layer["LayerType"])
        rows.append((name, kind, moved, weights, waiting[name].popleft()))
    total = sum(row[4] for row in rows)
    assert total > 0
    return {"open_ms": (time.process_time() - start) * 1000}
