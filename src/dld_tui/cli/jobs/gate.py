"""``dld gate``: fail if a new version is slower than a baseline, for CI."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from dld_tui.activities.gate import (
    RUN_SETTINGS,
    Request,
    RunJob,
    check_requirements,
    compare_versions,
)
from dld_tui.cli.command import Command, force_option, json_option
from dld_tui.cli.jobs.activity import target_option
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.options import OUTPUT, click_type, parameters_of, request_from
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.compare.gate import (
    LEAST_RUNS,
    WITHIN_PERCENT,
    GateResult,
    GateRow,
    Outcome,
    command_pairs,
    gate_table,
    gated,
    junit,
    listed_nodes,
    markdown,
    more_nodes,
)
from dld_tui.core.compare.requirement_files import keep_verdict
from dld_tui.core.compare.requirements import (
    RequirementsResult,
    requirements_junit,
    requirements_markdown,
    requirements_table,
)
from dld_tui.core.errors import CancelledError, DldError, ExitStatus, UsageError
from dld_tui.core.events import Progress, events_of, result_of
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.writer import require_distinct, write_text
from dld_tui.core.params import Setting, is_same_file, put_once, settings_of, validate
from dld_tui.targets import registry

T = TypeVar("T")
_SETTINGS = {one.name: one for one in settings_of(Request) if one.name in RUN_SETTINGS}
STATUSES = {
    Outcome.PASS: int(ExitStatus.DONE), Outcome.FAIL: int(ExitStatus.FOUND),
    Outcome.UNDECIDED: int(ExitStatus.FAILED),
}  # fmt: skip
"""The exit status of a verdict."""

_HELP = f"""Fail if model NEW is slower than model BASE, measured in alternating runs.

Each pair of runs is a separate process: it loads both models, warms up, times alternating passes,
and profiles the layers. The verdict uses the ratios of the pairs and their confidence interval, end
to end and by node. The gate runs as many pairs as the machine needs for an interval of
±{WITHIN_PERCENT:g} %. Exit status 1 if NEW is slower by more than --tolerance. With fewer than
{LEAST_RUNS} pairs within --limit, the verdict is "undecided", and the exit status 5.

With --require and one model, fail if the model does not meet a requirement: runs in processes of
their own are made until each is met or missed with a confidence of 95 %, else it is UNDECIDED
(exit status 5).

To compare settings of one model: dld gate m.onnx m.onnx --base-set threads=1 --new-set threads=2.
With --commands, BASE and NEW are command lines, each timed as a whole.
"""


def _callback(
    base: str,
    new: str | None,
    commands: bool,
    base_set: Sequence[str],
    new_set: Sequence[str],
    markdown_file: Path | None,
    junit_file: Path | None,
    force: bool,
    target: str | None,
    as_json: bool,
    **values: Any,
) -> int:
    given = [base] if new is None else [base, new]
    require_free((markdown_file, junit_file), force)
    for path in (markdown_file, junit_file):
        if path is not None and not commands and any(is_same_file(path, Path(g)) for g in given):
            raise UsageError("the verdict would replace a model", where=str(path))
    if markdown_file is not None and junit_file is not None:
        require_distinct([markdown_file, junit_file])
    has_settings = any(values[name] not in (None, ()) for name in _SETTINGS)
    paths = {"model": Path(base), "new": None if new is None else Path(new)}
    request: Request = request_from(Request, {**values, **paths})
    validate(request)
    if new is None and (commands or base_set or new_set):
        raise UsageError("these options compare two versions", hint="Give a second model")
    if commands and (has_settings or base_set or new_set or target):
        raise UsageError("--commands cannot be combined with profile settings")
    request.require()
    run_job: RunJob = partial(registry.result_of, target=target)
    if new is None:
        met = judge_requirements(request, run_job, as_json=as_json)
        _write([(markdown_file, requirements_markdown), (junit_file, requirements_junit)], met)
        return STATUSES[met.outcome]
    if commands:
        counts = gated(
            base, new, command_pairs(base, new), request.runs, within_percent=request.within,
            limit_s=request.limit, tolerance_percent=request.tolerance_percent, are_models=False,
        )  # fmt: skip
    else:
        counts = compare_versions(request, run_job, _parsed(base_set), _parsed(new_set), target)
    begin, pairs = time.monotonic(), 0

    def event(counted: tuple[int, int]) -> Progress:
        nonlocal pairs
        pairs = counted[0]
        return Progress(*counted, "pairs", "Measuring in turns")

    try:
        result = _reported(events_of(counts, event))
    except (CancelledError, KeyboardInterrupt):
        after = f"{fmt.plural(pairs, 'pair')} of runs, {fmt.duration(time.monotonic() - begin)}"
        raise CancelledError(f"cancelled: gate after {after}; no verdict") from None
    if as_json:
        write_json(_document(result))
    else:
        _print(result)
    _write([(markdown_file, markdown), (junit_file, junit)], result)
    return STATUSES[result.outcome]


def judge_requirements(request: Request, run_job: RunJob, *, as_json: bool) -> RequirementsResult:
    """Judge what is required of a model, print the verdicts and remember them.

    Raises:
        DldError: A requirement is malformed, or the model cannot be run.
    """
    met = _reported(check_requirements(request, run_job))
    keep_verdict(request.model, met)
    if as_json:
        write_json({"outcome": met.outcome.value, **(encode(met) or {})})
    else:
        write(met.line)
        write()
        write_table(requirements_table(met))
    return met


def _reported(steps: Generator[Progress, None, T]) -> T:
    """Run to the end, report the progress, and return the result."""
    with ProgressReporter() as reporter:
        return result_of(events_of(steps, reporter.event))


def _write(files: Sequence[tuple[Path | None, Callable[[Any], str]]], result: Any) -> None:
    """Write the verdict; after printing it, so that a full disk does not lose it."""
    problem = None
    for path, text in files:
        if path is not None:
            try:
                write_text(path, text(result))
            except DldError as error:
                problem = problem or error
            else:
                narrate(f"wrote {path}")
    if problem is not None:
        raise problem


def _document(result: GateResult) -> dict[str, Any]:
    """Return the result with the ratio and interval of the whole and of each node."""
    rows = [{**(encode(row) or {}), "node": row.key, **_ratio(row)} for row in result.nodes]
    lone = [
        {**(encode(node) or {}), "node": node.key, "verdict": node.verdict}
        for node in result.lone_nodes
    ]
    whole = _ratio(result.end_to_end)
    return {**(encode(result) or {}), **whole, "nodes": rows, "lone_nodes": lone}


def _ratio(row: GateRow | None) -> dict[str, Any]:
    if row is None:
        return {"ratio": None, "interval": None}
    ratio, low, high = (
        1 + percent / 100 for percent in (row.change_percent, row.low_percent, row.high_percent)
    )
    return {"ratio": ratio, "interval": [low, high]}


def _parsed(texts: Sequence[str]) -> dict[str, Any]:
    """Parse settings of the form ``NAME=VALUE``.

    Raises:
        UsageError: The setting is unknown, or its value is invalid.
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        setting = _SETTINGS.get(name.strip().lstrip("-").replace("-", "_"))
        if setting is None:
            raise UsageError(f"{text!r} is not a setting", hint=f"There are {', '.join(_SETTINGS)}")
        if not equals:
            raise UsageError(f"{text!r} has no value", hint=f"Write {text}=VALUE")
        _add(settings, setting, value)
    return settings


def _add(settings: dict[str, Any], setting: Setting, text: str) -> None:
    try:
        value = click_type(setting).convert(text, None, None)
    except click.BadParameter as error:
        raise UsageError(f"{setting.name}={text}: {error.message}") from None
    if isinstance(setting.default, tuple):
        settings[setting.name] = (*settings.get(setting.name, ()), value)
    else:
        put_once(settings, setting.name, value, "--base-set or --new-set")


def _print(result: GateResult) -> None:
    write(result.line)
    for note in result.notes:
        write(f"Note: {note}")
    if listed_nodes(result):
        write()
        write_table(gate_table(result))
        if more := more_nodes(result):
            write(f"{more}; --json has all")
    elif result.nodes_compared:
        write(f"No node changed among {fmt.count(result.nodes_compared)}.")


command = Command(
    "gate",
    callback=_callback,
    help=_HELP,
    params=[
        click.Argument(["base"], metavar="BASE"),
        click.Argument(["new"], metavar="[NEW]", required=False),
        click.Option(["--commands"], is_flag=True, help="Time BASE and NEW as command lines."),
        click.Option(
            ["--base-set"], multiple=True, metavar="NAME=VALUE",
            help="Setting of BASE only; repeatable.",
        ),
        click.Option(["--new-set"], multiple=True, metavar="NAME=VALUE", help=(
            "Setting of NEW only; repeatable."
        )),
        click.Option(
            ["markdown_file", "--markdown"], type=OUTPUT, metavar="FILE",
            help="Also write the verdict as Markdown, for a CI job summary.",
        ),
        click.Option(
            ["junit_file", "--junit"], type=OUTPUT, metavar="FILE",
            help="Also write it as JUnit XML.",
        ),
        force_option("Overwrite existing files."),
        target_option(),
        json_option(),
        *(one for one in parameters_of(Request) if isinstance(one, click.Option)),
    ],
)  # fmt: skip
