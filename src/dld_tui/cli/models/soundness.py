"""Whether what a command has written is as sound as the model that it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.cli.output import narrate
from dld_tui.core.errors import ActivityError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.targets import registry

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@contextmanager
def original(document: Document, model: Path, output: Path) -> Iterator[Path]:
    """Yield a file of a model that stays when the output replaces the model.

    Args:
        document: The model, before it is edited.
        model: Its file.
        output: The file to write.
    """
    from dld_tui.core.document.serialise import loadable_view
    from dld_tui.core.params import is_same_file

    if not output.exists() or not is_same_file(model, output):
        yield model
        return
    with loadable_view(document) as view:
        yield view


def unsound(before: Path, after: Path) -> str:
    """Return why a model is not valid, unlike the one that it was made of; empty where it is.

    A child process asks ONNX Runtime, and looks at rules. What is found is printed.

    Raises:
        InputError: One of them cannot be opened.
    """
    from dld_tui.activities.check_sound import Result

    request: dict[str, JSON] = {"before": str(before), "after": str(after)}
    try:
        with registry.get().start("check_sound", request) as job:
            notes = job.result(lambda event: None, kind=Result).notes
    except ActivityError as error:
        text = str(error)
        narrate(f"{after}: {text}")
        return text
    for note in notes:
        narrate(f"{after}: {visible(note)}")
    return ""
