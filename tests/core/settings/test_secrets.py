from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from dld_tui.core.codec import encode
from dld_tui.core.errors import UnavailableError
from dld_tui.core.settings import secrets
from dld_tui.core.settings.secrets import (
    GOOD,
    SECRETS,
    SERVICE,
    ConnectionStep,
    Secrets,
    keyring_problem,
)


class Broken(Exception):
    """What a keyring may raise."""


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a keyring in memory in place of the package."""
    held: dict[tuple[str, str], str] = {}
    module = ModuleType("keyring")
    module.held = held  # type: ignore[attr-defined]
    module.get_keyring = lambda: SimpleNamespace(priority=5)  # type: ignore[attr-defined]
    module.get_password = lambda *key: held.get(key)  # type: ignore[attr-defined]
    module.set_password = lambda *key: held.update({key[:2]: key[2]})  # type: ignore[attr-defined]
    module.delete_password = lambda *key: held.pop(key)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    return module


def test_a_secret_is_kept_in_memory_and_shown_nowhere() -> None:
    secrets = Secrets()
    assert secrets.get("password a") is None
    secrets.keep("password a", "hush")
    assert secrets.get("password a") == "hush"
    assert "hush" not in f"{secrets!r} {secrets}"
    secrets.forget("password a")
    secrets.forget("password a")
    assert secrets.get("password a") is None
    secrets.keep("password a", "hush")
    secrets.clear()
    assert secrets.get("password a") is None
    assert isinstance(SECRETS, Secrets)


def test_the_keyring_is_asked_only_when_it_is_wanted(keyring: ModuleType) -> None:
    Secrets().keep("password a", "hush")
    assert keyring.held == {}
    Secrets().keep("password a", "hush", in_keyring=True)
    assert keyring.held == {(SERVICE, "password a"): "hush"}
    assert Secrets().get("password a") is None
    assert Secrets().get("password a", from_keyring=True) == "hush"
    Secrets().forget("password a", in_keyring=True)
    assert keyring.held == {}
    assert keyring_problem() is None


def test_a_keyring_that_fails_is_no_keyring(
    keyring: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*unused: str) -> None:
        raise Broken("password hush")

    for name in ("get_password", "set_password", "delete_password"):
        monkeypatch.setattr(keyring, name, fail)
    secrets = Secrets()
    assert secrets.get("password a", from_keyring=True) is None
    with pytest.raises(UnavailableError, match="Broken") as caught:
        secrets.keep("password a", "hush", in_keyring=True)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert secrets.get("password a") == "hush", "it is kept for this process"
    secrets.forget("password a", in_keyring=True)


def test_why_there_is_none(keyring: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "get_keyring", lambda: SimpleNamespace(priority=0))
    assert "no usable keyring" in (keyring_problem() or "")
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert "install keyring" in (keyring_problem() or "").replace("'", "")


def test_nobody_answers_no_and_a_process_has_one_asker() -> None:
    nobody = secrets.Nobody()
    assert nobody.secret("Password") is None
    assert nobody.confirm("Trust?", "") is False
    before = secrets.current()
    mine = secrets.Nobody()
    secrets.use(mine)
    try:
        assert secrets.current() is mine
    finally:
        secrets.use(before)
    assert encode(ConnectionStep("connect", GOOD, "box")) == {
        "name": "connect", "state": "good", "found": "box", "fix": ""
    }  # fmt: skip
