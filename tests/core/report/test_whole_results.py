"""Sweeps, loads, start-ups, decoders and names of layers as people read them, with files beside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dld_tui.core.codec import decode, encode
from dld_tui.core.report.dla import dla_kinds, kind_of_name
from dld_tui.core.report.generation import (
    GENERATION,
    GenerationFigures,
    SharingGain,
    big_numbers,
    generation_story,
    generation_table,
    llm_json,
    stored_figures,
)
from dld_tui.core.report.groups import is_copy_name, layer_type, name_scope
from dld_tui.core.report.load import LoadPoint, LoadResult, load_lines, load_table
from dld_tui.core.report.records import NodeLink
from dld_tui.core.report.startup import (
    NodePlacement,
    SessionStartup,
    Stage,
    node_table,
    stage_table,
    startup_lines,
)
from dld_tui.core.report.sweep import knees, load_sweep
from dld_tui.core.report.sweep_export import (
    sweep_document,
    sweep_lines,
    sweep_markdown,
    sweep_page,
    sweep_table,
)
from dld_tui.core.tables.html_page import SCRIPT, STYLE, digest
from dld_tui.core.tables.rendering import text_lines
from dld_tui.core.types import JSON
from tests.support.recorded import Recorded, settled
from tests.support.transcript_files import FILES

SWEEPS = ("a", "failed", "rough", "near", "knee", "threads", "sizes", "lengths")


def test_whole_sweeps(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name in SWEEPS:
        path = tmp_path / f"{name}.sweep.json"
        FILES[path.name](path)
        sweep = load_sweep(path)
        page = sweep_page(sweep)
        for ours in (STYLE, SCRIPT):
            page = page.replace(ours, "OURS").replace(digest(ours), "OURS")
        lines = [*sweep_lines(sweep), str(knees(sweep)), *text_lines(sweep_table(sweep))]
        lines += [f"{key}: {json.dumps(value)}" for key, value in sweep_document(sweep).items()]
        lines += [
            sweep_markdown(sweep),
            re.sub(r"\n?(?=<(?:section|tr|rect|li|p)[ >])", "\n", page),
        ]
        texts[name] = settled("\n".join(lines), tmp_path)
    recorded("whole_sweeps", texts)


def closed(clients: int, rate: float, by: float = 0.2) -> LoadPoint:
    return LoadPoint(
        clients, None, 1234, 10.0, rate, (1.0, 2.0, 3.0, None), 0.0, 1.5,
        throughput_low=rate - by, throughput_high=rate + by,
    )  # fmt: skip


def opened(offered: float, answered: float, **more: float | None) -> LoadPoint:
    point = LoadPoint(4, offered, 10, 10 / answered, answered, (1.0, None, None, None), 0.5, 1.5)
    return replace(point, **more)  # type: ignore[arg-type]


FAILED = LoadPoint(8, problem="no memory")
LOADS: dict[str, Sequence[LoadPoint]] = {
    "saturated": [closed(1, 10.0), closed(2, 20.0), closed(4, 20.1), FAILED],
    "not saturated": [closed(1, 10.0), closed(2, 20.0)],
    "doubtful": [closed(1, 19.0, 3.0), closed(2, 20.0, 1.0)],
    "one": [closed(1, 10.0)],
    "open": [opened(10, 10), opened(20, 19.5), opened(40, 22), opened(80, 22)],
    "open, doubtful": [opened(20, 20), opened(40, 37, throughput_low=34, throughput_high=39)],
    "keeps up": [opened(10, 10), opened(20, 20)],
    "too much": [opened(10, 5), opened(20, 5)],
    "long requests": [opened(10, 9, requests=90, seconds=10.0, compute_ms=600.0)],
    "failed": [FAILED, FAILED],
    "both": [closed(1, 10.0), opened(10, 10)],
}


def test_whole_loads(recorded: Recorded) -> None:
    texts = {}
    for at, (name, points) in enumerate(LOADS.items()):
        tokens = 3 if name == "both" else 0
        result = LoadResult("m.onnx", "ORT\n1", at % 3, tuple(points), "x 1x3", tokens, at == 4)
        assert decode(LoadResult, encode(result)) == result
        ranges = [(point.range, point.range_text, point.keeps_up) for point in points]
        lines = [*load_lines(result), *text_lines(load_table(result)), str(ranges)]
        texts[name] = "\n".join(lines)
    recorded("whole_loads", texts)


def test_whole_startups(recorded: Recorded) -> None:
    stages = (Stage("reading", 2.0), Stage("packing", 6.0), Stage("layout", 3.0))
    nodes = (
        NodePlacement("a", "Conv", "CUDA"), NodePlacement("b", "NonZero", "CPU", "no <kernel>"),
        NodePlacement("c\n", "Add", "CUDA"),
    )  # fmt: skip
    found = SessionStartup("m.onnx", "ORT\n1", stages, 12.0, 5.0, 1.0, 3, nodes)
    short = Stage("basic", -4.0)
    repeated = (Stage("reading", 2.0, (1.0, 2.0, 7.0)), Stage("packing", 6.0, (6.0,) * 3))
    cases = {
        "plain": found,
        "noise": replace(found, stages=(*stages, short)),
        "less noise": replace(found, stages=(*stages, replace(short, ms=-2.9))),
        "equal to noise": replace(found, stages=(*stages, replace(short, ms=-3.0))),
        "repeats": replace(found, stages=repeated),
        "one": replace(found, stages=stages[1:2], nodes=()),
        "negative": replace(found, stages=(short,)),
        "none": replace(found, stages=(), nodes=nodes[:1]),
        "no time": replace(found, session_ms=0.0),
    }
    texts = {}
    for name, case in cases.items():
        tables = [*text_lines(stage_table(case)), *text_lines(node_table(case))]
        elsewhere = str([node.node for node in case.elsewhere])
        texts[name] = "\n".join([*startup_lines(case), *tables, elsewhere])
    recorded("whole_startups", texts)


FIRST = GenerationFigures(
    1, 8, 2, 10.0, 12.0, 8.0, (4.0, 4.0), 4096, 10**9, 0.25, 2 * 10**9, 3, 0.014, True, 1.25,
    (8.0, 8.4, 8.8), (12.0, 12.5), 13.0, 9.0,
)  # fmt: skip
LONG = replace(FIRST, prompt=64, decode_ms=12.0, repeats_ms=(12.0, 12.5), kv_bytes=99_000)
WIDE = replace(FIRST, batch=4, decode_ms=16.0, repeats_ms=(30.0, 8.2))
PLAIN = GenerationFigures(2, 16, 0, 0.0, 1.0, 0.0, (), 64)
UNSTEADY = replace(PLAIN, tokens=3, decode_ms=6.0, prefill_ms=2.0, warm_ups=1, warm_up_change=0.5,
                   is_steady=False, longest_step_ms=4.0, repeats_ms=(6.0, 0.0))  # fmt: skip


def test_whole_generations(recorded: Recorded) -> None:
    rows = {
        "all": [FIRST, LONG, WIDE], "plain": [PLAIN], "unsteady": [UNSTEADY, PLAIN],
        "slow": [replace(UNSTEADY, longest_step_ms=4.01)], "none": [],
    }  # fmt: skip
    texts = {}
    for name, figures in rows.items():
        lines = [*generation_story(figures), str(big_numbers(figures)), str(llm_json(figures))]
        lines += text_lines(generation_table(figures))
        for one in figures:
            lines += [one.text, one.warm_up_text, f"{one.rates} {one.tokens_ms} {one.rate_text}"]
        texts[name] = "\n".join(lines)
    shared = replace(FIRST, decode_ms=7.5, repeats_ms=(7.5, 7.6), new_shape_ms=None)
    slower = replace(FIRST, decode_ms=7.9, repeats_ms=(7.9, 8.1))
    gains = [
        SharingGain(FIRST, shared), SharingGain(FIRST, slower), SharingGain(FIRST, FIRST),
        SharingGain(FIRST, replace(slower, repeats_ms=(7.9,))),
        SharingGain(FIRST, replace(shared, new_shape_ms=2.0)),
        SharingGain(replace(FIRST, new_shape_ms=None), replace(FIRST, new_shape_ms=None)),
    ]  # fmt: skip
    texts["gains"] = "\n".join(f"{gain.is_certain} {gain.text}" for gain in gains)
    recorded("whole_generations", {name: settled(text) for name, text in texts.items()})


def test_stored_figures_are_those_that_can_be_read() -> None:
    plain: dict[str, JSON] = {
        "batch": 1, "prompt": 1, "tokens": 2, "prefill_ms": 1.0, "first_token_ms": 1.0,
        "decode_ms": 2.0, "step_ms": [], "kv_bytes": 3,
    }  # fmt: skip
    found = stored_figures({GENERATION: [{}, {**plain, "batch": 0}, {**plain, "prompt": 0}, plain]})
    assert [(one.batch, one.prompt) for one in found] == [(1, 1)]
    assert stored_figures({}) == stored_figures({GENERATION: "x"}) == []


NAMES = (
    "Conv_0 + Relu_1", "/a/b/MatMul_myl3_1", "__myl_Fc_0", "{ForeignNode[a...b]}", "{a,b}",
    "[trainStation1]", "Reformatting CopyNode for Input Tensor 0 to Conv_3", "x copy",
    "Conv_1 input reformatter 0", "{a} output reformatter 1", "{a} input reformatter 2",
    "data to nvm", "out from nvm", "{a} finish", "data copy", "node_conv2d_3", "linear_1",
    "(Unnamed Layer* 3) [Shuffle] + Add_2", "squeeze_after_node_x", "copied_squeeze_between_y",
    "a || b", "Add_0 + Mul_1 + Sub_2 + Div_3 + Exp_4", "odd_myl3", "", "Relu_output_0", "deconv",
    "{" + "a, " * 2000 + "} finish", "{ForeignNode[" + "a" * 5000 + "]}",
)  # fmt: skip
PASSES: Sequence[Sequence[tuple[str, str]]] = (
    (("data to nvm", ""), ("{a}", ""), ("{a} finish", ""), ("out copy", ""), ("next", "")),
    (("Reformatting CopyNode for Input Tensor 0 to {a}", ""), ("{a}", "DLA"),
     ("{a} output reformatter 0", ""), ("Reformatting CopyNode for Output Tensor 0 to {a}", "")),
    (("p", "DLA"), ("p input reformatter 0", ""), ("Conv copy", ""), ("q copy", ""), ("p", "DLA"),
     ("q copy", ""), ("p output reformatter 1", ""), ("relu", "")),
    (("a copy", ""), ("Conv", "")),
)  # fmt: skip


def test_whole_names_of_layers(recorded: Recorded) -> None:
    lines = [f"{name[:60]}: {layer_type(name)}, {kind_of_name(name)}, {is_copy_name(name)}"
             for name in NAMES]  # fmt: skip
    lines += [str([kind and kind.value for kind in dla_kinds(layers)]) for layers in PASSES]
    links = [NodeLink((), name, name, "X") for name in ("/a/b/c", "c", "/c")]
    links.append(NodeLink(("If:then",), "/a/c", "/a/c", "X"))
    lines += [name_scope(link) for link in links]
    recorded("whole_names", {"names": "\n".join(lines)})
