"""The gate as an activity: two versions or requirements, the form, the page of the verdict."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dld_tui.activities import gate
from dld_tui.activities.gate import Request, Result, run
from dld_tui.activities.registry import decode_result
from dld_tui.cli.jobs import gate as command
from dld_tui.core.codec import encode
from dld_tui.core.compare.gate import Outcome, Pair, RunFigures, Verdict, gate_result
from dld_tui.core.compare.requirements import (
    Figures,
    RequirementsResult,
    judge,
    parse_requirement,
)
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Finished
from dld_tui.core.params import (
    command_line,
    from_json,
    placeholder_text,
    settings_of,
    to_json,
)
from dld_tui.screens.results.table import of_gate
from tests.support import models
from tests.support.recorded import Recorded, table_text


def pairs(*ratios: float) -> list[Pair]:
    return [Pair(RunFigures(10.0), RunFigures(10.0 * ratio), ratio) for ratio in ratios]


def test_pairs_come_from_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Mapping[str, Any]]] = []

    def in_process(activity: str, settings: Mapping[str, Any], folder: Path, limit: float) -> Any:
        seen.append((activity, settings))
        yield from ()
        return Pair(RunFigures(10.0), RunFigures(12.0), 1.2)

    monkeypatch.setattr(gate, "run_in_process", in_process)
    request = Request(
        model=Path("a.onnx"), new=Path("b.onnx"), runs=6, tolerance_percent=5.0, threads=2
    )
    *progress, end = run(request)
    assert isinstance(end, Finished)
    result = end.result
    assert len(progress) == 6
    assert {activity for activity, _ in seen} == {"time_pair"}
    assert [settings["new_first"] for _, settings in seen] == [False, True] * 3
    assert {(settings["threads"], settings["duration"]) for _, settings in seen} == {(2, 1.0)}
    assert result.versions.verdict is Verdict.SLOWER
    assert result.versions.outcome is Outcome.FAIL
    assert decode_result("gate", json.loads(json.dumps(encode(result)))) == result


def test_a_model_meets_its_requirements_or_says_what_is_missing(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    size = path.stat().st_size
    request = Request(model=path, requirements=(f"size <= {size} B", f"size < {size} B"))
    end = list(run(request))[-1]
    assert isinstance(end, Finished)
    assert [one.outcome.value for one in end.result.required.judged] == ["PASS", "FAIL"]
    text = """<ir_version: 9, opset_import: ["" : 18]> m (float[4] x) => (float[1] y)
    <int64[1] i = {9}> { [pick] y = Gather(x, i) }"""
    broken = models.write(tmp_path, text, "broken.onnx")
    *_, last = run(Request(model=broken, requirements=("memory <= 1 GB",)))
    assert isinstance(last, Finished)
    (judged,) = last.result.required.judged
    assert judged.outcome is Outcome.UNDECIDED
    assert "pick" in judged.problem


def test_the_form_has_the_options_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {**to_json(Request(model=Path("a.onnx"))), "new": "b.onnx", "tolerance_percent": 2.0}
    line = command_line(["dld", "gate"], Request, values)
    assert line == "dld gate a.onnx b.onnx --tolerance 2.0"
    seen: list[Request] = []

    def compare(request: Request, *_: object) -> None:
        seen.append(request)
        raise UsageError("seen")

    monkeypatch.setattr(command, "compare_versions", compare)
    CliRunner().invoke(command.command, shlex.split(line)[2:], standalone_mode=False)
    assert seen == [from_json(Request, values)]


def test_what_applies_to_one_version_and_to_two(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    (tmp_path / "dld.toml").write_text(
        f'[requirements]\n"{path.name}" = ["size <= 1 MB", "p95 < 2 ms"]\n'
    )
    settings = {one.name: one for one in settings_of(Request)}
    both = {"model": str(path), "new": "new.onnx"}
    one, two = (
        {name for name, setting in settings.items()
         if setting.param.applies is None or setting.param.applies(values)}
        for values in (both | {"new": None}, both)
    )  # fmt: skip
    assert one - two == {"reference", "requirements"}
    assert two - one == {"runs", "tolerance_percent", "within"}
    texts = [placeholder_text(settings["requirements"], {"model": model})
             for model in (str(path), str(tmp_path / "other.onnx"))]  # fmt: skip
    assert texts == ["size <= 1 MB; p95 < 2 ms", "none in dld.toml beside it"]


def test_pages_of_verdicts(recorded: Recorded) -> None:
    texts = {"p95 <= 40 ms": (30.0,) * 8, "size <= 2 kB": (3000.0,), "snr >= 30 dB": ()}
    judged = [judge(parse_requirement(text), Figures(some)) for text, some in texts.items()]
    results = {
        "required": Result(required=RequirementsResult("m", tuple(judged))),
        **{
            title: Result(versions=gate_result("a.onnx", "x/b.onnx", pairs(*ratios)))
            for title, ratios in {"slower": [1.25] * 8, "same": [1.0] * 8, "undecided": [1.1] * 2,
                                  "not measured": []}.items()
        },
    }  # fmt: skip
    told = {}
    for title, result in results.items():
        page = of_gate(result, {"model": "/models/m.onnx"})
        lines = [page.tab_title, *page.result.summary, table_text(page.result.rows)]
        told[title] = "\n".join([*lines, page.shown_csv()[2]])
    recorded("gate_pages", told)
