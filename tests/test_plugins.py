"""What another package adds by its entry points is everywhere that our own is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.activities import registry
from dld_tui.app import DldApp
from dld_tui.core.checks.checker import Checker
from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.model.document import Document
from dld_tui.core.model.rewrite.rule import known_rules, rule_names, rules_of
from dld_tui.core.process.paths import config_path
from dld_tui.core.report.report import open_report
from dld_tui.core.settings.config import added_value
from dld_tui.core.settings.config import load as load_config
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.home.palette import entries_for, ranked
from dld_tui.widgets.charts.report_charts import drawn
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.results.report_views import BarChart, ChartPane
from tests.support import models, toy_package
from tests.support.cli import Dld, Outcome
from tests.support.tui import screen_text, until


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
    ours = {"path", "routes"}
    assert {one.id for one in registry.activities()} - ours == {
        one.id for one in registry.ACTIVITIES
    }
    assert {one.package for one in registry.activities()} == {"", "dld-tui"}


@pytest.mark.broad
def test_the_command_line_runs_an_activity(
    model: Path, dld: Dld, request: pytest.FixtureRequest
) -> None:
    size = model.stat().st_size
    assert "count-bytes" not in dld("run", "--help").out
    request.getfixturevalue("toy")
    assert "count-bytes" in dld("run", "--help").out
    assert dld("run", "count-bytes", model, "--json").json == {"units": size}
    assert dld("run", "count-bytes", model, "--unit", 2).out == f"units: {size // 2}\n"
    assert "the least is 1" in dld.fails(2, "run", "count-bytes", model, "--unit", "0")


TORN = """\
[dld_tui.commands]
no-module = no_such_module:COMMAND
inspect = torn_package:INSPECT
lazy = torn_package:LAZY
bug = torn_package:BUG
[dld_tui.activities]
absent = torn_package:NO_SUCH_NAME
tune = torn_package:TUNE
[dld_tui.checks]
wrong_type = torn_package:TEXT
fails = torn_package:CHECK
[dld_tui.readers]
fails = torn_package:READER
[dld_tui.charts]
raises = torn_package.raises:CHART
[dld_tui.tools]
dashes = torn_package:TOOL
[dld_tui.settings]
target = torn_package:SETTING
[dld_tui.rules]
bad = torn_package:TEXT
right = torn_package:RULES
"""
TORN_CODE = """\
from dld_tui.activities.registry import Activity
from dld_tui.core.checks.checker import NodeCheck
from dld_tui.core.command_line import CommandInfo
from dld_tui.core.files.recognise import ReportReader
from dld_tui.core.params import Param, Setting
from dld_tui.core.settings.custom_tools import Tool
import click

def fail(*arguments):
    raise KeyError("not today")

TEXT = "this is no rule"
RULES = '''rule transposes: Leave out an Abs.
Abs(x) => x
rule added: Leave out two Neg.
Neg(Neg(x)) => x'''
INSPECT = CommandInfo("inspect", "Mine.", "torn_package")
LAZY = CommandInfo("lazy", "Has no module.", "torn_package.no_such_module")
BUG = CommandInfo("bug", "Has a bug.", "torn_package:bug")
bug = click.Command("bug", callback=fail)
TUNE = Activity("tune", "Tune", "Mine.", None, None)
CHECK = NodeCheck("torn:fails", "error", fail)
READER = ReportReader("a torn profile", fail, fail)
TOOL = Tool("-dash", "cp", ())
SETTING = Setting("target", str, False, "", Param("x", "x"))
"""


@pytest.fixture
def torn(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    info = folder / "torn_package-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torn-package\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(TORN)
    (folder / "torn_package").mkdir()
    (folder / "torn_package" / "__init__.py").write_text(TORN_CODE)
    (folder / "torn_package" / "raises.py").write_text("raise SystemError('broken')\n")
    monkeypatch.syspath_prepend(folder)
    return folder


def skipped_by(outcome: Outcome) -> list[str]:
    """Return the extensions that a command said it skipped, each once."""
    lines = [line for line in outcome.err.splitlines() if "is skipped" in line]
    assert all(line.startswith("dld: torn-package: its entry point ") for line in lines)
    assert all(line.endswith(". Update or uninstall torn-package") for line in lines)
    assert len(set(lines)) == len(lines), lines
    return [line.split("'")[1] for line in lines]


@pytest.mark.broad
@pytest.mark.usefixtures("torn")
def test_a_broken_package_is_told_once_and_everything_else_works(model: Path, dld: Dld) -> None:
    helped = dld("--help")
    assert (helped.status, skipped_by(helped)) == (0, ["no-module", "inspect"])
    assert "Summarise a model." in helped.out
    assert "  lazy " in helped.out
    inspected = dld("inspect", model)
    assert inspected.status == 0
    assert "fails" in skipped_by(inspected)
    listed = dld("tool", "list")
    assert listed.status == 0
    assert "dashes" in skipped_by(listed)
    checked = dld("check", model)
    assert "never used" in checked.out
    assert {"wrong_type", "fails"} <= {*skipped_by(checked)}
    assert "KeyError: 'not today'" in checked.err
    assert registry.find("tune") in registry.ACTIVITIES
    assert dld("tune", "--help").status == 0
    doctor = dld("doctor")
    for name in ("no-module", "absent", "dashes", "raises", "wrong_type", "target"):
        assert name in doctor.out


@pytest.mark.usefixtures("torn")
def test_rules_of_a_package_are_behind_our_own() -> None:
    added = [rule for rule in known_rules() if rule.package]
    assert [(rule.name, rule.package) for rule in added] == [("added", "torn-package")]
    assert rules_of(["added"]) == added
    assert rule_names()[-1] == "added"


@pytest.mark.usefixtures("torn")
def test_a_broken_command_says_whose_it_is(dld: Dld) -> None:
    lazy = dld("lazy")
    assert lazy.status == 4
    last = lazy.err.splitlines()[-1]
    assert last.startswith("dld: dld lazy: unavailable: ModuleNotFoundError: ")
    assert last.endswith("Update or uninstall torn-package")
    bug = dld("bug")
    assert bug.status == 5
    assert "dld: dld bug of torn-package: KeyError: 'not today'" in bug.err
    assert "Traceback" not in bug.err
    assert "This is a bug in torn-package" in bug.err


@pytest.mark.broad
@pytest.mark.usefixtures("torn")
async def test_the_start_page_tells_what_is_skipped(model: Path) -> None:
    app = DldApp([model])
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: any("torn-package" in one.message for one in app._notifications))
        messages = [one.message for one in app._notifications]
        assert len({*messages}) == len(messages)
        await until(pilot, lambda: "Relu" in screen_text(app))


@pytest.mark.usefixtures("toy")
def test_a_command_is_with_ours(dld: Dld) -> None:
    assert "\nOther packages:\n  toy         Say hello.\n" in dld("--help").out
    assert dld("toy", "--to", "World").out == "Hello World\n"
    assert "Example: dld toy --to World" in dld("toy", "--help").out
    assert "did you mean 'toy'" in dld.fails(2, "to")


@pytest.mark.broad
@pytest.mark.usefixtures("toy")
def test_a_shell_completes_it(dld: Dld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_DLD_COMPLETE", "bash_complete")
    for line, found in (("dld run co", "count-bytes"), ("dld run count-bytes --u", "--unit")):
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        assert found in dld().out


@pytest.mark.broad
@pytest.mark.usefixtures("toy")
async def test_palette_settings_and_wizard_have_it_and_run_it(model: Path) -> None:
    app = DldApp()
    async with app.run_test(size=(100, 40)) as pilot:
        first = ranked(entries_for(app.screen), "weigh")[0].command
        assert (first.title, first.parameter) == ("Count bytes", "count_bytes")
        app.action_settings()
        await pilot.pause()
        settings = app.screen.query_one(ParamForm)
        assert settings.pages[-1] == "Toy"
        settings.set_values({"toy_unit": 4})
        await pilot.pause()
        await pilot.press("f5")
        await pilot.pause()
        assert added_value(load_config(), "toy_unit") == 4
        assert config_path().read_text().strip() == "toy_unit = 4"
        await pilot.press("f4")
        await pilot.pause()
        assert "Count bytes" in screen_text(app)
        app.pop_screen()
        app.start_activity("count_bytes", {"model": str(model), "unit": 4})
        await pilot.pause()
        form = app.screen
        assert isinstance(form, ActivityScreen)
        assert form.command_line == f"dld run count-bytes {model} --unit 4"
        await pilot.press("f5")
        said = f"{model.stat().st_size // 4} units of 4"
        await until(pilot, lambda: said in [notice.message for notice in app._notifications])


@pytest.mark.broad
@pytest.mark.usefixtures("toy")
def test_a_check_looks_at_every_node_and_again_after_an_edit(model: Path, dld: Dld) -> None:
    document = Document(models.parse(models.CHAIN))
    checker = Checker(document)
    found = [one for one in checker.run() if one.rule == "toy:no-relu"]
    relus = [node for node in document.main.nodes if node.op_type == "Relu"]
    assert [one.node for one in found] == relus != []
    assert {(one.level, one.message) for one in found} == {("warning", "no Relu, please")}
    document.apply("delete_nodes", scope=[], nodes=[relus[0].ref])
    checker.restart()
    left = [one.node for one in checker.run() if one.rule == "toy:no-relu"]
    assert left == [node for node in document.main.nodes if node.op_type == "Relu"]
    assert len(left) == len(relus) - 1
    assert "no Relu, please" in dld("check", model).out


PROFILE = "#toy\nfirst 1.5\nsecond 4\n"


@pytest.mark.usefixtures("toy")
def test_a_reader_makes_a_report_of_a_file(tmp_path: Path, dld: Dld) -> None:
    path = tmp_path / "run.toy"
    path.write_text(PROFILE)
    assert recognise(path) is FileKind.OTHER_PROFILE
    with open_report(path) as report:
        assert [(layer.name, layer.time_ms) for layer in report.layers] == [
            ("first", 1.5), ("second", 4.0)
        ]  # fmt: skip
    assert "second" in dld("report", path).out
    path.write_text("another text")
    with pytest.raises(InputError):
        recognise(path)


@pytest.mark.usefixtures("toy")
def test_a_reader_with_a_bug_is_named(tmp_path: Path, dld: Dld) -> None:
    path = tmp_path / "run.toy"
    path.write_text("#toy\nno number\n")
    line = dld.fails(3, "report", path)
    assert "the reader 'lines' of toy-package failed: ValueError: could not convert" in line
    assert line.endswith("Update or uninstall toy-package")


@pytest.mark.broad
@pytest.mark.usefixtures("toy")
async def test_a_chart_is_among_those_of_a_report(tmp_path: Path) -> None:
    path = tmp_path / "run.toy"
    path.write_text(PROFILE)
    app = DldApp([path])
    async with app.run_test(size=(120, 40)) as pilot:
        while not app.screen.query(BarChart):  # it comes with the pane that holds it, but later
            await pilot.pause(0.05)
        pane = app.screen.query_one(ChartPane)
        while not pane.data(80, 20).layers:
            await pilot.pause(0.05)
        assert [*pane.titles.values()][-1] == "The longest layer"
        seen = []
        for _ in pane.titles:
            pane.next_chart()
            await pilot.pause()
            seen.append(pane.titles[pane.chart])
            if seen[-1] == "The longest layer":
                assert "second" in str(drawn(pane.charts[pane.chart], pane.data(80, 20)))
        assert sorted(seen) == sorted(pane.titles.values())


@pytest.mark.broad
@pytest.mark.usefixtures("toy")
def test_a_tool_is_beside_those_of_the_user(model: Path, tmp_path: Path, dld: Dld) -> None:
    outcome = dld("tool", "list")
    assert "toy-copy" in outcome.out
    out = tmp_path / "copied.onnx"
    assert dld("tool", "run", "toy-copy", model, "-o", out).status == 0
    assert out.read_bytes() == model.read_bytes()
    assert "toy-copy" in load_config().tools


@pytest.mark.broad
@pytest.mark.usefixtures("toy")
def test_a_setting_is_read_from_the_file_and_the_environment(dld: Dld) -> None:
    assert added_value(load_config(environ={}), "toy_unit") == 1
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text("toy_unit = 8\n")
    config = load_config(environ={})
    assert (added_value(config, "toy_unit"), config.problems) == (8, ())
    assert added_value(load_config(environ={"DLD_TOY_UNIT": "16"}), "toy_unit") == 16
    wrong = load_config(environ={"DLD_TOY_UNIT": "0"})
    assert added_value(wrong, "toy_unit") == 8
    assert "DLD_TOY_UNIT is 0; the least is 1" in wrong.problems
    assert "settings" in dld("doctor").out
