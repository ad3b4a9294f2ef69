from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.report.formats.trtexec_files import report_from_trtexec_times
from dld_tui.core.report.report import open_report


def inference(
    start: float, h2d: float, compute: float, d2h: float, enqueue: float = 0.1
) -> dict[str, Any]:
    marks = [start, start + h2d, start + h2d + compute, start + h2d + compute + d2h]
    return {
        "startEnqMs": start, "endEnqMs": start + enqueue,
        "startH2dMs": marks[0], "endH2dMs": marks[1],
        "startComputeMs": marks[1], "endComputeMs": marks[2],
        "startD2hMs": marks[2], "endD2hMs": marks[3],
        "h2dMs": h2d, "computeMs": compute, "d2hMs": d2h, "latencyMs": h2d + compute + d2h,
    }  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("[\n  " + "\n, ".join(json.dumps(row) for row in rows) + "\n]\n")
    return path


def test_inferences_are_latencies_and_passes(tmp_path: Path) -> None:
    rows = [inference(10.0 * n, 0.5, 2.0 + n / 8, 0.25) for n in range(5)]
    path = write(tmp_path / "net.engine.timing.json", rows)
    with open_report(path) as report:
        assert (report.network, report.backend) == ("net", "TensorRT (trtexec)")
        assert report.latencies == tuple(row["latencyMs"] for row in rows)
        assert report.latency is not None
        assert report.latency.median == 3.0
        assert {layer.name: layer.time_ms for layer in report.layers} == {
            "host to device copy": 0.5, "GPU compute": 2.0625, "device to host copy": 0.25,
        }  # fmt: skip
        events = report.pass_events(3)
        assert [round(event.start_us) for event in events] == [0, 500, 2875]
        assert len({event.track for event in events}) == 3
        texts = [note.text for note in report.notes]
        assert "enqueueing takes 0.100 ms (median), the GPU 2.250 ms" in texts


def test_versions_without_some_columns(tmp_path: Path) -> None:
    rows = [{"startComputeMs": 1.0, "endComputeMs": 3.5}, {"startComputeMs": 4.0, "computeMs": 2.5}]
    with open_report(write(tmp_path / "t.json", rows)) as report:
        assert report.latencies == (2.5, 2.5)
    # Durations alone say nothing of a warm-up, and may well be alike.
    rows = [{"computeMs": 2.0, "latencyMs": 2.5, "h2dMs": 0.5}] * 3
    with open_report(write(tmp_path / "t.json", rows)) as report:
        assert report.latencies == (2.5,) * 3
        assert [note.text for note in report.notes if note.kind == "warning"] == []


def test_a_latency_is_of_the_phases_or_from_the_first_to_the_last(tmp_path: Path) -> None:
    base = inference(300.0, 0.5, 2.0, 0.5)
    late = base | {"startD2hMs": 303.5, "endD2hMs": 304.0}
    found = []
    for row in (base, late, late | {"latencyMs": 4.0}, late | {"latencyMs": 3.5}):
        path = write(tmp_path / "t.json", [inference(290.0, 0.5, 1.0, 0.5), row])
        with open_report(path) as report:
            found.append(report.latencies[1:])
    assert found == [(3.0,), (3.0,), (4.0,), ()]


def test_unsound_times_are_left_out_and_counted(tmp_path: Path) -> None:
    good = inference(0.0, 0.1, 1.0, 0.1)
    backwards = {"startComputeMs": 9.0, "endComputeMs": 8.0}
    rows = [good, {**good, "computeMs": -1.0, "endComputeMs": 0.0}, {**good, "startComputeMs": "x"},
            backwards]  # fmt: skip
    path = write(tmp_path / "t.json", rows)
    path.write_text(path.read_text()[:-3] + ', {"computeMs": Infinity}\n')
    with open_report(path) as report:
        assert len(report.latencies) == 1
        warnings = {note.text for note in report.notes if note.kind == "warning"}
    assert warnings == {
        "the list ends early: it was cut",
        "4 inferences without valid times left out",
    }


def test_inferences_that_are_repeated_or_no_numbers(tmp_path: Path) -> None:
    rows = [inference(500.0 + 2 * n, 0.25, 1.0, 0.25) for n in range(6)]
    path = write(tmp_path / "t.json", [*rows, *rows])
    with open_report(path) as report:
        assert len(report.latencies) == 6
        assert [note.text for note in report.notes if note.kind == "warning"] == [
            "6 inferences are in the file twice and counted once"
        ]
        # Six in the 11.5 ms from the start of the first to the end of the last.
        assert report.properties["throughput_per_s"] == pytest.approx(6 / 0.0115)
        assert not any("warm-up" in note.text for note in report.notes)
    rows[2]["computeMs"] = rows[4]["latencyMs"] = float("nan")
    path.write_text(json.dumps(rows))  # in one line
    with open_report(path) as report:
        assert len(report.latencies) == 4
        assert "throughput_per_s" not in report.properties  # of what was left out nothing is known
        assert [note.text for note in report.notes if note.kind == "warning"] == [
            "2 inferences without valid times left out"
        ]


def test_the_warm_up_is_left_out_as_trtexec_does(tmp_path: Path) -> None:
    rows = [inference(2.5 + 100 * n, 0.0, 9.0 - n, 0.0) for n in range(4)]
    path = write(tmp_path / "net.timing.json", rows)
    with open_report(path) as report:
        assert report.latencies == (7.0, 6.0)
        assert report.notes[-1].text == (
            "2 inferences of the warm-up (200 ms, the default) left out, as in trtexec's own"
            " summary"
        )
    beside = {"inference_options": {"Duration": "3s (+ 250ms warm up)"}}
    (tmp_path / "net.profile.metadata.json").write_text(json.dumps(beside))
    with open_report(path) as report:
        assert report.latencies == (6.0,)
        assert "3 inferences of the warm-up (250 ms) left out" in report.notes[-1].text
    (tmp_path / "net.profile.metadata.json").write_text("{")
    with open_report(write(path, rows[:1])) as report:
        assert report.latencies == (9.0,)
        assert "all inferences are within the warm-up" in report.notes[-1].text


def test_of_several_runs_in_one_file_the_last_whole_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    runs = ["[" + json.dumps(inference(500, 0, took, 0)) + "]" for took in (1.0, 2.0, 3.0)]
    path.write_text("\n".join(runs))
    with open_report(path) as report:
        assert report.latencies == (3.0,)
        assert "the timing file is of 3 runs: the last is shown" in {n.text for n in report.notes}
    path.write_text("".join([*runs[:2], "[]", runs[2][:60]]))
    with open_report(path) as report:
        assert report.latencies == (2.0,)
        texts = {note.text for note in report.notes}
    assert "the timing file is of 2 runs: the last is shown" in texts


def test_nothing_sound_is_one_clear_line(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", [{"startComputeMs": -1, "computeMs": 1}])
    with pytest.raises(InputError, match="no inference has valid times"):
        open_report(path)
    with pytest.raises(CancelledError):
        report_from_trtexec_times(path, cancelled=lambda: True)


@pytest.mark.broad
def test_real_files(real_files: Path) -> None:
    found = sorted(real_files.glob("engines/trex/examples/**/*.timing.json"))
    assert found
    for path in found[::3]:
        rows = json.loads(path.read_text())
        with open_report(path) as report:
            counted = [row["latencyMs"] for row in rows if row["startComputeMs"] >= 200]
            assert list(report.latencies) == pytest.approx(counted)
            assert report.layers[0].name == "GPU compute"
