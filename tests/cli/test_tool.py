from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from dld_tui.cli.setup.tool import add_tool as add
from dld_tui.core.params import settings_of
from dld_tui.core.process import paths
from dld_tui.core.settings import custom_tools
from dld_tui.core.settings.custom_tools import Tool, ToolForm, form_values
from tests.support.cli import Dld

COPY = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2]); print('\\x1b]0;copied')"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    return path


def test_a_tool_is_added_listed_run_and_removed(dld: Dld, model: Path, tmp_path: Path) -> None:
    added = dld(
        "tool", "add", "copy", sys.executable, "--output", ".onnx", "--open", "--limit", 60,
        "--", "-S", "-c", COPY, "$Model", "$Output",
    )  # fmt: skip
    assert (added.status, added.out) == (0, ""), added.err
    assert "config.toml" in added.err
    expected = Tool(
        "copy", sys.executable, ("-S", "-c", COPY, "$Model", "$Output"), ".onnx", True, limit=60
    )
    assert custom_tools.load() == {"copy": expected}
    assert "60 s" in dld("tool", "list").out
    data = dld("tool", "list", "--json").json["tools"][0]
    assert (data["name"], data["arguments"][-1], data["folder"]) == ("copy", "$Output", None)

    output = tmp_path / "o.onnx"
    done = dld("tool", "run", "copy", model, "-o", output)
    assert (done.status, done.out) == (0, "\\x1b]0;copied\n")
    assert "o.onnx written" in done.err
    assert output.read_bytes() == b"model"
    assert "exists" in dld.fails(2, "tool", "run", "copy", model, "-o", output)
    again = dld("tool", "run", "copy", model, "-o", output, "--force", "--json")
    assert (again.json["output"], again.json["lines"]) == (str(output), 1)

    assert dld("tool", "remove", "copy").status == 0
    assert custom_tools.load() == {}
    assert "No tools yet" in dld("tool", "list").err


def test_failures_of_a_tool_and_of_its_file_are_one_line(dld: Dld, model: Path) -> None:
    custom_tools.save(Tool("fails", sys.executable, ("-S", "-c", "raise SystemExit(7)")))
    assert "exit status 7" in dld.fails(5, "tool", "run", "fails", model)
    paths.config_path().write_text("[tools.a]\nshell = true\n")
    assert "shell" in dld.fails(3, "tool", "list")


def test_a_tool_may_do_without_asking_for_a_name(dld: Dld, model: Path) -> None:
    added = dld(
        "tool", "add", "my copy", sys.executable, "--output", ".onnx", "--no-ask",
        "--", "-S", "-c", COPY, "$Model", "$Output",
    )  # fmt: skip
    assert added.status == 0, added.err
    assert not custom_tools.find("my copy").ask
    assert dld("tool", "list", "--json").json["tools"][0]["ask"] is False
    for name in ("m-my-copy.onnx", "m-my-copy-2.onnx"):
        done = dld("tool", "run", "my copy", model, "--json")
        assert Path(done.json["output"]).name == name, done.err
        assert model.with_name(name).read_bytes() == b"model"


def test_the_command_line_and_the_form_are_one_declaration(dld: Dld) -> None:
    offered = {param.name for param in add.params} - {"force"}
    assert offered == {setting.name for setting in settings_of(ToolForm)}
    assert offered == set(form_values(Tool("a", "b")))
    assert offered == {field.name for field in dataclasses.fields(Tool)}
    words = ["a b", "it's", "", "$Model", "\\", '"', "--x=1", "-"]
    assert dld("tool", "add", "odd", "cat", "--", *words).status == 0
    assert custom_tools.find("odd").arguments == tuple(words)
    text = dld("tool", "add", "--help").out
    declared = [s for s in settings_of(ToolForm) if s.param.spellings and s.name != "arguments"]
    assert all(setting.param.spellings[0] in text for setting in declared)
