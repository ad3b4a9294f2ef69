"""What was tried is read again; what is damaged, or of another model, is not."""

from __future__ import annotations

import math
from pathlib import Path

from dld_tui.core.accuracy.search import Outcome
from dld_tui.core.accuracy.trial_journal import OutcomeJournal, search_name, stamps

NODES = [f"0:{at}" for at in range(70)]
GOOD, BAD = Outcome(True, 1e-3), Outcome(False, math.inf)


def filled(path: Path) -> OutcomeJournal:
    journal = OutcomeJournal(path, NODES)
    journal.add(frozenset(), BAD)
    journal.add(frozenset(NODES[60:]), GOOD)
    return journal


def test_trials_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "search.jsonl"
    filled(path)
    again = OutcomeJournal(path, NODES)
    assert again.known == {frozenset(): BAD, frozenset(NODES[60:]): GOOD}
    again.add(frozenset(NODES), GOOD)
    assert len(OutcomeJournal(path, NODES).known) == 3
    assert len(path.read_text().splitlines()) == 4, "one line a trial, and the head"


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    filled(path)
    path.write_text(path.read_text()[:-8])
    assert OutcomeJournal(path, NODES).known == {frozenset(): BAD}
    path.write_bytes(b"\xff\xfe")
    assert OutcomeJournal(path, NODES).known == {}


def test_trials_of_other_nodes_and_forgotten_ones_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    filled(path)
    assert OutcomeJournal(path, NODES[1:]).known == {}
    anew = OutcomeJournal(path, NODES, again=True)
    assert anew.known == {}
    anew.add(frozenset(NODES), GOOD)
    assert OutcomeJournal(path, NODES).known == {frozenset(NODES): GOOD}


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    journal = OutcomeJournal(tmp_path / "file" / "search.jsonl", NODES)
    journal.add(frozenset(), BAD)
    assert journal.known == {}


def test_the_name_of_a_search_follows_its_files(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    first = search_name({"files": stamps([file])})
    file.write_text("model")
    assert search_name({"files": stamps([file])}) != first
    assert search_name({"files": stamps([file])}) == search_name({"files": stamps([file])})
