"""No finished edit is lost when the program is killed."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.scripting.arguments import Entry
from dld_tui.core.model.document.scripting.journal import (
    crash_journals,
    discard_journal,
    discarded_journals,
    standing_edits,
    sweep_journals,
)
from dld_tui.core.model.document.scripting.scripts import parse_script, replay
from dld_tui.core.model.document.serialise import save
from dld_tui.core.process.paths import journal_dir
from tests.support import models
from tests.support.killed import killed_after
from tests.support.sessions import bytes_of


def steps_and_killed(path: Path, steps: str) -> bytes:
    """Do steps in a process that is killed then; return the model as it was."""
    made = path.parent / "made"

    def work() -> None:
        document = Document.open(path, journaled=True)
        for step in steps.split(","):
            if step == "undo":
                document.undo()
            elif step == "redo":
                document.redo()
            elif step == "save":
                save(document)
            elif step == "delete":
                document.apply("delete_nodes", scope=["choose:then_branch"], nodes=["inner"])
            elif step == "drop":
                document.apply("delete_nodes", scope=[], nodes=["choose"])
            else:
                (value,) = document.main.nodes[0].outputs
                document.apply("rename_value", scope=[], value=value, name=step)
        made.write_bytes(bytes_of(document))

    killed_after(work)
    return made.read_bytes()


@pytest.mark.parametrize(
    "steps",
    [
        "one", "one,undo,two,delete", "one,delete,undo,undo,redo", "one,delete,save,undo",
        "one,drop,save,undo,undo,redo", "one,drop,save,undo,delete,undo,redo",
        "drop,save,undo,redo,undo",
    ],
)  # fmt: skip
def test_a_killed_program_leaves_a_journal_that_restores_every_edit(
    tmp_path: Path, steps: str
) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    made = steps_and_killed(path, steps)
    (left,) = crash_journals(path)
    assert left.matches
    document = Document.open(path, journaled=True)
    result = replay(document, left.lines)
    assert result.refused == []
    assert bytes_of(document) == made
    discard_journal(left)
    assert [found for found in crash_journals(path) if found.journal == left.journal] == []
    assert left.lines in [found.lines for found in discarded_journals(path)]
    document.close()


@pytest.mark.parametrize(("steps", "standing"), [("one,two,undo", [1]), ("one,two,undo,undo", [])])
def test_edits_that_were_undone_are_not_offered(
    tmp_path: Path, steps: str, standing: list[int]
) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    steps_and_killed(path, steps)
    assert [len(standing_edits(left.lines)) for left in crash_journals(path)] == standing
    sweep_journals()
    assert len(list(journal_dir().iterdir())) == len(standing)


def test_a_redone_edit_stands_and_a_new_one_ends_redoing() -> None:
    edits: list[Entry] = [{"edit": name} for name in "abc"]
    undo: Entry = {"undo": True}
    redo: Entry = {"redo": True}
    first, second, third = edits
    assert standing_edits([first, second, undo, redo]) == [first, second]
    assert standing_edits([first, undo, third, redo]) == [third]
    assert standing_edits([undo, first]) == [first]


def test_a_journal_in_use_is_not_offered_and_goes_when_closed(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    document = Document.open(path, journaled=True)
    assert not journal_dir().exists(), "looking at a model writes nothing"
    document.apply("rename_node", scope=[], node="first", name="other")
    assert len(list(journal_dir().iterdir())) == 1
    assert crash_journals(path) == []
    save(document)
    assert list(journal_dir().iterdir()) == []
    document.apply("rename_node", scope=[], node="other", name="again")
    document.undo()
    document.close()
    assert list(journal_dir().iterdir()) == []


def test_edits_that_are_thrown_away_are_kept_for_a_week(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    with closing(Document.open(path, journaled=True)) as document:
        document.apply("rename_node", scope=[], node="first", name="other")
        document.apply("rename_node", scope=[], node="other", name="again")
    assert crash_journals(path) == []
    (kept,) = discarded_journals(path)
    assert kept.matches
    with closing(Document.open(path)) as document:
        assert not replay(document, kept.lines).refused
        assert document.main.nodes[0].name == "again"
    sweep_journals()
    assert discarded_journals(path) == [kept]
    week_ago = time.time() - 7.1 * 86_400
    os.utime(kept.journal, (week_ago, week_ago))
    sweep_journals()
    assert discarded_journals(path) == []


@pytest.mark.parametrize(("moment", "offered"), [("before", 1), ("after", 0)])
def test_a_save_that_is_killed_around_its_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, offered: int
) -> None:
    path = models.write(tmp_path, models.CHAIN)

    def work() -> None:
        rename = os.replace

        def die(old: Path, new: Path) -> None:
            if moment == "after":
                rename(old, new)
            os.kill(os.getpid(), signal.SIGKILL)

        document = Document.open(path, journaled=True)
        document.apply("rename_node", scope=[], node="first", name="one")
        monkeypatch.setattr(os, "replace", die)
        save(document)

    killed_after(work)
    assert (onnx.load(path).graph.node[0].name == "one") is (moment == "after")
    assert [len(left.lines) for left in crash_journals(path)] == [1] * offered
    sweep_journals()
    assert len(list(journal_dir().iterdir())) == offered


def test_journals_without_edits_are_swept_and_those_in_use_stay(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    document = Document.open(path, journaled=True)
    document.apply("rename_node", scope=[], node="first", name="other")
    (used,) = journal_dir().iterdir()
    header = used.read_text().splitlines()[0]
    edit = '{"edit": "set_metadata", "key": "k", "value": "v"}'
    for name, text in {"empty": "", "header": header, "edits": f"{header}\n{edit}"}.items():
        (journal_dir() / f"{name}.jsonl").write_text(text)
    sweep_journals()
    assert {file.stem for file in journal_dir().iterdir()} == {used.stem, "edits"}
    document.close()


def test_a_line_that_is_nested_too_deep_is_refused_and_the_others_are_offered(
    tmp_path: Path,
) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    steps_and_killed(path, "one")
    (journal,) = journal_dir().iterdir()
    with journal.open("a") as file:
        for depth in (100, 5_000, 100_000):
            file.write('{"edit": "set_metadata", "key": "k", "value": ')
            file.write('{"a": ' * depth + "1" + "}" * depth + "}\n")
        file.write('{"edit": "rename_node", "scope": [], "node": "pre", "name": "two"}\n')
    (left,) = crash_journals(path)
    fresh = Document.open(path)
    result = replay(fresh, left.lines)
    assert [number for number, _ in result.refused] == [2, 3, 4]
    assert all("nested" in why for _, why in result.refused)
    assert (fresh.main.nodes[0].name, fresh.main.nodes[0].outputs) == ("two", ("one",))


def test_a_changed_model_is_noticed_and_nothing_behind_a_torn_line_is_offered(
    tmp_path: Path,
) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    steps_and_killed(path, "one,two")
    (journal,) = journal_dir().iterdir()
    with journal.open("a") as file:
        file.write('{"edit": "rename_val\n')
        file.write('{"edit": "rename_node", "scope": [], "node": "pre", "name": "three"}\n')
    os.utime(path, ns=(1, 1))
    (left,) = crash_journals(path)
    assert not left.matches
    assert [line["name"] for line in left.lines] == ["one", "two"]


def test_a_folder_that_cannot_be_written_is_told_and_the_edit_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    document = Document.open(models.write(tmp_path, models.CHAIN), journaled=True)
    document.apply("rename_node", scope=[], node="first", name="other")
    assert document.main.nodes[0].name == "other"
    assert document.journal_error is not None


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("too deep")])
def test_a_line_that_cannot_be_made_is_told_and_the_edit_goes_on(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(line: Entry) -> str:
        raise error

    path = models.write(tmp_path, models.CHAIN)
    document = Document.open(path, journaled=True)
    document.apply("rename_node", scope=[], node="first", name="one")
    with monkeypatch.context() as patched:
        patched.setattr("dld_tui.core.model.document.scripting.journal.json.dumps", fail)
        document.apply("rename_node", scope=[], node="second", name="two")
    document.apply("rename_node", scope=[], node="third", name="three")
    assert type(error).__name__ in (document.journal_error or "")
    (journal,) = journal_dir().glob("*.jsonl")
    assert [entry.get("name") for entry in parse_script(journal.read_text()).values()] == ["one"]
    document.close()


def test_scripts_report_lines_that_no_longer_apply(tmp_path: Path) -> None:
    entries = parse_script(
        '# renames\n{"edit": "rename_node", "scope": [], "node": "first", "name": "one"}\n\n'
        '{"edit": "rename_node", "scope": [], "node": "ghost", "name": "two"}\n'
        '{"edit": 7}\n'
    )
    document = Document.open(models.write(tmp_path, models.CHAIN), journaled=True)
    result = replay(document, entries)
    assert result.applied == 1
    assert [number for number, _ in result.refused] == [4, 5]
    with pytest.raises(InputError, match="line 2 is not JSON"):
        parse_script("{}\n{nope")
