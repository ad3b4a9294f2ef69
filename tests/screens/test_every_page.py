"""Every page: not filled yet, removed, in a small terminal, with hostile names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dld_tui import commands
from dld_tui.activities import registry
from dld_tui.app import DldApp
from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Failed, Log, Metric, Progress
from dld_tui.core.process.plugins import resolve
from dld_tui.core.settings.state import State
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import cell_width
from dld_tui.screens.activity.document_forms import ConvertForm, ModelForm
from dld_tui.screens.activity.jobs import EndedJobsScreen, JobScreen
from dld_tui.screens.home.help import HelpScreen, OperatorsScreen, everything
from dld_tui.screens.home.new_model import NewModelScreen
from dld_tui.screens.home.palette import Palette, PaletteEntry, entries_for
from dld_tui.screens.home.welcome import WelcomeScreen
from dld_tui.screens.model.functions import FunctionsScreen
from dld_tui.screens.model.metadata import MetadataScreen, ProfilesScreen
from dld_tui.screens.results.compare import CompareScreen
from dld_tui.screens.results.diff import DiffScreen
from dld_tui.screens.results.plan import PlanScreen
from dld_tui.screens.results.report import ReportScreen
from dld_tui.screens.results.table import TableResult
from dld_tui.screens.results.trtexec_log import LogScreen
from dld_tui.screens.settings import SettingsScreen, ToolFormScreen, ToolsScreen
from dld_tui.screens.targets import TargetFormScreen, TargetJobsScreen, TargetsScreen
from dld_tui.screens.tensors.conversion import TensorPlace
from dld_tui.screens.tensors.create_initializer import CreateInitializer
from dld_tui.screens.tensors.initializers import InitializersScreen
from dld_tui.screens.tensors.tensor_editor import TensorScreen
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, ErrorDialog, PromptDialog
from dld_tui.widgets.shell.command_dispatch import scopes_of
from dld_tui.widgets.shell.page import KeyBar, Page
from tests.support import models
from tests.support.engine_files import LOG, write_engine
from tests.support.pages import ScriptedJob, TextPage, running
from tests.support.report_files import make_report
from tests.support.tui import ESCAPE, HOSTILE, rows_of, until
from tests.support.workspace import NARROW, Session, opened

_LEFT_OUT = {"app.quit", "app.close"}
"""They end the program."""
Made = Callable[[Session, Path], Page]


def _activity(id: str) -> Made:
    def made(session: Session, folder: Path) -> Page:
        form = resolve(registry.find(id).form)
        page: Page = form(id, {"model": str(folder / "model.onnx")})
        return page

    return made


def _job(session: Session, folder: Path) -> Page:
    request = {"model": str(folder / "model.onnx"), "output": str(folder / "m.dldprof")}
    return JobScreen("profile_onnxruntime", request, lambda _: None)


def _convert(session: Session, folder: Path) -> Page:
    values = {"model": str(folder / "model.onnx"), "output": str(folder / "o.onnx")}
    return ConvertForm("convert_fp16", values, lambda *_: None)


def _table(session: Session, folder: Path) -> Page:
    column: Column[str] = Column("name", "name", str)
    return TableResult("t", ["a line"], Table([column], ["row"], name="rows", title="Rows"))


def _tensor(session: Session, folder: Path) -> Page:
    scope = session.screen.document.main
    return TensorScreen(
        session.screen.history, TensorPlace(scope, next(iter(scope.initializers)).name)
    )


def _create(session: Session, folder: Path) -> Page:
    screen = session.screen
    return CreateInitializer(screen.history, screen.document.main, lambda _: None)


OVER: dict[str, Made] = {
    **{
        f"form {id}": _activity(id)
        for id in (
            "profile_onnxruntime",
            "build",
            "profile_tensorrt",
            "accuracy",
            "profile_llm",
            "tune",
        )
    },
    "convert form": _convert,
    "model form": lambda s, f: ModelForm("accuracy", s.screen, s.screen.jobs),
    "create initializer": _create,
    "ended jobs": lambda s, f: EndedJobsScreen(),
    "functions": lambda s, f: FunctionsScreen(s.screen.history),
    "help": lambda s, f: HelpScreen(s.screen),
    "initializers": lambda s, f: InitializersScreen(s.screen.history, None),
    "job": _job,
    "metadata": lambda s, f: MetadataScreen(s.screen.history, s.screen.document.main),
    "new model": lambda s, f: NewModelScreen(),
    "operators": lambda s, f: OperatorsScreen(everything()),
    "profiles": lambda s, f: ProfilesScreen(s.screen.history),
    "settings": lambda s, f: SettingsScreen(),
    "target": lambda s, f: TargetFormScreen(),
    "target jobs": lambda s, f: TargetJobsScreen(),
    "targets": lambda s, f: TargetsScreen(),
    "tensor": _tensor,
    "tool": lambda s, f: ToolFormScreen(),
    "tools": lambda s, f: ToolsScreen(),
}
"""Pages over a tab."""
TABS: dict[str, Made] = {
    "compare": lambda s, f: CompareScreen([f / "r.dldprof", f / "s.dldprof"]),
    "diff": lambda s, f: DiffScreen(f / "model.onnx", f / "other.onnx"),
    "log": lambda s, f: LogScreen(f / "build.log"),
    "plan": lambda s, f: PlanScreen(f / "tiny.engine.graph.json"),
    "report": lambda s, f: ReportScreen(f / "r.dldprof"),
    "start": lambda s, f: WelcomeScreen(),
    "table": _table,
    "workspace": lambda s, f: WorkspaceScreen(f / "other.onnx"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    models.write(tmp_path, models.CHAIN)
    models.write(tmp_path, models.BRANCHES, "other.onnx")
    for name in "rs":
        make_report(tmp_path / f"{name}.dldprof")
    write_engine(tmp_path)
    (tmp_path / "build.log").write_text(LOG)
    return tmp_path


def show(session: Session, name: str, folder: Path) -> Page:
    """Show a page, which is not filled before the next turn of the event loop."""
    if name in TABS:
        page = TABS[name](session, folder)
        session.app.add_page(page)
    else:
        page = OVER[name](session, folder)
        session.app.push_screen(page)
    return page


async def leave(session: Session) -> None:
    """Close all but the tab of the model, at once and whatever it is doing."""
    app = session.app
    assert app.is_running
    assert app.ending.error is None
    for page in app.pages[:]:
        if page is not session.screen:
            app.close_page(page)
    app.show_page(session.screen)
    while app.screen is not session.screen:
        app.pop_screen()
    await session.pilot.pause()


def entries(page: Page) -> list[PaletteEntry]:
    """Return the commands of a page itself, unavailable ones too."""
    return [
        PaletteEntry(command, page, None)
        for scope in scopes_of(page)
        for command in commands.in_scope(scope)
        if command.id not in _LEFT_OUT
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OVER, *TABS])
async def test_commands_of_a_page_that_is_not_filled(name: str, folder: Path) -> None:
    async with opened(folder / "model.onnx") as session:
        app = session.app
        for command in [None, *(entry.command for entry in entries(show(session, name, folder)))]:
            await leave(session)
            page = show(session, name, folder)
            assert not page.query(KeyBar), "it is filled"
            if command is None:
                app.push_screen(Palette(page))
            else:
                await PaletteEntry(command, page, None).run(app)
        await leave(session)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*OVER, *TABS])
async def test_commands_of_a_page_that_was_removed(name: str, folder: Path) -> None:
    async with opened(folder / "model.onnx") as session:
        page = show(session, name, folder)
        await session.until(lambda: page.query(KeyBar) and page.is_mounted)
        await session.pilot.pause()
        found = [*entries(page), *(e for e in entries_for(page) if e.node is not session.app)]
        await leave(session)
        await session.until(lambda: not page.is_attached)
        for entry in found:
            await entry.run(session.app)
            await leave(session)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*OVER, *TABS])
async def test_commands_of_the_app_over_a_page_that_is_not_filled(name: str, folder: Path) -> None:
    async with opened(folder / "model.onnx") as session:
        for command in commands.in_scope("app"):
            if command.id not in {*_LEFT_OUT, "tab.close"}:  # else the model is closed
                show(session, name, folder)
                await PaletteEntry(command, session.app, None).run(session.app)
                await leave(session)


@pytest.mark.broad
async def test_what_a_page_that_is_not_filled_cannot_do_is_said(folder: Path) -> None:
    async with opened(folder / "model.onnx") as session:
        app = session.app
        show(session, "form accuracy", folder)
        await app.run_action("next_page", app.screen)
        await session.until(lambda: isinstance(app.screen, ErrorDialog))
        assert "this page is not there yet" in session.text


FEW = ("report", "initializers")
"""The pages that are walked every time; forms are in `test_forms.py`."""
SIZES = ((40, 15), (300, 90))
NAMES = [
    pytest.param(name, id=name, marks=() if name in FEW else pytest.mark.slow)
    for name in (*OVER, *TABS)
]


def look(session: Session, page: Page, size: tuple[int, int]) -> None:
    """Check what can be seen of the page in front."""
    screen = session.app.screen
    focused = screen.focused
    lines = session.text.splitlines()
    assert max(map(cell_width, lines)) <= size[0]
    if focused is not None:
        seen = screen._compositor.visible_widgets
        assert focused in seen, f"{focused} has the focus and is not seen at {size}"
        region, clip = seen[focused]
        part = region.intersection(clip)
        assert part.width >= 8, (size, focused)
        assert part.height >= 1, (size, focused)
    else:
        assert not screen.focus_chain, f"nothing has the focus at {size}"
    bar = lines[-1]
    assert bar.strip(), f"no key bar at {size}"
    assert "?" in bar or "F1" in bar, bar
    assert any(key in bar for key in ("Esc", " q", "^P")), bar
    assert page.query(KeyBar)


@pytest.mark.broad
@pytest.mark.parametrize("name", NAMES)
async def test_a_page_in_a_small_terminal(name: str, folder: Path) -> None:
    async with opened(folder / "model.onnx", NARROW) as session:
        page = show(session, name, folder)
        await session.until(lambda: session.app.screen is page or session.app.page is page)
        await session.until(lambda: page.is_mounted and not page.tasks.is_working)
        for size in SIZES:
            await session.pilot.resize_terminal(*size)
            await session.pilot.pause()
            look(session, page, size)
            await session.press("tab")
            look(session, page, size)


HOSTILE_NAME = (
    f"{HOSTILE}{ESCAPE}漢字 (é) 👩‍👩‍👧[b]x[/b] [@click=app.quit]y[/]\udcff\u202e"
    + "漢字" * 200 + "n" * 100_000
)  # fmt: skip


def check(app: DldApp) -> None:
    """Nothing raw reached the screen, and every line is as wide as the screen."""
    from rich.cells import cell_len

    for row in rows_of(app):
        assert not set(row) & set("\x1b\x07\x9b\u202e\n"), row
        assert cell_len(row) == app.size.width


@pytest.mark.broad
async def test_every_page(tmp_path: Path) -> None:
    name = HOSTILE_NAME
    state = State(tmp_path)
    state.opened(f"/models/{name[:200]}.onnx".replace("\0", ""), "ONNX")
    state.put("forms", "profile_onnxruntime", {"model": name, "shape": [name]})
    async with running(DldApp(state=state), size=(80, 24)) as run:
        check(run.app)
        page = TextPage(name, lost=[name])
        await run.open(page)
        page.crumb(name)
        page.tab_status = name
        page.tab_changed()
        await run.pilot.pause()
        check(run.app)
        for key in ("question_mark", "f2", "f4", "ctrl+o", "ctrl+p", "ctrl+w"):
            await run.press(key)
            check(run.app)
            await run.press("escape")
        await _screens(run.app, run.pilot, name)


async def _screens(app: DldApp, pilot: Any, name: str) -> None:
    app.start_activity("profile_onnxruntime", {})
    await pilot.pause()
    check(app)
    app.pop_screen()
    error = InputError(name, where=name, hint=name, details=name)
    dialogs: list[Any] = [
        ChoiceDialog(name, name, [Choice("a", name, name)]),
        PromptDialog(name, name, name[:500], check=lambda text: text),
    ]
    app.show_error(error, name)
    await pilot.pause()
    check(app)
    app.pop_screen()
    for dialog in dialogs:
        app.push_screen(dialog)
        await pilot.pause()
        await pilot.press("end", "x")
        check(app)
        app.pop_screen()
    events: list[Event] = [
        Progress(1, 2, name, name),
        Metric(name, 1.0, name),
        Log(name),
        Failed(name, name),
    ]
    job = JobScreen("x", {}, lambda _: None, title=name, start=lambda: ScriptedJob(events))
    app.push_screen(job)
    await until(pilot, lambda: job.end is not None)
    await pilot.pause()
    check(app)
    app.notify(name, markup=False)
    await pilot.pause()
