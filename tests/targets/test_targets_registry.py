from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.targets import registry


@pytest.mark.parametrize("name", [None, "local"])
def test_this_machine(name: str | None) -> None:
    assert registry.get(name).name == "local"
    assert "local" in registry.names()


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(UsageError, match=r"'orin'.*Known targets: local"):
        registry.get("orin")
