from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from xml.etree import ElementTree

import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.params import rerun_command, settings_of
from dld_tui.core.reading.card import card_lines, card_svg, write_card
from dld_tui.core.reading.first_lines import headline, title
from dld_tui.core.reading.story import NextStep, advice_json, next_steps, request_of, step_command
from dld_tui.core.report.records import Cost, GpuEvent, Layer, PassState
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.text import clip
from dld_tui.core.tune.changes import MEASURED, Gains
from dld_tui.core.types import JSON
from tests.support.gpu_reports import CUDA, gpu_writer
from tests.support.recorded import Recorded, settled
from tests.support.report_files import HOSTILE, layer, writer

CPU = "CPUExecutionProvider"

PRODUCTS = {"Conv": "Gemm"}
MILLISECONDS = (6.0, 1.0, 1.0, 1.0, 1.0)
"""Of a Conv, a Relu, a MatMul, an Add and a Softmax."""


def report_of(
    path: Path,
    latencies: Sequence[float] = (4.0, 4.0),
    network: str = "tiny.onnx",
    types: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    made = writer(path, network)
    made.add_latencies(latencies)
    for index in range(len(MILLISECONDS)):
        one = layer(index)
        made.add_layer(replace(one, type=types.get(one.type, one.type)))
    for number in range(3):
        at = start = number * 1e6
        rows: list[tuple[int, float, float, float, int | str]] = []
        for index, length in enumerate(MILLISECONDS):
            rows.append((index, at, 1000 * length, 1000 * length, 1))
            at += 1000 * length
        made.add_pass(number, start, at - start)
        made.add_samples(number, rows)
    return Report.open(made.finish())


TYPES: dict[str, dict[str, str]] = {
    "as they are": {}, "products": PRODUCTS, "packed": {"Conv": "MatMulNBits"},
    "moved": {"Relu": "Transpose", "Add": "Cast", "Conv": "Pool", "MatMul": "Pool"},
    "moved, little": {"Relu": "Transpose", "MatMul": "Pool"},
    "attention and GELU": {"Conv": "MatMul", "Relu": "Softmax", "Add": "Erf"},
    "attention": {"Conv": "MatMul", "Relu": "Softmax", "Softmax": "Tanh"},
    "one product": {"Conv": "Pool", "Relu": "Softmax", "Softmax": "Tanh"},
    "another product": {"Conv": "MatMul", "MatMul": "Pool", "Relu": "Softmax", "Softmax": "Tanh"},
    "GELU": {"Conv": "Pool", "Relu": "Div", "MatMul": "Erf", "Add": "Mul", "Softmax": "Tanh"},
    "norm": {"Conv": "ReduceMean", "Relu": "Sub", "MatMul": "Pow", "Add": "Sqrt", "Softmax": "Div"},
    "RMS norm": {"Conv": "Pow", "Relu": "ReduceMean", "MatMul": "Sqrt", "Softmax": "Mul"},
    "SiLU": {"Conv": "Sigmoid", "Relu": "Mul"}, "quantized": {"Conv": "QLinearConv"},
    "Q and DQ": {"Conv": "QuantizeLinear", "Relu": "DequantizeLinear"},
    "control flow": {"Conv": "Loop"}, "gathers": {"Conv": "Gather", "Relu": "Concat"},
}  # fmt: skip


def test_whole_steps(tmp_path: Path, recorded: Recorded) -> None:
    """What is advised for layers of these types, with its command and gain."""
    texts = {}
    for name, types in TYPES.items():
        with report_of(tmp_path / f"{name}.dldprof", types=types) as report:
            steps = next_steps(report)
            lines = [f"{step.line} {step.layers} {step.changes} {step.rules} {step.most}"
                     for step in steps]  # fmt: skip
            lines += [step_command(report, step) for step in steps]
            lines += [str(told) for told in advice_json(report)]
            lines += [str(request_of(report, step, Path("m.onnx"))) for step in steps]
        texts[name] = settled("\n".join(lines), tmp_path)
    recorded("whole_steps", texts)


def test_what_was_measured_is_what_the_documentation_says() -> None:
    text = (Path(__file__).parents[3] / "docs/guides/tune.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\d+) \| ([\d.]+) to ([\d.]+) \|", text, re.MULTILINE)
    told = {name: Gains(int(count), float(low), float(high)) for name, count, low, high in rows}
    assert told == MEASURED


def waiting(path: Path, provider: str = "CUDA", cost: Cost | None = None) -> Path:
    """Write a report of a GPU that works 0.3 of 1 ms, a third of that in a Conv."""
    with gpu_writer(path, provider) as made:
        made.set_property("roofs", {CUDA: Peaks("gpu", {"tf32": 5e14, "fp16": 1e15}, 1e12)})
        made.add_latencies([1.0] * 80 + [1.5] * 20)
        for name, kind in (("c", "Conv"), ("r", "Relu")):
            own = cost if kind == "Conv" else None
            made.add_layer(Layer(name, kind, provider=CUDA, precision="float32", cost=own))
        kernels = [
            GpuEvent("s", "kernel", "k", start, took, layer)
            for start, took, layer in ((10.0, 100.0, 0), (300.0, 200.0, 1))
        ]
        made.add_pass(0, 0.0, 5000.0)
        made.add_samples(0, [(0, 0.0, 900.0, 900.0, 1), (1, 900.0, 900.0, 900.0, 1)])
        made.add_gpu_events(0, kernels)
        made.add_pass(1, 10_000.0, 1000.0, PassState.KERNELS_ALONE)
        made.add_gpu_events(1, kernels)
    return path


def test_what_a_provider_has_not_is_not_advised(tmp_path: Path) -> None:
    with open_report(waiting(tmp_path / "g.dldprof", "Tensorrt")) as report:
        assert [step.text for step in next_steps(report)] == ["Measure again"]


@pytest.mark.parametrize(("bound", "roof_ms"), [("compute", 0.004), ("memory", 0.09)])
def test_fp16_gains_what_the_peaks_allow(
    tmp_path: Path, bound: Literal["compute", "memory"], roof_ms: float
) -> None:
    """A kernel far below its roof is no nearer to that of fp16: it takes half the time at least."""
    cost = Cost(10**9, 10**6, roof_ms=roof_ms, bound=bound, peak="tf32")
    with open_report(waiting(tmp_path / "g.dldprof", cost=cost)) as report:
        _, _, fp16 = next_steps(report)
    assert fp16.most == pytest.approx(1.5 / (0.3 - 0.1 / 2))


def test_int8_gains_what_the_peaks_of_the_machine_allow(tmp_path: Path) -> None:
    made = writer(tmp_path / "r.dldprof")
    made.set_property("roofs", {CPU: Peaks("cpu", {"fp32": 1e9, "int8": 2e9}, 1e9)})
    cost = Cost(10**6, 1, parameter_bytes=9, roof_ms=1.0, bound="compute", peak="fp32")
    for kind, about in (("MatMul", cost), ("Relu", None)):
        made.add_layer(Layer(kind, kind, provider=CPU, precision="float32", cost=about))
    made.add_pass(0, 0.0, 2000.0)
    made.add_samples(0, [(0, 0.0, 1000.0, 1000.0, 1), (1, 1000.0, 1000.0, 1000.0, 1)])
    made.finish()
    with open_report(tmp_path / "r.dldprof") as report:
        [int8] = next_steps(report)
    # The product is at its roof, and half as long at that of int8: 1.5 of 2 ms are left.
    assert int8.most == pytest.approx(2 / 1.5)


def unsteady(path: Path, command: JSON) -> Report:
    made = writer(path)
    made.add_latencies([1.0, 5.0] * 10)
    made.set_property("command", command)
    made.finish()
    return open_report(path)


def advised(path: Path, command: JSON) -> str:
    [told] = advice_json(unsteady(path, command))
    assert isinstance(told, dict)
    return str(told["command"])


PROFILE = ["dld", "profile", "onnxruntime", "/a b/it's.onnx"]


@pytest.mark.parametrize(
    "command",
    [
        ["rm", "-rf", "/"],
        ["dld", "profile"],
        ["dld", "profiles", "onnxruntime", "m.onnx"],
        ["dld", "profile", ["onnxruntime"], "m.onnx"],
        [*PROFILE, 1],
        [],
        None,
        {"dld": "profile"},
        shlex.join(PROFILE),
        [*PROFILE, "--output", "/home/me/.bashrc", "--force"],
        [*PROFILE, "--force"],
        [*PROFILE, "--output=x"],
        [*PROFILE, "-ox"],
        [*PROFILE, "--provider-option", "backend_path=evil.so"],
        [*PROFILE, "--session-config", "ep.context_file_path=Makefile"],
        [*PROFILE, "--provider-options=backend_path=evil.so"],
    ],
)
def test_other_commands_are_not_advised(tmp_path: Path, command: JSON) -> None:
    """The plain one is: a report comes from anybody."""
    plain = advised(tmp_path / "plain.dldprof", "")
    assert plain.startswith("dld profile onnxruntime ")
    assert advised(tmp_path / "a.dldprof", command) == plain


CHOSEN_BY_USERS = {"custom_op_library", "ep_library", "library", "plugins", "dynamic_plugins",
                   "trust", "timing_cache"}  # fmt: skip


@pytest.mark.parametrize("activity", ["onnxruntime", "tensorrt"])
def test_no_option_that_writes_or_loads_code_is_advised(
    tmp_path: Path, activity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All spellings of all settings of both profiles: these are left out, and no others."""
    request = import_module(f"dld_tui.activities.profile.{activity}").Request
    report = unsteady(tmp_path / "a.dldprof", "")
    [step] = next_steps(report)
    for setting in settings_of(request):
        is_refused = setting.param.kind == "output" or setting.name in CHOSEN_BY_USERS
        for spelling in setting.param.spellings:
            words = ["dld", "profile", activity, "m.onnx", spelling, "a=1"]
            monkeypatch.setitem(report.properties, "command", [*words])
            assert (shlex.split(step_command(report, step)) != words) is is_refused, spelling


@pytest.mark.parametrize("activity", ["onnxruntime", "tensorrt"])
def test_what_is_recorded_names_no_file_of_results(tmp_path: Path, activity: str) -> None:
    request = import_module(f"dld_tui.activities.profile.{activity}").Request
    outputs = [setting.name for setting in settings_of(request) if setting.param.kind == "output"]
    given = request(Path("m.onnx"), **dict.fromkeys(outputs, Path("o")), seed=3)
    words = rerun_command(("dld", "profile", activity), given)
    assert words == ["dld", "profile", activity, str(Path("m.onnx").absolute()), "--seed", "3"]


def test_what_a_command_holds_is_quoted(tmp_path: Path) -> None:
    hostile = ["dld", "profile", "onnxruntime", "m.onnx;", "rm", "$(rm", "y)", "\x1b[31m"]
    assert advised(tmp_path / "a.dldprof", [*hostile]) == (
        "dld profile onnxruntime 'm.onnx;' rm '$(rm' 'y)' '\\x1b[31m'"
    )


def test_a_range_never_begins_above_its_end(tmp_path: Path) -> None:
    step = NextStep("CUDA graph", "the GPU waits", ("cuda-graph",), most=1.25)
    assert step.most is not None
    assert step.most < MEASURED["cuda-graph"].least
    assert step.gain_percent == pytest.approx((20, 20))


@pytest.mark.parametrize("network", ["tiny.onnx", HOSTILE])
def test_the_card_is_fit_for_a_chat_and_a_picture(tmp_path: Path, network: str) -> None:
    report = report_of(tmp_path / "r.dldprof", network=network)
    lines = card_lines(report)
    assert lines[0] == headline(report)
    assert ["Conv", "60.0", "%"] in [line.split()[:3] for line in lines]
    assert "\x1b" not in "".join(lines)
    picture = ElementTree.fromstring(card_svg(report))
    texts = [*picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "60.0 %" in [one.text for one in texts]
    bold = [one.text for one in texts if one.attrib["font-weight"] == "bold"]
    assert bold == [clip(title(report), 44), "4.00 ms"]


def test_the_name_says_whether_a_card_is_a_picture(tmp_path: Path) -> None:
    report = report_of(tmp_path / "r.dldprof")
    write_card(report, tmp_path / "c.svg", False)
    write_card(report, tmp_path / "c.txt", False)
    assert (tmp_path / "c.svg").read_text() == card_svg(report)
    assert (tmp_path / "c.txt").read_text().splitlines() == card_lines(report)


@pytest.mark.parametrize("network", ["tiny.onnx", HOSTILE, "模型.onnx"])
def test_a_png_has_the_bars_of_the_svg(tmp_path: Path, network: str) -> None:
    Image = pytest.importorskip("PIL.Image")
    report = report_of(tmp_path / "r.dldprof", network=network)
    write_card(report, tmp_path / "c.PNG", False)
    with Image.open(tmp_path / "c.PNG") as image:
        assert image.size == (1280, 720)
        assert image.getpixel((0, 0))[3] == 0
        assert image.getpixel((640, 20))[:3] == (0x15, 0x18, 0x1D)
        # 60 % of the time is Conv: 192 of the card's 640 columns, from the 190th.
        row = [image.getpixel((x, 2 * 244))[:3] == (0x56, 0xB4, 0xE9) for x in range(1280)]
        assert (row.index(True), sum(row)) == (380, 385)
        texts = sum(image.getpixel((x, 2 * 110))[:3] == (0x56, 0xB4, 0xE9) for x in range(1280))
    assert texts > 20


def test_without_pillow_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    report = report_of(tmp_path / "r.dldprof")
    with pytest.raises(UnavailableError, match="Pillow"):
        write_card(report, tmp_path / "c.png", False)
    assert not (tmp_path / "c.png").exists()
