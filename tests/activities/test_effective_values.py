"""What an empty field stands for is said, of every setting of every form."""

from __future__ import annotations

from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.activities.profile.onnxruntime import Request
from dld_tui.core.machine.environment import usable_threads
from dld_tui.core.model.document.new_model import NewModel
from dld_tui.core.params import Setting, placeholder_text, settings_of
from dld_tui.core.settings.custom_tools import ToolForm
from dld_tui.core.settings.saved_targets import ConnectionForm

_WITHOUT_FORM = ("infer_shapes", "tensorrt_libraries", "tool")
_ACTIVITIES = [one.id for one in registry.activities() if one.id not in _WITHOUT_FORM]


def silent(request: type[Any]) -> list[str]:
    """Return the numbers and words of a request that may be left out without a word on that."""
    return [
        setting.name
        for setting in settings_of(request)
        if not setting.param.internal
        and not setting.required
        and setting.default in (None, "")
        and not (setting.param.kind or setting.param.empty)
        and setting.type is not str
    ]


@pytest.mark.parametrize("activity", _ACTIVITIES)
def test_what_may_be_left_out_says_what_then_holds(activity: str) -> None:
    request = registry.load(activity).request
    assert silent(request) == []
    for setting in settings_of(request):
        if setting.param.choices:
            continue
        text = placeholder_text(setting, {})
        assert text
        assert "default" not in text
        assert len(text) <= 44, (setting.name, text)


def test_other_forms_do_so_too() -> None:
    assert [silent(request) for request in (ConnectionForm, ToolForm, NewModel)] == [[], [], []]


def named(name: str) -> Setting:
    return next(setting for setting in settings_of(Request) if setting.name == name)


def test_it_follows_the_other_values() -> None:
    assert (
        placeholder_text(named("output"), {"model": "/models/resnet50.onnx"}) == "resnet50.dldprof"
    )
    assert placeholder_text(named("iterations"), {}) == "10 to 10,000, as many as take 3 s"
    assert placeholder_text(named("iterations"), {"duration": 5.0}) == "at least 10"
    assert placeholder_text(named("duration"), {}) == "3"
    assert placeholder_text(named("duration"), {"iterations": 7}) == "as long as the passes take"
    assert placeholder_text(named("model"), {}) == "MODEL"
    assert placeholder_text(named("warm_up"), {}) == "10"
    assert placeholder_text(named("optimized_model"), {}) == "not written"


def test_a_value_that_stands_for_another_one_says_which() -> None:
    threads, mode = named("threads").param.means, named("execution_mode").param.means
    assert threads is not None
    assert threads(0, {}, True).startswith(f"{usable_threads():,} thread")
    assert (threads(0, {}, False), threads(4, {}, True)) == ("one a core there", "")
    assert mode is not None
    assert mode("auto", {"inter_threads": 0}, True) == "sequential"
    assert mode("auto", {"inter_threads": 2}, True) == "parallel"
    assert mode("parallel", {}, True) == ""
