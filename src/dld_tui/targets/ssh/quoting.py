"""The one place where a command line for a shell, here or on a target, is put together.

An SSH server hands a command to the user's shell as one string, so every argument is quoted, for
POSIX shells, zsh and fish. Between single quotes only fish has escapes, of the quote and of the
backslash: these two stand outside of quotes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from dld_tui.core.connections.model import host_problem, is_plain_user
from dld_tui.core.errors import UsageError

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile("%(.)")
_PLAIN = re.compile(r"[A-Za-z0-9_@+:,./-]+")
"""Words that no shell changes; zsh takes a leading ``=`` as the name of a program."""
_PARTS = re.compile(r"[^'\\]+|['\\]")


def command_line(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    launcher: Sequence[str] = (),
) -> str:
    """Return what a shell runs as exactly these arguments.

    Args:
        arguments: The program and its arguments.
        environment: Variables for the program; set behind the launcher, so that they also hold
            inside a container.
        launcher: Words that are put before, such as ``("docker", "exec", "NAME")``.

    Raises:
        UsageError: There is no program, an argument holds a zero byte, or a variable has no name.
    """
    if not arguments:
        raise UsageError("there is no command to run")
    words = list(launcher)
    if environment:
        for name in environment:
            if not _VARIABLE.fullmatch(name):
                raise UsageError(f"{name!r} is no name of an environment variable")
        words += ["env", *(f"{name}={value}" for name, value in environment.items())]
        if "=" in arguments[0]:
            raise UsageError("a program with '=' in its name cannot be given variables")
    words += arguments
    if any("\0" in word for word in words):
        raise UsageError("an argument of a command holds a zero byte")
    return " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """Return a word so that sh, bash, zsh and fish take it as it is."""
    if _PLAIN.fullmatch(word):
        return word
    parts = _PARTS.findall(word)
    return "".join(f"\\{part}" if part in ("'", "\\") else f"'{part}'" for part in parts) or "''"


def proxy_arguments(command: str, host: str, port: int, user: str) -> list[str]:
    """Return the program and arguments that run a ``ProxyCommand`` as OpenSSH does: by a shell.

    ``%h``, ``%p``, ``%r`` and ``%%`` are replaced.

    Raises:
        UsageError: Host or user have characters that mean something to a shell, or there is
            another ``%`` in the command.
    """
    problem = host_problem(host)
    if not problem and user and not is_plain_user(user):
        problem = f"the user {user!r} has characters that mean something to a shell"
    if problem:
        raise UsageError(f"{problem}, so the proxy command is not run")
    values = {"h": host, "n": host, "p": str(port), "r": user, "%": "%"}

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise UsageError(f"the proxy command has %{match[1]}; known are %h %n %p %r %%")
        return shlex.quote(values[match[1]])

    return ["/bin/sh", "-c", f"exec {_TOKEN.sub(value, command)}"]
