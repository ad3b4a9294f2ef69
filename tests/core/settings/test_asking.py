from __future__ import annotations

from dld_tui.core.codec import encode
from dld_tui.core.settings import prompts
from dld_tui.core.settings.prompts import GOOD, Step


def test_nobody_answers_no() -> None:
    nobody = prompts.Nobody()
    assert nobody.secret("Password") is None
    assert nobody.confirm("Trust?", "") is False


def test_a_process_has_one_asker() -> None:
    before = prompts.current()
    mine = prompts.Nobody()
    prompts.use(mine)
    try:
        assert prompts.current() is mine
    finally:
        prompts.use(before)


def test_a_step_as_json() -> None:
    assert encode(Step("connect", GOOD, "box")) == {
        "name": "connect", "state": "good", "found": "box", "fix": ""
    }  # fmt: skip
