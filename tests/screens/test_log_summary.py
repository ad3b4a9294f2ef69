from __future__ import annotations

from pathlib import Path

from dld_tui.screens.results.trtexec_log import LogRows, read, summary_lines
from tests.support.graph_panes import painted
from tests.support.recorded import Recorded
from tests.support.transcript_files import FILES


def test_logs_in_short_and_their_lines(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name in ("trtexec.log", "errors.log", "run.log", "result-01.log", "printer.log"):
        FILES[name](tmp_path / name)
        found = read(tmp_path / name)
        for width in (20, 44, 80, 120):
            texts[f"{name}, {width} cells"] = painted(summary_lines(found.log, width))
        rows = LogRows(found.lines)
        some = [*range(min(6, len(rows))), *found.problems[:6]]
        texts[f"{name}: lines"] = painted(rows.line(at, 60) for at in some)
        told = [rows.text(at) for at in some] + [f"{len(found.problems)} {found.is_cut}"]
        texts[f"{name}: texts"] = "\n".join(told)
    recorded("summaries_of_logs", texts)
