"""Large payloads of edits are in files that live as long as somebody needs them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import CancelledError, EditError, SaveError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.scripting.journal import crash_journals, forget_journal
from dld_tui.core.model.document.scripting.scripts import replay
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.tensors.payloads import (
    INLINE_LIMIT,
    PayloadStore,
    decode_message,
    encode_message,
    payload_blob,
    payload_dir,
    reference,
    resolve,
    scratch_folder,
    sweep,
    write_payload,
)
from dld_tui.core.process.paths import state_dir
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.killed import killed_after
from tests.support.sessions import tensor_in

LARGE = os.urandom(INLINE_LIMIT + 1)


def opened(tmp_path: Path, text: str = models.CHAIN) -> Document:
    return Document.open(models.write(tmp_path, text), journaled=True)


def files() -> list[Path]:
    return list(payload_dir().iterdir()) if payload_dir().exists() else []


def bytes_of(payload: bytes | Blob) -> bytes:
    return payload if isinstance(payload, bytes) else payload.read()


def test_large_payloads_are_written_once_and_go_with_the_document(tmp_path: Path) -> None:
    document = opened(tmp_path)
    described = reference(document, LARGE)
    again = reference(document, document.spill.append(LARGE))
    assert described == again
    assert isinstance(described, dict)
    assert [str(path) for path in files()] == [described["file"]]
    assert [path.stat().st_mode & 0o777 for path in files()] == [0o600]
    assert bytes_of(resolve(document, described)) == LARGE
    other = opened(tmp_path)
    assert bytes_of(resolve(other, described)) == LARGE
    document.close()
    assert len(files()) == 1, "another document uses it"
    other.close()
    assert files() == []


def test_varints_keep_the_field_that_they_are_of(tmp_path: Path) -> None:
    document = opened(tmp_path)
    for data in (b"\1\2", LARGE):
        blob = document.spill.append(data, "int32_data")
        found = payload_blob(document, reference(document, blob))
        assert (found.field, found.read()) == ("int32_data", data)


def test_gone_and_changed_payloads_are_refused(tmp_path: Path) -> None:
    document = opened(tmp_path)
    described = reference(document, LARGE)
    assert isinstance(described, dict)
    fresh = opened(tmp_path)
    path = Path(str(described["file"]))
    path.chmod(0o600)
    path.write_bytes(LARGE[:-1] + b"?")
    with pytest.raises(EditError, match="another content"):
        resolve(fresh, described)
    path.unlink()
    with pytest.raises(EditError, match="File not found"):
        resolve(fresh, described)
    others: list[JSON] = [
        {}, 7, {"raw": "*"}, {**described, "length": -1}, {**described, "field": "x"}
    ]  # fmt: skip
    for wrong in others:
        with pytest.raises(EditError, match="tensor data"):
            resolve(fresh, wrong)


def test_what_a_crash_left_is_swept_unless_it_is_in_use(tmp_path: Path) -> None:
    store = PayloadStore()
    sha256, source = store.write(iter((b"a" * 10, b"b")))
    assert store.held(sha256) is source
    left = payload_dir() / ".new-left"
    left.write_bytes(b"half")
    sweep()
    assert files() == [payload_dir() / sha256]
    assert PayloadStore().adopt(source.path, "0" * 64) is None, "its content is another one"
    store.close()
    assert files() == []


def test_what_two_hold_is_one_file_until_both_let_it_go() -> None:
    first, second = PayloadStore(), PayloadStore()
    sha256, source = first.write(iter((LARGE,)))
    assert second.write(iter((LARGE,)))[0] == sha256
    second.close()
    assert files() == [source.path]
    first.close()
    assert files() == []


def test_what_journals_mention_stays_among_what_is_swept() -> None:
    store = PayloadStore()
    names = [store.write(iter((bytes([number]) * 9,)))[0] for number in range(20)]
    journals = state_dir() / "journals"
    journals.mkdir(parents=True)
    mentioned = [json.dumps({"sha256": name}) for name in names[::2]]
    (journals / "one.jsonl").write_text("\n".join(mentioned))
    store.close()
    assert {path.name for path in files()} == {*names[::2]}


def test_a_scratch_folder_is_not_swept_and_leaves_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with scratch_folder() as folder:
        (folder / "part").write_bytes(b"half")
        sweep()
        assert [path.name for path in folder.iterdir()] == ["part"]
    assert files() == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_a_script_names_is_copied(tmp_path: Path) -> None:
    document = opened(tmp_path)
    own = tmp_path / "mine.bin"
    own.write_bytes(b"--" + LARGE)
    described: JSON = {"file": str(own), "offset": 2, "length": len(LARGE)}
    blob = resolve(document, described)
    own.write_bytes(b"")
    assert bytes_of(blob) == LARGE
    with pytest.raises(EditError, match="has 0 B"):
        resolve(document, described)


def test_cancelling_and_a_blocked_folder_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = opened(tmp_path)
    with pytest.raises(CancelledError):
        write_payload(document, iter((LARGE,)), len(LARGE), cancelled=lambda: True)
    assert files() == []
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    with pytest.raises(SaveError, match="cannot hold the data"):
        reference(document, LARGE)


def test_messages_take_their_payloads_along(tmp_path: Path) -> None:
    document, other = opened(tmp_path), opened(tmp_path)
    tensor = onnx.TensorProto(name="t")
    tensor.raw_data = document.blobs.add(document.spill.append(LARGE))
    encoded = encode_message(document, tensor)
    copy = decode_message(other, encoded, onnx.TensorProto)
    blob = other.blobs.get(copy.raw_data)
    assert blob is not None
    assert blob.read() == LARGE
    assert isinstance(encode_message(document, onnx.TensorProto(name="x")), str)
    others: list[JSON] = [7, {"data": 7}, {"data": "", "payloads": {"s": {"raw": ""}}}, "/w=="]
    for wrong in others:
        with pytest.raises(EditError, match="record in the arguments"):
            decode_message(other, wrong, onnx.TensorProto)


@pytest.mark.parametrize("steps", ["plain", "save", "save redo"])
def test_a_journal_with_payloads_is_replayed_after_a_crash(tmp_path: Path, steps: str) -> None:
    path = models.write(tmp_path, models.CHAIN)
    expected = np.arange(50_000, dtype=np.float32)

    def work() -> None:
        document = Document.open(path, journaled=True)

        def cell(start: int, value: int) -> None:
            big: JSON = {"initializer": "big"}
            document.apply("set_elements", scope=[], tensor=big, start=start, values=[value])

        fill: JSON = {"kind": "payload", "payload": reference(document, expected.tobytes())}
        document.apply(
            "add_initializer", scope=[], name="big", dtype="float32", dims=[50_000], fill=fill
        )
        cell(3, 7)
        if "save" in steps:
            save(document)
        document.apply("delete_initializers", scope=[], names=["big"])
        if "save" in steps:
            save(document)
        document.undo()
        if "redo" in steps:
            document.redo()
            document.undo()
        cell(4, 8)

    killed_after(work)
    (left,) = crash_journals(path)
    assert left.journal.stat().st_size < 10_000
    assert len(files()) >= 1
    sweep()
    document = Document.open(path)
    result = replay(document, left.lines)
    assert result.refused == []
    forget_journal(left)
    tensor = tensor_in(document, "big")
    expected[3:5] = [7, 8]
    assert np.array_equal(tensor.read(), expected)
    save(document)
    document.close()
    assert files() == []


def test_undo_goes_on_when_the_inverse_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = opened(tmp_path)
    fill: JSON = {"kind": "zeros"}
    document.apply("add_initializer", scope=[], name="z", dtype="int8", dims=[99_999], fill=fill)
    document.apply("delete_initializers", scope=[], names=["z"])
    save(document)
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    document.undo()
    assert document.main.initializer("z") is not None
    assert document.journal_error is not None
    monkeypatch.undo()
    save(document)
    assert document.journal_error is None
