"""What edits do to models is what ``transcripts`` says (:mod:`tests.support.model_transcripts`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import model_transcripts
from tests.support.recorded import hold

_PATHS = sorted(model_transcripts.FOLDER.glob("*.txt"))
_SLOW = {"guesses_by_search"}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.broad] * (path.stem in _SLOW)) for path in _PATHS],
    ids=lambda path: path.stem,
)
def test_edits_do_what_their_transcript_says(
    path: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    done = model_transcripts.written(path, tmp_path)
    hold(path, done, pytestconfig)
