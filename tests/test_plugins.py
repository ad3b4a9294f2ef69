"""What another package adds by its entry points is everywhere that our own is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.activities import registry
from dld_tui.app import DldApp
from dld_tui.core.errors import UnavailableError
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.home.palette import entries_for, ranked
from dld_tui.targets.process import LocalTarget
from tests.support import models, toy_package
from tests.support.cli import Dld, process
from tests.support.tui import screen_text


@pytest.fixture
def toy(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    toy_package.install(folder, monkeypatch)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.CHAIN)


@pytest.fixture
def dld(capsys: pytest.CaptureFixture[str]) -> Dld:
    return Dld(capsys)


def test_without_other_packages_only_our_own_are_listed() -> None:
    assert registry.activities() == registry.ACTIVITIES


@pytest.mark.usefixtures("toy")
def test_the_command_line_runs_an_activity(model: Path, dld: Dld) -> None:
    size = model.stat().st_size
    assert "count-bytes" in dld("run", "--help").out
    assert dld("run", "count-bytes", model, "--json").json == {"units": size}
    assert dld("run", "count-bytes", model, "--unit", 2).out == f"units: {size // 2}\n"
    assert "the least is 1" in dld.fails(2, "run", "count-bytes", model, "--unit", "0")


@pytest.mark.usefixtures("toy")
def test_a_worker_runs_it(model: Path) -> None:
    with LocalTarget().start("count_bytes", {"model": str(model)}) as job:
        assert job.result() == {"units": model.stat().st_size}


@pytest.mark.usefixtures("toy")
def test_a_broken_one_is_listed_with_its_error(dld: Dld) -> None:
    torn = registry.find("torn")
    assert "NO_SUCH_NAME" in str(registry.why_unavailable(torn))
    assert torn.package == "toy-package"
    with pytest.raises(UnavailableError, match="NO_SUCH_NAME"):
        registry.load("torn")
    assert "NO_SUCH_NAME" in dld.fails(4, "run", "torn", "m.onnx")
    assert "torn" in dld("run", "--help").out


def test_a_shell_completes_it(toy: Path) -> None:
    environment = {"PYTHONPATH": str(toy), "_DLD_COMPLETE": "bash_complete", "PATH": ""}
    words = environment | {"COMP_WORDS": "dld run co", "COMP_CWORD": "2"}
    assert "count-bytes" in process(env=words).stdout
    words = environment | {"COMP_WORDS": "dld run count-bytes --u", "COMP_CWORD": "3"}
    assert "--unit" in process(env=words).stdout


@pytest.mark.usefixtures("toy")
async def test_the_wizard_asks_for_its_settings_and_runs_it(model: Path) -> None:
    app = DldApp()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("f4")
        await pilot.pause()
        assert "Count bytes" in screen_text(app)
        assert "torn   unavailable: " in screen_text(app)
        app.pop_screen()
        app.start_activity("count_bytes", {"model": str(model), "unit": 4})
        await pilot.pause()
        form = app.screen
        assert isinstance(form, ActivityScreen)
        assert form.command_line == f"dld run count-bytes {model} --unit 4"
        await pilot.press("f5")
        said = f"{model.stat().st_size // 4} units of 4"
        for _ in range(200):
            await app.workers.wait_for_complete()
            await pilot.pause(0.02)
            if any(notice.message == said for notice in app._notifications):
                break
        assert [notice.message for notice in app._notifications] == [said]


@pytest.mark.usefixtures("toy")
async def test_the_palette_finds_it_by_other_words() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)):
        first = ranked(entries_for(app.screen), "weigh")[0].command
        assert (first.title, first.parameter) == ("Count bytes", "count_bytes")
