"""What ``dld.toml`` beside a model requires, and the verdicts that are remembered."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dld_tui.core.compare.gate import Outcome
from dld_tui.core.compare.requirement_files import (
    keep_verdict,
    kept_requirements,
    requirement_states,
)
from dld_tui.core.compare.requirements import Judged, RequirementsResult
from dld_tui.core.errors import InputError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"a model")
    return path


def require(model: Path, text: str) -> None:
    model.with_name("dld.toml").write_text(text)


@pytest.mark.parametrize(
    "text",
    ["requirements = 3", '[requirements]\n"m.onnx" = "size <= 1 kB"',
     '[requirements]\n"m.onnx" = ["size <= 1 kB", 3]', '[requirements."m.onnx"]\nrequired = []',
     '[requirements."m.onnx"]\nrequire = []\nreference = 3', "x = ["],
)  # fmt: skip
def test_another_form_is_refused_with_the_file(model: Path, text: str) -> None:
    require(model, text)
    with pytest.raises(InputError) as error:
        kept_requirements(model)
    assert error.value.where == str(model.with_name("dld.toml"))


def test_verdicts_are_remembered_until_the_model_changes(model: Path) -> None:
    require(model, '[requirements]\n"m.onnx" = ["size  <= 1 kB", "fps >= 9", "nodes < 2"]')
    assert [one.text for one in requirement_states(model)] == ["not checked"] * 3
    judged = [Judged("size <= 1 kB", Outcome.PASS, "size", 7.0, shown="7 B"),
              Judged("fps >= 9", Outcome.UNDECIDED, "fps", problem="\x1b[31m no run")]  # fmt: skip
    for one in judged:  # each by a gate of its own
        keep_verdict(model, RequirementsResult(str(model), (one,)))
    states = requirement_states(model)
    assert [one.outcome for one in states] == ["PASS", "UNDECIDED", ""]
    day = time.strftime("%Y-%m-%d", time.localtime(states[0].judged))
    assert states[0].text == f"PASS, 7 B ({day})"
    assert "\x1b" not in states[1].text
    os.utime(model, (1, 1))
    assert [one.is_old for one in requirement_states(model)] == [True, True, False]
    assert requirement_states(model)[0].text == f"PASS, 7 B ({day}, before the model changed)"
    keep_verdict(model, RequirementsResult(str(model), (judged[0],)))
    assert [one.outcome for one in requirement_states(model)] == ["PASS", "", ""]
