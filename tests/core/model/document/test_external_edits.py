"""Tensors that edits make external are written by the next save, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.checks import check
from dld_tui.core.errors import CancelledError, EditError, FileChangedError
from dld_tui.core.files.external import set_external
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.data_files import external_tensors, unused_bytes
from dld_tui.core.model.document.parts.fragment import fragment_of
from dld_tui.core.model.document.serialise import save, skeleton_bytes
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import tensor_in

SIZE = 20_000
A: JSON = {"initializer": "wa"}


@pytest.fixture
def document(tmp_path: Path) -> Document:
    """Return a model with weights ``wa``, ``wb`` and ``wc``, the last one in c.data."""
    model = models.parse(models.CHAIN)
    del model.graph.initializer[1]
    for number, name in enumerate(("wa", "wb", "wc")):
        array = np.arange(SIZE, dtype=np.float32) + number
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.external_data_helper.set_external_data(model.graph.initializer[3], "c.data")
    path = tmp_path / "model.onnx"
    onnx.external_data_helper.write_external_data_tensors(model, str(tmp_path))
    path.write_bytes(model.SerializeToString())
    return Document.open(path)


def tensor(document: Document, name: str) -> Tensor:
    return tensor_in(document, name)


def saved_values(folder: Path, name: str = "model.onnx") -> dict[str, tuple[float, ...]]:
    """Return the first values of each initializer as onnx reads them, after checking the model."""
    onnx.checker.check_model(str(folder / name))
    model = onnx.load(folder / name)
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    assert all(len(array) == SIZE for name, array in arrays.items() if name != "w")
    return {name: tuple(array[:3].tolist()) for name, array in arrays.items()}


def entries(folder: Path) -> dict[str, dict[str, str]]:
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    return {t.name: {e.key: e.value for e in t.external_data} for t in model.graph.initializer}


def test_bytes_that_no_tensor_uses_are_told(document: Document, tmp_path: Path) -> None:
    def found() -> list[str]:
        return [f.message for f in check(document) if f.rule == "external-unused"]

    assert (found(), summarise(document).external_unused) == ([], 0)
    with (tmp_path / "c.data").open("ab") as file:
        file.write(bytes(1 << 16))  # may align what came next
    assert summarise(document).external_unused == 0
    with (tmp_path / "c.data").open("ab") as file:
        file.write(b"more")
    assert summarise(document).external_unused == (1 << 16) + 4
    assert found() == ["65.5 kB of the data file c.data are used by no tensor"]
    odd = [onnx.TensorProto(data_type=1, dims=[1]) for _ in range(3)]
    for one, (name, offset) in zip(odd, (("odd", "x"), ("odd", "0"), ("gone", "0")), strict=True):
        for key, value in (("location", name), ("offset", offset)):
            one.external_data.add(key=key, value=value)
    told = unused_bytes(document, [*odd, *external_tensors(document)])
    assert told == {"c.data": (1 << 16) + 4}
    stored = onnx.TensorProto(data_type=onnx.TensorProto.FLOAT, dims=[(1 << 14) + 1])
    set_external(stored, "c.data", 4 * SIZE, (1 << 16) + 4)
    for put in (
        _as_attribute,
        _as_weight_of_branch,
        _as_sparse,
        _in_function,
        _as_default,
        _in_training,
    ):
        model = onnx.ModelProto.FromString(skeleton_bytes(document))
        put(model, stored)
        other = Document(model, path=document.path)
        assert unused_bytes(other, external_tensors(other)) == {}, put
        assert not [f for f in check(other) if f.rule == "external-unused"], put


def _as_attribute(model: onnx.ModelProto, stored: onnx.TensorProto) -> None:
    model.graph.node.add().CopyFrom(
        onnx.helper.make_node("ConstantOfShape", ["a"], ["more"], value=stored)
    )


def _as_weight_of_branch(model: onnx.ModelProto, stored: onnx.TensorProto) -> None:
    node = model.graph.node.add(op_type="If", input=["c"], output=["more"])
    branch = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
    branch.initializer.add().CopyFrom(stored)


def _as_sparse(model: onnx.ModelProto, stored: onnx.TensorProto) -> None:
    model.graph.sparse_initializer.add(dims=[1 << 20]).values.CopyFrom(stored)


def _in_function(model: onnx.ModelProto, stored: onnx.TensorProto) -> None:
    function = model.functions.add(name="f", domain="my")
    function.node.add().CopyFrom(onnx.helper.make_node("Constant", [], ["y"], value=stored))


def _as_default(model: onnx.ModelProto, stored: onnx.TensorProto) -> None:
    default = model.functions.add(name="f", domain="my").attribute_proto.add(name="value")
    default.type = onnx.AttributeProto.TENSOR
    default.t.CopyFrom(stored)


def _in_training(model: onnx.ModelProto, stored: onnx.TensorProto) -> None:
    model.training_info.add().algorithm.initializer.add().CopyFrom(stored)


@pytest.mark.parametrize("count", [4, 4096])
def test_new_values_of_a_tensor_in_a_data_file_are_in_one_again(tmp_path: Path, count: int) -> None:
    model = models.parse(models.CHAIN)
    array = np.arange(count, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "wa"))
    onnx.external_data_helper.set_external_data(model.graph.initializer[-1], "a.data")
    onnx.external_data_helper.write_external_data_tensors(model, str(tmp_path))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    document = Document.open(tmp_path / "model.onnx")
    document.apply("set_elements", scope=[], tensor=A, start=1, values=[9.0])
    document.apply("convert_tensor", scope=[], tensor=A, dtype="float16")
    array[1] = 9
    wanted = array.astype(np.float16)
    for node in ("first", "last"):
        save(document)
        assert entries(tmp_path)["wa"]["location"] == "model.onnx.data"
        stored = onnx.load(tmp_path / "model.onnx").graph.initializer[-1]
        assert np.array_equal(onnx.numpy_helper.to_array(stored), wanted)
        assert np.array_equal(tensor(document, "wa").read(), wanted)
        document.apply("rename_node", scope=[], node=node, name=f"{node} again")


def test_small_lists_stay_in_the_model(document: Document) -> None:
    """A runtime infers shapes from them, and reads no data file for that."""
    found = document.apply("set_external", scope=[], names=["w", "wa"])
    assert found.title.endswith("external; 1 small list kept in the model")
    assert (tensor(document, "w").is_external, tensor(document, "wa").is_external) == (False, True)
    with pytest.raises(EditError, match="1 list of less than 1024 bytes stays in the model"):
        document.apply("set_external", scope=[], names=["w"])


def test_a_data_file_of_the_model_grows_and_keeps_what_it_held(
    document: Document, tmp_path: Path
) -> None:
    old = (tmp_path / "c.data").read_bytes()
    document.apply("set_external", scope=[], names=["wb"], location="b.data")
    save(document)
    document.apply("set_external", scope=[], names=["wa"], location="c.data")
    save(document)
    assert (tmp_path / "c.data").read_bytes().startswith(old)
    assert saved_values(tmp_path) == {
        "w": (1, 2, 3), "wa": (0, 1, 2), "wb": (1, 2, 3), "wc": (2, 3, 4)
    }  # fmt: skip
    assert not document.changed_on_disk()
    document.apply("set_elements", scope=[], tensor={"initializer": "wc"}, start=0, values=[9])
    save(document)
    assert saved_values(tmp_path)["wc"] == (9, 3, 4)
    assert entries(tmp_path)["wc"]["location"] == "model.onnx.data", "an own file for what changed"
    assert entries(tmp_path)["wa"]["location"] == "c.data"
    document.undo()
    save(document)
    assert saved_values(tmp_path)["wc"] == (2, 3, 4)
    assert entries(tmp_path)["wb"]["location"] == "b.data"


def test_other_files_are_not_touched(document: Document, tmp_path: Path) -> None:
    (tmp_path / "other.data").write_bytes(b"mine")
    for location, why in [
        ("other.data", "is there already"), ("../x", "leaves the model folder"),
        ("/tmp/x", "leaves"), ("model.onnx", "own file"), ("a\\b", "leaves"), (".", "cannot be"),
    ]:  # fmt: skip
        with pytest.raises(EditError, match=why):
            document.apply("set_external", scope=[], names=["wa"], location=location)
    document.apply("set_external", scope=[], names=["wa"], location="late.data")
    (tmp_path / "late.data").write_bytes(b"mine too")
    remarks = save(document)
    assert any("late.data is another file" in remark for remark in remarks)
    assert (tmp_path / "other.data").read_bytes() == b"mine"
    assert (tmp_path / "late.data").read_bytes() == b"mine too"
    assert saved_values(tmp_path)["wa"] == (0, 1, 2)


def test_a_folder_that_leads_outside_is_not_written_to(
    document: Document, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    document.apply("set_external", scope=[], names=["wa"], location="sub/w.data")
    (tmp_path / "sub").symlink_to(outside)
    save(document)
    assert list(outside.iterdir()) == []
    assert saved_values(tmp_path)["wa"] == (0, 1, 2)
    with pytest.raises(EditError, match="cannot be written to"):
        document.apply("set_external", scope=[], names=["wb"], location="sub/w.data")
    with pytest.raises(EditError, match="cannot be written to"):
        document.apply("set_external", scope=[], names=["wb"], location="not-utf8-\udcff")


def test_a_save_that_fails_or_is_cancelled_leaves_all_as_it_was(
    document: Document, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    document.apply("set_external", scope=[], names=["wa"], location="new.data")
    document.apply("set_external", scope=[], names=["wb"], location="c.data")
    with pytest.raises(CancelledError):
        save(document, cancelled=lambda: True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "c.data").write_bytes(b"changed by another program")
    with pytest.raises(FileChangedError):
        save(document)
    assert not (tmp_path / "new.data").exists()


def test_elsewhere_the_data_comes_along(document: Document, tmp_path: Path) -> None:
    document.apply("set_external", scope=[], names=["wa"], location="sub/w.data")
    document.apply("set_elements", scope=[], tensor=A, start=1, values=[-1])
    other = tmp_path / "other"
    other.mkdir()
    save(document, other / "model.onnx")
    assert saved_values(other) == {
        "w": (1, 2, 3), "wa": (0, -1, 2), "wb": (1, 2, 3), "wc": (2, 3, 4)
    }  # fmt: skip
    assert (other / "sub" / "w.data").exists()
    assert not (tmp_path / "sub").exists()
    save(document, tmp_path / "third.onnx")
    assert saved_values(tmp_path, "third.onnx")["wa"] == (0, -1, 2)


def test_what_is_copied_takes_patches_and_pending_data_along(
    document: Document, tmp_path: Path
) -> None:
    document.apply("set_input", scope=[], node="second", index=1, value="wa")
    document.apply("set_elements", scope=[], tensor=A, start=2, values=[-5])
    patched_copy = fragment_of([document.main.nodes[1]])
    document.apply("set_external", scope=[], names=["wa"], location="w.data")
    pending_copy = fragment_of([document.main.nodes[1]])
    document.apply("set_elements", scope=[], tensor=A, start=2, values=[-6])
    other = Document.open(models.write(tmp_path, models.FUNCTIONS, "other.onnx"))
    for copy in (patched_copy, pending_copy):
        other.apply("paste_nodes", scope=[], fragment=copy.to_json(other))
        (pasted,) = other.main.initializers
        assert pasted.read(0, 3).tolist() == [0, 1, -5]
        assert not pasted.is_external
        other.undo()


def test_where_external_values_are_read_from(document: Document, tmp_path: Path) -> None:
    (tmp_path / "other.data").write_bytes(bytes(16) + np.full(SIZE, 7, np.float32).tobytes())
    for wrong in ({"offset": 20}, {"location": "nowhere.data"}, {"length": 4}, {"location": "/x"}):
        with pytest.raises(EditError):
            document.apply("set_external_entries", scope=[], name="wc", **wrong)
    with pytest.raises(EditError, match="in no data file"):
        document.apply("set_external_entries", scope=[], name="wa", offset=16)
    document.apply("set_external_entries", scope=[], name="wc", location="other.data", offset=16)
    assert set(tensor(document, "wc").read().tolist()) == {7.0}
    document.undo()
    assert tensor(document, "wc").read()[0] == 2
