"""What commands print is what ``tests/transcripts`` says (:mod:`tests.support.transcripts`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Dld

pytest.importorskip("onnxruntime")
from tests.support import transcripts
from tests.support.recorded import hold

_BROAD = ("accuracy_found", "convert_quantize", "convert_shape", "convert_types")
"""Further examples of the commands of ``accuracy`` and ``convert``."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.broad] if path.stem in _BROAD else [])
        for path in sorted(transcripts.FOLDER.glob("*.txt"))
    ],
)
def test_commands_print_what_their_transcript_says(
    path: Path,
    dld: Dld,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = transcripts.written(path, dld, tmp_path)
    hold(path, printed, pytestconfig)
