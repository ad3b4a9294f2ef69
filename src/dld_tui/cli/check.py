"""``dld check``: what is wrong with a model."""

from __future__ import annotations

from pathlib import Path

import click

from dld_tui.cli.output import write, write_json
from dld_tui.core.checks import Finding, check
from dld_tui.core.document.document import Document
from dld_tui.core.errors import ExitStatus
from dld_tui.core.text import visible


@click.command("check")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(model: Path, as_json: bool) -> int:
    """Check a model without running it, one finding a line. Reads no weights.

    Exit status 1 when there are errors or warnings.
    """
    document = Document.open(model)
    try:
        findings = check(document)
        errors = sum(finding.level == "error" for finding in findings)
        warnings = sum(finding.level == "warning" for finding in findings)
        if as_json:
            write_json(
                {
                    "findings": [finding.to_json() for finding in findings],
                    "errors": errors,
                    "warnings": warnings,
                }
            )
        for finding in () if as_json else findings:
            write(finding_line(finding))
        return int(ExitStatus.FOUND if errors or warnings else ExitStatus.DONE)
    finally:
        document.close()


def finding_line(finding: Finding) -> str:
    """Return a finding as one line: its level, its rule, where it is, and what it says."""
    steps = list(finding.scope.path) if finding.scope is not None else []
    if finding.node is not None:
        steps.append(finding.node.ref)
    place = f"{visible(' › '.join(steps))}: " if steps else ""
    return f"{finding.level:<8}{finding.rule:<22} {place}{finding.message}"
