"""Start the user interface, or print plain text without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dld_tui.core.process.interpreter import import_asyncio_without_tls
from dld_tui.core.process.terminal import is_terminal


def has_terminal() -> bool:
    """Tell whether the user interface can run here."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def open_paths(paths: Sequence[Path]) -> int | None:
    """Open the user interface, or print the files without a terminal."""
    if has_terminal():
        from dld_tui.core.process.interpreter import pause

        pause()
        import_asyncio_without_tls()
        from dld_tui.app import run

        return run([str(path) for path in paths])
    from dld_tui.cli.output import write
    from dld_tui.core.command_line import help_text

    if not paths:
        write(help_text().rstrip())
    for index, path in enumerate(paths):
        if index:
            write()
        print_file(path)
    return None


def open_diff(old: Path, new: Path, *, weights: bool = True) -> int:
    """Compare two models in the user interface; needs a terminal.

    Raises:
        InputError: One of the files is missing or not a model.
    """
    import_asyncio_without_tls()
    from dld_tui.app import run
    from dld_tui.core.errors import InputError
    from dld_tui.core.files.recognise import recognise

    for path in (old, new):
        kind = recognise(path)
        if not kind.is_model:
            raise InputError(f"is {kind.title}, not an ONNX model", where=str(path))
    return run(comparison=(old, new, weights))


def print_file(path: Path) -> None:
    """Print a model, a report, an engine plan or the result of a tuning or sweep as text.

    Raises:
        InputError: The file cannot be read, or its kind cannot be printed.
    """
    from dld_tui.core.files.recognise import FileKind, recognise

    kind = recognise(path)
    if kind.name in ("ENGINE_LAYERS", "ENGINE_ARCHIVE", "ENGINE_METADATA", "TRTEXEC_LOG"):
        from dld_tui.cli.reports.plan import print_plan

        print_plan(path)
    elif kind.is_model:
        from dld_tui.cli.models.inspect import inspect_model

        inspect_model(path)
    elif kind is FileKind.TUNING:
        from dld_tui.cli.reports.report import print_tuning
        from dld_tui.core.tune.result import load_result

        print_tuning(load_result(path))
    elif kind is FileKind.SWEEP:
        from dld_tui.cli.reports.report import print_sweep
        from dld_tui.core.report.sweep import load_sweep

        print_sweep(load_sweep(path))
    else:
        from dld_tui.cli.reports.report import print_report

        print_report(path)
