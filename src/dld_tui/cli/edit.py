"""``dld edit``: replay an edit script on a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dld_tui.cli.output import narrate, require_free, write, write_json
from dld_tui.core.errors import ExitStatus, InputError
from dld_tui.core.fmt import count
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@click.command("edit")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("script", metavar="SCRIPT.jsonl", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="OUT", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--new-data-limit",
    metavar="GIB",
    type=click.FloatRange(min=0, max=1 << 20),
    help="How much zeros and random values the edits may make. Default: 4 GiB.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    model: Path,
    script: Path,
    output: Path,
    force: bool,
    new_data_limit: float | None,
    as_json: bool,
) -> int:
    """Replay an edit script, the format that the user interface journals.

    Lines that do not fit the model are reported and left out; the exit status is then 1.
    """
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.saving import save
    from dld_tui.core.document.script_files import located
    from dld_tui.core.document.scripts import parse_script, replay

    require_free(output, force)
    entries = located(parse_script(_text(script), where=str(script)), script.absolute().parent)
    document = Document.open(model)
    if new_data_limit is not None:
        document.new_data_limit = int(new_data_limit * (1 << 30))
    try:
        result = replay(document, entries)
        _declare_late(document, model)
        save(document, output)
    finally:
        document.close()
    for number, reason in result.refused:
        narrate(f"{script}: edit {number} was left out: {reason}")
    if as_json:
        refused: list[JSON] = [
            {"edit": number, "reason": reason} for number, reason in result.refused
        ]
        write_json({"path": str(output), "applied": result.applied, "refused": refused})
    else:
        write(f"{count(result.applied)} applied, {count(len(result.refused))} left out")
    return ExitStatus.FOUND if result.refused else ExitStatus.DONE


def _declare_late(document: Document, model: Path) -> None:
    """Give inputs and outputs that the edits made without a type the one that is inferred."""
    from dld_tui.cli.inference import infer
    from dld_tui.core.document.late_types import late_types, untyped_terminals
    from dld_tui.core.text import visible

    if not untyped_terminals(document) or not infer(document, model):
        return
    for arguments in late_types(document):
        document.apply("set_value_type", **arguments)
    for _, name in untyped_terminals(document):
        narrate(f"{model}: the type of {visible(name)!r} is not known")


def _text(script: Path) -> str:
    try:
        return script.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(script)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: {error.reason}", where=str(script)) from None
