from __future__ import annotations

from dld_tui.core.events import Progress
from dld_tui.widgets.shell.progress import JobLine
from tests.support.tui import HostApp


async def test_it_says_what_runs_and_how_to_stop_it() -> None:
    line = JobLine("full \x1bcheck")
    async with HostApp(line).run_test():
        line.show_progress(Progress(0, None, stage="look\x07ing"))
        (row,) = line.content(80)
        text = "".join(piece[0] for piece in row)
        assert text.startswith(" full \\x1bcheck  look\\x07ing  ")
        assert text.endswith("Esc stops")

        line.stopping()
        (row,) = line.content(80)
        assert "".join(piece[0] for piece in row) == " full \\x1bcheck  stopping …"
