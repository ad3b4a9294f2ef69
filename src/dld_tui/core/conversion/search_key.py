"""What the trials of a search depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from dld_tui.core.conversion.storage import content_digest
from dld_tui.core.document.document import Document
from dld_tui.core.machine.environment import package_version
from dld_tui.core.trials import stamps
from dld_tui.core.types import JSON

_PACKAGES = ("dld-tui", "onnx", "onnxruntime", "onnxruntime-gpu")
"""Those that trials run; other versions may give other outcomes."""


def search_facts(
    settings: Mapping[str, JSON], document: Document, inputs: Iterable[Path | None] = ()
) -> dict[str, JSON]:
    """Return what the trials of a search depend on.

    The model counts by its content, not by its file: a model with edits that are not saved is
    written to another file each time it is searched.

    Args:
        settings: Those that matter to a trial.
        inputs: Folders of input files.
    """
    folders = [folder for folder in inputs if folder is not None]
    return {
        "settings": {name: value for name, value in settings.items() if name != "model"},
        "model": content_digest(document),
        "files": stamps(path for folder in folders for path in sorted(folder.rglob("*"))),
        "packages": {name: package_version(name) for name in _PACKAGES},
    }
