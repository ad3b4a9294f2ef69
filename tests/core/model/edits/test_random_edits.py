"""Any sequence of any edits undoes and redoes to the same bytes, and leaves a file that opens."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document, DocumentChange
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.edits.restore import inverse_arguments
from tests.core.model.edits.properties import PROPERTIES, defined, path
from tests.support import body_models
from tests.support.drawn_models import drawn_model
from tests.support.sessions import bytes_of
from tests.support.tiers import first


@pytest.fixture
def edits_leave_no_trace() -> None:
    """It is looked at here, edit by edit."""


TEXTS = ["WEIGHTS", "BRANCHES", "LOOP", "SHAPES", "SWITCH", "SHADY"]
EDITS = [prop for prop in PROPERTIES if prop.edit not in ("restore", "set_external_entries")]
NAMES = ["z1", "z2", "local", "leaky", "choose", "a"]


def opened(folder: Path, seed: int) -> Document:
    """Open a small model of some kind, or a drawn one; one of them has a data file."""
    if seed % 2:
        onnx.save(drawn_model(seed), folder / "drawn.onnx")
        return Document.open(folder / "drawn.onnx")
    name = TEXTS[seed // 2 % len(TEXTS)]
    document = Document.open(body_models.write(folder, name))
    if name != "WEIGHTS":
        return document
    document.apply("set_external", scope=[], names=["w"], location="moved.data")
    save(document)
    document.close()
    return Document.open(document.path or "")


def varied(document: Document, arguments: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Return arguments of which one is another of the model, which may not fit."""
    scope = dice.choice([*document.scopes()])
    refs = [node.ref for node in scope.nodes] or ["nobody"]
    key, value = dice.choice([*arguments.items()])
    other: Any = value
    if key in ("scope", "source"):
        other = path(scope)
    elif key in ("name", "domain", "attribute", "reference", "value", "by") and value:
        other = dice.choice([*NAMES, *defined(scope)]) if isinstance(value, str) else value
    elif key == "node":
        other = dice.choice(refs)
    elif isinstance(value, bool):
        other = not value
    elif isinstance(value, int):
        other = dice.randint(0, 3)
    elif key == "nodes" and value and isinstance(value[0], str):
        other = dice.sample(refs, min(3, len(refs)))
    elif key == "nodes" and value:
        other = [*value, [path(scope), dice.choice(refs)]]
    return {**arguments, key: other}


def values_of(document: Document) -> dict[Any, tuple[str, tuple[int, ...], bytes]]:
    return {
        (scope.path, one.name): (one.dtype, one.shape, one.read().tobytes())
        for scope in document.scopes()
        if not scope.is_function
        for one in scope.initializers
        if one.problem is None
    }


def check_indexes(document: Document, fresh: Document) -> None:
    """Compare what the edits kept up to date with what a fresh reading finds."""
    ours, theirs = list(document.scopes()), list(fresh.scopes())
    assert [scope.path for scope in ours] == [scope.path for scope in theirs]
    for one, other in zip(ours, theirs, strict=True):
        for table in ("producers", "consumers"):
            found = [getattr(scope.links, table) for scope in (one, other)]
            first, second = ({n: sorted(map(repr, v)) for n, v in f.items()} for f in found)
            assert first == second
        assert set(one.control_flow) == {node for node in one.nodes if node.children}
        assert set(one.captured()) == set(other.captured())


@pytest.mark.broad
@pytest.mark.parametrize("seed", first(36, range(300)))
def test_any_sequence_of_edits(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    document = opened(tmp_path, seed)
    states = [(bytes_of(document), values_of(document))]
    was_saved = False

    def seen(change: DocumentChange) -> None:
        if change.kind == "edit" and len(document.history.done) == len(states):
            states.append((bytes_of(document), values_of(document)))

    document.on_change.append(seen)
    for _ in range(dice.randint(4, 24)):
        if seed % 3 == 0 and dice.random() < 0.15:
            save(document)
            was_saved = True
            with_file = Document.open(document.path or "")
            assert values_of(with_file) == values_of(document) == states[-1][1]
            assert not document.changed_on_disk()
            with_file.close()
        prop = dice.choice(EDITS)
        arguments = prop.draw(document, dice, dice.choice([1, 2, 3, 9]))
        if not arguments:
            continue
        if dice.random() < 0.4:
            arguments = varied(document, arguments, dice)
        try:
            document.apply(prop.edit, **json.loads(json.dumps(arguments)))
        except DldError:
            assert bytes_of(document) == states[-1][0], "a refused edit leaves no trace"
    document.on_change.remove(seen)
    for state in reversed(states[:-1]):
        document.undo()
        assert (bytes_of(document), values_of(document)) == state
    assert was_saved or not document.dirty
    for state in states[1:]:
        document.redo()
        assert (bytes_of(document), values_of(document)) == state

    save(document, tmp_path / "saved.onnx", overwrite=True)
    onnx.load(tmp_path / "saved.onnx", load_external_data=False)
    fresh = Document.open(tmp_path / "saved.onnx")
    check_indexes(document, fresh)
    assert values_of(fresh) == states[-1][1]
    if b"dld.pending" in states[-1][0] or was_saved:
        return  # saving has moved payloads to another file: where they are is not what it was
    for transaction, (state, _) in zip(
        reversed(document.history.done), reversed(states[:-1]), strict=True
    ):
        inverse = inverse_arguments(document, transaction)
        assert bytes_of(document) == state
        fresh.apply("restore", **json.loads(json.dumps(inverse)))
        assert bytes_of(fresh) == state, "the journal's inverse does the same as the undo"
