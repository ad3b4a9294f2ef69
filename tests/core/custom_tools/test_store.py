from __future__ import annotations

import pytest

from dld_tui.core import config
from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.model import Tool
from dld_tui.core.errors import InputError, UsageError

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
    path = config.config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def read() -> str:
    return config.config_path().read_text(encoding="utf-8")


def test_tools_are_added_changed_renamed_and_removed() -> None:
    assert store.load() == {}
    first = Tool("to trt", "/usr/bin/env", ("$Model", "it's"), limit=0)
    store.save(first)
    second = Tool("b.c", "b", ("$Model", "$Output"), ".x", True, "$Folder")
    store.save(second)
    assert store.load() == {"to trt": first, "b.c": second}
    assert config.load().tools == {"to trt": first, "b.c": second}
    assert config.load().problems == ()
    renamed = Tool("d", "b")
    store.save(renamed, instead_of="b.c")
    assert store.load() == {"to trt": first, "d": renamed}
    store.remove("to trt")
    assert store.load() == {"d": renamed}
    with pytest.raises(UsageError, match="no tool 'to trt'"):
        store.remove("to trt")
    with pytest.raises(UsageError, match="Known tools: d"):
        store.find("x")


def test_what_was_written_by_hand_stays() -> None:
    write(BY_HAND)
    store.save(Tool("other", "o"))
    store.save(Tool("simplify", "onnxsim2", ("$Model",)))
    text = read()
    for kept in ("# mine", 'theme = "light"', "# from pip", '"edit.undo" = "u"'):
        assert kept in text
    assert config.load().keys == {"edit.undo": "u"}
    assert config.load().theme == "light"
    assert store.find("simplify") == Tool("simplify", "onnxsim2", ("$Model",))
    assert store.find("other") == Tool("other", "o")
    store.remove("other")
    store.remove("simplify")
    assert config.load().tools == {}
    assert config.load().problems == ()


def test_the_settings_keep_the_tools() -> None:
    write(BY_HAND)
    config.save({"theme": "dark"})
    assert store.find("simplify").application == "onnxsim"


def test_a_file_that_cannot_be_used_is_refused_and_not_changed() -> None:
    for text in ("[", "tools = 3\n", "[tools.a]\nx = 1\n"):
        write(text)
        with pytest.raises(InputError):
            store.load()
    for text in ("[", "tools = 3\n"):
        write(text)
        with pytest.raises(InputError):
            store.save(Tool("a", "b"))
        assert read() == text
    with pytest.raises(UsageError):
        store.save(Tool("", "b"))
