"""Write what is generated from the declarations of commands and keys.

- ``docs/reference/commands.md``, below its marker: each command with its options and JSON document
- ``docs/reference/keys.md``, below its marker: letters and keys
- ``share/man/man1/dld.1``: the man page
- ``share``: completion scripts, which a wheel installs where shells find them

``python -m scripts.references`` writes them; a test compares them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import tomlkit
from click.shell_completion import get_completion_class

from dld_tui import __version__
from dld_tui.activities import registry
from dld_tui.cli import COMPLETE
from dld_tui.cli.group import dld
from dld_tui.commands import INDEX, all_commands, index_text
from dld_tui.commands.key_names import key_name
from dld_tui.core.params import settings_of
from dld_tui.core.settings.config import Config
from scripts.command_tree import Entry, Row, entries, fields_of, parts, record, records_in

ROOT = Path(__file__).resolve().parents[1]
NOTES = Path(__file__).with_name("command_notes.toml")
KEY_NOTES = Path(__file__).with_name("key_notes.toml")
MARKER = "<!-- Written by python -m scripts.references from here on. -->\n"
_OFTEN = 4
"""A record in the documents of so many commands is shown once, by its name."""
_MANY = 8
"""So many options that an earlier command has, too, are only named."""


@cache
def notes() -> dict[str, dict[str, str]]:
    """Return note and JSON document, by the command."""
    return tomlkit.parse(NOTES.read_text(encoding="utf-8")).unwrap()


@cache
def results() -> dict[str, Any]:
    """Return the kind of the JSON document of each activity that the notes say nothing of."""
    found = {}
    for entry in entries():
        if entry.activity and "json" not in notes().get(entry.name, {}):
            found[entry.name] = registry.load(entry.activity).result
    return found


@cache
def shared() -> dict[str, type]:
    """Return records of many documents, by name."""
    counted: Counter[type] = Counter()
    for kind in results().values():
        counted.update({one for top in parts(kind) for one in _below(top)})
    return {kind.__name__: kind for kind, count in counted.items() if count >= _OFTEN}


def _below(kind: type, seen: frozenset[type] = frozenset()) -> set[type]:
    inner = {one for of in fields_of(kind).values() for one in records_in(of)} - seen
    return inner | {below for one in inner for below in _below(one, seen | inner)}


def commands_page() -> str:
    """Return the generated part of the page of commands."""
    lines: list[str] = []
    shown: dict[str, list[Row]] = {}
    for entry in entries():
        lines += _command(entry, shown)
    lines += ["## Records of several documents", ""]
    named = set(shared().values())
    for name, kind in sorted(shared().items()):
        lines.append(f"- `{name}`: `{record(kind, named - {kind})}`")
    return "\n".join(lines) + "\n"


def _command(entry: Entry, shown: dict[str, list[Row]]) -> Iterator[str]:
    yield f"{'##' if len(entry.words) == 2 else '###'} `{entry.name}`"
    yield ""
    yield f"`{entry.usage}`"
    yield ""
    for paragraph in entry.about:
        yield _text(paragraph)
        yield ""
    if entry.example:
        yield f"Example: `{entry.example}`"
        yield ""
    about = notes().get(entry.name, {})
    if note := about.get("note"):
        yield note.strip()
        yield ""
    if entry.below:
        yield "| command | does |"
        yield "|---|---|"
        for name, summary in entry.below:
            yield f"| `{entry.name} {name}` | {_cell(summary)} |"
        yield ""
    yield from _options(entry, shown)
    json = about.get("json", "").strip()
    if not json and entry.name in results():
        named = set(shared().values())
        found = [f"`{record(one, named)}`" for one in parts(results()[entry.name])]
        json = ", or ".join(found)
    if json:
        yield "<details><summary>JSON</summary>"
        yield ""
        yield json
        yield ""
        yield "</details>"
        yield ""


def _options(entry: Entry, shown: dict[str, list[Row]]) -> Iterator[str]:
    """Yield the table of options, and the names of those that another command's table has.

    Args:
        entry: The command.
        shown: Rows of earlier tables, by the command; this one's are added.
    """
    rows, references = list(entry.rows), []
    while shown:
        other = max(shown, key=lambda one: len(set(rows) & set(shown[one])))
        common = [row for row in rows if row in shown[other] and row.names[0] == "-"]
        if len(common) < _MANY:
            break
        rows = [row for row in rows if row not in common]
        names = ", ".join(f"`{_spelling(row.names)}`" for row in common)
        references.append(f"As in [`{other}`](#{other.replace(' ', '-')}): {names}.")
    shown[entry.name] = rows
    if rows:
        yield "| option | meaning |"
        yield "|---|---|"
        for row in rows:
            yield f"| {_code(row.names)} | {_cell(row.meaning)} |"
        yield ""
    for reference in references:
        yield reference
        yield ""


def _spelling(names: str) -> str:
    """Return the first long spelling of an option."""
    return next((one for one in re.findall(r"--[\w-]+", names)), names.split()[0])


_IS_CODE = re.compile(r"^--?[a-zA-Z]|[_*<>={}]|^\w+\.(?:json|onnx|py)$")


def _text(text: str) -> str:
    """Return a text of the help as Markdown: options, names and files as code."""
    words = []
    for word in text.split(" "):
        bare = word.rstrip(".,;:)]")
        start = bare.lstrip("(")
        if start[:1] != "[" and _IS_CODE.search(start):
            opening, ending = bare[: len(bare) - len(start)], word[len(bare) :]
            words.append(f"{opening}`{start}`{ending}")
        else:
            words.append(word)
    return " ".join(words)


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _page(path: Path, generated: str) -> str:
    """Return a page whose part below the marker is written anew."""
    head, marker, _ = path.read_text(encoding="utf-8").partition(MARKER)
    if not marker:
        raise SystemExit(f"{path} has no line {MARKER.strip()}")
    return f"{head}{MARKER}\n{generated}"


@cache
def key_notes() -> dict[str, dict[str, Any]]:
    """Return the meanings of letters, and the titles of scopes."""
    return tomlkit.parse(KEY_NOTES.read_text(encoding="utf-8")).unwrap()


def keys_page() -> str:
    """Return the generated part of the page of keys."""
    lines = ["## All settings", "", "| setting | default | meaning |", "|---|---|---|"]
    for setting in settings_of(Config):
        choices = " ".join(f"`{choice}`" for choice in setting.param.choices)
        meaning = f"{_cell(setting.param.help)} {choices}".strip()
        lines.append(f"| `{setting.name}` | `{_default(setting.default)}` | {meaning} |")
    lines += ["", "## Letters", "", _LETTERS, "", "| letter | means | commands |", "|---|---|---|"]
    for letter, about in key_notes()["letters"].items():
        lines.append(f"| `{letter}` | {about['means']} | {about['commands']} |")
    for scope, title in key_notes()["scopes"].items():
        rows = [row for row in all_commands() if row.scope == scope]
        lines += ["", f"## {title}", "", "| keys | does | command |", "|---|---|---|"]
        for row in rows:
            names = [_code(key_name(key)) for key in row.keys.split(",") if key]
            lines.append(f"| {' '.join(names)} | {row.help} | `{row.id}` |")
    return "\n".join(lines) + "\n"


_LETTERS = """\
A letter means one thing in every pane, page and menu. Commands without a key are in the palette
(`^P`); the usual ones have a digit in the menu `.`, the same in all menus. In a question, the
letters are those beside the answers."""


def _default(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def man_page() -> str:
    """Return the man page of all commands."""
    lines = [
        f'.TH DLD 1 "" "dld-tui {__version__}" "User commands"',
        ".SH NAME",
        "dld \\- open, inspect, edit, check, build and profile neural networks in a terminal",
        ".SH SYNOPSIS",
        ".B dld",
        "[\\fIPATH\\fR...]",
        ".br",
        ".B dld",
        "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]",
        ".SH DESCRIPTION",
        "Without arguments, dld opens its start page; with paths, models and reports, a tab each.",
        "A command runs without the user interface.",
        ".SH EXIT STATUS",
    ]
    for status, meaning in _STATUSES:
        lines += [".TP", f".B {status}", _roff(meaning)]
    lines.append(".SH COMMANDS")
    for entry in entries():
        lines += _section(entry)
    lines += [
        ".SH FILES",
        "dld doctor prints the folders of settings, of the cache and of crash journals.",
    ]
    return "\n".join(lines) + "\n"


_STATUSES = (
    (0, "done"),
    (1, "done, with findings, differences or wrong results"),
    (2, "invalid command line"),
    (3, "an input cannot be read or is invalid"),
    (4, "a backend or target is unavailable"),
    (5, "the operation failed"),
    (130, "cancelled"),
)


def _section(entry: Entry) -> Iterator[str]:
    yield f".SS {_roff(entry.usage)}"
    for number, paragraph in enumerate(entry.about):
        if number:
            yield ".PP"
        yield _roff(paragraph)
    for name, summary in entry.below:
        yield ".TP"
        yield f".B {_roff(name)}"
        yield _roff(summary)
    for row in entry.rows:
        yield ".TP"
        yield f".B {_roff(row.names)}"
        yield _roff(row.meaning)
    if entry.example:
        yield ".PP"
        yield f"Example: {_roff(entry.example)}"


def _roff(text: Any) -> str:
    """Return a text for a man page, in which nothing is a request or an escape."""
    escaped = str(text).replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped)


_COMPLETIONS = {
    "bash": "bash-completion/completions/dld",
    "zsh": "zsh/site-functions/_dld",
    "fish": "fish/vendor_completions.d/dld.fish",
}
"""Where shells look below ``share``."""


def completion(shell: str) -> str:
    """Return the completion script of a shell."""
    script = get_completion_class(shell)
    assert script is not None
    return script(dld, {}, "dld", COMPLETE).source()


def written() -> dict[Path, str]:
    """Return the texts of all files, by their paths."""
    page = ROOT / "docs/reference/commands.md"
    keys = ROOT / "docs/reference/keys.md"
    found = {page: _page(page, commands_page()), keys: _page(keys, keys_page())}
    found[ROOT / "share/man/man1/dld.1"] = man_page()
    found[INDEX] = index_text()
    for shell, path in _COMPLETIONS.items():
        found[ROOT / "share" / path] = completion(shell)
    return found


def main() -> int:
    """Write all files that differ."""
    for path, text in written().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
