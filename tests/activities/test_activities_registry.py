from __future__ import annotations

import pytest

from dld_tui.activities import registry
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.params import FORMER_IDS, settings_of
from dld_tui.core.process.plugins import resolve
from tests.support import fake_worker


@pytest.mark.parametrize("row", registry.activities(), ids=lambda row: row.id)
def test_every_row_loads_and_every_setting_is_explained(row: registry.Activity) -> None:
    activity = registry.load(row.id)

    assert row.help.endswith(".")
    assert next(iter(activity.run.__code__.co_varnames)) == "request"
    for setting in settings_of(activity.request):
        assert setting.param.label, setting.name
        assert setting.param.help.endswith("."), setting.name
        assert setting.default is not None or setting.optional, setting.name


def test_rows_are_unique_and_their_modules_exist() -> None:
    rows = registry.activities()
    assert len({row.id for row in rows}) == len(rows)
    modifications = [row.modification for row in rows if row.modification is not None]
    assert len({one.key for one in modifications}) == len(modifications)
    # A command of several activities tells them apart by itself.
    words = [row.words for row in rows if row.command is None or row.command.click is None]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("row", registry.activities(), ids=lambda row: row.id)
def test_all_that_a_row_refers_to_is_there(row: registry.Activity) -> None:
    about = [row.form, row.result_view, row.reasons]
    if row.command is not None:
        about += [row.command.show, row.command.rewrite, row.command.click]
    for reference in about:
        assert reference is None or callable(resolve(reference)), reference


def test_no_two_settings_of_an_activity_share_a_spelling() -> None:
    for row in registry.activities():
        settings = settings_of(registry.load(row.id).request)
        spellings = [spelling for setting in settings for spelling in setting.param.spellings]
        assert len(set(spellings)) == len(spellings)


def test_an_unknown_activity_is_named() -> None:
    with pytest.raises(UsageError, match=r"'fly'.*Known activities: profile_onnxruntime"):
        registry.load("fly")


def test_an_activity_that_cannot_be_imported_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ACTIVITIES", (fake_worker.BROKEN, fake_worker.FAKE))

    with pytest.raises(UnavailableError, match=r"tests\.support\.absent"):
        registry.load("broken")
    assert "tests.support.absent" in str(registry.why_unavailable(fake_worker.BROKEN))
    assert registry.why_unavailable(fake_worker.FAKE) is None


@pytest.mark.parametrize("row", registry.activities(), ids=lambda row: row.id)
def test_a_result_of_another_form_is_refused(row: registry.Activity) -> None:
    if row.result is not None:
        with pytest.raises(ActivityError, match="an object is expected"):
            registry.decode_result(row.id, "text")


@pytest.mark.parametrize(("former", "name"), FORMER_IDS.items())
def test_an_activity_is_found_by_the_name_it_had(former: str, name: str) -> None:
    assert registry.find(former).id == name == registry.find(name).id
