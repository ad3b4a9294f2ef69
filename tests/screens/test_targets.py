from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.app import DldApp
from dld_tui.core.settings import saved_targets, secrets
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import BAD, SECRETS, ConnectionStep
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.base_pages import LABEL, AboutRow
from dld_tui.screens.targets import TargetFormScreen, TargetsScreen, _step_lines
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, SecretDialog
from dld_tui.widgets.forms.param_form import ChoiceField, ParamForm
from tests.support.sshd import Sshd, free_port, make_key
from tests.support.tui import flat_text, screen_text, until


@pytest.mark.broad
async def test_a_target_is_added_changed_and_removed() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        assert "No targets yet" in screen_text(app)
        await pilot.press("a")
        await pilot.pause()
        assert isinstance(app.screen, TargetFormScreen)
        await pilot.press("f5")
        await pilot.pause()
        assert isinstance(app.screen, TargetFormScreen), "a name and a host are needed"
        await pilot.press(*"orin", "tab", *"10.0.0.7")
        await pilot.press("f5")
        await pilot.pause()
        assert isinstance(app.screen, TargetsScreen)
        assert saved_targets.load() == {"orin": Connection("orin", "10.0.0.7")}
        assert "not tested" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        app.screen.query_one(ParamForm).set_values({"name": "xavier", "launcher": "sudo -n"})
        await pilot.press("f5")
        await pilot.pause()
        assert saved_targets.load() == {
            "xavier": Connection("xavier", "10.0.0.7", launcher=("sudo", "-n"))
        }
        assert "sudo -n" in screen_text(app)
        await pilot.press("d")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        await pilot.press("escape")
        assert saved_targets.load()
        await pilot.press("d")
        await pilot.pause()
        await pilot.press("r")
        await pilot.pause()
        assert saved_targets.load() == {}


@pytest.mark.broad
async def test_a_name_that_is_taken_is_refused() -> None:
    saved_targets.save(Connection("orin", "one"))
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        assert app.screen.query_one(AboutRow).outer_size.height == 12
        await pilot.resize_terminal(80, 40)
        await until(pilot, lambda: app.screen.query_one(AboutRow).outer_size.height == 20)
        await pilot.press("a")
        await pilot.pause()
        await pilot.press(*"orin", "tab", *"two", "f5")
        await pilot.pause()
        assert isinstance(app.screen, ErrorDialog)
        assert "already" in screen_text(app)
    assert saved_targets.find("orin").host == "one"


async def test_a_test_asks_and_says_each_step(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    SECRETS.clear()
    key = make_key(tmp_path / "closed", "open sesame")
    sshd.allow(key)
    saved_targets.save(
        Connection(
            "orin", sshd.host, sshd.port, sshd.user, "key", key, tmp_path / "known",
            config=False, directory=str(tmp_path / "there"),
        )
    )  # fmt: skip
    app = DldApp()
    async with app.run_test(size=(100, 40)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        await pilot.press("f5")
        await until(pilot, lambda: sshd.fingerprint in screen_text(app))
        assert isinstance(app.screen, ChoiceDialog)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SecretDialog))
        await pilot.pause()
        await pilot.press(*"open", "space", *"sesame")
        assert "sesame" not in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "ready" in screen_text(app))
        assert "disk space" in screen_text(app)
        assert (tmp_path / "known").read_text() == sshd.known_line
    for folder, _, files in os.walk(Path.home()):
        for name in files:
            assert b"sesame" not in (Path(folder) / name).read_bytes()
    SECRETS.clear()


async def test_what_fails_is_said_with_its_remedy(tmp_path: Path) -> None:
    saved_targets.save(Connection("orin", "127.0.0.1", free_port(), config=False))
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        await pilot.press("f5")
        await until(pilot, lambda: "Check the port" in screen_text(app))
        assert "the connection is refused" in screen_text(app)
        await until(pilot, lambda: "connect, just now" in screen_text(app))


async def test_giving_up_ends_the_test(sshd: Sshd, tmp_path: Path) -> None:
    key = make_key(tmp_path / "closed", "open sesame")
    sshd.allow(key)
    known = tmp_path / "known"
    known.write_text(sshd.known_line)
    saved_targets.save(
        Connection("orin", sshd.host, sshd.port, sshd.user, "key", key, known, config=False)
    )
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, SecretDialog))
        await pilot.pause()
        await pilot.press("escape")
        await until(pilot, lambda: "no answer was given" in screen_text(app))


async def test_a_broken_file_is_said() -> None:
    saved_targets.store_path().parent.mkdir(parents=True)
    saved_targets.store_path().write_text("[orin]\nport = 22\n")
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        assert isinstance(app.screen, ErrorDialog)
        assert "it has no host" in screen_text(app)


@pytest.mark.broad
async def test_activities_offer_the_targets() -> None:
    saved_targets.save(Connection("orin", "one"))
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity("profile_onnxruntime", {})
        await pilot.pause()
        assert isinstance(app.screen, ActivityScreen)
        field = app.screen.query_one("#target ChoiceField", ChoiceField)
        assert field.choices == ("local", "orin")


async def test_the_app_asks_for_jobs_with_hostile_questions_too() -> None:
    app = DldApp()
    answers: list[object] = []

    def ask(question: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=lambda: answers.append(question()))
        thread.start()
        return thread

    hostile = "\x1b[31m[b]Password\x07 [/b] of ünï"
    async with app.run_test(size=(80, 24)) as pilot:
        thread = ask(lambda: secrets.current().secret(hostile))
        await until(pilot, lambda: "\\x1b[31m[b]Password\\x07 [/b] of ünï" in screen_text(app))
        assert isinstance(app.screen, SecretDialog)
        await pilot.press("x", "enter")
        await until(pilot, lambda: not thread.is_alive())
        thread = ask(lambda: secrets.current().confirm(hostile, "one\n\x1b[2Jtwo"))
        await until(pilot, lambda: "\\x1b[2Jtwo" in screen_text(app))
        assert isinstance(app.screen, ChoiceDialog)
        await pilot.press("n")
        await until(pilot, lambda: not thread.is_alive())
        assert answers == ["x", False]
    assert secrets.current().secret("after the end") is None


def test_the_texts_of_a_step_stand_below_each_other() -> None:
    lines = _step_lines(
        ConnectionStep("host key", BAD, "a long answer " * 4, "a long fix " * 4), 20
    )
    columns = {sum(len(text) for text, _ in line[:-1]) for line in lines}
    assert len(lines) > 4
    assert columns == {LABEL + 2}


async def test_long_lines_of_a_test_are_broken(sshd: Sshd, tmp_path: Path) -> None:
    saved_targets.save(
        Connection(
            "orin", sshd.host, sshd.port, sshd.user, "key", sshd.user_key, tmp_path / "known",
            config=False,
        )
    )  # fmt: skip
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.pause()
        await pilot.press("n")
        await until(pilot, lambda: "Accept it" in screen_text(app))
        shown = flat_text(app)
        assert sshd.fingerprint in shown
        assert str(tmp_path / "known").replace("/", "") in shown.replace("/", "")
