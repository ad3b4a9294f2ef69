"""Checks of a model by others: onnx's full checker, Polygraphy's lint, and ONNX Runtime itself.

Each runs in a separate process with a time limit. They get a small view of the model with its
weights in place (:mod:`dld_tui.core.files.model_set`), in which every node has a label as
its name, so that messages lead to a node, named or not.

Places are those of :mod:`dld_tui.core.model.document.locations`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.checks.findings import RuntimeAnswer, ToolFinding
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.events import Event, Finished, Progress, events_of
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.params import param
from dld_tui.core.process.installation import install_command

if TYPE_CHECKING:
    from dld_tui.backends.processes import ToolEnd
    from dld_tui.core.model.document.locations import Labels

LIMIT_S = 120.0
"""The default time limit of each check."""

_LEVELS = {"exception": "error", "warning": "warning"}


@dataclass(frozen=True)
class Request:
    """Which model, and which checks."""

    model: Path = param(label="Model", help="The ONNX model.", kind="file", positional=True)
    onnx: bool = param(True, label="Full checker", help="Run onnx's full checker.")
    polygraphy: bool = param(
        False,
        label="Polygraphy lint",
        help="Run Polygraphy's lint, which runs every node on random data.",
    )
    runtime: bool = param(
        False,
        label="ONNX Runtime",
        help="Ask the installed ONNX Runtime whether it loads the model.",
    )
    run: bool = param(
        False,
        label="Run",
        help="Let ONNX Runtime run the model once, too, on guessed inputs.",
    )
    time_limit: float = param(
        LIMIT_S,
        label="Time limit",
        help="Stop each check after this time.",
        unit="s",
        minimum=0.1,
        spellings=("--time-limit",),
    )
    view: bool = param(
        False,
        label="View",
        help="The file is a temporary view that may be modified.",
        internal=True,
    )


@dataclass(frozen=True)
class Result:
    """What the checks complain of."""

    findings: list[ToolFinding]
    runtime: RuntimeAnswer | None = None
    """What ONNX Runtime said; None if it was not to be asked."""


def run(request: Request) -> Iterator[Event]:
    """Check.

    Raises:
        InputError: The model cannot be opened.
    """
    from dld_tui.core.model.document.locations import Labels

    findings: list[ToolFinding] = []
    answer = None
    yield Progress(0, None, stage="Opening the model")
    with _view(request) as path:
        labels = Labels.of_file(path)
        with temporary_folder("check") as folder:
            report = folder / "report"
            if request.onnx:
                findings += yield from _check(path, report, labels, request.time_limit)
                report.unlink(missing_ok=True)
            if request.polygraphy:
                lint_findings = yield from _lint(path, report, labels, request.time_limit)
                findings += _without_repeats(lint_findings, findings)
        if request.runtime:
            answer, refused = yield from _ask(path, labels, request)
            findings += refused
    yield Finished(Result(findings, answer))


def _ask(
    path: Path, labels: Labels, request: Request
) -> Generator[Event, None, tuple[RuntimeAnswer, list[ToolFinding]]]:
    from dld_tui.backends.onnxruntime.verdict import ask

    asking = ask(path, labels, run=request.run, limit_s=request.time_limit)
    return (
        yield from events_of(asking, lambda s: Progress(round(s, 1), None, "s", "ONNX Runtime"))
    )


@contextlib.contextmanager
def _view(request: Request) -> Generator[Path]:
    if request.view:
        yield request.model
        return
    from dld_tui.core.files.model_set import discard_view, external_view
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.serialise import skeleton_bytes

    with contextlib.closing(open_document(request.model)) as document:
        path = external_view(
            skeleton_bytes(document),
            document.blobs,
            request.model.parent,
            external=document.external,
            values=request.polygraphy or request.run,
            loadable=request.runtime,
        )
    try:
        yield path
    finally:
        discard_view(path)


def _tool(
    stage: str,
    module: str,
    path: Path,
    report: Path,
    limit_s: float,
    more: Sequence[str] = (),
) -> Generator[Event, None, ToolEnd]:
    from dld_tui.backends.processes import run_tool

    running = run_tool(module, [str(path), str(report), *more], limit_s)
    return (yield from events_of(running, lambda s: Progress(round(s, 1), None, "s", stage)))


def _guessed_shapes(path: Path) -> list[str]:
    """Return shapes of the inputs, as Polygraphy takes them: its own would be of ones."""
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.inputs.guess import guess_inputs, input_specs

    try:
        with contextlib.closing(open_document(path)) as document:
            guess = guess_inputs(input_specs(document), document, empty=False)
    except DldError:
        return []
    return [
        f"{guessed_input.name}:[{','.join(map(str, guessed_input.shape))}]"
        for guessed_input in guess.guessed
    ]


def _check(
    path: Path, report: Path, labels: Labels, limit_s: float
) -> Generator[Event, None, list[ToolFinding]]:
    from dld_tui.backends import model_checkers

    main = f"{model_checkers.__name__}:check_with_onnx"
    end = yield from _tool("onnx full check", main, path, report, limit_s)
    if end.status == model_checkers.COMPLAINS and report.exists():
        text = report.read_text(encoding="utf-8", errors="surrogateescape")
        rule = "onnx:shape-inference" if model_checkers.is_of_inference(text) else "onnx:checker"
        remarks = labels.messages(text.replace(str(path), "the model"))
        return [ToolFinding("error", rule, remark) for remark in remarks]
    return _failure_findings("onnx", end, limit_s) if end.status != 0 else []


def _lint(
    path: Path, report: Path, labels: Labels, limit_s: float
) -> Generator[Event, None, list[ToolFinding]]:
    from dld_tui.backends import model_checkers
    from dld_tui.core.model.document.locations import LocatedMessage

    absent = model_checkers.missing_for_lint()
    if absent:
        message = f"{' and '.join(absent)} not installed: {install_command('polygraphy')}"
        return [ToolFinding("info", "polygraphy:missing", LocatedMessage(message))]
    shapes = _guessed_shapes(path)
    main = f"{model_checkers.__name__}:lint_with_polygraphy"
    end = yield from _tool("Polygraphy lint", main, path, report, limit_s, shapes)
    entries = model_checkers.read_lint_report(report)
    if entries is None:
        return _failure_findings("polygraphy", end, limit_s)
    findings: list[ToolFinding] = []
    for entry in entries:
        level = _LEVELS.get(entry.level, "info")
        for remark in labels.messages(entry.message, *entry.nodes):
            findings.append(ToolFinding(level, f"polygraphy:{entry.source}", remark))
    return findings


def _failure_findings(tool: str, end: ToolEnd, limit_s: float) -> list[ToolFinding]:
    from dld_tui.backends.model_checkers import last_words
    from dld_tui.core.model.document.locations import LocatedMessage
    from dld_tui.core.text import clip, visible

    if end.timed_out:
        return [
            ToolFinding(
                "warning", f"{tool}:time-limit", LocatedMessage(f"stopped after {limit_s:g} s")
            )
        ]
    if end.crashed is not None:
        return [
            ToolFinding(
                "error", f"{tool}:crash", LocatedMessage(f"the check crashed ({end.crashed})")
            )
        ]
    last = last_words(end.output) or "without a word"
    message = clip(visible(" ".join(last.split())), 400)
    return [ToolFinding("error", f"{tool}:failed", LocatedMessage(f"the check failed: {message}"))]


def _without_repeats(findings: list[ToolFinding], known: list[ToolFinding]) -> list[ToolFinding]:
    """Remove repeated findings: the lint runs the checker of onnx as well."""
    reported = {_finding_key(finding) for finding in known}
    return [finding for finding in findings if _finding_key(finding) not in reported]


def _finding_key(finding: ToolFinding) -> tuple[str, str, int | None]:
    remark = finding.remark
    return remark.message, repr(remark.place), remark.index
