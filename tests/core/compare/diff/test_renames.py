from __future__ import annotations

from pathlib import Path

from dld_tui.core.compare.diff.compare import diff_documents
from dld_tui.core.compare.diff.text import lines
from dld_tui.core.model.document import Document
from tests.support.diff_models import with_other_names
from tests.support.models import layered, parse


def test_a_diff_of_renames_is_short_and_json_has_all(tmp_path: Path) -> None:
    model = parse(layered(40))
    documents = []
    for name, version in (("old", model), ("new", with_other_names(model))):
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(version.SerializeToString())
        documents.append(Document.open(path))
    found = diff_documents(*documents)
    text = ["".join(part for part, _ in line) for line in lines(found)]
    assert len(text) < 40
    assert "  > 199 more nodes are renamed" in text
    assert text[-1].startswith("inputs: 1 renamed; outputs: 1 renamed; nodes: 202 renamed")
    nodes = [c for _, c in found.all_changes() if (c.kind, c.status) == ("node", "renamed")]
    assert len(nodes) == 202
