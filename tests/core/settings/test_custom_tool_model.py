from __future__ import annotations

from dataclasses import replace

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.settings.custom_tools import (
    Tool,
    arguments_for,
    filled,
    problems,
    table_of,
    tool_from,
    tools_of,
    validate,
)

SIMPLIFY = Tool(
    "simplify", "onnxsim", ("$Model", "--to=$Output", "$$5", "${Folder}x"), ".onnx", True
)


def test_places_are_filled_once() -> None:
    found = arguments_for(SIMPLIFY, "/m/$Output $$.onnx", "/m/o.onnx", "/m")
    assert found == ["/m/$Output $$.onnx", "--to=/m/o.onnx", "$5", "/mx"]


@pytest.mark.parametrize("text", ["$", "a$ b", "$HOME", "$Models", "${Model", "${}", "$(id)"])
def test_a_dollar_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"\$\$ for a dollar"):
        filled(text, {"Model": "m"})
    assert problems(replace(SIMPLIFY, arguments=("$Output", text)))


def test_an_output_that_is_not_there_is_not_an_empty_argument() -> None:
    with pytest.raises(UsageError, match="unknown variable \\$Output"):
        arguments_for(SIMPLIFY, "/m", "", "/")


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


def test_tools_that_are_no_table_are_told() -> None:
    wrong: list[str] = []
    assert tools_of([1], wrong) == {}
    assert wrong == ["tools: expected a table of tools"]
