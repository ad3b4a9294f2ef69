"""Pictures of the graph of a model: the whole, a neighbourhood, folded where it is too large."""

from __future__ import annotations

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.graph.pictures.drawing import Picture
from dld_tui.core.reading import model_pictures
from dld_tui.core.reading.model_pictures import Drawing, picture_of_scope
from tests.support import models


def drawn(drawing: Drawing, told: list[str] | None = None) -> Picture:
    document = Document(models.parse(models.CHAIN))
    told = [] if told is None else told
    return picture_of_scope(document, document.main, "m", drawing, told.append)


def test_what_is_too_large_is_folded_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_pictures, "_TOO_MANY", 1)
    told: list[str] = []
    picture = drawn(Drawing(), told)
    assert picture.data == drawn(Drawing(folded=True)).data
    (line,) = told
    assert line.endswith("repeated blocks are folded (folded=False draws everything)")
    assert drawn(Drawing(folded=False), told).boxes >= picture.boxes
    assert told == [line]
