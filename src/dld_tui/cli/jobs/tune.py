"""What ``dld tune`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dld_tui.cli.output import write, write_json, write_table
from dld_tui.core.codec import encode
from dld_tui.core.errors import ExitStatus
from dld_tui.core.tune.result import TuneResult, load_result, result_lines, tune_table


def show_tune(result: TuneResult, as_json: bool) -> int:
    """Print what was tried, the verdict and the settings.

    Exit status 1 where changes were asked for by name and are taken back.
    """
    if as_json:
        write_json(encode(result))
    else:
        write_table(tune_table(result))
        for line in ("", *result_lines(result)):
            write(line)
    return ExitStatus.FOUND if result.asked and not result.is_faster else ExitStatus.DONE


def show_several(paths: Sequence[Path], as_json: bool) -> int:
    """Print the results of several targets, and the status of the worst."""
    results = [load_result(path) for path in paths]
    if as_json:
        write_json([encode(result) for result in results])
        return ExitStatus.DONE
    return max(show_tune(result, as_json) for result in results)
