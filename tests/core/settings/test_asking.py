from __future__ import annotations

from dld_tui.core.codec import encode
from dld_tui.core.settings import secrets
from dld_tui.core.settings.secrets import GOOD, ConnectionStep


def test_nobody_answers_no() -> None:
    nobody = secrets.Nobody()
    assert nobody.secret("Password") is None
    assert nobody.confirm("Trust?", "") is False


def test_a_process_has_one_asker() -> None:
    before = secrets.current()
    mine = secrets.Nobody()
    secrets.use(mine)
    try:
        assert secrets.current() is mine
    finally:
        secrets.use(before)


def test_a_step_as_json() -> None:
    assert encode(ConnectionStep("connect", GOOD, "box")) == {
        "name": "connect", "state": "good", "found": "box", "fix": ""
    }  # fmt: skip
