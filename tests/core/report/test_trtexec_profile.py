from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.report.formats.trtexec_files import report_from_trtexec_profile
from dld_tui.core.report.records import LayerInformation
from dld_tui.core.report.report import open_report


def row(name: str, total: float, average: float, percent: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "timeMs": total, "averageMs": average, **more, "percentage": percent}


ROWS = [
    row("Conv_0 + Relu_1", 30.0, 3.0, 60.0, medianMs=2.5),
    row("Reformatting CopyNode", 0.0, 0.0, 0.0, medianMs=0.0),
    row("Conv_0 + Relu_1", 20.0, 2.0, 40.0, medianMs=1.5),
]


def write(path: Path, rows: list[Any], count: int | None = 10) -> Path:
    """Write rows the way trtexec does."""
    head = [] if count is None else [{"count": count}]
    path.write_text("[\n  " + "\n, ".join(json.dumps(r) for r in head + rows) + "\n]\n")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "net.engine.profile.json", ROWS)


def test_layers_have_the_averages_and_keep_what_the_file_says(path: Path) -> None:
    with open_report(path) as report:
        assert report.path == path
        assert (report.network, report.backend) == ("net", "TensorRT")
        assert [layer.time_ms for layer in report.layers] == [3.0, 0.0, 2.0]
        first = report.layers[0]
        assert (first.mean_ms, first.min_ms, first.max_ms) == (3.0, None, None)
        assert first.type == "Conv + Relu"
        assert first.percent == pytest.approx(60.0)  # as trtexec says
        assert first.engine == LayerInformation(
            total_ms=30.0, average_ms=3.0, median_ms=2.5, trtexec_percentage=60.0
        )
        assert report.environment == {"iterations": 10}


def test_rows_of_the_same_name_are_layers_of_their_own(path: Path) -> None:
    with open_report(path) as report:
        assert [layer.name for layer in report.layers].count("Conv_0 + Relu_1") == 2
        assert [event.start_us for event in report.pass_events(0)] == [0.0, 3000.0, 3000.0]


def test_of_several_runs_the_last_counts(path: Path) -> None:
    first = path.read_text()
    write(path, [row("other", 10.0, 1.0, 100.0)])
    for text in (first + path.read_text(), first + '[{"count": 3}, {"name": "cut"'):
        path.write_text(text)
        with open_report(path) as report:
            names = [layer.name for layer in report.layers]
            warnings = [note.text for note in report.notes if note.kind == "warning"]
        cut = "cut" in text
        assert names == ([one["name"] for one in ROWS] if cut else ["other"])
        which = "the last complete one" if cut else "the last"
        assert warnings == [f"the profile is of 2 runs: {which} is shown"]
    # In one list, each run begins with its count.
    wrong = [row("negative", -1.0, -1.0, 0.0), row("contradicts", 1.0, 9.0, 0.0), *ROWS[1:]]
    write(path, [*ROWS, *wrong, {"count": 7}, row("new", 7.0, 1.0, 100.0)])
    with open_report(path) as report:
        assert [layer.name for layer in report.layers] == ["new"]
        assert report.environment == {"iterations": 7}
        warnings = [note.text for note in report.notes if note.kind == "warning"]
    assert warnings == ["the profile is of 2 runs: the last is shown"]


def test_unsound_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [
        *ROWS,
        row("negative", -1.0, -1.0, 0.0),
        row("huge", 1e300, 1.0, 0.0),
        {"name": "none"},
        {"timeMs": 1, "averageMs": 1},
        row("text", 1.0, "1", 0.0),  # type: ignore[arg-type]
        row("", 1.0, 0.1, 0.0),
    ]
    path = write(tmp_path / "p.json", rows)
    path.write_text(path.read_text().replace("\n]\n", '\n, {"name": "n", "averageMs": NaN}\n]\n'))
    with open_report(path) as report:
        assert len(report.layers) == 3
        warnings = [note.text for note in report.notes if note.kind == "warning"]
    assert warnings == ["7 rows without a valid time left out"]
    # Half of the passes take the median or longer, so the mean is at least half of it.
    medians = [
        row("least", 10.0, 1.0, 0.0, medianMs=2.0),
        row("more", 10.0, 1.0, 0.0, medianMs=2.5),
    ]
    with open_report(write(path, medians)) as report:
        assert [layer.name for layer in report.layers] == ["least"]


def test_rows_that_are_there_twice_count_once_unless_they_took_no_time(tmp_path: Path) -> None:
    for one, count in (
        (row("both", 10.0, 1.0, 0.0), 1),
        ({"name": "mean", "averageMs": 1.0}, 1),
        ({"name": "total", "timeMs": 10.0}, 1),
        (row("nothing", 0.0, 0.0, 0.0), 2),
    ):
        path = write(tmp_path / "p.json", [row("other", 10.0, 1.0, 0.0), one, one])
        with open_report(path) as report:
            assert len(report.layers) == 1 + count, one
            texts = [note.text for note in report.notes]
        assert ("1 row is in the profile twice and counted once" in texts) == (count == 1), one


def test_a_count_below_none_is_none(tmp_path: Path) -> None:
    for count, told in ((-3, {}), (0, {"iterations": 0}), (4, {"iterations": 4})):
        path = write(tmp_path / "p.json", [row("a", 4.0, 1.0, 100.0)], count)
        with open_report(path) as report:
            assert report.environment == told


def test_nothing_sound_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "nan.json"
    path.write_text('[{"count":0},{"name":"a","timeMs":NaN,"averageMs":-1,"percentage":1e999}]')
    with pytest.raises(InputError, match="has no layer: 1 row without a valid time"):
        open_report(path)
    with pytest.raises(CancelledError):
        report_from_trtexec_profile(path, cancelled=lambda: True)


def test_real_files(real_files: Path) -> None:
    found = [
        *real_files.glob("engines/**/*.profile.json"),
        *real_files.glob("engines/trex/tests/inputs/*.engine.profile.???????.json"),
        *real_files.glob("engines/trex/notebooks/profile.json"),
    ]
    assert len(found) >= 10
    for path in found:
        rows = [entry for entry in json.loads(path.read_text()) if "name" in entry]
        with open_report(path) as report:
            assert [layer.name for layer in report.layers] == [entry["name"] for entry in rows]
            assert report.measurement.total_ms > 0
            assert not [note for note in report.notes if note.kind == "warning"]
