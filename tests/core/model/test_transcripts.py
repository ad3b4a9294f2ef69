"""What edits do to models is what ``transcripts`` says (:mod:`tests.support.model_transcripts`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import model_transcripts
from tests.support.recorded import hold


@pytest.mark.parametrize(
    "path", sorted(model_transcripts.FOLDER.glob("*.txt")), ids=lambda path: path.stem
)
def test_edits_do_what_their_transcript_says(
    path: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    done = model_transcripts.written(path, tmp_path)
    hold(path, done, pytestconfig)
