"""Profiles of ONNX Runtime as they are read, and what the names in them say."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import DldError, InputError
from dld_tui.core.report.formats import ort_profile
from dld_tui.core.report.formats.ort_profile import (
    OrtProfile,
    ProfilePass,
    blocked_tensors,
    clues,
    is_blocked,
    may_hold_others,
    split_inlined_branch,
    split_inlined_function,
    whole,
    without_cast,
)
from tests.support.profiles import Event, event, kernel, run, write_profile
from tests.support.recorded import Recorded, fields_of, settled


def read(path: Path) -> tuple[OrtProfile, list[ProfilePass]]:
    profile = OrtProfile(path)
    return profile, list(profile.passes())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "p.json"


ARGUMENTS: dict[str, dict[str, Any]] = {
    "1.0": {"provider": "CPUExecutionProvider", "op_name": "Conv"},
    "1.8": {
        "thread_scheduling_stats": "", "activation_size": "602112", "parameter_size": "3584",
        "graph_index": "463", "output_size": "1605632", "provider": "CPUExecutionProvider",
        "exec_plan_index": "463", "op_name": "Conv",
    },
    "1.12": {
        "thread_scheduling_stats": "",
        "input_type_shape": [{"float": [1, 3, 224, 224]}, {"float": [32, 3, 3, 3]}],
        "activation_size": "602112", "parameter_size": "3584", "graph_index": "463",
        "output_size": "1605632", "provider": "CPUExecutionProvider",
        "output_type_shape": [{"float": [1, 32, 112, 112]}], "exec_plan_index": "463",
        "op_name": "Conv",
    },
    "1.16": {
        "thread_scheduling_stats": {"main_thread": {"core": 1}, "sub_threads": {}},
        "input_type_shape": [{"float16": [1, 3, 224, 224]}, {"int64": []}],
        "output_type_shape": [{"float16": [1, 32]}], "output_size": "1605632",
        "parameter_size": "3584", "activation_size": "602112", "node_index": "463",
        "provider": "CUDAExecutionProvider", "op_name": "Conv",
    },
    "1.31": {
        "mem_in_use_peak": "4290864", "node_index": "463", "op_name": "Conv",
        "input_type_shape": [{"double": [2]}], "output_type_shape": [{"double": [2]}],
        "provider": "CPUExecutionProvider", "output_size": "16",
    },
}  # fmt: skip


def of_version(version: str) -> list[Event]:
    """Two runs of one node the way a version writes them."""
    events: list[Event] = [event("Session", "session_initialization", 0, 90, 1, {})]
    fences = version not in ("1.31",)
    for start in (100, 200):
        if fences:
            events.append(event("Node", "n0_fence_before", start + 1, 0, 1, {"op_name": "Conv"}))
        events.append(event("Node", "n0_kernel_time", start + 2, 40, 1, ARGUMENTS[version]))
        if fences:
            events.append(event("Node", "n0_fence_after", start + 43, 0, 1, {"op_name": "Conv"}))
        events.append(event("Session", "SequentialExecutor::Execute", start + 1, 48, 1, {}))
        events.append(run(start, 50))
    return events


RUNS = [run(100, 100)]
UNSOUND: list[Any] = [-5, "x", 1e30, None, True, [1]]
PROFILES: dict[str, list[Any]] = {
    **{f"version {version}": of_version(version) for version in ARGUMENTS},
    # The order of the file is that of the ends: children come before what holds them.
    "control flow in control flow": [
        kernel("first", "Equal", 105, 5, index=0), kernel("inner", "Identity", 135, 4, index=0),
        kernel("else", "If", 130, 12, index=4), kernel("body", "LSTM", 145, 30, index=5),
        kernel("outer", "If", 115, 70, index=1), kernel("last", "Relu", 190, 5, index=2), *RUNS,
    ],
    "iterations": [
        *(kernel("body", "Add", 110 + 10 * i, 5, index=0) for i in range(6)),
        kernel("loop", "Loop", 105, 80, index=1), *RUNS,
    ],
    "equal names": [
        kernel("Add", "Add", 101, 5, index=1), kernel("Add", "Add", 110, 5, index=2), run(100, 50),
    ],
    "threads": [
        kernel("a", "Conv", 110, 50, index=0, tid=2), kernel("b", "Conv", 112, 40, index=1, tid=3),
        run(100, 70, tid=1),
        kernel("a", "Conv", 210, 50, index=0, tid=3), kernel("b", "Conv", 212, 40, index=1, tid=2),
        run(200, 70, tid=1),
    ],
    # The first run cannot know yet that thread 2 is a run of its own.
    "runs that overlap": [
        kernel("a", "Conv", 105, 10, tid=1), kernel("a", "Conv", 106, 11, tid=2),
        run(100, 30, tid=1), kernel("b", "Relu", 140, 5, index=1, tid=2),
        kernel("c", "Relu", 150, 5, index=2, tid=1), run(101, 60, tid=2), run(145, 30, tid=1),
    ],
    "outside of runs": [
        kernel("a", "Conv", 50, 10), run(100, 30), kernel("a", "Conv", 140, 10),
        kernel("b", "Conv", 152, 10), run(150, 30), run(150, 30), run(160, 0),
    ],
    "twice": [kernel("a", "Conv", 105, 10), kernel("a", "Conv", 105, 10),
              kernel("z", "Conv", 120, 0), kernel("z", "Conv", 120, 0), run(100, 30)],
    "an open fence": [
        kernel("a", "Conv", 105, 10), event("Node", "b_fence_before", 120, 0, 1, {}), run(100, 30),
        event("Node", "a_fence_before", 130, 0, 1, {}), kernel("a", "Conv", 135, 4), run(131, 9),
    ],
    "after the last run": [*of_version("1.31"), kernel("n0", "Conv", 302, 8, index=463),
                           kernel("n1", "Conv", 301, 4, index=464)],
    "unsound times": [*(kernel("a", "Conv", 110, value) for value in UNSOUND),
                      kernel("a", "Conv", 112, 7), run(100, 50), run(200, -1), run(300, 5)],
    "wrong shapes": [
        {}, {"cat": "Node"}, {"cat": "Node", "name": 3}, {"cat": ["Node"], "name": "x_kernel_time"},
        {**kernel("a", "Conv", 110, 5), "args": "none", "tid": "9"}, run(100, 50),
        {**kernel("b", "Conv", 110, 5), "tid": None},
    ],
    "wrong arguments": [event("Node", "n0_kernel_time", 110, 5, 1, {
        "op_name": 5, "provider": [], "node_index": {}, "output_size": "many",
        "input_type_shape": [{"float": "big"}, 7, {}, {"int64": [1.5, "2", None]}],
        "output_type_shape": "none", "mem_in_use_peak": True,
    }), run(100, 50)],
    "memory": [
        *(kernel(name, "Conv", 110, 5, index=at, provider=provider, mem_bytes_requested_in_use=used,
                 mem_requested_in_use_delta=grown, mem_arena_held="7", activation_size="1",
                 parameter_size="2")
          for at, (name, provider, used, grown) in enumerate([
              ("a", "CPU", "100", "40"), ("b", "CPU", "150", None), ("c", "CUDA", "10", "-5"),
              ("d", "CPU", "30", "0"), ("e", "", None, "0"),
          ])),
        run(100, 50),
    ],
    "a session that never ran": [event("Session", "session_initialization", 0, 90, 1, {})],
}  # fmt: skip


def content(profile: OrtProfile, passes: list[ProfilePass]) -> str:
    lines = [profile.version, *profile.warnings]
    for kernel_ in profile.kernels:
        cost = fields_of(kernel_.cost)
        told = fields_of(kernel_).replace(str(kernel_.cost), cost)
        lines.append(f"{told} precision {kernel_.precision}")
    for one in passes:
        state = f"{one.start_us} for {one.duration_us}, {one.state}, {one.top_level} at the top"
        lines.append(f"pass {one.index}: {state}")
        lines += [f"  {tuple(entry)}" for entry in one.events]
    return settled("\n".join(lines))


def test_whole_profiles(path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {name: content(*read(write_profile(path, events))) for name, events in PROFILES.items()}
    path.write_bytes(write_profile(path, of_version("1.31")).read_bytes()[:-70])
    told["a killed process"] = content(*read(path))
    text = write_profile(path, of_version("1.0")).read_text()
    path.write_text(text.replace('"ts" :102', '"ts" :1 02').replace('"ts" :202', '"ts" 202'))
    told["damaged"] = content(*read(path))
    monkeypatch.setattr(ort_profile, "EVENT_LIMIT", 5)
    told["the limit of events"] = content(*read(write_profile(path, of_version("1.31"))))
    recorded("whole_ort_profiles", told)


NAMES = (
    ("/enc/Conv", "Conv"), ("/enc/Conv_token_12", "Conv"), ("x_token_1", "Relu"),
    ("r2_nchwc", "Conv"), ("r8_bn_nchwc", "Conv"), ("r10_mul_nchwc", "Conv"),
    ("r2_nchwc_token_3", "Conv"), ("/act/Mul/QuickGeluFusion/", "QuickGelu"),
    ("m/MatMulScaleFusion/_token_36", "FusedMatMul"), ("/fc/MatMul/MatMulAddFusion", "Gemm"),
    ("fused gemm1", "FusedGemm"), ("lstm_quant", "DynamicQuantizeLSTM"),
    ("InsertedPrecisionFreeCast_t:0", "Cast"), ("InsertedPrecisionFreeCast_t:0_nchwc", "Conv"),
    ("Conv_12", "Conv"), ("Conv_12", "FusedConv"), ("nchwc_a", "Conv"), ("", "Conv"),
    ("If_0_then_branch__Inline_0__/dec/x", "Relu"), ("/dec/x", "Relu"),
    ("_inlfunc_Norm_y", "Mul"), ("_inlfunc_Norm_2_token_7_k0", "Mul"), ("Norm_y", "Mul"),
)  # fmt: skip


def test_what_names_say(recorded: Recorded) -> None:
    told = {}
    for name, op_type in NAMES:
        lines = [f"{one.kind} {one.text}{' exact' * one.exact}" for one in clues(name, op_type)]
        if is_blocked(name):
            lines.append(f"blocked: {[*blocked_tensors(name)]}")
        lines.append(f"{without_cast(name)} {split_inlined_branch(name)}")
        lines.append(str([*split_inlined_function(name, ["Norm", "Norm_2"])]))
        told[f"{name} {op_type}"] = "\n".join(lines)
    recorded("whole_clues", told)


def test_numbers_in_strings() -> None:
    assert [whole(v) for v in ("12", 12, True, 1.5, "x", "9" * 21, None, "9" * 20)] == [
        12, 12, None, None, None, None, None, 10**20 - 1,
    ]  # fmt: skip
    holders = ("If", "Loop", "WhisperBeamSearch", "Conv", "Sampling")
    assert [*map(may_hold_others, holders)] == [True, True, True, False, True]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("", "File is empty"),
        ("[", "no readable event"),
        ("[]", "no readable event"),
        ("[ rubbish", "no readable event"),
        ('[{"name":"kernel","ts":1,"dur":1}]', "no event of ONNX Runtime"),
        ('{"Layers":[]}', "not a JSON array"),
        ('[{"cat":"Node","name":"a', "no readable event"),
    ],
)
def test_nothing_to_read_is_one_line_that_names_the_file(path: Path, data: str, says: str) -> None:
    path.write_text(data)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mutated_profiles_never_crash(path: Path) -> None:
    random.seed(5)
    whole = write_profile(path, of_version("1.16") + of_version("1.31")).read_bytes()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(random.randint(1, 6)):
            place = random.randrange(len(data))
            if random.random() < 0.5:
                data[place] = random.randrange(256)
            else:
                del data[place : place + random.randint(1, 40)]
        path.write_bytes(data)
        try:
            read(path)
        except DldError:
            pass


@pytest.mark.parametrize(
    ("name", "kernels", "passes"),
    [
        ("light_shufflenet.ort1.0.0", 154, 2),
        ("light_shufflenet.ort1.8.1", 174, 2),
        ("light_shufflenet.ort1.12.1", 174, 2),
        ("light_shufflenet.ort1.16.3", 174, 2),
        ("light_shufflenet.ort1.20.1", 174, 2),
        ("light_shufflenet.ort1.31.1", 174, 2),
        ("minilm_int8.ort1.31.1", 279, 3),
        ("silero_if.ort1.12.1", 58, 3),
        ("silero_if.ort1.31.1", 57, 3),
        ("resnet50_cuda_h200.ort1.31.1", 122, 8),
        ("edge/run_failed_midway.ort1.12.1", 37, 1),
        ("edge/run_failed_midway.ort1.31.1", 39, 1),
    ],
)
def test_real_profiles(real_files: Path, name: str, kernels: int, passes: int) -> None:
    profile, found = read(real_files / "ortprofile" / f"{name}.json")
    assert (len(profile.kernels), len(found)) == (kernels, passes)
    for item in found:
        assert 0 < sum(e.self_us for e in item.events) <= item.duration_us
    # Every event is in a pass: none is lost between runs.
    events = json.loads((real_files / "ortprofile" / f"{name}.json").read_text())
    written = sum(e["name"].endswith("_kernel_time") for e in events)
    assert sum(len(item.events) for item in found) == written


def test_real_broken_profiles(real_files: Path) -> None:
    for name in ("killed_no_closing_bracket.ort1.31.1", "session_failed_0bytes.ort1.8.1"):
        with pytest.raises(InputError, match="File is empty"):
            read(real_files / "ortprofile" / "edge" / f"{name}.json")
    warnings = {}
    for path in sorted((real_files / "bad" / "json").iterdir()):
        if path.name.startswith("ort_"):
            profile, _ = read(path)
            warnings[path.stem] = " ".join(profile.warnings)
        else:
            with pytest.raises(InputError):
                read(path)
    assert warnings["ort_bom_utf16"] == ""
    assert "ends early" not in warnings["ort_trailing_comma"]
    assert "ends early" in warnings["ort_truncated"]
