"""After any edits, undone and redone ones too, the checker says what a new one says."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.checks import Finding, rules, state
from dld_tui.core.checks import checker as checker_module
from dld_tui.core.checks.checker import Checker
from dld_tui.core.document import Change, Document
from dld_tui.core.document.types.value_types import ValueType
from dld_tui.core.errors import DldError
from dld_tui.core.types import JSON
from tests.core.checks import random_edits
from tests.core.document.edits.test_restore import CASES
from tests.support import body_models, models
from tests.support.sessions import bytes_of

TEXTS = {
    "chain": models.CHAIN,
    "branches": models.BRANCHES,
    "functions": models.FUNCTIONS,
    "nested": random_edits.NESTED,
}


def said(findings: list[Finding]) -> list[str]:
    return sorted(json.dumps(finding.to_json(), sort_keys=True) for finding in findings)


def fresh(document: Document, folder: Path) -> list[str]:
    """Return what is found in the same model, read anew."""
    path = folder / "again.onnx"
    path.write_bytes(bytes_of(document))
    again = Document.open(path)
    try:
        return said(Checker(again).run())
    finally:
        again.close()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_incremental_findings_are_those_of_a_full_check(
    tmp_path: Path, text: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (checker_module, state, state):
        monkeypatch.setattr(module, "_SLICE", 1)  # so that work is interrupted anywhere
    monkeypatch.setattr(state, "MOST_LISTED", 2 + seed % 4)
    document = Document.open(models.write(tmp_path, text))
    checker = Checker(document)
    checker.run()
    document.on_change.append(lambda change: changes.append(change))
    changes: list[Change] = []
    choose = random.Random(seed)
    history: list[Any] = []
    for _ in range(40):
        changes.clear()
        step = random_edits.one(document, choose)
        history.append(step)
        for change in changes:
            if choose.random() < 0.5:
                checker.update(change)
            else:
                checker.note(change)
                for _ in zip(checker.steps(), range(choose.randint(0, 3)), strict=False):
                    pass
        if choose.random() < 0.4:
            continue  # several edits before the check is done
        found, wanted = said(checker.run()), fresh(document, tmp_path)
        missing, wrong = set(wanted) - set(found), set(found) - set(wanted)
        assert found == wanted, f"{missing=} {wrong=} after {history[-3:]}"


@pytest.mark.parametrize(("text", "edit", "arguments"), CASES)
def test_every_edit_its_undo_and_redo_are_followed(
    tmp_path: Path, text: str, edit: str, arguments: dict[str, JSON]
) -> None:
    document = Document.open(body_models.write(tmp_path, text))
    checker = Checker(document)
    checker.run()

    def changed(change: Change) -> None:
        checker.update(change)

    document.on_change.append(changed)
    document.apply(edit, **arguments)
    assert said(checker.run()) == fresh(document, tmp_path)
    document.undo()
    assert said(checker.run()) == fresh(document, tmp_path)
    document.redo()
    assert said(checker.run()) == fresh(document, tmp_path)


def test_types_that_inference_finds_later_are_compared(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    checker = Checker(document)
    before = said(checker.run())
    document.main.inferred = {"y": ValueType("int64", ("N", 4))}
    checker.types_changed()
    assert "type-conflict" in {finding.rule for finding in checker.run()}
    document.main.inferred = {}
    checker.types_changed()
    assert said(checker.run()) == before


def test_an_edit_before_the_first_check_is_done_starts_it_again(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    checker = Checker(document)
    next(iter(checker.steps()))
    changes: list[Change] = []
    document.on_change.append(changes.append)
    document.apply("set_input", scope=[], node="second", index=0, value="x")
    checker.update(changes[0])
    assert not checker.done
    assert {f.rule for f in checker.run()} >= {"unused-node"}
    assert checker.done


def test_a_refused_edit_leaves_the_findings(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    checker = Checker(document)
    before = said(checker.run())
    with pytest.raises(DldError):
        document.apply("set_input", scope=[], node="nothing", index=0, value="x")
    assert said(checker.run()) == before


def test_a_check_keeps_little_of_each_node(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    nodes = document.main.nodes
    nodes[1].proto.attribute.add(name="axis", type=2, i=1)
    nodes[3].proto.op_type = nodes[0].op_type
    assert [rules._may_have_attributes(node) for node in nodes] == [
        bool(node.proto.attribute) for node in nodes
    ]
    document.apply("rename_node", scope=[], node=nodes[2].ref, name="*")
    assert rules._may_have_attributes(nodes[2])  # its name has the byte of the field's tag
    checker = Checker(document)
    checker.run()
    [of_main] = checker.states.values()
    keys = list(of_main.keys.values())
    assert len(set(map(id, keys))) == len(set(keys)) < len(keys)
    assert not of_main.due
    document.close()


NAMES = st.sampled_from(["", "a", "b", "c", "d", "e"])
GRAPHS = st.lists(
    st.tuples(
        st.lists(NAMES, max_size=3),  # inputs
        st.lists(NAMES, max_size=2),  # outputs
        st.none() | st.lists(NAMES, max_size=2),  # what a subgraph captures
    ),
    max_size=8,
)


@given(GRAPHS, st.lists(NAMES, max_size=2), st.sampled_from([0, 1, 200]))
@settings(deadline=None)
def test_dead_nodes_are_those_that_no_output_leads_to(
    drawn: list[tuple[list[str], list[str], list[str] | None]], outputs: list[str], most: int
) -> None:
    model = onnx.ModelProto(ir_version=10)
    for inputs, own, captured in drawn:
        node = model.graph.node.add(op_type="Op", input=inputs, output=own)
        if captured is not None:
            body = node.attribute.add(name="body", type=onnx.AttributeProto.GRAPH).g
            body.node.add(op_type="Op", input=captured, output=["inner"])
            body.output.add(name="inner")
    for name in outputs:
        model.graph.output.add(name=name)
    reached: set[int] = set()
    waiting = list(outputs)
    while waiting:
        name = waiting.pop()
        for at, (inputs, own, captured) in enumerate(drawn):
            if name and name in own and at not in reached:
                reached.add(at)
                waiting += [*inputs, *(captured or ())]
    document = Document(model)
    checker = Checker(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MOST_LISTED", most)
        checker.run()
    of_main = checker.states[document.main]
    assert [node in of_main.live for node in document.main.nodes] == [
        at in reached for at in range(len(drawn))
    ]
    assert of_main.dead == {node for node in document.main.nodes if node not in of_main.live}
