"""Sets of files about an engine: what is read of each together, or why nothing is."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.errors import InputError
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer
from dld_tui.core.tensorrt.plan.reader import is_plan, open_plan
from dld_tui.core.tensorrt.plan.summary import summary_lines
from tests.support.plans import write_layers, write_profile
from tests.support.recorded import Recorded, fields_of, settled

Files = dict[str, Any]
"""Bytes, text, JSON, layers as dicts with names, or times of layers as pairs."""


def tensor(name: str, form: str = "Half", dims: Any = (1, 16, 8, 8)) -> dict[str, Any]:
    return {"Name": name, "Location": "Device", "Dimensions": dims, "Format/Datatype": form}


def layers(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"Name": name, **more} for name in names]


def summary(compute: Sequence[float]) -> dict[str, Any]:
    return {"performance_summary": {"GPU Compute Time": compute}}


def timing(*compute: float) -> list[dict[str, float]]:
    return [{"startComputeMs": 500 + 9 * at, "computeMs": ms} for at, ms in enumerate(compute)]


def set_of(name: str, *times: float, metadata: bool = False) -> Files:
    """Return the layers and times of an engine of a set of several."""
    made: Files = {
        f"net.engine.graph.{name}.json": layers("a", "b"),
        f"net.engine.profile.{name}.json": [("a", times[0]), ("b", 1.0)],
    }
    if metadata:
        made[f"net.engine.profile.metadata.{name}.json"] = summary([3, 5, 4, 4, 5])
    return made


def timed(name: str, *compute: float) -> Files:
    return {f"net.engine.timing.{name}.json": timing(*compute)}


A, B, D, E = "aaaaaa", "bbbbbb", "dddddd", "eeeeee"
TWO = {**set_of(A, 1.0), **set_of(B, 5.0)}
ENGINE = struct.pack("<4sI16x4B8x", b"ftrt", 0, 10, 3, 0, 26) + bytes(64)
RUN, AT = "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec", "[07/07/2026-02:11:43] [I]"
TIMES = (
    f"{AT} === Profile (4 iterations ) ===\n{AT} Time(ms) Avg.(ms) Time(%) Layer\n"
    f"{AT} 4.0 1.0 100.0 a\n"
)
NAMES = '{"Layers": ["Conv-1 + ReLU-2", "MaxPool-3", "q"], "Bindings": ["x", "mid", "y"]}'
DEVICE = {"device_information": {"Device": "A100", "Compute Clock Rate": "1.41 GHz"}}
SETS: dict[str, Files] = {
    "a set": {
        "net.graph.json": [*layers("a"), *layers("b", of="Half")],
        "net.profile.json": [("a", 1.0), ("b", 3.0)],
        "net.profile.metadata.json": summary([3, 5, 4, 4, 5]),
    },
    "by its profile": {"net.profile.json": [("a", 1.0)], "net.graph.json": layers("a")},
    "by the profile of one of several": {
        "net.engine.profile.bbbbbb.json": [("a", 1.0), ("c", 1.0)],
        "net.engine.graph.aaaaaa.json": layers("a", "b"),
        "net.engine.graph.bbbbbb.json": layers("a", "c"),
        "net.engine.graph.cccccc.json": "{}",
    },
    **{f"by {of} of none of several": {
        f"net.engine.{of}.dddddd.json": [("a", 1.0), ("c", 1.0)] if of == "profile" else timing(1),
        "net.engine.graph.aaaaaa.json": layers("a", "b"),
        "net.engine.graph.bbbbbb.json": layers("a", "c"),
    } for of in ("profile", "timing")},
    "by its timing": {"net.timing.json": timing(1.0, 2.0), "net.graph.json": layers("a")},
    "damage beside": {"net.graph.json": layers("a"), "net.metadata.json": [],
                      "net.build.metadata.json": "{", "net.profile.json": [("x", 1.0)]},
    "several profiles": {
        "net.graph.json": layers("a", "b"), "net.profile.aaaaaa.json": [("a", 1.0), ("x", 1.0)],
        "net.profile.bbbbbb.json": [("a", 1.0), ("b", 2.0)], "net.profile.cccccc.json": "[1",
    },
    "no readable profile": {"net.graph.json": layers("a"), "net.profile.aaaaaa.json": "[1",
                            "net.profile.bbbbbb.json": ""},
    "names only": {"net.graph.json": '{"Layers": ["conv1","relu1"],"Bindings": ["x","y"]}',
                   "net.profile.json": [("conv1", 1.0), ("relu1", 3.0)]},
    "names of operators": {"names.graph.json": NAMES},
    "a profile alone": {"net.profile.json": [("a", 1.0), ("b", 2.0)]},
    "other profiles": {"net.graph.json": layers("a", "b", "a [profile 1]"),
                       "net.profile.json": [("a", 1.0), ("b", 2.0), ("a [profile 1]", 5.0)]},
    "the times of the other profile": {"net.graph.json": layers("a", "b", "a [profile 1]"),
                                       "net.profile.json": [("a [profile 1]", 1.0)]},
    "two engines in one file": {
        "two.graph.json": '{"Layers": ["a", "b"]}\n{"Layers": ["c"], "Bindings": ["x", "y"]}\n',
    },
    "one layer after another": {
        "l.json": "--- Layer 0 ---\n" + json.dumps(layers("a")[0]) + "\n--- Layer 1 ---\n{\n"
        "--- Layer 2 ---\n" + json.dumps(layers("c")[0]),
    },
    "no whole layer": {"l.json": "--- Layer 0 ---\n{\n--- Layer 1 ---\n[1"},
    "one document after another": {"l.json": '{"Name": "a"}\n{"Name": "b"}\n'},
    "an engine": {"net.engine": ENGINE, "net.trt.json": layers("a")},
    "an engine alone": {"net.engine": ENGINE},
    "times that are too far off": {"net.graph.json": layers("a"), "net.profile.json": [("a", 1.0)],
                                   "net.timing.json": timing(10.0, 10.5)},
    "times that are not": {"net.graph.json": layers("a"), "net.profile.json": [("a", 1.0)],
                           "net.timing.json": timing(9.0, 9.5)},
    "timings that rank": {**TWO, **timed(D, 6.0, 6.1), **timed(E, 2.0, 2.1)},
    "timings that are alike": {**TWO, **timed(D, 6.0, 6.1), **timed(E, 6.0, 6.2)},
    "a timing without times": {**TWO, **timed(D, 6.0, 6.1), **timed(E, -1.0)},
    "a damaged timing": {**TWO, **timed(D, 6.0, 6.1), f"net.engine.timing.{E}.json": "{}"},
    "one timing for two": {**TWO, **timed(D, 6.0, 6.1)},
    "a timing of the name": {**TWO, **timed(A, 6.0, 6.1), **timed(B, 2.0, 2.1)},
    "metadata of one of two": {**set_of(A, 1.0, metadata=True), **set_of(B, 5.0)},
    "metadata of the other": {**set_of(A, 1.0), **set_of(B, 5.0, metadata=True)},
    "metadata that a timing confirms": {
        **set_of(A, 5.0), **set_of(B, 1.0), **timed(D, 6.0, 7.0), **timed(E, 2.0, 2.1),
        f"net.engine.profile.metadata.{D}.json": summary([6, 7, 6.5, 6.5, 7]),
    },
    "only a build": {"net.build.json": '{"format": "dld-tui engine build"}'},
    "a build": {"net.build.json": '{"format": "dld-tui engine build"}',
                "net.trt.json": layers("a")},
    "a log of the build": {"net.build.log": "[I] Total Activation Memory: 1048576 bytes\n",
                           "net.trt.json": layers("a")},
    "two logs": {"net.graph.json": layers("a"), "net.profile.log": f"{RUN} --int8\n{TIMES}",
                 "net.build.log": f"{RUN} --fp16\n{AT} Engine built in x sec\n"},
    "an empty log": {"net.graph.json": layers("a"), "net.profile.log": "",
                     "net.build.log": f"{RUN} --fp16\n{AT} Engine built in x sec\n"},
    "a log alone": {"net.profile.log": f"{RUN} --int8\n{TIMES}"},
    "a log without layers": {"run.log": f"{RUN} --int8\n"},
    "unknown sizes": {"net.graph.json": [
        {"Name": "a", "Weights": {"Type": "Half", "Count": -5}},
        {"Name": "b", "Bias": {"Type": "Mystery", "Count": 4}},
        {"Name": "c", "Weights": {"Type": "Half", "Count": "many"}},
        {"Name": "d", "Inputs": [tensor("in", dims=[1 << 30, 1 << 30, 4, 4])]},
        {"Name": "e", "Weights": {"Type": "Half", "Count": 3}, "Inputs": [tensor("in", dims=[-1])]},
        {"Name": "f", "Inputs": [tensor("in", "N/A"), tensor("in", dims=None)], "Outputs": 3},
    ], "net.profile.json": '[{"count": 10}, {"name": "a", "timeMs": 10, "averageMs": 1},'
        ' {"name": "b", "timeMs": 90, "averageMs": 1}, {"name": "c", "averageMs": -1},'
        ' {"name": "d", "averageMs": NaN}, {"name": "e", "averageMs": "1"}]'},
    **{f"a summary of {times}": {
        "net.graph.json": layers("a"), "net.profile.metadata.json": summary(times),
    } for times in ([1, 2, 9, 1.5, 2], [2, 1, 1.5, 1.5, 2], [1, -2, 1, 1, 1])},
    "a device": {"net.graph.json": layers("a"), "net.metadata.json": DEVICE,
                 "net.profile.json": [("a", 1e-6)]},
    "no list": {"f.json": '{"hello": 1}'}, "nested": {"f.json": "[" * 99_999},
    "empty": {"f.json": ""}, "binary": {"f.json": "\x00\x01binary"},
    "another profile": {"f.json": '[{"cat": "Node", "ph": "X"}]'},
    "a profile without layers": {"f.json": '[{"count": 3}]'},
    "no layers": {"f.json": '{"Layers": [], "Bindings": []}'},
    "a text behind": {"f.json": '{"Layers": ["a"]} b'}, "cut": {"f.json": '{"Layers": ["a"'},
    "a large number": {"f.json": '{"Layers": [' + "1" * 5000 + "]}"},
    "UTF-16": {"f.json": '{"Layers": ["a"]}'.encode("utf-16")},
    "odd layers": {"f.json": {"Layers": [{"Name": "a"}, 3, None, {"name": "b"}, {}, "c"],
                              "Bindings": ["x", 3, None]}},
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "a set": {"beside": False}, "other profiles": {"profile_index": 1},
    "two engines in one file": {"profile_index": 5},
}  # fmt: skip


def written(folder: Path, files: Files) -> Path:
    """Write the files; return the first one."""
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content)
        elif name.split(".")[-3:][0] == "graph" or ".graph." in name or ".trt." in name:
            write_layers(path, [dict(one) for one in content])
        elif isinstance(content, list) and content and isinstance(content[0], tuple):
            write_profile(path, content)
        else:
            path.write_text(json.dumps(content))
    return folder / next(iter(files))


def layer_text(layer: EngineLayer) -> str:
    """Return the fields of a layer that are not empty, its tensors in short."""
    sides = [
        ", ".join(f"{one.name} {one.dtype}{[*one.dims] if one.dims else '?'}" for one in side)
        for side in (layer.inputs, layer.outputs)
    ]
    known = (
        f"{field.name}={getattr(layer, field.name)}"
        for field in dataclasses.fields(layer)
        if field.name not in ("inputs", "outputs", "attributes") and getattr(layer, field.name)
    )
    return f"({sides[0]}) -> ({sides[1]}) {', '.join(known)}"


def told(path: Path, **options: Any) -> str:
    try:
        plan = open_plan(path, **options)
    except InputError as error:
        lines = [f"{error} | {error.hint}"]
    else:
        of = (plan.title, plan.names_only, plan.passes, plan.total_ms, plan.profile_count)
        lines = [f"{of} {plan.profile_index} {plan.model_path!r} {plan.device}"]
        lines += [*plan.notes, f"{plan.files}", f"timing {plan.timing and fields_of(plan.timing)}"]
        lines += [fields_of(one) for one in plan.bindings]
        lines += map(layer_text, plan.layers)
        lines += [f"all: {one.name} {one.time_ms}" for one in plan.all_layers]
        lines += summary_lines(plan)
    if not options:
        try:
            lines.append(f"is a plan: {is_plan(path)}")
        except InputError as error:
            lines.append(f"is a plan: {error.message}")
    return settled("\n".join(lines), path.parent).replace("\x1b", "ESC")


def test_whole_sets(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for at, (title, files) in enumerate(SETS.items()):
        path = written(tmp_path / str(at), files)
        texts[title] = told(path)
        if title in OPTIONS:
            texts[f"{title}, {OPTIONS[title]}"] = told(path, **OPTIONS[title])
    path = tmp_path / "0" / "net.graph.json"
    second = write_profile(tmp_path / "second", [("a", 5.0)])
    (tmp_path / "m.json").write_text("[]")
    (tmp_path / "m2.json").write_text(json.dumps({**DEVICE, "given": 1}))
    (tmp_path / "t.json").write_text(json.dumps(timing(3.0, 4.0)))
    texts["a profile by name"] = told(path, profile=second)
    texts["a timing by name"] = told(path, timing=tmp_path / "t.json")
    texts["metadata by name"] = told(path, metadata=[tmp_path / "m2.json"])
    texts["no metadata"] = told(path, metadata=[tmp_path / "m.json"])
    texts["an absent profile"] = told(path, profile=tmp_path / "0" / "absent")
    recorded("whole_sets", {title: settled(text, tmp_path) for title, text in texts.items()})
