"""``dld accuracy``: compare the outputs of two runs; find nodes that must stay in fp32."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dld_tui.activities.accuracy.job import Request
from dld_tui.activities.accuracy.score import Request as ScoreRequest
from dld_tui.activities.accuracy.search import Request as SearchRequest
from dld_tui.cli.command import Command, force_option, json_option
from dld_tui.cli.jobs.activity import run_activity, target_option
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.accuracy.result import (
    AccuracyReport,
    AccuracyRow,
    Result,
    accuracy_table,
    listed,
    output_text,
    rows_csv,
    side_text,
)
from dld_tui.core.accuracy.scores import DatasetScores, score_lines, score_table
from dld_tui.core.accuracy.search import (
    KeptNode,
    PrecisionEstimate,
    PrecisionResult,
    cost_text,
    kept_table,
    not_minimal_text,
)
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.errors import ExitStatus, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.params import settings_of, written_files
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.text import visible

_OWN = {setting.name for setting in settings_of(Request)}
_SEARCH_OWN = {setting.name for setting in settings_of(SearchRequest)} - _OWN
_SCORE_OWN = {setting.name for setting in settings_of(ScoreRequest)} - _OWN - _SEARCH_OWN
_FLAGS = {
    setting.name: setting.param.spellings[0]
    for request in (Request, SearchRequest, ScoreRequest)
    for setting in settings_of(request)
    if setting.param.spellings
}

_HELP = """Compare the outputs of two models, or of two ways to run one model.

The second run uses another model or a TensorRT engine (--against), TensorRT (--against-backend
tensorrt, with --fp16 and other build options), another ONNX Runtime provider (--against-provider),
another graph optimisation (--against-optimization), or rounds tensors to a lower precision
(--round). Prints the errors of each tensor. Exit status 1 if an output is outside its tolerance.

--search finds the fewest nodes that must stay in fp32 to keep the outputs within their tolerance
while all others run in fp16 or bf16. Trials run in ONNX Runtime, or as engines with --backend
tensorrt. With --search int8 --calibration DIR the other nodes are quantized; pass the listed nodes
to dld convert quantize --exclude, or the file of --script to --exclude-from. The search first
estimates its duration. Ctrl+C stops it; the same command resumes it. Exit status 1 if no set of
nodes suffices, or if --most-trials ended the search.

--dataset judges the model, and that of --against, on labelled samples: top-1, F1, word errors, …,
with intervals of 95 %. Exit status 1 if the loss is not certainly within --most-loss.
"""


def _callback(
    target: str | None,
    as_json: bool,
    as_csv: bool,
    worst: bool,
    rows: int,
    force: bool,
    **values: Any,
) -> int:
    if as_json and as_csv:
        raise UsageError("--json does not go with --csv")
    if values["precision"] is not None:
        values = _values_of(SearchRequest, values, "--search")
        if as_csv:
            raise UsageError("--csv cannot be used with --search")
        return _search(values, target, as_json=as_json, force=force)
    if values["dataset"] is not None:
        values = _values_of(ScoreRequest, values, "--dataset")
        return _score(request_from(ScoreRequest, values), target, as_json, as_csv)
    for owned, flag in ((_SEARCH_OWN, "--search"), (_SCORE_OWN, "--dataset")):
        foreign = [name for name in sorted(owned) if values.pop(name, None) not in (None, ())]
        if foreign:
            raise UsageError(f"{_FLAGS[foreign[0]]} is for {flag}")
    result: AccuracyReport = run_activity("accuracy", request_from(Request, values), target)
    if as_json:
        write_json(result)
    elif as_csv:
        write(rows_csv(result.found.rows).rstrip("\n"))
    else:
        show_result(result, worst=worst, most=rows)
    return ExitStatus.DONE if result.is_good else ExitStatus.FOUND


def _values_of(request: type[Any], values: dict[str, Any], flag: str) -> dict[str, Any]:
    """Return the values that are settings of a request.

    Raises:
        UsageError: Another one was given.
    """
    wanted = {setting.name for setting in settings_of(request)}
    foreign = [name for name in values if name not in wanted and values[name] not in (None, ())]
    if foreign:
        option = _FLAGS.get(foreign[0], f"--{foreign[0].removeprefix('flag_').replace('_', '-')}")
        raise UsageError(f"{option} cannot be used with {flag}")
    return {name: value for name, value in values.items() if name in wanted}


def _score(request: ScoreRequest, target: str | None, as_json: bool, as_csv: bool) -> int:
    result: DatasetScores = run_activity("score", request, target)
    if as_json:
        write_json(result)
    elif as_csv:
        write(csv_of(score_table(result)).rstrip("\n"))
    else:
        for line in score_lines(result):
            write(line)
        write()
        write_table(score_table(result))
    return ExitStatus.DONE if result.outcome in (None, Outcome.PASS) else ExitStatus.FOUND


def _search(values: dict[str, Any], target: str | None, *, as_json: bool, force: bool) -> int:
    model: Path = values["model"]
    request = request_from(SearchRequest, values)
    require_free(written_files(request), force)
    result = run_activity("search_precision", request, target)
    if as_json:
        write_json(result)
    else:
        show_search(result, model)
    is_whole = isinstance(result, PrecisionEstimate) or (result.kept is not None and result.minimal)
    return ExitStatus.DONE if is_whole else ExitStatus.FOUND


def _parameters() -> list[click.Parameter]:
    mine = parameters_of(Request)
    theirs = [param for param in parameters_of(SearchRequest) if param.name in _SEARCH_OWN]
    theirs += [param for param in parameters_of(ScoreRequest) if param.name in _SCORE_OWN]
    for parameter in theirs:
        parameter.required = False
    return [
        *mine,
        click.Option(
            ["--worst/--in-order", "worst"],
            default=True,
            help="Sort by error or by execution order.",
        ),
        click.Option(
            ["--rows"], type=click.IntRange(0), default=40, metavar="N",
            help="Number of inner tensors to list; 0 for all.  [default: 40]",
        ),
        *(_search_option(one) if one.name == "precision" else one for one in theirs),
        target_option(),
        force_option("Overwrite an existing edit script."),
        json_option(),
        click.Option(["--csv", "as_csv"], is_flag=True, help="Print the tensors as CSV."),
    ]  # fmt: skip


def _search_option(precision: click.Parameter) -> click.Parameter:
    """Return the option that asks for a search, with the precision as its optional value."""
    return click.Option(
        ["precision", *precision.opts], is_flag=False, flag_value=SearchRequest.precision,
        type=precision.type,
        help=(
            "Find the fewest nodes that must stay in fp32 when all others run in this precision,"
            f" or for int8 are quantized. By default {SearchRequest.precision}.  [also --precision]"
        ),
    )  # fmt: skip


command = Command("accuracy", params=_parameters(), callback=_callback, help=_HELP)


def show_search(result: PrecisionResult, model: Path) -> None:
    """Print the result of a search as text."""
    precision = result.precision
    is_int8 = precision == "int8"
    if isinstance(result, PrecisionEstimate):
        write(cost_text(result.estimate))
        return
    cost = f"{fmt.plural(result.trials, 'trial')} in {fmt.duration(result.seconds)}"
    kept = result.kept
    if kept is None:
        write(f"No set of nodes suffices: {cost}")
        write("Outputs are outside their tolerance even with all nodes in fp32")
        return
    if not result.minimal:
        write(not_minimal_text(result))
        _write_nodes(kept)
    elif kept:
        write(f"{fmt.plural(len(kept), 'node')} must stay in fp32; lowering any of them puts an"
              " output outside its tolerance")  # fmt: skip
        _write_nodes(kept)
    elif not result.candidates:
        write(f"No node can be changed to {precision}")
        return
    else:
        write("All nodes can be quantized" if is_int8 else f"All nodes can run in {precision}")
    write(f"{fmt.plural(result.lowered or 0, 'node')} in {precision}; {cost}")
    for name, error in result.errors.items():
        write(output_text(name, error))
    write()
    script, path = result.script, visible(str(model))
    if is_int8 and kept:
        exclusion = "--exclude NAME …" if script is None else f"--exclude-from {visible(script)}"
        write(
            f"Quantize the others: dld convert quantize {path} --calibration DIR {exclusion} -o OUT"
        )
        if script is None:
            write("Use --script nodes.txt to write the names for --exclude-from")
    elif is_int8:
        write(f"Quantize it: dld convert quantize {path} --calibration DIR -o OUT")
    elif script is None:
        write("Use --script precisions.jsonl to write the edit script that sets the precisions")
    else:
        write(f"Set the precisions: dld edit {path} {visible(script)} -o OUT")


def _write_nodes(kept: Sequence[KeptNode]) -> None:
    write_table(kept_table(kept))


def show_result(result: AccuracyReport, *, worst: bool, most: int) -> None:
    """Print a comparison as text."""
    errors = result.found
    for remark in errors.remarks:
        narrate(remark)
    write(f"Reference  {side_text(result.reference)}")
    write(f"Other      {side_text(result.other)}")
    sets = fmt.plural(result.sets, "set")
    write(f"Inputs     {sets}: {', '.join(visible(text) for text in result.inputs)}")
    write()
    _table(errors.outputs)
    inner = [row for row in (errors.worst() if worst else errors.rows) if not row.is_output]
    if inner:
        shown = listed(inner, most)
        write()
        order = "largest errors first" if worst else "in order"
        more = f", {len(shown):,} shown" if len(shown) < len(inner) else ""
        write(f"{fmt.plural(len(inner), 'inner tensor')}, {order}{more}")
        _table(shown)
        _first(errors)
    write()
    bad = [row for row in errors.outputs if row.problem]
    for row in bad:
        write(f"{visible(row.name)}: {visible(row.problem)}")
    if not bad:
        write(f"All outputs are within the tolerance ({result.tolerance})")


def _first(errors: Result) -> None:
    first = errors.first
    if first is None:
        return
    write()
    where = f" of {visible(first.op_type)} {visible(first.node)}" if first.node else ""
    write(f"First divergence: {visible(first.name)}{where}: {visible(first.problem)}")


def _table(rows: Sequence[AccuracyRow]) -> None:
    write_table(accuracy_table(rows, "text"))
