"""Any sequence of any edits undoes and redoes to the same bytes, and leaves a file that opens.

The arguments come from the cases of :mod:`test_restore`, of which every edit has one, with scopes,
nodes, values and names replaced by others of the model as it is then.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document, Scope
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.edits.restore import inverse_arguments
from tests.core.model.edits.test_restore import CASES
from tests.support import body_models
from tests.support.sessions import bytes_of


@pytest.fixture
def edits_leave_no_trace() -> None:
    """It is looked at here, edit by edit."""


TEXTS = ["CHAIN", "WEIGHTS", "BRANCHES", "FUNCTIONS", "LOOP", "SHAPES", "SWITCH"]
NEW_NAMES = ["z1", "z2", "local", "leaky", "choose", "a"]
MORE: list[tuple[str, str, dict[str, Any]]] = [
    ("CHAIN", "sort_nodes", {"scope": []}),
    ("CHAIN", "rename_duplicate_nodes", {"scope": []}),
]


def value_names(scope: Scope) -> list[str]:
    names = {*scope.links.producers, *scope.links.consumers, *scope.inputs, *scope.outputs}
    names.update(scope.named("initializer"))
    return sorted(names)


class Draw:
    """Draws the arguments of one edit for a document as it is."""

    def __init__(self, data: st.DataObject, document: Document) -> None:
        self._data = data
        self._document = document

    def one(self, items: list[Any]) -> Any:
        return self._data.draw(st.sampled_from(items))

    def arguments(self, template: dict[str, Any]) -> dict[str, Any]:
        scopes = list(self._document.scopes())
        scope = self.one(scopes)
        made = dict(template)
        for key, value in template.items():
            if key in ("scope", "source") and isinstance(value, list):
                made[key] = list(scope.path if key == "scope" else self.one(scopes).path)
            elif key in ("name", "domain", "attribute", "reference") and value:
                made[key] = self.one([value, *NEW_NAMES, *value_names(scope)])
            elif key in ("value", "by") and isinstance(value, str):
                made[key] = self.one([value, *value_names(scope)])
            elif key in ("index", "to") and isinstance(value, int):
                made[key] = self._data.draw(st.integers(0, 3))
            elif isinstance(value, bool):
                made[key] = self._data.draw(st.booleans())
            elif scope.nodes and key == "node":
                node = self.one(scope.nodes)
                made[key] = node.ref
                if "attribute" in template and node.proto.attribute:
                    names = [attribute.name for attribute in node.attributes()]
                    made["attribute"] = self.one([template["attribute"], *names])
            elif scope.nodes and key == "nodes" and all(isinstance(v, str) for v in value or [1]):
                refs = [node.ref for node in scope.nodes]
                made[key] = self._data.draw(st.lists(st.sampled_from(refs), min_size=1, max_size=3))
            elif key == "nodes" and all(isinstance(v, list) for v in value):
                pairs = [[list(s.path), node.ref] for s in scopes for node in s.nodes]
                made[key] = [self.one([*value, *pairs]) for _ in value]
        return made


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


def with_data_file(document: Document, path: Path) -> Document:
    """Return a model with a weight in a data file, opened from a file."""
    path.with_name("moved.data").unlink(missing_ok=True)  # of the example before
    document.apply("set_external", scope=[], names=["w"], location="moved.data")
    save(document, path, overwrite=True)
    document.close()
    return Document.open(path)


@pytest.mark.broad
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), text=st.sampled_from(TEXTS), count=st.integers(1, 14))
def test_any_sequence_of_edits(tmp_path: Path, data: st.DataObject, text: str, count: int) -> None:
    document = Document.open(body_models.write(tmp_path, text))
    if text == "WEIGHTS":
        document = with_data_file(document, tmp_path / "external.onnx")
    states = [bytes_of(document)]
    draw = Draw(data, document)
    for _ in range(count):
        _, edit, template = draw.one([*CASES, *MORE])
        arguments = draw.arguments(template)
        json.dumps(arguments)
        try:
            transaction = document.apply(edit, **arguments)
        except EditError:
            assert bytes_of(document) == states[-1], "a refused edit leaves no trace"
            continue
        note(f"{edit} {arguments}")
        if transaction.primitives:
            states.append(bytes_of(document))
    for state in reversed(states[:-1]):
        document.undo()
        assert bytes_of(document) == state
    assert not document.dirty
    for state in states[1:]:
        document.redo()
        assert bytes_of(document) == state

    saved = tmp_path / "saved.onnx"
    save(document, saved, overwrite=True)
    onnx.load(saved, load_external_data=False)
    fresh = Document.open(saved)
    check_indexes(document, fresh)
    if b"dld.pending" in states[-1]:
        return  # saving has moved payloads to another file: where they are is not what it was
    assert bytes_of(fresh) == states[-1]
    for transaction, state in zip(
        reversed(document.history.done), reversed(states[:-1]), strict=True
    ):
        inverse = inverse_arguments(document, transaction)
        assert bytes_of(document) == state
        fresh.apply("restore", **json.loads(json.dumps(inverse)))
        assert bytes_of(fresh) == state, "the journal's inverse does the same as the undo"
    fresh.close()
    document.close()
