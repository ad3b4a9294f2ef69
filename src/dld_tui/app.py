"""The Textual app: tabs, themes, keys, errors. Screens do the rest."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.console import RenderableType
from textual import events
from textual._context import active_message_pump
from textual.app import App
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import WorkerFailed

from dld_tui.commands import Command
from dld_tui.commands.command import in_order, table
from dld_tui.commands.key_names import unknown_and_clashing
from dld_tui.core.errors import DldError, InputError, UnavailableError
from dld_tui.core.files.source import input_error
from dld_tui.core.process import interpreter, paths, terminal
from dld_tui.core.process.plugins import listen, resolve
from dld_tui.core.settings import config as settings
from dld_tui.core.settings import secrets
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.home.tabs import OPENING, START, DialogAsker, OpeningPage, Tabs
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.shell import frame, glyphs
from dld_tui.widgets.shell.command_dispatch import (
    Commands,
    HasCommands,
    hint,
    use_keys,
    why_greyed,
)
from dld_tui.widgets.shell.ending import Ending
from dld_tui.widgets.shell.key_queue import KeyQueue
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.shell.themes import THEMES, KeptStylesheet
from dld_tui.widgets.tasks import EndedJob, has_gone, on_thread, task

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.driver import Driver
    from textual.theme import Theme

    from dld_tui.core.model.document.new_model import NewModel
    from dld_tui.core.model.document.parts.fragment import Fragment

_CLIPBOARD_LIMIT = 74_000
"""Bytes that every terminal's OSC 52 takes: 100,000 characters of base64, less the frame."""


_STARTED_S = 2.0
"""So long after the first paint what was asked for is seen, too."""


def _new_models_left() -> list[NewModel]:
    """Return how the new models began that have edits of sessions that were killed."""
    from dld_tui.core.model.document.scripting.journal import crash_journals
    from dld_tui.screens.home.tabs import prepare

    prepare("ONNX")
    # The newest of those that began alike.
    return list(dict.fromkeys(one.new for one in crash_journals(None) if one.new is not None))


def _recognised(path: Path) -> tuple[Path, str] | None:
    """Return a file, of a folder its model, and its kind; import what its page needs.

    Returns:
        None for a folder with no model or several, to choose from.
    """
    from dld_tui.core.files.recognise import recognise
    from dld_tui.screens.home.tabs import prepare

    if path.is_dir():
        from dld_tui.core.llm.folder import model_in

        try:
            path = model_in(path)
        except InputError:  # the page lists them
            return None
        if path.is_dir():
            return None
    kind = recognise(path).name
    prepare(kind)
    return path, kind


def _start_page() -> Screen[None]:
    from dld_tui.screens.home.welcome import WelcomeScreen

    return WelcomeScreen()


class DldApp(Tabs, Commands, App[int]):
    """One start page, and a mode of Textual a tab: dialogs stay with the tab they belong to."""

    SCOPE = "app"
    COMMAND_TABLE = in_order(
        table(
            "app",
            ("app.help", "help", "question_mark,f1", "", "help",
             "Show the keys and explain the focused pane.",
             "keys, shortcuts, key bindings, keybindings, hotkeys, manual, cheat sheet"),
            ("file.open", "open_file", "ctrl+o", "", "open", "Open a model or a report by path.",
             "load, file, browse"),
            ("model.new", "new_model", "ctrl+n", "", "new model",
             "Create a model: opset imports, inputs, outputs.", "create a model, empty model"),
            ("app.activities", "activities", "f4", "", "activities",
             "Start an activity, such as a profile.", "jobs, run, menu of activities"),
            ("app.ended_jobs", "ended_jobs", "", "", "ended jobs",
             "Show the finished jobs of this session, with results and logs.",
             "results, job results, log of the job, last job"),
            ("app.compare", "compare", "", "", "compare models",
             "Show the differences between two models.", "diff, difference, what changed, compare"),
            ("app.doctor", "doctor", "", "", "doctor",
             "Check libraries, GPUs and folders of this machine, with what mends each problem.",
             "installation, what works, diagnose, missing library, health"),
            ("app.settings", "settings", "f2", "", "settings",
             "Change theme, glyphs, mouse and other settings.",
             "preferences, options, configuration, config, mouse, glyphs, ascii"),
            ("app.theme", "next_theme", "", "", "next theme",
             "Preview the next theme; the settings page saves it.",
             "theme, dark, light, colour scheme, color scheme"),
            ("app.redraw", "redraw", "ctrl+l", "", "redraw", "Redraw the screen.",
             "refresh, repaint, clear screen"),
            ("app.operators", "operators", "f3", "", "operators",
             "Browse the documentation of all operators.",
             "operator reference, schemas, onnx operators"),
            ("app.compare_reports", "compare_reports", "", "", "compare reports",
             "Compare profile reports or engines side by side.",
             "compare profiles, diff reports, regression, faster or slower"),
            ("app.targets", "targets", "", "", "targets",
             "Add, edit and test the machines that run jobs over SSH.",
             "ssh, remote, machine, machines, add a machine, host, jetson, device"),
            ("app.tools", "tools", "f10", "", "custom tools",
             "Run your own programs on the open model; add and edit them.",
             "script, external program, shell"),
            footer="app.help",
        ),
        table(
            "app",
            ("app.palette", "command_palette", "ctrl+p", "", "commands",
             "Search all commands and run one."),
            palette=False, priority=True, footer="app.palette",
        ),
        table(
            "app",
            ("app.quit", "quit", "ctrl+q", "", "quit",
             "Quit; ask first if there are unsaved edits.",
             "exit, leave, q, bye, quit with save, :q, :wq"),
            priority=True,
        ),
        Tabs.COMMAND_TABLE,
    )  # fmt: skip
    CSS_PATH = "styles/base.tcss"
    TITLE = "dld-tui"
    ENABLE_COMMAND_PALETTE = False
    MODES: ClassVar[dict[str, str | Callable[[], Screen[object]]]] = {
        START: cast("Callable[[], Screen[object]]", _start_page),
    }
    DEFAULT_MODE = START

    def __init__(
        self,
        paths: Sequence[Path | str] = (),
        config: Config | None = None,
        state: State | None = None,
        driver_class: type[Driver] | None = None,
    ) -> None:
        # Textual would turn all colours into greys; the theme uses the terminal's own two.
        no_colour = bool(os.environ.pop("NO_COLOR", ""))
        if paths:
            self.DEFAULT_MODE = OPENING  # type: ignore[misc] # of this run
        super().__init__(driver_class)
        if paths:
            self.add_mode(
                OPENING, cast("Callable[[], Screen[object]]", partial(OpeningPage, Path(paths[0])))
            )
        self.stylesheet = KeptStylesheet(variables=self.get_css_variables())
        self.config = settings.load() if config is None else config
        if no_colour:
            self.config = settings.changed(self.config, theme="no-colour")
        self.state = State() if state is None else state
        self.ended_jobs: deque[EndedJob] = deque(maxlen=20)
        self.pages: list[Page] = []
        self.copied_nodes: Fragment | None = None
        self.keys = KeyQueue(self)
        self._first_paths = list(paths)
        self.first_comparison: tuple[Path, Path, bool] | None = None
        """The models to compare at the start, and whether with their weights."""
        self.ending = Ending(self)
        for theme in THEMES:
            self.register_theme(theme)
        self.use_config(self.config)

    @property
    def is_used(self) -> bool:
        """Whether the user types or points just now."""
        return self.keys.is_used

    # Settings

    def use_config(self, config: Config) -> None:
        """Show the app as the settings say."""
        self.config = config
        self.theme = config.theme
        had = glyphs.current()
        glyphs.use(config.glyphs)
        frame.use(config.glyphs)
        if glyphs.current() is not had:
            self._repaint_everything()
        LineView.JUMP = config.scroll == "jump"
        over_ssh = bool(os.environ.get("SSH_CONNECTION"))
        self.animation_level = "full" if config.animations == "on" and not over_ssh else "none"
        self.set_class(config.glyphs == "ascii", "-ascii")
        self.set_class(not config.footer, "-no-keys")
        use_keys(self.config.keys)
        self.set_keymap(dict(config.keys))

    def _repaint_everything(self) -> None:
        """Draw what is open with other glyphs, what was drawn a moment ago and what is hidden."""
        for screen in self._open_screens():
            for widget in screen.walk_children(with_self=True):
                widget.refresh()

    _variables: tuple[Theme, dict[str, str]] | None = None

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the theme, which Textual asks for with every new page."""
        if self._variables is None or self._variables[0] is not self.current_theme:
            self._variables = self.current_theme, super().get_css_variables()
        return self._variables[1]

    def on_load(self) -> None:
        """Let tasks begin in turn, on every version of Python.

        From 3.12 on, Textual lets a task run when it is made. Fields of a tab's first page would
        ask for the page before the tab has it.
        """
        asyncio.get_running_loop().set_task_factory(None)

    def on_mount(self) -> None:
        """Report invalid settings, and open the files that were named."""
        self.ending.listen()
        secrets.use(DialogAsker(self))
        self.set_timer(_STARTED_S, interpreter.resume)
        for problem in (*self.config.problems, *unknown_and_clashing(self.config.keys)):
            self.notify(visible(problem), title="Settings", severity="warning", markup=False)
        self._end_listening = listen(self._tell_skipped)
        if self._first_paths:
            # Nothing is imported for them before the first paint.
            self.call_after_refresh(self.open_all, self._first_paths)
        if paths.has_new_journals():
            self.call_after_refresh(self._offer_new_models)
        if self.first_comparison is not None:
            old, new, weights = self.first_comparison
            self.compare(old, new, weights=weights)

    def on_unmount(self) -> None:
        """Stop listening to what is wrong with extensions."""
        self._end_listening()

    def _tell_skipped(self, line: str) -> None:
        """Tell that an extension is skipped; called on any thread."""
        self.notify(visible(line), title="Extensions", severity="warning", markup=False)

    def action_next_theme(self) -> None:
        """Show the next theme, for this run."""
        names = [theme.name for theme in THEMES]
        following = names[(names.index(self.theme) + 1) % len(names)]
        self.use_config(settings.changed(self.config, theme=following))
        keys = hint("{app.settings}")
        self.notify(f"Theme {following}. Settings ({keys}) keep it.", timeout=3)

    # Opening files

    def _offer_new_models(self) -> None:
        self.tasks.start(self._open_new_models(), "open", name="new models")

    async def _open_new_models(self) -> None:
        """Open the new models that sessions which were killed had not saved: each asks."""
        from dld_tui.screens.home.tabs import make_new

        for new in await on_thread(_new_models_left):
            self.add_page(make_new(new))

    def open_path(self, path: Path | str, then: Callable[[Page], None] | None = None) -> None:
        """Recognise a file, in a thread, and open it in a tab; `then` is called with the page."""
        target = Path(os.path.abspath(path))
        for page in self.pages:
            if page.path is not None and Path(os.path.abspath(page.path)) == target:
                self.show_page(page)
                return then(page) if then else None
        # From the app's own queue: what is opened would hold the page that asked for it.
        self.call_later(self._begin_open, Path(path), then)
        return None

    def _begin_open(self, path: Path, then: Callable[[Page], None] | None) -> None:
        self.tasks.start(self._open(path, then), "open", name=f"open {path}")

    def reveal(self, path: Path | str, scope_path: Sequence[str], node_ref: str) -> None:
        """Show a node of a model, which is opened first when it is not."""
        self.open_path(path, lambda page: page.reveal(scope_path, node_ref))

    def reveal_layer(self, path: Path | str, index: int) -> None:
        """Show a layer of a report, which is opened first when it is not."""
        self.open_path(path, lambda page: page.reveal_layer(index))

    async def _open(self, path: Path, then: Callable[[Page], None] | None = None) -> None:
        from dld_tui.screens.home.tabs import make_page

        recognised = await on_thread(_recognised, path)
        if recognised is None:
            await self._browse(path)
            return
        path, kind = recognised
        page = make_page(kind, path)
        self.state.opened(path, kind, keep=self.config.recent)
        self.add_page(page)
        if then is not None:
            then(page)

    async def _browse(self, folder: Path) -> None:
        """Show the start page with the files of a folder and of those below it."""
        from dld_tui.screens.home.welcome import WelcomeScreen

        await self.switch_mode(START)
        if isinstance(self.screen, WelcomeScreen):
            self.screen.show_folder(os.path.abspath(folder))

    def open_all(self, paths: Sequence[Path | str]) -> None:
        """Open files in tabs, in their order, and show the first."""
        self.tasks.start(self._open_all(paths), "open")

    async def _open_all(self, paths: Sequence[Path | str]) -> None:
        before = len(self.pages)
        failures: list[DldError] = []
        for path in paths:
            try:
                await self._open(Path(path))
            except DldError as error:
                failures.append(error)
        if self.pages[before:]:
            self.show_page(self.pages[before])
        elif self.current_mode == OPENING:
            self.switch_mode(START)
        for failure in failures:
            self.show_error(failure)

    @task()
    async def action_open_file(self) -> None:
        """Ask for a path and open it."""
        from dld_tui.widgets.dialogs.dialogs import OpenPathDialog

        path = await self.tasks.ask(OpenPathDialog())
        if path is not None:
            self.open_path(path)

    def action_new_model(self) -> None:
        """Ask what a new model begins with, and open it."""
        from dld_tui.screens.home.new_model import ask_new_model

        ask_new_model(self)

    # Pages over the tabs

    def action_help(self) -> None:
        """Show the keys, and the help of the focused widget."""
        from dld_tui.screens.home.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_command_palette(self) -> None:
        """Search all commands that make sense here."""
        from dld_tui.screens.home.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(self.screen), Palette.run_chosen(self))

    def action_redraw(self) -> None:
        """Draw the whole screen again, e.g. after another program wrote over it."""
        redraw = getattr(self._driver, "redraw", None)
        if redraw is not None:
            redraw()
        self.refresh()

    @task("operators", replace=True)
    async def action_operators(self) -> None:
        """Read what operators do, beginning with that of the node under the cursor."""
        from dld_tui.screens.home.help import OperatorsScreen, everything

        if isinstance(self.screen, OperatorsScreen):
            return
        node = self.page.node_at_cursor
        palette = await on_thread(everything)
        start = None if node is None else (node.domain, node.op_type)
        self.push_screen(OperatorsScreen(palette, start))

    def action_settings(self) -> None:
        """Show the settings."""
        from dld_tui.screens.settings import SettingsScreen

        self.push_screen(SettingsScreen())

    def action_targets(self) -> None:
        """Show the machines that are reached over SSH."""
        from dld_tui.screens.targets import TargetsScreen

        if not isinstance(self.screen, TargetsScreen):
            self.push_screen(TargetsScreen())

    @task()
    async def action_tools(self) -> None:
        """Show the programs of the user, and run the one that is chosen on the model."""
        from dld_tui.screens.settings import ToolsScreen

        if isinstance(self.screen, ToolsScreen):
            return
        page, screen = self.page, ToolsScreen()
        await self.tasks.ask(screen)
        if screen.chosen is not None:
            self.call_later(page.run_tool, screen.chosen)

    @task()
    async def action_activities(self) -> None:
        """Choose an activity."""
        from dld_tui.screens.activity.form import choose_activity

        path = self.page.path
        await choose_activity(self, {"model": str(path)} if path is not None else {})

    def action_doctor(self) -> None:
        """Check what works on this machine, and show what mends the rest."""
        from dld_tui.screens.results.views import run_activity

        run_activity(self, "doctor", {})

    @task()
    async def action_compare(self) -> None:
        """Ask for another model and compare the shown one with it; without one ask for both."""
        from dld_tui.screens.results.diff import ask_models

        document = self.page.edited_document
        models = await ask_models(self, document.path if document is not None else None)
        if models is not None:
            self.compare(*models)

    def compare(self, old: Path, new: Path, *, weights: bool = True) -> None:
        """Show what differs between two models in a tab."""
        from dld_tui.screens.results.diff import DiffScreen

        self.add_page(DiffScreen(old, new, weights=weights))

    @task()
    async def action_compare_reports(self) -> None:
        """Ask for two reports, or for one when a report is shown, and compare them."""
        from dld_tui.screens.results.compare import ask_reports

        page = self.page
        await ask_reports(self, page.path if page.SCOPE in ("report", "plan") else None)

    def own_commands(self) -> list[Command]:
        """Return a command for each activity of the menu that the page has none for."""
        from dld_tui.activities import registry

        is_model = self.page.edited_document is not None
        has_report = self.page.has_report
        return [
            Command(
                f"activity.{activity.id}", activity.title, activity.help, action="start",
                parameter=activity.id, synonyms=activity.synonyms,
            )
            for activity in registry.activities()
            if (activity.offered and not (is_model and activity.page_command))
            or (activity.of_report and has_report)
        ]  # fmt: skip

    def action_start(self, activity: str) -> None:
        """Show the form of an activity, for the model that is shown."""
        page = self.page
        if not page.show_activity(activity):
            self.start_activity(activity, {} if page.path is None else {"model": str(page.path)})

    def start_activity(self, activity: str, values: Mapping[str, JSON]) -> None:
        """Show the form of an activity, some of its fields filled."""
        from dld_tui.activities import registry

        try:
            self.push_screen(resolve(registry.find(activity).form)(activity, values))
        except DldError as error:
            self.show_error(error)

    def run_job(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[Any], None],
        *,
        title: str = "",
        target: str | None = None,
        replaces: Sequence[str] = (),
    ) -> None:
        """Run an activity on a target, this machine by default, and show its progress."""
        from dld_tui.screens.activity.jobs import JobScreen

        self.push_screen(
            JobScreen(activity, request, on_result, title=title, target=target, replaces=replaces)
        )

    def job_ended(self, job: EndedJob) -> None:
        """Keep what stays of a job; of the oldest nothing does."""
        self.ended_jobs.append(job)
        for screen in self._open_screens():
            if isinstance(screen, Page):
                screen.job_ended()

    def _open_screens(self) -> list[Screen[Any]]:
        return [screen for stack in self._screen_stacks.values() for screen in stack]

    def action_ended_jobs(self) -> None:
        """Show how the jobs of this session ended."""
        from dld_tui.screens.activity.jobs import EndedJobsScreen

        self.push_screen(EndedJobsScreen())

    # Leaving, errors, clipboard

    def action_help_quit(self) -> None:
        """Say on Ctrl+C what leaves the program."""
        self.notify(hint("{app.quit} quits, {app.close} closes this page"), timeout=3)

    async def action_quit(self) -> None:
        """Leave, after asking when something would be lost."""
        from dld_tui.screens.home.tabs import ask_to_quit

        ask_to_quit(self, self._open_screens())

    def show_error(self, error: BaseException, title: str = "") -> None:
        """Show an error in a dialog; the traceback of a bug goes to the log too."""
        from dld_tui.widgets.dialogs.dialogs import ErrorDialog

        known = error if isinstance(error, DldError) else input_error(error, ())
        if known is None:
            terminal.log("".join(traceback.format_exception(error)))
        self.push_screen(ErrorDialog(known or error, title))

    async def run_action(
        self,
        action: Any,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run a command; what it raises never ends the program.

        A command that cannot run now says why, and has taken its key: what the key means further
        out is not run.
        """
        node = default_namespace or self
        if isinstance(action, str) and self._check_action_state(action, node) is None:
            self._say_why_not(action, node)
            return True
        handled = True
        with self.showing_errors():
            handled = await super().run_action(action, default_namespace, namespaces)
        return handled

    @contextmanager
    def showing_errors(self) -> Iterator[None]:
        """Show in a dialog what a command raises: the seam of all of them."""
        try:
            yield
        except NoMatches as missing:  # a page that is not filled yet, or not any more
            terminal.log("".join(traceback.format_exception(missing)))
            self.show_error(
                UnavailableError("this page is not there yet", hint="Try it again in a moment")
            )
        except Exception as error:  # noqa: BLE001
            self.show_error(error)

    def _handle_exception(self, error: Exception) -> None:
        # The one seam for work that failed: a worker's error is shown and the app goes on.
        if isinstance(error, WorkerFailed):
            if self.is_running:
                self.call_later(self.show_error, error.error)
            else:  # on the way out nobody can read it; often it has only lost its screen
                terminal.log("".join(traceback.format_exception(error.error)))
            return
        pump = active_message_pump.get(None)
        if isinstance(error, NoMatches) and isinstance(pump, Widget) and has_gone(pump):
            return  # a page that was left before it was filled
        self.ending.by_error(error)
        super()._handle_exception(error)

    def panic(self, *renderables: RenderableType) -> None:
        """Show nothing: what ended the program is said in one line."""

    def _fatal_error(self) -> None:
        # Textual would print a page of local variables; the log has the traceback.
        self._close_messages_no_wait()

    def watch_app_focus(self, focused: bool) -> None:
        """Notify the visible page; a page that watched the app would never be freed."""
        if focused and self.screen_stack and isinstance(self.screen, Page):
            self.screen.terminal_focused()

    async def on_event(self, event: events.Event) -> None:
        """Handle a key when the one before it has had all its effects."""
        if isinstance(event, events.Resize) and self._is_outdated(event):
            return
        if self.keys.admit(event):
            await super().on_event(event)

    def _is_outdated(self, event: events.Resize) -> bool:
        """Return whether the terminal has another size by now; it tells of that, too."""
        present = getattr(self._driver, "present_size", event.size)
        return present != event.size

    def _say_why_not(self, action: str, node: DOMNode) -> None:
        """Say why a command cannot run now."""
        target, name, parameters = self._parse_action(action, node)
        if isinstance(target, HasCommands) and (why := why_greyed(target, name, parameters)):
            self.notify(why, timeout=3, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy to the user's own clipboard with OSC 52; warns where that cannot work."""
        if len(text.encode("utf-8", "surrogateescape")) > _CLIPBOARD_LIMIT:
            self.notify("Too long for the terminal's clipboard (74 kB)", severity="warning")
            return
        super().copy_to_clipboard(text.encode("utf-8", "replace").decode())
        tip = ". In tmux this needs: set -g set-clipboard on" if os.environ.get("TMUX") else ""
        self.notify(f"Copied {len(text):,} characters{tip}", timeout=3, markup=False)


def run(paths: Sequence[Path | str] = (), comparison: tuple[Path, Path, bool] | None = None) -> int:
    """Run the user interface on some files, or on a comparison, and return the exit status.

    Raises:
        DldError: It was ended by an error or a signal; unsaved edits are kept.
    """
    from dld_tui.widgets.shell.driver import DiffDriver

    with terminal.guarded() as restore:
        app = DldApp(paths, driver_class=DiffDriver)
        app.first_comparison = comparison
        show(app, restore)
    if app.ending.error is not None:
        raise app.ending.error
    return app.return_value or 0


def show(app: DldApp, restore: Callable[[], None]) -> None:
    """Run an app on the terminal; `restore` gives the streams of the process back."""
    interpreter.take_short_turns()
    with app.ending.watched(restore):
        app.run(mouse=app.config.mouse)
