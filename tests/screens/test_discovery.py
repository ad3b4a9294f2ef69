"""What used to be reached from a shell only is reached from the screen."""

from __future__ import annotations

from pathlib import Path

from dld_tui.activities.machine.doctor import Result
from dld_tui.core.machine.health import BROKEN, GOOD, Check, check_lines, check_table
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.results.table import of_doctor
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from tests.support.decoders import grouped
from tests.support.workspace import opened


async def test_f5_on_a_decoder_offers_the_profile_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "decoder.onnx"
    grouped(path)
    async with opened(path) as session:
        await session.press("f5")
        assert isinstance(session.app.screen, ChoiceDialog)
        await session.press("enter")
        await session.until(lambda: isinstance(session.app.screen, ActivityScreen))
        form = session.app.screen
        assert isinstance(form, ActivityScreen)
        assert form.activity.id == "profile_llm"
        assert form.given["model"] == str(path)


async def test_a_critical_path_without_a_profile_says_what_makes_one(chain: Path) -> None:
    async with opened(chain) as session:
        session.app.action_start("path")
        await session.until(lambda: session.app._notifications)
        (told,) = session.app._notifications
        assert told.message == "There is no profile of this model yet: F5 makes one"


def test_the_doctor_lists_what_does_not_work_first() -> None:
    checks = [Check("A", "fine", GOOD, "1.0"), Check("B", "broken", BROKEN, "no", "mend it")]
    assert [check.name for check in check_table(checks).rows] == ["broken", "fine"]
    assert check_lines(checks) == ["2 components: 1 good, 1 broken.", "broken: mend it."]
    page = of_doctor(Result(checks), {})
    names = [check.name for check in page.result.rows.rows]
    assert names[0] == "broken"
    assert "TERM" in names, "and what only this process knows"
