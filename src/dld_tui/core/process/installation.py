"""The command that installs an optional part, in the environment that the program runs in."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PIP = re.compile(r"(?<![\w/-])(?<!-m )(?<!uv )pip ((?:un)?install)\b")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")


@cache
def packages_of(extra: str) -> str:
    """Return what an extra of this package asks for, as arguments of ``pip install``.

    The packages themselves, not ``dld-tui[extra]``: that would ask an index for this program, which
    may have been installed from elsewhere.
    """
    import importlib.metadata  # lazy: the start page has no use for it

    try:
        required = importlib.metadata.requires("dld-tui") or []
    except importlib.metadata.PackageNotFoundError:  # on a target, which has the code alone
        required = []
    names = []
    for text in required:
        name, _, marker = text.partition(";")
        match = _EXTRA.search(marker)
        if match is not None and match[1] == extra:
            names.append(shlex.quote(name.strip()))
    return " ".join(names) or shlex.quote(f"dld-tui[{extra}]")


def install_command(extra: str, *others: str) -> str:
    """Return the command that installs an extra here, and other packages."""
    return in_environment(" ".join(["pip install", packages_of(extra), *others]))


def install_hint(extra: str, *others: str) -> str:
    """Return that as what a person can do."""
    return f"Install it with: {install_command(extra, *others)}"


def in_environment(fix: str, prefix: str = sys.prefix) -> str:
    """Return a remedy with the `pip` of this Python's environment.

    The one on the ``PATH`` may belong to another one, or be missing; `uv` installs none.

    Args:
        fix: A text that may hold ``pip install``.
        prefix: ``sys.prefix``.
    """
    folder = Path(prefix)
    on_path = shutil.which("pip")
    if on_path is not None and Path(on_path).parent == folder / "bin":
        return fix
    pip = folder / "bin" / "pip"
    if os.access(pip, os.X_OK):
        command = shlex.quote(str(pip))
    elif prefix == sys.prefix and find_spec("pip") is not None:
        command = f"{shlex.quote(sys.executable)} -m pip"
    else:
        where = shlex.quote(prefix)
        return _PIP.sub(lambda match: f"uv pip {match[1]} --python {where}", fix)
    return _PIP.sub(lambda match: f"{command} {match[1]}", fix)
