"""Saving never loses what was there, and takes the data along."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from dld_tui.core.errors import CancelledError, FileChangedError, SaveError, UsageError
from dld_tui.core.files import writer
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import (
    DataMode,
    DataToCopy,
    data_to_copy,
    save,
    skeleton_bytes,
    snapshot,
)
from tests.core.model.shapes.test_staleness import TYPED
from tests.support import models
from tests.support.conversions import NESTED
from tests.support.sessions import tensor_in


def with_external(folder: Path, location: str = "w.bin") -> Path:
    model = models.parse(models.CHAIN)
    values = np.arange(4096, dtype=np.float32)
    (folder / "w.bin").write_bytes(values.tobytes())
    tensor = model.graph.initializer.add(
        name="big", data_type=1, dims=[4096], data_location=onnx.TensorProto.EXTERNAL
    )
    tensor.external_data.add(key="location", value=location)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def renamed(document: Document) -> Document:
    document.apply("rename_node", scope=[], node="first", name="renamed")
    return document


def test_a_file_that_another_program_changed_is_not_overwritten(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    document = renamed(Document.open(path))
    path.write_bytes(b"somebody else's")
    with pytest.raises(FileChangedError, match="changed the file"):
        save(document)
    assert path.read_bytes() == b"somebody else's"
    save(document, force=True)
    assert onnx.load(path).graph.node[0].name == "renamed"


def test_a_new_model_needs_a_path_and_then_belongs_to_it(tmp_path: Path) -> None:
    document = Document.new({"": 21})
    with pytest.raises(UsageError):
        save(document)
    save(document, tmp_path / "new.onnx")
    assert document.path == tmp_path / "new.onnx"
    assert not document.dirty
    assert onnx.load(tmp_path / "new.onnx").opset_import[0].version == 21


def test_existing_files_are_kept_unless_asked(tmp_path: Path) -> None:
    document = renamed(Document.open(models.write(tmp_path, models.CHAIN)))
    (tmp_path / "other.onnx").write_bytes(b"old")
    with pytest.raises(SaveError):
        save(document, tmp_path / "other.onnx", overwrite=False)
    assert (tmp_path / "other.onnx").read_bytes() == b"old"
    assert document.dirty


def test_external_data_stays_beside_the_model_and_comes_along_to_another_folder(
    tmp_path: Path,
) -> None:
    document = renamed(Document.open(with_external(tmp_path)))
    save(document)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "w.bin"]
    (tmp_path / "elsewhere").mkdir()
    remarks = save(document, tmp_path / "elsewhere" / "copy.onnx")
    assert any("copied" in remark for remark in remarks)
    loaded = onnx.load(tmp_path / "elsewhere" / "copy.onnx")
    tensor = next(t for t in loaded.graph.initializer if t.name == "big")
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), np.arange(4096))
    np.testing.assert_array_equal(tensor_in(document, "big").read(), np.arange(4096))


def test_data_that_is_named_by_a_way_up_inside_of_the_folder_comes_along(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "elsewhere").mkdir()
    path = with_external(tmp_path, "s/../w.bin")
    onnx.checker.check_model(path)  # ONNX takes it, so that it leaves no folder
    remarks = save(renamed(Document.open(path)), tmp_path / "elsewhere" / "copy.onnx")
    assert remarks == ["16.4 kB of external data are copied to copy.onnx.data"]
    loaded = onnx.load(tmp_path / "elsewhere" / "copy.onnx")
    np.testing.assert_array_equal(
        onnx.numpy_helper.to_array(loaded.graph.initializer[-1]), np.arange(4096)
    )


def test_a_change_of_external_data_is_noticed_too(tmp_path: Path) -> None:
    document = renamed(Document.open(with_external(tmp_path)))
    assert tensor_in(document, "big").problem is None
    (tmp_path / "w.bin").write_bytes(b"\1" * 16384)
    with pytest.raises(FileChangedError):
        save(document)


def test_the_hugging_face_cache_is_only_read(tmp_path: Path) -> None:
    folder = tmp_path / "models--a--b" / "snapshots" / "0123"
    folder.mkdir(parents=True)
    document = renamed(Document.open(models.write(folder, models.CHAIN)))
    with pytest.raises(SaveError, match="Hugging Face cache is not written to"):
        save(document)


def test_a_save_can_be_stopped_and_leaves_the_old_file(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    before = path.read_bytes()
    document = renamed(Document.open(path))
    with pytest.raises(CancelledError):
        save(document, cancelled=lambda: True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
    assert document.dirty


def sparse(folder: Path, size: int = 64 << 20) -> Path:
    """Write a model whose data file has a page of values, a hole, and a page at its end."""
    data = folder / "holes.data"
    with data.open("wb") as file:
        file.write(bytes(range(256)) * 16)
        file.seek(size - 4096)
        file.write(b"\x01" * 4096)
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.UINT8, dims=[size])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "holes.data"), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    node = onnx.helper.make_node("Identity", ["w"], ["y"])
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, [size])
    graph = onnx.helper.make_graph([node], "g", [], [output], [tensor])
    path = folder / "holes.onnx"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return path


def test_a_copy_of_data_keeps_its_holes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = sparse(tmp_path), tmp_path / "other"
    other.mkdir()
    before = (tmp_path / "holes.data").stat()
    document = Document.open(path)
    expected = DataToCopy(64 << 20, before.st_blocks * 512, can_reflink=False)
    monkeypatch.setattr(writer, "_share", lambda source, descriptor: False)
    assert data_to_copy(document, other / "m.onnx") == expected
    save(document, other / "m.onnx")
    document.close()

    copied = other / "m.onnx.data"
    assert copied.read_bytes() == (tmp_path / "holes.data").read_bytes()
    assert before.st_blocks * 512 < 1 << 20
    assert copied.stat().st_blocks <= before.st_blocks


def test_data_is_linked_and_stays_the_same_file(tmp_path: Path) -> None:
    path, other = sparse(tmp_path), tmp_path / "other"
    other.mkdir()
    document = Document.open(path)
    (remark,) = save(document, other / "m.onnx", data="link")
    assert "holes.data is linked" in remark
    assert "onnx loads neither model" in remark
    for both in (path, other / "m.onnx"):
        with pytest.raises(onnx.checker.ValidationError, match="hard link"):
            onnx.load(both)
    linked = other / "holes.data"
    assert linked.samefile(tmp_path / "holes.data")
    # Saved again, there or elsewhere in that folder, nothing is copied.
    assert data_to_copy(document, other / "again.onnx") == DataToCopy()
    assert save(document, other / "again.onnx") == []
    document.close()
    assert sorted(one.name for one in other.iterdir()) == ["again.onnx", "holes.data", "m.onnx"]
    read = Document.open(other / "m.onnx")
    assert tensor_in(read, "w").read(0, 3).tolist() == [0, 1, 2]
    read.close()


def test_links_of_a_save_that_fails_are_taken_back(tmp_path: Path) -> None:
    path, other = sparse(tmp_path), tmp_path / "other"
    other.mkdir()
    (other / "m.onnx").write_bytes(b"")
    document = Document.open(path)
    with pytest.raises(SaveError):
        save(document, other / "m.onnx", overwrite=False, data="link")
    document.close()
    assert [one.name for one in other.iterdir()] == ["m.onnx"]


def test_data_of_bodies_is_not_linked_as_no_runtime_takes_it_then(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
m (bool p, float[2] x) => (float[2] y)
{ y = If (p) < then_branch = a () => (float[2] t) <float[2] w = {1, 2}> { t = Add(x, w) },
               else_branch = b () => (float[2] t) { t = Neg(x) } > }"""
    model = onnx.parser.parse_model(text)
    (weight,) = model.graph.node[0].attribute[0].g.initializer
    numbers = onnx.numpy_helper.to_array(weight).tobytes()
    (tmp_path / "w.data").write_bytes(numbers)
    weight.ClearField("float_data")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.data")
    path, other = tmp_path / "m.onnx", tmp_path / "other"
    path.write_bytes(model.SerializeToString())
    other.mkdir()
    document = Document.open(path)
    with pytest.raises(SaveError, match="the weights of bodies"):
        save(document, other / "m.onnx", data="link")
    assert list(other.iterdir()) == []
    save(document, other / "m.onnx")
    document.close()
    copied = onnx.load(other / "m.onnx").graph.node[0].attribute[0].g.initializer[0]
    assert onnx.numpy_helper.to_array(copied).tobytes() == numbers


class FakeClones:
    """An ioctl that copies where the file system of this machine may have no reflinks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: int = 0) -> None:
        self.error = error
        self.calls = 0
        monkeypatch.setattr(fcntl, "ioctl", self)

    def __call__(self, target: int, request: int, source: int) -> int:
        assert request == 0x40049409  # FICLONE
        self.calls += 1
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        size = os.fstat(source).st_size
        os.ftruncate(target, size)
        for at in (0, size - 4096):  # what sparse() has
            os.pwrite(target, os.pread(source, 4096, at), at)
        return 0


def test_data_is_reflinked_and_is_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = sparse(tmp_path), tmp_path / "other"
    other.mkdir()
    ioctl = FakeClones(monkeypatch)
    document = Document.open(path)
    assert data_to_copy(document, other / "m.onnx").can_reflink
    assert save(document, other / "m.onnx", data="reflink") == []
    assert ioctl.calls == 2  # the trial, and the file
    cloned = other / "holes.data"
    # Saved again, there or elsewhere in that folder, nothing is copied, until it is changed.
    assert data_to_copy(document, other / "again.onnx") == DataToCopy()
    assert save(document) == []
    assert save(document, other / "again.onnx") == []
    os.utime(cloned, (1, 1))
    [remark] = save(document, other / "third.onnx")
    assert "copied to third.onnx.data" in remark
    document.close()
    for name in ("again.onnx", "third.onnx", "third.onnx.data"):
        (other / name).unlink()
    assert not cloned.samefile(tmp_path / "holes.data")
    assert cloned.read_bytes() == (tmp_path / "holes.data").read_bytes()
    assert sorted(one.name for one in other.iterdir()) == ["holes.data", "m.onnx"]
    read = Document.open(other / "m.onnx")
    assert tensor_in(read, "w").read(0, 3).tolist() == [0, 1, 2]
    read.close()


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EXDEV, errno.ENOTTY, errno.EINVAL])
def test_data_is_copied_where_no_blocks_can_be_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    path, other = sparse(tmp_path), tmp_path / "other"
    other.mkdir()
    FakeClones(monkeypatch, error)
    document = Document.open(path)
    assert not data_to_copy(document, other / "m.onnx").can_reflink
    remark, _ = save(document, other / "m.onnx", data="reflink")
    document.close()
    assert remark == "holes.data is copied: its blocks cannot be shared there"
    assert sorted(one.name for one in other.iterdir()) == ["m.onnx", "m.onnx.data"]
    assert (other / "m.onnx.data").read_bytes() == (tmp_path / "holes.data").read_bytes()


@pytest.mark.parametrize("data", ["link", "reflink"])
def test_each_of_several_data_files_is_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: DataMode
) -> None:
    path, other = sparse(tmp_path, 8192), tmp_path / "other"
    other.mkdir()
    FakeClones(monkeypatch, errno.EOPNOTSUPP)
    model = onnx.load(path, load_external_data=False)
    for name in ("v", "w"):
        model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
        model.graph.initializer[-1].name = f"{name}2"
        model.graph.initializer[-1].external_data[0].value = f"{name}.data"
        (tmp_path / f"{name}.data").write_bytes(name.encode() * 8192)
    path.write_bytes(model.SerializeToString())
    (other / "holes.data").touch()
    document = Document.open(path)
    remarks = save(document, other / "m.onnx", data=data)
    document.close()
    told = {"link": "linked", "reflink": "copied"}[data]
    found = [remark.split(":")[0] for remark in remarks[:2]]
    assert found == [f"{name}.data is {told}" for name in "vw"]


def test_a_clone_that_fails_otherwise_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = sparse(tmp_path), tmp_path / "other"
    other.mkdir()
    FakeClones(monkeypatch, errno.ENOSPC)
    document = Document.open(path)
    with pytest.raises(SaveError, match="cannot be linked: No space left"):
        save(document, other / "m.onnx", data="reflink")
    document.close()
    assert list(other.iterdir()) == []


def parsed(document: Document) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(b"".join(snapshot(document)))


@pytest.mark.parametrize("text", [models.CHAIN, models.BRANCHES, models.FUNCTIONS, NESTED, TYPED])
def test_it_is_the_model_at_all_levels(text: str) -> None:
    model = models.parse(text)
    before = model.SerializeToString(deterministic=True)
    document = Document(models.parse(text))

    assert parsed(document).SerializeToString(deterministic=True) == before
    # Nothing was put into the messages for it.
    assert skeleton_bytes(document) == onnx.ModelProto.FromString(before).SerializeToString()


def test_nodes_without_content_keep_their_place() -> None:
    model = models.parse(models.CHAIN)
    model.graph.node.insert(1, onnx.NodeProto())
    document = Document(model)

    assert [node.op_type for node in parsed(document).graph.node][:3] == ["Relu", "", "Add"]


def test_doubtful_declarations_are_left_out() -> None:
    document = Document(models.parse(TYPED))
    document.main.touched = {"b"}

    assert [info.name for info in parsed(document).graph.value_info] == ["a", "other"]


def test_every_step_is_small() -> None:
    nodes = [onnx.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(2_000)]
    body = onnx.helper.make_graph(nodes, "body", [], [])
    whole = onnx.helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    graph = onnx.helper.make_graph([*nodes[:300], whole, *nodes], "big", [], [])
    model = onnx.helper.make_model(graph)
    whole_model = onnx.ModelProto.FromString(model.SerializeToString())

    steps = list(snapshot(Document(model)))
    assert len(steps) > 30  # 6,000 nodes, 200 a step
    assert onnx.ModelProto.FromString(b"".join(steps)) == whole_model


def test_payloads_stay_cut_out(tmp_path: Path) -> None:
    weight = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [100_000], b"\1" * 400_000, True)
    model = models.parse(models.CHAIN)
    model.graph.initializer.append(weight)
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")

    assert sum(len(part) for part in snapshot(document)) < 2_000
    document.close()
