"""Editing jobs of docs/start/coming-from.md, typed in a terminal, as commands and as scripts.

The scripts are the shortest that are known; the page says how many lines they have.
"""

from __future__ import annotations

import ast
import inspect
import json
import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from dld_tui import api
from dld_tui.cli.main import run
from tests.support import documented_keys
from tests.support.runtime import session_of
from tests.support.typist import Programs

PAGE = Path(__file__).parents[2] / "docs/start/coming-from.md"
_HEAD = '<ir_version: 10, opset_import: ["" : 18]>\n'


def _model(text: str, *, seed: int = 0, **weights: Any) -> onnx.ModelProto:
    """Return a model; weights are arrays, or shapes of drawn ones."""
    dice = np.random.default_rng(seed)
    model = parser.parse_model(text if text.lstrip().startswith("<") else _HEAD + text)
    for name, about in weights.items():
        is_shape = isinstance(about, tuple)
        array = dice.standard_normal(about, np.float32) if is_shape else about
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def _backbone() -> onnx.ModelProto:
    return _model(
        """backbone (float[1,3,32,32] image) => (float[1,8,16,16] features) {
        [conv] a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (image, weight)
        [act] features = Relu(a) }""",
        weight=(8, 3, 3, 3),
    )


def _head() -> onnx.ModelProto:
    return _model(
        """head (float[1,8,16,16] x) => (float[1,10] scores) {
        [conv] a = Conv(x, weight)
        [pool] b = GlobalAveragePool(a)
        [flat] c = Flatten(b)
        [fc] scores = Gemm(c, fc) }""",
        weight=(8, 8, 1, 1),
        fc=(8, 10),
        seed=1,
    )


def _classifier() -> onnx.ModelProto:
    return _model(
        """classifier (float[1,3,32,32] image) => (float[1,10] scores) {
        [conv] a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (image, weight)
        [act] b = Relu(a)
        [pool] c = GlobalAveragePool(b)
        [flat] d = Reshape(c, flat_shape)
        [fc] scores = Gemm(d, fc) }""",
        weight=(8, 3, 3, 3),
        fc=(8, 10),
        flat_shape=np.array([1, 8]),
    )


def _encoder() -> onnx.ModelProto:
    return _model(
        """encoder (int64[1,16] input_ids, int64[1,16] attention_mask, int64[1,16] token_type_ids)
        => (float[1,16,8] y) {
        [words] a = Gather(word_table, input_ids)
        [types] b = Gather(type_table, token_type_ids)
        [sum] c = Add(a, b)
        [mask] m = Cast <to = 1> (attention_mask)
        [rows] n = Unsqueeze(m, axes)
        [masked] y = Mul(c, n) }""",
        word_table=(2, 8),
        type_table=(2, 8),
        axes=np.array([2]),
    )


def _detector() -> onnx.ModelProto:
    return _model(
        """detector (float[1,3,32,32] image) => (int64[picked,3] selected) {
        [backbone] a = Conv <strides = [4, 4]> (image, weight)
        [rows] b = Reshape(a, row_shape)
        [order] c = Transpose <perm = [0, 2, 1]> (b)
        [split] b1, s1 = Split <axis = 2> (c, parts)
        [sigmoid] s2 = Sigmoid(s1)
        [class_first] s3 = Transpose <perm = [0, 2, 1]> (s2)
        [nms] all = NonMaxSuppression(b1, s3, most, iou, threshold)
        [keep] selected = Identity(all) }""",
        weight=(9, 3, 4, 4),
        row_shape=np.array([1, 9, -1]),
        parts=np.array([4, 5]),
        most=np.array([10]),
        iou=np.array([0.5], np.float32),
        threshold=np.array([0.5], np.float32),
    )


def _constants() -> onnx.ModelProto:
    return _model(
        """<ir_version: 8, opset_import: ["" : 17]>
        net (float[1,4] x) => (float[1,4] y) {
        [scale] w = Constant <value = float[4] {1., 2., 3., 4.}> ()
        [times] a = Mul(x, w)
        [shift] b = Constant <value_floats = [0.5, 1.5, 2.5, 3.5]> ()
        [plus] y = Add(a, b) }"""
    )


def _table() -> onnx.ModelProto:
    return _model(
        """table (float[1,4] x) => (float[1,4] y) {
        [half] a = Div(table, two)
        [row] b = Slice(a, first, last)
        [flat] c = Reshape(b, shape)
        [plus] y = Add(x, c) }""",
        table=(3, 4),
        two=np.array(2, np.float32),
        first=np.array([1]),
        last=np.array([2]),
        shape=np.array([4]),
    )


def _old() -> onnx.ModelProto:
    return _model(
        """<ir_version: 3, opset_import: ["" : 9]>
        net (float[1,4] x, float[4,4] w, float[4] b) => (float[1,4] y) {
        [times] a = MatMul(x, w)
        [plus] y = Add(a, b) }""",
        w=(4, 4),
        b=(4,),
    )


def _merged() -> None:
    import onnx
    from onnx import compose

    head = onnx.load("head.onnx")
    head = compose.add_prefix(head, "head_", rename_inputs=False, rename_outputs=False)
    links = [("features", "x")]
    merged = compose.merge_models(onnx.load("model.onnx"), head, io_map=links)
    onnx.save(merged, "script.onnx")


def _normalized() -> None:
    import numpy as np
    import onnx
    import onnx_graphsurgeon as gs

    graph = gs.import_onnx(onnx.load("model.onnx"))
    image = graph.inputs[0]
    image.name = "normalized"
    raw = gs.Variable("image", np.uint8, (1, 32, 32, 3))
    scale = np.array(1 / 255, np.float32)
    mean = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
    std = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)
    (planes,) = graph.layer(
        op="Transpose", inputs=[raw], outputs=["planes"], attrs={"perm": [0, 3, 1, 2]}
    )
    (floats,) = graph.layer(op="Cast", inputs=[planes], outputs=["floats"], attrs={"to": 1})
    (scaled,) = graph.layer(op="Mul", inputs=[floats, scale], outputs=["scaled"])
    (centred,) = graph.layer(op="Sub", inputs=[scaled, mean], outputs=["centred"])
    graph.layer(op="Div", inputs=[centred, std], outputs=[image])
    graph.inputs = [raw]
    onnx.save(gs.export_onnx(graph.cleanup().toposort()), "script.onnx")


def _softmaxed() -> None:
    import onnx
    import onnx_graphsurgeon as gs

    graph = gs.import_onnx(onnx.load("model.onnx"))
    logits = graph.outputs[0]
    logits.name = "logits"
    scores = gs.Variable("scores", logits.dtype, logits.shape)
    graph.layer(op="Softmax", inputs=[logits], outputs=[scores], attrs={"axis": -1})
    graph.outputs = [scores]
    onnx.save(gs.export_onnx(graph), "script.onnx")


def _narrowed() -> None:
    import onnx

    model = onnx.load("model.onnx")
    for info in model.graph.input:
        info.type.tensor_type.elem_type = onnx.TensorProto.INT32
    onnx.save(model, "script.onnx")


def _channels_last() -> None:
    import onnx
    import onnx_graphsurgeon as gs

    graph = gs.import_onnx(onnx.load("model.onnx"))
    image = graph.inputs[0]
    image.name = "planes"
    last = gs.Variable("image", image.dtype, (1, 32, 32, 3))
    graph.layer(op="Transpose", inputs=[last], outputs=[image], attrs={"perm": [0, 3, 1, 2]})
    graph.inputs = [last]
    onnx.save(gs.export_onnx(graph.toposort()), "script.onnx")


def _cut() -> None:
    import onnx
    import onnx_graphsurgeon as gs

    graph = gs.import_onnx(onnx.load("model.onnx"))
    nms = next(node for node in graph.nodes if node.op == "NonMaxSuppression")
    graph.outputs = nms.inputs[:2]
    graph.outputs[0].name, graph.outputs[1].name = "boxes", "scores"
    graph.outputs[0].dtype = graph.outputs[1].dtype = "float32"
    onnx.save(gs.export_onnx(graph.cleanup()), "script.onnx")


def _renamed() -> None:
    import re

    import onnx

    model = onnx.load("model.onnx")
    graph = model.graph
    kept = {info.name for info in (*graph.input, *graph.output)}
    names = {name for node in graph.node for name in (*node.input, *node.output)} - kept
    new = {name: re.sub("(.+)", r"net/\1", name) for name in names}
    for node in graph.node:
        node.name = re.sub("(.+)", r"net/\1", node.name)
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for tensor in graph.initializer:
        tensor.name = new[tensor.name]
    onnx.save(model, "script.onnx")


def _folded() -> None:
    import onnx
    import onnx_graphsurgeon as gs

    graph = gs.import_onnx(onnx.load("model.onnx"))
    onnx.save(gs.export_onnx(graph.fold_constants().cleanup()), "script.onnx")


def _lifted() -> None:
    import numpy as np
    import onnx

    model = onnx.load("model.onnx")
    graph = model.graph
    for node in [node for node in graph.node if node.op_type == "Constant"]:
        value = onnx.helper.get_attribute_value(node.attribute[0])
        if node.attribute[0].name == "value_floats":
            value = onnx.numpy_helper.from_array(np.array(value, np.float32))
        value.name = node.output[0]
        graph.initializer.append(value)
        graph.node.remove(node)
    onnx.save(model, "script.onnx")


def _taken_off() -> None:
    import onnx

    model = onnx.load("model.onnx")
    stored = {tensor.name for tensor in model.graph.initializer}
    for info in list(model.graph.input):
        if info.name in stored:
            model.graph.input.remove(info)
    model.ir_version = max(model.ir_version, 4)
    onnx.save(model, "script.onnx")


def _plugged() -> None:
    import numpy as np
    import onnx
    import onnx_graphsurgeon as gs

    graph = gs.import_onnx(onnx.load("model.onnx"))
    nms = next(node for node in graph.nodes if node.op == "NonMaxSuppression")
    nms.op, nms.domain = "EfficientNMS_TRT", "trt"
    graph.import_domains.append(onnx.helper.make_opsetid("trt", 1))
    nms.attrs = {
        "score_threshold": 0.25,
        "iou_threshold": 0.5,
        "max_output_boxes": 100,
        "plugin_version": "1",
    }
    nms.inputs = nms.inputs[:2]
    nms.outputs = [
        gs.Variable("num", np.int32, (1, 1)),
        gs.Variable("boxes", np.float32, (1, 100, 4)),
        gs.Variable("scores", np.float32, (1, 100)),
        gs.Variable("classes", np.int32, (1, 100)),
    ]
    graph.outputs = nms.outputs
    onnx.save(gs.export_onnx(graph.cleanup()), "script.onnx")


def _batched() -> None:
    import numpy as np
    import onnx

    model = onnx.load("model.onnx")
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = 4
    shape = next(t for t in model.graph.initializer if t.name == "flat_shape")
    shape.CopyFrom(onnx.numpy_helper.from_array(np.array([4, 8]), "flat_shape"))
    onnx.save(model, "script.onnx")


def _extracted() -> None:
    from onnx import utils

    utils.extract_model("model.onnx", "script.onnx", ["a"], ["d"])


class Job(NamedTuple):
    """What a row of the page is tried on."""

    models: dict[str, Callable[[], onnx.ModelProto]]
    script: Callable[[], None]
    most: int = 15
    """Key presses."""
    result: str = "model.onnx"
    """The file that the keys write."""
    runs: bool = True
    """Whether ONNX Runtime can run the result."""


JOBS = {
    "merge two models": Job({"model": _backbone, "head": _head}, _merged, 12),
    "normalize an image input": Job({"model": _classifier}, _normalized, 15),
    "append a softmax": Job({"model": _classifier}, _softmaxed),
    "int64 inputs to int32": Job({"model": _encoder}, _narrowed, 8),
    "an NCHW input to NHWC": Job({"model": _classifier}, _channels_last),
    "cut the NMS off a detector, name the outputs": Job({"model": _detector}, _cut, 20),
    "rename by a pattern": Job({"model": _classifier}, _renamed),
    "fold marked nodes to an initializer": Job({"model": _table}, _folded),
    "Constant nodes to initializers": Job({"model": _constants}, _lifted),
    "weights off the graph inputs": Job({"model": _old}, _taken_off),
    "a TensorRT plugin for a node": Job({"model": _detector}, _plugged, runs=False),
    "another batch size": Job({"model": _classifier}, _batched),
    "extract from a tensor to a tensor": Job(
        {"model": _classifier}, _extracted, result="model.part.onnx"
    ),
}


class Row(NamedTuple):
    """A row of the page."""

    name: str
    keys: str
    presses: int
    command: str
    lines: int


def _rows() -> dict[str, Row]:
    found = [
        Row(name.partition(" (")[0], keys, int(presses), command.strip("`"), int(lines.split()[0]))
        for name, keys, presses, command, lines in documented_keys.rows(PAGE, 5)
    ]
    return {row.name: row for row in found}


def _lines(script: Callable[[], None]) -> int:
    """Return how many lines the body of a script has, empty ones left out."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(script))).body
    assert isinstance(function, ast.FunctionDef)
    source = inspect.getsource(script).splitlines()[function.body[0].lineno - 1 :]
    return sum(bool(line.strip()) for line in source)


def test_the_page_counts_keys_and_lines() -> None:
    found = _rows()
    assert list(found) == list(JOBS)
    for name, row in found.items():
        assert documented_keys.presses(row.keys) == row.presses <= JOBS[name].most, name
        assert row.lines == _lines(JOBS[name].script), name


def _prepare(folder: Path, job: Job) -> None:
    for name, make in job.models.items():
        onnx.save(make(), folder / f"{name}.onnx")


def _fed(model: onnx.ModelProto) -> dict[str, Any]:
    """Return drawn inputs: integers are 0 and 1, but for images."""
    dice = np.random.default_rng(7)
    fed: dict[str, Any] = {}
    for info in model.graph.input:
        kind = info.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = [dim.dim_value for dim in kind.shape.dim]
        if np.issubdtype(dtype, np.floating):
            fed[info.name] = dice.random(shape).astype(dtype)
        else:
            fed[info.name] = dice.integers(0, 256 if len(shape) == 4 else 2, shape).astype(dtype)
    return fed


def _facts(model: onnx.ModelProto) -> list[Any]:
    """Return interface, operators and number of weights, and plugins with their attributes."""
    ends = [
        (info.name, info.type.tensor_type.elem_type)
        for info in (*model.graph.input, *model.graph.output)
    ]
    sizes = [
        [dim.dim_value or dim.dim_param for dim in info.type.tensor_type.shape.dim]
        for info in model.graph.input
    ]
    nodes = sorted((node.domain, node.op_type, len(node.input)) for node in model.graph.node)
    plugins = [
        ({one.name: onnx.helper.get_attribute_value(one) for one in node.attribute},
         [*node.input], [*node.output], {entry.domain for entry in model.opset_import})
        for node in model.graph.node if node.domain
    ]  # fmt: skip
    return [ends, sizes, nodes, len(model.graph.initializer), plugins]


def _require_same(found: onnx.ModelProto, wanted: onnx.ModelProto, job: Job) -> None:
    """Compare what two models are, and what both compute of the same inputs."""
    assert _facts(found) == _facts(wanted)
    if job.runs:
        fed = _fed(wanted)
        results = [session_of(model).run(None, fed) for model in (found, wanted)]
        for left, right in zip(*results, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_job_by_keyboard(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    job, row = JOBS[name], _rows()[name]
    _prepare(tmp_path, job)
    monkeypatch.chdir(tmp_path)
    job.script()
    (tmp_path / "script.onnx").rename(tmp_path / "script.result")
    with programs.start(tmp_path, "model.onnx") as typist:
        typist.wait_for_screen()
        typist.settle()
        typist.slowly(documented_keys.typed(row.keys))
        typist.settle(0.5)
        state = typist.state()
    assert not state["faults"]
    wanted = onnx.load(tmp_path / "script.result")
    _require_same(onnx.load(tmp_path / job.result), wanted, job)


class Doors(NamedTuple):
    """How a job is done without keys and commands."""

    line: str
    """Of an edit script."""
    python: str


def _doors() -> dict[str, Doors]:
    found = {}
    for text in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in text.strip("| ").split(" | ")]
        if len(cells) == 3 and cells[1].startswith('`{"edit"'):
            found[cells[0]] = Doors(cells[1].strip("`"), cells[2].partition("` with")[0].strip("`"))
    return found


def test_the_page_has_each_job_as_a_line_and_in_python() -> None:
    assert [*_doors()] == [*JOBS]


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_job_as_a_command_as_a_line_of_a_script_and_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    job, row, doors = JOBS[name], _rows()[name], _doors()[name]
    _prepare(tmp_path, job)
    for script in ("plugin.jsonl", "job.jsonl"):
        (tmp_path / script).write_text(doors.line)
    monkeypatch.chdir(tmp_path)
    job.script()

    def in_python() -> int:
        model = api.open_model("model.onnx")
        if "…" in doors.python:
            line = json.loads(doors.line)
            model.apply(line.pop("edit"), **line)
        else:
            eval(doors.python, {"model": model, "dld": api})  # the page's own text
        if not Path("out.onnx").exists():
            model.save("out.onnx")
        model.close()
        return 0

    ways: list[Callable[[], int]] = [
        lambda: run(shlex.split(row.command.partition("`")[0])[1:]),
        lambda: run(["edit", "model.onnx", "job.jsonl", "-o", "out.onnx"]),
        in_python,
    ]
    for way in ways:
        assert way() == 0
        _require_same(onnx.load("out.onnx"), onnx.load("script.onnx"), job)
        Path("out.onnx").unlink()
