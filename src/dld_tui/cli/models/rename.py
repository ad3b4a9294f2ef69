"""``dld rename``: new names for many nodes, tensors, inputs and outputs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from dld_tui.cli.command import Command
from dld_tui.cli.output import also_writes, narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.errors import ExitStatus, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.types import JSON

_MOST_SHOWN = 20


@click.command("rename", cls=Command)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--nodes", is_flag=True, help="Rename nodes.")
@click.option("--tensors", is_flag=True, help="Rename tensors other than inputs and outputs.")
@click.option("--inputs", is_flag=True, help="Rename inputs of the main graph.")
@click.option("--outputs", is_flag=True, help="Rename outputs of the main graph.")
@click.option("--prefix", default="", metavar="TEXT", help="Begin the new names with this.")
@click.option("--suffix", default="", metavar="TEXT", help="End the new names with this.")
@click.option(
    "--pattern", default="", metavar="REGEX",
    help="Rename only names with a match of this regular expression of Python.",
)  # fmt: skip
@click.option(
    "--to", "replacement", metavar="TEXT",
    help=r"Replace each match: \1 and \g<name> are groups, {n} numbers the names, {op} is the "
    "operator.",
)  # fmt: skip
@click.option("--preview", is_flag=True, help="Print the changes; write nothing.")
@also_writes("--script", "the edit as an edit script")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    model: Path,
    output: Path | None,
    nodes: bool,
    tensors: bool,
    inputs: bool,
    outputs: bool,
    prefix: str,
    suffix: str,
    pattern: str,
    replacement: str | None,
    preview: bool,
    script: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Rename by prefix, suffix or regular expression, including subgraphs and functions.

    Without --nodes, --tensors, --inputs or --outputs, nodes and tensors are renamed. If two would
    get the same name, nothing is written. Exit status 1 if no name changes, or if the result is not
    valid.
    """
    from dld_tui.api.soundness import write_edited
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.edits.pattern_renaming import KINDS, NewNames, Renamed, renamed
    from dld_tui.core.tables.table import Column, Table
    from dld_tui.core.text import visible

    if output is None and not preview:
        raise UsageError("OUT is missing", hint="Add -o OUT, or --preview")
    if preview and script is not None:
        raise UsageError("--preview writes nothing: omit --script")
    if replacement is not None and not pattern:
        raise UsageError("--to replaces matches of --pattern", hint="Add --pattern REGEX")
    if pattern and replacement is None:
        replacement = r"\g<0>"
    if not (pattern or prefix or suffix):
        raise UsageError("nothing to rename", hint="Add --prefix, --suffix or --pattern")
    flags = zip(KINDS, (nodes, tensors, inputs, outputs), strict=True)
    kinds = [kind for kind, is_wanted in flags if is_wanted] or [*KINDS[:2]]
    names = NewNames(pattern, replacement or "", prefix, suffix)
    require_free(() if preview else (output, script), force)
    problem = ""
    with closing(Document.open(model)) as document:
        changes = [*renamed(document, names, kinds)]
        arguments: dict[str, JSON] = {
            "kinds": [*kinds], "pattern": pattern, "replacement": replacement or "",
            "prefix": prefix, "suffix": suffix,
        }  # fmt: skip
        if preview or output is None:
            document.apply("rename_matches", **arguments)  # says what clashes
        else:
            problem = write_edited(
                document, model, output, "rename_matches", arguments, script, narrate
            )
    if as_json:
        rows: list[JSON] = [
            {"kind": one.kind[:-1], "scope": [*one.scope.path], "old": one.old, "new": one.new}
            for one in changes
        ]
        written = None if preview or output is None else str(output)
        write_json({"path": written, "renamed": rows, "unsound": problem or None})
    else:
        columns: list[Column[Renamed]] = [
            Column("kind", "kind", lambda one: one.kind[:-1]),
            Column("old", "old", lambda one: visible(one.old), keep="end"),
            Column("new", "new", lambda one: visible(one.new), keep="end"),
        ]
        shown = changes if preview else changes[:_MOST_SHOWN]
        if shown:
            write_table(Table(columns, shown))
        if len(shown) < len(changes):
            write(f"… and {len(changes) - len(shown):,} more")
        write(f"{fmt.plural(len(changes), 'name')} changed" if changes else "no name changed")
    return ExitStatus.DONE if changes and not problem else ExitStatus.FOUND
