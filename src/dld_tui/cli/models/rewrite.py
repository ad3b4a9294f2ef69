"""``dld rewrite``: replace what patterns find."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dld_tui.cli.models.find import learn_types
from dld_tui.cli.output import narrate, require_free, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.errors import ExitStatus, UsageError
from dld_tui.core.files.writer import write_text
from dld_tui.core.rewrite.rule import RULES, known_rules, rules_of, text_of_rules
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.document.edits.rewriting import Rewritten

_MOST_REASONS = 10


def _print_rules(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write_table(Table(RULES, known_rules()))
        ctx.exit()


@click.command("rewrite")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("rules", nargs=-1, required=True)
@click.option("-o", "--output", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--preview", is_flag=True, help="Print what would change; write nothing.")
@click.option("--verify", is_flag=True, help="Run both models and compare what they compute.")
@click.option(
    "--script", metavar="FILE", type=click.Path(path_type=Path),
    help="Write the edit as an edit script, too.",
)  # fmt: skip
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_print_rules,
    help="List the rules that have names.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    model: Path,
    rules: tuple[str, ...],
    output: Path | None,
    preview: bool,
    verify: bool,
    script: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Replace what patterns find until nothing is found, in bodies and functions too.

    RULES are names of rules, files of rules, or a rule such as 'Identity(x) => x'. Exit status 1
    when nothing was replaced, or with --verify when the values differ.
    """
    from dld_tui.core.document.arguments import entry_of
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.edits.rewriting import preview as preview_of
    from dld_tui.core.document.serialise import save

    wanted = rules_of(rules)
    if output is None and not preview:
        raise UsageError("the result needs a file", hint="Add -o OUT, or --preview")
    if preview and (verify or script is not None):
        raise UsageError("--preview writes nothing to verify or to keep")
    for path in (output, script):
        if path is not None and not preview:
            require_free(path, force)
    text = text_of_rules(wanted)
    with closing(Document.open(model)) as document:
        learn_types(document, model, any(rule.needs_types for rule in wanted))
        done = preview_of(document, text)
        total = sum(done.counts.values())
        if not preview and output is not None:
            if total:
                document.apply("rewrite", rules=text)
            save(document, output)
            if script is not None:
                write_text(script, f"{json.dumps(entry_of('rewrite', {'rules': text}))}\n")
    verdict = _verified(model, output) if verify and output is not None else None
    if as_json:
        write_json(_json(done, output if not preview else None, verdict))
    else:
        _write(done, preview)
        if verdict is not None:
            write(
                "The values are equal."
                if verdict.is_good
                else "The values differ: see dld accuracy"
            )
    for reason, number in list(done.refused.items())[:_MOST_REASONS]:
        narrate(f"{model}: left as it is: {reason}" + (f" ({number} times)" * (number > 1)))
    if len(done.refused) > _MOST_REASONS:
        narrate(f"{model}: and {fmt.plural(len(done.refused) - _MOST_REASONS, 'place')} more")
    is_fine = total and (verdict is None or verdict.is_good)
    return ExitStatus.DONE if is_fine else ExitStatus.FOUND


def _verified(model: Path, output: Path) -> Any:
    """Run both models on the same inputs and return the comparison."""
    from dld_tui.activities.accuracy import Request
    from dld_tui.cli.jobs.activity import run_activity

    return run_activity("accuracy", Request(model=model, against=output))


def _json(done: Rewritten, output: Path | None, verdict: Any) -> dict[str, Any]:
    return {
        "path": None if output is None else str(output),
        "rewritten": sum(done.counts.values()),
        "rules": done.counts,
        "hits": [
            {"rule": rule, "scope": list(place), "removed": went, "added": came}
            for rule, place, went, came in done.hits
        ],
        "refused": [{"reason": reason, "count": n} for reason, n in done.refused.items()],
        "verified": None if verdict is None else bool(verdict.is_good),
    }


def _write(done: Rewritten, preview: bool) -> None:
    for rule, place, went, came in done.hits if preview else ():
        write(visible(f"@@ {' › '.join(place) or 'main'}: {rule}"))
        for sign, lines in (("-", went), ("+", came)):
            for line in lines:
                write(visible(f"{sign} {line}"))
    for rule, number in done.counts.items():
        write(f"{visible(rule)}: {fmt.plural(number, 'place')}")
    if not done.counts:
        write("nothing to replace")
