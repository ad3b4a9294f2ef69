"""Every activity loads, explains its settings, and says what an empty field stands for."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.machine.environment import usable_threads
from dld_tui.core.model.document.new_model import NewModel
from dld_tui.core.params import FORMER_IDS, Setting, placeholder_text, settings_of
from dld_tui.core.process.plugins import resolve
from dld_tui.core.settings.custom_tools import ToolForm
from dld_tui.core.settings.saved_targets import ConnectionForm
from dld_tui.core.types import JSON
from tests.support import fake_worker


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


@pytest.mark.parametrize("row", registry.activities(), ids=lambda row: row.id)
def test_every_row_loads_and_every_setting_is_explained(row: registry.Activity) -> None:
    activity = registry.load(row.id)
    assert row.help.endswith(".")
    assert next(iter(activity.run.__code__.co_varnames)) == "request"
    settings = settings_of(activity.request)
    for setting in settings:
        assert setting.param.label, setting.name
        assert setting.param.help.endswith("."), setting.name
        assert setting.default is not None or setting.optional, setting.name
    spellings = [spelling for setting in settings for spelling in setting.param.spellings]
    assert len(set(spellings)) == len(spellings), "no two settings share one"
    about = [row.form, row.result_view, row.reasons]
    if row.command is not None:
        about += [row.command.show, row.command.rewrite, row.command.click]
    for reference in about:
        assert reference is None or callable(resolve(reference)), reference
    assert row.result is not None
    with pytest.raises(ActivityError, match="an object is expected"):
        registry.decode_result(row.id, "text")


_WITHOUT_FORM = ("infer_shapes", "tensorrt_libraries", "tool")


@pytest.mark.parametrize(
    "activity", [one.id for one in registry.activities() if one.id not in _WITHOUT_FORM]
)
def test_what_may_be_left_out_of_a_form_says_what_then_holds(activity: str) -> None:
    request = registry.load(activity).request
    assert silent(request) == []
    for setting in settings_of(request):
        if not setting.param.choices:
            text = placeholder_text(setting, {})
            assert text
            assert "default" not in text
            assert len(text) <= 44, (setting.name, text)


def named(name: str) -> Setting:
    return next(setting for setting in settings_of(Profile) if setting.name == name)


def test_what_an_empty_field_stands_for_follows_the_other_values() -> None:
    assert [silent(request) for request in (ConnectionForm, ToolForm, NewModel)] == [[], [], []]
    cases: list[tuple[str, dict[str, JSON], str]] = [
        ("output", {"model": "/models/resnet50.onnx"}, "resnet50.dldprof"),
        ("iterations", {}, "10 to 10,000, as many as take 3 s"),
        ("iterations", {"duration": 5.0}, "at least 10"),
        ("duration", {}, "3"),
        ("duration", {"iterations": 7}, "as long as the passes take"),
        ("model", {}, "MODEL"),
        ("warm_up", {}, "10"),
        ("optimized_model", {}, "not written"),
    ]
    for name, values, text in cases:
        assert placeholder_text(named(name), values) == text


def test_a_value_that_stands_for_another_one_says_which() -> None:
    threads, at_once, mode = (
        named(name).param.means for name in ("threads", "inter_threads", "execution_mode")
    )
    assert threads is not None
    assert at_once is not None
    assert [at_once(value, {}, True) for value in (0, 1, 2)] == ["one", "", ""]
    assert threads(0, {}, True).startswith(f"{usable_threads():,} thread")
    assert (threads(0, {}, False), threads(4, {}, True)) == ("one a core there", "")
    assert mode is not None
    assert mode("auto", {"inter_threads": 1}, True) == "sequential"
    assert mode("auto", {"inter_threads": 2}, True) == "parallel"
    assert mode("parallel", {}, True) == ""


def test_rows_are_unique() -> None:
    rows = registry.activities()
    assert len({row.id for row in rows}) == len(rows)
    modifications = [row.modification for row in rows if row.modification is not None]
    assert len({one.key for one in modifications}) == len(modifications)
    # A command of several activities tells them apart by itself.
    words = [row.words for row in rows if row.command is None or row.command.click is None]
    assert len(set(words)) == len(words)


def test_an_unknown_activity_is_named() -> None:
    with pytest.raises(UsageError, match=r"'fly'.*Known activities: profile_onnxruntime"):
        registry.load("fly")


def test_an_activity_that_cannot_be_imported_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ACTIVITIES", (fake_worker.BROKEN, fake_worker.FAKE))

    with pytest.raises(UnavailableError, match=r"tests\.support\.absent"):
        registry.load("broken")
    assert "tests.support.absent" in str(registry.why_unavailable(fake_worker.BROKEN))
    assert registry.why_unavailable(fake_worker.FAKE) is None


@pytest.mark.parametrize(("former", "name"), FORMER_IDS.items())
def test_an_activity_is_found_by_the_name_it_had(former: str, name: str) -> None:
    assert registry.find(former).id == name == registry.find(name).id


def test_an_activity_of_a_package_that_is_refused_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = registry.ACTIVITIES[0]
    added = [
        SimpleNamespace(name=name, package="pack\x1b", value=replace(ours, id=own, title="T\x1b"))
        for name, own in ((ours.id, ours.id), ("a", "b"), ("mine", "mine"), ("other", "other"))
    ]
    refused = []
    monkeypatch.setattr(registry, "plugins", lambda group, kind: added)
    monkeypatch.setattr(registry, "skip", lambda *given: refused.append(given))
    found = registry.activities()
    assert found[: len(registry.ACTIVITIES)] == registry.ACTIVITIES
    assert [(one.id, one.title, one.package) for one in found[len(registry.ACTIVITIES) :]] == [
        ("mine", "T\\x1b", "pack\\x1b"), ("other", "T\\x1b", "pack\\x1b"),
    ]  # fmt: skip
    assert refused == [
        ("activities", one, f"its activity {one.value.id!r} is one of dld's, or has another name")
        for one in added[:2]
    ]
