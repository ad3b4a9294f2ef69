from __future__ import annotations

import json
import math
import os
import sqlite3
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError
from dld_tui.core.report.schema import as_json, as_list, saving
from dld_tui.core.text import encodable


def test_numbers_that_json_cannot_hold_become_null() -> None:
    text = as_json({"a": [1.5, math.nan], "b": {"c": math.inf}})
    assert json.loads(text) == {"a": [1.5, None], "b": {"c": None}}


def test_bytes_that_are_not_utf8_are_escaped() -> None:
    name = os.fsdecode(b"a\xff\xfeb")
    database = sqlite3.connect(":memory:")
    assert database.execute("SELECT ?", (encodable(name),)).fetchone() == ("a\\udcff\\udcfeb",)
    database.close()
    assert encodable("Größe") == "Größe"
    assert json.loads(as_json(name)) == name


def test_shapes() -> None:
    assert as_list(None) is None
    assert as_list((1, "N", None)) == [1, "N", None]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), sqlite3.Error("full")])
def test_failures_name_the_file(error: Exception) -> None:
    with (
        pytest.raises(SaveError, match=r"^/x/r: cannot write the report: (No space|full)"),
        saving(Path("/x/r")),
    ):
        raise error
