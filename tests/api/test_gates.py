"""Gates from Python and in pipelines: the fixtures of pytest, the command, the action."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner

from dld_tui.api import gate, pytest_plugin
from dld_tui.cli.jobs import gate as command
from dld_tui.core.codec import encode
from dld_tui.core.compare import gate as comparison
from dld_tui.core.compare.gate import Pair, RunFigures, gate_result
from dld_tui.core.errors import CancelledError, DldError, TimeLimitError, UsageError
from dld_tui.core.events import Event, Finished
from dld_tui.core.types import JSON
from dld_tui.targets.process import LocalTarget, ProcessJob

assert_not_slower = pytest_plugin.assert_not_slower
assert_same_results = pytest_plugin.assert_same_results
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, float]]:
    """What a run of each version takes, in place of running it."""
    told = {"base.onnx": 1.0, "new.onnx": 1.0}
    turn = count()

    def run(path: str) -> RunFigures:
        ms, noise = told[path], 1 + 0.001 * (next(turn) * 7 % 5)
        return RunFigures(ms * noise, {"conv": ms / 2 * noise, "relu": 0.1 * noise})

    def result_of(
        activity_id: str,
        request: dict[str, Any],
        kind: type[Pair],
        limit_s: float,
        *,
        target: str | None,
    ) -> Pair:
        assert (activity_id, kind) == ("time_pair", Pair)
        firsts.append(request["new_first"])
        base, new = run(request["model"]), run(request["new"])
        return Pair(base, new, new.ms / base.ms)

    firsts: list[bool] = []
    monkeypatch.setattr("dld_tui.targets.registry.result_of", result_of)
    yield told
    assert firsts.count(True) <= firsts.count(False)


def test_the_fixture_fails_what_is_slower(
    times: dict[str, float], assert_not_slower: Callable[..., Any]
) -> None:
    assert assert_not_slower("base.onnx", "new.onnx").verdict == "no difference"
    times["new.onnx"] = 1.05
    assert assert_not_slower("base.onnx", "new.onnx", tolerance_percent=10).runs == 10
    assert assert_not_slower("base.onnx", "new.onnx", tolerance_percent=10, runs=7).runs == 7
    with pytest.raises(pytest.fail.Exception, match=r"slower: 1\.00.*\n  conv: \+[45]\.") as caught:
        assert_not_slower("base.onnx", "new.onnx")
    assert all(one.ishidden(caught) for one in caught.traceback[1:])


def called(*words: object) -> Any:
    """Run the command as a test can look at it."""
    return CliRunner().invoke(command.command, [*map(str, words)], standalone_mode=False)


PAIR = ("base.onnx", "new.onnx")


def test_the_command_says_it_with_its_status(times: dict[str, float], tmp_path: Path) -> None:
    alike = called(*PAIR, "--runs", "8")
    assert (alike.return_value, alike.stdout[:14]) == (0, "no difference:")
    times["new.onnx"] = 1.5
    page, xml = tmp_path / "g.md", tmp_path / "g.xml"
    found = called(*PAIR, "--json", "--markdown", page, "--junit", xml)
    assert found.return_value == 1
    data = json.loads(found.stdout)
    assert (data["verdict"], data["ratio"]) == ("slower", pytest.approx(1.5, rel=0.01))
    assert data["interval"] == pytest.approx([1.5, 1.5], rel=0.02)
    assert data["end_to_end"]["change_percent"] == pytest.approx(100 * (data["ratio"] - 1))
    for row in data["nodes"]:
        assert (row["node"], row["ratio"]) == (row["key"], 1 + row["change_percent"] / 100)
    assert page.read_text().startswith("### dld gate: slower")
    assert 'failures="1"' in xml.read_text()
    assert called(*PAIR, "--tolerance", "60").return_value == 0
    assert called(*PAIR, "--slower", "60%", "--budget", "9s").return_value == 0
    for words in (["--markdown", page], ["--commands", "--threads", "2"]):  # it is there
        assert isinstance(called(*PAIR, *words).exception, UsageError)


def test_of_many_nodes_the_rest_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    base, new = ({f"n{at}": ms for at in range(22)} for ms in (1.0, 2.0))
    pairs = [Pair(RunFigures(22.0, base), RunFigures(44.0, new), 2.0)] * 6
    command._print(gate_result("a", "b", pairs))
    *rows, last = capsys.readouterr().out.splitlines()
    assert sum(row.startswith("n") and "slower" in row for row in rows) == 20
    assert last == "and 2 more nodes that changed; --json has all"


def test_a_gate_without_time_for_six_pairs_is_undecided_and_no_pass(
    times: dict[str, float],
    assert_not_slower: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    limits: list[float] = []

    def result_of(*arguments: Any, **_: Any) -> Pair:
        limits.append(arguments[-1])
        raise TimeLimitError("stopped after 25.0 s at “base: Loading the model”")

    monkeypatch.setattr("dld_tui.targets.registry.result_of", result_of)
    page, xml = tmp_path / "g.md", tmp_path / "g.xml"
    words = ("--limit", "25", "--json", "--markdown", page, "--junit", xml)
    found = called(*PAIR, *words)
    assert (found.return_value, limits) == (5, [25.0])
    data = json.loads(found.stdout)
    assert (data["verdict"], data["end_to_end"], data["ratio"]) == ("undecided", None, None)
    assert "0 of at least 6 pairs" in data["stopped"]
    assert "Loading the model" in data["stopped"]
    assert page.read_text().startswith("### dld gate: undecided")
    assert 'errors="1"' in xml.read_text()
    with pytest.raises(pytest.fail.Exception, match="undecided: 0 of at least 6"):
        assert_not_slower("base.onnx", "new.onnx", limit_s=25)


def test_no_verdict_takes_the_place_of_a_model_or_of_the_other_verdict(
    times: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base.onnx").write_bytes(b"model")
    for words in (["--markdown", "base.onnx"], ["--markdown", "v", "--junit", "./v"],
                  ["--junit", "."], ["--junit", "none/v"]):  # fmt: skip
        assert isinstance(called(*PAIR, "--force", *words).exception, DldError), words
    assert [path.name for path in tmp_path.iterdir()] == ["base.onnx"]
    assert Path("base.onnx").read_bytes() == b"model"


def test_ctrl_c_ends_a_gate_though_the_present_pair_has_a_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late(ProcessJob):
        """Ctrl+C comes when the pair is done, and before that was read."""

        def __init__(self) -> None:
            self.turns = 0

        def events(self) -> Iterator[Event]:
            self.turns += 1
            if self.turns == 1:
                raise KeyboardInterrupt
            yield Finished(encode(Pair(RunFigures(1.0), RunFigures(1.0), 1.0)))

        def cancel(self) -> None:
            """It is over."""

        def close(self) -> None:
            """It is over."""

    class Here(LocalTarget):
        def start(self, activity_id: str, request: Mapping[str, JSON]) -> ProcessJob:
            return Late()

    monkeypatch.setattr("dld_tui.targets.registry.LocalTarget", Here)
    found = called(*PAIR)
    assert isinstance(found.exception, CancelledError)
    assert "cancelled: gate after 0 pairs of runs" in str(found.exception)


def test_what_the_interval_hardly_tells_apart_is_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def exact(*args: object, **_: object) -> Pair:
        return Pair(RunFigures(1.0), RunFigures(1.003), 1.003)

    monkeypatch.setattr("dld_tui.targets.registry.result_of", exact)
    assert [called(*PAIR, *more).return_value for more in ([], ["--tolerance", "0"])] == [0, 1]
    assert not gate(*PAIR).is_regression
    assert gate(*PAIR, tolerance_percent=0.0).is_regression


@pytest.mark.parametrize(
    "wrong",
    [
        {"tolerance_percent": "1"}, {"tolerance_percent": -1.0}, {"tolerance_percent": math.nan},
        {"runs": "six"}, {"runs": True}, {"limit_s": math.nan}, {"within_percent": None},
        {"theads": 2}, {"new_settings": {"model": "x"}}, {"threads": "two"},
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_before_anything_is_measured(wrong: dict[str, Any]) -> None:
    with pytest.raises((UsageError, TypeError)):
        gate("base.onnx", "new.onnx", **wrong)


def test_commands_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    took, told = {"true": 3.0, "sleep 0.03": 33.0}, list[tuple[int, int]]()
    monkeypatch.setattr(comparison, "time_command", lambda line, _: RunFigures(took[line]))
    progress: Any = lambda *counted: told.append(counted)  # noqa: E731
    result = gate("true", "sleep 0.03", commands=True, runs=7, progress=progress)
    assert (result.runs, {*result.ratios}, result.is_regression) == (7, {11.0}, True)
    assert told[-1] == (7, 7)


def test_a_single_text_stands_for_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[Any] = []

    def result_of(activity_id: str, request: dict[str, Any], *_: object, **more: object) -> Pair:
        shapes.append((request["shape"], request["new_settings"]["dim"]))
        return Pair(RunFigures(1.0), RunFigures(1.0), 1.0)

    monkeypatch.setattr("dld_tui.targets.registry.result_of", result_of)
    gate("a.onnx", "b.onnx", runs=6, shape="x:4", new_settings={"dim": "N=4"})
    assert shapes == [(["x:4"], ["N=4"])] * 6


def test_results_that_differ_fail_with_the_output(
    tmp_path: Path, assert_same_results: Callable[..., Any]
) -> None:
    paths = []
    for name, operator in (("a", "Neg"), ("b", "Abs")):
        paths.append(tmp_path / f"{name}.onnx")
        text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[4] x) => (float[4] y) {{ y = {operator} (x) }}"""
        onnx.save(onnx.parser.parse_model(text), paths[-1])
    assert assert_same_results(paths[0], paths[0], tolerance="cosine=0.9").is_good
    with pytest.raises(pytest.fail.Exception, match=r"results differ\n  y: ") as caught:
        assert_same_results(*paths, atol=1e-3)
    assert all(one.ishidden(caught) for one in caught.traceback[1:])
    with pytest.raises(TypeError, match="no argument 'tol'"):
        assert_same_results(*paths, tol=1e-3)


def test_settings_of_one_version_are_those_of_a_profile() -> None:
    parsed = command._parsed(["threads=2", "--dim=N=4", "dim=S=8", "provider=CUDA"])
    assert parsed == {"threads": 2, "dim": ("N=4", "S=8"), "provider": "CUDA"}
    for wrong in ("threads", "model=x", "nothing=1", "threads=many"):
        with pytest.raises(UsageError):
            command._parsed([wrong])


def test_the_action_uses_options_that_there_are() -> None:
    text = (ROOT / "action.yml").read_text()
    call = text[text.index("dld gate --tolerance") : text.index('-- "$BASE"')]
    known = {opt for one in command.command.params for opt in one.opts}
    assert set(re.findall(r"--[a-z]+", call)) <= known
    assert "${{" not in text[text.index("      run: |") :], "inputs are no part of a script"


def _action(folder: Path, arguments: str, verdict: str, **inputs: str) -> tuple[int, list[str]]:
    """Run the last step of the action with a stand-in for dld; return its status and its words."""
    text = (ROOT / "action.yml").read_text()
    script = text[text.index("        folder=$(mktemp") :].replace("\n        ", "\n")
    stub = folder / "bin" / "dld"
    stub.parent.mkdir(exist_ok=True)
    lines = ["#!/bin/bash", f"printf '%s\\0' \"$@\" > '{folder}/words'",
             'while [ "$1" != --markdown ]; do shift; done', verdict]  # fmt: skip
    stub.write_text("\n".join(lines))
    stub.chmod(0o755)
    (folder / "shlex.py").write_text("raise SystemExit('of the checkout')")
    settings = {"BASE": "a b.onnx", "NEW": "-n.onnx", "RUNS": "", "TOLERANCE": "", "JUNIT": "",
                **inputs, "ARGUMENTS": arguments}  # fmt: skip
    path = f"{stub.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    outputs = {f"GITHUB_{name}": str(folder / name) for name in ("STEP_SUMMARY", "OUTPUT")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=folder,
        env={"PATH": path, "TMPDIR": str(folder), **settings, **outputs}, check=False,
    )  # fmt: skip
    words = folder / "words"
    return done.returncode, words.read_text().split("\0")[:-1] if words.exists() else []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", []),
        ("--shape x:1x3 --threads 2", ["--shape", "x:1x3", "--threads", "2"]),
        ("--threads 2\n  --seed 3\n", ["--threads", "2", "--seed", "3"]),
        ("--inputs 'my data' --dim \"N=4\" ''", ["--inputs", "my data", "--dim", "N=4", ""]),
        ("$(touch hacked) `touch hacked` * ; $HOME",
         ["$(touch", "hacked)", "`touch", "hacked`", "*", ";", "$HOME"]),
    ],
)  # fmt: skip
def test_the_action_passes_arguments_as_a_shell_would_quote_them(
    arguments: str, words: list[str], tmp_path: Path
) -> None:
    verdict = 'echo "### dld gate: no difference" > "$2"; echo text >> "$2"'
    status, seen = _action(tmp_path, arguments, verdict, RUNS="8", JUNIT="my file.xml")
    assert status == 0
    at = seen.index("--force")
    assert seen[:at] == ["gate", "--tolerance", "1", *words, "--runs", "8", "--junit",
                         "my file.xml"]  # fmt: skip
    assert (seen[at + 1], seen[at + 3 :]) == ("--markdown", ["--", "a b.onnx", "-n.onnx"])
    assert (tmp_path / "OUTPUT").read_text() == "verdict=no difference\n"
    assert (tmp_path / "STEP_SUMMARY").read_text() == "### dld gate: no difference\ntext\n"
    assert {path.name for path in tmp_path.iterdir()} == {
        "bin", "shlex.py", "words", "OUTPUT", "STEP_SUMMARY",
    }  # fmt: skip


def test_the_action_fails_as_the_gate_does(tmp_path: Path) -> None:
    slower = 'echo "### dld gate: slower" > "$2"; exit 1'
    status, words = _action(tmp_path, "", slower, TOLERANCE="3")
    assert (status, words[:3]) == (1, ["gate", "--tolerance", "3"])
    assert (tmp_path / "OUTPUT").read_text() == "verdict=slower\n"
    assert _action(tmp_path, "", "exit 3")[0] == 3
    assert (tmp_path / "OUTPUT").read_text() == "verdict=slower\nverdict=\n"
    summary = (tmp_path / "STEP_SUMMARY").read_text()
    assert summary.endswith("### dld gate: no verdict, exit status 3\n")
    (tmp_path / "words").unlink()
    assert _action(tmp_path, "--inputs 'my", "exit 0") == (2, [])


def test_the_package_brings_the_fixtures() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ndld = "dld_tui.api.pytest_plugin"\n' in text
