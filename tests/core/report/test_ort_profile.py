from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import DldError, InputError
from dld_tui.core.report.formats import ort_profile
from dld_tui.core.report.formats.ort_profile import (
    Clue,
    OrtProfile,
    ProfilePass,
    blocked_tensors,
    clues,
    is_blocked,
    kernel_from,
    may_hold_others,
    split_inlined_branch,
    split_inlined_function,
    whole,
    without_cast,
)
from dld_tui.core.report.records import NOTHING_KNOWN
from tests.support.profiles import Event, event, kernel, run, write_profile


def read(path: Path) -> tuple[OrtProfile, list[ProfilePass]]:
    profile = OrtProfile(path)
    return profile, list(profile.passes())


def self_times(profile: OrtProfile, found: ProfilePass) -> dict[str, float]:
    return {profile.kernels[e.kernel].name: e.self_us for e in found.events}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "p.json"


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


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("1.0", "1.0 to 1.7"),
        ("1.8", "1.8 to 1.11"),
        ("1.12", "1.12 to 1.15"),
        ("1.16", "1.16 to 1.21"),
        ("1.31", "1.22 or later"),
    ],
)
def test_every_version(path: Path, version: str, says: str) -> None:
    profile, passes = read(write_profile(path, of_version(version)))
    assert profile.version == says
    assert [(p.start_us, p.duration_us, p.state) for p in passes] == [
        (100, 50, "measured"), (200, 50, "measured"),
    ]  # fmt: skip
    assert [[e.self_us for e in p.events] for p in passes] == [[40], [40]]
    assert len(profile.kernels) == 1
    assert profile.warnings == []


def test_self_time_of_nested_control_flow(path: Path) -> None:
    """The order of the file is that of the ends: children come before what holds them."""
    events = [
        kernel("first", "Equal", 105, 5, index=0),
        kernel("inner", "Identity", 135, 4, index=0),
        kernel("else", "If", 130, 12, index=4),
        kernel("body", "LSTM", 145, 30, index=5),
        kernel("outer", "If", 115, 70, index=1),
        kernel("last", "Relu", 190, 5, index=2),
        run(100, 100),
    ]
    profile, (found,) = read(write_profile(path, events))
    assert self_times(profile, found) == {
        "first": 5, "inner": 4, "else": 8, "body": 30, "outer": 70 - 12 - 30, "last": 5,
    }  # fmt: skip
    assert sum(e.self_us for e in found.events) <= found.duration_us
    assert found.top_level == 3
    order = [profile.kernels[e.kernel].name for e in found.events]
    assert order == ["first", "outer", "else", "inner", "body", "last"]


def test_loop_iterations_are_runs_of_one_kernel(path: Path) -> None:
    events = [kernel("body", "Add", 110 + 10 * i, 5, index=0) for i in range(6)]
    events += [kernel("loop", "Loop", 105, 80, index=1), run(100, 100)]
    profile, (found,) = read(write_profile(path, events))
    assert len(profile.kernels) == 2
    body = [e for e in found.events if profile.kernels[e.kernel].name == "body"]
    assert len(body) == 6
    assert self_times(profile, found)["loop"] == 50


def test_equal_names_with_other_indices_are_other_kernels(path: Path) -> None:
    events = [
        kernel("Add", "Add", 101, 5, index=1), kernel("Add", "Add", 110, 5, index=2), run(100, 50),
    ]  # fmt: skip
    profile, _ = read(write_profile(path, events))
    assert [k.node_index for k in profile.kernels] == [1, 2]


def test_threads_of_a_parallel_executor(path: Path) -> None:
    events = [
        kernel("a", "Conv", 110, 50, index=0, tid=2),
        kernel("b", "Conv", 112, 40, index=1, tid=3),
        run(100, 70, tid=1),
        kernel("a", "Conv", 210, 50, index=0, tid=3),
        kernel("b", "Conv", 212, 40, index=1, tid=2),
        run(200, 70, tid=1),
    ]
    profile, passes = read(write_profile(path, events))
    assert [[e.thread for e in p.events] for p in passes] == [[2, 3], [3, 2]]
    assert self_times(profile, passes[0]) == {"a": 50, "b": 40}


def test_overlapping_runs_keep_their_own_threads_kernels(path: Path) -> None:
    events = [
        kernel("a", "Conv", 105, 10, tid=1),
        kernel("a", "Conv", 106, 11, tid=2),
        run(100, 30, tid=1),
        kernel("b", "Relu", 140, 5, index=1, tid=2),
        run(101, 60, tid=2),
    ]
    profile, passes = read(write_profile(path, events))
    # The first run cannot know yet that thread 2 is a run of its own.
    assert sum(len(p.events) for p in passes) == 3
    assert any("overlapped" in warning for warning in profile.warnings)


def test_open_fence_marks_a_failed_run(path: Path) -> None:
    events = [
        kernel("a", "Conv", 105, 10),
        event("Node", "b_fence_before", 120, 0, 1, {"op_name": "LSTM"}),
        run(100, 30),
    ]
    _, (found,) = read(write_profile(path, events))
    assert found.state == "incomplete"


def test_kernels_after_the_last_run_are_an_incomplete_pass(path: Path) -> None:
    events = [*of_version("1.31"), kernel("n0", "Conv", 302, 8, index=463)]
    profile, passes = read(write_profile(path, events))
    assert [p.state for p in passes] == ["measured", "measured", "incomplete"]
    assert (passes[2].start_us, passes[2].duration_us) == (302, 8)
    assert len(profile.kernels) == 1


def test_killed_process_leaves_what_was_written(path: Path) -> None:
    write_profile(path, of_version("1.31"))
    path.write_bytes(path.read_bytes()[:-70])
    profile, passes = read(path)
    assert passes[0].state == "measured"
    assert any("ends early" in warning for warning in profile.warnings)


def test_unsound_times_are_counted_and_left_out(path: Path) -> None:
    bad: list[Any] = [-5, "x", 1e30, None, True, [1]]
    events = [kernel("a", "Conv", 110, value) for value in bad]
    events += [kernel("a", "Conv", 112, 7), run(100, 50)]
    profile, (found,) = read(write_profile(path, events))
    assert [e.duration_us for e in found.events] == [7]
    assert profile.warnings == ["6 events could not be read"]


def test_events_of_wrong_shape(path: Path) -> None:
    events: list[Any] = [
        {}, {"cat": "Node"}, {"cat": "Node", "name": 3}, {"cat": ["Node"], "name": "x_kernel_time"},
        {**kernel("a", "Conv", 110, 5), "args": "none"}, run(100, 50),
    ]  # fmt: skip
    profile, (found,) = read(write_profile(path, events))
    assert [profile.kernels[e.kernel].op_type for e in found.events] == ["a"]


def test_the_event_limit_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ort_profile, "EVENT_LIMIT", 5)
    profile, _ = read(write_profile(path, of_version("1.31")))
    assert any("stops recording" in warning for warning in profile.warnings)


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


def test_a_session_that_never_ran_says_so(path: Path) -> None:
    events = [event("Session", "session_initialization", 0, 90, 1, {})]
    profile, passes = read(write_profile(path, events))
    assert passes == []
    assert profile.warnings == [
        "the profile has no kernels: the session failed, or never ran the model"
    ]


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


@pytest.mark.parametrize(
    ("version", "precision", "index", "output_bytes"),
    [
        ("1.0", None, None, None),
        ("1.8", None, 463, 1605632),
        ("1.12", "float32", 463, 1605632),
        ("1.16", "float16", 463, 1605632),
        ("1.31", "float64", 463, 16),
    ],
)
def test_each_versions_arguments(
    version: str, precision: str | None, index: int | None, output_bytes: int | None
) -> None:
    kernel = kernel_from("n0", ARGUMENTS[version])
    assert (kernel.name, kernel.op_type) == ("n0", "Conv")
    assert (kernel.precision, kernel.node_index) == (precision, index)
    assert kernel.cost.output_bytes == output_bytes


def test_shapes_and_provider() -> None:
    kernel = kernel_from("n0", ARGUMENTS["1.16"])
    assert kernel.input_dims == ((1, 3, 224, 224), ())
    assert kernel.input_types == ("float16", "int64")
    assert kernel.provider == "CUDAExecutionProvider"


def test_wrong_types_are_left_out() -> None:
    kernel = kernel_from(
        "n0",
        {
            "op_name": 5, "provider": [], "node_index": {}, "output_size": "many",
            "input_type_shape": [{"float": "big"}, 7, {}, {"int64": [1.5, "2", None]}],
            "output_type_shape": "none",
        },
    )  # fmt: skip
    assert (kernel.op_type, kernel.provider, kernel.node_index) == ("n0", None, None)
    assert kernel.input_dims == (None, (None, 2, None))
    assert kernel.cost == NOTHING_KNOWN


def test_numbers_in_strings() -> None:
    assert [whole(v) for v in ("12", 12, True, 1.5, "x", "9" * 21, None, "9" * 20)] == [
        12, 12, None, None, None, None, None, 10**20 - 1,
    ]  # fmt: skip


def test_operators_that_run_others() -> None:
    assert may_hold_others("Loop")
    assert may_hold_others("WhisperBeamSearch")
    assert not may_hold_others("Conv")


@pytest.mark.parametrize(
    ("name", "op_type", "clue"),
    [
        ("/enc/Conv", "Conv", Clue("node", "/enc/Conv", exact=True)),
        ("/enc/Conv_token_12", "Conv", Clue("node", "/enc/Conv")),
        ("r2_nchwc", "Conv", Clue("tensor", "r2")),
        ("r8_bn_nchwc", "Conv", Clue("tensor", "r8")),
        ("r10_mul_nchwc", "Conv", Clue("tensor", "r10")),
        ("r2_nchwc_token_3", "Conv", Clue("tensor", "r2")),
        ("/act/Mul/QuickGeluFusion/", "QuickGelu", Clue("node", "/act/Mul")),
        ("m/MatMulScaleFusion/_token_36", "FusedMatMul", Clue("node", "m")),
        ("/fc/MatMul/MatMulAddFusion", "Gemm", Clue("node", "/fc/MatMul")),
        ("fused gemm1", "FusedGemm", Clue("node", "gemm1")),
        ("lstm_quant", "DynamicQuantizeLSTM", Clue("node", "lstm")),
        ("InsertedPrecisionFreeCast_t:0", "Cast", Clue("tensor", "t:0")),
        ("InsertedPrecisionFreeCast_t:0_nchwc", "Conv", Clue("tensor", "t:0")),
        ("Conv_12", "Conv", Clue("index", "12")),
    ],
)
def test_rules(name: str, op_type: str, clue: Clue) -> None:
    assert clue in list(clues(name, op_type))


def test_what_a_name_is_not() -> None:
    assert next(clues("x_token_1", "Relu")) == Clue("node", "x_token_1", exact=True)
    assert all(clue.kind != "index" for clue in clues("Conv_12", "FusedConv"))
    assert is_blocked("a_nchwc_token_4")
    assert not is_blocked("nchwc_a")
    assert list(blocked_tensors("a_bn_nchwc"))[:2] == ["a_bn", "a"]
    assert without_cast("InsertedPrecisionFreeCast_a") == without_cast("a") == "a"


def test_names_of_what_was_inlined() -> None:
    branch = ("If_0", "then_branch", "/dec/x")
    assert split_inlined_branch("If_0_then_branch__Inline_0__/dec/x") == branch
    assert split_inlined_branch("/dec/x") is None
    names = ["Norm", "Norm_2"]
    assert list(split_inlined_function("_inlfunc_Norm_y", names)) == [("Norm", "y")]
    found = list(split_inlined_function("_inlfunc_Norm_2_token_7_k0", names))
    assert found[0] == ("Norm_2", "k0")
    assert list(split_inlined_function("y", names)) == []
