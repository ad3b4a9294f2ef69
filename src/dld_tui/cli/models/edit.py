"""``dld edit``: replay an edit script on a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dld_tui.cli.command import Command
from dld_tui.cli.options import OUTPUT
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.errors import ExitStatus, InputError, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.source import read_text
from dld_tui.core.fmt import count
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.compare.diff.relocation import Relocation
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.serialise import DataMode


@click.command("edit", cls=Command)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("script", metavar="SCRIPT.jsonl", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="OUT", type=OUTPUT, help="Write the model here.")
@click.option("--preview", is_flag=True, help="Print the changes; write nothing.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--new-data-limit",
    metavar="GIB",
    type=click.FloatRange(min=0, max=1 << 20),
    help="Maximum size of tensors that edits create from zeros or random values. Default: 4 GiB.",
)
@click.option(
    "--base",
    metavar="MODEL",
    type=click.Path(path_type=Path),
    help=(
        "The model on which the script was recorded, to map names that differ in this model. "
        "Default: the file that the script names, if unchanged."
    ),
)
@click.option(
    "--data",
    type=click.Choice(["copy", "link", "reflink"]),
    default="copy",
    help=(
        "How to bring data files to another folder: copy (default), hard link, or reflink where "
        "the file system supports it."
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    model: Path,
    script: Path,
    output: Path | None,
    preview: bool,
    force: bool,
    new_data_limit: float | None,
    base: Path | None,
    data: DataMode,
    as_json: bool,
) -> int:
    """Replay an edit script, in the format of the user interface's journal.

    Lines that do not apply to the model are reported and skipped; the exit status is then 1, as it
    is if the result is not valid, or ONNX Runtime refuses it unlike the model. Nodes and tensors
    with other names than in the recorded model are matched as in dld diff.
    """
    from dld_tui.api.inference import infer
    from dld_tui.api.soundness import original, unsound
    from dld_tui.cli.models.diff import print_diff
    from dld_tui.core.compare.diff import diff_documents
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.scripting.scripts import locate_files, parse_script, replay
    from dld_tui.core.document.serialise import save
    from dld_tui.core.document.types.inference import declare_late

    if output is None and not preview:
        raise UsageError("OUT is missing", hint="Add -o OUT, or --preview")
    if output is not None and not preview:
        require_free([output], force)
    text, folder = read_text(script), script.absolute().parent
    entries = locate_files(parse_script(text, where=str(script)), folder)
    document = Document.open(model)
    if new_data_limit is not None:
        document.new_data_limit = int(new_data_limit * (1 << 30))
    document.ask_types = partial(infer, document, model, narrate)
    changes: dict[str, JSON] = {}
    problem = ""
    with ExitStack() as stack:
        stack.callback(document.close)
        written = None if preview else output
        before = (
            model if written is None else stack.enter_context(original(document, model, written))
        )
        with _relocation(document, model, base or _named_base(text, folder)) as relocation:
            result = replay(document, entries, relocation)
        untyped = declare_late(document)
        if written is None:
            diff = diff_documents(stack.enter_context(closing(Document.open(model))), document)
            changes["changes"] = diff.to_json()
            if not as_json:
                print_diff(diff)
        else:
            for remark in save(document, written, data=data):
                narrate(f"{written}: {remark}")
            problem = unsound(before, written, narrate) if result.applied else ""
    for name in untyped:
        narrate(f"{model}: the type of {visible(name)!r} is unknown")
    for number, moved in result.relocated:
        narrate(
            f"{script}: line {number}: {moved.kind} {moved.name!r} is {moved.place!r} here,"
            " found by structure"
        )
    for number, reason in result.refused:
        narrate(f"{script}: line {number} skipped: {reason}")
    if as_json:
        refused: list[JSON] = [
            {"line": number, "reason": reason} for number, reason in result.refused
        ]
        relocated: list[JSON] = [
            {
                "line": number,
                "kind": moved.kind,
                "name": moved.name,
                "found": moved.place,
            }
            for number, moved in result.relocated
        ]
        write_json(
            {
                "path": None if written is None else str(written),
                "applied": result.applied,
                "relocated": relocated,
                "refused": refused,
                "unsound": problem or None,
                **changes,
            }
        )
    else:
        write(f"{count(result.applied)} applied, {count(len(result.refused))} skipped")
    return ExitStatus.FOUND if result.refused or problem else ExitStatus.DONE


@contextmanager
def _relocation(document: Document, model: Path, base: Path | None) -> Iterator[Relocation | None]:
    """Open the model on which a script was recorded, if it is known and another one."""
    from dld_tui.core.compare.diff.relocation import Relocation
    from dld_tui.core.document.document import Document

    if base is None or (base.exists() and model.samefile(base)):
        yield None
        return
    origin = Document.open(base)
    origin.new_data_limit = document.new_data_limit
    try:
        yield Relocation(origin, document)
    finally:
        origin.close()


def _named_base(text: str, folder: Path) -> Path | None:
    from dld_tui.core.document.scripting.scripts import base_file

    try:
        return base_file(text, folder)
    except InputError as error:
        narrate(str(error))
        return None
