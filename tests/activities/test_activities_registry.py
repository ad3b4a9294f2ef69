from __future__ import annotations

import importlib.util

import pytest

from dld_tui.activities import registry
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.params import settings_of
from tests.support import fake_worker


@pytest.mark.parametrize("info", registry.ACTIVITIES, ids=lambda info: info.id)
def test_every_row_loads_and_every_setting_is_explained(info: registry.ActivityInfo) -> None:
    activity = registry.load(info.id)

    assert activity.info is info
    assert info.help.endswith(".")
    for setting in settings_of(activity.request):
        assert setting.param.label, setting.name
        assert setting.param.help.endswith("."), setting.name


def test_rows_are_unique_and_their_modules_exist() -> None:
    rows = registry.ACTIVITIES
    assert len({row.id for row in rows}) == len(rows)
    assert all(importlib.util.find_spec(row.module) for row in rows)


def test_no_two_settings_of_an_activity_share_a_spelling() -> None:
    for info in registry.ACTIVITIES:
        settings = settings_of(registry.load(info.id).request)
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
