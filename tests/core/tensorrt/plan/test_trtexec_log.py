"""What is read from trtexec's logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import built_for
from dld_tui.core.tensorrt.plan.trtexec_log import read_log, version_text
from tests.support.known import known
from tests.support.plans import layer, plan, write_layers

STAMP = "[08/17/2022-07:51:05]"
BEGIN = "&&&& RUNNING TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=m.onnx --fp16"
HEAD = f"""{BEGIN}
{STAMP} [I] === Model Options ===
{STAMP} [I] Format: ONNX
{STAMP} [I] Model: dir/m:1.onnx
{STAMP} [I]
{STAMP} [I] === Device Information ===
{STAMP} [I] Available Devices:
{STAMP} [I] Selected Device: NVIDIA H100 PCIe
{STAMP} [I] Compute Capability: 9.0
{STAMP} [I] Memory Bus Width: 5120 bits (ECC enabled)
{STAMP} [I]
{STAMP} [I] TensorRT version: 10.16.1
{STAMP} [W] [TRT] a warning
{STAMP} [W] [TRT]   a warning
{STAMP} [E] [TRT] an error
{STAMP} [I] Engine built in 8.5 sec.
"""
SUMMARY = f"""{STAMP} [I] === Performance summary ===
{STAMP} [I] Throughput: 15374.3 qps
{STAMP} [I] Latency: min = 1 ms, max = 5 ms, mean = 2 ms, median = 2.5 ms, percentile(95%) = 4 ms
{STAMP} [W] * GPU compute time is unstable, with coefficient of variance = 6.5%.
{STAMP} [I]
"""
NAME_LAST = f"""{STAMP} [I] === Profile (18362 iterations ) ===
{STAMP} [I]    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer
{STAMP} [I]       31.40       0.0017       0.0018       2.1   __mye59_0_myl0_0
{STAMP} [I]      101.96       0.0056       0.0044       6.7   Reformatting CopyNode to {{F[a...b]}}
{STAMP} [I]     1529.13       0.0833       0.0804     100.0   Total
{STAMP} [I]
"""
NAME_FIRST = f"""{STAMP} [I] === Profile (14320 iterations ) ===
{STAMP} [I]             Layer   Time (ms)   Avg. Time (ms)   Time %
{STAMP} [I]  conv1 + relu1 3       286.4             0.02      1.1
{STAMP} [I]             Total       300.0             0.03    100.0
"""
END = "&&&& PASSED TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=m.onnx --fp16\n"


def test_options_device_and_messages() -> None:
    log = read_log(HEAD + SUMMARY + END)
    assert (log.version, log.status) == ("10.16.1", "PASSED")
    assert log.command == "trtexec --onnx=m.onnx --fp16"
    assert log.sections["model_options"] == {"Format": "ONNX", "Model": "dir/m:1.onnx"}
    device = log.sections["device_information"]
    assert device["Selected Device"] == "NVIDIA H100 PCIe"
    assert (device["Compute Capability"], device["Memory Bus Width"]) == (9.0, 5120.0)
    assert log.errors == ["an error"]
    assert log.warnings[0] == "a warning"
    assert log.warnings[1].startswith("GPU compute time is unstable")
    assert log.figures["build time"] == "8.5 sec"
    again = read_log((HEAD + SUMMARY + END) * 2)
    assert (again.errors, again.warnings) == (log.errors, log.warnings), "of the last run"


def test_performance_by_the_percentiles_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(HEAD + SUMMARY + END)
    timing = known(open_plan(path).timing)
    assert timing.latency is not None
    assert (timing.latency.p95, timing.latency.p99, timing.latency.median) == (4, None, 2.5)
    assert (timing.throughput, timing.source) == (15374.3, "log")


def test_layer_times_of_old_and_new_logs(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(HEAD + NAME_LAST + END)
    plan = open_plan(path)
    assert [(layer.name, layer.time_ms, layer.median_ms) for layer in plan.layers] == [
        ("__mye59_0_myl0_0", 0.0017, 0.0018),
        ("Reformatting CopyNode to {F[a...b]}", 0.0056, 0.0044),
    ]
    assert (plan.passes, plan.names_only) == (18362, True)
    path.write_text(HEAD + NAME_FIRST + END)
    [layer] = open_plan(path).layers
    assert (layer.name, layer.time_ms, layer.median_ms) == ("conv1 + relu1 3", 0.02, None)


def test_layer_tables(tmp_path: Path) -> None:
    verbose = "Layer(kgen): {}, Tactic: 0x0, x (Half[1,4]) -> y (Half[1,4])\n"
    title = f"{STAMP} [V] [TRT] Engine Layer Information:\n"
    path = tmp_path / "run.log"
    path.write_text(HEAD + title + verbose.format("a") + title + verbose.format("b") + END)
    # Each table begins anew.
    assert [layer.name for layer in open_plan(path).layers] == ["b"]
    oneline = "Name: a, LayerType: kgen, Inputs: [], Outputs: [], StreamId: 0"
    table = f"{STAMP} [I] Layer Information:\n{STAMP} [I] Layers:\n{oneline}\n\nBindings:\nx\ny\n"
    path.write_text(HEAD + table + f"{STAMP} [I] Starting inference\n" + END)
    plan = open_plan(path)
    assert [layer.type for layer in plan.layers] == ["kgen"]
    assert [tensor.name for tensor in plan.bindings] == ["x", "y"]


def test_a_log_of_several_runs_and_one_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(HEAD + END + BEGIN.replace("m.onnx", "n.onnx") + "\n")
    plan = open_plan(path)
    assert plan.log is not None
    assert "n.onnx" in plan.log.command
    assert "the log is of 2 runs: the last is shown" in plan.notes
    assert "the log ends before the run does" in plan.notes


@pytest.mark.parametrize(
    ("text", "version"),
    [("v8003", "8.0.3"), ("v8401", "8.4.1"), ("v8502", "8.5.2"), ("v101601", "10.16.1"), ("", "")],
)
def test_versions(text: str, version: str) -> None:
    assert version_text(f"TensorRT {text}") == version


def test_real_logs(real_files: Path) -> None:
    logs = [
        path
        for pattern in ("cookbook/trtexec-*-*.log", "cookbook/trtexec-8*.txt")
        for path in (real_files / "engines").glob(pattern)
    ]
    assert len(logs) == 13
    for path in logs:
        plan = open_plan(path)
        assert plan.log is not None
        version = path.name.split("-")[1]
        assert plan.log.version == version
        assert plan.log.command.startswith("trtexec --")
        assert plan.log.status == ("FAILED" if "8.2.3" in path.name else "PASSED")
        assert plan.device.get("Selected Device")
        inferred = "Performance summary" in path.read_text()
        assert (plan.timing is not None) == inferred
    layers = open_plan(real_files / "engines/cookbook/trtexec-10.16.1-result-04.log").layers
    same = open_plan(real_files / "engines/cookbook/trt10.16.1-exportLayerInfo-detailed.json")
    assert [layer.name for layer in layers][:4] == [layer.name for layer in same.layers][:4]
    assert layers[0].inputs == same.layers[0].inputs
    assert layers[0].weights_bytes == same.layers[0].weights_bytes


def test_names_of_tactics_are_told_by_a_verbose_build(tmp_path: Path) -> None:
    verbose = f"""{BEGIN}
{STAMP} [V] [TRT] conv + relu Set Tactic Name: sm80_old Tactic: 0x00000000000003e8
{STAMP} [V] [TRT] other (scudnn) Set Tactic Name: maxwell_scudnn Tactic: -1
{STAMP} [V] [TRT] Tactic Name: sm80_xmma_a Tactic: 0x967f94e9db2001a8 Time: 0.006
{STAMP} [V] [TRT] Tactic Name: sm80_xmma_b Tactic: 0x1111111111111111 Time: 0.006
{STAMP} [V] [TRT] Tactic Name: sm80_xmma_c Tactic: 0x1111111111111111 Time: 0.006
{STAMP} [V] [TRT] Engine Layer Information:
Layer(CaskConvolution): conv + relu, Tactic: 0x00000000000003e8, x[Float(1,3)] -> t[Half(1,8)]
Layer(CaskConvolution): other, Tactic: 18446744073709551615, t[Float(1,3)] -> u[Half(1,8)]
Layer(CaskConvolution): third, Tactic: 0x967f94e9db2001a8, u[Float(1,3)] -> v[Half(1,8)]
Layer(CaskConvolution): fourth, Tactic: 0x1111111111111111, v[Float(1,3)] -> w[Half(1,8)]
Layer(CaskConvolution): fifth, Tactic: 0x00000000000003e8, w[Float(1,3)] -> y[Half(1,8)]
{STAMP} [I] Input binding for x with dimensions 1x3x8x8 is created.
{STAMP} [I] Output binding for y with dimensions 1x8x8x8 and type fp32 is created.
"""
    path = tmp_path / "verbose.log"
    path.write_text(verbose)
    plan = open_plan(path)
    assert [layer.tactic for layer in plan.layers] == [
        "sm80_old",
        "maxwell_scudnn",
        "sm80_xmma_a",
        "",  # two kernels go by this value
        "",  # a small value counts the tactics of another layer only
    ]
    assert plan.log is not None
    assert plan.log.modes == {"x": "input", "y": "output"}


def test_a_log_beside_names_the_tactics(tmp_path: Path) -> None:
    write_layers(
        tmp_path / "net.graph.json",
        [{"Name": "conv", "TacticValue": "0x967f94e9db2001a8"}, {"Name": "b", "TacticName": "own"}],
    )
    (tmp_path / "net.build.log").write_text(
        f"{BEGIN}\n{STAMP} [V] [TRT] Tactic Name: sm80_a Tactic: 0x967f94e9db2001a8 Time: 1\n"
    )
    found = open_plan(tmp_path / "net.graph.json")
    assert [layer.tactic for layer in found.layers] == ["sm80_a", "own"]


@pytest.mark.parametrize("table", [NAME_LAST, NAME_FIRST], ids=["name last", "name first"])
@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("titled", [True, False])
def test_a_table_without_its_heading_is_that_table(
    tmp_path: Path, table: str, stamped: bool, titled: bool
) -> None:
    """As people paste it: without the line of the section, the titles, or the time in front."""
    lines = [line for line in table.splitlines() if "===" not in line]
    lines = lines if titled else lines[1:]
    if not stamped:
        lines = [line.partition("[I]")[2] for line in lines]
    path = tmp_path / "pasted.log"
    path.write_text("\n".join(lines) + "\n")
    expected = read_log(table).profile
    rows = read_log(path.read_text()).profile
    assert rows[-len(expected) + 1 :] == expected[1:]
    assert recognise(path) is FileKind.TRTEXEC_LOG


def test_a_pasted_table_opens_as_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "pasted.txt"
    rows = "  conv  33.99  0.0852  1.1\n  a b  3082.96  7.7267  98.9\n"
    path.write_text(f"{rows}  Total  3116.95  7.8119  100.0\n")
    plan = open_plan(path)
    assert [(layer.name, layer.time_ms) for layer in plan.layers] == [
        ("conv", 0.0852),
        ("a b", 7.7267),
    ]


def test_the_passes_of_a_table_without_heading_follow_from_its_sums() -> None:
    rows = "   conv    33.99    0.0852    1.1\n   pool   3082.96   7.7267   98.9\n"
    total = "   Total   3116.95   7.8119   100.0\n"
    assert read_log(rows + total).profile[0] == {"count": 399}
    # 0.0005 may be 0.00045 or 0.00055, so it may be of 1,800 to 2,250 passes.
    vague = read_log("   conv   1.00   0.0005   100.0\n   Total   1.00   0.0005   100.0\n")
    assert [isinstance(row, dict) and row["name"] for row in vague.profile] == ["conv"]


def test_a_log_of_a_container_is_read(tmp_path: Path) -> None:
    text = HEAD + SUMMARY + NAME_LAST + END
    lines = [f"2026-11-28T10:00:00.123Z {line}" for line in text.splitlines()]
    path = tmp_path / "docker.log"
    path.write_text("\n".join(lines))
    assert read_log(path.read_text()) == read_log(text)
    assert recognise(path) is FileKind.TRTEXEC_LOG


@pytest.mark.parametrize(
    ("command", "option", "line", "expected"),
    [
        ("--onnx=m.onnx", "", "Engine built in 8 sec.", "FP32"),
        ("--loadEngine=m.trt --fp16", "", "", "unknown: the log is of an engine that was loaded"),
        ("", "m.trt", "", "unknown: the log is of an engine that was loaded"),
        ("", "", "Engine loaded in 0.1 sec.", "unknown: the log is of an engine that was loaded"),
    ],
)
def test_a_log_of_a_loaded_engine_does_not_know_its_build(
    tmp_path: Path, command: str, option: str, line: str, expected: str
) -> None:
    """trtexec prints the defaults of the options of a build that it did not do."""
    path = tmp_path / "run.log"
    path.write_text(
        f"&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec {command}\n"
        f"{STAMP} [I] === Model Options ===\n{STAMP} [I] Model: m.onnx\n"
        f"{STAMP} [I] === Build Options ===\n{STAMP} [I] Precision: FP32\n"
        f"{STAMP} [I] Load engine: {option}\n{STAMP} [I] \n{STAMP} [I] {line}\n{NAME_LAST}"
    )
    engine = open_plan(path)
    assert built_for(engine) == expected
    known = expected == "FP32"
    assert (engine.model_path != "", "build_options" in engine.metadata) == (known, known)


def test_options_that_the_layers_contradict_say_nothing() -> None:
    """As of a strongly typed network, whose types decide."""
    layers = [layer(0, type="CaskConvolution", precision="int8"), layer(1)]
    for allowed, told in (
        ("FP32+INT8", "FP32+INT8"),
        ("FP32", "unknown: the options say FP32, but it has 1 layer in int8"),
    ):
        made = plan(layers, metadata={"build_options": {"Precision": allowed}})
        assert built_for(made) == told
