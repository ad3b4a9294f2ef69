"""What lists paint of types is not read while a thread makes edits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.model.document import Document, DocumentChange
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models


@pytest.fixture
def document(tmp_path: Path) -> Iterator[Document]:
    opened = Document.open(models.write(tmp_path, models.CHAIN))
    yield opened
    opened.close()


def test_a_type_is_read_once_and_anew_after_each_edit(document: Document) -> None:
    shown, main = document.shown_types, document.main
    assert shown.of(main, "x") == (ValueType("float32", ("N", 4)), False)
    assert shown.of(main, "a") == (None, False)
    main.inferred = {"a": ValueType("float32", (2, 4))}
    assert shown.of(main, "a") == (None, False)
    shown.clear()
    assert shown.of(main, "a") == (ValueType("float32", (2, 4)), False)
    main.stale.add("a")
    document.apply("rename_node", scope=[], node="first", name="stem")
    assert shown.of(main, "a") == (ValueType("float32", (2, 4)), True)
    main.stale.clear()
    assert shown.of(main, "a") == (ValueType("float32", (2, 4)), True)


def test_while_edits_are_held_nothing_is_read(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, main = document.shown_types, document.main
    before = shown.of(main, "y")
    document.hold_changes()
    with monkeypatch.context() as patch:
        patch.delattr(type(main), "value_type")  # reading fails
        assert shown.of(main, "y") == before
        assert shown.of(main, "w") == (None, False)
        document.apply("set_value_type", scope=[], value="y", dtype="float16", dims=[1])
        assert shown.of(main, "y") == before
    document.tell_changes()
    assert shown.of(main, "y") == (ValueType("float16", (1,)), False)
    assert shown.of(main, "w") == (ValueType("float32", (4,)), False)


def test_held_edits_are_told_as_one_reset_when_that_is_wanted(document: Document) -> None:
    told: list[DocumentChange] = []
    document.on_change.append(told.append)
    document.hold_changes()
    held = [document.is_locked]
    document.apply("rename_node", scope=[], node="first", name="stem")
    document.tell_changes(as_reset=True)
    held.append(document.is_locked)
    assert held == [True, False]
    assert [change.kind for change in told] == ["reset"]
