"""Pages of the documentation are true: commands run, quoted outputs are what is printed.

`scripts/pages.py` says how a page is written so that it can be run.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from _pytest.mark import ParameterSet

from dld_tui.cli.group import dld
from scripts import words as vocabulary
from scripts.pages import (
    ROOT,
    RUN,
    Block,
    Fault,
    difference,
    python_line,
    read,
    rewritten,
    run,
    shape_faults,
)
from tests.support.fork_server import Programs

DOCS = ROOT / "docs"
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")})
FOR_DEVELOPERS = {ROOT / "CONTRIBUTING.md", *(DOCS / "project").glob("*.md")}
REASONS = {
    "needs a GPU", "needs TensorRT", "needs a target", "needs Docker", "needs a Jetson",
    "needs another program", "needs your own model", "installs software", "opens the interface",
    "changes the shell", "takes minutes",
}  # fmt: skip
"""Why a block may not be run here; ``needs TensorRT: built, never timed`` says more."""
NEEDS_RUNTIME = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="no onnxruntime here"
)


def identity(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_alone(page: Path) -> ParameterSet:
    """Return a page to run; one that measures takes minutes on a busy machine.

    `make test` runs the first pages that a reader reads.
    """
    measures = any("measured" in block.marks for block in read(page).blocks)
    rest = () if page.parent.name == "start" else pytest.mark.broad
    return pytest.param(page, id=identity(page), marks=pytest.mark.slow if measures else rest)


def failing(faults: list[Fault]) -> None:
    """Fail with one line for each fault."""
    if faults:
        pytest.fail("\n".join(map(str, faults)), pytrace=False)


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_blocks_have_a_language_and_data_is_valid(page: Path) -> None:
    failing(shape_faults(read(page)))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """Fork what pages call, which takes half a second less; pages that measure start processes."""
    one = Programs(tmp_path_factory.mktemp("programs"))
    yield one
    one.end()


@NEEDS_RUNTIME
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", map(run_alone, PAGES))
def test_commands_run_and_print_what_is_quoted(
    page: Path, tmp_path: Path, programs: Programs, request: pytest.FixtureRequest
) -> None:
    line = python_line if request.node.get_closest_marker("slow") else programs.line
    failing([fault for one in run(read(page), tmp_path, line) for fault in one.faults])


def test_each_block_that_is_not_run_says_why() -> None:
    """`pytest -rP` lists them."""
    counted: Counter[str] = Counter()
    faults = []
    for page in PAGES:
        for block in read(page).blocks:
            if block.language in RUN and (reason := block.marks.get("not run")) is not None:
                counted[reason.partition(":")[0]] += 1
                print(f"{identity(page)}:{block.line}: {reason}")  # noqa: T201
                if reason.partition(":")[0] not in REASONS:
                    said = f"not run: {reason!r} is none of {', '.join(sorted(REASONS))}"
                    faults.append(Fault(page, block.line - 1, said))
    print(f"{counted.total()} blocks are not run: {dict(counted)}")  # noqa: T201
    failing(faults)


def spans(page: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of what stands between backquotes, outside of blocks."""
    for line, text in read(page).prose:
        yield from ((line, span) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text))


def unknown_in(command: str) -> str:
    """Return what is wrong with a command line of `dld`: a command or option that there is not."""
    try:
        words = shlex.split(command.replace("\\|", "|"), comments=True)[1:]
    except ValueError:
        return ""  # cut by the end of a line of the page
    here: click.Command = dld
    context = click.Context(dld, info_name="dld")
    for word in words:
        if isinstance(here, click.Group) and re.fullmatch(r"[a-z][a-z0-9-]*", word):
            below = here.get_command(context, word)
            if below is None:
                return f"no command is named {word!r}"
            here = below
            context = click.Context(below, info_name=word, parent=context)
        elif isinstance(here, click.Group) and not word.startswith("-"):
            return ""  # `dld model.onnx`, or a list of commands
        elif re.match(r"--[a-z]", word):
            option = word.partition("=")[0].rstrip("…,.")
            taken = {o for p in here.params for o in (*p.opts, *p.secondary_opts)}
            if option not in taken | {"--help"} and not isinstance(here, click.Group):
                return f"{context.command_path} has no option {option}"
        elif word in ("|", ">", "&&", ";", "--"):
            return ""
    return ""


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_commands_and_options_that_are_named_exist(page: Path) -> None:
    found = ((line, unknown_in(span)) for line, span in spans(page) if span.startswith("dld "))
    failing([Fault(page, line, said) for line, said in found if said])


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page; of equal headings, the later ones have numbers."""
    found: list[str] = []
    for _, line in read(page).prose:
        if heading := re.match(r"#+ (.+)$", line):
            one = slug(heading[1])
            found.append(f"{one}-{found.count(one)}" if one in found else one)
        found += re.findall(r'<a (?:id|name)="([^"]+)"', line)
    return set(found)


def link_faults(page: Path) -> Iterator[Fault]:
    for line, text in read(page).prose:
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "``", text)):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            to = (page.parent / path).resolve() if path else page
            if not to.exists():
                yield Fault(page, line, f"no file: {link}")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                yield Fault(page, line, f"no heading: {link}")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=identity)
def test_links_lead_somewhere(page: Path) -> None:
    failing(list(link_faults(page)))


def linked(page: Path) -> set[Path]:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    return {(page.parent / link).resolve() for link in links if not re.match(r"[a-z]+:", link)}


def test_each_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += linked(page)
    assert {identity(page) for page in PAGES} - {identity(page) for page in reached} == set()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CONTRIBUTING.md"], ids=identity
)
def test_words_are_those_of_contributing(page: Path) -> None:
    prose = ((line, re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)) for line, text in read(page).prose)
    failing([Fault(page, line, said) for line, text in prose for said in vocabulary.wrong(text)])


_OF_DEVELOPERS = re.compile(
    r"(?<![\w./-])(?:tests|benchmarks|scripts|core|activities|backends|widgets|screens)/[\w./]*"
    r"|\bsrc/dld_tui\b|\bmake (?!demo\b|test\b)[a-z][a-z-]+(?=`)"
)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in FOR_DEVELOPERS], ids=identity
)
def test_pages_for_users_name_no_files_of_developers(page: Path) -> None:
    lines = [(line, re.sub(r"\]\([^)]*\)", "", text)) for line, text in read(page).prose]
    failing([
        Fault(page, line, f"for developers: {found[0]}")
        for line, text in lines
        if (found := _OF_DEVELOPERS.search(text))
    ])  # fmt: skip


def page_of(folder: Path, text: str) -> Path:
    path = folder / "planted.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("# A\n\n```sh\ntrue\nfalse\ntrue\n```\n", 5, "exit status 1, not 0"),
        ("```sh\necho a\necho b\n```\n\n```text\na\nc\n```\n", 8, "not what is printed: 'c'"),
        ("```sh\necho a\n```\n\n```text\na\nb\n```\n", 7, "not what is printed: 'b'"),
        ("```sh\necho a; echo b\n```\n\n```text\na\n```\n", 6, "not what is printed: 'the end'"),
        ("<!-- exit: 0 or 5 -->\n```sh\nexit 4\n```\n", 3, "exit status 4, not 0 or 5"),
        ("<!-- exit: 3 -->\n```sh\ntrue\n```\n", 3, "exit status 0, not 3"),
        ("```sh\ntrue\n```\n\n```text\na\n```\n", 6, "not what is printed: 'a'"),
        ("```python\n>>> 1 + 1\n3\n\n```\n", 2, "Expected"),
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", 6, "AssertionError"),
    ],
)
def test_a_planted_fault_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    page = read(page_of(tmp_path, text))
    assert shape_faults(page) == []
    (fault,) = [fault for one in run(page, tmp_path / "run") for fault in one.faults]
    assert fault.line == line
    assert said in fault.text


def test_a_page_that_is_true_has_no_faults(tmp_path: Path) -> None:
    text = (
        "<!-- files: model.onnx -->\n<!-- setup: mkdir sub -->\n\n"
        "```sh\ncd sub && ls ..\n```\n\n```text\nmodel.onnx\nsub\n```\n\n"
        "<!-- exit: 2 -->\n```sh\necho took 12.5 ms; exit 2\n```\n\n"
        "<!-- measured -->\n```text\ntook  3 ms\n```\n\n"
        "```sh\necho 'no difference: +1 %; 95 % of it; ±0.5 % was not reached'\n```\n\n"
        "<!-- measured -->\n```text\nfaster: -17 %; 95 % of it\n```\n\n"
        "<!-- exit: 0 or 5 -->\n```sh\necho no; exit 5\n```\n\n```text\nyes\n```\n\n"
        "<!-- file: a.txt -->\n```syntax\nany\n```\n\n"
        "```sh\nseq 9; cat a.txt\n```\n\n```text\n1\n…\n9\na…y\n```\n\n"
        "<!-- not run: needs a GPU -->\n```sh\nfalse\n```\n"
    )
    page = read(page_of(tmp_path, text))
    assert shape_faults(page) == []
    ran = list(run(page, tmp_path / "run"))
    assert [fault.line for one in ran for fault in one.faults] == []
    assert len(ran) == 6


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("```\na\n```\n", 1), ("```text\na\n```\n", 1), ("a\n\n```json\n{,}\n```\n", 4),
        ("<!-- not run -->\n```sh\na\n```\n", 2), ("<!-- note run: x -->\n", 1),
        ("<!-- exit: 1 -->\na\n", 2), ("```sh\na\n", 1),
    ],
)  # fmt: skip
def test_a_page_that_cannot_be_understood_is_named_with_its_line(
    tmp_path: Path, text: str, line: int
) -> None:
    assert {fault.line for fault in shape_faults(read(page_of(tmp_path, text)))} == {line}


def test_quoted_output_is_written_anew(tmp_path: Path) -> None:
    text = "```sh\nseq 3\n```\n\n```text\n1\n```\n\n```sh\nseq 2\n```\n\n```text\n…\n```\n\nend\n"
    page = read(page_of(tmp_path, text))
    new = rewritten(page, list(run(page, tmp_path / "run")))
    assert new == text.replace("text\n1\n", "text\n1\n2\n3\n")


def test_lines_left_out_take_as_many_as_needed() -> None:
    page = Path("page.md")
    for quoted, printed, line in (
        ("…\nb", "a\nb\nc\nb", None), ("…\nb\n…\nc", "b\nc", None), ("…\nb", "a\nc", 11),
        ("a…c", "abbc", None), ("a.c", "abc", 10),
    ):  # fmt: skip
        faults = difference(page, Block(10, "text", quoted + "\n", {}), printed)
        assert [fault.line for fault in faults] == ([] if line is None else [line]), quoted


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("dld inspect m.onnx --cost", ""),
        ("dld inspect m.onnx --costs", "dld inspect has no option --costs"),
        ("dld convert fp16 m.onnx -o n.onnx --keep-io-types", ""),
        ("dld convert fp17 m.onnx", "no command is named 'fp17'"),
        ("dld m.onnx", ""),
    ],
)
def test_an_unknown_command_or_option_is_found(command: str, said: str) -> None:
    assert unknown_in(command) == said


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = page_of(tmp_path, "# One two\n\n[a](#one-two) [b](#three)\n[c](gone.md) `[d](e)`\n")
    assert [fault.line for fault in link_faults(page)] == [3, 4]
