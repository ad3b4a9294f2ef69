from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.errors import SaveError
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.external import ExternalFiles, named_data_files, remove_unused
from dld_tui.core.files.model_set import ModelSet, plan_model, unused_data_name
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import cut
from tests.support.payloads import typed_tensors, weights, write_model

pytestmark = pytest.mark.usefixtures("replaces_all")


class Opened:
    """What a document holds of a file."""

    def __init__(self, path: Path) -> None:
        self.source = Source.open(path)
        self.blobs = BlobTable()
        self.external = ExternalFiles(path)
        self.skeleton = cut(self.source, self.blobs).model

    def save(self, target: Path, limit: int = 2**31 - 1) -> tuple[ModelSet, list[str]]:
        plan = plan_model(self.skeleton, self.blobs, target, external=self.external, limit=limit)
        remarks = plan.write(like=self.source)
        self.source = plan.adopt(self.blobs, self.external)
        return plan, remarks


def values_of(path: Path) -> dict[str, object]:
    """Return what the onnx package reads from a model, comparable even where it is not a number."""
    arrays = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer
    }
    return {
        name: (str(array.dtype), array.tolist() if array.dtype == object else array.tobytes())
        for name, array in arrays.items()
    }


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_every_encoding_can_become_external(tmp_path: Path) -> None:
    tensors = typed_tensors()
    for tensor in tensors:  # larger than the threshold, so that they are cut out
        tensor.CopyFrom(numpy_helper_copy(tensor, 100))
    graph = helper.make_graph([], "g", [], [], initializer=tensors)
    path = write_model(tmp_path / "m.onnx", helper.make_model(graph))
    values = values_of(path)
    assert len(values) == len(tensors)
    _, remarks = Opened(path).save(path, limit=70_000)
    assert len(remarks) == 1
    assert values_of(path) == values
    model = onnx.load(path, load_external_data=False)
    inside = [t.name for t in model.graph.initializer if t.data_location != TensorProto.EXTERNAL]
    assert inside == ["string"]


def numpy_helper_copy(tensor: TensorProto, times: int) -> TensorProto:
    """Return a tensor with the same kind of content, several times as long."""
    longer = TensorProto()
    longer.CopyFrom(tensor)
    longer.dims[0] *= times
    for field, value in tensor.ListFields():
        if field.name.endswith("_data"):
            if isinstance(value, bytes):
                longer.raw_data = value * times
            elif field.name != "external_data":
                getattr(longer, field.name).extend(list(value) * (times - 1))
    return longer


def test_saving_again_writes_only_the_model(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [5000, 6000, 8192])
    values = values_of(path)
    opened = Opened(path)
    opened.save(path, limit=10_000)
    inode = (tmp_path / "m.onnx.data").stat().st_ino
    plan, remarks = opened.save(path, limit=10_000)
    assert plan.data is None
    assert remarks == []
    assert names(tmp_path) == ["m.onnx", "m.onnx.data"]
    assert (tmp_path / "m.onnx.data").stat().st_ino == inode
    assert values_of(path) == values


def test_saving_again_after_the_data_file_was_replaced_makes_a_new_one(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [5000, 6000, 8192])
    values = values_of(path)
    opened = Opened(path)
    opened.save(path, limit=10_000)
    (tmp_path / "theirs").write_bytes(b"theirs")
    os.replace(tmp_path / "theirs", tmp_path / "m.onnx.data")
    opened.save(path, limit=10_000)
    assert (tmp_path / "m.onnx.data").read_bytes() == b"theirs"
    assert names(tmp_path) == ["m.onnx", "m.onnx.1.data", "m.onnx.data"]
    assert values_of(path) == values


def test_data_files_are_never_overwritten(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [5000, 6000])
    (tmp_path / "m.onnx.data").write_bytes(b"of another model")
    (tmp_path / "m.onnx.1.data").symlink_to("nowhere")
    assert unused_data_name(path) == "m.onnx.2.data"
    Opened(path).save(path, limit=2000)
    assert (tmp_path / "m.onnx.data").read_bytes() == b"of another model"
    assert (tmp_path / "m.onnx.2.data").stat().st_size == 8192 + 6000


def test_what_cannot_be_external_may_be_too_much(tmp_path: Path) -> None:
    node = helper.make_node("EPContext", [], ["y"], cache=b"\xff" * 50_000)
    path = write_model(
        tmp_path / "m.onnx", helper.make_model(helper.make_graph([node], "g", [], []))
    )
    before = path.read_bytes()
    with pytest.raises(SaveError, match="cannot be external data"):
        Opened(path).save(path, limit=10_000)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["m.onnx"]


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """Return a model with three weights in two external files."""
    folder = tmp_path / "from"
    (folder / "sub").mkdir(parents=True)
    path = weights(folder / "m.onnx", [400, 8000, 12_000, 40])
    model = onnx.load(path)
    first, second, third, _ = model.graph.initializer
    (folder / "a.bin").write_bytes(b"unused--" + second.raw_data)
    (folder / "sub" / "b.bin").write_bytes(first.raw_data + third.raw_data)
    for tensor, location, offset in (
        (first, "sub/b.bin", 0),
        (second, "a.bin", 8),
        (third, "sub/b.bin", 400),
    ):
        length = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        tensor.external_data.add(key="offset", value=str(offset))
        if tensor is not third:
            tensor.external_data.add(key="length", value=str(length))
        tensor.external_data.add(key="checksum", value="0" * 40)
    return write_model(path, model)


def test_external_data_stay_where_they_are_in_the_same_folder(external: Path) -> None:
    before = external.read_bytes()
    plan, remarks = Opened(external).save(external.with_name("n.onnx"))
    assert (plan.data, remarks) == (None, [])
    assert external.with_name("n.onnx").read_bytes() == before
    assert names(external.parent) == ["a.bin", "m.onnx", "n.onnx", "sub"]


def test_external_data_come_along_to_another_folder(external: Path, tmp_path: Path) -> None:
    values = values_of(external)
    (tmp_path / "to").mkdir()
    target = tmp_path / "to" / "n.onnx"
    opened = Opened(external)
    _, remarks = opened.save(target)
    assert names(tmp_path / "to") == ["n.onnx", "n.onnx.data"]
    assert remarks == ["24.3 kB of external data are copied to n.onnx.data"]
    assert values_of(target) == values
    onnx.checker.check_model(target)
    # The old folder is not needed any more, and saving again copies nothing.
    inode = (tmp_path / "to" / "n.onnx.data").stat().st_ino
    plan, remarks = opened.save(target)
    assert (plan.data, remarks) == (None, [])
    assert (tmp_path / "to" / "n.onnx.data").stat().st_ino == inode
    assert values_of(target) == values
    # To a third folder, and back home.
    (tmp_path / "third").mkdir()
    opened.save(tmp_path / "third" / "n.onnx")
    opened.save(tmp_path / "third" / "n.onnx")
    assert names(tmp_path / "third") == ["n.onnx", "n.onnx.data"]
    assert values_of(tmp_path / "third" / "n.onnx") == values
    opened.save(external)
    assert values_of(external) == values
    assert names(external.parent) == ["a.bin", "m.onnx", "sub"]


def test_missing_data_are_remarked_on_and_keep_their_entry(external: Path, tmp_path: Path) -> None:
    (external.parent / "a.bin").unlink()
    (tmp_path / "to").mkdir()
    target = tmp_path / "to" / "m.onnx"
    _, remarks = Opened(external).save(target)
    assert any("External data a.bin not found: its entry is kept" in remark for remark in remarks)
    model = onnx.load(target, load_external_data=False)
    locations = [
        entry.value
        for tensor in model.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    ]
    assert locations == ["m.onnx.data", "a.bin", "m.onnx.data"]


def test_same_data_already_there_are_not_copied(external: Path, tmp_path: Path) -> None:
    """A folder that is a link to the model's own is the same folder."""
    (tmp_path / "link").symlink_to("from")
    plan, _ = Opened(external).save(tmp_path / "link" / "n.onnx")
    assert plan.data is None
    assert values_of(external.with_name("n.onnx")) == values_of(external)


def test_a_failed_save_leaves_nothing_new(
    external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "to").mkdir()
    target = tmp_path / "to" / "m.onnx"
    target.write_bytes(b"old")
    real = os.replace

    def replace(old: str, new: Path) -> None:
        if new == target:
            raise OSError(5, "Input/output error")
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(SaveError):
        Opened(external).save(target)
    assert names(tmp_path / "to") == ["m.onnx"]
    assert target.read_bytes() == b"old"


def external_of_replaced_data(folder: Path, name: str) -> Path:
    """Write a model whose weights are in ``NAME.data``."""
    inline = weights(folder / "inline", [5000, 6000])
    Opened(inline).save(folder / name, limit=1000)
    inline.unlink()
    return folder / name


def test_only_what_has_the_name_of_the_model_is_named(tmp_path: Path) -> None:
    model = external_of_replaced_data(tmp_path, "m.onnx")
    assert named_data_files(model) == [tmp_path / "m.onnx.data"]
    assert named_data_files(tmp_path / "m.onnx.data") == []
    model.rename(tmp_path / "n.onnx")
    assert named_data_files(tmp_path / "n.onnx") == []


def test_what_a_model_of_the_folder_uses_stays(tmp_path: Path) -> None:
    model = external_of_replaced_data(tmp_path, "m.onnx")
    data = named_data_files(model)
    assert remove_unused(data, model) == []
    content = model.read_bytes()
    weights(model, [10])
    other = tmp_path / "other.onnx"
    other.write_bytes(content)
    assert remove_unused(data, model) == []
    other.write_bytes(b"\x08\x99broken")
    assert remove_unused(data, model) == [], "who cannot be read may need it"
    other.unlink()
    link, gone = tmp_path / "link", tmp_path / "gone"
    link.symlink_to(data[0])
    assert remove_unused([*data, link, gone], model) == data
    assert not data[0].exists()
    assert link.is_symlink()
