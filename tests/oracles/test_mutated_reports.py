"""Reports whose rows are changed in drawn ways: pages have no wrong sum, or the file is refused."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.report.report import Report
from tests.oracles.test_html_figures import check_report
from tests.support.gpu_reports import make_gpu_report
from tests.support.report_files import make_report
from tests.support.tiers import first

VALUES = (None, -1.0, 0, 1e300, -1e300, float("inf"), "x", "", 1e-300, 2**62, -5, 3.5, b"\0", 10**9)


def mutate(path: Path, dice: random.Random) -> None:
    """Change, remove or repeat some values and rows."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        tables = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if database.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]
        ]
        for _ in range(dice.randint(1, 4)):
            table = dice.choice(tables)
            columns = database.execute(f"PRAGMA table_info({table})").fetchall()
            keys = [name for _, name, _, _, _, place in columns if place] or ["rowid"]
            rows = database.execute(f"SELECT {', '.join(keys)} FROM {table}").fetchall()
            if not rows:
                continue
            where, row = " AND ".join(f"{key} = ?" for key in keys), dice.choice(rows)
            column: Any = dice.choice(columns)[1]
            with contextlib.suppress(sqlite3.Error):
                change(database, table, column, where, row, dice)
        database.commit()


def change(
    database: sqlite3.Connection, table: str, column: str, where: str, row: Any, dice: random.Random
) -> None:
    roll = dice.random()
    if roll < 0.2:
        database.execute(f"UPDATE {table} SET {column} = ?", (dice.choice(VALUES),))
    elif roll < 0.3:
        database.execute(f"DELETE FROM {table} WHERE {where}", row)
    elif roll < 0.6:
        database.execute(f"UPDATE {table} SET {column} = {column} * ? WHERE {where}",
                         (dice.choice((-1, 1000, 1e-6)), *row))  # fmt: skip
    else:
        sql = f"UPDATE {table} SET {column} = ? WHERE {where}"
        database.execute(sql, (dice.choice(VALUES), *row))


@pytest.mark.parametrize("seed", first(8, range(24)))
def test_no_wrong_sum(seed: int, tmp_path: Path) -> None:
    path, dice = tmp_path / "r.dldprof", random.Random(seed)
    if seed % 2:
        make_gpu_report(path, 8, 7, alone=3 * (seed % 4 == 1))
    else:
        make_report(path, layers=6)
    mutate(path, dice)
    with contextlib.suppress(InputError):
        check_report(path)


def test_shares_of_nodes_are_a_whole(tmp_path: Path) -> None:
    make_report(tmp_path / "r.dldprof", layers=4)
    with contextlib.closing(sqlite3.connect(tmp_path / "r.dldprof")) as database:
        database.execute("UPDATE layer_nodes SET share = 1e300 WHERE layer = 1")
        database.commit()
    check_report(tmp_path / "r.dldprof")
    with Report.open(tmp_path / "r.dldprof") as report:
        assert [sum(link.share for link in layer.nodes) for layer in report.layers] == [1.0] * 4
        assert any("1 layer with shares of nodes" in line for line in report.problems)
