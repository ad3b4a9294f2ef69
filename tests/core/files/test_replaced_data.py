from __future__ import annotations

from pathlib import Path

from dld_tui.core.files.external import named_data_files, remove_unused
from tests.core.files.test_model_set import Opened
from tests.support.payloads import weights


def external(folder: Path, name: str) -> Path:
    """Write a model whose weights are in ``NAME.data``."""
    inline = weights(folder / "inline", [5000, 6000])
    Opened(inline).save(folder / name, limit=1000)
    inline.unlink()
    return folder / name


def test_only_what_has_the_name_of_the_model_is_named(tmp_path: Path) -> None:
    model = external(tmp_path, "m.onnx")
    assert named_data_files(model) == [tmp_path / "m.onnx.data"]
    assert named_data_files(tmp_path / "m.onnx.data") == []
    model.rename(tmp_path / "n.onnx")
    assert named_data_files(tmp_path / "n.onnx") == []


def test_what_a_model_of_the_folder_uses_stays(tmp_path: Path) -> None:
    model = external(tmp_path, "m.onnx")
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
