from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.errors import CancelledError, SaveError
from dld_tui.core.files import model_set
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.external import ExternalFiles
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.files.source import Source
from dld_tui.core.files.temporary import VIEW, hold_file, hold_folder, release
from dld_tui.core.files.wire import cut
from tests.support.payloads import typed_tensors, weights, write_model


class Opened:
    """What a document holds of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blobs = BlobTable()
        self.external = ExternalFiles(path)
        self.skeleton = cut(Source.open(path), self.blobs, threshold=64).model

    def view(
        self, *, values: bool = False, loadable: bool = False, folder: Path | None = None
    ) -> Path:
        return external_view(
            self.skeleton,
            self.blobs,
            folder or self.path.parent,
            external=self.external,
            values=values,
            loadable=loadable,
        )


def arrays(path: Path) -> dict[str, tuple[str, bytes]]:
    found = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer
    }
    return {name: (str(array.dtype), array.tobytes()) for name, array in found.items()}


def used_bytes(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir())


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that temporary files go to."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def test_structure_alone_takes_no_space_and_no_place_in_the_folder(
    home: Path, temporary: Path
) -> None:
    opened = Opened(weights(home / "m.onnx", [5 << 20, 7 << 20]))
    view = opened.view()
    assert os.listdir(home) == ["m.onnx"]
    assert view.is_relative_to(temporary)
    assert used_bytes(view.parent) < 20_000
    onnx.checker.check_model(view, full_check=True)
    model = onnx.load(view, load_external_data=False)
    assert [list(tensor.dims) for tensor in model.graph.initializer] == [[5 << 18], [7 << 18]]
    discard_view(view)
    assert os.listdir(temporary) == []
    discard_view(view)  # twice is no error


def test_a_loadable_view_keeps_values_up_to_a_limit_in_all(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_set, "_MOST_KEPT", 17_000)
    path = weights(home / "m.onnx", [6000, 8000, 7000, 3000])
    whole, seen = arrays(path), arrays(Opened(path).view(loadable=True))
    kept = [seen[name] == array for name, array in whole.items()]
    assert kept == [True, True, False, True]


def test_a_loadable_view_keeps_small_values_and_integers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_set, "_SMALL", 400)
    tensors = [
        numpy_helper.from_array(np.ones(50, kind), kind)
        for kind in ("float32", "float64", "int32", "int64", "uint64", "bool")
    ]
    tensors += [numpy_helper.from_array(np.ones(500, bool), "flags")]
    graph = helper.make_graph([], "g", [], [], initializer=tensors)
    path = write_model(home / "m.onnx", helper.make_model(graph))
    whole, seen = arrays(path), arrays(Opened(path).view(loadable=True))
    lost = [name for name, array in whole.items() if seen[name] != array]
    assert lost == ["float64", "uint64"]


def test_every_encoding_is_readable_in_a_view(home: Path) -> None:
    tensors = [tensor for tensor in typed_tensors() if tensor.name != "string"]
    graph = helper.make_graph([], "g", [], [], initializer=tensors)
    path = write_model(home / "m.onnx", helper.make_model(graph))
    view = Opened(path).view(values=True)
    assert arrays(view) == arrays(path)
    model = onnx.load(view, load_external_data=False)
    assert all(t.data_location == TensorProto.EXTERNAL for t in model.graph.initializer)
    discard_view(view)
    assert os.listdir(home) == ["m.onnx"]


def test_a_model_that_was_replaced_meanwhile_is_copied(home: Path) -> None:
    path = weights(home / "m.onnx", [50_000])
    before = arrays(path)
    opened = Opened(path)
    os.replace(weights(home / "n.onnx", [50_000]), path)
    view = opened.view(values=True)
    assert arrays(view) == before
    discard_view(view)
    gc.collect()
    assert os.listdir(home) == ["m.onnx"]


def test_a_linked_model_is_copied_because_tools_refuse_links(home: Path, tmp_path: Path) -> None:
    weights(tmp_path / "real.onnx", [50_000])
    (home / "m.onnx").symlink_to(tmp_path / "real.onnx")
    view = Opened(home / "m.onnx").view(values=True)
    onnx.checker.check_model(view)
    assert arrays(view) == arrays(tmp_path / "real.onnx")
    discard_view(view)


def test_a_read_only_folder(home: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = weights(home / "m.onnx", [50_000])
    # The mode would not stop root.
    monkeypatch.setattr(os, "access", lambda *_: False)
    view = Opened(path).view(values=True)
    assert view.is_relative_to(temporary)
    assert arrays(view) == arrays(path)
    discard_view(view)
    assert os.listdir(temporary) == []
    assert os.listdir(home) == ["m.onnx"]


def test_a_folder_that_refuses_files_in_spite_of_its_mode(
    home: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = weights(home / "m.onnx", [50_000])

    def refuse(*_: object) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dld_tui.core.files.model_set.hold_file", refuse)
    view = Opened(path).view(values=True)
    assert view.is_relative_to(temporary)
    assert arrays(view) == arrays(path)
    discard_view(view)
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("values", [True, False])
def test_views_of_killed_programs_are_removed(home: Path, temporary: Path, values: bool) -> None:
    """Beside the model, and where views without values are; a view of a living program stays."""
    opened = Opened(weights(home / "m.onnx", [5000]))
    left = home if values else temporary
    file = hold_file(left)
    file.with_name(f"{file.name}.data").write_bytes(b"1")
    for path in (file, hold_folder(VIEW, left)):
        release(path)
    views = [opened.view(values=values) for _ in range(2)]
    assert all(view.exists() for view in views)
    assert len(os.listdir(left)) == (3 if values else 2)
    for view in views:
        discard_view(view)
    assert sorted([*os.listdir(home), *os.listdir(temporary)]) == ["m.onnx"]


@pytest.fixture
def external(home: Path) -> Path:
    """Return a model whose weights, a large and a small one, are external, and one is missing."""
    path = weights(home / "m.onnx", [40_000, 80, 60_000])
    model = onnx.load(path)
    (home / "sub").mkdir()
    for tensor in model.graph.initializer:
        (home / "sub" / tensor.name).write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"sub/{tensor.name}")
    return write_model(path, model)


def test_external_data_are_referred_to(external: Path) -> None:
    view = Opened(external).view(values=True)
    assert arrays(view) == arrays(external)
    discard_view(view)
    assert sorted(os.listdir(external.parent)) == ["m.onnx", "sub"]


def test_small_external_data_are_there_without_values(external: Path, temporary: Path) -> None:
    """Shape inference reads the shapes that small tensors hold, wherever they are."""
    (external.parent / "sub" / "w2").unlink()
    view = Opened(external).view()
    onnx.checker.check_model(view, full_check=True)
    model = onnx.load(view, load_external_data=False)
    places = {tensor.name: tensor.data_location for tensor in model.graph.initializer}
    assert places == {
        "w0": TensorProto.EXTERNAL,
        "w1": TensorProto.DEFAULT,
        "w2": TensorProto.EXTERNAL,
    }
    assert model.graph.initializer[1].raw_data == (external.parent / "sub" / "w1").read_bytes()
    assert used_bytes(view.parent) < 20_000
    discard_view(view)


def test_claims_of_absurd_size_are_not_believed(external: Path) -> None:
    model = onnx.load(external, load_external_data=False)
    (external.parent / "sub" / "w0").unlink()
    model.graph.initializer[0].dims[0] = 2**62
    view = Opened(write_model(external, model)).view()
    kept = onnx.load(view, load_external_data=False).graph.initializer[0]
    assert {entry.value for entry in kept.external_data} == {"sub/w0"}
    discard_view(view)


def test_a_broken_payload_is_left_to_the_tool(home: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.INT64, dims=[3], int64_data=range(500))
    graph = helper.make_graph([], "g", [], [], initializer=[tensor])
    path = write_model(home / "m.onnx", helper.make_model(graph))
    view = Opened(path).view(values=True)
    assert view.read_bytes() == path.read_bytes()
    discard_view(view)


def test_failure_and_cancelling_leave_nothing(
    home: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened(weights(home / "m.onnx", [50_000]))
    with pytest.raises(CancelledError):
        external_view(opened.skeleton, opened.blobs, home, values=True, cancelled=lambda: True)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for values in (True, False):
        with pytest.raises(SaveError, match="disk is full"):
            opened.view(values=values)
    assert os.listdir(home) == ["m.onnx"]
    assert os.listdir(temporary) == []


def test_discarding_touches_nothing_else(home: Path) -> None:
    path = weights(home / "m.onnx", [500])
    discard_view(path)
    assert path.exists()


def test_real_models_pass_the_checker_as_views(real_models: Path) -> None:
    for name in ("minilm_l6_int8.onnx", "silero18_ext_many/model.onnx", "silero_vad_16k_op15.onnx"):
        path = real_models / "onnx" / name
        view = Opened(path).view()
        onnx.checker.check_model(view)
        assert used_bytes(view.parent) < 3_000_000
        discard_view(view)
