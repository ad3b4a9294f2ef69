"""What is read from trtexec's logs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import built_for
from dld_tui.core.tensorrt.plan.trtexec_log import read_log, version_text
from tests.support.plans import layer, plan, write_layers
from tests.support.recorded import Recorded, settled

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


def loaded(command: str, option: str, line: str) -> str:
    """Return a log; trtexec prints the defaults of the options of a build that it did not do."""
    return (
        f"&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec {command}\n"
        f"{STAMP} [I] === Model Options ===\n{STAMP} [I] Model: m.onnx\n"
        f"{STAMP} [I] === Build Options ===\n{STAMP} [I] Precision: FP32\n"
        f"{STAMP} [I] Load engine: {option}\n{STAMP} [I] \n{STAMP} [I] {line}\n{NAME_LAST}"
    )


def summary(*lines: str) -> str:
    told = "".join(f"{STAMP} [I] {line}\n" for line in lines)
    return f"{HEAD}{STAMP} [I] === Performance summary ===\n{told}{STAMP} [I]\n{END}"


VERBOSE = f"""{BEGIN}
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
TABLE = f"{STAMP} [V] [TRT] Engine Layer Information:\n"
LINE = "Layer(kgen): {}, Tactic: 0x0, x (Half[1,4]) -> y (Half[1,4])\n"
ONELINE = (
    f"{STAMP} [I] Layer Information:\n{STAMP} [I] Layers:\n"
    "Name: a, LayerType: kgen, Inputs: [], Outputs: [], StreamId: 0\n\nBindings:\nx\ny\n"
)
ROWS = "   conv    33.99    0.0852    1.1\n   pool   3082.96   7.7267   98.9\n"
PEAK = "[MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators"
MORE = f"""{STAMP} [I] [TRT] Loaded engine size: 12 MiB
{STAMP} [I] [TRT] Peak memory: 5 MiB
{STAMP} [I] [TRT] {PEAK}: CPU 12 MiB, GPU 3 MiB
{STAMP} [I] TensorRT version: 8502
{STAMP} [F] [TRT] a fault
{STAMP} [I] Note: a note
"""
LOGS = {
    "options, device and messages": HEAD + SUMMARY + END,
    "a version right behind the device": HEAD.replace(
        f"{STAMP} [I]\n{STAMP} [I] TensorRT", f"{STAMP} [I] TensorRT"),
    "twice": (HEAD + SUMMARY + END) * 2,
    "of two runs, the last is cut": HEAD + END + BEGIN.replace("m.onnx", "n.onnx") + "\n",
    "name last": HEAD + NAME_LAST + END, "name first": HEAD + NAME_FIRST + END,
    # Each table begins anew.
    "tables of layers": HEAD + TABLE + LINE.format("a") + TABLE + LINE.format("b") + END,
    "layers in lines": f"{HEAD}{ONELINE}{STAMP} [I] Starting inference\n{END}",
    "bindings and then another": HEAD + ONELINE + "\nz\n" + END,
    "tactics of a verbose build": VERBOSE,
    "a pasted table": f"{ROWS}   Total   3116.95   7.8119   100.0\n",
    # 0.0005 may be 0.00045 or 0.00055, so it may be of 1,800 to 2,250 passes.
    "vague": "   conv   1.00   0.0005   100.0\n   Total   1.00   0.0005   100.0\n",
    "a pasted table without a sum": ROWS,
    "a pasted table behind rows of another": (
        f"{ROWS}a text\n{ROWS}   Total   3116.95   7.8119   100.0\n"),
    "rows that are missing": f"{ROWS}   Total   4116.95   7.8119   100.0\n",
    "unsound figures": NAME_LAST.replace("101.96 ", "x.96 ").replace("31.40 ", "-31.40 "),
    "unsound figures, name first": NAME_FIRST.replace("286.4 ", "nan ").replace("1.1", ""),
    "no total": NAME_LAST[: NAME_LAST.index("     1529")],
    "figures": HEAD + MORE + SUMMARY + END,
    "no figures": HEAD.replace("8.5 sec", "soon") + END.replace("PASSED", "FAILED"),
    "a build": loaded("--onnx=m.onnx", "", "Engine built in 8 sec."),
    "a loaded engine": loaded("--loadEngine=m.trt --fp16", "", ""),
    "a loaded engine by its option": loaded("", "m.trt", ""),
    "a loaded engine by its line": loaded("", "", "Engine loaded in 0.1 sec."),
    "percentiles": summary(
        "Throughput: 10 qps", "Latency: min = 1 ms, max = 5 ms, mean = 2 ms, median = 2.5 ms,"
        " percentile(90%) = 3 ms, percentile(95%) = 4 ms, percentile(99%) = 5 ms",
        "GPU Compute Time: min = 1 ms, max = 5 ms, mean = 2 ms, median = 2.5 ms,"
        " percentile(90%) = 3 ms, percentile(95%) = 4 ms, percentile(99%) = 5 ms",
        "H2D Latency: min = 0.1 ms, max = 0.5 ms, mean = 0.2 ms", "Other: 5",
    ),
    "unsound summary": summary(
        "Throughput: many qps", "Latency: min = 5 ms, max = 1 ms, mean = 2 ms, median = 2.5 ms",
        "Enqueue Time: min = x ms, max = 1 ms, mean = 2 ms",
        "GPU Compute Time: min = 1 ms, max = 3 ms, max = 3 ms, mean = 9 ms, median = 2 ms",
        "D2H Latency: min = 1 ms, max = 3 ms, mean = 9 ms, median = 2 ms",
    ),
    "nothing": "a text\n",
}  # fmt: skip


def test_whole_logs(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for title, text in LOGS.items():
        path = tmp_path / "run.log"
        path.write_text(text)
        log = read_log(text)
        lines = [
            f"{field.name}: {value}"
            for field in dataclasses.fields(log) if (value := getattr(log, field.name))
        ]  # fmt: skip
        try:
            found = open_plan(path)
        except InputError as error:
            lines.append(str(error))
        else:
            lines += [*found.notes, f"{found.passes} {found.total_ms} {found.names_only}"]
            lines += [f"{found.model_path!r} {built_for(found)} {found.device} {found.timing}"]
            lines += [f"{one.name} {one.mode}" for one in found.bindings]
            lines += [f"{one.name} {one.type} {one.tactic!r} {one.tactic_value} {one.time_ms}"
                      f" {one.median_ms} {one.percent}" for one in found.layers]  # fmt: skip
        texts[title] = settled("\n".join(lines), tmp_path)
    recorded("whole_logs", texts)


def test_versions() -> None:
    said = ("v8003", "v8401", "v8502", "v101601", "v110100", "")
    told = [version_text(f"TensorRT {text}") for text in said]
    assert told == ["8.0.3", "8.4.1", "8.5.2", "10.16.1", "11.1.0", ""]


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


def test_a_log_of_a_container_is_read(tmp_path: Path) -> None:
    text = HEAD + SUMMARY + NAME_LAST + END
    lines = [f"2026-11-28T10:00:00.123Z {line}" for line in text.splitlines()]
    path = tmp_path / "docker.log"
    path.write_text("\n".join(lines))
    assert read_log(path.read_text()) == read_log(text)
    assert recognise(path) is FileKind.TRTEXEC_LOG


def test_options_that_the_layers_contradict_say_nothing() -> None:
    """As of a strongly typed network, whose types decide."""
    layers = [layer(0, type="CaskConvolution", precision="int8"), layer(1)]
    for allowed, told in (
        ("FP32+INT8", "FP32+INT8"),
        ("FP32", "unknown: the options say FP32, but it has 1 layer in int8"),
    ):
        made = plan(layers, metadata={"build_options": {"Precision": allowed}})
        assert built_for(made) == told
