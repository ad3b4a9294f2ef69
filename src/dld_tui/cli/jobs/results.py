"""Print the results of activities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from dld_tui.activities.profile.llm import Result as LlmResult
from dld_tui.activities.profile.onnxruntime import Result as OrtResult
from dld_tui.activities.profile.tensorrt import Result as TensorRTResult
from dld_tui.activities.refit import Result
from dld_tui.activities.tactics import Request
from dld_tui.cli.command import force_option, json_option
from dld_tui.cli.jobs.activity import RewritingCommand, run_activity, target_option
from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.cli.reports.report import Printed, print_report, print_sweep, print_tuning
from dld_tui.core import fmt
from dld_tui.core.accuracy.tactics import (
    TacticReport,
    avoiding_command,
    counts_text,
    tactic_table,
    verdict_text,
)
from dld_tui.core.codec import encode
from dld_tui.core.conversion.reduction import Reduction
from dld_tui.core.conversion.result import (
    ConversionResult,
    ConvertedOpset,
    ConvertedWeights,
    PrecisionModel,
    PrecisionsResult,
    QuantizationResult,
    QuantizedModel,
    TensorsResult,
    VerifiedResult,
    preview_lines,
    report_notes,
)
from dld_tui.core.conversion.tensor_casting import TensorLoss
from dld_tui.core.errors import ExitStatus
from dld_tui.core.files.permission import require_free
from dld_tui.core.fmt import milliseconds
from dld_tui.core.machine.health import FAILED, PASSED, SelfTest, selftest_lines, step_table
from dld_tui.core.model.cost.memory import MemoryPlan, memory_lines, memory_table, plan_json
from dld_tui.core.params import written_files
from dld_tui.core.reading.first_lines import text_lines
from dld_tui.core.report.generation import generation_story, generation_table
from dld_tui.core.report.latency import LatencyFigures
from dld_tui.core.report.load import LoadResult, load_lines, load_table
from dld_tui.core.report.provider_support import ProvidersResult, support_lines, support_table
from dld_tui.core.report.report import open_report
from dld_tui.core.report.startup import SessionStartup, node_table, stage_table, startup_lines
from dld_tui.core.report.sweep import Sweep
from dld_tui.core.report.sweep_export import sweep_document
from dld_tui.core.statistics import PERCENTILES
from dld_tui.core.tables.table import BYTES, COUNT, RATIO, Column, Table
from dld_tui.core.tensorrt.trtexec_arguments import plain_arguments
from dld_tui.core.text import visible
from dld_tui.core.tune.placement import PlacementResult, placement_lines, placement_table
from dld_tui.core.tune.result import (
    TuneResult,
    load_result,
    tune_document,
)

_TENSORS: tuple[Column[TensorLoss], ...] = (
    Column("name", "tensor", attrgetter("name"), keep="end"),
    Column("kind", "kind", attrgetter("kind")),
    Column("dtype", "type", attrgetter("dtype")),
    Column("shape", "shape", lambda loss: fmt.shape(loss.shape)),
    Column("bytes", "size", attrgetter("bytes"), BYTES),
    Column("overflow", "too large", attrgetter("overflow"), COUNT),
    Column("underflow", "to zero", attrgetter("underflow"), COUNT),
    Column("rounded", "rounded", attrgetter("rounded"), COUNT),
    Column("max_error", "largest error", attrgetter("max_error"), RATIO),
)


def show_conversion(result: ConversionResult, as_json: bool) -> int:
    """Print the summary of a conversion; exit status 1 if it is not valid, or outputs are wrong."""
    for remark in result.remarks:
        narrate(remark)
    if as_json:
        write_json(result)
    else:
        for note in report_notes(result):
            write(note.text)
        write(result.end_text)
    is_wrong = isinstance(result, VerifiedResult) and result.values.is_wrong
    return ExitStatus.FOUND if is_wrong or result.unsound else ExitStatus.DONE


def show_opset(result: ConvertedOpset, as_json: bool) -> int:
    """Print the changes; exit status 1 if a part was not converted, or outputs are wrong."""
    status: int = ExitStatus.FOUND if result.unconverted else ExitStatus.DONE
    return max(status, show_conversion(result, as_json))


def show_quantization(result: QuantizationResult, as_json: bool) -> int:
    """Print the tensors to quantize if only listed, else the conversion."""
    if isinstance(result, QuantizedModel):
        return show_conversion(result, as_json)
    show_result(result, preview_lines(result), [], as_json=as_json)
    return ExitStatus.DONE


def show_precisions(result: PrecisionsResult, as_json: bool) -> int:
    """Print the casts that layers need; exit status 1 if a precision was rejected."""
    status: int = ExitStatus.FOUND if result.figures.refused else ExitStatus.DONE
    if not isinstance(result, PrecisionModel):
        show_result(result, preview_lines(result), [], as_json=as_json)
        return status
    for line in () if as_json else result.lines:
        write(line)
    return max(status, show_conversion(result, as_json))


def show_tensors(result: TensorsResult, as_json: bool) -> int:
    """Print the matching tensors if only listed, else the conversion."""
    if isinstance(result, ConvertedWeights):
        return show_conversion(result, as_json)
    if as_json:
        write_json(result)
    elif result.tensors:
        write_table(Table(_TENSORS, result.tensors))
    else:
        write("no tensor matches")
    return ExitStatus.DONE


_PHASES = (("h2d", "copy to GPU"), ("compute", "compute"), ("d2h", "copy back"), ("enqueue", "CPU"))


def percentile_line(summary: LatencyFigures | None) -> str:
    """Return percentiles that the report does not have, e.g. ``p50 1.234  p99.9 2.000 ms``."""
    known = {} if summary is None else summary.percentiles_ms
    usual = {f"{percent:g}" for percent in PERCENTILES}
    figures = [f"p{name} {milliseconds(ms)}" for name, ms in known.items() if name not in usual]
    return f"{'  '.join(figures)} ms" if figures else ""


def phases_line(phases: Mapping[str, Mapping[str, float]]) -> str:
    """Return the medians of the parts of a pass, as ``compute 0.812  copy back 0.010 ms``."""
    parts = [
        f"{title} {milliseconds(phases[name]['median'])}"
        for name, title in _PHASES
        if "median" in phases.get(name, {})
    ]
    return f"{'  '.join(parts)} ms" if parts else ""


def show_onnxruntime(result: OrtResult, as_json: bool, **printed: Any) -> None:
    """Print the report, percentiles that were asked for, and the path of the saved model."""
    print_report(result.report, as_json=as_json, printed=request_from(Printed, printed))
    latency = percentile_line(result.summary)
    if latency and not as_json:
        write(f"Latency: {latency}")
    if result.optimized_model is not None and not as_json:
        write(f"Optimised model: {visible(str(result.optimized_model))}")


def show_llm(result: LlmResult, as_json: bool) -> None:
    """Print the first lines of the report, and the figures by batch and prompt."""
    if as_json:
        write_json(result)
        return
    with open_report(result.report) as report:
        lines = [*text_lines(report), "", *generation_story(result.figures)]
    for line in lines:
        write(line)
    write_table(generation_table(result.figures))
    write()
    if result.prefill_report is not None:
        write(f"Prefill layers: {visible(str(result.prefill_report))}")


def show_tensorrt(result: TensorRTResult, as_json: bool, **printed: Any) -> None:
    """Print the report and the paths of saved files."""
    print_report(result.report, as_json=as_json, printed=request_from(Printed, printed))
    if as_json:
        return
    lines = (percentile_line(result.summary), phases_line(result.phases_ms))
    if latency := "   ".join(line for line in lines if line):
        write(f"Latency: {latency}")
    if result.engine is not None:
        write(f"Engine: {visible(str(result.engine))}")
    for path in result.saved:
        write(f"Saved: {visible(str(path))}")


def show_reduction(result: Reduction, as_json: bool) -> None:
    """Print the size of the reduced model and the output of the check."""
    if as_json:
        write_json(result)
        return
    names = ", ".join(result.nodes[:10]) + (", …" if len(result.nodes) > 10 else "")
    before = fmt.plural(result.nodes_before, "node")
    write(f"{visible(str(result.path))}: {result.nodes_after} of {before}: {visible(names)}")
    known = f", and {result.known} known from before" if result.known else ""
    write(f"{fmt.plural(result.tried, 'part')} tried{known} in {fmt.duration(result.seconds)}")
    for line in result.said.splitlines()[-5:]:
        write(f"  {visible(line)}")


def show_refit(result: Result, as_json: bool) -> None:
    """Print the path and the size of the engine, and the number of refitted weights."""
    if as_json:
        write_json(result)
        return
    write(visible(result.text))


def show_sweep(result: Sweep, as_json: bool) -> None:
    """Print the best points and a row for each."""
    if as_json:
        write_json(sweep_document(result))
    else:
        print_sweep(result)


def show_placement(result: PlacementResult, as_json: bool) -> None:
    """Print the outcome and what was decided of each region."""
    show_result(result, placement_lines(result), [placement_table(result)], as_json=as_json)


def show_load(result: LoadResult, as_json: bool) -> None:
    """Print where it saturates and a row for each load."""
    show_result(result, load_lines(result), [load_table(result)], as_json=as_json)


def show_startup(result: SessionStartup, as_json: bool) -> None:
    """Print the stages and the nodes that are not on the first provider."""
    show_result(result, startup_lines(result), [stage_table(result)], as_json=as_json)
    if result.elsewhere and not as_json:
        write()
        write_table(node_table(result))


def show_providers(result: ProvidersResult, as_json: bool) -> None:
    """Print what each provider takes, and the nodes it does not where one was named."""
    table = support_table(result)
    tables = [table] if result.is_list and len(table) else []
    show_result(result, support_lines(result), tables, as_json=as_json)


def show_memory(result: MemoryPlan, as_json: bool) -> None:
    """Print the sums and the live tensors at the peak."""
    if as_json:
        write_json(plan_json(result))
    else:
        show_result(result, memory_lines(result), [memory_table(result)], as_json=False)


def show_selftest(result: SelfTest, as_json: bool) -> int:
    """Print the steps; status 1 if one failed, 4 if no requested backend is available."""
    show_result(result, selftest_lines(result), [step_table(result)], as_json=as_json)
    if result.count(FAILED):
        return ExitStatus.FOUND
    return ExitStatus.DONE if result.count(PASSED) else ExitStatus.UNAVAILABLE


def show_result(
    result: Any, lines: Sequence[str], tables: Sequence[Table[Any]], *, as_json: bool
) -> None:
    """Print lines and tables of a result, or all of it as JSON."""
    if as_json:
        write_json(encode(result))
        return
    for line in lines:
        write(line)
    for table in tables:
        write()
        write_table(table)


def show_tune(result: TuneResult, as_json: bool) -> int:
    """Print the candidates, the verdict and the settings.

    Exit status 1 where changes were asked for by name and are taken back.
    """
    if as_json:
        write_json(tune_document(result))
    else:
        print_tuning(result)
    return ExitStatus.FOUND if result.asked and not result.is_faster else ExitStatus.DONE


def show_several(paths: Sequence[Path], as_json: bool) -> int:
    """Print the results of several targets; return the worst status."""
    results = [load_result(path) for path in paths]
    if as_json:
        write_json([tune_document(result) for result in results])
        return ExitStatus.DONE
    return max(show_tune(result, as_json) for result in results)


_HELP = """\
Find the TensorRT tactics (kernels) that give wrong results.

Builds the model several times and compares each engine with ONNX Runtime. If one engine is wrong
and another is correct, further builds with fixed tactics narrow down the layers in which they
differ, until each remaining tactic alone makes the result wrong. Then it writes a file for dld
build that avoids these tactics. Accepts the options of dld build. Ctrl+C stops it; the same command
resumes it. Exit status 1 if a result was wrong.
"""


def callback(target: str | None, force: bool, as_json: bool, **values: Any) -> int:
    """Run the command."""
    request: Request = request_from(Request, values)
    if not request.estimate_only:
        require_free(written_files(request), force)
    result = run_activity("tactics", request, target)
    if as_json:
        write_json(result)
    else:
        show_tactics(result, request.model)
    return ExitStatus.FOUND if result.bad else ExitStatus.DONE


def show_tactics(data: TacticReport, model: Path) -> None:
    """Print the result of a search as text."""
    write(verdict_text(data))
    if data.verdict is None:
        return
    if data.problem:
        write(f"Wrong result: {visible(data.problem)}")
    if data.culprits:
        write_table(tactic_table(data))
    elif data.suspects:
        write("Tactics that occur only in wrong builds:")
        write_table(tactic_table(data).pick(("layer", "tactic")))
    write(visible(counts_text(data)))
    for remark in data.remarks:
        narrate(remark)
    if command := avoiding_command(data, model):
        write(f"Build without them: {visible(command)}")


command = RewritingCommand(
    "tactics",
    plain_arguments,
    callback=callback,
    params=[
        *parameters_of(Request),
        target_option(),
        force_option(),
        json_option(),
    ],
    help=_HELP,
)
