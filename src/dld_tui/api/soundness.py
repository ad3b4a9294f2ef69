"""Whether what was written is as sound as the model that it was made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.api.inference import LOG
from dld_tui.core.errors import ActivityError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.targets import registry

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.transactions import Edit


@contextmanager
def original(document: Document, model: Path, output: Path) -> Iterator[Path]:
    """Yield a file of a model that stays when the output replaces the model.

    Args:
        document: The model, before it is edited.
        model: Its file.
        output: The file to write.
    """
    from dld_tui.core.model.document.serialise import loadable_view
    from dld_tui.core.params import is_same_file

    if not output.exists() or not is_same_file(model, output):
        yield model
        return
    with loadable_view(document) as view:
        yield view


def write_edited(
    document: Document,
    model: Path,
    output: Path,
    edit: Edit,
    script: Path | None = None,
    tell: Callable[[str], None] = LOG.warning,
) -> str:
    """Make an edit, save the model and an edit script of it; return why the result is not valid.

    Args:
        document: The model, before it is edited.
        model: Its file.
        output: The file to write.
        edit: The edit. If it changes nothing, the model is only saved.
        script: The script to write.
        tell: Takes what is found.
    """
    from dld_tui.core.files.writer import write_text
    from dld_tui.core.model.document.scripting.arguments import entry_of
    from dld_tui.core.model.document.serialise import save

    with original(document, model, output) as before:
        is_changed = bool(document.apply(edit).primitives)
        save(document, output)
        problem = unsound(before, output, tell) if is_changed else ""
    if script is not None:
        write_text(script, f"{json.dumps(entry_of(edit.name, edit.arguments))}\n")
    return problem


def unsound(before: Path, after: Path, tell: Callable[[str], None] = LOG.warning) -> str:
    """Return why a model is not valid, unlike the one that it was made of; empty where it is.

    A child process asks ONNX Runtime, and looks at rules; `tell` takes what is found.

    Raises:
        InputError: One of them cannot be opened.
    """
    from dld_tui.activities.check.sound import Result

    request: dict[str, JSON] = {"before": str(before), "after": str(after)}
    try:
        with registry.get().start("check_sound", request) as job:
            notes = job.result(lambda event: None, kind=Result).notes
    except ActivityError as error:
        text = str(error)
        tell(f"{after}: {text}")
        return text
    for note in notes:
        tell(f"{after}: {visible(note)}")
    return ""
