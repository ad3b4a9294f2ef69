"""Where configuration, state and caches live (XDG base directories)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_NAME = "dld-tui"


def _base(variable: str, fallback: str) -> Path:
    # The XDG specification says that a relative path in these variables is ignored.
    value = os.environ.get(variable, "")
    return Path(value) if os.path.isabs(value) else Path.home() / fallback


def config_dir() -> Path:
    """Return the folder of ``config.toml``; it may not exist yet."""
    return _base("XDG_CONFIG_HOME", ".config") / _NAME


def state_dir() -> Path:
    """Return the folder of recent files, journals and the log; it may not exist yet."""
    return _base("XDG_STATE_HOME", ".local/state") / _NAME


NEW_JOURNALS = "new"
"""How the names of journals of new models begin, which have no file."""


def journal_dir() -> Path:
    """Return the folder of the journals; it may not exist yet."""
    return state_dir() / "journals"


def has_new_journals() -> bool:
    """Return whether there are journals of new models; running programs may hold them."""
    return next(journal_dir().glob(f"{NEW_JOURNALS}-*.jsonl"), None) is not None


def cache_dir() -> Path:
    """Return the folder of caches (`NV_DLD_CACHE_DIR` wins); it may not exist yet."""
    own = os.environ.get("NV_DLD_CACHE_DIR", "")
    if os.path.isabs(own):
        return Path(own)
    return _base("XDG_CACHE_HOME", ".cache") / _NAME


def unsaved_folder() -> Path:
    """Return the folder of copies with unsaved edits; it may not exist yet."""
    return cache_dir() / "unsaved"


def ensure(folder: Path) -> Path:
    """Create a folder that only its owner may read, and return it.

    Raises:
        OSError: It cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def short(path: Path | str) -> str:
    """Return a path with the home folder written as ``~``; the text is still untrusted text."""
    text = str(path)
    home = str(Path.home())
    if text == home or text.startswith(home + os.sep):
        return "~" + text[len(home) :]
    return text


def relative_to_cwd(path: Path | str) -> str:
    """Return a path from the working directory when it is below that, else as :func:`short` does.

    The text is still untrusted text.
    """
    here = str(Path.cwd())
    text = str(path)
    return text[len(here) + 1 :] if text.startswith(here + os.sep) else short(text)


def distinct_names(names: Sequence[str], files: Sequence[Path | str]) -> list[str]:
    """Return distinct names: each repeated name with a part of its path.

    Args:
        names: Display names.
        files: Their paths; the part is the shortest end that no other file of the name has.
    """
    parts = [Path(os.path.abspath(file)).parts for file in files]
    labels: list[str] = []
    for at, name in enumerate(names):
        others = [
            parts[i] for i, other in enumerate(names) if other == name and parts[i] != parts[at]
        ]
        count = next(
            (
                n
                for n in range(1, len(parts[at]) + 1)
                if all(other[-n:] != parts[at][-n:] for other in others)
            ),
            len(parts[at]),
        )
        end = os.path.join(*parts[at][-count:])
        if not others:
            labels.append(name)
        else:
            labels.append(end if parts[at][-1] == name else f"{name} ({end})")
    return labels


def unused(path: Path) -> Path:
    """Return a path where nothing is: this one, or ``NAME-2.SUFFIX`` and so on."""
    free, number = path, 1
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def report_path(wanted: Path | None, model: Path) -> Path:
    """Return `wanted`, else an unused ``NAME.dldprof`` in the working directory."""
    if wanted is not None:
        return wanted
    return unused(Path(f"{model.stem or 'model'}.dldprof"))


def config_path() -> Path:
    """Return the path of the configuration file."""
    return config_dir() / "config.toml"
