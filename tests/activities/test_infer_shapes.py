"""Types and shapes of a model, by scope, as an activity."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.activities.infer_shapes import InferredPart, Request, run
from dld_tui.core.codec import encode
from dld_tui.core.errors import InputError
from dld_tui.core.events import Part, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.locations import scope_at
from dld_tui.core.model.document.serialise import snapshot
from tests.support import decoders, models
from tests.support.activities import finished
from tests.support.runtime import session_of

HEAD = '<ir_version: 10, opset_import: ["" : 18]> g'


def inferred(request: Request) -> tuple[dict[str, Any], list[Any]]:
    """Return the types by the path of the scope, and the errors, as JSON."""
    *steps, last = run(request)
    scopes: dict[str, Any] = {}
    with closing(Document.open(request.home or request.model)) as document:
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
    errors = encode(finished([last]))["errors"]
    return scopes, [{**one["remark"], "rule": one["rule"]} for one in errors]


def infer(path: Path) -> dict[str, Any]:
    scopes, errors = inferred(Request(path))
    assert errors == []
    return scopes


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (f"""{HEAD} (float[2, 3] x) => (float[a, b] y) <int64[1] one = {{1}}>
         {{ s = Shape(x) r = Add(s, one) y = Identity(x) n = ConstantOfShape(r) }}""",
         {"n": ["float32", [3, 4]]}),
        # ONNX Runtime refuses it: what onnx tells is kept.
        ("""<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]> g (float[N, 4] x)
         => (float[N, 4] y) { a = Relu(x) b = com.microsoft.MatMulNBits(a, a, a) y = Neg(a) }""",
         {"a": ["float32", ["N", 4]], "b": None, "y": ["float32", ["N", 4]]}),
        # The declared shape of an output is no fault: runtimes go by what operators make.
        (f"{HEAD} (float[1, 3, 8, 8] x) => (float[1, 3, 9, 9] y) {{ y = Relu(x) }}",
         {"y": ["float32", [1, 3, 8, 8]]}),
    ],
    ids=["computed sizes", "refused by the runtime", "a declaration that does not hold"],
)  # fmt: skip
def test_types_are_as_operators_make_them(tmp_path: Path, text: str, types: dict[str, Any]) -> None:
    scopes, _ = inferred(Request(models.write(tmp_path, text)))
    assert {name: scopes["[]"].get(name) for name in types} == types


def test_what_inference_refuses_is_said_in_a_short_line(tmp_path: Path) -> None:
    model = models.parse(f"{HEAD} (float[2] x) => (float[3] y) {{ y = Relu(x) }}")
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
    for request in (Request(path), Request(tmp_path / "absent", snapshot=True)):
        with pytest.raises(InputError):
            list(run(request))


def test_a_large_result_comes_in_parts(tmp_path: Path) -> None:
    nodes = " ".join(f"v{at + 1} = Relu(v{at})" for at in range(2_500))
    path = models.write(tmp_path, f"{HEAD} (float[1] v0) => () {{ {nodes} }}")
    parts = [event for event in run(Request(path)) if isinstance(event, Part)]
    assert [len(part.data.types) for part in parts] == [1000, 1000, 500]


def test_a_snapshot_of_an_edited_document_with_small_external_data(tmp_path: Path) -> None:
    text = (
        f"{HEAD} (float[2, 6] x) => (float[a, b] y) <int64[2] s = {{3, 4}}> {{ y = Reshape(x, s) }}"
    )
    model = models.parse(text)
    sizes = model.graph.initializer[0]
    sizes.external_data.add(key="location", value="sizes.bin")
    (tmp_path / "sizes.bin").write_bytes(np.array([3, 4], "<i8").tobytes())
    sizes.ClearField("int64_data")
    sizes.data_location = onnx.TensorProto.EXTERNAL
    home = tmp_path / "m.onnx"
    home.write_bytes(model.SerializeToString())
    path = tmp_path / "elsewhere" / "snapshot.onnx"
    path.parent.mkdir()
    with closing(Document.open(home)) as document:
        document.apply("rename_value", scope=[], value="y", name="z")
        path.write_bytes(b"".join(snapshot(document)))
    found = inferred(Request(path, snapshot=True, home=home))
    assert found == ({"[]": {"z": ["float32", [3, 4]]}}, [])


def test_what_operators_of_the_runtime_make_is_as_it_runs(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "decoder.onnx")
    model = onnx.load(path)
    made = {name for node in model.graph.node for name in node.output if name}
    types = infer(path)["[]"]
    for name in sorted(made - {info.name for info in model.graph.output}):
        model.graph.output.add(name=name)
    session = session_of(model)
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
        assert [sizes.get(dim, dim) for dim in dims] == [*value.shape], one.name
    assert {*types} == made
