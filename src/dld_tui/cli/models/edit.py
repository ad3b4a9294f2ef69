"""``dld edit``: replay an edit script on a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.cli.command import (
    command_for,
    force_flag,
    json_flag,
    output_file,
    preview_flag,
    written_file,
)
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ExitStatus, InputError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.source import read_text
from dld_tui.core.fmt import count
from dld_tui.core.model.document.serialise import DataMode
from dld_tui.core.params import param
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.compare.diff.relocation import Relocation
    from dld_tui.core.model.document.document import Document


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld edit``."""

    model: Path = param(label="Model", help="The ONNX model.", positional=True)
    script: Path = param(
        label="Script", help="The edit script.", positional=True, metavar="SCRIPT.jsonl"
    )
    output: Path | None = output_file()
    preview: bool = preview_flag()
    force: bool = force_flag()
    new_data_limit: float | None = param(
        None, label="New data limit", metavar="GIB", minimum=0, maximum=1 << 20,
        help="Maximum size of tensors that edits make from zeros or random values; 4 GiB.",
    )  # fmt: skip
    base: Path | None = param(
        None, label="Base", metavar="MODEL",
        help="The model on which the script was recorded, to map names that differ in this model. "
        "Default: the file that the script names, if unchanged.",
    )  # fmt: skip
    data: DataMode = param(
        "copy", label="Data", choices=("copy", "link", "reflink"),
        help="How to bring data files to another folder: copy (default), hard link, or reflink "
        "where the file system supports it.",
    )  # fmt: skip
    as_json: bool = json_flag()


@command_for("edit", Request)
def command(asked: Request) -> int:
    """Replay an edit script, in the format of the user interface's journal.

    Lines that do not apply to the model are reported and skipped; the exit status is then 1, as it
    is if the result is not valid, or ONNX Runtime refuses it unlike the model. Nodes and tensors
    with other names than in the recorded model are matched as in dld diff.
    """
    from dld_tui.api.inference import infer
    from dld_tui.api.soundness import original, unsound
    from dld_tui.cli.models.diff import print_diff
    from dld_tui.core.compare.diff import diff_documents
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.scripting.scripts import locate_files, parse_script, replay
    from dld_tui.core.model.document.serialise import save
    from dld_tui.core.model.edits.late_types import declare_late

    written = written_file(asked.output, asked.preview)
    require_free([written], asked.force)
    text, folder = read_text(asked.script), asked.script.absolute().parent
    entries = locate_files(parse_script(text, where=str(asked.script)), folder)
    document = open_document(asked.model)
    if asked.new_data_limit is not None:
        document.new_data_limit = int(asked.new_data_limit * (1 << 30))
    document.ask_types = partial(infer, document, asked.model, narrate)
    changes: dict[str, JSON] = {}
    problem = ""
    with ExitStack() as stack:
        stack.callback(document.close)
        before = (
            asked.model
            if written is None
            else stack.enter_context(original(document, asked.model, written))
        )
        with _relocation(
            document, asked.model, asked.base or _named_base(text, folder)
        ) as relocation:
            result = replay(document, entries, relocation)
        untyped = declare_late(document)
        if written is None:
            diff = diff_documents(
                stack.enter_context(closing(open_document(asked.model))), document
            )
            changes["changes"] = diff.to_json()
            if not asked.as_json:
                print_diff(diff)
        else:
            for remark in save(document, written, data=asked.data):
                narrate(f"{written}: {remark}")
            problem = unsound(before, written, narrate) if result.applied else ""
    for name in untyped:
        narrate(f"{asked.model}: the type of {visible(name)!r} is unknown")
    for number, moved in result.relocated:
        narrate(
            f"{asked.script}: line {number}: {moved.kind} {moved.name!r} is {moved.place!r} here,"
            " found by structure"
        )
    for number, reason in result.refused:
        narrate(f"{asked.script}: line {number} skipped: {reason}")
    if asked.as_json:
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
    from dld_tui.core.llm.folder import open_document

    if base is None or (base.exists() and model.samefile(base)):
        yield None
        return
    origin = open_document(base)
    origin.new_data_limit = document.new_data_limit
    try:
        yield Relocation(origin, document)
    finally:
        origin.close()


def _named_base(text: str, folder: Path) -> Path | None:
    from dld_tui.core.model.document.scripting.scripts import base_file

    try:
        return base_file(text, folder)
    except InputError as error:
        narrate(str(error))
        return None
