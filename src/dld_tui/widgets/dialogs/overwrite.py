"""The question before a file is replaced, and for the path of a file to write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.permission import in_the_way
from dld_tui.core.text import visible
from dld_tui.widgets.dialogs.dialogs import Choice, Dialog, QuestionDialog
from dld_tui.widgets.tasks import Tasks

_SHOWN = 4
"""Files that the question names."""


@dataclass(frozen=True)
class Answer:
    """What may be written."""

    allowed: bool
    replaces: tuple[Path, ...] = ()
    """What was there, and may be replaced; nothing else may."""
    wants_other: bool = False
    """Whether another name is to be asked for."""


async def may_write(tasks: Tasks, paths: Iterable[Path], *, renames: bool = True) -> Answer:
    """Ask before something is replaced; nothing is asked where nothing is in the way.

    Args:
        tasks: Of the page that asks.
        paths: All that will be written.
        renames: Whether another name can be chosen.
    """
    existing = in_the_way(paths)
    if not existing:
        return Answer(True)
    them = "it" if len(existing) == 1 else "them"
    choices = [Choice("k", f"keep {them}", "")]
    if renames:
        choices.append(Choice("a", "choose another name", "other"))
    choices.append(Choice("o", f"overwrite {them}", "overwrite"))
    lines = [f"{visible(str(path))} exists." for path in existing[:_SHOWN]]
    if len(existing) > _SHOWN:
        lines.append(f"{fmt.plural(len(existing) - _SHOWN, 'more file')} of it.")
    answer = await tasks.ask(QuestionDialog("Overwrite?", "\n".join(lines), choices))
    if answer == "overwrite":
        return Answer(True, tuple(existing))
    return Answer(False, wants_other=answer == "other")


async def ask_file(
    tasks: Tasks,
    dialog: Callable[[str], Dialog[Path] | Dialog[str]],
    start: str,
    *,
    ending: str = "",
    beside: Callable[[Path], Iterable[Path]] = lambda _: (),
) -> tuple[Path, tuple[Path, ...]] | None:
    """Ask where to write, and return the path and what is there that may be replaced.

    Args:
        tasks: Of the page that asks.
        dialog: Makes the question for a path, which begins with a text.
        start: The path to begin with.
        ending: What a name without an ending gets.
        beside: Returns what else may be written for a path.

    Returns:
        None where nothing is to be written.
    """
    while answer := await tasks.ask(dialog(start)):
        path = Path(answer).expanduser()
        path = path if path.suffix or not ending else path.with_suffix(ending)
        decision = await may_write(tasks, [path, *beside(path)])
        if decision.allowed:
            return path, decision.replaces
        if not decision.wants_other:
            return None
        start = str(path)
    return None
