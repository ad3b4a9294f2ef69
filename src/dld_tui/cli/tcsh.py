"""Completion in tcsh, which click does not know. Files are listed here, as it does not add them.

tcsh cuts what it gets at blanks, whatever is before them: names with blanks are left out.
"""

from __future__ import annotations

import glob
import os
import shlex

from click.shell_completion import CompletionItem, ShellComplete

_SCRIPT = """\
complete %(prog_name)s 'p@*@`env %(complete_var)s=tcsh_complete %(prog_name)s`@'
"""


class TcshComplete(ShellComplete):
    """tcsh hands over the line up to the cursor in a variable, and keeps what fits of the words."""

    name = "tcsh"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is completed, and that one."""
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
        """Return a word as it is typed; of a path, the files that begin so."""
        if item.type not in ("file", "dir"):
            return str(item.value)
        found = _beginning_with(item.value)
        if len(found) == 1 and found[0].endswith("/"):
            found += _beginning_with(found[0])  # else tcsh would take it as the end of the word
        return "\n".join(found)


def _beginning_with(start: str) -> list[str]:
    begin = os.path.expanduser(start)
    paths = sorted(glob.glob(glob.escape(begin) + "*"))
    named = [f"{start}{path[len(begin) :]}{'/' * os.path.isdir(path)}" for path in paths]
    return [name for name in named if not any(map(str.isspace, name))]
