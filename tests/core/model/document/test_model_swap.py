"""Another model takes the place of a document's as one edit, and a crash does not lose it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.checks.checker import Checker
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.model.document import Document, DocumentChange
from dld_tui.core.model.document.scripting.journal import crash_journals, forget_journal
from dld_tui.core.model.document.scripting.scripts import replay
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.edits.model_swap import PresentModel, keep_model
from dld_tui.core.model.shapes.staleness import Staleness
from dld_tui.core.model.tensors.payloads import payload_dir, resolve, sweep
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.killed import killed_after
from tests.support.sessions import bytes_of, tensor_in

SIZE = 40_000


def weighted(folder: Path, name: str, *, value: float, external: bool = False) -> Path:
    """Write a chain with a large weight ``big``, external in NAME.data where asked for."""
    model = models.parse(models.CHAIN)
    model.graph.name = name.partition(".")[0]
    array = np.full(SIZE, value, np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "big"))
    model.graph.node[1].input[1] = "big"
    if external:
        onnx.external_data_helper.set_external_data(model.graph.initializer[2], f"{name}.data")
        onnx.external_data_helper.write_external_data_tensors(model, str(folder))
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def big(document: Document) -> float:
    return float(tensor_in(document, "big").read()[-1])


def kept_files() -> list[Path]:
    return list(payload_dir().iterdir()) if payload_dir().exists() else []


def rename(document: Document, node: str, name: str) -> None:
    document.apply("rename_node", scope=[], node=node, name=name)


def test_checks_and_stale_types_are_of_the_model_that_is_there(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    checker, staleness = Checker(document), Staleness(document)
    checker.run()

    def heard(change: DocumentChange) -> None:
        checker.restart()
        staleness.changed(change)
        staleness.advance()

    document.on_change.append(heard)
    broken = models.write(tmp_path, models.CHAIN.replace("Mul(b, b)", "Mul(b, none)"), "o.onnx")
    document.main.inferred["b"] = found = document.main.value_type("x")  # type: ignore[assignment]
    document.apply("replace_model", model=keep_model(document, broken))
    assert "error" in {found.level for found in checker.run()}
    assert (document.main.stale, document.main.inferred) == (set(), {})
    document.apply("set_input", scope=[], node="second", index=0, value="x")
    assert document.main.stale == {"b", "c", "y"}
    document.undo()
    document.undo()
    assert [found for found in checker.run() if found.level == "error"] == []
    assert document.main.inferred == {"b": found}


def test_scripts_name_a_file(tmp_path: Path) -> None:
    document = Document.open(weighted(tmp_path, "m.onnx", value=1))
    result = weighted(tmp_path, "result.onnx", value=2)
    document.apply("replace_model", model={"file": str(result)})
    result.unlink()
    assert big(document) == 2
    refused: list[JSON] = [{"file": str(result)}, {"file": "\0"}, 7, {"raw": "*"}]
    for described in refused:
        with pytest.raises(EditError):
            document.apply("replace_model", model=described)
    kept = keep_model(document, tmp_path / "m.onnx")
    assert isinstance(kept, dict)
    with pytest.raises(EditError, match="whole file"):
        document.apply("replace_model", model={**kept, "length": SIZE})
    assert len(document.history.done) == 1


@pytest.mark.parametrize("external", [False, True])
def test_undo_and_redo_after_saving(tmp_path: Path, external: bool) -> None:
    path = weighted(tmp_path, "m.onnx", value=1, external=external)
    former = path.read_bytes()
    (tmp_path / "job").mkdir()
    result = weighted(tmp_path / "job", "m.onnx", value=2, external=external)
    document = Document.open(path)
    document.apply("replace_model", model=keep_model(document, result))
    save(document)
    assert onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[2])[0] == 2
    document.undo()
    assert (big(document), bytes_of(document), document.journal_error) == (1, former, None)
    save(document)
    assert path.read_bytes() == former
    document.redo()
    save(document, tmp_path / "elsewhere.onnx")
    loaded = onnx.load(tmp_path / "elsewhere.onnx")
    assert onnx.numpy_helper.to_array(loaded.graph.initializer[2])[0] == 2
    document.close()
    assert kept_files() == []


def test_a_result_with_external_data_is_kept_whole(tmp_path: Path) -> None:
    document = Document.open(weighted(tmp_path, "m.onnx", value=1))
    job = tmp_path / "job"
    job.mkdir()
    described = keep_model(document, weighted(job, "r.onnx", value=2, external=True), move=True)
    (job / "r.onnx.data").unlink()
    document.apply("replace_model", model=described)
    assert big(document) == 2
    save(document)
    assert entries_of(tmp_path / "m.onnx")["location"] == "m.onnx.data"
    assert onnx.numpy_helper.to_array(onnx.load(tmp_path / "m.onnx").graph.initializer[2])[0] == 2


def entries_of(path: Path) -> dict[str, str]:
    tensor = onnx.load(path, load_external_data=False).graph.initializer[2]
    return {entry.key: entry.value for entry in tensor.external_data}


def test_former_external_data_comes_along_to_another_folder(tmp_path: Path) -> None:
    document = Document.open(weighted(tmp_path, "m.onnx", value=1, external=True))
    result = weighted(tmp_path, "result.onnx", value=2)
    (tmp_path / "other").mkdir()
    document.apply("replace_model", model=keep_model(document, result))
    save(document, tmp_path / "other" / "m.onnx")
    document.undo()
    fresh = Document.open(tmp_path / "other" / "m.onnx")
    fresh.apply("replace_model", model=PresentModel(document).keep())
    assert big(fresh) == 1


def test_the_present_state_leaves_data_beside_the_file_there(tmp_path: Path) -> None:
    document = Document.open(weighted(tmp_path, "m.onnx", value=1, external=True))
    described = PresentModel(document).keep()
    assert resolve(document, described) == bytes_of(document)
    nowhere = Document(models.parse(models.CHAIN))
    assert resolve(nowhere, PresentModel(nowhere).keep()) == bytes_of(nowhere)


def test_large_results_are_moved_and_payloads_stay_in_the_file(tmp_path: Path) -> None:
    document = Document.open(weighted(tmp_path, "m.onnx", value=1))
    result = weighted(payload_folder(), "result.onnx", value=2)
    described = keep_model(document, result, move=True)
    assert isinstance(described, dict)
    assert not result.exists()
    document.apply("replace_model", model=described)
    assert tensor_in(document, "big").payload is not None
    assert [str(path) for path in kept_files()] == [described["file"]]
    document.close()
    assert kept_files() == []


def payload_folder() -> Path:
    payload_dir().mkdir(parents=True, exist_ok=True)
    return payload_dir()


@pytest.mark.parametrize(
    "content",
    [b"", b"\x08\x0a", b"\xff" * 99_999, b"\x3a\x05half"],
    ids=["empty", "no graph", "noise", "cut short"],
)
def test_what_is_no_model_never_replaces_one(tmp_path: Path, content: bytes) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    before = bytes_of(document)
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(content)
    with pytest.raises(InputError):
        keep_model(document, bad)
    with pytest.raises(EditError, match="cannot be read"):
        document.apply("replace_model", model={"file": str(bad)})
    assert (bytes_of(document), document.history.done, len(document.blobs)) == (before, [], 0)
    assert not document.dirty


AFTER_CRASH = {
    "plain": ("uno", 2),
    "undo": ("one", 1),
    "save undo": ("one", 1),
    "save undo redo": ("first", 2),
}
"""The name of the first node and the weight, by what was done."""


def test_a_crash_does_not_lose_it(tmp_path: Path) -> None:
    for steps in AFTER_CRASH:
        weighted(tmp_path, f"{steps}.onnx", value=1)
    result = weighted(tmp_path, "result.onnx", value=2)

    def work() -> None:
        opened = []  # a journal goes when its document is closed
        for steps in AFTER_CRASH:
            document = Document.open(tmp_path / f"{steps}.onnx", journaled=True)
            opened.append(document)
            document.apply("rename_node", scope=[], node="first", name="one")
            described = keep_model(document, result)
            document.apply("replace_model", model=described, title="convert")
            document.apply("rename_node", scope=[], node="first", name="uno")
            if "save" in steps:
                save(document)
            if "undo" in steps:
                document.undo()
                document.undo()
                if "redo" in steps:
                    document.redo()
            document.apply("rename_node", scope=[], node="last", name="end")

    killed_after(work)
    result.unlink()
    sweep()
    for steps, (first, value) in AFTER_CRASH.items():
        path = tmp_path / f"{steps}.onnx"
        (left,) = crash_journals(path)
        document = Document.open(path)
        assert replay(document, left.lines).refused == []
        forget_journal(left)
        names = [node.name for node in document.main.nodes]
        assert (names[0], names[3], big(document)) == (first, "end", value)
        save(document)
        document.close()
    assert kept_files() == []


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_lost_file_is_refused_and_the_other_edits_are_made(tmp_path: Path, damage: str) -> None:
    document = Document.open(weighted(tmp_path, "m.onnx", value=1), journaled=True)
    rename(document, "first", "one")
    described = keep_model(document, weighted(tmp_path, "result.onnx", value=2))
    document.apply("replace_model", model=described)
    rename(document, "last", "end")
    document.close(keep_journal=True)
    (file,) = kept_files()
    os.remove(file)
    if damage == "changed":
        file.write_bytes(b"other")
    lines = [{"edit": each.edit, **each.arguments} for each in document.history.done]
    fresh = Document.open(tmp_path / "m.onnx")
    outcome = replay(fresh, lines)
    ((number, why),) = outcome.refused
    assert (number, outcome.applied, "\n" in why) == (2, 2, False)
    assert ("File not found" if damage == "gone" else "another content") in why
    assert [node.name for node in fresh.main.nodes[::3]] == ["one", "end"]
