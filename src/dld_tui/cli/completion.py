"""``dld completion``: scripts that make a shell complete commands, options and files."""

from __future__ import annotations

import glob
import os
import shlex

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
)

from dld_tui.cli import COMPLETE
from dld_tui.cli.command import Command
from dld_tui.cli.output import write

_SCRIPT = """\
complete %(prog_name)s 'p@*@`env %(complete_var)s=tcsh_complete %(prog_name)s`@'
"""


class TcshComplete(ShellComplete):
    """tcsh passes the line up to the cursor in a variable, and filters the words itself."""

    name = "tcsh"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the preceding words and the word to complete."""
        line = os.environ.get("COMMAND_LINE", "")
        lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, ""
        words: list[str] = []
        try:
            words.extend(lexer)
        except ValueError:  # an open quote
            words = line.replace("'", "").replace('"', "").split()
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return a word as typed, or the files with this prefix."""
        if item.type not in ("file", "dir"):
            return str(item.value)
        names = _beginning_with(item.value)
        if len(names) == 1 and names[0].endswith("/"):
            names += _beginning_with(names[0])  # else tcsh would take it as the end of the word
        return "\n".join(names)


def _beginning_with(start: str) -> list[str]:
    begin = os.path.expanduser(start)
    paths = sorted(glob.glob(glob.escape(begin) + "*"))
    named = [f"{start}{path[len(begin) :]}{'/' * os.path.isdir(path)}" for path in paths]
    return [name for name in named if not any(map(str.isspace, name))]


SHELLS = ("bash", "zsh", "fish", "tcsh")


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a completion script; docs/reference/commands.md says where to put it."""
    from dld_tui.cli.group import dld

    add_completion_class(TcshComplete)
    script = get_completion_class(shell)
    assert script is not None
    write(script(dld, {}, "dld", COMPLETE).source())
