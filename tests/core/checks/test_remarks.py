from __future__ import annotations

from dld_tui.core.checks.findings import ToolFinding, findings_of
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.locations import LocatedMessage
from tests.support import models


def test_remarks_without_a_place_or_with_one_that_is_gone() -> None:
    document = Document(models.parse(models.CHAIN))
    entries = [
        ToolFinding("exception", "x:y", LocatedMessage("m")),
        ToolFinding("error", "x:y", LocatedMessage("m", [7, "b", 0], 0)),
        ToolFinding("error", "x:y", LocatedMessage("m", [], 99)),
    ]
    found = findings_of(document, entries)
    assert [(f.level, f.scope, f.node) for f in found] == [
        ("info", None, None), ("error", None, None), ("error", document.main, None)
    ]  # fmt: skip
