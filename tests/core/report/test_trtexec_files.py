"""Layer times and inference times of trtexec as reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.codec import encode
from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.report.formats.trtexec_files import (
    report_from_trtexec_profile,
    report_from_trtexec_times,
    warm_up_ms,
)
from dld_tui.core.report.report import open_report
from tests.support.recorded import Recorded, fields_of, settled

NAN = float("nan")


def row(name: Any, total: Any, average: Any, percent: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "timeMs": total, "averageMs": average, **more, "percentage": percent}


ROWS = [
    row("Conv_0 + Relu_1", 30.0, 3.0, 60.0, medianMs=2.5),
    row("Reformatting CopyNode", 0.0, 0.0, 0.0, medianMs=0.0),
    row("Conv_0 + Relu_1", 20.0, 2.0, 40.0, medianMs=1.5),
]
COUNT = {"count": 10}


def inference(start: float, h2d: float, compute: float, d2h: float, enqueue: float = 0.1) -> Any:
    marks = [start, start + h2d, start + h2d + compute, start + h2d + compute + d2h]
    return {
        "startEnqMs": start, "endEnqMs": start + enqueue,
        "startH2dMs": marks[0], "endH2dMs": marks[1],
        "startComputeMs": marks[1], "endComputeMs": marks[2],
        "startD2hMs": marks[2], "endD2hMs": marks[3],
        "h2dMs": h2d, "computeMs": compute, "d2hMs": d2h, "latencyMs": h2d + compute + d2h,
    }  # fmt: skip


def lines(rows: list[Any]) -> str:
    """Return rows the way trtexec writes them."""
    return "[\n  " + "\n, ".join(map(json.dumps, rows)) + "\n]\n"


CUT = '[{"count": 3}, {"name": "cut"'
WRONG = [row("negative", -1.0, -1.0, 0.0), row("contradicts", 1.0, 9.0, 0.0)]
TWICE = [row("both", 10.0, 1.0, 0.0), {"name": "mean", "averageMs": 1.0},
         {"name": "total", "timeMs": 10.0}, row("nothing", 0.0, 0.0, 0.0)]  # fmt: skip
LAYERS: dict[str, str] = {
    "plain": lines([COUNT, *ROWS]),
    "two runs": lines([COUNT, *ROWS]) + lines([COUNT, row("other", 10.0, 1.0, 100.0)]),
    "a run that was cut": lines([COUNT, *ROWS]) + CUT,
    "two runs and one that was cut": lines([COUNT, *ROWS]) + lines([COUNT, TWICE[0]]) + CUT,
    # In one list, each run begins with its count.
    "runs in one list": lines([
        COUNT, *ROWS, *WRONG, *ROWS[1:], {"count": 7}, row("new", 7.0, 1.0, 100.0),
    ]),
    "unsound": lines([
        COUNT, *ROWS, WRONG[0], row("huge", 1e300, 1.0, 0.0), {"name": "none"},
        {"timeMs": 1, "averageMs": 1}, row("text", 1.0, "1", 0.0), row("", 1.0, 0.1, 0.0),
        row(3, 1.0, 0.1, 0.0), {"name": "n", "averageMs": NAN}, {"count": "x"}, {"count": 2.5},
    ]),
    "one is unsound": lines([COUNT, *ROWS, WRONG[0]]),
    # Half of the passes take the median or longer, so the mean is at least half of it.
    "medians": lines([COUNT, row("least", 10.0, 1.0, 0.0, medianMs=2.0),
                      row("more", 10.0, 1.0, 0.0, medianMs=2.5)]),
    "means and totals": lines([COUNT, row("near", 10.4, 1.0, 0.0), row("far", 10.6, 1.0, 0.0),
                               row("small", 0.01, 0.0015, 0.0), row("both", 0.01, 0.0025, 0.0)]),
    "twice": lines([COUNT, *TWICE, *TWICE]),
    "no count": lines([row("a", 4.0, 1.0, 100.0), {"name": "total", "timeMs": 4.0}]),
    **{f"a count of {count}": lines([{"count": count}, row("a", 4.0, 1.0, 100.0)])
       for count in (-3, 0, 4)},
    "names": lines([COUNT, *(row(name, 10.0, 1.0, 0.0) for name in (
        "{ForeignNode[a...b]}", "__myl_Relu_0", "[DlaLayer] {ForeignNode[a]}", "\x1b[31m",
    ))]),
    "no layer": '[{"count":0},{"name":"a","timeMs":NaN,"averageMs":-1,"percentage":1e999}]',
    "no rows": lines([COUNT]),
}  # fmt: skip
BASE = inference(300.0, 0.5, 2.0, 0.5)
LATE = BASE | {"startD2hMs": 303.5, "endD2hMs": 304.0}
LONG = [inference(500.0 + 2 * n, 0.25, 1.0, 0.25) for n in range(6)]
LESS = ("startH2dMs", "endH2dMs", "h2dMs", "startD2hMs", "endD2hMs", "d2hMs")
TIMES: dict[str, str] = {
    "plain": lines([inference(10.0 * n, 0.5, 2.0 + n / 8, 0.25) for n in range(5)]),
    "without copies": lines([{k: v for k, v in one.items() if k not in LESS} | {
        "latencyMs": 1.0} for one in LONG]),
    "with one copy": lines([{k: v for k, v in one.items() if k not in LESS[3:]} | {
        "latencyMs": 1.25} for one in LONG]),
    "compute alone": lines([{"startComputeMs": 1.0, "endComputeMs": 3.5},
                            {"startComputeMs": 4.0, "computeMs": 2.5}]),
    # Durations alone say nothing of a warm-up, and may well be alike.
    "durations": lines([{"computeMs": 2.0, "latencyMs": 2.5, "h2dMs": 0.5}] * 3),
    "no compute": lines([BASE, {"h2dMs": 1.0, "latencyMs": 1.0}]),
    "latencies": lines([
        inference(290.0, 0.5, 1.0, 0.5), BASE, LATE | {"startH2dMs": 299.0, "endH2dMs": 299.5},
        LATE | {"latencyMs": 4.0, "startComputeMs": 300.6, "endComputeMs": 302.6},
        LATE | {"latencyMs": 3.5}, {k: v for k, v in LATE.items() if k != "latencyMs"},
    ]),
    "unsound": lines([
        inference(0.0, 0.1, 1.0, 0.1), BASE | {"computeMs": -1.0, "endComputeMs": 0.0},
        BASE | {"startComputeMs": "x"}, {"startComputeMs": 9.0, "endComputeMs": 8.0},
        BASE | {"computeMs": 2.5}, BASE | {"endEnqMs": 299.0},
    ])[:-3] + ', {"computeMs": Infinity}\n',
    "twice": lines([*LONG, *LONG[:3], LONG[0]]),
    "one twice": lines([*LONG, LONG[3]]),
    "no numbers": json.dumps([LONG[0] | {"computeMs": NAN}, LONG[1] | {"latencyMs": NAN}, LONG[2]]),
    "launch-bound": lines([inference(500.0 + 9 * n, 0.0, 1.0, 0.0, 3.0 + n / 8) for n in range(3)]),
    "begins with the run": lines([inference(99.0 + 51 * n, 0.0, 9.0 - n, 0.0) for n in range(4)]),
    "begins behind it": lines([inference(100.0 + 51 * n, 0.0, 9.0 - n, 0.0) for n in range(4)]),
    "all of the warm-up": lines([inference(2.5, 0.0, 9.0, 0.0)]),
    "three runs": "\n".join(lines([inference(500, 0, took, 0)]) for took in (1.0, 2.0, 3.0)),
    "a run that was cut": "".join([
        lines([inference(500, 0, 1.0, 0)]), lines([inference(500, 0, 2.0, 0)]), "[]",
        lines([inference(500, 0, 3.0, 0)])[:60],
    ]),
    "no valid times": lines([{"startComputeMs": -1, "computeMs": 1}]),
}  # fmt: skip


def told(path: Path) -> str:
    try:
        report = open_report(path)
    except InputError as error:
        return settled(str(error), path.parent)
    with report:
        found = [f"{report.network} {report.backend} {report.environment}"]
        found += [f"{note.kind.value}: {note.text}" for note in report.notes]
        found.append(f"{report.latencies} {encode(report.latency)}")
        found.append(f"throughput {report.properties.get('throughput_per_s')}")
        for one in report.layers:
            times = (one.time_ms, one.mean_ms, one.min_ms, one.max_ms, one.percent)
            engine = fields_of(one.engine) if one.engine else ""
            found.append(f"{one.name} {one.type} {times} {engine}".rstrip())
        found += map(str, report.tracks)
        for one_pass in report.passes:
            found.append(f"pass {one_pass.index} {one_pass.start_us} {one_pass.duration_us}")
            found += [f"  {event}" for event in report.pass_events(one_pass.index)]
    return settled("\n".join(found), path.parent)


def test_layer_times(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for title, text in LAYERS.items():
        path = tmp_path / "net.engine.profile.json"
        path.write_text(text)
        texts[title] = told(path)
    recorded("whole_layer_times", texts)


def test_inference_times(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    path, beside = tmp_path / "net.engine.timing.json", "net.engine.profile.metadata.json"
    for title, text in TIMES.items():
        path.write_text(text)
        texts[title] = told(path)
    path.write_text(lines([inference(2.5 + 100 * n, 0.0, 9.0 - n, 0.0) for n in range(4)]))
    for data in ({"inference_options": {"Duration": "3s (+ 250ms warm up)"}}, "{", [1]):
        (tmp_path / beside).write_text(data if isinstance(data, str) else json.dumps(data))
        texts[f"beside {data}"] = told(path)
    recorded("whole_inference_times", texts)


def test_lengths_of_the_warm_up() -> None:
    said = ("3s (+ 200ms warm up)", "3s (+0.5 ms warm up)", "3s", "", "3s (+ 1.2.3ms warm up)", 3)
    found = [warm_up_ms({"inference_options": {"Duration": text}}) for text in said]
    assert found == [200.0, 0.5, 0.0, None, None, None]
    assert warm_up_ms({"inference_options": "3s"}) is warm_up_ms({}) is None


def test_cancel(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(LAYERS["plain"])
    for read in (report_from_trtexec_profile, report_from_trtexec_times):
        with pytest.raises(CancelledError):
            read(path, cancelled=lambda: True)
