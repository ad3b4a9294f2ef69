from __future__ import annotations

import hashlib
from pathlib import Path

import onnx.parser
import pytest

from dld_tui.core.codec import encode
from dld_tui.core.errors import InputError
from dld_tui.core.events import Progress
from dld_tui.core.model.document import identity
from dld_tui.core.model.document.document import Document

MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


def identify(path: Path, document: Document) -> tuple[list[Progress], identity.ModelIdentity]:
    steps = identity.identify(path, document)
    progress = []
    while True:
        try:
            progress.append(next(steps))
        except StopIteration as end:
            return progress, end.value


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def test_the_facts_of_a_file(model: Path) -> None:
    document = Document.open(model)
    progress, found = identify(model, document)
    document.close()

    status = model.stat()
    assert encode(found) == {
        "path": str(model),
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
        "opsets": {"": 17},
        "nodes": 1,
    }
    assert progress[-1].done == progress[-1].total == status.st_size


def test_a_large_file_is_not_read(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "HASHED_BYTES", 10)
    document = Document.open(model)
    progress, found = identify(model, document)
    document.close()

    assert found.sha256 is None
    assert progress == []


def test_a_file_that_is_gone(model: Path) -> None:
    document = Document.open(model)
    model.unlink()
    with pytest.raises(InputError, match="File not found"):
        identify(model, document)
    document.close()
