"""``dld rename``: new names for many nodes, tensors, inputs and outputs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dld_tui.cli.command import (
    also_written,
    command_for,
    force_flag,
    json_flag,
    output_file,
    preview_flag,
    written_file,
)
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ExitStatus, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.params import param
from dld_tui.core.types import JSON

_MOST_SHOWN = 20


@dataclass(frozen=True)
class Request:
    """What to rename, and how."""

    model: Path = param(label="Model", help="The ONNX model.", positional=True)
    output: Path | None = output_file()
    nodes: bool = param(False, label="Nodes", help="Rename nodes.")
    tensors: bool = param(
        False, label="Tensors", help="Rename tensors other than inputs and outputs."
    )
    inputs: bool = param(False, label="Inputs", help="Rename inputs of the main graph.")
    outputs: bool = param(False, label="Outputs", help="Rename outputs of the main graph.")
    prefix: str = param("", label="Prefix", help="Begin the new names with this.", metavar="TEXT")
    suffix: str = param("", label="Suffix", help="End the new names with this.", metavar="TEXT")
    pattern: str = param(
        "", label="Pattern", metavar="REGEX",
        help="Rename only names with a match of this regular expression of Python.",
    )  # fmt: skip
    to: str | None = param(
        None, label="Replacement", metavar="TEXT",
        help=r"Replace each match: \1 and \g<name> are groups, {n} numbers the names, {op} is the "
        "operator.",
    )  # fmt: skip
    preview: bool = preview_flag()
    script: Path | None = also_written("--script", "the edit as an edit script")
    force: bool = force_flag()
    as_json: bool = json_flag()

    def require(self) -> None:
        """Check that there is something to rename, and where the result goes.

        Raises:
            UsageError: An option is missing, or two exclude each other.
        """
        written_file(self.output, self.preview)
        if self.preview and self.script is not None:
            raise UsageError("--preview writes nothing: omit --script")
        if self.to is not None and not self.pattern:
            raise UsageError("--to replaces matches of --pattern", hint="Add --pattern REGEX")
        if not (self.pattern or self.prefix or self.suffix):
            raise UsageError("nothing to rename", hint="Add --prefix, --suffix or --pattern")


@command_for("rename", Request)
def command(asked: Request) -> int:
    """Rename by prefix, suffix or regular expression, including subgraphs and functions.

    Without --nodes, --tensors, --inputs or --outputs, nodes and tensors are renamed. If two would
    get the same name, nothing is written. Exit status 1 if no name changes, or if the result is not
    valid.
    """
    from dld_tui.api.soundness import write_edited
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.edits import pattern_renaming
    from dld_tui.core.model.edits.pattern_renaming import KINDS, NewNames, Renamed, renamed
    from dld_tui.core.tables.table import Column, Table
    from dld_tui.core.text import visible

    replacement = asked.to if asked.to is not None or not asked.pattern else r"\g<0>"
    flags = zip(KINDS, (asked.nodes, asked.tensors, asked.inputs, asked.outputs), strict=True)
    kinds = [kind for kind, is_wanted in flags if is_wanted] or [*KINDS[:2]]
    names = NewNames(asked.pattern, replacement or "", asked.prefix, asked.suffix)
    output = written_file(asked.output, asked.preview)
    require_free((output, asked.script), asked.force)
    problem = ""
    with closing(open_document(asked.model)) as document:
        changes = [*renamed(document, names, kinds)]
        edit = pattern_renaming.rename_matches(
            kinds=kinds, pattern=asked.pattern, replacement=replacement or "",
            prefix=asked.prefix, suffix=asked.suffix,
        )  # fmt: skip
        if output is None:
            document.apply(edit)  # says what clashes
        else:
            problem = write_edited(document, asked.model, output, edit, asked.script, narrate)
    if asked.as_json:
        rows: list[JSON] = [
            {"kind": one.kind[:-1], "scope": [*one.scope.path], "old": one.old, "new": one.new}
            for one in changes
        ]
        written = None if output is None else str(output)
        write_json({"path": written, "renamed": rows, "unsound": problem or None})
    else:
        columns: list[Column[Renamed]] = [
            Column("kind", "kind", lambda one: one.kind[:-1]),
            Column("old", "old", lambda one: visible(one.old), keep="end"),
            Column("new", "new", lambda one: visible(one.new), keep="end"),
        ]
        shown = changes if asked.preview else changes[:_MOST_SHOWN]
        if shown:
            write_table(Table(columns, shown))
        if len(shown) < len(changes):
            write(f"… and {len(changes) - len(shown):,} more")
        write(f"{fmt.plural(len(changes), 'name')} changed" if changes else "no name changed")
    return ExitStatus.DONE if changes and not problem else ExitStatus.FOUND
