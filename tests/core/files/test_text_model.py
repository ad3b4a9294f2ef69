"""Models as text: opened, edited and saved in their format."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.serialization import registry

from dld_tui.core.errors import DldError, InputError, SaveError
from dld_tui.core.files.model_set import binary_file
from dld_tui.core.files.text_model import MOST_TEXT, TextFormat, is_text
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import save
from tests.support.known import known

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 600] x) => (float[N, 600] y) <float[600] w = {VALUES}> {
    [first] a = Mul (x, w)
    [second] y = Relu (a)
}""".replace("VALUES", ", ".join(f"{number}.5" for number in range(600)))
pytestmark = pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
FORMATS = {"m.textproto": "textproto", "m.json": "json", "m.onnxtxt": "onnxtxt"}


def written(path: Path, kind: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(MODEL)
    large = onnx.numpy_helper.from_array(np.arange(2000, dtype=np.float32), "large")
    model.graph.initializer.append(large)
    onnx.save(model, path, format=kind)
    return model


@pytest.mark.parametrize(("name", "kind"), FORMATS.items())
def test_a_text_is_opened_edited_undone_and_saved_as_that_text(
    tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / name
    model = written(path, kind)
    with closing(Document.open(path, journaled=True)) as document:
        assert [node.name for node in document.main.nodes] == ["first", "second"]
        document.apply("rename_node", scope=[], node="first", name="stem")
        document.apply("rename_node", scope=[], node="second", name="head")
        document.undo()
        save(document)
        assert not document.changed_on_disk()
        weights = known(document.main.initializer("w"))
        assert weights.read(3, 2).tolist() == [3.5, 4.5]
        assert known(document.main.initializer("large")).read(3, 2).tolist() == [3, 4]
    read = registry.get(kind).deserialize_proto(path.read_bytes(), onnx.ModelProto())
    assert [node.name for node in read.graph.node] == ["stem", "second"]
    model.graph.node[0].name = "stem"
    assert onnx.printer.to_text(read) == onnx.printer.to_text(model)


def test_the_name_of_another_file_says_its_form(tmp_path: Path) -> None:
    odd = tmp_path / "model.txt"
    written(odd, "textproto")
    for name, kind in (*FORMATS.items(), ("m.onnx", "protobuf")):
        with closing(Document.open(odd)) as document:
            save(document, tmp_path / name)
        loaded = onnx.load(tmp_path / name, format=kind)
        assert [node.op_type for node in loaded.graph.node] == ["Mul", "Relu"]
    with closing(Document.open(odd)) as document:
        document.apply("rename_node", scope=[], node="first", name="stem")
        save(document)  # in its own file it stays text
        assert document.text is TextFormat.PROTOBUF
    assert onnx.load(odd, format="textproto").graph.node[0].name == "stem"


@pytest.mark.parametrize("name", FORMATS)
def test_comments_and_the_mark_of_utf8_may_come_first(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    written(path, FORMATS[name])
    comments = b"" if name == "m.json" else b"# exported\n\n  # by hand\n"
    path.write_bytes(b"\xef\xbb\xbf" + comments + path.read_bytes())
    with closing(Document.open(path)) as document:
        assert [node.name for node in document.main.nodes] == ["first", "second"]


def test_what_a_format_does_not_hold_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxtxt"
    written(path, "onnxtxt")
    before = path.read_bytes()
    with closing(Document.open(path)) as document:
        document.main.nodes[0].proto.doc_string = "The syntax has no place for it."
        with pytest.raises(SaveError, match="does not hold all of this model"):
            save(document)
    assert path.read_bytes() == before


def test_a_library_is_given_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    written(path, "json")
    with binary_file(path) as binary:
        assert [node.op_type for node in onnx.load(binary).graph.node] == ["Mul", "Relu"]
    assert not binary.exists()
    assert [*tmp_path.iterdir()] == [path]


HOSTILE = {
    "deep.prototxt": "ir_version: 10\n" + "graph { node { attribute { g { " * 3000,
    "deep.json": '{"ir_version": 10, "graph": ' + '{"node": [{"attribute": [{"g": ' * 3000,
    "deep.onnxtxt": '<ir_version: 10, opset_import: ["" : 21]>\ng (float x) => (float y) {\n'
    + "y = If (x) <then_branch = t () => (float z) { " * 20000,
    "cut.prototxt": 'ir_version: 10\ngraph {\n  node {\n    input: "x',
    "cut.json": '{"ir_version": 10, "graph": {"node": [{"in',
    "cut.onnxtxt": MODEL[:-40],
    "odd.prototxt": "ir_version: 10\ngraph { wrong: 5 }",
    "large.prototxt": "ir_version: 10\n" + " " * MOST_TEXT,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_ends_in_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(HOSTILE[name])
    with pytest.raises(InputError) as caught:
        Document.open(path)
    assert isinstance(caught.value, DldError)
    assert "\n" not in str(caught.value)
    assert len(caught.value.message) < 400


def test_a_text_of_many_nodes_is_not_nested_deeply(tmp_path: Path) -> None:
    nodes = " ".join(f"x{at + 1} = Relu (x{at})" for at in range(300))
    path = tmp_path / "m.onnxtxt"
    path.write_text(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float x0) => (float x300) {{ {nodes} }}'
    )
    with closing(Document.open(path)) as document:
        assert len(document.main.nodes) == 300


PRINTED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { [mul] y = Mul (x, w) }"""


def raw(model: onnx.ModelProto) -> None:
    values = np.array([1, 2.5, 3], np.float32)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(values, "w"))


def elsewhere(model: onnx.ModelProto) -> None:
    raw(model)
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "w.bin", 0, 12)
    model.graph.initializer[0].ClearField("raw_data")


def described(model: onnx.ModelProto) -> None:
    model.graph.node[0].metadata_props.add(key="where", value="from a \u00fcber file")


def test_what_is_no_text(tmp_path: Path) -> None:
    assert not is_text(tmp_path / "gone.json")
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(PRINTED).SerializeToString())
    assert not is_text(tmp_path / "m.onnx")
