"""The result of a job taken into the open document as one edit, and told; u takes it back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.document.payloads import scratch_folder
from dld_tui.core.errors import DldError
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import History
from dld_tui.screens.workspace.jobs import Watch
from dld_tui.widgets.shell.host import host

if TYPE_CHECKING:
    from dld_tui.core.document import Document, Transaction


_AGAIN_S = 0.1
_EDITED = "The model was edited meanwhile, so the result was not applied to it."


class Result:
    """What a job makes of a document, on its way into it.

    Args:
        document: The document.
        title: What the edit does, e.g. ``convert to fp16``.
        aside: The file to write it to when it cannot be applied any more.
    """

    def __init__(self, document: Document, title: str, aside: Path) -> None:
        self.title = title
        self.aside = aside
        self.model: JSON = None
        """The result as an argument of edits, once it is there and found to be sound."""
        self._document = document

    @contextmanager
    def made(self, before: Path, cancelled: CancelCheck) -> Iterator[Path]:
        """Yield the file that the job is to write; after the job, keep what it wrote.

        Args:
            before: What the job makes it of.
            cancelled: Asked now and then.

        Raises:
            DldError: The result is not valid, or there is no room for it.
        """
        from dld_tui.core.document.edits.model_swap import keep_model

        with scratch_folder() as folder:
            output = folder / (self._document.path or self.aside).name
            yield output
            _check(before, output, cancelled)
            self.model = keep_model(self._document, output, move=True, cancelled=cancelled)

    def write(self) -> Path:
        """Write it to a file of its own, which is returned.

        Raises:
            DldError: It cannot be written.
        """
        from dld_tui.core.document.edits.model_swap import write_kept

        names = itertools.chain(
            [self.aside],
            (self.aside.with_stem(f"{self.aside.stem}-{n}") for n in itertools.count(2)),
        )
        target = next(path for path in names if not path.exists())
        write_kept(self._document, self.model, target)
        return target


def _check(before: Path, after: Path, cancelled: CancelCheck) -> None:
    """Refuse a result with new errors; a process of its own looks for them."""
    from dld_tui.targets import registry

    request: dict[str, JSON] = {"before": str(before), "after": str(after)}
    with registry.get().start("check_sound", request) as job, Watch(job.close, cancelled):
        job.result(lambda event: None)


@dataclass(eq=False)
class ApplyConversion(Controller):
    """Takes results in."""

    history: History
    _applied: list[tuple[Transaction, Sequence[str]]] = field(default_factory=list)
    """The edits that have taken results in, and what is said of them."""

    def apply(self, result: Result, lines: Sequence[str], *, is_current: bool) -> None:
        """Put a result in the place of the model, and show what was done.

        Where the model is no longer the one that the job saw, the result goes to a file.

        Args:
            result: What the job made.
            lines: What it did, fit for a terminal.
            is_current: Whether the model is still as the job saw it.
        """
        if not is_current or self.document.is_held:  # else a page edits on a thread
            self._when_free(lambda: self._put_aside(result, lines))
            return
        version = self.model.version

        def apply() -> None:
            if version != self.model.version:
                self._put_aside(result, lines)
                return

            def step() -> Transaction:
                made = self.document.apply("replace_model", model=result.model, title=result.title)
                self._applied.append((made, lines))
                return made

            self.history.change(f"Applying: {result.title}", [step], large=True, done=told)

        def told() -> None:
            self._tell(lines, result.title)

        self._when_free(apply)

    def show_again(self, transaction: Transaction) -> None:
        """Show what a conversion did when it was made again."""
        for made, lines in self._applied:
            if made is transaction:
                self._tell(lines, transaction.title)

    def _tell(self, lines: Sequence[str], title: str) -> None:
        from dld_tui.screens.model.opset_dialogs import AppliedDialog

        def answered(undo: bool | None) -> None:
            if undo:
                self.history.undo()

        self.ask(AppliedDialog(lines, title), answered)

    def _when_free(self, action: Callable[[], None]) -> None:
        """Do something once no work on a thread holds the model."""
        if not self.work.is_running:
            action()
        else:
            self.page.set_timer(_AGAIN_S, lambda: self._when_free(action))

    def _put_aside(self, result: Result, lines: Sequence[str]) -> None:
        from dld_tui.screens.model.opset_dialogs import ConversionDialog

        written: list[Path] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            written.append(result.write())

        def ended(error: DldError | None) -> None:
            if error is not None:
                self.complain(error)
                return

            def answered(wanted: bool | None) -> None:
                if wanted:
                    host(self.page).open_path(written[0])

            dialog = ConversionDialog([_EDITED, *lines], written[0].name)
            self.ask(dialog, answered)

        self.work.run(f"Writing {clip(visible(result.aside.name), 40)}", task, ended)
