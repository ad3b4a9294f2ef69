"""Models in float16: what ``tests/core/model/transcripts/halves.txt`` does not show."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dld_tui.core.conversion.fp16 import Fp16Options, fp16_steps
from dld_tui.core.events import events_of, result_of
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.conversions import MIXED


def test_progress_counts_bytes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with closing(Document.open(models.write(tmp_path, MIXED))) as document:
        result_of(events_of(fp16_steps(document, Fp16Options()), seen.append)).document.close()
    assert seen == [(12, 24), (24, 24)]
