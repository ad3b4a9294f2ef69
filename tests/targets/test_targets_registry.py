from __future__ import annotations

import pytest

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.targets import registry


@pytest.mark.parametrize("name", [None, "local"])
def test_this_machine(name: str | None) -> None:
    assert registry.get(name).name == "local"
    assert "local" in registry.names()


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(UsageError, match=r"'orin'.*Known targets: local"):
        registry.get("orin")


def test_saved_connections_are_targets() -> None:
    saved_targets.save(Connection("orin", "orin.lan"))
    assert registry.names() == ["local", "orin"]
    assert registry.get("orin").name == "orin"
    saved_targets.store_path().write_text("[orin")
    assert registry.names() == ["local"]
    with pytest.raises(InputError, match="TOML"):
        registry.get("orin")
