"""Writers of tables that packages add, and what is said of broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.process import plugins
from dld_tui.core.tables import writers as module
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.writers import TableWriter, write_tables, writers

TABLE = Table((Column("name", "name", str),), ["a", "b"])


def test_ours_are_found() -> None:
    found = writers()
    assert {name: writer.ending for name, writer in found.items()} == {
        "parquet": ".parquet", "xlsx": ".xlsx"
    }  # fmt: skip
    assert [name for name, writer in found.items() if writer.several] == ["xlsx"]


def test_one_writes_a_file_and_a_bug_of_it_is_named(tmp_path: Path) -> None:
    plain = TableWriter(
        ".names", "names", lambda tables, facts: "".join(tables[0][1].rows).encode()
    )
    assert write_tables(plain, tmp_path / "x.names", [("T", TABLE)]) == []
    assert (tmp_path / "x.names").read_bytes() == b"ab"
    broken = TableWriter(".names", "names", lambda tables, facts: facts["x"].encode())
    with pytest.raises(ActivityError, match="the writer of names failed: KeyError: 'x'"):
        write_tables(broken, tmp_path / "y.names", [("T", TABLE)])
    assert not (tmp_path / "y.names").exists()


def test_a_wrong_name_or_ending_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TableWriter("names", "names", lambda tables, facts: b"")
    given = (plugins.Plugin("names", "toy", writer),)
    monkeypatch.setattr(module, "plugins", lambda group, kind: given)
    assert writers() == {}
    assert "its ending is not one as .xlsx" in plugins.skipped()[0].problem
