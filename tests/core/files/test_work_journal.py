"""The journal that long work resumes by: cut and damaged lines, and several processes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.files.work_journal import WorkJournal


def lines(path: Path, *, signed: bool = False) -> list[Any]:
    found: list[Any] = []
    WorkJournal(path, signed=signed).read(found.append)
    return found


@pytest.mark.parametrize("signed", [False, True])
def test_lines_around_one_that_was_cut_count(tmp_path: Path, signed: bool) -> None:
    path = tmp_path / "new" / "j.jsonl"
    for number, cut in ((1, 0), (2, 3), (3, 1), (4, 0)):
        with closing(WorkJournal(path, signed=signed)) as journal:
            journal.add({"number": number})
        path.write_bytes(path.read_bytes()[: -cut or None])
    assert lines(path, signed=signed) == [{"number": 1}, {"number": 3}, {"number": 4}]


def test_lines_that_are_no_json_or_are_refused_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"a": 1}\n\xff\n[\n' + b"[" * 200_000 + b'\n7\n\n{"a": 2}')
    found = []
    WorkJournal(path).read(lambda entry: found.append(entry["a"]))
    assert found == [1, 2]


def test_signed_lines_count_in_their_own_file_only(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.jsonl", tmp_path / "other.jsonl"
    with closing(WorkJournal(mine, signed=True)) as journal:
        journal.add("one")
    other.write_bytes(mine.read_bytes() + b'"two"\n')
    assert (lines(mine, signed=True), lines(other, signed=True)) == (["one"], [])


def test_lines_of_a_second_process_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    first, second = WorkJournal(path), WorkJournal(path)
    assert (first.claim(), second.claim(), second.path) == (True, False, None)
    first.add(1)
    second.add(2)
    second.forget()
    assert lines(path) == [1]
    first.close()
    path.write_bytes(path.read_bytes() + b"[")
    with closing(WorkJournal(path)) as third:
        assert (third.claim(), third.has_lines) == (True, True)
        third.clear()
        assert not third.has_lines
        third.add(3)
        assert path.read_bytes() == b"3\n"
        third.forget()
        assert not path.exists()


def test_a_line_that_a_full_disk_took_half_of_is_a_cut_one(tmp_path: Path) -> None:
    class Full:
        room = 4

        def write(self, data: bytes) -> int:
            with path.open("ab") as file:
                return file.write(data[: self.room])

        def close(self) -> None: ...

    path = tmp_path / "j.jsonl"
    with closing(WorkJournal(path)) as journal:
        journal.add("one")
        journal.close()
        journal._file = disk = Full()  # type: ignore[assignment]
        journal.add("lost")
        disk.room = 100
        journal.add("two")
    assert lines(path) == ["one", "two"]


def test_a_journal_that_is_nowhere_or_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (None, tmp_path / "file" / "j.jsonl"):
        with closing(WorkJournal(path)) as journal:
            journal.add(1)
            journal.clear()
            assert not journal.has_lines
            journal.forget()
