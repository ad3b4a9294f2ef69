"""``dld check``: findings and fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from dld_tui.activities.check.full import LIMIT_S, Result
from dld_tui.activities.check.full import Request as FullRequest
from dld_tui.api.inference import inference_findings
from dld_tui.cli.command import command_for, force_flag, json_flag, output_file
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core import fmt
from dld_tui.core.checks import RULES, Level, check
from dld_tui.core.checks.decoders import decoder_findings
from dld_tui.core.checks.findings import (
    DECODER_RULES,
    LOAD,
    ORDER,
    SPEED_RULES,
    Finding,
    RuntimeAnswer,
    by_severity,
    findings_of,
    joined,
    repair_steps,
    safe,
)
from dld_tui.core.checks.rules import check_size
from dld_tui.core.checks.speed import speed_findings
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    CancelledError,
    DldError,
    EditError,
    ExitStatus,
    UnavailableError,
    UsageError,
)
from dld_tui.core.files.permission import require_free
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document.document import Document
from dld_tui.core.params import param
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_MOST_ROUNDS = 8
"""Fixes can enable others: inputs of a removed node may become unused."""


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld check``."""

    model: Path = param(
        label="Model", help="The ONNX model, or the folder of a language model.", positional=True
    )
    rule: tuple[str, ...] = param(
        (), label="Rule", metavar="ID",
        choices=tuple(sorted((*RULES, *DECODER_RULES, *SPEED_RULES))),
        help="Show only findings of this rule; repeatable.",
    )  # fmt: skip
    level: Level = param(
        "info", label="Level", choices=tuple(ORDER),
        help="Show only findings of at least this level.",
    )  # fmt: skip
    speed: bool = param(
        False, label="Speed",
        help="Also report what slows the model down on a GPU.",
    )  # fmt: skip
    run: bool = param(
        False, label="Run",
        help="Also let ONNX Runtime run the model once, on guessed inputs.",
    )  # fmt: skip
    full: bool = param(False, label="Full", help="Also run onnx's full checker.")
    polygraphy: bool = param(
        False, label="Polygraphy",
        help="Also run Polygraphy's lint, which runs every node.",
    )  # fmt: skip
    time_limit: float | None = param(
        None, label="Time limit", metavar="S", minimum=0.1,
        help="Time limit of ONNX Runtime, of --full and of --polygraphy.  [default: 120]",
    )  # fmt: skip
    requirements: bool = param(
        False, label="Requirements",
        help="Instead, check what dld.toml beside the model requires, as dld gate does.",
    )  # fmt: skip
    fix: bool = param(False, label="Fix", help="Apply all safe fixes and write the model to OUT.")
    output: Path | None = output_file()
    force: bool = force_flag()
    as_json: bool = json_flag()

    def require(self) -> None:
        """Check that options go together.

        Raises:
            UsageError: One needs another, or two exclude each other.
        """
        others = (self.rule, self.level != "info", self.speed, self.run, self.full,
                  self.polygraphy, self.fix, self.time_limit)  # fmt: skip
        if self.requirements and any(others):
            raise UsageError("--requirements is checked alone")
        if self.fix != (self.output is not None):
            raise UsageError("--fix needs -o OUT, and -o needs --fix")


@command_for("check", Request)
def command(asked: Request) -> int:
    """Check a model for errors and suspicious constructs, one finding per line.

    For a folder, check its decoder and compare it with genai_config.json.

    Asks the installed ONNX Runtime whether it loads the model, with zeros for large weights. Reads
    all weights only with --run and --polygraphy.

    Exit status 1 if there are errors or warnings; with --fix, if some remain. With --requirements,
    1 if the model does not meet one and 5 if one is undecided.
    """
    if asked.requirements:
        return _check_requirements(asked.model, asked.as_json)
    require_free([asked.output], asked.force)
    model = asked.model
    speed = asked.speed or any(rule in SPEED_RULES for rule in asked.rule)
    folder, config = None, None
    if model.is_dir():
        from dld_tui.core.llm.folder import find_decoder

        folder = model
        model, config = find_decoder(model)
    document = open_document(model)
    limit_s = LIMIT_S if asked.time_limit is None else asked.time_limit
    try:
        answer, every = _every(document, model, speed, asked.run, limit_s)
        findings = _chosen(every, asked.rule, asked.level)
        if folder is not None:
            from dld_tui.core.llm.agreement import folder_findings

            said = _chosen(folder_findings(document, folder, config), asked.rule, asked.level)
            findings = by_severity([*findings, *said])
        repaired = 0
        if asked.output is not None:
            was_loaded = answer.loaded
            repaired = _repair(document, findings, asked.rule, asked.level, speed)
            _save(document, asked.output)
            answer, every = _every(document, asked.output, speed, asked.run, limit_s)
            lost = [one for one in every if one.rule == LOAD] if was_loaded else []
            chosen = _chosen(every, asked.rule, asked.level)
            findings = [*(one for one in lost if one not in chosen), *chosen]
            narrate(f"{asked.output}: {repaired} fix{'' if repaired == 1 else 'es'} applied")
        if asked.full or asked.polygraphy:
            others = full_findings(
                document,
                asked.output or model,
                onnx=asked.full,
                polygraphy=asked.polygraphy,
                time_limit=limit_s,
            )
            findings = by_severity([*findings, *_chosen(others, (), asked.level)])
        _print(findings, answer, asked.as_json, repaired if asked.fix else None)
        bad = any(finding.level != "info" for finding in findings)
        return int(ExitStatus.FOUND if bad else ExitStatus.DONE)
    finally:
        document.close()


def _check_requirements(model: Path, as_json: bool) -> int:
    from dld_tui.activities.gate import Request as Gate
    from dld_tui.cli.jobs.gate import STATUSES, judge_requirements
    from dld_tui.targets import registry as targets

    request = Gate(model)
    request.require()
    run_job = partial(targets.result_of, target=None)
    return STATUSES[judge_requirements(request, run_job, as_json=as_json).outcome]


def _checked(document: Document, speed: bool) -> list[Finding]:
    findings = check(document)
    more = speed_findings(document) if speed else decoder_findings(document)
    return by_severity([*findings, *more])


def _every(
    document: Document, model: Path, speed: bool, run: bool, limit_s: float
) -> tuple[RuntimeAnswer, list[Finding]]:
    """Return what ONNX Runtime says of a document that was opened from a file, and all findings."""
    if crowded := [finding for finding in check_size(document) if finding is not None]:
        return RuntimeAnswer(False, reason="the model has too many parts"), crowded
    of_inference = inference_findings(document, model)
    answer, refused = _asked(document, model, run, limit_s)
    return answer, joined([*of_inference, *refused], answer, _checked(document, speed))


def _asked(
    document: Document, model: Path, run: bool, limit_s: float
) -> tuple[RuntimeAnswer, list[Finding]]:
    from dld_tui.cli.jobs.activity import run_activity

    request = FullRequest(model, onnx=False, runtime=True, run=run, time_limit=limit_s)
    try:
        result: Result = run_activity("check_full", request, None)
    except CancelledError:
        raise
    except DldError as error:
        return RuntimeAnswer(False, reason=error.message), []
    assert result.runtime is not None
    return result.runtime, findings_of(document, result.findings)


def _chosen(findings: list[Finding], rules: Sequence[str], level: Level) -> list[Finding]:
    worst = ORDER[level]
    return [
        finding
        for finding in findings
        if ORDER[finding.level] <= worst and (not rules or finding.rule in rules)
    ]


def _repair(
    document: Document, findings: list[Finding], rules: Sequence[str], level: Level, speed: bool
) -> int:
    """Apply all safe fixes, or all of the rules that were asked for; return their number."""
    from dld_tui.core.model.edits import repairs

    repaired = 0
    for _ in range(_MOST_ROUNDS):
        steps = repair_steps(findings if rules else safe(findings))
        if not steps:
            break
        try:
            transaction = document.apply(repairs.repair_of(steps))
        except EditError as error:
            narrate(f"not fixed: {visible(error.message)}")
            break
        if not transaction.primitives:
            break
        repaired += len(steps)
        findings = _chosen(_checked(document, speed), rules, level)
    return repaired


def _save(document: Document, output: Path) -> None:
    from dld_tui.core.model.document.serialise import save

    save(document, output)


def _print(
    findings: list[Finding], answer: RuntimeAnswer, as_json: bool, repaired: int | None
) -> None:
    if not as_json:
        for finding in findings:
            write(finding_line(finding))
        counts = Counter(finding.level for finding in findings)
        many = {"error": "errors", "warning": "warnings", "info": "info"}
        texts = [fmt.plural(counts[level], level, many[level]) for level in ORDER if counts[level]]
        narrate(", ".join(texts) or "no findings")
        if line := _runtime_line(answer):
            narrate(line)
        return
    data: dict[str, JSON] = {
        "findings": [finding.to_json() for finding in findings],
        "errors": sum(finding.level == "error" for finding in findings),
        "warnings": sum(finding.level == "warning" for finding in findings),
        "runtime": asdict(answer),
    }
    if repaired is not None:
        data["repaired"] = repaired
    write_json(data)


def _runtime_line(answer: RuntimeAnswer) -> str:
    """Return what else there is to say of ONNX Runtime's answer."""
    if not answer.asked:
        return f"ONNX Runtime was not asked: {answer.reason}"
    title = f"ONNX Runtime {answer.version} ({', '.join(answer.providers)})"
    if answer.reason:
        return f"{title} gave no answer: {answer.reason}"
    return f"{title} ran it once, on guessed inputs" if answer.ran else ""


def finding_line(finding: Finding) -> str:
    """Return a finding as one line: level, rule, place, message."""
    steps = list(finding.scope.path) if finding.scope is not None else []
    if finding.node is not None:
        steps.append(finding.node.ref)
    place = f"{visible(' › '.join(steps))}: " if steps else ""
    more = f"; {finding.command}" if finding.command else ""
    return f"{finding.level:<8}{finding.rule:<22} {place}{finding.message}{more}"


MISSING = "polygraphy:missing"


def full_findings(
    document: Document,
    model: Path,
    *,
    onnx: bool = True,
    polygraphy: bool = False,
    time_limit: float = LIMIT_S,
    target: str | None = None,
) -> list[Finding]:
    """Return the findings of onnx's full checker and Polygraphy's lint.

    Args:
        document: The model, opened from `model` and not edited.
        model: Its file.
        onnx: Run onnx's full checker.
        polygraphy: Run Polygraphy's lint.
        time_limit: Seconds for each of them.
        target: Where to run them; None is this machine.

    Raises:
        UnavailableError: Polygraphy is requested but not installed.
        DldError: The job failed or was cancelled.
    """
    from dld_tui.cli.jobs.activity import run_activity

    request = FullRequest(model, onnx=onnx, polygraphy=polygraphy, time_limit=time_limit)
    findings = findings_of(document, run_activity("check_full", request, target).findings)
    for finding in findings:
        if finding.rule == MISSING:
            what, _, install = finding.message.partition(": ")
            raise UnavailableError(what, where="Polygraphy", hint=install)
    return findings
