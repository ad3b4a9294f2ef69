from __future__ import annotations

import pytest

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.process import paths
from dld_tui.core.settings import config, custom_tools
from dld_tui.core.settings.custom_tools import Tool

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
