from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.widgets.tensors.initializers import (
    CONSTANT,
    DENSE,
    SPARSE,
    InitializerRow,
    initializer_rows,
    initializer_table,
    text_of,
)
from tests.support.recorded import Recorded, table_text
from tests.support.tensors import write_tensors


@pytest.fixture
def rows(tmp_path: Path) -> dict[str, InitializerRow]:
    document = Document.open(write_tensors(tmp_path))
    return {row.name: row for row in initializer_rows(document.scopes(), constants=True)}


def test_every_kind_is_listed(rows: dict[str, InitializerRow]) -> None:
    assert [rows[name].kind for name in ("w", "thin", "k")] == [DENSE, SPARSE, CONSTANT]
    assert rows["k"].node is not None
    assert not rows["k"].is_initializer
    assert (rows["thin"].shape, rows["thin"].elements) == ((10,), 2)


def test_uses_and_places_are_known(rows: dict[str, InitializerRow]) -> None:
    assert [rows[name].uses for name in ("w", "k", "volume")] == [2, 1, 0]
    assert rows["gone"].where == "gone.bin @0"
    assert rows["w"].where == "inline"
    assert rows["thin"].where == "sparse"


def test_the_offset_of_a_large_payload_is_where_it_is_in_the_file(tmp_path: Path) -> None:
    import numpy as np
    from onnx import helper, numpy_helper

    array = np.arange(5000, dtype=np.float32)
    graph = helper.make_graph([], "g", [], [], [numpy_helper.from_array(array, "long")])
    path = tmp_path / "long.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    row = next(initializer_rows(Document.open(path).scopes()))
    offset = path.read_bytes().index(array.tobytes())
    assert row.where == f"inline @{offset:,}"


def test_sorting_and_searching(rows: dict[str, InitializerRow]) -> None:
    table = initializer_table(list(rows.values()), lambda row: "gone" if row.name == "gone" else "")
    assert table.sorted_by("elements").rows[0].name == "volume"
    assert "gone.bin" in text_of(rows["gone"])
    problem = table.column("problem")
    assert problem.shown_text(rows["gone"]).endswith("gone")
    assert problem.order_of(rows["gone"]) == "gone"
    assert problem.shown_text(rows["odd"]) == "never used"
    assert problem.style_of(rows["odd"]) == "warn"
    assert problem.order_of(rows["odd"]) is None


def test_the_whole_table(rows: dict[str, InitializerRow], recorded: Recorded) -> None:
    def problem(row: InitializerRow) -> str:
        return "there is no file" if row.name == "gone" else ""

    recorded("initializers_listed", {
        str(with_scope): table_text(
            initializer_table([*rows.values()], problem, with_scope=with_scope)
        )
        for with_scope in (False, True)
    } | {"texts": "\n".join(map(text_of, rows.values()))})  # fmt: skip
