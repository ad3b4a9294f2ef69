"""What the trials of a search depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from dld_tui.core.conversion.storage import content_digest
from dld_tui.core.machine.environment import package_version
from dld_tui.core.model.document.document import Document
from dld_tui.core.trials import stamps
from dld_tui.core.types import JSON

_PACKAGES = ("dld-tui", "onnx", "onnxruntime", "onnxruntime-gpu")
"""Those that trials run; other versions may give other outcomes."""


def search_conditions(
    settings: Mapping[str, JSON],
    document: Document,
    inputs: Iterable[Path | None] = (),
    **others: JSON,
) -> Mapping[str, JSON]:
    """Return what the trials of a search depend on.

    The model counts by its content, not by its file: a model with edits that are not saved is
    written to another file each time it is searched.

    Args:
        settings: Those that matter to a trial.
        inputs: Input files, and folders of such.
        others: What else matters, by name.
    """
    files = (
        file
        for path in inputs
        if path is not None
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
    )
    return {
        "settings": {name: value for name, value in settings.items() if name != "model"},
        "model": content_digest(document),
        "files": stamps(files),
        "packages": {name: package_version(name) for name in _PACKAGES},
        **others,
    }
