"""Run an activity in a separate process, so that a crash of a library ends only that."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import ActivityError, TimeLimitError
from dld_tui.core.events import (
    Failed,
    Finished,
    Progress,
    event_from_line,
    event_to_line,
    events_of,
)
from dld_tui.core.files import permission
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.processes import ForkServer


def run_in_process(
    activity: str,
    settings: Mapping[str, JSON],
    folder: Path,
    limit: float,
    server: ForkServer | None = None,
) -> Generator[Progress, None, Any]:
    """Run an activity and return its decoded result.

    Args:
        activity: Its id.
        settings: Of its request.
        folder: For its result file.
        limit: The time limit in seconds.
        server: Of :func:`process_server`, to save the time that imports take.

    Raises:
        DldError: As the activity does.
        ActivityError: The process crashed.
        TimeLimitError: It took too long, and was ended with what it had started.
    """
    from dld_tui.activities.registry import decode_result
    from dld_tui.backends.processes import run_tool

    line = json.dumps({
        "activity": activity, "request": dict(settings), "replaces": permission.agreed(),
    })  # fmt: skip
    end_file = folder / "end.json"
    end_file.unlink(missing_ok=True)
    arguments = [line, str(end_file)]
    running = server.run(arguments, limit) if server else run_tool(__name__, arguments, limit)
    end = yield from events_of(running, lambda passed: Progress(passed, limit, "s", activity))
    event = event_from_line(end_file.read_text()) if end_file.exists() else None
    if isinstance(event, Failed):
        raise event.to_error()
    if isinstance(event, Finished):
        return decode_result(activity, event.result)
    if end.timed_out:
        raise TimeLimitError("took too long", where=activity, details=end.output)
    how = f"crashed: {end.crashed or end.status}"
    raise ActivityError(how, where=activity, details=end.output)


def engine_ms(folder: Path, limit: float, **settings: JSON) -> Generator[Progress, None, float]:
    """Build or load an engine, run it, and return the median GPU time of a pass in milliseconds.

    Args:
        folder: For the files of the process.
        limit: The time limit in seconds.
        settings: Of ``profile_tensorrt``.

    Raises:
        DldError: As ``profile_tensorrt`` does; the process crashed, or took too long.
    """
    report = folder / "trial.dldprof"
    measuring: dict[str, JSON] = {
        "report": str(report), "layer_passes": 0, "gpu_timeline": False, "gpu_counters": "off",
    }  # fmt: skip
    result = yield from run_in_process("profile_tensorrt", {**measuring, **settings}, folder, limit)
    report.unlink(missing_ok=True)
    return float(result.phases_ms["compute"]["median"])


def process_server(imports: Sequence[str]) -> ForkServer:
    """Return a server for :func:`run_in_process` that imports modules once. Close it.

    Args:
        imports: What the activities import.
    """
    from dld_tui.backends.processes import ForkServer

    return ForkServer(__name__, imports)


def main() -> None:
    """Run one activity in this process: its line and where its end goes are the arguments."""
    from dld_tui.activities.worker import Control, EventWriter, run_request
    from dld_tui.core.files.writer import write_text

    line, end_file = sys.argv[1:]
    control = Control()
    control.handle_signals()  # so that a tool that the activity runs ends with it
    ending = run_request(line.encode(), EventWriter(os.open(os.devnull, os.O_WRONLY)), control)
    write_text(Path(end_file), event_to_line(ending), overwrite=True)
