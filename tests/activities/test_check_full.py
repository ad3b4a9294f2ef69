from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.check import full as check_full
from dld_tui.activities.check.full import Request, run
from dld_tui.backends import model_checkers
from dld_tui.backends.processes import ToolEnd
from dld_tui.core.codec import encode
from dld_tui.core.errors import InputError
from dld_tui.core.process.installation import install_command
from tests.support import models
from tests.support.activities import finished


def check(path: Path, **settings: Any) -> list[dict[str, Any]]:
    result: Any = json.loads(json.dumps(encode(finished(run(Request(path, **settings))))))
    assert list(path.parent.glob(".dld-view*")) == []
    return [
        {**one["remark"], "level": one["level"], "rule": one["rule"]} for one in result["findings"]
    ]


def test_polygraphy_runs_the_nodes_and_its_repeats_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("polygraphy")
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 3] x) => (float[2, 3] y)
        { dead = Neg(x) [bad] y = Reluu(x) }"""
    findings = check(models.write(tmp_path, text), polygraphy=True)

    rules = [(f["rule"], f["index"], f["level"]) for f in findings]
    assert ("onnx:checker", 1, "error") in rules
    assert ("polygraphy:onnx_graphsurgeon", 0, "warning") in rules
    messages = [finding["message"] for finding in findings]
    assert len(set(messages)) == len(messages)


def test_without_polygraphy_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_checkers, "missing_for_lint", lambda: ["polygraphy"])
    (finding,) = check(models.write(tmp_path, models.CHAIN), polygraphy=True)

    assert finding["level"] == "info"
    assert finding["rule"] == "polygraphy:missing"
    assert finding["message"] == f"polygraphy not installed: {install_command('polygraphy')}"


@pytest.mark.parametrize(
    ("end", "rule", "message"),
    [
        (ToolEnd(-15, 3.0, True, ""), "time-limit", "stopped after 3 s"),
        (ToolEnd(-11, 1.0, False, ""), "crash", "the check crashed (SIGSEGV)"),
        (
            ToolEnd(1, 1.0, False, "Trace\nValueError: \x1b no\n[E] FAILED | Runtime: 1s\n"),
            "failed",
            "the check failed: ValueError: \\x1b no",
        ),
        (ToolEnd(1, 1.0, False, ""), "failed", "the check failed: without a word"),
    ],
)
def test_checks_that_do_not_end_well(end: ToolEnd, rule: str, message: str) -> None:
    (finding,) = check_full._failure_findings("onnx", end, 3.0)
    assert (finding.rule, finding.remark.message) == (f"onnx:{rule}", message)


def test_the_time_limit_ends_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow_tool.py"
    slow.write_text("import time\ndef check_with_onnx():\n    time.sleep(600)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("dld_tui.backends.model_checkers.__name__", "slow_tool")

    (finding,) = check(models.write(tmp_path, models.CHAIN), time_limit=0.3)
    assert finding["rule"] == "onnx:time-limit"


def test_what_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(os.urandom(40))
    with pytest.raises(InputError):
        check(path)
    with pytest.raises(InputError):
        check(path, view=True)
