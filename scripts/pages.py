"""Read the pages of the documentation, run their commands and compare what they quote.

A page is run from its beginning to its end in one folder, as a reader would:

- The lines of an ``sh`` block are run by bash. A ``text`` block is what the ``sh`` block before it
  prints, on standard output and standard error. A line ``…`` stands for any lines, and ``…``
  within a line for any text.
- A ``python`` block is run; if it has prompts (``>>>``), it is a doctest.
- ``json``, ``jsonl`` and ``toml`` blocks must be valid. A ``syntax`` block is a grammar or a form
  in which something is written, a ``screen`` block some lines of the user interface.

What a reader does not see are comments of one line. Before a block, they are about it:

- ``<!-- not run: REASON -->``: it cannot run here, such as without a GPU.
- ``<!-- exit: 1 -->``: the exit status of the last command, if it is not 0. Of ``0 or 5`` the first
  is that of the page; on a busy machine it may be another, and then the output is not compared.
- ``<!-- measured -->``: the numbers of this ``text`` block differ each time, and verdicts of gates.
  They and the blanks between columns are not compared.
- ``<!-- file: NAME -->``: the block is the content of a file, which is written to the folder.

Anywhere on the page, they are about all of it:

- ``<!-- files: NAME NAME -->``: files that the reader has, made by ``tests/support/page_files.py``.
- ``<!-- setup: COMMAND -->``: a command that is run first.

``python -m scripts.pages PAGE...`` tries pages and prints what is wrong with them; ``--write``
replaces the quoted output by what is printed, except where it has ``…``.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tomlkit

ROOT = Path(__file__).resolve().parents[1]
RUN = ("sh", "python")
"""Languages of blocks that are run."""
READ = ("json", "jsonl", "toml")
"""Languages of blocks that are read."""
KNOWN = (*RUN, *READ, "text", "screen", "syntax", "yaml", "sql", "c", "cpp", "dockerfile", "diff",
         "mermaid")  # fmt: skip
_OF_BLOCKS = {"not run", "exit", "measured", "file"}
_OF_PAGES = {"files", "setup"}
_FENCE = re.compile(r"^( *)(```+)\s*([\w+-]*)\s*$")
_MARK = re.compile(r"^ *<!-- ([a-z ]+?)(?:: (.*?))? -->$")
_ANY = "…"
_LIMIT_S = 240


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    line: int
    """Line of the page, from 1, on which its content begins."""
    language: str
    text: str
    marks: Mapping[str, str]
    indent: str = ""


@dataclass(frozen=True)
class Fault:
    """What is wrong on a line of a page."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{page}:{self.line}: {self.text}"


@dataclass
class Document:
    """A page: its blocks, and the lines outside of them."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    prose: list[tuple[int, str]] = field(default_factory=list)
    """Line numbers and lines, without comments."""
    marks: list[tuple[int, str, str]] = field(default_factory=list)
    """Line, name and text of what is about the whole page."""
    faults: list[Fault] = field(default_factory=list)

    def output_of(self, place: int) -> Block | None:
        """Return the block that quotes what the block at an index prints."""
        following = self.blocks[place + 1 : place + 2]
        return following[0] if following and following[0].language == "text" else None


def read(path: Path) -> Document:
    """Return a page with its blocks; what cannot be understood is among the faults."""
    page = Document(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    pending: dict[str, str] = {}
    fence: tuple[int, str, str, str] | None = None
    content: list[str] = []
    for number, line in enumerate(lines, 1):
        if fence is not None:
            start, indent, ticks, language = fence
            if line.strip() == ticks:
                text = "".join(f"{one.removeprefix(indent)}\n" for one in content)
                page.blocks.append(Block(start, language, text, dict(pending), indent))
                pending, content, fence = {}, [], None
            else:
                content.append(line)
        elif found := _FENCE.match(line):
            fence = (number + 1, found[1], found[2], found[3])
        elif found := _MARK.match(line):
            name, text = found[1], found[2] or ""
            if name in _OF_BLOCKS:
                pending[name] = text
            elif name in _OF_PAGES:
                page.marks.append((number, name, text))
            else:
                page.faults.append(Fault(path, number, f"no mark is named {name!r}"))
        else:
            if pending and line.strip():
                page.faults.append(Fault(path, number, "a mark is not in front of a block"))
                pending = {}
            page.prose.append((number, line))
    if fence is not None:
        page.faults.append(Fault(path, fence[0] - 1, "a block does not end"))
    return page


def shape_faults(page: Document) -> list[Fault]:
    """Return blocks whose language or place nothing is known of, and data that is invalid."""
    found = list(page.faults)
    for place, block in enumerate(page.blocks):
        try:
            _read_data(block)
        except ValueError as error:
            found.append(Fault(page.path, block.line, f"no valid {block.language}: {error}"))
        if block.language not in KNOWN:
            said = f"a block of language {block.language!r}; known are {', '.join(KNOWN)}"
            found.append(Fault(page.path, block.line - 1, said))
        if block.language == "text" and (not place or page.blocks[place - 1].language != "sh"):
            said = "output of no command: put an sh block before it, or call it syntax"
            found.append(Fault(page.path, block.line - 1, said))
        if "not run" in block.marks and not block.marks["not run"]:
            found.append(Fault(page.path, block.line - 1, "say why it is not run"))
    return found


def _read_data(block: Block) -> None:
    if block.language == "toml":
        tomlkit.parse(block.text)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "jsonl":
        for line in block.text.splitlines():
            json.loads(line)


@dataclass(frozen=True)
class Ran:
    """What a block printed, and what was wrong with it."""

    block: Block
    printed: str
    quoted: Block | None
    faults: list[Fault]


def python_line(words: Sequence[str]) -> str:
    """Return a line of a shell that runs this Python."""
    return shlex.join([sys.executable, *words])


def environment(home: Path, line: Callable[[Sequence[str]], str] = python_line) -> dict[str, str]:
    """Return variables under which `dld` and `python` are those of this checkout.

    Args:
        home: The folder of a user.
        line: Returns the line of a shell for `python` with some words.
    """
    programs = home / "programs"
    programs.mkdir(parents=True)
    for name, words in (("dld", ["-m", "dld_tui"]), ("python", []), ("python3", [])):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {line(words)} "$@"\n')
        program.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DLD_", "XDG_", "GIT_"))}
    return kept | {
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "TZ": "UTC",
    }


def run(
    page: Document, folder: Path, line: Callable[[Sequence[str]], str] = python_line
) -> Iterator[Ran]:
    """Run the blocks of a page in a new folder, in turn; `line` is that of `environment`.

    Raises:
        KeyError: The page wants a file that none is made for.
    """
    from tests.support import page_files

    home, work = folder / "home", folder / "page"
    work.mkdir(parents=True)
    variables = environment(home, line)
    for number, name, text in page.marks:
        if name == "files":
            for wanted in text.split():
                page_files.FILES[wanted](work / wanted)
        else:
            printed, faults, _ = _shell(page, Block(number, "sh", text, {}), work, variables)
            yield Ran(Block(number, "sh", text, {}), printed, None, faults)
    names: dict[str, object] = {"__name__": "__main__"}
    at = work
    for place, block in enumerate(page.blocks):
        if "file" in block.marks:
            (at / block.marks["file"]).write_text(block.text)
        elif block.language not in RUN or "not run" in block.marks:
            continue
        elif block.language == "python":
            printed, faults = _python(page, block, names, at)
            yield Ran(block, printed, None, faults)
        else:
            printed, faults, is_quoted = _shell(page, block, at, variables)
            quoted = page.output_of(place) if is_quoted else None
            if quoted is not None:
                faults = difference(page.path, quoted, printed)
            yield Ran(block, printed, quoted, faults)
            at = Path((home / "cwd").read_text().strip())


def _shell(
    page: Document, block: Block, folder: Path, variables: Mapping[str, str]
) -> tuple[str, list[Fault], bool]:
    """Run commands; the folder that they end in is noted in the home.

    Returns:
        What they print, what is wrong, and whether the exit status is that of the quoted output.
    """
    home = Path(variables["HOME"])
    script, failed = home / "block.sh", home / "failed"
    failed.unlink(missing_ok=True)
    text = textwrap.dedent(block.text)
    # On the first line, so that $LINENO counts the lines of the block.
    head = f"set -eE; trap 'echo $LINENO >{failed}' ERR; trap 'pwd >{home}/cwd' EXIT; "
    script.write_text(head + text)
    try:
        done = subprocess.run(
            ["bash", str(script)],
            cwd=folder,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return "", [Fault(page.path, block.line, f"it ran longer than {_LIMIT_S} s")], False
    printed = done.stdout.replace(f"{folder}{os.sep}", "").replace(str(home), "~")
    wanted = list(map(int, block.marks.get("exit", "0").split(" or ")))
    if done.returncode in wanted:
        return printed, [], done.returncode == wanted[0]
    line = int(failed.read_text()) if failed.exists() else 1
    said = (
        f"exit status {done.returncode}, not {block.marks.get('exit', 0)}; it printed:\n{printed}"
    )
    return printed, [Fault(page.path, block.line + line - 1, said)], False


def _python(
    page: Document, block: Block, names: dict[str, object], folder: Path
) -> tuple[str, list[Fault]]:
    """Run Python in this process: a doctest, or a program."""
    out = io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out):
            if ">>>" in block.text:
                test = doctest.DocTestParser().get_doctest(
                    block.text, names, page.path.name, str(page.path), block.line - 1
                )
                flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
                runner.run(test, clear_globs=False)
                names.update(test.globs)
                if runner.summarize(verbose=False).failed:
                    return "", [Fault(page.path, block.line, out.getvalue())]
            else:
                # A page is code of this repository.
                exec(compile(block.text, str(page.path), "exec"), names)
    except Exception as error:  # noqa: BLE001 - reported with page and line
        return out.getvalue(), [Fault(page.path, block.line, f"{type(error).__name__}: {error}")]
    finally:
        os.chdir(before)
    return out.getvalue(), []


_NUMBER = re.compile(r"\d[\d,.]*")
_BAR = re.compile(r"[▏▎▍▌▋▊▉█░▒▓─━]+")
_VERDICT = re.compile(
    r"^(?:faster|slower|no difference): .*?(?=; 95 %)|; ±\S+ % was not reached.*$"
)
"""What a gate decides differs between machines, as numbers do."""


def _plain(line: str, *, measured: bool) -> str:
    """Return what is compared of a line."""
    line = line.rstrip()
    if measured:
        line = _VERDICT.sub("", line)
        line = _BAR.sub("─", re.sub(r"\s+", " ", _NUMBER.sub("0", line.strip())))
    return line


def _matches(quoted: list[str], printed: list[str]) -> int | None:
    """Return None, or the index of the first quoted line that nothing printed matches.

    Lines ``…`` take as few lines as possible, and go back for more.
    """
    reached = {0}
    for place, line in enumerate(quoted):
        if line.strip() == _ANY:
            least = min(reached)
            reached = set(range(least, len(printed) + 1))
            continue
        pattern = re.compile(".*".join(map(re.escape, line.split(_ANY))))
        following = {
            at + 1 for at in reached if at < len(printed) and pattern.fullmatch(printed[at])
        }
        if not following:
            return place
        reached = following
    return None if len(printed) in reached else len(quoted)


def difference(page: Path, quoted: Block, printed: str) -> list[Fault]:
    """Return where the quoted output is not what was printed."""
    measured = "measured" in quoted.marks
    wanted, got = (
        [_plain(line, measured=measured) for line in text.strip("\n").splitlines()]
        for text in (quoted.text, printed)
    )
    place = _matches(wanted, got)
    if place is None:
        return []
    line = quoted.text.splitlines()[place] if place < len(wanted) else "the end"
    said = f"not what is printed: {line!r}; printed was:\n{printed}"
    return [Fault(page, quoted.line + min(place, len(wanted) - 1), said)]


def rewritten(page: Document, ran: list[Ran]) -> str:
    """Return the text of a page with the outputs that were printed, where nothing is left out."""
    lines = page.path.read_text(encoding="utf-8").splitlines()
    for one in sorted(ran, key=lambda one: -one.block.line):
        quoted = one.quoted
        if quoted is None or _ANY in quoted.text or not difference(page.path, quoted, one.printed):
            continue
        start = quoted.line - 1
        new = [quoted.indent + line.rstrip() for line in one.printed.strip("\n").splitlines()]
        lines[start : start + len(quoted.text.splitlines())] = new
    return "\n".join(lines) + "\n"


def main() -> int:
    """Try pages, and print what is wrong."""
    parser = argparse.ArgumentParser(description="Run the commands of pages.")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="Replace the quoted output.")
    parser.add_argument("--show", action="store_true", help="Print what each block prints.")
    given = parser.parse_args()
    wrong = 0
    for path in given.pages:
        page = read(path.resolve())
        faults = shape_faults(page)
        with tempfile.TemporaryDirectory() as folder:
            ran = []
            for one in run(page, Path(folder)):
                ran.append(one)
                faults += one.faults
                if given.show:
                    print(f"{path}:{one.block.line}\n{one.block.text}{one.printed}")
        if given.write:
            path.write_text(rewritten(page, ran), encoding="utf-8")
        for fault in faults:
            print(fault)
        wrong += len(faults)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
