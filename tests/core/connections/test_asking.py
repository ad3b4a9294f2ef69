from __future__ import annotations

from dld_tui.core.codec import encode
from dld_tui.core.connections import prompts as asking
from dld_tui.core.connections.prompts import GOOD, Step


def test_nobody_answers_no() -> None:
    nobody = asking.Nobody()
    assert nobody.secret("Password") is None
    assert nobody.confirm("Trust?", "") is False


def test_a_process_has_one_asker() -> None:
    before = asking.current()
    mine = asking.Nobody()
    asking.use(mine)
    try:
        assert asking.current() is mine
    finally:
        asking.use(before)


def test_a_step_as_json() -> None:
    assert encode(Step("connect", GOOD, "box")) == {
        "name": "connect", "state": "good", "found": "box", "fix": ""
    }  # fmt: skip
