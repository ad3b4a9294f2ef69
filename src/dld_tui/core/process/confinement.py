"""What a process may do that an agent directs (``dld mcp``): write in some folders, run no code.

The environment says so. Thus it holds for every process that such a process starts, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from dld_tui.core.errors import UsageError

_FOLDERS = "DLD_ALLOWED_FOLDERS"


def confined_to(folders: Iterable[Path]) -> dict[str, str]:
    """Return the environment variables of a process that may use these folders alone."""
    import json  # every command asks whether it is confined

    return {_FOLDERS: json.dumps([os.path.realpath(folder) for folder in folders])}


def is_confined() -> bool:
    """Return whether an agent directs this process: code of others must not run."""
    return _FOLDERS in os.environ


def require_allowed(path: Path | str) -> None:
    """Refuse a file to write, or a text to read, outside the folders of a confined process.

    Links and ``..`` are followed first. Elsewhere every path is allowed.

    Raises:
        UsageError: It is outside.
    """
    if not is_confined():
        return
    import json

    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(folder) for folder in json.loads(os.environ[_FOLDERS])):
        raise UsageError(
            "it is outside the allowed folders",
            where=str(path),
            hint="Choose a path inside them; the user allows a folder with dld mcp --allow FOLDER",
        )
