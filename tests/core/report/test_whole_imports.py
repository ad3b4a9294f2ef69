"""All that files of other programs become in a report, compared with ``whole_imports.txt``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.report.report import open_report
from tests.support.recorded import Recorded, settled
from tests.support.report_text import report_text
from tests.support.transcript_files import FILES

NAMES = (
    "ort.json", "silero.json", "shufflenet.json", "cuda.json", "midway.json", "chrome.json",
    "twice.profile.json", "runs.profile.json", "unsound.profile.json", "cut.profile.json",
    "layers.profile.json", "enqueue.json", "times.json", "twice.timing.json", "warm.timing.json",
    "runs.timing.json", "gpu.dldprof", "nested.dldprof", "rich.dldprof", "killed.dldprof",
    "text.dldprof", "chain.onnx",
)  # fmt: skip


@pytest.mark.broad
def test_whole_imports(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name in NAMES:
        path = tmp_path / name
        FILES[name](path)
        try:
            with open_report(path) as report:
                texts[name] = settled(report_text(report), tmp_path)
        except DldError as error:
            texts[name] = settled(str(error), tmp_path)
        for other in tmp_path.iterdir():  # what lies beside would be read with the next one
            shutil.rmtree(other) if other.is_dir() else other.unlink()
    recorded("whole_imports", texts)
