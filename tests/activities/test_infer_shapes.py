from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.activities.infer_shapes import InferredPart, Request, run
from dld_tui.core.codec import encode
from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Finished, Part, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.locations import scope_at
from dld_tui.core.model.document.serialise import snapshot
from dld_tui.targets.process import LocalTarget
from tests.core.model.document import test_locations
from tests.support import decoders, models
from tests.support.conversions import NESTED


def infer(path: Path) -> dict[str, Any]:
    """Return the types by the path of the scope, as JSON."""
    scopes, errors = inferred(Request(path))
    assert errors == []
    return scopes


def inferred(request: Request) -> tuple[dict[str, Any], list[Any]]:
    *steps, last = run(request)
    assert isinstance(last, Finished)
    document = Document.open(request.home or request.model)
    scopes: dict[str, Any] = {}
    for step in steps:
        assert isinstance(step, (Progress, Part))
        if isinstance(step, Part):
            part = step.data
            assert isinstance(part, InferredPart)
            kinds: Any = [
                [kind.dtype, kind.dims and [*kind.dims], *filter(None, [kind.container])]
                for kind in part.kinds
            ]
            scope = scope_at(document, part.place)
            assert scope is not None
            scopes.setdefault(json.dumps(list(scope.path)), {}).update(
                {name: kinds[number] for name, number in part.types.items()}
            )
    document.close()
    errors = encode(last.result)["errors"]
    return scopes, [{**one["remark"], "rule": one["rule"]} for one in errors]


def test_the_main_graph(tmp_path: Path) -> None:
    scopes = infer(models.write(tmp_path, models.CHAIN))

    assert scopes == {"[]": {name: ["float32", ["N", 4]] for name in ("a", "b", "c", "y")}}


def test_subgraphs_to_any_depth_by_the_paths_of_their_scopes(tmp_path: Path) -> None:
    path = models.write(tmp_path, NESTED)
    scopes = infer(path)

    document = Document.open(path)
    assert set(scopes) == {
        "[]",
        '["choose:then_branch"]',
        '["choose:then_branch", "again:then_branch"]',
        '["choose:then_branch", "again:else_branch"]',
        '["choose:else_branch"]',
    }
    for scope in document.scopes():
        assert scope.path == () or scope.path[0].startswith("choose:")
    document.close()
    assert scopes["[]"]["z"] == ["float32", ["N", 4]]
    assert scopes["[]"]["s"] == ["float32", ["N", 4], "sequence"]
    assert "u" not in scopes["[]"]
    assert scopes['["choose:then_branch", "again:then_branch"]']["q"] == ["float32", ["N", 4]]
    assert scopes['["choose:else_branch"]']["f"] == ["float32", [4, "b"]]


def test_sizes_that_are_computed_are_followed(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2, 3] x) => (float[a, b] y) <int64[1] one = {1}>
        { s = Shape(x) r = Add(s, one) y = Identity(x) n = ConstantOfShape(r) }"""

    assert infer(models.write(tmp_path, text))["[]"]["n"] == ["float32", [3, 4]]


def test_payloads_are_not_needed(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="absent.bin")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())

    assert infer(path)["[]"]["b"] == ["float32", ["N", 4]]


def test_what_inference_refuses_is_said_in_a_short_line(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2] x) => (float[3] y) { y = Relu(x) }"""
    model = models.parse(text)
    model.graph.node[0].name = "long " * 1000
    del model.opset_import[:]
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())

    _, errors = inferred(Request(path))
    assert {error["rule"] for error in errors} == {"onnx:shape-inference"}
    for error in errors:
        assert len(error["message"]) <= 530
        assert "\n" not in error["message"]


def test_what_is_not_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_text("<html>")
    with pytest.raises(InputError):
        infer(path)


def test_as_a_job(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    events: list[Event] = []
    with LocalTarget().start("infer_shapes", {"model": str(path)}) as job:
        result = job.result(events.append)

    assert result == {"errors": []}
    parts = [event.data for event in events if isinstance(event, Part)]
    assert [part["place"] for part in parts] == [[], [1, "else_branch", 0], [1, "then_branch", 0]]


def test_a_large_result_comes_in_parts(tmp_path: Path) -> None:
    nodes = [onnx.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(2_500)]
    x = onnx.helper.make_tensor_value_info("v0", onnx.TensorProto.FLOAT, [1])
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "long", [x], [])), path)

    parts = [event for event in run(Request(path)) if isinstance(event, Part)]
    assert [len(part.data.types) for part in parts] == [1000, 1000, 500]


def test_what_does_not_fit_together_is_told_of_its_node_and_the_rest_is_inferred(
    tmp_path: Path,
) -> None:
    path = models.write(
        tmp_path, test_locations.WRONG.replace("bool c)", "bool c, float[4, 2, 3, 3] w)")
    )
    scopes, errors = inferred(Request(path))

    assert scopes["[]"]["a"] == ["float32", [1, 4, 6, 6]]
    (error,) = errors
    assert (error["place"], error["index"], error["rule"]) == ([], 0, "operand-shape")
    # The declared shape of an output is no fault: runtimes go by what operators make.
    assert scopes["[]"]["y"] == ["float32", [1, 3, 8, 8]]


def test_a_snapshot_of_an_edited_document_with_small_external_data(tmp_path: Path) -> None:
    model = models.parse(
        """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2, 6] x) => (float[a, b] y)
        <int64[2] s = {3, 4}>
        { y = Reshape(x, s) }"""
    )
    sizes = model.graph.initializer[0]
    sizes.external_data.add(key="location", value="sizes.bin")
    (tmp_path / "sizes.bin").write_bytes(np.array([3, 4], "<i8").tobytes())
    for field in ("raw_data", "int64_data"):
        sizes.ClearField(field)
    sizes.data_location = onnx.TensorProto.EXTERNAL
    home = tmp_path / "m.onnx"
    home.write_bytes(model.SerializeToString())
    document = Document.open(home)
    document.apply("rename_value", scope=[], value="y", name="z")
    path = tmp_path / "elsewhere" / "snapshot.onnx"
    path.parent.mkdir()
    path.write_bytes(b"".join(snapshot(document)))
    document.close()

    scopes, errors = inferred(Request(path, snapshot=True, home=home))
    assert scopes["[]"] == {"z": ["float32", [3, 4]]}
    assert errors == []


def test_a_snapshot_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        list(run(Request(tmp_path / "absent", snapshot=True)))


def test_what_operators_of_the_runtime_make_is_as_it_runs(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = decoders.grouped(tmp_path / "decoder.onnx")
    model = onnx.load(path)
    made = [name for node in model.graph.node for name in node.output if name]

    types = infer(path)["[]"]

    for name in sorted({*made} - {info.name for info in model.graph.output}):
        model.graph.output.add(name=name)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    sizes = {"batch_size": 1, "sequence_length": 3, "past_sequence_length": 4, "total": 7}
    feeds = {
        one.name: np.ones(
            [sizes.get(dim, dim) for dim in one.shape],
            np.int64 if one.type == "tensor(int64)" else np.float32,
        )
        for one in session.get_inputs()
    }
    for one, value in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        dtype, dims = types[one.name]
        assert dtype == str(value.dtype)
        if dims is not None:
            assert [sizes.get(dim, dim) for dim in dims] == [*value.shape], one.name
    assert {*types} == {*made}
    assert sum(dims is None for _, dims in types.values()) == 0


def test_a_model_that_the_runtime_refuses_keeps_what_onnx_tells(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
    refused (float[N, 4] x) => (float[N, 4] y)
    { a = Relu(x) b = com.microsoft.MatMulNBits(a, a, a) y = Neg(a) }
    """
    scopes, _ = inferred(Request(models.write(tmp_path, text)))

    assert scopes["[]"] == {name: ["float32", ["N", 4]] for name in ("a", "y")}
