"""The open pages of the app: which page shows which kind of file, the tabs, and leaving them."""

from __future__ import annotations

import importlib
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual._styles_cache import StylesCache
from textual.app import App
from textual.containers import Container
from textual.screen import Screen
from textual.widget import AwaitMount

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.interpreter import collect
from dld_tui.core.text import visible
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import Page, TabStrip
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from textual.widget import Widget

    from dld_tui.core.model.document.new_model import NewModel
    from dld_tui.widgets.dialogs.dialogs import Dialog

    _Base = App[int]
else:
    _Base = object

T = TypeVar("T")

START = "start"
"""The mode of the start page."""
OPENING = "opening"
"""The mode of the page shown until the first of the named files is recognised."""

DEEPEST = 10
"""Screens over each other in one tab."""

_COLLECT_S, _COLLECT_MOST_S = 1.0, 16.0
"""So long after a tab is closed its memory is given back, and, where a thread or a busy machine
keeps it so long, again after twice the time."""


def share_border_colours() -> None:
    """Let Textual keep the colours of borders by colours alone.

    Its cache of them is one of a method, and so keeps the last 1,024 widgets' drawn rows, too:
    100 MB in a terminal of 120 columns.
    """
    cached = vars(StylesCache)["get_inner_outer"]
    if not isinstance(cached, classmethod):  # as it is in a Textual that has this mended
        by_colours: Any = lru_cache(1024)(cached.__wrapped__)
        setattr(StylesCache, "get_inner_outer", classmethod(by_colours))  # noqa: B010


share_border_colours()


class OpeningPage(Page):
    """The name of a file and its size, seen before anything that can show the file is imported.

    Args:
        path: The first of the files.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._file = str(path)
        self._file_name = path.name

    @property
    def is_opening(self) -> bool:
        """Whether keys wait: always."""
        return True

    def body(self) -> Iterable[Widget]:
        pane = OpeningPane()
        pane.frame.show(self._file_name)
        yield pane

    def on_mount(self) -> None:
        """Show the file size, which a network drive may take long to tell."""
        self.tasks.start(self._say_size(), "disk")

    async def _say_size(self) -> None:
        size = await on_thread(_size_text, self._file)
        self.query_one(OpeningPane).frame.show(self._file_name, size)


class OpeningPane(Framed, Container):
    """The empty pane of the opening page."""


def _size_text(path: str) -> str:
    try:
        return fmt.size(os.stat(path).st_size)
    except (OSError, ValueError):  # what opens it says why
        return ""


class Tabs(_Base):
    """A mixin of the app: opening, showing and closing pages."""

    COMMAND_TABLE = table(
        "app",
        ("app.start", "start_page", "ctrl+t", "", "start page", "Show recent files and activities.",
         "home, recent files, recent, welcome, browse files"),
        ("tab.next", "next_tab", "ctrl+pagedown,right_curly_bracket", "tabs", "next tab",
         "Show the next open file."),
        ("tab.previous", "previous_tab", "ctrl+pageup,left_curly_bracket", "tabs", "previous tab",
         "Show the previous open file."),
        ("tab.close", "close_tab", "ctrl+w", "tab", "close tab",
         "Close this file; ask first if it has unsaved edits.", "close file, close model"),
        ("app.close", "close_front", "q", "", "close",
         "Close the page or tab in front; closing the last tab quits.", "leave, back"),
        footer="app.close",
    )  # fmt: skip

    pages: list[Page]
    has_quit = False
    """Whether the user has left, and been asked about what is not saved."""
    _modes_made = 0

    @property
    def page(self) -> Page:
        """The tab that is seen, or the start page."""
        return cast("Page", self.screen_stack[0])

    def conditions(self) -> set[str]:
        shows_tab = self.pages and self.screen_stack and self.screen_stack[0] in self.pages
        others = len(self.pages) > (1 if shows_tab else 0)
        return holding(tab=shows_tab, tabs=others)

    def add_page(self, page: Page) -> None:
        """Open a new tab and show it; not in a program that is ending."""
        if not self.is_running:  # Textual goes through all tabs then, and must find the same
            return
        self._modes_made += 1
        mode = f"tab-{self._modes_made}"
        page.mode = mode
        self.add_mode(mode, lambda: cast("Screen[object]", page))
        self.pages.append(page)
        self.switch_mode(mode)

    def push_screen(self, screen: Any, callback: Any = None, *args: Any, **options: Any) -> Any:
        """Show a dialog or a page over what is seen; over very many it is dismissed at once.

        Each dialog draws those below it from within: Python ends the program at about 20.
        """
        from dld_tui.widgets.dialogs.dialogs import QuitDialog

        if len(self.screen_stack) < DEEPEST or isinstance(screen, QuitDialog):
            return super().push_screen(screen, callback, *args, **options)
        self.notify("Too many dialogs are open: close one first", severity="warning")
        if callback is not None:
            callback(None)
        return AwaitMount(self.screen, [])

    def show_page(self, page: Page) -> None:
        """Show an open tab."""
        self.switch_mode(page.mode)

    def close_page(self, page: Page) -> None:
        """Close a tab without asking."""
        if page not in self.pages or not self.is_running:  # as above
            return
        from dld_tui.widgets.dialogs.dialogs import ErrorDialog

        at = self.pages.index(page)
        self.pages.remove(page)
        unread: list[ErrorDialog] = []
        if self.current_mode == page.mode:
            # What made the page close may be shown over it already, and would go with it.
            unread = [screen for screen in self.screen_stack if isinstance(screen, ErrorDialog)]
            following = self.pages[min(at, len(self.pages) - 1)] if self.pages else None
            self.switch_mode(following.mode if following else START)
        self.remove_mode(page.mode)
        for other in self.pages:
            other.tab_closed(page)
        self.set_timer(_COLLECT_S, partial(self._give_back, weakref.ref(page), _COLLECT_S))
        for dialog in unread:
            self.push_screen(ErrorDialog(dialog.error, dialog.TITLE_TEXT))
        self.page_changed()

    def _give_back(self, page: weakref.ref[Page], after_s: float) -> None:
        collect()
        if page() is not None and after_s < _COLLECT_MOST_S:  # else it would stay until the next
            self.set_timer(2 * after_s, partial(self._give_back, page, 2 * after_s))

    def page_changed(self) -> None:
        """Draw the tabs again."""
        for screen in self.screen_stack:  # pages over a tab have a strip, too
            for strip in screen.query(TabStrip):
                strip.refresh()
        self.screen.refresh_bindings()

    def action_next_tab(self, step: int = 1) -> None:
        if self.pages:
            at = self.pages.index(self.page) if self.page in self.pages else -1
            self.show_page(self.pages[(at + step) % len(self.pages)])

    def action_previous_tab(self) -> None:
        self.action_next_tab(-1)

    def action_close_tab(self) -> None:
        """Close the shown tab; asks when it has unsaved edits."""
        from dld_tui.screens.home.tabs import ask_to_close

        page = self.page
        if page in self.pages:
            page.when_saved(lambda: ask_to_close(self, page, self.close_page))

    async def action_close_front(self) -> None:
        if self.page in self.pages and len(self.pages) > 1:
            self.action_close_tab()
        elif self.page not in self.pages and self.pages:
            self.show_page(self.pages[-1])
        else:
            await self.action_quit()

    def action_start_page(self) -> None:
        self.switch_mode(START)

    def quit(self) -> None:
        """Leave without asking; only this lets unsaved edits go."""
        self.has_quit = True
        self.exit(0)


_WORKSPACE = "dld_tui.screens.workspace.page:WorkspaceScreen"
_REPORT = "dld_tui.screens.results.report:ReportScreen"
_PLAN = "dld_tui.screens.results.plan:PlanScreen"
_SWEEPS = "dld_tui.screens.results.sweep:compare_page"

OPENERS: dict[str, str] = {
    "ONNX": _WORKSPACE,
    "ONNX_TEXT": _WORKSPACE,
    "REPORT": _REPORT,
    "ORT_PROFILE": _REPORT,
    "ENGINE_PROFILE": _REPORT,
    "ENGINE_TIMES": _REPORT,
    "TRACE": _REPORT,
    "OTHER_PROFILE": _REPORT,
    "ENGINE_LAYERS": _PLAN,
    "ENGINE_ARCHIVE": _PLAN,
    "ENGINE_METADATA": _PLAN,
    "TUNING": "dld_tui.screens.results.tuning:TuneScreen",
    "SWEEP": "dld_tui.screens.results.sweep:open_sweep",
    "TRTEXEC_LOG": "dld_tui.screens.results.trtexec_log:LogScreen",
}
"""Name of a ``FileKind`` to the page that is made with the path."""


def make_sweep_comparison(paths: Sequence[Path]) -> Page:
    """Return a page with sweeps side by side.

    Raises:
        InputError: A file cannot be read.
        UsageError: They have no point in common.
    """
    module, _, name = _SWEEPS.partition(":")
    page: Page = getattr(importlib.import_module(module), name)(paths)
    return page


def make_page(kind: str, path: Path | None) -> Page:
    """Return a page that shows a file; None is a new one.

    Raises:
        UnavailableError: No screen shows files of this kind.
    """
    opener = OPENERS.get(kind)
    if opener is None:
        name = kind.replace("_", " ").lower()
        raise UnavailableError(
            f"no screen shows this kind of file ({name})",
            where=None if path is None else str(path),
            hint="Open a model (.onnx), a report (.dldprof) or another program's profile (.json)",
        )
    module, _, name = opener.partition(":")
    page: Page = getattr(importlib.import_module(module), name)(path)
    return page


def make_new(request: NewModel) -> Page:
    """Return a page with a new model, which has no file until it is saved."""
    module, _, name = _WORKSPACE.partition(":")
    page: Page = getattr(importlib.import_module(module), name)(None, new=request)
    return page


def prepare(kind: str) -> None:
    """Import the page for a kind of file: half a second that a thread should spend."""
    if kind in OPENERS:
        importlib.import_module(OPENERS[kind].partition(":")[0])


def ask_to_close(app: App[int], page: Page, close: Callable[[Page], None]) -> None:
    """Close a page, after asking when it has unsaved edits."""
    from dld_tui.widgets.dialogs.dialogs import Choice, QuestionDialog

    lost = page.unsaved()
    if not lost:
        return close(page)

    def answered(answer: str | None) -> None:
        if answer == "save":
            page.save_then(lambda: close(page))
        elif answer == "discard":
            close(page)

    choices = [
        Choice("k", "keep it open", "keep"),
        Choice("s", "save and close", "save"),
        Choice("d", "close and lose the edits", "discard"),
    ]
    message = "\n".join([*lost, *page.kept_when_discarded()])
    app.push_screen(QuestionDialog("Unsaved edits", message, choices), answered)
    return None


def ask_to_quit(app: Tabs, screens: Iterable[Screen[object]]) -> None:
    """Leave the program, after asking when edits would be lost or jobs run."""
    from dld_tui.widgets.dialogs.dialogs import Choice, QuitDialog

    if isinstance(app.screen, QuitDialog):
        return
    screens = list(screens)
    unsaved = [page for page in app.pages if page.unsaved()]
    lost = [line for page in unsaved for line in page.unsaved()]
    lost += [line for screen in screens if (line := str(getattr(screen, "at_work", "")))]
    going = [line for screen in screens if (line := str(getattr(screen, "goes_on", "")))]
    if not lost and not going:
        app.quit()
        return

    def answered(answer: str | None) -> None:
        if answer == "discard":
            app.quit()
        elif answer in ("save", "all"):
            shown = [page for page in unsaved if page is app.page] or unsaved[:1]
            # Jobs, and what is not saved yet, are asked about again.
            _save(app, unsaved if answer == "all" else shown, lambda: ask_to_quit(app, screens))

    choices = [Choice("k", "stay", "keep")]
    if len(unsaved) == 1:
        choices.append(Choice("s", "save and quit", "save"))
    elif unsaved:
        choices.append(Choice("a", f"save all {len(unsaved)} and quit", "all"))
        choices.append(Choice("s", "save only the shown one, and ask again", "save"))
    choices.append(Choice("d", "quit and lose this" if lost else "quit", "discard"))
    kept = list(dict.fromkeys(line for page in unsaved for line in page.kept_when_discarded()))
    app.push_screen(QuitDialog("Quit?", "\n".join(lost + going + kept), choices), answered)


def _save(app: Tabs, pages: Sequence[Page], done: Callable[[], None]) -> None:
    """Save pages, one after the other; what cannot be saved ends it, with its page in front."""
    if not pages:
        return done()
    app.show_page(pages[0])
    pages[0].save_then(lambda: _save(app, pages[1:], done))
    return None


class DialogAsker:
    """Asks with dialogs; call it from a thread that may wait.

    Args:
        app: The app; without it running, nobody is asked.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._waiting: set[futures.Future[object]] = set()
        self._is_over = False

    def secret(self, question: str) -> str | None:
        """Return what was typed; None when the dialog was closed."""
        from dld_tui.widgets.dialogs.dialogs import SecretDialog

        return self._ask(lambda: SecretDialog(question))

    def confirm(self, question: str, detail: str) -> bool:
        """Return whether yes was chosen."""
        from dld_tui.widgets.dialogs.dialogs import Choice, QuestionDialog

        lines = [visible(line) for line in detail.split("\n")]
        answers = [Choice("n", "no", "no"), Choice("y", "yes", "yes")]
        title = visible(question)
        return self._ask(lambda: QuestionDialog(title, "\n".join(lines), answers)) == "yes"

    def stop(self) -> None:
        """Answer no more questions; those that wait get None."""
        self._is_over = True
        for future in list(self._waiting):
            future.cancel()

    def _ask(self, make: Callable[[], Dialog[T]]) -> T | None:
        answer: futures.Future[T | None] = futures.Future()

        def show() -> None:
            self._app.push_screen(make(), lambda value: _give(answer, value))

        if self._is_over or not self._app.is_running:
            return None
        self._waiting.add(answer)  # type: ignore[arg-type]
        try:
            self._app.call_from_thread(show)
            return answer.result()
        except (RuntimeError, futures.CancelledError):  # the app has ended meanwhile
            return None
        finally:
            self._waiting.discard(answer)


def _give(future: futures.Future[T | None], value: T | None) -> None:
    if not future.done():
        future.set_result(value)
