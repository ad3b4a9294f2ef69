from __future__ import annotations

from contextlib import closing
from pathlib import Path

import onnx
import pytest

from dld_tui.core.conversion.copies import copy_of, open_model, restore_dropped
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from tests.support import models
from tests.support.conversions import model_file


def restored(
    folder: Path, before: onnx.ModelProto, after: onnx.ModelProto
) -> tuple[int, onnx.ModelProto]:
    """Return how many records were put back into `after`, and the model with them."""
    paths = [folder / "old.onnx", folder / "new.onnx"]
    for path, model in zip(paths, (before, after), strict=True):
        path.write_bytes(model.SerializeToString())
    with closing(Document.open(paths[0])) as old, closing(Document.open(paths[1])) as new:
        count = restore_dropped(old, new)
        return count, onnx.ModelProto.FromString(skeleton_bytes(new))


def test_what_a_library_drops_is_put_back(tmp_path: Path) -> None:
    model = models.parse(models.PLAIN_BRANCHES)
    model.doc_string, model.producer_name = "about", "me"
    model.metadata_props.add(key="licence", value="none")
    model.graph.doc_string = "graph"
    model.graph.node[0].doc_string = "first"
    model.graph.node[0].metadata_props.add(key="dld.precision", value="fp16")
    model.graph.node[1].attribute[0].g.node[0].doc_string = "inside"
    model.graph.output[0].doc_string = "result"
    model.graph.quantization_annotation.add(tensor_name="a")
    bare = models.parse(models.PLAIN_BRANCHES)
    for node in bare.graph.node:
        node.ClearField("name")
    assert restored(tmp_path, model, bare) == (3, model)


def test_what_the_result_says_itself_stays(tmp_path: Path) -> None:
    old, new = models.parse(models.CHAIN), models.parse(models.CHAIN)
    old.graph.node[0].doc_string, new.graph.node[0].doc_string = "before", "after"
    new.graph.node[1].op_type = "Sub"
    old.graph.node[1].doc_string = "of an Add"
    count, result = restored(tmp_path, old, new)
    assert count == 0
    assert [node.doc_string for node in result.graph.node[:2]] == ["after", ""]


def test_weights_of_a_view_are_the_models_own_again(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    with closing(Document.open(path)) as document:
        view = external_view(
            skeleton_bytes(document), document.blobs, tmp_path, external=document.external,
            values=True,
        )  # fmt: skip
        with closing(open_model(view)) as again:
            tensor = again.main.initializer("large")
            assert tensor is not None
            assert not tensor.is_external
            assert tensor.read(7, 1)[0] == 7
        discard_view(view)


@pytest.mark.parametrize(
    "start",
    [b"\x17", b"\0", b"PK\3\4", b"\x7fELF", b"\x1f\x8b", b"SQLite format 3\0", b"{\n", b"\xff"],
)
def test_external_weights_of_a_view_stay_external_whatever_they_begin_with(
    start: bytes, tmp_path: Path
) -> None:
    weights = start.ljust(256, b"\x05")
    model = models.parse(models.CHAIN)
    tensor = model.graph.initializer.add(name="large", dims=[64], data_type=onnx.TensorProto.FLOAT)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.data")
    (tmp_path / "weights.data").write_bytes(weights)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with closing(Document.open(path)) as document:
        view = external_view(
            skeleton_bytes(document), document.blobs, tmp_path, external=document.external,
            values=True,
        )  # fmt: skip
        with closing(open_model(view)) as again:
            large = again.main.initializer("large")
            assert large is not None
            assert large.is_external
            assert bytes(large.read(0, 64).tobytes()) == weights
        discard_view(view)


def test_texts_of_any_bytes_functions_and_quantized_names_are_put_back(tmp_path: Path) -> None:
    old, new = models.parse(models.FUNCTIONS), models.parse(models.FUNCTIONS)
    old.functions[0].doc_string = "why"
    old.functions[0].node[0].doc_string = "how"
    old.graph.node[0].doc_string = "QQ"
    weight = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [1.0])
    weight.doc_string = "trained"
    old.graph.initializer.append(weight)
    new.graph.initializer.append(
        onnx.helper.make_tensor("w_quantized", onnx.TensorProto.INT8, [1], [1])
    )
    (tmp_path / "old.onnx").write_bytes(old.SerializeToString().replace(b"QQ", b"\xff\xfe"))
    (tmp_path / "new.onnx").write_bytes(new.SerializeToString())
    with (
        closing(Document.open(tmp_path / "old.onnx")) as one,
        closing(Document.open(tmp_path / "new.onnx")) as two,
    ):
        restore_dropped(one, two)
        data = skeleton_bytes(two)
    result = onnx.ModelProto.FromString(data)
    assert b"\xff\xfe" in data
    assert (result.functions[0].doc_string, result.functions[0].node[0].doc_string) == (
        "why", "how",
    )  # fmt: skip
    assert result.graph.initializer[-1].doc_string == "trained"


def test_a_copy_says_what_old_files_leave_to_their_readers() -> None:
    text = """<ir_version: 3, opset_import: ["" : 9]> g (float[2] x, float[2] v) => (float[2] y)
    <float[2] v = {1, 2}, float[2] w = {1, 2}>
    { a = ai.onnx.Add(x, v) b = com.microsoft.Gelu(a) c = Add(b, w) y = acme.F(c) }"""
    model = models.parse(text)
    with closing(Document(model)) as document, closing(copy_of(document)) as copy:
        found = onnx.ModelProto.FromString(skeleton_bytes(copy))
    assert {one.domain: one.version for one in found.opset_import} == {
        "": 9, "com.microsoft": 1, "acme": 1,
    }  # fmt: skip
    assert [node.domain for node in found.graph.node] == ["", "com.microsoft", "", "acme"]
    # Weights may be no inputs from IR version 4 on; those that were stay constants.
    assert (found.ir_version, [info.name for info in found.graph.input]) == (4, ["x"])
