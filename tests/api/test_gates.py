"""Gates from Python and in pipelines: the fixtures of pytest, the command, the action."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dld_tui.api import pytest_plugin, runs
from dld_tui.cli.jobs import gate as command
from dld_tui.core.compare.gate import Pair, RunFigures
from dld_tui.core.errors import UsageError

assert_not_slower = pytest_plugin.assert_not_slower
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What a run of each version takes, in place of running it."""
    told = {"base.onnx": 1.0, "new.onnx": 1.0}
    turn = count()

    def run(path: Path | None) -> RunFigures:
        ms, noise = told[str(path)], 1 + 0.001 * (next(turn) * 7 % 5)
        return RunFigures(ms * noise, {"conv": ms / 2 * noise, "relu": 0.1 * noise})

    def timed(request_of: Callable[[int], Any], target: str | None, number: int) -> Pair:
        request = request_of(number)
        assert request.new_first == (number % 2 == 1)
        base, new = run(request.model), run(request.new)
        return Pair(base, new, new.ms / base.ms)

    monkeypatch.setattr(runs, "_timed", timed)
    monkeypatch.setattr(command, "_timed", timed)
    return told


def test_the_fixture_fails_what_is_slower(
    times: dict[str, float], assert_not_slower: Callable[..., Any]
) -> None:
    assert assert_not_slower("base.onnx", "new.onnx").verdict == "no difference"
    times["new.onnx"] = 1.05
    assert assert_not_slower("base.onnx", "new.onnx", tolerance_percent=10).runs == 10
    assert assert_not_slower("base.onnx", "new.onnx", tolerance_percent=10, runs=7).runs == 7
    with pytest.raises(pytest.fail.Exception, match=r"slower: 1\.00.*\n  conv: \+[45]\."):
        assert_not_slower("base.onnx", "new.onnx")


def test_the_command_says_it_with_its_status(times: dict[str, float], tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        return CliRunner().invoke(
            command.command, ["base.onnx", "new.onnx", *words], standalone_mode=False
        )

    alike = run("--runs", "8")
    assert (alike.return_value, alike.stdout[:14]) == (0, "no difference:")
    times["new.onnx"] = 1.5
    page, xml = tmp_path / "g.md", tmp_path / "g.xml"
    found = run("--json", "--markdown", str(page), "--junit", str(xml))
    assert found.return_value == 1
    data = json.loads(found.stdout)
    assert (data["verdict"], data["ratio"]) == ("slower", pytest.approx(1.5, rel=0.01))
    assert data["interval"] == pytest.approx([1.5, 1.5], rel=0.02)
    assert data["end_to_end"]["change_percent"] == pytest.approx(100 * (data["ratio"] - 1))
    for row in data["nodes"]:
        assert (row["node"], row["ratio"]) == (row["key"], 1 + row["change_percent"] / 100)
    assert page.read_text().startswith("### dld gate: slower")
    assert 'failures="1"' in xml.read_text()
    assert run("--tolerance", "60").return_value == 0
    assert run("--slower", "60%", "--budget", "9s").return_value == 0
    assert isinstance(run("--markdown", str(page)).exception, UsageError), "the file is there"
    assert isinstance(run("--commands", "--threads", "2").exception, UsageError)


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


def test_the_package_brings_the_fixtures() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ndld = "dld_tui.api.pytest_plugin"\n' in text
