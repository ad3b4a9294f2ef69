"""A check that edits interrupt says what a new one says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.checks import Finding, checker, state
from dld_tui.core.checks.checker import Checker
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.sessions import bytes_of

EDITS: list[tuple[str, str, dict[str, Any]]] = [
    (models.CHAIN, "delete_nodes", {"scope": [], "nodes": ["second"]}),
    (models.CHAIN, "bypass_nodes", {"scope": [], "nodes": ["first"]}),
    (models.BRANCHES, "delete_nodes", {"scope": ["choose:else_branch"], "nodes": ["shadow"]}),
    (models.FUNCTIONS, "set_model_field", {"field": "ir_version", "value": 99}),
]


def said(findings: list[Finding]) -> list[str]:
    return [json.dumps(finding.to_json(), sort_keys=True) for finding in findings]


@pytest.mark.parametrize(("text", "edit", "arguments"), EDITS)
def test_a_check_begins_again_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, edit: str, arguments: dict[str, Any]
) -> None:
    for module in (checker, state):
        monkeypatch.setattr(module, "_SLICE", 1)
    path = models.write(tmp_path, text)
    document = Document.open(path)
    before = said(Checker(document).run())
    slices = sum(1 for _ in Checker(document).steps())
    assert slices > len(document.main.nodes)
    for interrupted in range(slices):
        checked = Checker(document)
        checked.run()
        checked.restart()
        for _ in itertools.islice(checked.steps(), interrupted):
            pass
        assert said(checked.findings()) == before  # until it ends, those of before the edit
        document.apply(edit, **arguments)
        checked.restart()
        after = said(checked.run())
        assert checked.done
        copy = tmp_path / "again.onnx"
        copy.write_bytes(bytes_of(document))
        again = Document.open(copy)
        assert after == said(Checker(again).run()) != before
        again.close()
        document.undo()
    document.close()
