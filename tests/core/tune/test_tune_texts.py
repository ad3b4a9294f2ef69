"""All that results of tuning and of placement say: tune_texts.txt."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.compare.gate import GateRow, Verdict
from dld_tui.core.tune.changes import (
    CHANGES,
    Setup,
    batch_change,
    combinations,
    measured_gains,
    reasons_of,
    shape_change,
    thread_changes,
)
from dld_tui.core.tune.gain import Gain, GainRow, gain_line
from dld_tui.core.tune.placement import (
    Decision,
    PlacementResult,
    placement_lines,
    placement_table,
)
from dld_tui.core.tune.regions import Scheme
from dld_tui.core.tune.result import (
    Candidate,
    CandidateState,
    Code,
    TuneResult,
    cpp_code,
    doubt_parts,
    python_code,
    result_lines,
    tune_bars,
    tune_document,
    tune_table,
)
from dld_tui.core.types import JSON
from tests.support.recorded import Recorded, table_text

FASTER = GateRow("end to end", 10.0, 8.0, -20.0, -21.0, -19.0, Verdict.FASTER)
VAGUE = replace(FASTER, low_percent=-90.0)
SAME = replace(FASTER, change_percent=1.0, low_percent=-2.0, high_percent=3.0,
               verdict=Verdict.NO_DIFFERENCE)  # fmt: skip
S = CandidateState
CANDIDATES = (
    Candidate("as it is", "original model", 12.0, 1.0, 1.0, 36, S.IN_RACE),
    Candidate("int8-dynamic", "dynamic int8", 5.0, 0.5, 0.4, 24, S.BEST, "", "SNR 36 dB",
              interval=(1.96, 2.04)),
    Candidate("fp16+threads-1", "fp16, 1 thread", 9.0, 0.75, 0.7, 12, S.FASTER, "", "within",
              interval=(1.2, 1.4)),
    Candidate("blocks", "blocks", 6.0, 0.5, 0.45, 12, S.FASTER, "", "the same", interval=(1.2, 9.0),
              identical=True),
    Candidate("arena", "no arena", 12.5, 1.04, 0.9, 8, S.NOT_CONFIRMED, "", "",
              interval=(0.9, 1.1)),
    Candidate("slow", "slow one", 14.0, 1.2, 0.95, 8, S.NOT_CONFIRMED, "", "", interval=(0.7, 0.9)),
    Candidate("threads-1", "1 thread", None, None, 1.6, 2, S.SLOWER, "", "the same",
              identical=True),
    Candidate("nhwc", "NHWC", None, None, 0.8, 2, S.BEHIND),
    Candidate("fp16", "fp16", state=S.NO_CHANGE, problem="there is nothing to change"),
    Candidate("opset", "opset", state=S.NOT_TRIED, problem="the time was up"),
)  # fmt: skip
ROWS = (
    GainRow("first conv of a network with a long name", 5.0, 1.0, -3.0, -1.0),
    GainRow("second", 3.0, 2.5, 0.0, -0.5),
    GainRow("third", 1.0, 1.5, 0.5, 0.0),
)


def tune_results() -> dict[str, TuneResult]:
    base = TuneResult(
        report="m.tune.json", source="m.onnx", best="int8-dynamic", title="dynamic int8",
        confirmed=FASTER, model="m.tune.onnx", candidates=CANDIDATES,
        why=("92 % of it is at 4 nodes.", "And more."), code=Code("python", "c++", "dld run"),
        reports=("a.dldprof", "b.dldprof"), tolerance="by precision", inputs="random values",
        seconds={"measuring": 5.0, "waiting": 2.0, "converting": 0.4, "all": 9.0}, is_whole=True,
        explained_percent=92.0, nodes=ROWS, settings={"threads": 2},
    )  # fmt: skip
    none = replace(
        base, best="as it is", title="original model", confirmed=None, model=None, why=()
    )
    return {
        "faster": base,
        "vague": replace(base, confirmed=VAGUE),
        "settings only, of many changes": replace(
            base, model=None, best="no-spinning+denormals+int8-dynamic+threads-1",
            title="a title that is longer than what a headline has room for",
        ),
        "a machine that is busy, and no time": replace(
            base, other_busy_threads=1.7, is_whole=False, budget=60.0
        ),
        "no time, all tried": replace(base, is_whole=False, candidates=CANDIDATES[:3]),
        "nothing": none,
        "nothing, nobody lost": replace(
            none, candidates=tuple(c for c in CANDIDATES if c.state is not S.NOT_CONFIRMED)
        ),
        "rejected": replace(none, confirmed=SAME, asked=("fp16",), title="fp16"),
        "not asked, and not confirmed": replace(none, confirmed=SAME),
        "of no candidates": replace(none, candidates=()),
    }  # fmt: skip


def placement_results() -> dict[str, PlacementResult]:
    decisions = (
        Decision("Conv, Relu", 3, ("conv1", "relu1"), Scheme.ALL, 0.6, FASTER),
        Decision("MatMul", 1, ("m",), Scheme.PRODUCTS, 0.3, SAME),
        Decision("Gemm", 2, ("g",), Scheme.FLOAT, 0.1, None, "no kernel"),
    )
    base = PlacementResult(
        "m.onnx", "ONNX Runtime 1.31", decisions, ("g",), confirmed=FASTER, accuracy="SNR 40 dB",
        tolerance="SNR of 10 dB", output="m.placement.onnx", trials=7, seconds=61.0, sets=2,
        everything=VAGUE, notes=("a note",),
    )  # fmt: skip
    return {
        "faster": base,
        "everywhere alike": replace(base, everything=SAME, accuracy="", decisions=decisions[:2]),
        "everywhere not": replace(base, everything=None, everything_problem="it overflows"),
        "vague, cut short": replace(base, confirmed=VAGUE, is_whole=False, everything=FASTER),
        "not confirmed": replace(base, confirmed=SAME, output=None),
        "none": replace(base, confirmed=None, output=None),
        "one was timed": replace(base, confirmed=None, decisions=decisions[1:2], trials=1),
        "nothing was timed": replace(base, confirmed=None, decisions=decisions[2:], sets=0),
        "nothing": replace(base, confirmed=None, decisions=(), everything=None),
    }


def gains() -> dict[str, tuple[Gain, float]]:
    base = Gain(10.0, 6.0, ROWS, 0.1)
    return {
        "at nodes": (base, -40.0),
        "with copies": (replace(base, handing_ms=-1.0), -40.0),
        "waiting": (replace(base, rows=(GainRow("a", 5.0, 1.0, -1.0, -3.0),)), -40.0),
        "roughly": (base, -10.0),
        "almost roughly": (base, -27.0),
        "short": (Gain(0.5, 0.3, (GainRow("a", 0.3, 0.1, -0.2, 0.0),), 0.0), -40.0),
        "copies alone": (Gain(10.0, 6.0, (GainRow("a", 1.0, 1.0, 0.0, 0.0),), -4.0), -40.0),
        "elsewhere": (Gain(10.0, 6.0, (GainRow("a", 1.0, 0.9, -0.1, 0.0),), 0.0), -40.0),
        "without rows": (replace(base, rows=()), -40.0),
        "no change": (base, 0.0),
        "no time": (replace(base, before_ms=0.0), -40.0),
        "more than all": (base, -20.1),
    }


def changes() -> str:
    made = [*CHANGES, *thread_changes(16, 8), shape_change({"N": 1, "S": 128}), batch_change(4)]
    lines = [f"{one}\n  {one.tolerance} {one.makes_model}" for one in made]
    lines += [f"{one.id}: {reasons_of([one.id])} {measured_gains([one.id])}" for one in made]
    lines += [getattr(measured_gains([one.id]), "text", "-") for one in made]
    base = Setup(Path("m.onnx"))
    setups = [base.with_change(one) for one in made[:6]]
    slower = [replace(base.with_change(made[6]), model=Path("c.onnx"))]
    for one in combinations([base], setups, slower):
        lines.append(f"{one.key} | {one.title} | {one.session} | {one.batch} | {one.criteria}")
    return "\n".join(lines)


CODE: dict[str, dict[str, JSON]] = {
    "cpu": {"provider": "CPU", "threads": 2, "inter_threads": 3, "optimization_level": "extended",
            "dim": ["N=1", "x:0=2"], "session_config": ["a.b=1", "c=d=e"]},
    "cuda": {"provider": "CUDA", "device_id": 1, "provider_option": ["prefer_nhwc=1"],
             "threads": 1, "io_binding": True},
    "tensorrt": {"provider": "tensorrt, CUDAExecutionProvider", "device_id": 0,
                 "provider_option": ["trt_fp16_enable=1", "cuda.prefer_nhwc=1", "a.b=c"]},
    "openvino": {"provider": "openvino", "provider_option": ["device_type=CPU"],
                 "optimization_level": "basic"},
    "plain": {},
    "memory": {"memory_pattern": False, "cpu_arena": False, "optimization_level": "all",
               "execution_mode": "parallel"},
}  # fmt: skip


def test_all_that_is_said(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = {"changes": changes()}
    for name, result in tune_results().items():
        document = json.dumps(tune_document(result), indent=1)
        parts = [
            result.headline, result.verdict, f"{result.is_faster} {result.winner}",
            *result_lines(result), repr(doubt_parts(result)),
            document if "only" in name or "rejected" in name else "",
        ]  # fmt: skip
        if name in ("faster", "nothing", "of no candidates"):
            parts += [table_text(table(result)) for table in (tune_table, tune_bars)]
        said[f"tuning: {name}"] = "\n".join(parts)
    for name, placed in placement_results().items():
        parts = [f"{placed.is_faster} {placed.quantized}", *placement_lines(placed)]
        said[f"placement: {name}"] = "\n".join([*parts, table_text(placement_table(placed))])
    for name, (gain, change) in gains().items():
        figures = (gain.whole_ms, gain.named_ms, gain.percent_of(change))
        differs = "" if not gain.before_ms else f" {gain.difference(FASTER):.6f}"
        said[f"gain: {name}"] = f"{gain_line(gain, change)}\n{figures}{differs}"
    for name, session in CODE.items():
        said[f"code: {name}"] = (
            python_code('m "1".onnx', session) + "\n" + cpp_code("m.onnx", session)
        )
    recorded("tune_texts", said)
