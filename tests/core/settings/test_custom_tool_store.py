from __future__ import annotations

from dataclasses import replace

import pytest

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.params import from_json
from dld_tui.core.process import paths
from dld_tui.core.settings import config, custom_tools
from dld_tui.core.settings.custom_tools import (
    MOST_LIMIT_S,
    Tool,
    ToolForm,
    arguments_for,
    filled,
    form_values,
    line_of,
    lines_about,
    problems,
    table_of,
    tool_from,
    tool_of,
    tool_table,
    tools_of,
    validate,
)
from tests.support.recorded import Recorded, table_text

BY_HAND = """\
# mine
theme = "light"

[tools.simplify]
application = "onnxsim"  # from pip
arguments = ["$Model", "$Output"]
output = ".onnx"

[keys]
"edit.undo" = "u"
"""


def write(text: str) -> None:
    path = paths.config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def read() -> str:
    return paths.config_path().read_text(encoding="utf-8")


def test_tools_are_added_changed_renamed_and_removed() -> None:
    assert custom_tools.load() == {}
    first = Tool("to trt", "/usr/bin/env", ("$Model", "it's"), limit=0)
    custom_tools.save(first)
    second = Tool("b.c", "b", ("$Model", "$Output"), ".x", True, "$Folder")
    custom_tools.save(second)
    assert custom_tools.load() == {"to trt": first, "b.c": second}
    assert config.load().tools == {"to trt": first, "b.c": second}
    assert config.load().problems == ()
    renamed = Tool("d", "b")
    custom_tools.save(renamed, instead_of="b.c")
    assert custom_tools.load() == {"to trt": first, "d": renamed}
    custom_tools.remove("to trt")
    assert custom_tools.load() == {"d": renamed}
    with pytest.raises(UsageError, match="unknown tool 'to trt'"):
        custom_tools.remove("to trt")
    with pytest.raises(UsageError, match="Known tools: d"):
        custom_tools.find("x")


def test_what_was_written_by_hand_stays() -> None:
    write(BY_HAND)
    custom_tools.save(Tool("other", "o"))
    custom_tools.save(Tool("simplify", "onnxsim2", ("$Model",)), instead_of="simplify")
    text = read()
    for kept in ("# mine", 'theme = "light"', "# from pip", '"edit.undo" = "u"'):
        assert kept in text
    assert config.load().keys == {"edit.undo": "u"}
    assert config.load().theme == "light"
    assert custom_tools.find("simplify") == Tool("simplify", "onnxsim2", ("$Model",))
    assert custom_tools.find("other") == Tool("other", "o")
    custom_tools.remove("other")
    custom_tools.remove("simplify")
    assert config.load().tools == {}
    assert config.load().problems == ()


def test_the_settings_keep_the_tools() -> None:
    write(BY_HAND)
    config.save({"theme": "dark"})
    assert custom_tools.find("simplify").application == "onnxsim"


def test_a_file_that_cannot_be_used_is_refused_and_not_changed() -> None:
    for text in ("[", "tools = 3\n", "[tools.a]\nx = 1\n"):
        write(text)
        with pytest.raises(InputError):
            custom_tools.load()
    for text in ("[", "tools = 3\n"):
        write(text)
        with pytest.raises(InputError):
            custom_tools.save(Tool("a", "b"))
        assert read() == text
    with pytest.raises(UsageError):
        custom_tools.save(Tool("", "b"))


@pytest.mark.parametrize(
    "tool",
    [
        Tool("a", "b"),
        Tool("a", "/b c", ("$Model", "it's $Output", "", "$$", "a\nb"), ".onnx", True, "/d", 0),
        Tool("none", "b", ("",)),
    ],
)
def test_the_form_gives_the_same_tool(tool: Tool) -> None:
    assert tool_of(from_json(ToolForm, dict(form_values(tool)))) == tool


def test_arguments_and_quotes() -> None:
    assert line_of(["$Model", "--to=${Output}", "a b", ""]) == "$Model --to=${Output} 'a b' ''"
    with pytest.raises(UsageError, match="No closing quotation"):
        tool_of(ToolForm("a", "b", "'$Model"))


def test_each_argument_is_a_line_of_its_own() -> None:
    lines = lines_about(Tool("a", "b", ("$Model", "$Output"), ".onnx", True, limit=90))
    assert [text for label, text in lines if label == "Argument"] == ["$Model", "$Output"]
    assert ("Output", ".onnx, opened") in lines
    assert ("Time limit", "1 min 30 s") in lines


SIMPLIFY = Tool(
    "simplify", "onnxsim", ("$Model", "--to=$Output", "$$5", "${Folder}x"), ".onnx", True
)


def test_places_are_filled_once() -> None:
    found = arguments_for(SIMPLIFY, "/m/$Output $$.onnx", "/m/o.onnx", "/m")
    assert found == ["/m/$Output $$.onnx", "--to=/m/o.onnx", "$5", "/mx"]
    with pytest.raises(UsageError, match="unknown variable \\$Output"):
        arguments_for(SIMPLIFY, "/m", "", "/")


@pytest.mark.parametrize("text", ["$", "a$ b", "$HOME", "$Models", "${Model", "${}", "$(id)"])
def test_a_dollar_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"\$\$ for a dollar"):
        filled(text, {"Model": "m"})
    assert problems(replace(SIMPLIFY, arguments=("$Output", text)))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": " a"}, "blanks"),
        ({"name": "-x"}, "dash"),
        ({"name": "a\x1b[2J"}, "control"),
        ({"name": "a" * 41}, "40"),
        ({"application": " "}, "no application"),
        ({"application": "bin/tool"}, "absolute"),
        ({"arguments": ("$Output", "a\0")}, "NUL"),
        ({"output": "onnx"}, "suffix"),
        ({"output": "/../x.onnx"}, "suffix"),
        ({"output": "", "open": False}, "give the suffix"),
        ({"arguments": ("$Model",)}, r"no argument holds \$Output"),
        ({"arguments": ("$Model",), "output": ""}, "no output to open"),
        ({"folder": "$Model"}, r"\$Folder"),
        ({"folder": "$X"}, r"unknown variable \$X"),
        ({"limit": -1}, "time limit"),
    ],
)
def test_what_cannot_be_used_is_said(change: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        validate(replace(SIMPLIFY, **change))  # type: ignore[arg-type]


def test_a_table_holds_what_differs_and_gives_the_same_tool() -> None:
    assert problems(SIMPLIFY) == []
    assert tool_from("simplify", table_of(SIMPLIFY)) == SIMPLIFY
    assert table_of(Tool("a", "b")) == {"application": "b", "arguments": ["$Model"]}
    assert tool_from("a", {"application": "b"}) == Tool("a", "b")
    wrong: list[str] = []
    assert tools_of([1], wrong) == {}
    assert wrong == ["tools: expected a table of tools"]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (1, "expected a table"),
        ({}, "no application"),
        ({"application": 3}, "not a str"),
        ({"application": "a", "limit": True}, "not a int"),
        ({"application": "a", "arguments": "$Model"}, "not a list"),
        ({"application": "a", "arguments": [1]}, "text only"),
        ({"application": "a", "shell": True}, "unknown setting 'shell'"),
    ],
)
def test_wrong_tables_are_told_and_the_others_kept(table: object, why: str) -> None:
    wrong: list[str] = []
    found = tools_of({"bad": table, "good": {"application": "a"}}, wrong)
    assert found == {"good": Tool("good", "a")}
    assert len(wrong) == 1
    assert why in wrong[0]
    assert "'bad'" in wrong[0]


def test_the_table(recorded: Recorded) -> None:
    longest = Tool("all", "/b c", ("$Model", "it's $Output"), ".onnx", True, "/d", MOST_LIMIT_S)
    assert problems(longest) == problems(Tool("a", "b", ("$$$Output",), ".onnx")) == []
    assert len(problems(replace(longest, limit=MOST_LIMIT_S + 1))) == 1
    table = tool_table([longest, Tool("none", "b", limit=0)])
    assert table.row_key is not None
    recorded("custom_tools", {str(table.row_key(longest)): table_text(table)})
