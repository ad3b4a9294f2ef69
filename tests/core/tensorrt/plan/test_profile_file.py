"""Layer times joined to layers."""

from __future__ import annotations

import pytest

from dld_tui.core.errors import CorruptFileError
from dld_tui.core.report.formats.trtexec_files import LayerRow, LayerRows
from dld_tui.core.report.records import LayerInformation
from dld_tui.core.tensorrt.plan.layers import named_layer
from dld_tui.core.tensorrt.plan.trtexec_log import (
    JoinedProfile,
    join_profile,
    profile_of_rows,
    rows_of_file,
)


def join(names: list[str], *rows: tuple[str, float | None]) -> JoinedProfile:
    profile = LayerRows(10, [LayerRow(n, LayerInformation(average_ms=mean)) for n, mean in rows])
    return join_profile([named_layer(i, name) for i, name in enumerate(names)], profile)


def facts(
    total: float, mean: float, median: float | None = None, percent: float | None = None
) -> LayerInformation:
    return LayerInformation(
        total_ms=total, average_ms=mean, median_ms=median, trtexec_percentage=percent
    )


def test_names_repeat() -> None:
    found = join(["a", "b", "a"], ("a", 1.0), ("a", 2.0), ("b", 1.0))
    assert [layer.time_ms for layer in found.layers] == [1.0, 1.0, 2.0]
    assert [layer.percent for layer in found.layers] == [25.0, 25.0, 50.0]
    assert (found.total_ms, found.notes) == (4.0, [])


def test_a_profile_of_another_engine() -> None:
    found = join(["a"], ("b", 1.0))
    assert found.notes == ["the profile names none of the layers: it is of another engine"]
    assert found.total_ms is None


def test_marks_of_profiles_on_one_side() -> None:
    assert join(["a"], ("a [profile 1]", 1.0)).matched == 1
    assert join(["a [profile 1]"], ("a", 1.0)).matched == 1
    assert join(["a [profile 1]"], ("a [profile 2]", 1.0)).matched == 0
    assert join(["b", "a"], ("b", 1.0), ("a [profile 1]", 1.0)).matched == 2
    two = join(["a [profile 1]", "b [profile 1]"], ("a [profile 2]", 1.0), ("b", 2.0))
    assert [layer.time_ms for layer in two.layers] == [None, 2.0]


def test_rows_of_trtexec() -> None:
    found = profile_of_rows(
        [
            {"count": 4},
            {"name": "a", "timeMs": 2.0, "averageMs": 0.5, "medianMs": 0.4, "percentage": 1},
            {"name": "old", "timeMs": 2.0},
            {"name": "bad", "averageMs": -1},
            {"name": "huge", "averageMs": 10**400},
        ]
    )
    assert found.passes == 4
    assert found.rows == [
        LayerRow("a", facts(2.0, 0.5, 0.4, 1.0)),
        LayerRow("old", facts(2.0, 0.5)),
        LayerRow("bad", LayerInformation()),
        LayerRow("huge", LayerInformation()),
    ]
    assert found.notes == ["2 rows of the profile without a valid time: shown as unknown"]


def test_a_cut_file_keeps_its_whole_rows() -> None:
    text = '[\n  { "count" : 2 }\n, { "name" : "a", "averageMs" : 1 }\n, { "name" : "b", "ave'
    found = rows_of_file(text, "f")
    assert (found.rows, found.ends_early) == ([{"count": 2}, {"name": "a", "averageMs": 1}], True)
    for bad in ("{", '{"a": 1}', "[[", "[1, 2]", "7"):
        with pytest.raises(CorruptFileError):
            rows_of_file(bad, "f")


RUN = '[\n{"count": 2}\n, {"name": "a", "averageMs": %s}\n, {"name": "b", "averageMs": 1}\n]\n'


def test_several_lists_in_one_file_are_runs() -> None:
    found = rows_of_file(RUN % 1 + RUN % 2 + RUN % 3, "f")
    profile = profile_of_rows(found.rows, found.notes("profile"))
    assert [(row.name, row.information.average_ms) for row in profile.rows] == [("a", 3), ("b", 1)]
    assert profile.notes == ["the profile is of 3 runs: the last is shown"]
    # A run that was killed is not shown in the place of a whole one.
    cut = rows_of_file(RUN % 1 + (RUN % 2)[:40], "f")
    assert cut.rows[1]["averageMs"] == 1
    assert cut.notes("profile") == ["the profile is of 2 runs: the last complete one is shown"]
    # The same in one list: each run begins with its count.
    joined = profile_of_rows([*rows_of_file(RUN % 1, "f").rows, *rows_of_file(RUN % 5, "f").rows])
    assert [(row.name, row.information.average_ms) for row in joined.rows] == [("a", 5), ("b", 1)]
    assert joined.notes == ["the profile is of 2 runs: the last is shown"]
