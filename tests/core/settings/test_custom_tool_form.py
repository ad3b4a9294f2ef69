from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.params import from_json
from dld_tui.core.settings.custom_tools import (
    Tool,
    ToolForm,
    form_values,
    line_of,
    lines_about,
    tool_of,
)


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


def test_arguments_are_quoted_only_where_needed() -> None:
    assert line_of(["$Model", "--to=${Output}", "a b", ""]) == "$Model --to=${Output} 'a b' ''"


def test_a_quote_without_its_end_is_said() -> None:
    with pytest.raises(UsageError, match="No closing quotation"):
        tool_of(ToolForm("a", "b", "'$Model"))


def test_each_argument_is_a_line_of_its_own() -> None:
    lines = lines_about(Tool("a", "b", ("$Model", "$Output"), ".onnx", True, limit=90))
    assert [text for label, text in lines if label == "Argument"] == ["$Model", "$Output"]
    assert ("Output", ".onnx, opened") in lines
    assert ("Time limit", "1 min 30 s") in lines
